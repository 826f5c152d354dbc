/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The controller on machines that are made up: passes take so long, guesses
 * are right so often. Time is counted, not measured.
 */
#include "generate/draft-controller.h"

#define SEED 20261201

typedef struct {
  double row;                /* of a row behind the first; the first takes 1 */
  double step;               /* of the fifth row, more */
  const RunnelPassCosts *known;
  double propose;
  guint run;                 /* guesses are right this often, then wrong; */
  guint from;                /* but all wrong before this token */
  double spikes;             /* part of the passes that take tenfold */
} Machine;

/* The time of a reply, without the spikes. */
static double
run (const Machine *machine, guint n_tokens, RunnelDraftController *c)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  guint done = 0, streak = 0;
  double time = 0;

  runnel_draft_controller_init (c, TRUE, machine->known);
  while (done < n_tokens) {
    guint n = runnel_draft_controller_plan (c, 0, RUNNEL_MAX_DRAFT);
    guint right = done < machine->from ? 0 : machine->run - streak;
    double took;

    if (n > 0) {
      runnel_draft_controller_note_propose (c, 0, machine->propose);
      time += machine->propose;
      n = runnel_draft_controller_cut (c, 0, 1, n);
    }
    right = MIN (right, n);
    took = 1 + machine->row * n + (n >= 4 ? machine->step : 0);
    time += took;
    if (g_rand_double (rand) < machine->spikes)
      took *= 10;
    runnel_draft_controller_note_pass (c, n + 1, right + 1, took);
    if (n > 0)
      runnel_draft_controller_note_accepted (c, 0, 1, n, right);
    streak = right < n ? 0 : (streak + right) % MAX (machine->run, 1);
    done += right + 1;
  }
  return time / done;
}

/* A drafter that is always wrong costs 3 % of 100 tokens at most, on every
 * machine, disturbed or not, and whatever it costs to ask it. */
static void
test_always_wrong (void)
{
  for (double row = 0.01; row <= 1; row *= 1.5)
    for (double propose = 0; propose < 0.5; propose += 0.1)
      for (double spikes = 0; spikes < 0.2; spikes += 0.1)
        for (guint n = 100; n <= 1000; n += 300) {
          Machine machine = { .row = row, .propose = propose,
                              .spikes = spikes };
          RunnelDraftController c;

          g_assert_cmpfloat (run (&machine, n, &c), <=, 1.03);
        }
}

/* One that is always right comes near to the time of whole blocks; a
 * disturbance of the first ones delays that. */
static void
test_always_right (void)
{
  for (double row = 0.02; row < 0.5; row *= 1.5)
    for (double spikes = 0; spikes < 0.2; spikes += 0.1) {
      Machine machine = { .row = row, .run = 1000000, .spikes = spikes };
      const double best =
        (1 + row * RUNNEL_MAX_DRAFT) / (1 + RUNNEL_MAX_DRAFT);
      RunnelDraftController c;

      g_assert_cmpfloat (run (&machine, 300, &c), <=,
                         1.3 * best + 5 * spikes);
    }
}

/* Where guesses are right for a while, the length follows; where rows cost
 * more than guesses bring, nothing is drafted. */
static void
test_runs (void)
{
  Machine cheap = { .row = 0.1, .run = 3 }, costly = { .row = 0.9, .run = 1 };
  RunnelDraftController c;

  g_assert_cmpfloat (run (&cheap, 400, &c), <=, 0.5);
  g_assert_cmpuint (runnel_draft_controller_cut (&c, 0, 1, 15), >=, 2);
  g_assert_cmpuint (runnel_draft_controller_cut (&c, 0, 1, 15), <=, 7);
  g_assert_cmpuint (runnel_draft_controller_cut (&c, 0, 1, 1), ==, 1);
  g_assert_cmpfloat (run (&costly, 400, &c), <=, 1.03);
}

/* After much that was wrong, it is seen when guesses become right. */
static void
test_change (void)
{
  Machine machine = { .row = 0.15, .run = 1000000, .from = 300 };
  RunnelDraftController c;

  /* 300 plain tokens, and 300 that could take 0.2 each. */
  g_assert_cmpfloat (run (&machine, 600, &c), <=, 0.72);
}

/* Where the fifth row costs as much as a pass, blocks of four rows are found to
 * be best, and known from the beginning of the next reply. */
