/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "engine-batch.h"

#include <string.h>

#include "../error.h"
#include "engine-private.h"
#include "forward.h"
#include "scheduler.h"

/* What one caller submitted, and what came of it. */
typedef struct {
  RunnelBatchItem *items;
  guint n_items;
  RunnelParticipant *participant;
  GError *error;
} Request;

/* Used by the leader of a batch only, one at a time. */
typedef struct {
  GArray *tokens;            /* gint32, of all rows */
  GArray *cos, *sin;         /* float, [rows][rope.half] */
  GArray *sequences;         /* RunnelPassSequence */
  GArray *keys;              /* RunnelKeys of all sequences */
  GArray *hidden;            /* float, [logits rows][n_embd] */
  GPtrArray *hidden_rows;    /* const float * */
  GPtrArray *logits_rows;    /* float * */
  GArray *owners;            /* Owner, of the logits rows */
  GArray *taps;              /* RunnelTap */
} Scratch;

/* Whose logits row it is. */
typedef struct {
  Request *request;
  RunnelBatchItem *item;
  guint row;                 /* which of the item's logits rows */
} Owner;

struct _RunnelBatcher {
  RunnelEngine *engine;      /* borrowed: it owns the batcher */
  const RunnelOps *ops;
  RunnelPass *pass;
  RunnelScheduler *scheduler;
  Scratch scratch;
  GMutex stats_mutex;        /* guards stats */
  RunnelEngineStats stats;
};

static void run_batch (void *data, RunnelJob **jobs, unsigned n_jobs);

RunnelBatcher *
runnel_batcher_new (RunnelEngine *engine)
{
  RunnelBackend *backend = runnel_engine_get_backend (engine);
  RunnelBatcher *self = g_new0 (RunnelBatcher, 1);
  Scratch *scratch = &self->scratch;

  self->engine = engine;
  self->ops = runnel_backend_ops (backend);
  g_mutex_init (&self->stats_mutex);
  scratch->tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
  scratch->cos = g_array_new (FALSE, FALSE, sizeof (float));
  scratch->sin = g_array_new (FALSE, FALSE, sizeof (float));
  scratch->sequences = g_array_new (FALSE, FALSE, sizeof (RunnelPassSequence));
  scratch->keys = g_array_new (FALSE, FALSE, sizeof (RunnelKeys));
  scratch->hidden = g_array_new (FALSE, FALSE, sizeof (float));
  scratch->hidden_rows = g_ptr_array_new ();
  scratch->logits_rows = g_ptr_array_new ();
  scratch->owners = g_array_new (FALSE, FALSE, sizeof (Owner));
  scratch->taps = g_array_new (FALSE, FALSE, sizeof (RunnelTap));
  self->pass = self->ops->pass_new (backend,
      runnel_engine_get_shape (engine));
  self->scheduler = runnel_scheduler_new (run_batch, self);
  if (self->pass != NULL && self->scheduler != NULL)
    return self;
  runnel_batcher_free (self);
  return NULL;
}

void
runnel_batcher_free (RunnelBatcher *self)
{
  Scratch *scratch;

  if (self == NULL)
    return;
  scratch = &self->scratch;
  if (self->scheduler != NULL)
    runnel_scheduler_free (self->scheduler);
  self->ops->pass_free (self->pass);
  g_array_unref (scratch->tokens);
  g_array_unref (scratch->cos);
  g_array_unref (scratch->sin);
  g_array_unref (scratch->sequences);
  g_array_unref (scratch->keys);
  g_array_unref (scratch->hidden);
  g_ptr_array_unref (scratch->hidden_rows);
  g_ptr_array_unref (scratch->logits_rows);
  g_array_unref (scratch->owners);
  g_array_unref (scratch->taps);
  g_mutex_clear (&self->stats_mutex);
  g_free (self);
}

RunnelParticipant *
runnel_batcher_join (RunnelBatcher *self)
{
  return runnel_scheduler_register (self->scheduler);
}

