/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "dflash.h"

#include <string.h>

#include "../error.h"
#include "../text/tokenizer-private.h"
#include "drafter.h"
#include "engine-private.h"
#include "model-private.h"

/* Rows whose taps are fused together. */
#define MAX_ROWS 64
/* Without a path selector: what a draw chooses from. */
#define DEFAULT_CANDIDATES 16

struct _RunnelDflash {
  gatomicrefcount references;
  RunnelWeights *draft, *target;
  RunnelBackend *backend;
  const RunnelOps *ops;
  RunnelShape shape;
  GWeakRef engine;           /* the target's */
  RunnelPagePool *pool;      /* within the engine's */
  guint64 charged;           /* bytes: weights and scratch */

  GMutex mutex;              /* guards what is below */
  RunnelPass *pass;
  RunnelPage *block_page;    /* keys and values of the block */
  GArray *keys;              /* RunnelKeys */
  float *cos, *sin;          /* [MAX_ROWS][half] */
  float *hidden;             /* [block_size][n_embd] */
  float *logits;             /* [block_size][n_vocab] */
};

/* ---- What belongs together ----------------------------------------------- */

static gboolean
check_sizes (RunnelModel *draft, RunnelModel *target, GError **error)
{
  const RunnelHyperparameters *own = runnel_checkpoint_hyperparameters (
      runnel_model_get_checkpoint (draft));
  const RunnelHyperparameters *hp = runnel_checkpoint_hyperparameters (
      runnel_model_get_checkpoint (target));
  const guint n_layers = own->draft.n_target_layers;
  g_autofree char *layers = NULL;

  if (own->n_embd == hp->n_embd && own->n_vocab == hp->n_vocab
      && (n_layers == 0 || n_layers == hp->n_layers))
    return TRUE;
  if (n_layers > 0)
    layers = g_strdup_printf (" and %u layers", n_layers);
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
      "%s: is a draft for a model of width %u, %u tokens%s; %s has width %u, "
      "%u tokens and %u layers: it is for another model",
      runnel_model_get_path (draft), own->n_embd, own->n_vocab,
      layers != NULL ? layers : "", runnel_model_get_path (target),
      hp->n_embd, hp->n_vocab, hp->n_layers);
  return FALSE;
}

/* Where both say what their tokens are, they must mean the same. */
static gboolean
check_vocabulary (RunnelModel *draft, RunnelModel *target, GError **error)
{
  RunnelTokenizer *own, *tokenizer;

  if (!runnel_tokenizer_is_in_checkpoint (runnel_model_get_checkpoint (draft))
      || !runnel_tokenizer_is_in_checkpoint (
          runnel_model_get_checkpoint (target)))
    return TRUE;
  own = runnel_model_get_tokenizer (draft, error);
  tokenizer = own != NULL ? runnel_model_get_tokenizer (target, error) : NULL;
  if (tokenizer == NULL)
    return FALSE;
  if (strcmp (runnel_tokenizer_get_digest (own),
          runnel_tokenizer_get_digest (tokenizer)) == 0)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
      "%s: is a draft with the vocabulary %s; that of %s is %s: it is for "
      "another model", runnel_model_get_path (draft),
      runnel_tokenizer_get_digest (own), runnel_model_get_path (target),
      runnel_tokenizer_get_digest (tokenizer));
  return FALSE;
}

/* ---- Memory -------------------------------------------------------------- */

static gboolean
set_out_of_memory (const RunnelDflash *self, GError **error)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
      "%s: no memory for the rows of the draft",
      runnel_checkpoint_path (self->draft->checkpoint));
  return FALSE;
}

/* Before they are loaded: what they take in the file is what they take. */
static gboolean
charge (RunnelDflash *self, RunnelModel *draft, RunnelEngine *target,
        guint64 bytes, const char *what, GError **error)
{
  if (!runnel_engine_charge (target, self->pool, bytes, what, error)) {
    g_prefix_error (error, "%s: ", runnel_model_get_path (draft));
    return FALSE;
  }
  self->charged += bytes;
  return TRUE;
}

