/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The loop with drafters against a scripted model: what a reply is, and how
 * much it may cost, whatever is guessed.
 */
#include <string.h>

#include "generate/lookup-drafter.h"
#include "scripted-drafter.h"
#include "scripted-model.h"

#define N_PROMPT 3
#define CONTEXT 64

/* "é" comes in two tokens. */
static const char *const pieces[] = { "a", "b", "\xc3", "\xa9", "END", "c" };
static const gint32 says[] = { 0, 1, 2, 3, 5, 0, 1, 2, 3, 0, 5, 1 };

typedef struct {
  ScriptedModel model;
  gint32 tokens[N_PROMPT + CONTEXT];
  GString *text;
  GArray *reply;             /* gint32 */
  RunnelFinishReason reason;
  RunnelDraftStats stats;
  guint n_tokens;            /* as the generation counts them */
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  memset (f, 0, sizeof *f);
  f->model = (ScriptedModel){ .pieces = pieces, .n_pieces = 6, .n_vocab = 6,
                              .stop_token = 4, .replies = says,
                              .n_replies = G_N_ELEMENTS (says) };
  for (guint i = 0; i < CONTEXT; i++)
    f->tokens[N_PROMPT + i] = says[i % G_N_ELEMENTS (says)];
  f->text = g_string_new (NULL);
  f->reply = g_array_new (FALSE, FALSE, sizeof (gint32));
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  scripted_model_clear (&f->model);
  g_string_free (f->text, TRUE);
  g_array_unref (f->reply);
}

static RunnelGenerationParams *
make_params (void)
{
  RunnelGenerationParams *params = runnel_generation_params_new ();

  params->sampler->temperature = 0;
  params->adaptive_drafts = FALSE;
  return params;
}

static RunnelGeneration *
start (Fixture *f, RunnelDrafter *drafter,
       const RunnelGenerationParams *params)
{
  RunnelSequence *sequence;
  RunnelGeneration *generation;

  scripted_model_clear (&f->model);
  sequence = scripted_sequence_new (&f->model, CONTEXT, f->tokens, N_PROMPT,
      N_PROMPT);
  if (drafter != NULL)
    runnel_sequence_attach (sequence, drafter, NULL);
  generation = runnel_generation_new (sequence, params, NULL);
  g_assert_nonnull (generation);
  g_string_truncate (f->text, 0);
  g_array_set_size (f->reply, 0);
  return generation;
}

/* Takes @generation; checks that its sequence is prompt and whole reply. */
static void
finish (Fixture *f, RunnelGeneration *generation)
{
  RunnelGenerationStep step = { 0 };
  const gint32 *tokens;
  gsize length;

  while (!step.finished) {
    g_assert_true (runnel_generation_next (generation, &step, NULL));
    g_array_append_vals (f->reply, step.tokens, step.n_tokens);
    g_string_append_len (f->text, step.text, step.text_length);
  }
  f->reason = runnel_generation_get_finish_reason (generation);
  f->n_tokens = runnel_generation_get_n_tokens (generation);
  runnel_generation_get_draft_stats (generation, &f->stats);
  tokens = runnel_sequence_get_tokens (
    runnel_generation_get_sequence (generation), &length);
  g_assert_cmpuint (length, <=, N_PROMPT + f->n_tokens);
  g_assert_cmpmem (tokens, length * sizeof *tokens, f->tokens,
                   length * sizeof *tokens);
  g_object_unref (generation);
}

static void
run (Fixture *f, RunnelDrafter *drafter, const RunnelGenerationParams *params)
{
  finish (f, start (f, drafter, params));
}

static RunnelDrafter *
right_drafter (Fixture *f, ScriptedDrafts *script, guint length)
{
  *script = (ScriptedDrafts){ .tokens = f->tokens,
                              .n_tokens = G_N_ELEMENTS (f->tokens),
                              .n_vocab = 6, .length = length,
                              .wrong_at = -1 };
  return scripted_drafter_new (script);
}

/* C21: exactly as many as asked, with every block size; no row in vain. */
static void
test_counts (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelGenerationParams) params = make_params ();

  for (gint max_tokens = -1; max_tokens <= CONTEXT; max_tokens++)
    for (guint length = 1; length <= RUNNEL_MAX_DRAFT; length += 3) {
      ScriptedDrafts script;
      g_autoptr (RunnelDrafter) drafter = right_drafter (f, &script, length);
      const guint room = CONTEXT - N_PROMPT;
      const guint expected =
        max_tokens < 0 ? room : MIN ((guint) max_tokens, room);

      params->max_tokens = max_tokens;
      run (f, drafter, params);
      g_assert_cmpuint (f->n_tokens, ==, expected);
      g_assert_cmpuint (f->reply->len, ==, expected);
      g_assert_cmpint (f->reason, ==, RUNNEL_FINISH_REASON_LENGTH);
      /* All but the last, and that one for who asks for the sequence. */
      g_assert_cmpuint (f->model.rows, ==, expected);
      g_assert_cmpuint (f->stats.accepted, ==, f->stats.proposed);
    }
}