void
runnel_batcher_leave (RunnelBatcher *self, RunnelParticipant *participant)
{
  runnel_scheduler_unregister (self->scheduler, participant);
}

/* ---- Before the pass ----------------------------------------------------- */

static gboolean
check_item (RunnelBatcher *self, const RunnelBatchItem *item, GError **error)
{
  guint n_vocab = runnel_engine_get_shape (self->engine)->n_vocab;
  guint length = runnel_sequence_get_length (item->sequence);
  guint limit = runnel_sequence_get_context_length (item->sequence);

  if (item->n_logits > MAX (item->n_tokens, 1)
      || (item->n_tokens == 0 && item->n_logits > 0
          && !runnel_sequence_get_history (item->sequence)->has_hidden)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "logits of %u rows are asked for, but %u are forwarded",
        item->n_logits, item->n_tokens);
    return FALSE;
  }
  for (guint i = 0; i < item->n_tokens; i++)
    if (item->tokens[i] < 0 || (guint) item->tokens[i] >= n_vocab) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
          "token %d at position %u is not in the vocabulary of %u",
          item->tokens[i], length + i, n_vocab);
      return FALSE;
    }
  if (item->n_tokens > limit - length) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CONTEXT_OVERFLOW,
        "%u tokens and %u more are over the context length of %u; shorten the "
        "prompt or raise context-length", length, item->n_tokens, limit);
    return FALSE;
  }
  return TRUE;
}

static gboolean
reserve_request (RunnelBatcher *self, Request *request)
{
  for (guint i = 0; i < request->n_items; i++) {
    RunnelBatchItem *item = &request->items[i];

    if (runnel_engine_reserve (self->engine,
            runnel_sequence_get_history (item->sequence), item->n_tokens,
            &request->error))
      continue;
    while (i-- > 0)
      runnel_history_release (
          runnel_sequence_get_history (request->items[i].sequence));
    return FALSE;
  }
  return TRUE;
}

static void
add_positions (RunnelBatcher *self, const RunnelHistory *history, guint n)
{
  const RunnelRope *rope = &runnel_engine_get_weights (self->engine)->rope;
  Scratch *scratch = &self->scratch;
  guint first = runnel_history_length (history);

  for (guint i = 0; i < n; i++) {
    guint at = scratch->cos->len;

    g_array_set_size (scratch->cos, at + rope->half);
    g_array_set_size (scratch->sin, at + rope->half);
    runnel_rope_angles (rope, runnel_history_position (history, first + i),
        (float *) scratch->cos->data + at, (float *) scratch->sin->data + at);
  }
}

/* The hidden rows that the drafters of a sequence want; @row is its first row
 * in the pass. */
static void
add_taps (RunnelBatcher *self, const RunnelBatchItem *item, guint row)
{
  const RunnelDrafts *drafts = runnel_sequence_get_drafts (item->sequence);
  const gsize n_embd = runnel_engine_get_shape (self->engine)->n_embd;

  for (guint i = 0; i < runnel_drafts_count (drafts); i++) {
    RunnelDraftState *state = runnel_drafts_get (drafts, i);
    guint n_layers;
    const guint *layers = runnel_drafter_get_taps (
        runnel_draft_state_get_drafter (state), &n_layers);
    float *out = runnel_draft_state_expect (state, item->n_tokens);

    for (guint k = 0; k < n_layers; k++) {
      RunnelTap tap = { layers[k], row, item->n_tokens, out + k * n_embd,
        n_layers * n_embd };

      g_array_append_val (self->scratch.taps, tap);
    }
  }
}

/* Pages are named by their memory; the arrays of runs may still move, so
 * sequences get their pointers at the end. */
