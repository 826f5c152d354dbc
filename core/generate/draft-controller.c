/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "draft-controller.h"

#include <string.h>

/* In plain tokens: what may be lost at first, per token of the time spent,
 * and what may be saved up or owed. A reply of 100 tokens loses 2 %. */
#define FIRST_BALANCE 1.0
#define INCOME 0.01
#define MAX_BALANCE 4.0
#define MIN_BALANCE (-0.5)
/* What a single pass may risk of it, so that one failure is not the end. */
#define STAKE 0.6

/* Plain passes to measure before the first guess. */
#define MIN_PLAIN 2
/* Drafting must promise this much more than plain decoding. */
#define MARGIN 1.05
/* By the time of a plain pass: a row behind the first, as long as it was not
 * measured often enough; what it may be charged at most until then, and at
 * least at any time. */
#define ASSUMED_ROW 0.25
#define MAX_ROW 1.0
#define MIN_ROW 0.05
#define MIN_SAMPLES 3
/* What asking a drafter counts at most until then. */
#define MAX_PROPOSE 0.1
/* Guesses of a trial where drafting promises nothing. */
#define PROBE 1
/* How much of a trial is left after the next one. */
#define MEMORY 0.9
/* As how many trials those of earlier replies count. */
#define RECALLED 2.0

static void
add_sample (RunnelCost *cost, double seconds)
{
  cost->samples[cost->n++ % RUNNEL_COST_SAMPLES] = seconds;
}

/* The least: what it takes undisturbed. 0 if there is none. */
static double
get_cost (const RunnelCost *cost)
{
  const guint n = MIN (cost->n, RUNNEL_COST_SAMPLES);
  double least = n > 0 ? cost->samples[0] : 0.0;

  for (guint i = 1; i < n; i++)
    least = MIN (least, cost->samples[i]);
  return least;
}

/* The median of what was measured: what it takes as things are. */
static double
get_median (const RunnelCost *cost)
{
  const guint n = MIN (cost->n, RUNNEL_COST_SAMPLES);
  double sorted[RUNNEL_COST_SAMPLES];

  for (guint i = 0; i < n; i++) {
    guint at = i;

    for (; at > 0 && sorted[at - 1] > cost->samples[i]; at--)
      sorted[at] = sorted[at - 1];
    sorted[at] = cost->samples[i];
  }
  return sorted[n / 2];
}

/* Of what was measured in earlier replies the least is kept, and trusted as
 * far as it was then; a little less for each reply that did not measure it
 * again: a time that was disturbed would be avoided for ever. */
static RunnelCost
fold (const RunnelCost *cost)
{
  const gboolean is_new = cost->n > cost->n_recalled;
  RunnelCost folded = { .n = is_new ? MIN (cost->n, MIN_SAMPLES)
                                    : MAX (cost->n, 1) - 1 };

  folded.n_recalled = folded.n;

  for (guint i = 0; i < folded.n; i++)
    folded.samples[i] = get_cost (cost);
  return folded;
}

void
runnel_draft_controller_init (RunnelDraftController *self, gboolean adaptive,
                              const RunnelPassCosts *costs)
{
  memset (self, 0, sizeof *self);
  self->adaptive = adaptive;
  self->balance = FIRST_BALANCE;
  for (guint i = 1; costs != NULL && i < G_N_ELEMENTS (costs->rows); i++)
    self->costs.rows[i] = fold (&costs->rows[i]);
}

void
runnel_draft_controller_recall (RunnelDraftController *self, guint drafter,
                                const RunnelDraftRecord *record)
{
  RunnelDraftRecord *own = &self->records[drafter];

  own->propose = fold (&record->propose);
  for (guint grade = 0; grade < RUNNEL_DRAFT_GRADES; grade++)
    for (guint i = 0; i < RUNNEL_MAX_DRAFT; i++) {
      const double trials = record->trials[grade][i];
      const double part = trials > RECALLED ? RECALLED / trials : 1.0;

      own->trials[grade][i] = part * trials;
      own->hits[grade][i] = part * record->hits[grade][i];
    }
}

/* Of a pass of so many rows that was measured. Before it was measured often
 * enough a row behind the first counts as @max_row plain passes at most. */
static double
get_measured (const RunnelDraftController *self, guint n_rows, double max_row)
{
  const RunnelCost *cost = &self->costs.rows[n_rows];
  const double plain = get_cost (&self->costs.rows[1]);
  const double seconds = get_cost (cost);

  return n_rows == 1 || cost->n >= MIN_SAMPLES
           ? seconds
           : MIN (seconds, plain * (1 + max_row * (n_rows - 1)));
}

/* The next number of rows from @n_rows on in a direction that was measured; 0
 * if there is none. */
static guint
find_measured (const RunnelDraftController *self, guint n_rows, gint direction)
{
  for (; n_rows >= 1 && n_rows <= RUNNEL_MAX_DRAFT + 1; n_rows += direction)
    if (self->costs.rows[n_rows].n > 0)
      return n_rows;
  return 0;
}

/* How much dearer each row made the passes before that of @low rows, which was
 * measured like one before it; @steeper: as far as a single step shows or, if
 * that is more, the mean of all. */
static double
get_slope_below (const RunnelDraftController *self, guint low, gboolean steeper)
{
  const guint before = find_measured (self, low - 1, -1);
  const double below = get_measured (self, low, ASSUMED_ROW);
  const double step =
    (below - get_measured (self, before, ASSUMED_ROW)) / (low - before);
  const double mean = (below - get_cost (&self->costs.rows[1])) / (low - 1);

  return steeper ? MAX (step, mean) : step;
}

