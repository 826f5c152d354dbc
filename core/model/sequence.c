/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "sequence.h"

#include <string.h>

#include "../error.h"
#include "engine-private.h"

#define DEFAULT_CHUNK 128
#define MAX_CHUNK 2048

struct _RunnelSequence {
  GObject parent_instance;
  RunnelEngine *engine;
  guint context_length;
  RunnelHistory history;
  RunnelDrafts drafts;
};

G_DEFINE_FINAL_TYPE (RunnelSequence, runnel_sequence, G_TYPE_OBJECT)

gboolean
runnel_sequence_is_made (RunnelSequence *self)
{
  return RUNNEL_IS_SEQUENCE (self) && self->engine != NULL;
}

static void
runnel_sequence_finalize (GObject *object)
{
  RunnelSequence *self = RUNNEL_SEQUENCE (object);

  runnel_history_clear (&self->history);
  runnel_drafts_clear (&self->drafts);
  g_clear_object (&self->engine);
  G_OBJECT_CLASS (runnel_sequence_parent_class)->finalize (object);
}

static void
runnel_sequence_class_init (RunnelSequenceClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_sequence_finalize;
}

static void
runnel_sequence_init (RunnelSequence *self)
{
}

RunnelHistory *
runnel_sequence_get_history (RunnelSequence *self)
{
  return &self->history;
}

RunnelDrafts *
runnel_sequence_get_drafts (RunnelSequence *self)
{
  return &self->drafts;
}

RunnelSequence *
runnel_sequence_new_empty (RunnelEngine *engine, guint context_length)
{
  RunnelSequence *self = g_object_new (RUNNEL_TYPE_SEQUENCE, NULL);

  self->engine = g_object_ref (engine);
  self->context_length = context_length;
  runnel_history_init (&self->history, runnel_engine_get_pool (engine),
      runnel_engine_get_shape (engine)->n_embd);
  return self;
}

/**
 * runnel_sequence_new:
 * @engine: who forwards it
 * @context_length: tokens it may hold; 0 is the model's trained length
 * @error: return location for a #GError
 *
 * An empty sequence. It takes no memory for keys and values before it has
 * tokens.
 *
 * Returns: (transfer full): the sequence, or %NULL with
 *   %RUNNEL_ERROR_INVALID_ARGUMENT when the context is over the model's
 *
 * Since: 0.1
 */
RunnelSequence *
runnel_sequence_new (RunnelEngine *engine, guint context_length,
                     GError **error)
{
  RunnelModel *model;
  guint trained;

  g_return_val_if_fail (runnel_engine_is_made (engine), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  model = runnel_engine_get_model (engine);
  trained = runnel_model_get_context_length (model);
  if (context_length > trained) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "context-length: %u is more than the %u that %s was trained for",
        context_length, trained, runnel_model_get_path (model));
    return NULL;
  }
  return runnel_sequence_new_empty (engine,
      context_length > 0 ? context_length : trained);
}

/**
 * runnel_sequence_get_engine:
 * @self: a sequence
 *
 * Who forwards it.
 *
 * Returns: (transfer none): the engine
 *
 * Since: 0.1
 */
RunnelEngine *
runnel_sequence_get_engine (RunnelSequence *self)
{
  g_return_val_if_fail (runnel_sequence_is_made (self), NULL);
  return self->engine;
}

/**
 * runnel_sequence_get_length:
 * @self: a sequence
 *
 * How much it holds.
 *
 * Returns: tokens
 *
 * Since: 0.1
 */
guint
runnel_sequence_get_length (RunnelSequence *self)
{
  g_return_val_if_fail (runnel_sequence_is_made (self), 0);
  return runnel_history_length (&self->history);
}

/**
 * runnel_sequence_get_context_length:
 * @self: a sequence
 *
 * How much it may hold.
 *
 * Returns: tokens
 *
 * Since: 0.1
 */
guint
runnel_sequence_get_context_length (RunnelSequence *self)
{
  g_return_val_if_fail (runnel_sequence_is_made (self), 0);
  return self->context_length;
}

/**
 * runnel_sequence_get_tokens:
 * @self: a sequence
 * @n_tokens: (out): their number
 *
 * Its history.
 *
 * Returns: (transfer none) (array length=n_tokens): token ids, valid until the
 *   sequence changes
 *
 * Since: 0.1
 */