static gboolean
load_weights (RunnelDflash *self, RunnelModel *draft, RunnelEngine *target,
              GError **error)
{
  RunnelCheckpoint *checkpoint = runnel_model_get_checkpoint (draft);
  guint64 bytes = 0;

  for (gsize i = 0; i < runnel_checkpoint_n_tensors (checkpoint); i++)
    bytes += runnel_checkpoint_nth_tensor (checkpoint, i)->bytes;
  if (!charge (self, draft, target, bytes, "the weights of the draft", error))
    return FALSE;
  self->draft = runnel_model_ref_weights (draft, self->backend, 0, NULL, NULL,
      NULL, error);
  return self->draft != NULL;
}

static gboolean
make_scratch (RunnelDflash *self, RunnelModel *draft, RunnelEngine *target,
              GError **error)
{
  const RunnelHyperparameters *hp = &self->draft->hp;
  const gsize block = hp->draft.block_size, half = self->draft->rope.half;
  const guint64 bytes = sizeof (float) * (2 * MAX_ROWS * half
      + block * hp->n_embd + block * hp->n_vocab);

  self->pass = self->ops->pass_new (self->backend, &self->shape);
  if (self->pass == NULL)
    return set_out_of_memory (self, error);
  if (!charge (self, draft, target,
          bytes + self->ops->scratch_bytes (self->pass, MAX_ROWS),
          "the rows of the draft", error))
    return FALSE;
  self->cos = g_new (float, MAX_ROWS * half);
  self->sin = g_new (float, MAX_ROWS * half);
  self->hidden = g_new (float, block * hp->n_embd);
  self->logits = g_try_new (float, block * hp->n_vocab);
  return self->logits != NULL || set_out_of_memory (self, error);
}

/* Keys and values of a block; those of the context come as it grows. */
static gboolean
make_block_page (RunnelDflash *self, GError **error)
{
  self->block_page = runnel_page_new (self->pool);
  return self->block_page != NULL || set_out_of_memory (self, error);
}

RunnelDflash *
runnel_dflash_new (RunnelModel *draft, RunnelEngine *target, GError **error)
{
  g_autoptr (RunnelDflash) self = NULL;
  const RunnelHyperparameters *hp = runnel_checkpoint_hyperparameters (
      runnel_model_get_checkpoint (draft));
  guint page_rows;

  if (!check_sizes (draft, runnel_engine_get_model (target), error)
      || !check_vocabulary (draft, runnel_engine_get_model (target), error))
    return NULL;
  self = g_new0 (RunnelDflash, 1);
  g_atomic_ref_count_init (&self->references);
  g_mutex_init (&self->mutex);
  g_weak_ref_init (&self->engine, target);
  self->target = runnel_weights_ref (
      (RunnelWeights *) runnel_engine_get_weights (target));
  self->backend = g_object_ref (runnel_engine_get_backend (target));
  self->ops = runnel_backend_ops (self->backend);
  self->shape = runnel_forward_shape (hp, runnel_engine_get_kv_type (target));
  self->keys = g_array_new (FALSE, FALSE, sizeof (RunnelKeys));
  page_rows = self->ops->page_rows (self->backend);
  g_assert (page_rows >= hp->draft.block_size);
  self->pool = runnel_page_pool_new_within (runnel_engine_get_pool (target),
      page_rows, self->ops->page_bytes (self->backend, &self->shape));
  return self->pool != NULL && load_weights (self, draft, target, error)
      && make_scratch (self, draft, target, error)
      && make_block_page (self, error) ? g_steal_pointer (&self) : NULL;
}

RunnelDflash *
runnel_dflash_ref (RunnelDflash *self)
{
  g_atomic_ref_count_inc (&self->references);
  return self;
}

