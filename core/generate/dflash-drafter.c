/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * DFlash drafts as drafters: walks the candidates of a block's slots from left
 * to right, each scored behind the one chosen before it.
 */
#include "dflash-drafter.h"

#include "../error.h"
#include "../model/dflash.h"
#include "../model/model-private.h"
#include "../text/tokenizer-private.h"
#include "elementary.h"
#include "noise.h"

#define MAX_CANDIDATES 64

/**
 * RunnelDflashDrafter:
 *
 * Proposes what a DFlash draft, of version 1 or 2, guesses from hidden rows of
 * the model it was made for. Above temperature 0 it draws its guesses with the
 * noise the reply is drawn with.
 *
 * Since: 0.1
 */
struct _RunnelDflashDrafter {
  RunnelDrafter parent;
  RunnelModel *model;
  GMutex mutex;              /* guards what is below */
  RunnelDflash *dflash;      /* for the target that was asked for last */
};

G_DEFINE_FINAL_TYPE (RunnelDflashDrafter, runnel_dflash_drafter,
                     RUNNEL_TYPE_DRAFTER)

/* Bindings can make an object without its constructor: nothing is in it. */
#define IS_MADE(self) (RUNNEL_IS_DFLASH_DRAFTER (self) && (self)->model != NULL)

#define TYPE_DFLASH_STATE (dflash_state_get_type ())
G_DECLARE_FINAL_TYPE (DflashState, dflash_state, DFLASH, STATE,
                      RunnelDraftState)

struct _DflashState {
  RunnelDraftState parent;
  RunnelDflash *dflash;
  guint max_draft;
  RunnelHistory context;
  RunnelDflashBlock block;
  float *probabilities;      /* [max_draft][n_candidates] */
};

G_DEFINE_FINAL_TYPE (DflashState, dflash_state, RUNNEL_TYPE_DRAFT_STATE)

static DflashState *
dflash_state_new (RunnelDflash *dflash, guint max_draft)
{
  DflashState *self = g_object_new (TYPE_DFLASH_STATE, NULL);

  self->dflash = runnel_dflash_ref (dflash);
  self->max_draft = max_draft;
  runnel_dflash_init_context (dflash, &self->context);
  runnel_dflash_block_init (&self->block, dflash);
  self->probabilities = g_new (float, max_draft * self->block.n_candidates);
  return self;
}

static gboolean
dflash_state_feed (RunnelDraftState *state, const gint32 *tokens, guint n,
                   const float *taps, GError **error)
{
  DflashState *self = DFLASH_STATE (state);

  return runnel_dflash_commit (self->dflash, &self->context, tokens, n, taps,
                               error);
}

static void
dflash_state_truncate (RunnelDraftState *state, guint n_rows)
{
  runnel_history_truncate (&DFLASH_STATE (state)->context, n_rows);
}

static RunnelDraftState *
dflash_state_fork (RunnelDraftState *state)
{
  DflashState *self = DFLASH_STATE (state);
  DflashState *fork = dflash_state_new (self->dflash, self->max_draft);

  runnel_history_copy (&fork->context, &self->context);
  return RUNNEL_DRAFT_STATE (fork);
}

/* softmax (scores / temperature); gives the largest. */
static double
make_probabilities (const float *scores, guint n, double temperature,
                    float *probabilities)
{
  float max = scores[0];
  double weights[MAX_CANDIDATES], sum = 0;
  double largest = 0;

  for (guint i = 1; i < n; i++)
    max = MAX (max, scores[i]);
  for (guint i = 0; i < n; i++) {
    weights[i] = elementary_exp ((scores[i] - max) / temperature);
    sum += weights[i];
  }
  for (guint i = 0; i < n; i++) {
    probabilities[i] = weights[i] / sum;
    largest = MAX (largest, weights[i] / sum);
  }
  return largest;
}

/* The best candidate; of equal ones the first, which has the largest logit. */
static guint
choose (const float *scores, const gint32 *candidates, guint n,
        guint64 position, const RunnelDraftRequest *request)
{
  double best_score = 0;
  guint best = 0;

  for (guint i = 0; i < n; i++) {
    double score = scores[i];

    if (request->temperature > 0)
      score = score / request->temperature +
              runnel_noise_gumbel (
                runnel_noise_word (request->seed, position, candidates[i]));
    if (i == 0 || score > best_score) {
      best = i;
      best_score = score;
    }
  }
  return best;
}

/* By how sure the first guess is, which stands behind a token that is known:
 * the only slot whose scores do not depend on noise. */
static guint
get_grade (double probability)
{
  return probability < 0.4 ? 0 : probability < 0.7 ? 1 : probability < 0.9 ? 2
                                                                         : 3;
}