static void
add_item (RunnelBatcher *self, RunnelBatchItem *item)
{
  RunnelHistory *history = runnel_sequence_get_history (item->sequence);
  Scratch *scratch = &self->scratch;
  RunnelPassSequence sequence = {
    .row = scratch->tokens->len,
    .n_rows = item->n_tokens,
    .first_key = runnel_history_length (history),
    .n_keys = history->segments->len,
  };

  if (item->n_tokens == 0)
    return;
  for (guint i = 0; i < history->segments->len; i++) {
    RunnelSegment *s = &g_array_index (history->segments, RunnelSegment, i);
    RunnelKeys keys = { runnel_page_data (s->page), s->first, s->n };

    g_array_append_val (scratch->keys, keys);
  }
  add_taps (self, item, sequence.row);
  g_array_append_vals (scratch->tokens, item->tokens, item->n_tokens);
  add_positions (self, history, item->n_tokens);
  g_array_append_val (scratch->sequences, sequence);
}

static RunnelPassRows
finish_rows (RunnelBatcher *self)
{
  Scratch *scratch = &self->scratch;
  const RunnelKeys *keys = (const RunnelKeys *) scratch->keys->data;
  RunnelPassRows rows = {
    .n_rows = scratch->tokens->len,
    .tokens = (const gint32 *) scratch->tokens->data,
    .cos = (const float *) scratch->cos->data,
    .sin = (const float *) scratch->sin->data,
    .sequences = (const RunnelPassSequence *) scratch->sequences->data,
    .n_sequences = scratch->sequences->len,
  };

  for (guint i = 0; i < scratch->sequences->len; i++) {
    RunnelPassSequence *sequence
        = &g_array_index (scratch->sequences, RunnelPassSequence, i);

    sequence->keys = keys;
    keys += sequence->n_keys;
  }
  return rows;
}

static void
reset_scratch (Scratch *scratch)
{
  g_array_set_size (scratch->tokens, 0);
  g_array_set_size (scratch->cos, 0);
  g_array_set_size (scratch->sin, 0);
  g_array_set_size (scratch->sequences, 0);
  g_array_set_size (scratch->keys, 0);
  g_array_set_size (scratch->hidden, 0);
  g_ptr_array_set_size (scratch->hidden_rows, 0);
  g_ptr_array_set_size (scratch->logits_rows, 0);
  g_array_set_size (scratch->owners, 0);
  g_array_set_size (scratch->taps, 0);
}

/* ---- After the pass ------------------------------------------------------ */

/* Notes which rows want logits; hidden rows are copied out when known. */
static void
list_logits (RunnelBatcher *self, Request *request)
{
  guint n_vocab = runnel_engine_get_shape (self->engine)->n_vocab;
  Scratch *scratch = &self->scratch;

  for (guint i = 0; i < request->n_items; i++)
    for (guint row = 0; row < request->items[i].n_logits; row++) {
      Owner owner = { request, &request->items[i], row };

      g_array_append_val (scratch->owners, owner);
      g_ptr_array_add (scratch->logits_rows,
          request->items[i].logits + (gsize) row * n_vocab);
    }
}

/* Copies the last hidden row of an item into its history, and those whose
 * logits are wanted into the scratch. */
static void
read_hidden_rows (RunnelBatcher *self, RunnelBatchItem *item, guint first_row)
{
  RunnelHistory *history = runnel_sequence_get_history (item->sequence);
  Scratch *scratch = &self->scratch;
  guint n_embd = history->n_embd;

  if (item->n_tokens > 0)
    self->ops->read_hidden (self->pass, first_row + item->n_tokens - 1,
        history->hidden);
  for (guint i = 0; item->hidden != NULL && i < item->n_tokens; i++)
    self->ops->read_hidden (self->pass, first_row + i,
        item->hidden + (gsize) i * n_embd);
  for (guint i = 0; i < item->n_logits; i++) {
    guint at = scratch->hidden->len;

    g_array_set_size (scratch->hidden, at + n_embd);
    if (item->n_tokens == 0)
      memcpy ((float *) scratch->hidden->data + at, history->hidden,
          n_embd * sizeof (float));
    else
      self->ops->read_hidden (self->pass,
          first_row + item->n_tokens - item->n_logits + i,
          (float *) scratch->hidden->data + at);
  }
}