void
runnel_dflash_unref (RunnelDflash *self)
{
  if (!g_atomic_ref_count_dec (&self->references))
    return;
  g_clear_pointer (&self->pass, self->ops->pass_free);
  g_clear_pointer (&self->block_page, runnel_page_unref);
  if (self->pool != NULL)
    runnel_page_pool_discharge (self->pool, self->charged);
  g_clear_pointer (&self->pool, runnel_page_pool_unref);
  g_array_unref (self->keys);
  g_free (self->cos);
  g_free (self->sin);
  g_free (self->hidden);
  g_free (self->logits);
  g_object_unref (self->backend);
  g_clear_pointer (&self->draft, runnel_weights_unref);
  runnel_weights_unref (self->target);
  g_weak_ref_clear (&self->engine);
  g_mutex_clear (&self->mutex);
  g_free (self);
}

gboolean
runnel_dflash_is_for (RunnelDflash *self, RunnelEngine *target)
{
  g_autoptr (RunnelEngine) engine = g_weak_ref_get (&self->engine);

  return engine == target;
}

/* ---- The context --------------------------------------------------------- */

void
runnel_dflash_init_context (RunnelDflash *self, RunnelHistory *context)
{
  runnel_history_init (context, self->pool, self->draft->hp.n_embd);
}

/* Rows are at the positions of their indices: only distances matter. */
static void
set_angles_unlocked (RunnelDflash *self, guint first, guint n)
{
  const RunnelRope *rope = &self->draft->rope;

  for (guint i = 0; i < n; i++)
    runnel_rope_angles (rope, first + i, self->cos + i * rope->half,
        self->sin + i * rope->half);
}

static void
list_keys_unlocked (RunnelDflash *self, const RunnelHistory *context)
{
  g_array_set_size (self->keys, 0);
  for (guint i = 0; i < context->segments->len; i++) {
    const RunnelSegment *s
        = &g_array_index (context->segments, RunnelSegment, i);
    RunnelKeys keys = { runnel_page_data (s->page), s->first, s->n };

    g_array_append_val (self->keys, keys);
  }
}

/* Begins a pass of rows behind the first @first keys of those listed. */
static gboolean
begin_unlocked (RunnelDflash *self, RunnelPassRows *rows,
                RunnelPassSequence *sequence, guint first, guint n)
{
  sequence->n_rows = n;
  sequence->first_key = first;
  sequence->keys = (const RunnelKeys *) self->keys->data;
  sequence->n_keys = self->keys->len;
  rows->n_rows = n;
  rows->cos = self->cos;
  rows->sin = self->sin;
  rows->sequences = sequence;
  rows->n_sequences = 1;
  set_angles_unlocked (self, first, n);
  return self->ops->begin (self->pass, rows);
}

/* Room for rows of the context, as for rows of the target. */
static gboolean
reserve (RunnelDflash *self, RunnelHistory *context, guint n, GError **error)
{
  g_autoptr (RunnelEngine) engine = g_weak_ref_get (&self->engine);

  if (engine == NULL)
    return runnel_history_reserve (context, n)
        || set_out_of_memory (self, error);
  if (runnel_engine_reserve (engine, context, n, error))
    return TRUE;
  g_prefix_error (error, "%s: ",
      runnel_checkpoint_path (self->draft->checkpoint));
  return FALSE;
}

static gboolean
commit_unlocked (RunnelDflash *self, RunnelHistory *context,
                 const gint32 *tokens, guint n, const float *taps,
                 GError **error)
{
  const RunnelWeights *draft = self->draft;
  RunnelPassRows rows = { 0 };
  RunnelPassSequence sequence = { 0 };

  if (!reserve (self, context, n, error))
    return FALSE;
  list_keys_unlocked (self, context);
  if (!begin_unlocked (self, &rows, &sequence,
          runnel_history_length (context), n)) {
    runnel_history_release (context);
    return set_out_of_memory (self, error);
  }
  self->ops->fuse (self->pass, draft->fusion, taps);
  for (guint i = 0; i < draft->hp.n_layers; i++)
    self->ops->append_context (self->pass, draft->context_norm,
        &draft->layers[i], i);
  self->ops->end (self->pass);
  runnel_history_commit (context, tokens);
  return TRUE;
}