const gint32 *
runnel_sequence_get_tokens (RunnelSequence *self, gsize *n_tokens)
{
  g_return_val_if_fail (runnel_sequence_is_made (self), NULL);
  *n_tokens = runnel_history_length (&self->history);
  return runnel_history_tokens (&self->history);
}

/**
 * runnel_sequence_get_kv_bytes:
 * @self: a sequence
 *
 * The size of the pages it refers to, those of its drafters among them; forks
 * share pages.
 *
 * Returns: bytes
 *
 * Since: 0.1
 */
guint64
runnel_sequence_get_kv_bytes (RunnelSequence *self)
{
  g_return_val_if_fail (runnel_sequence_is_made (self), 0);
  return runnel_history_bytes (&self->history)
      + runnel_drafts_get_bytes (&self->drafts);
}

/**
 * runnel_sequence_get_shifted:
 * @self: a sequence
 *
 * Whether rows were dropped and keys rotated again, which takes it out of the
 * exactness contract and of the prefix cache.
 *
 * Returns: %TRUE after runnel_sequence_shift()
 *
 * Since: 0.1
 */
gboolean
runnel_sequence_get_shifted (RunnelSequence *self)
{
  g_return_val_if_fail (runnel_sequence_is_made (self), FALSE);
  return self->history.shifted;
}

/**
 * runnel_sequence_fork:
 * @self: a sequence
 *
 * A second sequence with the same history and the same drafters. Pages are
 * shared; nothing but draft states is copied, and neither sees what the other
 * appends.
 *
 * Returns: (transfer full): the fork
 *
 * Since: 0.1
 */
RunnelSequence *
runnel_sequence_fork (RunnelSequence *self)
{
  RunnelSequence *fork;

  g_return_val_if_fail (runnel_sequence_is_made (self), NULL);
  fork = runnel_sequence_new_empty (self->engine, self->context_length);
  runnel_history_copy (&fork->history, &self->history);
  runnel_drafts_copy (&fork->drafts, &self->drafts, FALSE);
  return fork;
}

static RunnelDraftState *
make_draft_state (RunnelSequence *self, RunnelDrafter *drafter, GError **error)
{
  const char *id = runnel_drafter_get_id (drafter);
  const guint length = runnel_history_length (&self->history);
  GBytes *saved = NULL;
  guint n_taps;

  if (self->drafts.saved != NULL && self->drafts.saved_length == length)
    saved = g_hash_table_lookup (self->drafts.saved, id);
  if (saved != NULL)
    return runnel_drafter_load_state (drafter, self->engine, saved, length,
        error);
  runnel_drafter_get_taps (drafter, &n_taps);
  if (n_taps == 0 || length == 0)
    return runnel_drafter_new_state (drafter, self->engine, error);
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
      "drafter %s reads hidden rows, which are gone for the %u tokens of the "
      "sequence; attach it before prefill", id, length);
  return NULL;
}

/**
 * runnel_sequence_attach:
 * @self: a sequence
 * @drafter: who is to guess how it goes on
 * @error: return location for a #GError
 *
 * Attaches a drafter, which follows the sequence from then on: its state is
 * forked, truncated and saved with it. A sequence may have several; those
 * attached first are asked first. Attaching one with the id of one that is
 * there changes nothing. A drafter that reads hidden rows must be attached
 * while the sequence is empty, or right after it was loaded from an image that
 * holds the drafter's state.
 *
 * Returns: %TRUE; %FALSE with %RUNNEL_ERROR_INVALID_ARGUMENT when it is too
 *   late, %RUNNEL_ERROR_MISMATCH when the drafter is for another model, or
 *   %RUNNEL_ERROR_MALFORMED when the saved state does not fit it
 *
 * Since: 0.1
 */
