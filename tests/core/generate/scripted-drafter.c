/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "scripted-drafter.h"

#include <string.h>

#include "error.h"
#include "generate/noise.h"
#include "model/draft-state-private.h"
#include "model/engine-private.h"

typedef struct {
  RunnelDrafter parent;
  const ScriptedDrafts *drafts;
} ScriptedDrafter;
typedef RunnelDrafterClass ScriptedDrafterClass;
static GType scripted_drafter_get_type (void);
G_DEFINE_TYPE (ScriptedDrafter, scripted_drafter, RUNNEL_TYPE_DRAFTER)

typedef struct {
  RunnelDraftState parent;
  const ScriptedDrafts *drafts;
  guint n_embd;
  GArray *tokens;            /* gint32: fed */
  GArray *taps;              /* float */
  gint32 candidates[RUNNEL_MAX_DRAFT * 64];
  float probabilities[RUNNEL_MAX_DRAFT * 64];
} ScriptedState;
typedef RunnelDraftStateClass ScriptedStateClass;
static GType scripted_state_get_type (void);
G_DEFINE_TYPE (ScriptedState, scripted_state, RUNNEL_TYPE_DRAFT_STATE)

static ScriptedState *
state_new (const ScriptedDrafts *drafts, guint n_embd)
{
  ScriptedState *self = g_object_new (scripted_state_get_type (), NULL);

  self->drafts = drafts;
  self->n_embd = n_embd;
  return self;
}

static gsize
row_floats (const ScriptedState *self)
{
  return self->drafts->n_taps * self->n_embd;
}

static gboolean
scripted_state_feed (RunnelDraftState *state, const gint32 *tokens, guint n,
                     const float *taps, GError **error)
{
  ScriptedState *self = (ScriptedState *) state;

  g_assert_cmpuint (runnel_draft_state_get_n_rows (state), ==,
      self->tokens->len);
  g_assert_true ((taps != NULL) == (self->drafts->n_taps > 0));
  g_array_append_vals (self->tokens, tokens, n);
  if (taps != NULL)
    g_array_append_vals (self->taps, taps, n * row_floats (self));
  return TRUE;
}

static void
scripted_state_truncate (RunnelDraftState *state, guint n_rows)
{
  ScriptedState *self = (ScriptedState *) state;

  g_assert_cmpuint (n_rows, <, self->tokens->len);
  g_array_set_size (self->tokens, n_rows);
  if (self->drafts->n_taps > 0)
    g_array_set_size (self->taps, n_rows * row_floats (self));
}

static RunnelDraftState *
scripted_state_fork (RunnelDraftState *state)
{
  ScriptedState *self = (ScriptedState *) state;
  ScriptedState *fork = state_new (self->drafts, self->n_embd);

  g_array_append_vals (fork->tokens, self->tokens->data, self->tokens->len);
  g_array_append_vals (fork->taps, self->taps->data, self->taps->len);
  return RUNNEL_DRAFT_STATE (fork);
}

/* A guess among equally likely candidates, drawn with the sampler's noise. */
static gint32
draw_candidate (ScriptedState *self, const RunnelDraftRequest *request,
                guint i, gint32 right)
{
  const guint n = self->drafts->n_candidates;
  gint32 *candidates = self->candidates + i * n;
  guint best = 0;
  double best_noise = -1e9;

  for (guint k = 0; k < n; k++) {
    double noise;

    candidates[k] = (right + k * n) % self->drafts->n_vocab;
    self->probabilities[i * n + k] = 1.0f / n;
    noise = runnel_noise_gumbel (runnel_noise_word (request->seed,
        request->position + i, candidates[k]));
    if (noise > best_noise) {
      best_noise = noise;
      best = k;
    }
  }
  return candidates[best];
}

