/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "drafter.h"

#include <string.h>

#include "../error.h"
#include "draft-state-private.h"
#include "engine-private.h"

/**
 * RunnelDrafter:
 *
 * Guesses how a sequence goes on. An immutable factory, shared by requests and
 * threads: what it knows of a sequence is in the #RunnelDraftState of that
 * sequence.
 *
 * Since: 0.1
 */
typedef struct {
  char *id;
  guint *taps;               /* layers, [n_taps] */
  guint n_taps;
} RunnelDrafterPrivate;

/**
 * RunnelDraftState:
 *
 * What a drafter knows of one sequence. It goes with the sequence: it is fed
 * the rows that are committed to it, and is forked, truncated and saved with
 * it. To be used by who uses the sequence.
 *
 * Since: 0.1
 */
typedef struct {
  RunnelDrafter *drafter;
  guint n_embd;
  guint n_rows;              /* fed */
  GArray *waiting;           /* float: the taps of rows behind them; NULL
                                without taps */
} RunnelDraftStatePrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (RunnelDrafter, runnel_drafter,
    G_TYPE_OBJECT)
G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (RunnelDraftState, runnel_draft_state,
    G_TYPE_OBJECT)

static RunnelDrafterPrivate *
drafter_private (RunnelDrafter *self)
{
  return runnel_drafter_get_instance_private (self);
}

static RunnelDraftStatePrivate *
state_private (RunnelDraftState *self)
{
  return runnel_draft_state_get_instance_private (self);
}

static void
runnel_drafter_finalize (GObject *object)
{
  RunnelDrafterPrivate *priv = drafter_private (RUNNEL_DRAFTER (object));

  g_free (priv->id);
  g_free (priv->taps);
  G_OBJECT_CLASS (runnel_drafter_parent_class)->finalize (object);
}

static void
runnel_drafter_class_init (RunnelDrafterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_drafter_finalize;
}

static void
runnel_drafter_init (RunnelDrafter *self)
{
}

/**
 * runnel_drafter_set_identity:
 * @self: a drafter in the making
 * @id: what tells its states from those of drafters that differ, in kind, in
 *   parameters or in weights
 * @taps: (array length=n_taps) (nullable): decoder layers, counted from 0,
 *   behind which it wants the hidden rows; each below the target's number
 * @n_taps: their number
 *
 * For derived classes, once, before anybody else sees the drafter.
 *
 * Since: 0.1
 */
void
runnel_drafter_set_identity (RunnelDrafter *self, const char *id,
                             const guint *taps, guint n_taps)
{
  RunnelDrafterPrivate *priv = drafter_private (self);

  g_return_if_fail (RUNNEL_IS_DRAFTER (self));
  g_return_if_fail (id != NULL && priv->id == NULL);
  g_return_if_fail (taps != NULL || n_taps == 0);
  priv->id = g_strdup (id);
  priv->taps = g_memdup2 (taps, n_taps * sizeof *taps);
  priv->n_taps = n_taps;
}

/**
 * runnel_drafter_get_id:
 * @self: a drafter
 *
 * What tells its states from those of other drafters. States of drafters with
 * the same id are interchangeable.
 *
 * Returns: (transfer none): the id
 *
 * Since: 0.1
 */
const char *
runnel_drafter_get_id (RunnelDrafter *self)
{
  g_return_val_if_fail (RUNNEL_IS_DRAFTER (self), NULL);
  return drafter_private (self)->id;
}

/**
 * runnel_drafter_get_taps:
 * @self: a drafter
 * @n_taps: (out): their number
 *
 * The decoder layers of the target behind which it wants the hidden rows.
 *
 * Returns: (transfer none) (array length=n_taps) (nullable): layers, counted
 *   from 0
 *
 * Since: 0.1
 */
const guint *
runnel_drafter_get_taps (RunnelDrafter *self, guint *n_taps)
{
  g_return_val_if_fail (RUNNEL_IS_DRAFTER (self), NULL);
  *n_taps = drafter_private (self)->n_taps;
  return drafter_private (self)->taps;
}

