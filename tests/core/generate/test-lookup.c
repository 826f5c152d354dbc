/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The lookup drafter against a plain search over all that it was fed.
 */
#include <string.h>

#include "error.h"
#include "generate/lookup-drafter.h"
#include "model/draft-state-private.h"

#define SEED 20261201
#define MIN_NGRAM 2
#define MAX_NGRAM 5
#define COPY_LENGTH 4

/* A state of its own: lookup needs no engine. */
static RunnelDraftState *
state_new (guint min_ngram, guint max_ngram, guint max_draft)
{
  g_autoptr (RunnelDrafter) drafter =
    runnel_lookup_drafter_new (min_ngram, max_ngram, max_draft, NULL);

  return RUNNEL_DRAFTER_GET_CLASS (drafter)->new_state (drafter, NULL, NULL);
}

static void
feed (RunnelDraftState *state, const gint32 *tokens, guint n)
{
  RUNNEL_DRAFT_STATE_GET_CLASS (state)->feed (state, tokens, n, NULL, NULL);
}

static RunnelProposal
propose (RunnelDraftState *state, gint32 anchor, guint max_tokens)
{
  const RunnelDraftRequest request = { .anchor = anchor,
                                       .max_tokens = max_tokens };
  RunnelProposal proposal;

  g_assert_true (
    runnel_draft_state_propose (state, &request, &proposal, NULL));
  return proposal;
}

/* Tokens before @end that equal the last of @tokens. */
static guint
match (const GArray *tokens, guint end)
{
  const gint32 *t = (const gint32 *) tokens->data;
  guint n = 0;

  while (n < MAX_NGRAM && n < end && t[end - 1 - n] == t[tokens->len - 1 - n])
    n++;
  return n;
}

/* The longest match of the tail, the latest of several, or of short ones the
 * first behind what was copied before; and what follows. */
static void
check (RunnelDraftState *state, const GArray *fed, gint32 anchor, guint max,
       guint *copied)
{
  g_autoptr (GArray) tokens = g_array_copy ((GArray *) fed);
  RunnelProposal proposal = propose (state, anchor, max);
  guint best = 0, end = 0;

  g_array_append_val (tokens, anchor);
  for (guint i = 1; i < tokens->len; i++)
    if (match (tokens, i) >= MAX (best, 1)) {
      best = match (tokens, i);
      end = i;
    }
  if (best < MIN_NGRAM) {
    g_assert_cmpuint (proposal.n_tokens, ==, 0);
    return;
  }
  for (guint i = end; best < COPY_LENGTH && *copied > 0 && i > *copied; i--)
    if (match (tokens, i) == best)
      end = i;
  if (best >= COPY_LENGTH)
    *copied = end;
  g_assert_cmpuint (proposal.n_tokens, ==, max);
  for (guint i = 0; i < max; i++) {
    g_assert_cmpint (proposal.tokens[i], ==,
                     g_array_index (tokens, gint32, end + i));
    g_array_append_val (tokens, proposal.tokens[i]);
  }
  g_assert_cmpuint (proposal.grade, <, RUNNEL_DRAFT_GRADES);
}

/* Feeding in pieces, truncating and forking at random, over few tokens, so
 * that chains are long but not beyond what is searched. */
static void
test_against_search (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  RunnelDraftState *state = state_new (MIN_NGRAM, MAX_NGRAM, 15);
  g_autoptr (GArray) fed = g_array_new (FALSE, FALSE, sizeof (gint32));
  guint copied = 0;

  for (guint round = 0; round < 2000; round++) {
    gint32 piece[8];
    const guint n = g_rand_int_range (rand, 0, 8);

    for (guint i = 0; i < n; i++)
      piece[i] = g_rand_int_range (rand, 0, 12);
    feed (state, piece, n);
    g_array_append_vals (fed, piece, n);
    check (state, fed, g_rand_int_range (rand, 0, 12),
           g_rand_int_range (rand, 1, 16), &copied);
    if (fed->len > 600 || (fed->len > 4 && g_rand_int_range (rand, 0, 4) == 0)) {
      const guint keep = fed->len > 600
                           ? 100
                           : g_rand_int_range (rand, fed->len / 2, fed->len);

      g_array_set_size (fed, keep);
      RUNNEL_DRAFT_STATE_GET_CLASS (state)->truncate (state, keep);
    }
    if (g_rand_int_range (rand, 0, 10) == 0) {
      RunnelDraftState *fork =
        RUNNEL_DRAFT_STATE_GET_CLASS (state)->fork (state);

      g_object_unref (state);
      state = fork;
    }
  }
  g_object_unref (state);
}

/* Two numbers a token and the heads of the chains, which are as many. */
static void
test_memory (void)
{
  RunnelDraftState *state = state_new (2, 8, 15);
  gint32 tokens[1000];

  for (guint round = 0; round < 100; round++) {
    for (guint i = 0; i < 1000; i++)
      tokens[i] = round * 1000 + i;
    feed (state, tokens, 1000);
  }
  g_assert_cmpuint (propose (state, 1, 15).n_tokens, ==, 0);
  g_assert_cmpuint (RUNNEL_DRAFT_STATE_GET_CLASS (state)->get_bytes (state),
                    <=, 100000 * 4 * 4);
  g_object_unref (state);
}

/* A text that repeats goes on repeating, beyond its end. */
static void
test_repeating (void)
{
  RunnelDraftState *state = state_new (2, 8, 15);
  const gint32 tokens[] = { 9, 1, 2, 3, 1, 2 };
  RunnelProposal proposal;

  feed (state, tokens, G_N_ELEMENTS (tokens));
  proposal = propose (state, 3, 15);
  g_assert_cmpuint (proposal.n_tokens, ==, 15);
  for (guint i = 0; i < 15; i++)
    g_assert_cmpint (proposal.tokens[i], ==, 1 + i % 3);
  g_object_unref (state);
}

/* A list is gone through from its beginning to its end: after a copy its next
 * lines are meant, not its last. */
static void
test_order (void)
{
  RunnelDraftState *state = state_new (1, 8, 15);
  const gint32 list[] = { 5, 10, 11, 12, 13, 5, 20, 21, 5, 30, 31, 7 };

  feed (state, list, G_N_ELEMENTS (list));
  g_assert_cmpint (propose (state, 5, 1).tokens[0], ==, 30);
  feed (state, list, 4);
  g_assert_cmpint (propose (state, 13, 1).tokens[0], ==, 5);
  feed (state, (gint32[]){ 13, 8 }, 2);
  g_assert_cmpint (propose (state, 5, 1).tokens[0], ==, 20);
  g_object_unref (state);
}

static void
test_refused (void)
{
  const guint bad[][3] = { { 0, 4, 8 },  { 5, 4, 8 },  { 2, 65, 8 },
                           { 65, 65, 8 }, { 2, 4, 0 }, { 2, 4, 16 } };

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (runnel_lookup_drafter_new (bad[i][0], bad[i][1], bad[i][2],
                                              &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_message ("seed %d", SEED);
  g_test_add_func ("/lookup/against-search", test_against_search);
  g_test_add_func ("/lookup/memory", test_memory);
  g_test_add_func ("/lookup/repeating", test_repeating);
  g_test_add_func ("/lookup/order", test_order);
  g_test_add_func ("/lookup/refused", test_refused);
  return g_test_run ();
}