static gboolean
scripted_state_propose (RunnelDraftState *state,
                        const RunnelDraftRequest *request,
                        RunnelProposal *proposal, GError **error)
{
  ScriptedState *self = (ScriptedState *) state;
  const ScriptedDrafts *drafts = self->drafts;
  const gsize at = self->tokens->len + 1;
  const guint n = drafts->too_long ? RUNNEL_MAX_DRAFT
      : MIN (drafts->length, request->max_tokens);

  g_assert_cmpuint (request->max_tokens, >=, 1);
  g_assert_cmpuint (request->max_tokens, <=, RUNNEL_MAX_DRAFT);
  if (drafts->work > 0)
    g_usleep (drafts->work);
  for (guint i = 0; i < n; i++) {
    gint32 token = at + i < drafts->n_tokens ? drafts->tokens[at + i] : 0;

    if (drafts->n_candidates > 0)
      token = draw_candidate (self, request, i, token);
    if ((gint) i == drafts->wrong_at)
      token = (token + 1) % drafts->n_vocab;
    proposal->tokens[i] = token;
  }
  proposal->n_tokens = n;
  proposal->grade = drafts->grade;
  if (drafts->n_candidates > 0) {
    proposal->n_candidates = drafts->n_candidates;
    proposal->candidates = self->candidates;
    proposal->probabilities = self->probabilities;
  }
  return TRUE;
}

static gsize
scripted_state_get_bytes (RunnelDraftState *state)
{
  ScriptedState *self = (ScriptedState *) state;

  return self->tokens->len * sizeof (gint32)
      + self->taps->len * sizeof (float);
}

/* The taps; tokens are known to who loads it. */
static GBytes *
scripted_state_save (RunnelDraftState *state)
{
  ScriptedState *self = (ScriptedState *) state;

  return self->drafts->n_taps == 0 ? NULL
      : g_bytes_new (self->taps->data, self->taps->len * sizeof (float));
}

static void
scripted_state_finalize (GObject *object)
{
  ScriptedState *self = (ScriptedState *) object;

  g_array_unref (self->tokens);
  g_array_unref (self->taps);
  G_OBJECT_CLASS (scripted_state_parent_class)->finalize (object);
}

static void
scripted_state_class_init (ScriptedStateClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = scripted_state_finalize;
  klass->feed = scripted_state_feed;
  klass->truncate = scripted_state_truncate;
  klass->fork = scripted_state_fork;
  klass->propose = scripted_state_propose;
  klass->get_bytes = scripted_state_get_bytes;
  klass->save = scripted_state_save;
}

static void
scripted_state_init (ScriptedState *self)
{
  self->tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
  self->taps = g_array_new (FALSE, FALSE, sizeof (float));
}

const GArray *
scripted_state_get_taps (RunnelDraftState *state)
{
  return ((ScriptedState *) state)->taps;
}

static RunnelDraftState *
scripted_drafter_new_state (RunnelDrafter *drafter, RunnelEngine *engine,
                            GError **error)
{
  return RUNNEL_DRAFT_STATE (state_new (((ScriptedDrafter *) drafter)->drafts,
          runnel_engine_get_shape (engine)->n_embd));
}

static RunnelDraftState *
scripted_drafter_load_state (RunnelDrafter *drafter, RunnelEngine *engine,
                             GBytes *image, guint n_rows, GError **error)
{
  ScriptedState *state = (ScriptedState *) scripted_drafter_new_state (drafter,
      engine, error);
  gsize size;
  const float *taps = g_bytes_get_data (image, &size);

  if (size != n_rows * row_floats (state) * sizeof (float)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "scripted: an image of %" G_GSIZE_FORMAT " bytes", size);
    g_object_unref (state);
    return NULL;
  }
  g_array_append_vals (state->taps, taps, size / sizeof (float));
  g_array_append_vals (state->tokens, state->drafts->tokens, n_rows);
  return RUNNEL_DRAFT_STATE (state);
}

static void
scripted_drafter_class_init (ScriptedDrafterClass *klass)
{
  klass->new_state = scripted_drafter_new_state;
  klass->load_state = scripted_drafter_load_state;
}

static void
scripted_drafter_init (ScriptedDrafter *self)
{
}

RunnelDrafter *
scripted_drafter_new (const ScriptedDrafts *drafts)
{
  ScriptedDrafter *self = g_object_new (scripted_drafter_get_type (), NULL);

  self->drafts = drafts;
  runnel_drafter_set_identity (RUNNEL_DRAFTER (self),
      drafts->id != NULL ? drafts->id : "scripted", drafts->taps,
      drafts->n_taps);
  return RUNNEL_DRAFTER (self);
}