gboolean
runnel_sequence_attach (RunnelSequence *self, RunnelDrafter *drafter,
                        GError **error)
{
  RunnelDraftState *state;

  g_return_val_if_fail (runnel_sequence_is_made (self), FALSE);
  g_return_val_if_fail (RUNNEL_IS_DRAFTER (drafter), FALSE);
  /* One that was made without its constructor has none. */
  g_return_val_if_fail (runnel_drafter_get_id (drafter) != NULL, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (runnel_drafts_find (&self->drafts, runnel_drafter_get_id (drafter)))
    return TRUE;
  state = make_draft_state (self, drafter, error);
  if (state == NULL)
    return FALSE;
  runnel_drafts_add (&self->drafts, state);
  return TRUE;
}

/**
 * runnel_sequence_truncate:
 * @self: a sequence
 * @n_tokens: tokens to keep
 * @error: return location for a #GError
 *
 * Rolls back to the first @n_tokens tokens.
 *
 * Returns: %TRUE; %FALSE with %RUNNEL_ERROR_INVALID_ARGUMENT when it is not
 *   that long, or when that would cut into joined forks
 *
 * Since: 0.1
 */
gboolean
runnel_sequence_truncate (RunnelSequence *self, guint n_tokens,
                          GError **error)
{
  guint length;

  g_return_val_if_fail (runnel_sequence_is_made (self), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  length = runnel_history_length (&self->history);
  if (n_tokens > length || n_tokens < self->history.joined_length) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "cannot truncate a sequence of %u tokens (%u of them joined) to %u",
        length, self->history.joined_length, n_tokens);
    return FALSE;
  }
  runnel_history_truncate (&self->history, n_tokens);
  runnel_drafts_settle (&self->drafts, n_tokens);
  return TRUE;
}

static gboolean
check_fork (RunnelSequence *first, RunnelSequence *fork, guint n_common,
            GError **error)
{
  const RunnelHistory *a = &first->history, *b = &fork->history;
  gsize bytes = n_common * sizeof (gint32);

  if (fork->engine == first->engine && a->joined_length == 0
      && b->joined_length == 0 && n_common <= runnel_history_length (a)
      && n_common <= runnel_history_length (b)
      && memcmp (runnel_history_tokens (a), runnel_history_tokens (b), bytes)
          == 0)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
      "sequences to join must be unjoined, of one engine, and begin with the "
      "same %u tokens", n_common);
  return FALSE;
}

/**
 * runnel_sequence_join:
 * @forks: (array length=n_forks): sequences with a common beginning
 * @n_forks: their number, at least 1
 * @n_common: tokens they have in common
 * @error: return location for a #GError
 *
 * Puts forks side by side: a sequence of the common tokens and then the rest
 * of each fork, none of which has seen another. The next token sees all of
 * them; its position follows the longest fork. Pages are shared; drafters do
 * not come along.
 *
 * Returns: (transfer full): the joined sequence, or %NULL with
 *   %RUNNEL_ERROR_INVALID_ARGUMENT or %RUNNEL_ERROR_CONTEXT_OVERFLOW
 *
 * Since: 0.1
 */
RunnelSequence *
runnel_sequence_join (RunnelSequence **forks, gsize n_forks, guint n_common,
                      GError **error)
{
  g_autoptr (RunnelSequence) self = NULL;
  RunnelHistory *history;
  guint longest = n_common;

  g_return_val_if_fail (forks != NULL || n_forks == 0, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (n_forks == 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "n_forks is 0, it must be at least 1");
    return NULL;
  }
  self = runnel_sequence_new_empty (forks[0]->engine,
      forks[0]->context_length);
  history = &self->history;
  for (gsize i = 0; i < n_forks; i++) {
    const RunnelHistory *fork = &forks[i]->history;

    if (!check_fork (forks[0], forks[i], n_common, error))
      return NULL;
    runnel_history_append (history, fork, i == 0 ? 0 : n_common,
        runnel_history_length (fork));
    longest = MAX (longest, runnel_history_length (fork));
    history->shifted |= fork->shifted;
  }
  history->joined_length = runnel_history_length (history);
  history->joined_position = longest;
  if (history->joined_length > self->context_length) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CONTEXT_OVERFLOW,
        "joined forks of %u tokens are over the context length of %u",
        history->joined_length, self->context_length);
    return NULL;
  }
  return g_steal_pointer (&self);
}

/* ---- Shift --------------------------------------------------------------- */

typedef struct {
  const RunnelOps *ops;
  RunnelBackend *backend;
  const RunnelShape *shape;
  float *k, *v;              /* [n_layers][n_kv_heads · head_dim] */
  float *cos, *sin;          /* of the turn */
} Shift;

