/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Speculative sampling with given numbers: DIR/dflash/rejection/cases.json,
 * computed in double from the definition. Which guesses are kept and what
 * comes in their place must be the same; the laws by which it comes agree to
 * 1e-6, as probabilities of guesses are floats here.
 */
#include <math.h>
#include <stdio.h>

#include "formats/json.h"
#include "generate/rejection.h"

#define MAX_TOKENS 64
#define TOLERANCE 1e-6
/* Steps of the number that a law is read off by. */
#define STEPS 4000

static guint passed, failed, not_run;

static void
report (const char *kind, gsize number, const char *problem)
{
  *(problem == NULL ? &passed : &failed) += 1;
  if (problem != NULL)
    printf ("  %s case %zu FAILED: %s\n", kind, number, problem);
}

static double
get_number (const RunnelJsonNode *node, const char *key)
{
  return runnel_json_node_double (runnel_json_node_member (node, key));
}

static gboolean
get_flag (const RunnelJsonNode *node, const char *key)
{
  return runnel_json_node_boolean (runnel_json_node_member (node, key));
}

static guint
get_numbers (const RunnelJsonNode *array, double *numbers)
{
  const guint n = MIN (runnel_json_node_size (array), MAX_TOKENS);

  for (guint i = 0; i < n; i++)
    numbers[i] = runnel_json_node_double (runnel_json_node_item (array, i));
  return n;
}

/* One slot: p over the whole vocabulary, by ascending ids, and a guess. */
typedef struct {
  guint n;
  uint64_t keys[MAX_TOKENS];
  double p[MAX_TOKENS];
  gint32 candidates[MAX_TOKENS];
  float q[MAX_TOKENS];
  RunnelGuess guess;
} Slot;

/* p rounded as q is: where they are equal they stay so. */
static void
read_slot (Slot *self, const RunnelJsonNode *p, const RunnelJsonNode *cand,
           const RunnelJsonNode *q, double draft)
{
  double numbers[MAX_TOKENS];
  guint n;

  self->n = get_numbers (p, self->p);
  for (guint i = 0; i < self->n; i++) {
    self->p[i] = (float) self->p[i];
    self->keys[i] = runnel_candidate_key (0, i);
  }
  n = get_numbers (cand, numbers);
  for (guint i = 0; i < n; i++)
    self->candidates[i] = numbers[i];
  get_numbers (q, numbers);
  for (guint i = 0; i < n; i++)
    self->q[i] = numbers[i];
  self->guess.token = draft;
  self->guess.n = n;
  self->guess.candidates = self->candidates;
  self->guess.probabilities = self->q;
}

static gboolean
keeps (const Slot *self, double u)
{
  return runnel_rejection_keeps (self->keys, self->p, self->n, &self->guess,
      u);
}

static guint
replace (const Slot *self, double v)
{
  return runnel_rejection_replace (self->keys, self->p, self->n, &self->guess,
      v);
}

/* How often each token comes over numbers spread evenly: within a step of the
 * law. */
static gboolean
has_law (const Slot *self, const RunnelJsonNode *law)
{
  guint counts[MAX_TOKENS] = { 0 };
  double expected[MAX_TOKENS];

  get_numbers (law, expected);
  for (guint i = 0; i < STEPS; i++)
    counts[replace (self, (i + 0.5) / STEPS)]++;
  for (guint i = 0; i < self->n; i++)
    if (fabs ((double) counts[i] / STEPS - expected[i])
        > 1.0 / STEPS + TOLERANCE)
      return FALSE;
  return TRUE;
}

static void
check_single (const RunnelJsonNode *node, gsize number)
{
  const gboolean accept = get_flag (node, "accept");
  const char *problem = NULL;
  Slot slot;

  read_slot (&slot, runnel_json_node_member (node, "p"),
      runnel_json_node_member (node, "cand"),
      runnel_json_node_member (node, "q"), get_number (node, "draft"));
  if (keeps (&slot, get_number (node, "u")) != accept)
    problem = accept ? "the guess is not kept" : "the guess is kept";
  else if (!accept && replace (&slot, get_number (node, "v"))
      != get_number (node, "emitted"))
    problem = "another token comes in its place";
  else if (accept && slot.guess.token != get_number (node, "emitted"))
    problem = "another token was guessed";
  else if (!has_law (&slot, runnel_json_node_member (node, "residual")))
    problem = "tokens in its place come by another law";
  report ("single", number, problem);
}

static void
check_block (const RunnelJsonNode *node, gsize number)
{
  const RunnelJsonNode *p = runnel_json_node_member (node, "p");
  const RunnelJsonNode *cand = runnel_json_node_member (node, "cand");
  const RunnelJsonNode *q = runnel_json_node_member (node, "q");
  const guint n = runnel_json_node_size (cand);
  double draft[MAX_TOKENS], u[MAX_TOKENS];
  const RunnelGuess none = { G_MAXUINT32, 0, NULL, NULL };
  const char *problem = NULL;
  guint accepted = 0;
  Slot slot;

  get_numbers (runnel_json_node_member (node, "draft"), draft);
  get_numbers (runnel_json_node_member (node, "u"), u);
  for (;; accepted++) {
    const gboolean guessed = accepted < n;

    read_slot (&slot, runnel_json_node_item (p, accepted),
        runnel_json_node_item (cand, guessed ? accepted : 0),
        runnel_json_node_item (q, guessed ? accepted : 0),
        guessed ? draft[accepted] : 0);
    if (!guessed)            /* nothing is taken from the bonus's law */
      slot.guess = none;
    if (!guessed || !keeps (&slot, u[accepted]))
      break;
  }
  if (accepted != get_number (node, "accepted"))
    problem = "another number of guesses is kept";
  else if (replace (&slot, get_number (node, "v"))
      != get_number (node, "bonus"))
    problem = "another token follows";
  else if (!has_law (&slot, runnel_json_node_member (node, "bonus_law")))
    problem = "the token that follows comes by another law";
  report ("block", number, problem);
}

int
main (int argc, char **argv)
{
  g_autofree char *path = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelJson) json = NULL;
  const RunnelJsonNode *singles, *blocks;

  if (argc != 2) {
    fprintf (stderr, "usage: %s DIR\n", argv[0]);
    return 2;
  }
  path = g_build_filename (argv[1], "dflash", "rejection", "cases.json", NULL);
  json = runnel_json_load (path, &error);
  if (json == NULL) {
    printf ("  not run: %s\n", error->message);
    not_run++;
  } else {
    singles = runnel_json_node_member (runnel_json_root (json), "single");
    blocks = runnel_json_node_member (runnel_json_root (json), "blocks");
    for (gsize i = 0; i < runnel_json_node_size (singles); i++)
      check_single (runnel_json_node_item (singles, i), i);
    for (gsize i = 0; i < runnel_json_node_size (blocks); i++)
      check_block (runnel_json_node_item (blocks, i), i);
  }
  printf ("conformance rejection: %u passed, %u failed, %u not run\n", passed,
      failed, not_run);
  return failed > 0;
}
