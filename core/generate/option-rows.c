/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "option-rows.h"

#include <string.h>

#include "../model/batch.h"
#include "../model/engine-private.h"
#include "candidates.h"
#include "elementary.h"

/* Rows of a batch: enough to be computed fast, few enough that others get
 * their turn and that logits stay small. */
#define MAX_ROWS 256
#define MIN_LOGITS_ROWS 32
#define MAX_LOGITS_BYTES (16 * 1024 * 1024)

void
runnel_token_run_clear (RunnelTokenRun *self)
{
  g_clear_pointer (&self->tokens, g_free);
  self->n = 0;
}

static gboolean
forward (RunnelOptionRows *self, RunnelBatchItem *items, guint n,
         GError **error)
{
  if (!runnel_engine_forward_cancellable (self->engine, items, n,
          self->cancellable, error))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    self->rows += items[i].n_tokens;
    self->logits_rows += items[i].n_logits;
  }
  return TRUE;
}

gboolean
runnel_option_rows_append_hidden (RunnelOptionRows *self,
                                  RunnelSequence *sequence,
                                  const gint32 *tokens, guint n,
                                  float *hidden, GError **error)
{
  gsize n_embd
      = runnel_model_get_n_embd (runnel_engine_get_model (self->engine));

  for (guint done = 0; done < n; done += MAX_ROWS) {
    RunnelBatchItem item = {
      .sequence = sequence,
      .tokens = tokens + done,
      .n_tokens = MIN (MAX_ROWS, n - done),
      .hidden = hidden ? hidden + done * n_embd : NULL,
    };

    if (!forward (self, &item, 1, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
runnel_option_rows_append (RunnelOptionRows *self, RunnelSequence *sequence,
                           const gint32 *tokens, guint n, GError **error)
{
  return runnel_option_rows_append_hidden (self, sequence, tokens, n, NULL,
      error);
}

/* How many of @runs make the next batch: at least one. */
static guint
count_group (const RunnelTokenRun *runs, guint n)
{
  guint rows = 0, i = 0;

  while (i < n && (i == 0 || rows + runs[i].n <= MAX_ROWS))
    rows += runs[i++].n;
  return i;
}

/* ---- Options that are to be seen ----------------------------------------- */

static gboolean
append_group (RunnelOptionRows *self, RunnelSequence **forks,
              const RunnelTokenRun *runs, guint n, GError **error)
{
  g_autofree RunnelBatchItem *items = NULL;

  if (n == 1)
    return runnel_option_rows_append (self, forks[0], runs[0].tokens,
        runs[0].n, error);
  items = g_new0 (RunnelBatchItem, n);
  for (guint i = 0; i < n; i++) {
    items[i].sequence = forks[i];
    items[i].tokens = runs[i].tokens;
    items[i].n_tokens = runs[i].n;
  }
  return forward (self, items, n, error);
}

void
runnel_option_rows_copy_hidden (RunnelSequence *sequence, float *row)
{
  const RunnelHistory *history = runnel_sequence_get_history (sequence);

  memcpy (row, history->hidden, history->n_embd * sizeof (float));
}

RunnelSequence *
runnel_option_rows_join (RunnelOptionRows *self, RunnelSequence *base,
                         const RunnelTokenRun *runs, guint n, float *hidden,
                         GError **error)
{
  gsize n_embd
      = runnel_model_get_n_embd (runnel_engine_get_model (self->engine));
  g_autoptr (GPtrArray) forks
      = g_ptr_array_new_with_free_func (g_object_unref);
  RunnelSequence **sequences;

  for (guint i = 0; i < n; i++)
    g_ptr_array_add (forks, runnel_sequence_fork (base));
  sequences = (RunnelSequence **) forks->pdata;
  for (guint done = 0; done < n;) {
    guint group = count_group (runs + done, n - done);

    if (!append_group (self, sequences + done, runs + done, group, error))
      return NULL;
    done += group;
  }
  for (guint i = 0; hidden != NULL && i < n; i++)
    runnel_option_rows_copy_hidden (sequences[i], hidden + i * n_embd);
  return runnel_sequence_join (sequences, n,
      runnel_sequence_get_length (base), error);
}

/* ---- Labels that are scored ---------------------------------------------- */

/* Logits of a batch. */
typedef struct {
  float *logits;             /* [max_rows][n_vocab] */
  guint max_rows;
  gsize n_vocab;
} Score;

/* e^x for x <= 0 within 2e-7 of it (relative), at least e^-87. A whole
 * vocabulary is summed for every row, so that the sampler's exact one would
 * cost a tenth of all. x = n ln 2 + r, and the Taylor series of e^r up to r^6:
 * the first term left out is below 1.2e-7. The bits of -87 are compared, not
 * the numbers, so that a compiler vectorises it. */
static inline float
exp_float (float x)
{
  guint32 bits;
  float clamped;

  memcpy (&bits, &x, sizeof bits);
  bits = bits < 0xc2ae0000u ? bits : 0xc2ae0000u;
  memcpy (&clamped, &bits, sizeof clamped);

  const float shifted = clamped * 0x1.715476p+0f + 0x1.8p23f;
  const float n = shifted - 0x1.8p23f;
  const float r = (clamped - n * 0x1.62ep-1f) - n * 0x1.0bfbe8p-15f;
  float p = 1.0f / 720, scale;

  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  memcpy (&bits, &shifted, sizeof bits);
  bits = (bits + 127) << 23;
  memcpy (&scale, &bits, sizeof scale);
  return p * scale;
}

/* By blocks of 1024: sixteen sums by index modulo 16, added in double. */
static double
sum_exp (const float *logits, gsize n, float max)
{
  double sum = 0;

  for (gsize from = 0; from < n; from += 1024) {
    gsize length = MIN (n - from, 1024);
    float terms[1024] = { 0 }, lanes[16] = { 0 };

    for (gsize i = 0; i < length; i++)
      terms[i] = exp_float (logits[from + i] - max);
    for (guint i = 0; i < 1024; i += 16)
      for (guint k = 0; k < 16; k++)
        lanes[k] += terms[i + k];
    for (guint k = 0; k < 16; k++)
      sum += lanes[k];
  }
  return sum;
}

/* What the log-probabilities of a row are to be lessened by. */
typedef struct {
  const float *logits;
  float max;
  double log_sum;
} Row;

static Row
begin_row (const Score *score, guint row)
{
  Row self = { score->logits + row * score->n_vocab };
  size_t best;

  self.max = runnel_logits_max (self.logits, score->n_vocab, &best);
  self.log_sum
      = elementary_log (sum_exp (self.logits, score->n_vocab, self.max));
  return self;
}

/* log P of the token that follows a row, in double. */
static double
log_probability (const Row *row, gint32 token)
{
  return ((double) row->logits[token] - row->max) - row->log_sum;
}

/* Labels that begin with the same tokens, of which every row is computed once;
 * or the rest of one of them, behind these. */
typedef struct {
  RunnelSequence *base;      /* borrowed */
  RunnelSequence *sequence;  /* with the rows; owned, NULL before */
  const guint *members;      /* which labels */
  guint n_members;
  guint from;                /* the first row's token in these */
  guint n_rows;
} Segment;

static void
clear_segment (gpointer data)
{
  g_clear_object (&((Segment *) data)->sequence);
}

/* Log-probabilities of the tokens behind the segment's, added to @sums. */
static void
add_segment (const Score *score, const Segment *segment, guint row,
             const RunnelTokenRun *runs, double *sums)
{
  for (guint k = 0; k < segment->n_rows; k++) {
    const Row values = begin_row (score, row + k);
    guint next = segment->from + k + 1;

    for (guint i = 0; i < segment->n_members; i++) {
      guint label = segment->members[i];

      if (next < runs[label].n)
        sums[label] += log_probability (&values, runs[label].tokens[next]);
    }
  }
}

/* A batch of segments. */
static gboolean
score_batch (RunnelOptionRows *self, const Score *score, Segment *segments,
             guint n, const RunnelTokenRun *runs, double *sums, GError **error)
{
  g_autofree RunnelBatchItem *items = g_new0 (RunnelBatchItem, n);
  guint row = 0;

  for (guint i = 0; i < n; i++) {
    Segment *segment = &segments[i];

    segment->sequence = runnel_sequence_fork (segment->base);
    items[i].sequence = segment->sequence;
    items[i].tokens = runs[segment->members[0]].tokens + segment->from;
    items[i].n_tokens = items[i].n_logits = segment->n_rows;
    items[i].logits = score->logits + row * score->n_vocab;
    row += segment->n_rows;
  }
  if (!forward (self, items, n, error))
    return FALSE;
  row = 0;
  for (guint i = 0; i < n; i++) {
    add_segment (score, &segments[i], row, runs, sums);
    row += segments[i].n_rows;
    /* Nothing comes behind one label alone. */
    if (segments[i].n_members == 1)
      g_clear_object (&segments[i].sequence);
  }
  return TRUE;
}

static gboolean
score_segments (RunnelOptionRows *self, const Score *score, GArray *segments,
                const RunnelTokenRun *runs, double *sums, GError **error)
{
  for (guint done = 0; done < segments->len;) {
    Segment *first = &g_array_index (segments, Segment, done);
    guint n = 0, rows = 0;

    while (done + n < segments->len
           && rows + first[n].n_rows <= score->max_rows)
      rows += first[n++].n_rows;
    if (!score_batch (self, score, first, n, runs, sums, error))
      return FALSE;
    done += n;
  }
  return TRUE;
}

/* How many tokens all of @members begin with. */
static guint
count_shared (const RunnelTokenRun *runs, const guint *members, guint n)
{
  const RunnelTokenRun *first = &runs[members[0]];
  guint shared = n > 1 ? first->n : first->n - 1;

  for (guint i = 1; i < n; i++) {
    const RunnelTokenRun *run = &runs[members[i]];
    guint k = 0;

    while (k < MIN (shared, run->n) && run->tokens[k] == first->tokens[k])
      k++;
    shared = k;
  }
  return shared;
}

/* The same of one label that is too long for a batch. */
static gboolean
score_long (RunnelOptionRows *self, const Score *score, RunnelSequence *base,
            const RunnelTokenRun *run, double *sum, GError **error)
{
  g_autoptr (RunnelSequence) fork = runnel_sequence_fork (base);

  for (guint done = 0; done < run->n - 1;) {
    guint rows = MIN (score->max_rows, run->n - 1 - done);
    RunnelBatchItem item = {
      .sequence = fork,
      .tokens = run->tokens + done,
      .n_tokens = rows,
      .logits = score->logits,
      .n_logits = rows,
    };

    if (!forward (self, &item, 1, error))
      return FALSE;
    for (guint k = 0; k < rows; k++) {
      const Row values = begin_row (score, k);

      *sum += log_probability (&values, run->tokens[done + k + 1]);
    }
    done += rows;
  }
  return TRUE;
}

/* By their first tokens: a segment for those that share it. @order takes the
 * labels, segment by segment. Labels of one token have no row, and those that
 * are too long for a batch are not among them. */
static GArray *
group_labels (const Score *score, RunnelSequence *base,
              const RunnelTokenRun *runs, guint n, guint *order)
{
  GArray *segments = g_array_new (FALSE, TRUE, sizeof (Segment));
  g_autofree gboolean *seen = g_new0 (gboolean, n);
  guint used = 0;

  g_array_set_clear_func (segments, clear_segment);
  for (guint i = 0; i < n; i++) {
    Segment segment = { base, .members = order + used };

    for (guint k = i; k < n; k++) {
      if (seen[k] || runs[k].n < 2 || runs[k].n - 1 > score->max_rows
          || runs[k].tokens[0] != runs[i].tokens[0])
        continue;
      seen[k] = TRUE;
      order[used++] = k;
      segment.n_members++;
    }
    if (segment.n_members == 0)
      continue;
    segment.n_rows = MIN (count_shared (runs, segment.members,
            segment.n_members), score->max_rows);
    g_array_append_val (segments, segment);
  }
  return segments;
}

/* What the labels of @segments have behind what they share. */
static GArray *
list_tails (GArray *segments, const RunnelTokenRun *runs)
{
  GArray *tails = g_array_new (FALSE, TRUE, sizeof (Segment));

  g_array_set_clear_func (tails, clear_segment);
  for (guint i = 0; i < segments->len; i++) {
    const Segment *segment = &g_array_index (segments, Segment, i);

    for (guint k = 0; k < segment->n_members; k++) {
      Segment tail = { segment->sequence, .members = segment->members + k,
        .n_members = 1, .from = segment->n_rows };
      guint rows = runs[*tail.members].n - 1;

      if (rows <= tail.from)
        continue;
      tail.n_rows = rows - tail.from;
      g_array_append_val (tails, tail);
    }
  }
  return tails;
}

/* The tokens behind the first, of labels of more than one. */
static gboolean
score_rest (RunnelOptionRows *self, const Score *score, RunnelSequence *base,
            const RunnelTokenRun *runs, guint n, double *sums, GError **error)
{
  g_autofree guint *order = g_new (guint, n);
  g_autoptr (GArray) segments = group_labels (score, base, runs, n, order);
  g_autoptr (GArray) tails = NULL;

  if (!score_segments (self, score, segments, runs, sums, error))
    return FALSE;
  tails = list_tails (segments, runs);
  if (!score_segments (self, score, tails, runs, sums, error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    if (runs[i].n > score->max_rows + 1
        && !score_long (self, score, base, &runs[i], &sums[i], error))
      return FALSE;
  return TRUE;
}

gboolean
runnel_option_rows_score (RunnelOptionRows *self, RunnelSequence *base,
                          const RunnelTokenRun *runs, guint n,
                          double *log_probabilities, GError **error)
{
  gsize n_vocab
      = runnel_model_get_n_vocab (runnel_engine_get_model (self->engine));
  guint max_rows
      = CLAMP (MAX_LOGITS_BYTES / (n_vocab * sizeof (float)), MIN_LOGITS_ROWS,
          MAX_ROWS);
  g_autofree float *logits = g_new (float, max_rows * n_vocab);
  const Score score = { logits, max_rows, n_vocab };
  Row first;

  if (!runnel_sequence_compute_logits (base, logits, n_vocab, error))
    return FALSE;
  self->logits_rows++;
  first = begin_row (&score, 0);
  for (guint i = 0; i < n; i++)
    log_probabilities[i] = log_probability (&first, runs[i].tokens[0]);
  return score_rest (self, &score, base, runs, n, log_probabilities, error);
}