static void
report_bad_logits (const Owner *owner)
{
  const RunnelBatchItem *item = owner->item;
  guint length = runnel_sequence_get_length (item->sequence) + item->n_tokens;

  if (owner->request->error == NULL)
    g_set_error (&owner->request->error, RUNNEL_ERROR,
        RUNNEL_ERROR_BAD_LOGITS,
        "the model gave a non-finite logit after position %u; the weights or "
        "the state are damaged", length - item->n_logits + owner->row);
}

static void
compute_logits (RunnelBatcher *self)
{
  const RunnelWeights *weights = runnel_engine_get_weights (self->engine);
  Scratch *scratch = &self->scratch;
  guint n_embd = weights->hp.n_embd;
  guint n = scratch->owners->len, done = 0;

  for (guint i = 0; i < n; i++)
    g_ptr_array_add (scratch->hidden_rows,
        (float *) scratch->hidden->data + (gsize) i * n_embd);
  while (done < n) {
    done += self->ops->output (self->pass, weights->output_norm,
        weights->output,
        (const float *const *) scratch->hidden_rows->pdata + done,
        (float *const *) scratch->logits_rows->pdata + done, n - done);
    if (done < n)
      report_bad_logits (&g_array_index (scratch->owners, Owner, done++));
  }
}

static void
finish_request (Request *request)
{
  for (guint i = 0; i < request->n_items; i++) {
    RunnelBatchItem *item = &request->items[i];
    RunnelHistory *history = runnel_sequence_get_history (item->sequence);

    if (item->n_tokens == 0)
      continue;
    /* The pass may have overwritten the hidden row of a failed request. */
    history->has_hidden = request->error == NULL;
    if (request->error != NULL)
      runnel_history_release (history);
    else
      runnel_history_commit (history, item->tokens);
    runnel_drafts_settle (runnel_sequence_get_drafts (item->sequence),
        runnel_history_length (history));
  }
}

static void
count_batch (RunnelBatcher *self, RunnelJob **jobs, unsigned n_jobs)
{
  guint64 decode_rows = 0;

  for (unsigned i = 0; i < n_jobs; i++) {
    const Request *request = jobs[i]->data;

    for (guint k = 0; request->participant != NULL && k < request->n_items;
         k++)
      decode_rows += request->items[k].n_tokens;
  }
  g_mutex_lock (&self->stats_mutex);
  self->stats.batches += self->scratch.tokens->len > 0;
  self->stats.rows += self->scratch.tokens->len;
  self->stats.decode_batches += decode_rows > 0;
  self->stats.decode_rows += decode_rows;
  self->stats.logits_rows += self->scratch.owners->len;
  g_mutex_unlock (&self->stats_mutex);
}

/* ---- The batch ----------------------------------------------------------- */

static void
read_all_hidden_rows (RunnelBatcher *self, RunnelJob **jobs, unsigned n_jobs)
{
  guint row = 0;

  for (unsigned i = 0; i < n_jobs; i++) {
    Request *request = jobs[i]->data;

    for (guint k = 0; request->error == NULL && k < request->n_items; k++) {
      read_hidden_rows (self, &request->items[k], row);
      row += request->items[k].n_tokens;
    }
  }
}

static void
fail_requests (RunnelJob **jobs, unsigned n_jobs, const GError *error)
{
  for (unsigned i = 0; i < n_jobs; i++) {
    Request *request = jobs[i]->data;

    if (request->error == NULL)
      request->error = g_error_copy (error);
  }
}

static void
forward (RunnelBatcher *self, guint n_rows)
{
  const RunnelWeights *weights = runnel_engine_get_weights (self->engine);
  RunnelProbe *probe = runnel_engine_get_probe (self->engine);

  if (probe != NULL)
    probe->n_rows = n_rows;
  runnel_forward (weights, weights->embedding, self->pass,
      (const RunnelTap *) self->scratch.taps->data, self->scratch.taps->len,
      probe);
}