/* C25: a stop token inside a block of right guesses. */
static void
test_stop_token (Fixture *f, gconstpointer data)
{
  static const gint32 ends[] = { 0, 1, 5, 4, 1, 5 };
  g_autoptr (RunnelGenerationParams) params = make_params ();

  f->model.replies = ends;
  f->model.n_replies = G_N_ELEMENTS (ends);
  for (guint i = 0; i < CONTEXT; i++)
    f->tokens[N_PROMPT + i] = ends[i % G_N_ELEMENTS (ends)];
  for (guint length = 0; length <= RUNNEL_MAX_DRAFT; length++) {
    ScriptedDrafts script;
    g_autoptr (RunnelDrafter) drafter = right_drafter (f, &script, length);

    run (f, drafter, params);
    g_assert_cmpstr (f->text->str, ==, "abc");
    g_assert_cmpuint (f->n_tokens, ==, 3);
    g_assert_cmpint (f->reason, ==, RUNNEL_FINISH_REASON_STOP);
    g_assert_cmpuint (f->model.n_cached, ==, N_PROMPT + 3);
  }
}

/* C29: stop strings over borders of tokens and of blocks, with text held back;
 * the same text and history as without drafts. */
static void
test_stop_strings (Fixture *f, gconstpointer data)
{
  static const char *const stops[][3] = {
    { "é", NULL }, { "cabé", NULL }, { "bé", "éca", NULL }, { "abéac", NULL },
    { "x", NULL }, { "éc", "a\n", NULL },
  };
  g_autoptr (RunnelGenerationParams) params = make_params ();

  params->max_tokens = 20;
  for (guint i = 0; i < G_N_ELEMENTS (stops); i++) {
    g_autofree char *text = NULL;
    guint n_tokens, n_cached;

    runnel_generation_params_set_stops (params, stops[i]);
    run (f, NULL, params);
    text = g_strdup (f->text->str);
    n_tokens = f->n_tokens;
    n_cached = f->model.n_cached;
    for (guint length = 1; length <= RUNNEL_MAX_DRAFT; length++) {
      ScriptedDrafts script;
      g_autoptr (RunnelDrafter) drafter = right_drafter (f, &script, length);

      script.wrong_at = i % 2 ? (gint) length / 2 : -1;
      run (f, drafter, params);
      g_assert_cmpstr (f->text->str, ==, text);
      g_assert_cmpuint (f->n_tokens, ==, n_tokens);
      if (f->reason == RUNNEL_FINISH_REASON_STOP)
        g_assert_cmpuint (f->model.n_cached, ==, n_cached);
    }
  }
}

/* Cancelled between two tokens of a block: what came stays, and no more
 * comes. */
static void
test_cancel (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelGenerationParams) params = make_params ();

  for (guint steps = 0; steps < 4; steps++) {
    ScriptedDrafts script;
    g_autoptr (RunnelDrafter) drafter = right_drafter (f, &script, 7);
    RunnelGeneration *generation = start (f, drafter, params);
    guint n_tokens;

    for (guint i = 0; i < steps; i++) {
      RunnelGenerationStep step;

      g_assert_true (runnel_generation_next (generation, &step, NULL));
      g_array_append_vals (f->reply, step.tokens, step.n_tokens);
    }
    n_tokens = runnel_generation_get_n_tokens (generation);
    runnel_generation_cancel (generation);
    finish (f, generation);
    g_assert_cmpint (f->reason, ==, RUNNEL_FINISH_REASON_CANCELLED);
    g_assert_cmpuint (f->n_tokens, ==, n_tokens);
    g_assert_cmpuint (n_tokens, ==, steps == 0 ? 0 : 8 * (steps - 1) + 1);
  }
}

/* Every distance to the context's end under a policy that shifts: the same
 * shifts, and the same reply. */