static void
move_row (Shift *shift, const RunnelHistory *from, guint from_row,
          const RunnelHistory *to, guint to_row)
{
  const RunnelShape *shape = shift->shape;
  guint32 from_page_row, to_page_row;
  RunnelPage *source = runnel_history_find (from, from_row, &from_page_row);
  RunnelPage *target = runnel_history_find (to, to_row, &to_page_row);

  shift->ops->kv_read (shift->backend, shape, runnel_page_data (source),
      from_page_row, shift->k, shift->v);
  for (guint i = 0; i < shape->n_layers * shape->n_kv_heads; i++)
    shift->ops->rotate (shift->backend, shape,
        shift->k + (gsize) i * shape->head_dim, shift->cos, shift->sin);
  shift->ops->kv_write (shift->backend, shape, runnel_page_data (target),
      to_page_row, shift->k, shift->v);
}

static void
move_rows (RunnelSequence *self, const RunnelHistory *from, guint first,
           guint n_drop, const RunnelHistory *to)
{
  const RunnelWeights *weights = runnel_engine_get_weights (self->engine);
  const RunnelShape *shape = runnel_engine_get_shape (self->engine);
  gsize n = (gsize) shape->n_layers * shape->n_kv_heads * shape->head_dim;
  g_autofree float *rows = g_new (float, 2 * n);
  g_autofree float *turn = g_new (float, 2 * weights->rope.half);
  Shift shift = {
    weights->ops, runnel_engine_get_backend (self->engine), shape,
    rows, rows + n, turn, turn + weights->rope.half,
  };

  runnel_rope_turn (&weights->rope, -(gint64) n_drop, shift.cos, shift.sin);
  for (guint row = first; row < runnel_history_length (from); row++)
    move_row (&shift, from, row, to, row - n_drop);
}

/**
 * runnel_sequence_shift:
 * @self: a sequence
 * @n_keep: tokens at the beginning to keep
 * @n_drop: tokens after them to drop
 * @error: return location for a #GError
 *
 * Drops tokens from the middle and moves the rest down: their keys are rotated
 * to their new positions, in pages of their own (shared pages are not
 * touched). What the kept rows have seen of the dropped ones stays in them.
 * The sequence leaves the prefix cache and the exactness contract, loses the
 * drafters that read hidden rows, and its
 * last hidden row is gone.
 *
 * Returns: %TRUE; %FALSE with %RUNNEL_ERROR_INVALID_ARGUMENT or
 *   %RUNNEL_ERROR_NOT_ENOUGH_MEMORY, the sequence as before
 *
 * Since: 0.1
 */
gboolean
runnel_sequence_shift (RunnelSequence *self, guint n_keep, guint n_drop,
                       GError **error)
{
  RunnelHistory moved;
  guint length, rest;

  g_return_val_if_fail (runnel_sequence_is_made (self), FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  length = runnel_history_length (&self->history);
  if (n_keep > length || n_drop > length - n_keep || n_drop == 0
      || self->history.joined_length > 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "cannot drop %u tokens after %u of a sequence of %u", n_drop, n_keep,
        length);
    return FALSE;
  }
  rest = length - n_keep - n_drop;
  runnel_history_init (&moved, self->history.pool, self->history.n_embd);
  runnel_history_append (&moved, &self->history, 0, n_keep);
  if (!runnel_engine_reserve (self->engine, &moved, rest, error)) {
    runnel_history_clear (&moved);
    return FALSE;
  }
  move_rows (self, &self->history, n_keep + n_drop, n_drop, &moved);
  runnel_history_commit (&moved,
      runnel_history_tokens (&self->history) + n_keep + n_drop);
  moved.shifted = TRUE;
  runnel_history_clear (&self->history);
  self->history = moved;
  runnel_drafts_shift (&self->drafts, n_keep);
  return TRUE;
}

/* ---- Forward ------------------------------------------------------------- */

static gboolean
forward_chunks (RunnelSequence *self, const gint32 *tokens, gsize n_tokens,
                gsize done, guint chunk, RunnelProgressFunc progress,
                gpointer user_data, GCancellable *cancellable, GError **error)
{
  while (done < n_tokens) {
    RunnelBatchItem item = {
      .sequence = self,
      .tokens = tokens + done,
      .n_tokens = MIN (chunk, n_tokens - done),
    };

    if (g_cancellable_is_cancelled (cancellable)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED,
          "prefill was cancelled after %" G_GSIZE_FORMAT " of %"
          G_GSIZE_FORMAT " tokens", done, n_tokens);
      return FALSE;
    }
    if (!runnel_engine_forward_cancellable (self->engine, &item, 1,
            cancellable, error)
        || !runnel_drafts_catch_up (&self->drafts,
            runnel_history_tokens (&self->history),
            runnel_history_length (&self->history), error))
      return FALSE;
    done += item.n_tokens;
    if (progress != NULL)
      progress ((double) done / n_tokens, user_data);
  }
  return TRUE;
}