/* Counts and takes the scratch of the batch. */
static gboolean
begin_pass (RunnelBatcher *self, const RunnelPassRows *rows, GError **error)
{
  gsize bytes = self->ops->scratch_bytes (self->pass, rows->n_rows);

  if (!runnel_engine_reserve_scratch (self->engine, bytes, error))
    return FALSE;
  if (self->ops->begin (self->pass, rows))
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
      "no memory for the scratch of a batch (%" G_GSIZE_FORMAT " bytes); use a "
      "smaller chunk", bytes);
  return FALSE;
}

/* Called by the scheduler in the thread of one of the callers. */
static void
run_batch (void *data, RunnelJob **jobs, unsigned n_jobs)
{
  RunnelBatcher *self = data;
  g_autoptr (GError) error = NULL;
  RunnelPassRows rows;

  reset_scratch (&self->scratch);
  for (unsigned i = 0; i < n_jobs; i++) {
    Request *request = jobs[i]->data;

    if (!reserve_request (self, request))
      continue;
    for (guint k = 0; k < request->n_items; k++)
      add_item (self, &request->items[k]);
    list_logits (self, request);
  }
  rows = finish_rows (self);
  if (begin_pass (self, &rows, &error)) {
    if (rows.n_rows > 0)
      forward (self, rows.n_rows);
    read_all_hidden_rows (self, jobs, n_jobs);
    compute_logits (self);
    self->ops->end (self->pass);
    count_batch (self, jobs, n_jobs);
  } else {
    fail_requests (jobs, n_jobs, error);
  }
  for (unsigned i = 0; i < n_jobs; i++)
    finish_request (jobs[i]->data);
}

typedef struct {
  RunnelScheduler *scheduler;
  RunnelCancel cancel;
} Cancellation;

static void
on_cancelled (GCancellable *cancellable, gpointer data)
{
  Cancellation *cancellation = data;

  atomic_store (&cancellation->cancel.set, true);
  runnel_scheduler_wake (cancellation->scheduler);
}

gboolean
runnel_batcher_submit (RunnelBatcher *self, RunnelBatchItem *items,
                       guint n_items, RunnelParticipant *participant,
                       GCancellable *cancellable, GError **error)
{
  Request request = { items, n_items, participant, NULL };
  Cancellation cancellation = { self->scheduler, { false } };
  RunnelJob job = {
    .data = &request,
    .participant = participant,
    .cancel = &cancellation.cancel,
  };
  gboolean ran;
  gulong handler = 0;

  for (guint i = 0; i < n_items; i++)
    if (!check_item (self, &items[i], error))
      return FALSE;
  if (cancellable != NULL)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled),
        &cancellation, NULL);
  ran = runnel_scheduler_submit (self->scheduler, &job);
  g_cancellable_disconnect (cancellable, handler);
  if (!ran)
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED,
        "cancelled before the forward pass began");
  else if (request.error != NULL)
    g_propagate_error (error, request.error);
  return ran && request.error == NULL;
}

gsize
runnel_batcher_get_scratch_bytes (RunnelBatcher *self, guint n_rows)
{
  return self->ops->scratch_bytes (self->pass, n_rows);
}

void
runnel_batcher_trim (RunnelBatcher *self)
{
  self->ops->trim (self->pass);
}

void
runnel_batcher_get_stats (RunnelBatcher *self, RunnelEngineStats *ret_stats)
{
  g_mutex_lock (&self->stats_mutex);
  *ret_stats = self->stats;
  g_mutex_unlock (&self->stats_mutex);
}

void
runnel_batcher_count_cached_rows (RunnelBatcher *self, guint64 n)
{
  g_mutex_lock (&self->stats_mutex);
  self->stats.cached_rows += n;
  g_mutex_unlock (&self->stats_mutex);
}
