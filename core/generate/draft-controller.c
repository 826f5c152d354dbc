/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "draft-controller.h"

#include <string.h>

/* In plain tokens: what may be lost at first, per token of the time spent,
 * and what may be saved up or owed. A reply of 100 tokens loses 2.5 %. */
#define FIRST_BALANCE 1.0
#define INCOME 0.015
#define MAX_BALANCE 4.0
#define MIN_BALANCE (-0.5)
/* What a single pass may risk of it, so that one failure is not the end. */
#define STAKE 0.6

/* Plain passes to measure before the first guess. */
#define MIN_PLAIN 2
/* Drafting must promise this much more than plain decoding. */
#define MARGIN 1.02
/* By the time of a plain pass: a row behind the first, while only plain passes
 * were measured. */
#define ASSUMED_ROW 0.25
/* Passes of so many rows to measure before their time is theirs. */
#define MIN_SAMPLES 3
/* Guesses of a trial where drafting promises nothing. */
#define PROBE 2
/* How much of a trial is left after the next one. */
#define MEMORY 0.9

void
runnel_draft_controller_init (RunnelDraftController *self, gboolean adaptive)
{
  memset (self, 0, sizeof *self);
  self->adaptive = adaptive;
  self->balance = FIRST_BALANCE;
}

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

/* The median: of numbers that differ by nature. */
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
  return sorted[(n - 1) / 2];
}

/* Of a pass: as measured often enough, or so much for each row. */
static double
get_pass_cost (const RunnelDraftController *self, guint n_rows)
{
  const double plain = get_cost (&self->pass[1]);

  if (n_rows == 1)
    return plain;
  if (self->pass[n_rows].n >= MIN_SAMPLES)
    return get_cost (&self->pass[n_rows]);
  return plain + (n_rows - 1) * (self->row.n > 0 ? get_median (&self->row)
                                                 : ASSUMED_ROW * plain);
}

/* Before anything is known of it, a grade is believed a little more than the
 * one below it; and the next guess is believed like the one before it. */
static double
get_first_belief (guint grade)
{
  return 0.5 + 0.1 * grade;
}

/* The best number of guesses up to @max: tokens over time, against one token
 * in the time of a plain pass. */
static guint
find_best (const RunnelDraftController *self, guint drafter, guint grade,
           guint max)
{
  const RunnelDraftRecord *record = &self->records[drafter];
  const double plain = get_pass_cost (self, 1);
  const double propose = get_cost (&record->propose);
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

/* Guesses that the balance can pay for if all are wrong; a single one before
 * it is known what rows cost. */
static guint
limit_to_balance (const RunnelDraftController *self, guint drafter, guint n)
{
  const double plain = get_pass_cost (self, 1);
  const double propose = get_cost (&self->records[drafter].propose);

  if (self->row.n == 0)
    n = MIN (n, 1);
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
  if (self->pass[1].n < MIN_PLAIN)
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
  if (self->pass[1].n == 0)
    return;
  self->balance -= get_cost (&self->records[drafter].propose) /
                   get_pass_cost (self, 1);
  self->balance = MAX (self->balance, MIN_BALANCE);
}

void
runnel_draft_controller_note_pass (RunnelDraftController *self, guint n_rows,
                                   guint n_tokens, double seconds)
{
  double took = 1.0;

  add_sample (&self->pass[n_rows], seconds);
  if (self->pass[1].n == 0)
    return;
  if (n_rows > 1) {
    const double plain = get_pass_cost (self, 1);

    add_sample (&self->row, MAX (seconds - plain, 0) / (n_rows - 1));
    took = get_pass_cost (self, n_rows) / plain;
  }
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