/**
 * runnel_sequence_prefill:
 * @self: a sequence
 * @tokens: (array length=n_tokens): what to append
 * @n_tokens: its length
 * @chunk: rows in a forward pass, up to 2048; 0 is 128
 * @use_cache: look into the prefix cache (empty sequences only) and keep the
 *   result there
 * @progress: (nullable) (scope call) (closure user_data): told how far it is,
 *   after each chunk
 * @user_data: for @progress
 * @cancellable: (nullable): looked at before each chunk
 * @ret_cached: (out) (optional): tokens that came from the cache
 * @error: return location for a #GError
 *
 * Appends tokens in chunks; between chunks other callers get their turn. The
 * result does not depend on @chunk, on the cache or on who else computes.
 *
 * Returns: %TRUE; %FALSE with %RUNNEL_ERROR_CONTEXT_OVERFLOW (nothing is
 *   forwarded), %RUNNEL_ERROR_NOT_ENOUGH_MEMORY, %RUNNEL_ERROR_CANCELLED or
 *   %RUNNEL_ERROR_INVALID_ARGUMENT; finished chunks stay
 *
 * Since: 0.1
 */
gboolean
runnel_sequence_prefill (RunnelSequence *self, const gint32 *tokens,
                         gsize n_tokens, guint chunk, gboolean use_cache,
                         RunnelProgressFunc progress, gpointer user_data,
                         GCancellable *cancellable, gsize *ret_cached,
                         GError **error)
{
  gsize cached = 0;
  guint length;

  g_return_val_if_fail (runnel_sequence_is_made (self), FALSE);
  g_return_val_if_fail (tokens != NULL || n_tokens == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  length = runnel_history_length (&self->history);
  if (n_tokens > self->context_length - length) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CONTEXT_OVERFLOW,
        "n_prompt %" G_GSIZE_FORMAT " is over n_ctx %u (%u in use); shorten "
        "the prompt, raise context-length or choose another overflow-policy",
        n_tokens, self->context_length, length);
    return FALSE;
  }
  if (use_cache && length == 0 && n_tokens > 0) {
    cached = runnel_prefix_cache_lookup (
        runnel_engine_get_cache (self->engine), tokens, n_tokens,
        &self->history, &self->drafts);
    runnel_engine_count_cached_rows (self->engine, cached);
  }
  if (!forward_chunks (self, tokens, n_tokens, cached,
          chunk > 0 ? MIN (chunk, MAX_CHUNK) : DEFAULT_CHUNK, progress,
          user_data, cancellable, error))
    return FALSE;
  if (use_cache)
    runnel_engine_cache_sequence (self->engine, self);
  if (ret_cached != NULL)
    *ret_cached = cached;
  return TRUE;
}

static gboolean
check_room (RunnelSequence *self, gsize n_rows, gsize n_logits,
            GError **error)
{
  gsize n_vocab = runnel_engine_get_shape (self->engine)->n_vocab;

  if (n_logits == n_rows * n_vocab)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
      "room for %" G_GSIZE_FORMAT " logits is given, but %" G_GSIZE_FORMAT
      " rows of %" G_GSIZE_FORMAT " come", n_logits, n_rows, n_vocab);
  return FALSE;
}

/* Forwards the last token once more for its hidden row. A fork does it, so
 * that the sequence is as before when it fails and its pages, which others may
 * read, are not written. Drafters know the row already. */
static gboolean
forward_last_again (RunnelSequence *self, float *logits, GError **error)
{
  guint last_row = runnel_history_length (&self->history) - 1;
  gint32 last = runnel_history_tokens (&self->history)[last_row];
  g_autoptr (RunnelSequence) fork
      = runnel_sequence_new_empty (self->engine, self->context_length);
  RunnelBatchItem item = {
    .sequence = fork,
    .tokens = &last,
    .n_tokens = 1,
    .logits = logits,
    .n_logits = 1,
  };

  runnel_history_copy (&fork->history, &self->history);
  runnel_history_truncate (&fork->history, last_row);
  if (!runnel_engine_forward (self->engine, &item, 1, NULL, error))
    return FALSE;
  memcpy (self->history.hidden, fork->history.hidden,
      self->history.n_embd * sizeof (float));
  self->history.has_hidden = TRUE;
  return TRUE;
}