static void
test_step (void)
{
  Machine machine = { .row = 0.18, .step = 1.5, .run = 1000000 };
  RunnelDraftController first, next;

  g_assert_cmpfloat (run (&machine, 300, &first), <=, 0.45);
  machine.known = &first.costs;
  g_assert_cmpfloat (run (&machine, 60, &next), <=, 0.45);
  g_assert_cmpuint (runnel_draft_controller_cut (&next, 0, 1, 15), ==, 3);
}

/* A drafter that was right, or wrong, in one reply is believed so far in the
 * next, and soon no more if that has changed. */
static void
test_recall (void)
{
  Machine machine = { .row = 0.1, .run = 1000000 };
  RunnelDraftController right, wrong, next;

  run (&machine, 300, &right);
  machine.known = &right.costs;
  machine.run = 0;
  run (&machine, 300, &wrong);
  runnel_draft_controller_init (&next, TRUE, &right.costs);
  runnel_draft_controller_recall (&next, 0, &right.records[0]);
  g_assert_cmpuint (runnel_draft_controller_cut (&next, 0, 1, 15), >=, 4);
  for (guint i = 0; i < 12; i++)
    runnel_draft_controller_note_accepted (&next, 0, 1, 4, 0);
  g_assert_cmpuint (runnel_draft_controller_cut (&next, 0, 1, 15), ==, 1);
  runnel_draft_controller_recall (&next, 0, &wrong.records[0]);
  g_assert_cmpuint (runnel_draft_controller_cut (&next, 0, 1, 15), ==, 1);
  for (guint i = 0; i < 4; i++)
    runnel_draft_controller_note_accepted (&next, 0, 1, 4, 4);
  g_assert_cmpuint (runnel_draft_controller_cut (&next, 0, 1, 15), >=, 4);
}

/* Another program that ran while longer passes were measured is forgotten after
 * a few replies. */
static void
test_disturbed_reply (void)
{
  Machine machine = { .row = 0.15, .run = 1000000 };
  RunnelPassCosts known = { 0 };
  RunnelDraftController c, undisturbed;
  double time = 0, best;

  for (guint n_rows = 1; n_rows < G_N_ELEMENTS (known.rows); n_rows++) {
    RunnelCost *cost = &known.rows[n_rows];

    for (; cost->n < 4; cost->n++)
      cost->samples[cost->n] =
        (1 + machine.row * (n_rows - 1)) * (n_rows > 2 ? 3 : 1);
  }
  for (guint reply = 0; reply < 4; reply++) {
    machine.known = &known;
    time = run (&machine, 100, &c);
    known = c.costs;
  }
  machine.known = NULL;
  best = run (&machine, 100, &undisturbed);
  g_assert_cmpfloat (best, <=, 0.35);
  g_assert_cmpfloat (time, <=, 1.1 * best);
}

/* Another program that runs while a drafter is asked for the first time does
 * not end drafting. */
static void
test_disturbed_proposal (void)
{
  RunnelDraftController c;

  runnel_draft_controller_init (&c, TRUE, NULL);
  for (guint i = 0; i < 2; i++)
    runnel_draft_controller_note_pass (&c, 1, 1, 1);
  runnel_draft_controller_note_propose (&c, 0, 10);
  runnel_draft_controller_note_pass (&c, 1, 1, 1);
  g_assert_cmpuint (runnel_draft_controller_plan (&c, 0, 15), >, 0);
}

static void
test_fixed (void)
{
  RunnelDraftController c;

  runnel_draft_controller_init (&c, FALSE, NULL);
  g_assert_cmpuint (runnel_draft_controller_plan (&c, 0, 7), ==, 7);
  g_assert_cmpuint (runnel_draft_controller_cut (&c, 0, 0, 5), ==, 5);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/draft-controller/always-wrong", test_always_wrong);
  g_test_add_func ("/draft-controller/always-right", test_always_right);
  g_test_add_func ("/draft-controller/runs", test_runs);
  g_test_add_func ("/draft-controller/change", test_change);
  g_test_add_func ("/draft-controller/step", test_step);
  g_test_add_func ("/draft-controller/recall", test_recall);
  g_test_add_func ("/draft-controller/disturbed-reply",
                   test_disturbed_reply);
  g_test_add_func ("/draft-controller/disturbed-proposal",
                   test_disturbed_proposal);
  g_test_add_func ("/draft-controller/fixed", test_fixed);
  return g_test_run ();
}