gboolean
runnel_dflash_commit (RunnelDflash *self, RunnelHistory *context,
                      const gint32 *tokens, guint n, const float *taps,
                      GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->mutex);

  for (guint done = 0; done < n; done += MAX_ROWS)
    if (!commit_unlocked (self, context, tokens + done,
            MIN (n - done, MAX_ROWS),
            taps + (gsize) done * self->shape.n_fused, error))
      return FALSE;
  return TRUE;
}

gsize
runnel_dflash_row_bytes (const RunnelDflash *self)
{
  return runnel_page_pool_page_bytes (self->pool)
      / runnel_page_pool_rows (self->pool);
}

void
runnel_dflash_save_rows (RunnelDflash *self, const RunnelHistory *context,
                         guint8 *bits)
{
  for (guint i = 0; i < runnel_history_length (context); i++) {
    guint32 row;
    RunnelPage *page = runnel_history_find (context, i, &row);

    self->ops->kv_export (self->backend, &self->shape,
        runnel_page_data (page), row, bits
        + i * runnel_dflash_row_bytes (self));
  }
}

gboolean
runnel_dflash_load_rows (RunnelDflash *self, RunnelHistory *context,
                         const guint8 *bits, guint n, GError **error)
{
  g_autofree gint32 *tokens = g_new0 (gint32, MAX (n, 1));

  if (!reserve (self, context, n, error))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    guint32 row;
    RunnelPage *page = runnel_history_find (context, i, &row);

    self->ops->kv_import (self->backend, &self->shape,
        runnel_page_data (page), row, bits
        + i * runnel_dflash_row_bytes (self));
  }
  runnel_history_commit (context, tokens);
  return TRUE;
}

/* ---- A block ------------------------------------------------------------- */

void
runnel_dflash_block_init (RunnelDflashBlock *self, const RunnelDflash *dflash)
{
  const RunnelHyperparameters *hp = &dflash->draft->hp;
  const guint slots = hp->draft.block_size - 1;
  const guint rank = hp->draft.selector_rank;

  self->n_candidates = hp->draft.selector_top_k > 0 ? hp->draft.selector_top_k
      : MIN (DEFAULT_CANDIDATES, hp->n_vocab);
  self->candidates = g_new (gint32, slots * self->n_candidates);
  self->logits = g_new (float, slots * self->n_candidates);
  self->gates = rank > 0 ? g_new (float, slots * rank) : NULL;
  self->codes = rank > 0 ? g_new (float, 2 * rank) : NULL;
}

void
runnel_dflash_block_clear (RunnelDflashBlock *self)
{
  g_clear_pointer (&self->candidates, g_free);
  g_clear_pointer (&self->logits, g_free);
  g_clear_pointer (&self->gates, g_free);
  g_clear_pointer (&self->codes, g_free);
}

/* The k largest, falling; of equal ones the lowest id first. */
static void
find_largest (const float *logits, guint n, guint k, gint32 *ids,
              float *values)
{
  guint found = 0;

  for (guint id = 0; id < n; id++) {
    guint at;

    if (found == k && logits[id] <= values[k - 1])
      continue;
    at = found < k ? found++ : k - 1;
    for (; at > 0 && values[at - 1] < logits[id]; at--) {
      values[at] = values[at - 1];
      ids[at] = ids[at - 1];
    }
    values[at] = logits[id];
    ids[at] = id;
  }
}

/* Products of the normed hidden rows of the guesses with a matrix. */
static gboolean
multiply_hidden_unlocked (RunnelDflash *self, const RunnelOperand *matrix,
                          guint n, float *out, guint stride, GError **error)
{
  const float *hidden[RUNNEL_MAX_DRAFT];
  float *rows[RUNNEL_MAX_DRAFT];
  guint bad;

  for (guint i = 0; i < n; i++) {
    hidden[i] = self->hidden + (gsize) i * self->shape.n_embd;
    rows[i] = out + (gsize) i * stride;
  }
  bad = self->ops->output (self->pass, self->draft->output_norm, matrix,
      hidden, rows, n);
  if (bad == n)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_BAD_LOGITS,
      "%s: the draft gave a non-finite logit in slot %u; its weights are "
      "damaged", runnel_checkpoint_path (self->draft->checkpoint), bad + 1);
  return FALSE;
}