/* Of a pass: between measured ones as on a line, or as below the lower one if
 * that is less: rows come at a step where a kernel takes no more of them. And
 * beyond them as steep as the steeper of the way to the last and the mean. Of
 * few measurements the good side is believed, or they would not become
 * more. */
static double
get_pass_cost (const RunnelDraftController *self, guint n_rows)
{
  const double plain = get_cost (&self->costs.rows[1]);
  const guint low = find_measured (self, n_rows, -1);
  const guint high = find_measured (self, n_rows, 1);
  const double below = get_measured (self, low, ASSUMED_ROW);
  double slope = ASSUMED_ROW * plain;

  if (low == n_rows)
    return below;
  if (low > 1)
    slope = get_slope_below (self, low, high == 0);
  if (high > 0)
    slope = MIN (slope, (get_measured (self, high, ASSUMED_ROW) - below) /
                          (high - low));
  return below + MAX (slope, 0.0) * (n_rows - low);
}

/* Of asking a drafter: like times of passes, on the good side at first. */
static double
get_propose_cost (const RunnelDraftController *self, guint drafter)
{
  const RunnelCost *cost = &self->records[drafter].propose;
  const double seconds = get_cost (cost);

  return cost->n >= MIN_SAMPLES
           ? seconds
           : MIN (seconds, MAX_PROPOSE * get_pass_cost (self, 1));
}

/* Before anything is known of it, a grade is believed more than the one below
 * it; and the next guess is believed like the one before it. */
static double
get_first_belief (guint grade)
{
  static const double beliefs[RUNNEL_DRAFT_GRADES] = { 0.3, 0.6, 0.8, 0.95 };

  return beliefs[grade];
}

/* The best number of guesses up to @max: tokens over time, against one token
 * in the time of a plain pass. */
static guint
find_best (const RunnelDraftController *self, guint drafter, guint grade,
           guint max)
{
  const RunnelDraftRecord *record = &self->records[drafter];
  const double plain = get_pass_cost (self, 1);
  const double propose = get_propose_cost (self, drafter);
  double belief = get_first_belief (grade), reach = 1.0, tokens = 1.0;
  double best_rate = MARGIN / plain;
  guint best = 0;

  for (guint i = 0; i < max; i++) {
    double rate;

    belief = (record->hits[grade][i] + belief) /
             (record->trials[grade][i] + 1.0);
    reach *= belief;
    tokens += reach;
    rate = tokens / (propose + get_pass_cost (self, i + 2));
    if (rate > best_rate) {
      best_rate = rate;
      best = i + 1;
    }
  }
  return best;
}

/* Guesses that the balance can pay for if all are wrong, in a pass of at most
 * twice the rows that were measured: what lies far ahead is not known. */
static guint
limit_to_balance (const RunnelDraftController *self, guint drafter, guint n)
{
  const double plain = get_pass_cost (self, 1);
  const double propose = get_propose_cost (self, drafter);

  n = MIN (n, 2 * find_measured (self, RUNNEL_MAX_DRAFT + 1, -1) - 1);
  while (n > 0 && propose + get_pass_cost (self, n + 1) - plain >
                    STAKE * self->balance * plain)
    n--;
  return n;
}

guint
runnel_draft_controller_cut (RunnelDraftController *self, guint drafter,
                             guint grade, guint n)
{
  guint best;

  if (!self->adaptive || n == 0)
    return n;
  best = find_best (self, drafter, grade, n);
  return limit_to_balance (self, drafter, best > 0 ? best : MIN (n, PROBE));
}

guint
runnel_draft_controller_plan (RunnelDraftController *self, guint drafter,
                              guint max)
{
  guint most = 0;

  if (!self->adaptive)
    return max;
  if (self->costs.rows[1].n < MIN_PLAIN)
    return 0;
  for (guint grade = 0; grade < RUNNEL_DRAFT_GRADES; grade++)
    most = MAX (most, runnel_draft_controller_cut (self, drafter, grade, max));
  return most;
}

void
runnel_draft_controller_note_propose (RunnelDraftController *self,
                                      guint drafter, double seconds)
{
  add_sample (&self->records[drafter].propose, seconds);
  if (self->costs.rows[1].n == 0)
    return;
  self->balance -= get_propose_cost (self, drafter) / get_pass_cost (self, 1);
  self->balance = MAX (self->balance, MIN_BALANCE);
}

/* What a pass of several rows took, in plain tokens: rather too much. */
static double
get_charge (const RunnelDraftController *self, guint n_rows)
{
  const RunnelCost *cost = &self->costs.rows[n_rows];
  const double seconds = cost->n >= MIN_SAMPLES
                           ? get_median (cost)
                           : get_measured (self, n_rows, MAX_ROW);

  return MAX (seconds / get_pass_cost (self, 1), 1 + MIN_ROW * (n_rows - 1));
}

void
runnel_draft_controller_note_pass (RunnelDraftController *self, guint n_rows,
                                   guint n_tokens, double seconds)
{
  double took = 1.0;

  add_sample (&self->costs.rows[n_rows], seconds);
  if (self->costs.rows[1].n == 0)
    return;
  if (n_rows > 1)
    took = get_charge (self, n_rows);
  self->balance += n_tokens - took + INCOME * took;
  self->balance = CLAMP (self->balance, MIN_BALANCE, MAX_BALANCE);
}

void
runnel_draft_controller_note_accepted (RunnelDraftController *self,
                                       guint drafter, guint grade,
                                       guint n_verified, guint n_accepted)
{
  RunnelDraftRecord *record = &self->records[drafter];

  for (guint i = 0; i < n_verified && i <= n_accepted; i++) {
    record->trials[grade][i] = record->trials[grade][i] * MEMORY + 1.0;
    record->hits[grade][i] =
      record->hits[grade][i] * MEMORY + (i < n_accepted ? 1.0 : 0.0);
  }
}