/**
 * runnel_sequence_compute_logits:
 * @self: a sequence, not empty
 * @logits: (array length=n_logits): room for the logits
 * @n_logits: the size of the vocabulary
 * @error: return location for a #GError
 *
 * The logits of the token that follows. Where the last hidden row is there
 * only the output matrix is computed, else the last token is forwarded
 * again.
 *
 * Returns: %TRUE; %FALSE with %RUNNEL_ERROR_INVALID_ARGUMENT for an empty
 *   sequence or wrong room, %RUNNEL_ERROR_NOT_ENOUGH_MEMORY or
 *   %RUNNEL_ERROR_BAD_LOGITS, the sequence as before
 *
 * Since: 0.1
 */
gboolean
runnel_sequence_compute_logits (RunnelSequence *self, float *logits,
                                gsize n_logits, GError **error)
{
  RunnelBatchItem item = { .sequence = self, .logits = logits, .n_logits = 1 };
  guint length;

  g_return_val_if_fail (runnel_sequence_is_made (self), FALSE);
  g_return_val_if_fail (logits != NULL || n_logits == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  length = runnel_history_length (&self->history);
  if (!check_room (self, 1, n_logits, error))
    return FALSE;
  if (length == 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "an empty sequence has no next token; prefill it first");
    return FALSE;
  }
  if (self->history.has_hidden)
    return runnel_engine_forward (self->engine, &item, 1, NULL, error);
  if (length == self->history.joined_length) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "joined forks have no last token; append one first");
    return FALSE;
  }
  return forward_last_again (self, logits, error);
}

/**
 * runnel_sequence_compute_logits_bytes: (rename-to runnel_sequence_compute_logits)
 * @self: a sequence, not empty
 * @error: return location for a #GError
 *
 * What runnel_sequence_compute_logits() gives, for languages that cannot lend
 * room for it.
 *
 * Returns: (transfer full): n_vocab floats of 32 bits in the machine's byte
 *   order, or %NULL with an error as of runnel_sequence_compute_logits()
 *
 * Since: 0.1
 */
GBytes *
runnel_sequence_compute_logits_bytes (RunnelSequence *self, GError **error)
{
  g_autofree float *logits = NULL;
  gsize n_logits;

  g_return_val_if_fail (runnel_sequence_is_made (self), NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  n_logits = runnel_engine_get_shape (self->engine)->n_vocab;
  logits = g_new (float, n_logits);
  if (!runnel_sequence_compute_logits (self, logits, n_logits, error))
    return NULL;
  return g_bytes_new_take (g_steal_pointer (&logits),
      n_logits * sizeof (float));
}

/**
 * runnel_sequence_forward:
 * @self: a sequence
 * @tokens: (array length=n_tokens): what to append
 * @n_tokens: its length, at least 1
 * @logits: (array length=n_logits): room for n_tokens × n_vocab logits
 * @n_logits: their number
 * @error: return location for a #GError
 *
 * Appends tokens in one forward pass and gives the logits after each of them,
 * row by row.
 *
 * Returns: %TRUE; %FALSE with an error as of runnel_sequence_prefill() or
 *   %RUNNEL_ERROR_BAD_LOGITS, the sequence as before
 *
 * Since: 0.1
 */
gboolean
runnel_sequence_forward (RunnelSequence *self, const gint32 *tokens,
                         gsize n_tokens, float *logits, gsize n_logits,
                         GError **error)
{
  RunnelBatchItem item = {
    .sequence = self,
    .tokens = tokens,
    .n_tokens = n_tokens,
    .logits = logits,
    .n_logits = n_tokens,
  };

  g_return_val_if_fail (runnel_sequence_is_made (self), FALSE);
  g_return_val_if_fail (tokens != NULL || n_tokens == 0, FALSE);
  g_return_val_if_fail (logits != NULL || n_logits == 0, FALSE);
  g_return_val_if_fail (error == NULL || *error == NULL, FALSE);

  if (n_tokens == 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "n_tokens is 0, it must be at least 1");
    return FALSE;
  }
  return check_room (self, n_tokens, n_logits, error)
      && runnel_engine_forward (self->engine, &item, 1, NULL, error);
}