static gboolean
compute_unlocked (RunnelDflash *self, guint n_guesses,
                  RunnelDflashBlock *block, const RunnelTap *taps,
                  guint n_taps, GError **error)
{
  runnel_forward (self->draft, self->target->embedding, self->pass, taps,
      n_taps, NULL);
  for (guint i = 0; i < n_guesses; i++)
    self->ops->read_hidden (self->pass, i + 1,
        self->hidden + (gsize) i * self->shape.n_embd);
  return multiply_hidden_unlocked (self, self->target->output, n_guesses,
          self->logits, self->shape.n_vocab, error)
      && (block->gates == NULL || multiply_hidden_unlocked (self,
          self->draft->selector, n_guesses, block->gates,
          self->draft->hp.draft.selector_rank, error));
}

static gboolean
guess_unlocked (RunnelDflash *self, const RunnelHistory *context,
                gint32 anchor, guint n_guesses, RunnelDflashBlock *block,
                const RunnelTap *taps, guint n_taps, GError **error)
{
  RunnelKeys own = { runnel_page_data (self->block_page), 0, n_guesses + 1 };
  RunnelPassRows rows = { 0 };
  RunnelPassSequence sequence = { .joint = TRUE };
  gint32 tokens[RUNNEL_MAX_DRAFT + 1];
  gboolean ok;

  tokens[0] = anchor;
  for (guint i = 1; i <= n_guesses; i++)
    tokens[i] = self->draft->hp.draft.mask_token;
  rows.tokens = tokens;
  list_keys_unlocked (self, context);
  g_array_append_val (self->keys, own);
  if (!begin_unlocked (self, &rows, &sequence,
          runnel_history_length (context), n_guesses + 1))
    return set_out_of_memory (self, error);
  ok = compute_unlocked (self, n_guesses, block, taps, n_taps, error);
  self->ops->end (self->pass);
  return ok;
}

gboolean
runnel_dflash_guess (RunnelDflash *self, const RunnelHistory *context,
                     gint32 anchor, guint n_guesses, RunnelDflashBlock *block,
                     const RunnelTap *taps, guint n_taps, float *logits,
                     GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->mutex);
  const guint n_vocab = self->shape.n_vocab, k = block->n_candidates;

  g_return_val_if_fail (n_guesses > 0
      && n_guesses < self->draft->hp.draft.block_size, FALSE);
  if (!guess_unlocked (self, context, anchor, n_guesses, block, taps, n_taps,
          error))
    return FALSE;
  for (guint i = 0; i < n_guesses; i++)
    find_largest (self->logits + (gsize) i * n_vocab, n_vocab, k,
        block->candidates + i * k, block->logits + i * k);
  if (logits != NULL)
    memcpy (logits, self->logits,
        (gsize) n_guesses * n_vocab * sizeof (float));
  return TRUE;
}

void
runnel_dflash_score (const RunnelDflash *self, const RunnelDflashBlock *block,
                     guint slot, gint32 predecessor, float *scores)
{
  const guint rank = self->draft->hp.draft.selector_rank;
  const guint k = block->n_candidates;
  float *successor = block->codes, *gated = block->codes + rank;

  memcpy (scores, block->logits + slot * k, k * sizeof *scores);
  if (block->gates == NULL)
    return;
  self->ops->read_row (self->backend, self->draft->predecessors, predecessor,
      gated);
  for (guint r = 0; r < rank; r++)
    gated[r] *= block->gates[slot * rank + r];
  for (guint i = 0; i < k; i++) {
    double sum = 0;

    self->ops->read_row (self->backend, self->draft->successors,
        block->candidates[slot * k + i], successor);
    for (guint r = 0; r < rank; r++)
      sum += (double) gated[r] * successor[r];
    scores[i] += sum;
  }
}