static void
walk (DflashState *self, const RunnelDraftRequest *request, guint n,
      RunnelProposal *proposal)
{
  const guint k = self->block.n_candidates;
  gint32 predecessor = request->anchor;
  float scores[MAX_CANDIDATES], first[MAX_CANDIDATES];

  for (guint i = 0; i < n; i++) {
    const gint32 *candidates = self->block.candidates + i * k;

    runnel_dflash_score (self->dflash, &self->block, i, predecessor, scores);
    if (i == 0)
      proposal->grade = get_grade (make_probabilities (scores, k, 1, first));
    if (request->temperature > 0)
      make_probabilities (scores, k, request->temperature,
                          self->probabilities + i * k);
    predecessor = candidates[choose (scores, candidates, k,
                                     request->position + i, request)];
    proposal->tokens[i] = predecessor;
  }
  proposal->n_tokens = n;
  if (request->temperature <= 0)
    return;
  proposal->n_candidates = k;
  proposal->candidates = self->block.candidates;
  proposal->probabilities = self->probabilities;
}

static gboolean
dflash_state_propose (RunnelDraftState *state,
                      const RunnelDraftRequest *request,
                      RunnelProposal *proposal, GError **error)
{
  DflashState *self = DFLASH_STATE (state);
  const guint n = MIN (request->max_tokens, self->max_draft);

  if (!runnel_dflash_guess (self->dflash, &self->context, request->anchor, n,
                            &self->block, NULL, 0, NULL, error))
    return FALSE;
  walk (self, request, n, proposal);
  return TRUE;
}

static gsize
dflash_state_get_bytes (RunnelDraftState *state)
{
  return runnel_history_bytes (&DFLASH_STATE (state)->context);
}

static GBytes *
dflash_state_save (RunnelDraftState *state)
{
  DflashState *self = DFLASH_STATE (state);
  const gsize bytes = runnel_history_length (&self->context) *
                      runnel_dflash_row_bytes (self->dflash);
  guint8 *bits = g_malloc (MAX (bytes, 1));

  runnel_dflash_save_rows (self->dflash, &self->context, bits);
  return g_bytes_new_take (bits, bytes);
}

static void
dflash_state_finalize (GObject *object)
{
  DflashState *self = DFLASH_STATE (object);

  runnel_history_clear (&self->context);
  runnel_dflash_block_clear (&self->block);
  g_free (self->probabilities);
  g_clear_pointer (&self->dflash, runnel_dflash_unref);
  G_OBJECT_CLASS (dflash_state_parent_class)->finalize (object);
}

static void
dflash_state_class_init (DflashStateClass *klass)
{
  RunnelDraftStateClass *state_class = RUNNEL_DRAFT_STATE_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = dflash_state_finalize;
  state_class->feed = dflash_state_feed;
  state_class->truncate = dflash_state_truncate;
  state_class->fork = dflash_state_fork;
  state_class->propose = dflash_state_propose;
  state_class->get_bytes = dflash_state_get_bytes;
  state_class->save = dflash_state_save;
}

static void
dflash_state_init (DflashState *self)
{
}

/* ---- The drafter --------------------------------------------------------- */

static const RunnelDraftHyperparameters *
get_hyperparameters (RunnelModel *model)
{
  return &runnel_checkpoint_hyperparameters (
    runnel_model_get_checkpoint (model))->draft;
}

/**
 * runnel_dflash_drafter_new:
 * @draft: a model that is a DFlash draft: a GGUF file, a Hugging Face folder,
 *   or a package of either
 * @error: return location
 *
 * A drafter that runs a draft model. Its weights are loaded when it is first
 * attached to a sequence, on the device of that one, if
 * runnel_dflash_drafter_load() has not done so before; embedding and output
 * matrix are those of the sequence's model.
 *
 * Returns: (transfer full): the drafter, or %NULL with
 *   %RUNNEL_ERROR_INVALID_ARGUMENT for a model that is no draft
 *
 * Since: 0.1
 */
RunnelDrafter *
runnel_dflash_drafter_new (RunnelModel *draft, GError **error)
{
  const RunnelDraftHyperparameters *hp;
  RunnelDflashDrafter *self;
  g_autofree char *id = NULL;

  g_return_val_if_fail (runnel_model_is_made (draft), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  hp = get_hyperparameters (draft);
  if (hp->block_size == 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "%s: is a model of architecture '%s', not a DFlash draft",
                 runnel_model_get_path (draft),
                 runnel_model_get_architecture (draft));
    return NULL;
  }
  self = g_object_new (RUNNEL_TYPE_DFLASH_DRAFTER, NULL);
  self->model = g_object_ref (draft);
  id = g_strconcat ("dflash:", runnel_model_get_content_id (draft), NULL);
  runnel_drafter_set_identity (RUNNEL_DRAFTER (self), id, hp->taps,
                               hp->n_taps);
  return RUNNEL_DRAFTER (self);
}