static RunnelDraftState *
init_state (RunnelDraftState *state, RunnelDrafter *drafter, guint n_embd,
            guint n_rows)
{
  RunnelDraftStatePrivate *priv = state_private (state);

  priv->drafter = g_object_ref (drafter);
  priv->n_embd = n_embd;
  priv->n_rows = n_rows;
  if (drafter_private (drafter)->n_taps > 0)
    priv->waiting = g_array_new (FALSE, FALSE, sizeof (float));
  return state;
}

static gboolean
check_taps (RunnelDrafter *self, RunnelEngine *engine, GError **error)
{
  const RunnelDrafterPrivate *priv = drafter_private (self);
  const guint n_layers = runnel_engine_get_shape (engine)->n_layers;

  for (guint i = 0; i < priv->n_taps; i++)
    if (priv->taps[i] >= n_layers) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
          "drafter %s reads layer %u, but %s has %u; it is for another model",
          priv->id, priv->taps[i],
          runnel_model_get_path (runnel_engine_get_model (engine)), n_layers);
      return FALSE;
    }
  return TRUE;
}

RunnelDraftState *
runnel_drafter_new_state (RunnelDrafter *self, RunnelEngine *engine,
                          GError **error)
{
  RunnelDraftState *state;

  if (!check_taps (self, engine, error))
    return NULL;
  state = RUNNEL_DRAFTER_GET_CLASS (self)->new_state (self, engine, error);
  return state == NULL ? NULL : init_state (state, self,
      runnel_engine_get_shape (engine)->n_embd, 0);
}

RunnelDraftState *
runnel_drafter_load_state (RunnelDrafter *self, RunnelEngine *engine,
                           GBytes *image, guint n_rows, GError **error)
{
  RunnelDraftState *state;

  if (!check_taps (self, engine, error))
    return NULL;
  if (RUNNEL_DRAFTER_GET_CLASS (self)->load_state == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "drafter %s does not load states", drafter_private (self)->id);
    return NULL;
  }
  state = RUNNEL_DRAFTER_GET_CLASS (self)->load_state (self, engine, image,
      n_rows, error);
  return state == NULL ? NULL : init_state (state, self,
      runnel_engine_get_shape (engine)->n_embd, n_rows);
}

/* ---- States -------------------------------------------------------------- */

static void
runnel_draft_state_finalize (GObject *object)
{
  RunnelDraftStatePrivate *priv = state_private (RUNNEL_DRAFT_STATE (object));

  g_clear_object (&priv->drafter);
  g_clear_pointer (&priv->waiting, g_array_unref);
  G_OBJECT_CLASS (runnel_draft_state_parent_class)->finalize (object);
}

static void
runnel_draft_state_class_init (RunnelDraftStateClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_draft_state_finalize;
}

static void
runnel_draft_state_init (RunnelDraftState *self)
{
}

/**
 * runnel_draft_state_get_drafter:
 * @self: a draft state
 *
 * Whose state it is.
 *
 * Returns: (transfer none): the drafter
 *
 * Since: 0.1
 */
RunnelDrafter *
runnel_draft_state_get_drafter (RunnelDraftState *self)
{
  g_return_val_if_fail (RUNNEL_IS_DRAFT_STATE (self), NULL);
  return state_private (self)->drafter;
}

/**
 * runnel_draft_state_get_n_rows:
 * @self: a draft state
 *
 * How many rows of the sequence it has been fed; others may wait for it.
 *
 * Returns: rows
 *
 * Since: 0.1
 */
guint
runnel_draft_state_get_n_rows (RunnelDraftState *self)
{
  g_return_val_if_fail (RUNNEL_IS_DRAFT_STATE (self), 0);
  return state_private (self)->n_rows;
}

static gsize
row_floats (const RunnelDraftStatePrivate *priv)
{
  return (gsize) drafter_private (priv->drafter)->n_taps * priv->n_embd;
}