static void
test_shift (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelGenerationParams) params = make_params ();
  g_autofree gint32 *plain = NULL;
  guint shifts = 0;

  params->overflow_policy = RUNNEL_OVERFLOW_POLICY_SHIFT;
  params->n_keep = 2;
  params->max_tokens = 200;
  for (guint pass = 0; pass < 2; pass++) {
    g_autoptr (RunnelDrafter) drafter =
      pass > 0 ? runnel_lookup_drafter_new (2, 4, 15, NULL) : NULL;
    RunnelGeneration *generation = start (f, drafter, params);
    RunnelGenerationStep step = { 0 };

    while (!step.finished) {
      g_assert_true (runnel_generation_next (generation, &step, NULL));
      g_array_append_vals (f->reply, step.tokens, step.n_tokens);
    }
    g_assert_cmpuint (f->reply->len, ==, 200);
    runnel_generation_get_draft_stats (generation, &f->stats);
    g_object_unref (generation);
    if (pass == 0) {
      plain = g_memdup2 (f->reply->data, 200 * sizeof (gint32));
      shifts = f->model.shifts;
      g_assert_cmpuint (shifts, >, 0);
    } else {
      g_assert_cmpmem (f->reply->data, 200 * sizeof (gint32), plain,
                       200 * sizeof (gint32));
      g_assert_cmpuint (f->model.shifts, ==, shifts);
      g_assert_cmpuint (f->stats.accepted, >, 100);
    }
  }
}

/* By rejection, every token of a flat model is as likely as the others, with
 * drawn guesses and with fixed ones: 20,000 draws, chi-square, p > 0.001. */
static void
test_rejection (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelGenerationParams) params = make_params ();

  f->model.flat = TRUE;
  params->acceptance = RUNNEL_ACCEPTANCE_REJECTION;
  params->ignore_eos = TRUE;
  params->sampler->temperature = 1;
  params->sampler->top_k = 0;
  params->sampler->top_p = 1;
  params->sampler->min_p = 0;
  params->max_tokens = 50;
  for (guint n_candidates = 0; n_candidates <= 2; n_candidates += 2) {
    ScriptedDrafts script;
    g_autoptr (RunnelDrafter) drafter = right_drafter (f, &script, 7);
    guint counts[6] = { 0 }, accepted = 0;
    double chi = 0;

    script.n_candidates = n_candidates;
    for (guint i = 0; i < 400; i++) {
      RunnelGeneration *generation;
      RunnelGenerationStep step = { 0 };

      params->sampler->seed = i;
      generation = start (f, drafter, params);
      while (!step.finished) {
        g_assert_true (runnel_generation_next (generation, &step, NULL));
        for (gsize k = 0; k < step.n_tokens; k++)
          counts[step.tokens[k]]++;
      }
      runnel_generation_get_draft_stats (generation, &f->stats);
      accepted += f->stats.accepted;
      g_object_unref (generation);
    }
    for (guint k = 0; k < 6; k++)
      chi += (counts[k] - 20000 / 6.0) * (counts[k] - 20000 / 6.0) /
             (20000 / 6.0);
    g_test_message ("%u candidates: chi-square %.2f, %u guesses accepted",
                    n_candidates, chi, accepted);
    g_assert_cmpfloat (chi, <, 20.52);
    g_assert_cmpuint (accepted, >, 1000);
  }
}

/* A pass that fails with guesses is made without them. */
static void
test_failing_pass (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelGenerationParams) params = make_params ();
  ScriptedDrafts script;
  g_autoptr (RunnelDrafter) drafter = right_drafter (f, &script, 7);
  RunnelGeneration *generation = start (f, drafter, params);
  RunnelGenerationStep step;
  g_autoptr (GError) error = NULL;

  f->model.fail_at = 1;
  g_assert_true (runnel_generation_next (generation, &step, &error));
  g_assert_false (runnel_generation_next (generation, &step, &error));
  g_assert_nonnull (error);
  /* Eight rows were tried, then one. */
  g_assert_cmpuint (f->model.rows, ==, 9);
  g_assert_cmpint (runnel_generation_get_finish_reason (generation), ==,
                   RUNNEL_FINISH_REASON_ERROR);
  g_object_unref (generation);
}

#define ADD(name, function) \
  g_test_add ("/generation-drafts/" name, Fixture, NULL, set_up, function, \
              tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("counts", test_counts);
  ADD ("stop-token", test_stop_token);
  ADD ("stop-strings", test_stop_strings);
  ADD ("cancel", test_cancel);
  ADD ("shift", test_shift);
  ADD ("rejection", test_rejection);
  ADD ("failing-pass", test_failing_pass);
  return g_test_run ();
}