/**
 * runnel_dflash_drafter_load:
 * @self: a drafter
 * @backend: who will compute
 * @max_memory: bytes that the draft's weights may take; 0 is no limit
 * @progress: (nullable) (scope call) (closure user_data): told how far
 *   loading has come
 * @user_data: for @progress
 * @cancellable: (nullable): stops it
 * @error: return location
 *
 * Does the slow part of attaching it before anybody waits for that: reads the
 * draft's tokenizer, if it has one, and loads the weights for the kind of
 * device that @backend is. Without it, that is done when it is first attached.
 *
 * Returns: %TRUE; %FALSE with %RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
 *   %RUNNEL_ERROR_CANCELLED or an error that says what is wrong with the file
 *
 * Since: 0.1
 */
gboolean
runnel_dflash_drafter_load (RunnelDflashDrafter *self, RunnelBackend *backend,
                            guint64 max_memory, RunnelProgressFunc progress,
                            gpointer user_data, GCancellable *cancellable,
                            GError **error)
{
  g_autoptr (RunnelWeights) weights = NULL;

  g_return_val_if_fail (IS_MADE (self), FALSE);
  g_return_val_if_fail (RUNNEL_IS_BACKEND (backend), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (runnel_tokenizer_is_in_checkpoint (
        runnel_model_get_checkpoint (self->model)) &&
      runnel_model_get_tokenizer (self->model, error) == NULL)
    return FALSE;
  weights = runnel_model_ref_weights (self->model, backend, max_memory,
                                      progress, user_data, cancellable, error);
  return weights != NULL;
}

static RunnelDflash *
ref_dflash (RunnelDflashDrafter *self, RunnelEngine *engine, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->mutex);
  RunnelDflash *dflash;

  if (self->dflash == NULL || !runnel_dflash_is_for (self->dflash, engine)) {
    dflash = runnel_dflash_new (self->model, engine, error);
    if (dflash == NULL)
      return NULL;
    g_clear_pointer (&self->dflash, runnel_dflash_unref);
    self->dflash = dflash;
  }
  return runnel_dflash_ref (self->dflash);
}

static DflashState *
make_state (RunnelDrafter *drafter, RunnelEngine *engine, GError **error)
{
  RunnelDflashDrafter *self = RUNNEL_DFLASH_DRAFTER (drafter);
  g_autoptr (RunnelDflash) dflash = ref_dflash (self, engine, error);

  return dflash == NULL
           ? NULL
           : dflash_state_new (
               dflash, get_hyperparameters (self->model)->block_size - 1);
}

static RunnelDraftState *
dflash_drafter_new_state (RunnelDrafter *drafter, RunnelEngine *engine,
                          GError **error)
{
  return (RunnelDraftState *) make_state (drafter, engine, error);
}

static RunnelDraftState *
dflash_drafter_load_state (RunnelDrafter *drafter, RunnelEngine *engine,
                           GBytes *image, guint n_rows, GError **error)
{
  g_autoptr (DflashState) state = make_state (drafter, engine, error);
  gsize size, expected;
  const guint8 *bits = g_bytes_get_data (image, &size);

  if (state == NULL)
    return NULL;
  if (!g_size_checked_mul (&expected, n_rows,
                           runnel_dflash_row_bytes (state->dflash)) ||
      size != expected) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                 "the saved state of drafter %s has %" G_GSIZE_FORMAT
                 " bytes, which are not those of %u rows",
                 runnel_drafter_get_id (drafter), size, n_rows);
    return NULL;
  }
  if (!runnel_dflash_load_rows (state->dflash, &state->context, bits, n_rows,
                                error))
    return NULL;
  return RUNNEL_DRAFT_STATE (g_steal_pointer (&state));
}

static void
runnel_dflash_drafter_finalize (GObject *object)
{
  RunnelDflashDrafter *self = RUNNEL_DFLASH_DRAFTER (object);

  g_clear_pointer (&self->dflash, runnel_dflash_unref);
  g_clear_object (&self->model);
  g_mutex_clear (&self->mutex);
  G_OBJECT_CLASS (runnel_dflash_drafter_parent_class)->finalize (object);
}

static void
runnel_dflash_drafter_class_init (RunnelDflashDrafterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_dflash_drafter_finalize;
  RUNNEL_DRAFTER_CLASS (klass)->new_state = dflash_drafter_new_state;
  RUNNEL_DRAFTER_CLASS (klass)->load_state = dflash_drafter_load_state;
}

static void
runnel_dflash_drafter_init (RunnelDflashDrafter *self)
{
  g_mutex_init (&self->mutex);
}