float *
runnel_draft_state_expect (RunnelDraftState *self, guint n)
{
  RunnelDraftStatePrivate *priv = state_private (self);
  guint at;

  if (priv->waiting == NULL)
    return NULL;
  at = priv->waiting->len;
  g_array_set_size (priv->waiting, at + n * row_floats (priv));
  return (float *) priv->waiting->data + at;
}

void
runnel_draft_state_settle (RunnelDraftState *self, guint length)
{
  RunnelDraftStatePrivate *priv = state_private (self);
  gsize keep;

  if (length < priv->n_rows) {
    RUNNEL_DRAFT_STATE_GET_CLASS (self)->truncate (self, length);
    priv->n_rows = length;
  }
  if (priv->waiting == NULL)
    return;
  keep = (length - priv->n_rows) * row_floats (priv);
  if (keep < priv->waiting->len)
    g_array_set_size (priv->waiting, keep);
}

guint
runnel_draft_state_get_lag (RunnelDraftState *self, guint length)
{
  return length - state_private (self)->n_rows;
}

gboolean
runnel_draft_state_catch_up (RunnelDraftState *self, const gint32 *tokens,
                             guint length, GError **error)
{
  RunnelDraftStatePrivate *priv = state_private (self);
  const guint lag = runnel_draft_state_get_lag (self, length);
  const float *taps = NULL;

  if (lag == 0)
    return TRUE;
  if (priv->waiting != NULL) {
    if (priv->waiting->len < lag * row_floats (priv)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
          "drafter %s was attached to a sequence that had tokens; attach it "
          "before prefill", runnel_drafter_get_id (priv->drafter));
      return FALSE;
    }
    taps = (const float *) priv->waiting->data;
  }
  if (!RUNNEL_DRAFT_STATE_GET_CLASS (self)->feed (self, tokens + priv->n_rows,
          lag, taps, error))
    return FALSE;
  priv->n_rows = length;
  if (priv->waiting != NULL)
    g_array_set_size (priv->waiting, 0);
  return TRUE;
}

RunnelDraftState *
runnel_draft_state_fork (RunnelDraftState *self)
{
  RunnelDraftStatePrivate *priv = state_private (self), *fork_priv;
  RunnelDraftState *fork = RUNNEL_DRAFT_STATE_GET_CLASS (self)->fork (self);

  init_state (fork, priv->drafter, priv->n_embd, priv->n_rows);
  fork_priv = state_private (fork);
  if (priv->waiting != NULL)
    g_array_append_vals (fork_priv->waiting, priv->waiting->data,
        priv->waiting->len);
  return fork;
}

gboolean
runnel_draft_state_propose (RunnelDraftState *self,
                            const RunnelDraftRequest *request,
                            RunnelProposal *proposal, GError **error)
{
  proposal->n_tokens = 0;
  proposal->grade = 0;
  proposal->n_candidates = 0;
  proposal->candidates = NULL;
  proposal->probabilities = NULL;
  return RUNNEL_DRAFT_STATE_GET_CLASS (self)->propose (self, request, proposal,
      error);
}

void
runnel_draft_state_accepted (RunnelDraftState *self, guint n_proposed,
                             guint n_accepted)
{
  RunnelDraftStateClass *klass = RUNNEL_DRAFT_STATE_GET_CLASS (self);

  if (klass->accepted != NULL)
    klass->accepted (self, n_proposed, n_accepted);
}

gsize
runnel_draft_state_get_bytes (RunnelDraftState *self)
{
  RunnelDraftStateClass *klass = RUNNEL_DRAFT_STATE_GET_CLASS (self);
  const RunnelDraftStatePrivate *priv = state_private (self);

  return (klass->get_bytes != NULL ? klass->get_bytes (self) : 0)
      + (priv->waiting != NULL ? priv->waiting->len * sizeof (float) : 0);
}

GBytes *
runnel_draft_state_save (RunnelDraftState *self)
{
  RunnelDraftStateClass *klass = RUNNEL_DRAFT_STATE_GET_CLASS (self);

  return klass->save != NULL ? klass->save (self) : NULL;
}
