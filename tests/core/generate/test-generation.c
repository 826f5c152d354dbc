/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "error.h"
#include "scripted-model.h"

/* Everything a reply gave. */
typedef struct {
  GString *text;
  GArray *tokens;
  guint steps;
} Reply;

static Reply *
reply_new (void)
{
  Reply *self = g_new0 (Reply, 1);

  self->text = g_string_new (NULL);
  self->tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
  return self;
}

static void
reply_free (Reply *self)
{
  g_string_free (self->text, TRUE);
  g_array_unref (self->tokens);
  g_free (self);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Reply, reply_free)

/* One step; whether there is another. */
static gboolean
step_once (RunnelGeneration *generation, Reply *reply)
{
  g_autoptr (GError) error = NULL;
  RunnelGenerationStep step;

  g_assert_true (runnel_generation_next (generation, &step, &error));
  g_assert_no_error (error);
  g_array_append_vals (reply->tokens, step.tokens, step.n_tokens);
  g_string_append_len (reply->text, step.text, step.text_length);
  g_assert_true (g_utf8_validate (step.text, step.text_length, NULL));
  g_assert_cmpuint (step.text_end, ==, reply->text->len);
  g_assert_cmpint (step.finished, ==,
                   runnel_generation_get_finish_reason (generation) !=
                     RUNNEL_FINISH_REASON_NONE);
  reply->steps++;
  return !step.finished;
}

static Reply *
run_to_end (RunnelGeneration *generation)
{
  Reply *reply = reply_new ();
  gsize n_tokens;

  while (step_once (generation, reply))
    g_assert_cmpuint (reply->steps, <, 10000);
  /* The end repeats, empty. */
  n_tokens = reply->tokens->len;
  g_assert_false (step_once (generation, reply));
  g_assert_cmpuint (reply->tokens->len, ==, n_tokens);
  return reply;
}

static RunnelGenerationParams *
greedy_params (void)
{
  RunnelGenerationParams *p = runnel_generation_params_new ();

  p->sampler->temperature = 0;
  return p;
}

static RunnelGeneration *
generation_new (ScriptedModel *model, guint context, guint n_prompt,
                const RunnelGenerationParams *params)
{
  g_autofree gint32 *prompt = g_new0 (gint32, n_prompt);
  g_autoptr (GError) error = NULL;
  RunnelGeneration *generation;

  scripted_model_clear (model);
  generation = runnel_generation_new (
    scripted_sequence_new (model, context, prompt, n_prompt, n_prompt), params,
    &error);
  g_assert_no_error (error);
  return generation;
}

static void
check_sequence (RunnelGeneration *generation, guint n_prompt,
                const gint32 *tokens, guint n)
{
  gsize length;
  const gint32 *all = runnel_sequence_get_tokens (
    runnel_generation_get_sequence (generation), &length);

  g_assert_cmpuint (length, ==, n_prompt + n);
  g_assert_cmpmem (all + n_prompt, n * sizeof *tokens, tokens,
                   n * sizeof *tokens);
}

static const char *const letters[] = { "a", "b", "c", "d", "<end>" };
static const gint32 abcd[] = { 0, 1, 2, 3 };
static const gint32 ab_end[] = { 0, 1, 4 };

/* C21 */
static void
test_max_tokens (void)
{
  ScriptedModel model = { .pieces = letters, .n_pieces = 5, .n_vocab = 5,
                          .stop_token = 4, .replies = abcd, .n_replies = 4 };
  g_autoptr (RunnelGenerationParams) p = greedy_params ();

  for (int max = -1; max < 9; max++) {
    g_autoptr (RunnelGeneration) g = NULL;
    g_autoptr (Reply) reply = NULL;
    const guint expected = max < 0 ? 29 : (guint) max;

    p->max_tokens = max;
    g = generation_new (&model, 32, 3, p);
    reply = run_to_end (g);
    g_assert_cmpuint (reply->tokens->len, ==, expected);
    g_assert_cmpuint (reply->text->len, ==, expected);
    g_assert_cmpuint (runnel_generation_get_n_tokens (g), ==, expected);
    g_assert_cmpuint (runnel_generation_get_n_prompt_tokens (g), ==, 3);
    g_assert_cmpint (runnel_generation_get_finish_reason (g), ==,
                     RUNNEL_FINISH_REASON_LENGTH);
    /* The last token comes with the end, and is not forwarded … */
    g_assert_cmpuint (reply->steps, ==, MAX (expected, 1) + 1);
    g_assert_cmpuint (model.rows, ==, expected > 0 ? expected - 1 : 0);
    /* … unless somebody wants to see it. */
    check_sequence (g, 3, (const gint32 *) reply->tokens->data, expected);
    g_assert_cmpuint (model.rows, ==, expected);
    g_clear_object (&g);
    scripted_model_clear (&model);
  }
}

static void
test_stop_token (void)
{
  ScriptedModel model = { .pieces = letters, .n_pieces = 5, .n_vocab = 5,
                          .stop_token = 4, .replies = ab_end,
                          .n_replies = 3 };
  g_autoptr (RunnelGenerationParams) p = greedy_params ();
  g_autoptr (RunnelGeneration) g = generation_new (&model, 32, 2, p);
  g_autoptr (Reply) reply = run_to_end (g);

  g_assert_cmpstr (reply->text->str, ==, "ab");
  g_assert_cmpint (runnel_generation_get_finish_reason (g), ==,
                   RUNNEL_FINISH_REASON_STOP);
  g_assert_cmpuint (runnel_generation_get_n_tokens (g), ==, 2);
  check_sequence (g, 2, ab_end, 2);
  g_assert_cmpuint (model.n_cached, ==, 4);
  scripted_model_clear (&model);
}

static void
test_own_stop_tokens (void)
{
  ScriptedModel model = { .pieces = letters, .n_pieces = 5, .n_vocab = 5,
                          .stop_token = 4, .replies = ab_end,
                          .n_replies = 3 };
  g_autoptr (RunnelGenerationParams) p = greedy_params ();
  g_autoptr (RunnelGeneration) ignoring = NULL, own = NULL;
  g_autoptr (Reply) long_reply = NULL, short_reply = NULL;

  p->ignore_eos = TRUE;
  p->max_tokens = 5;
  ignoring = generation_new (&model, 32, 2, p);
  long_reply = run_to_end (ignoring);
  g_assert_cmpstr (long_reply->text->str, ==, "abab"); /* it has no text */
  g_assert_cmpuint (long_reply->tokens->len, ==, 5);
  p->stop_tokens = g_new (gint32, 1);
  p->stop_tokens[0] = 1;
  p->n_stop_tokens = 1;
  own = generation_new (&model, 32, 2, p);
  short_reply = run_to_end (own);
  g_assert_cmpstr (short_reply->text->str, ==, "a");
  scripted_model_clear (&model);
}

/* C22, every distance to the limit under every policy. */
static void
check_limit (ScriptedModel *model, RunnelOverflowPolicy policy, guint n_prompt,
             int max_tokens)
{
  enum { CONTEXT = 64 };
  g_autoptr (RunnelGenerationParams) p = greedy_params ();
  g_autoptr (RunnelGeneration) g = NULL;
  g_autoptr (Reply) reply = NULL;
  g_autofree gint32 *prompt = g_new0 (gint32, n_prompt);
  g_autofree gint32 *cut = NULL;
  RunnelPromptFit fit;
  gsize n_cut;
  guint expected, fits = n_prompt;

  p->overflow_policy = policy;
  p->max_tokens = max_tokens;
  p->n_keep = 4;
  if (!runnel_overflow_policy_fit_prompt (policy, p->n_keep, CONTEXT, prompt,
                                          n_prompt, &fit, &cut, &n_cut, NULL))
    return;
  if (fit == RUNNEL_PROMPT_FIT_NOTHING)
    return;
  if (fit == RUNNEL_PROMPT_FIT_CUT)
    fits = (guint) n_cut;
  g = generation_new (model, CONTEXT, fits, p);
  reply = run_to_end (g);
  expected = (guint) max_tokens;
  if (policy != RUNNEL_OVERFLOW_POLICY_SHIFT)
    expected = MIN (expected, CONTEXT - fits);
  g_assert_cmpuint (reply->tokens->len, ==, expected);
  for (guint i = 0; i < expected; i++)
    g_assert_cmpint (g_array_index (reply->tokens, gint32, i), ==,
                     abcd[i % 4]);
  g_assert_cmpint (runnel_generation_get_finish_reason (g), ==,
                   RUNNEL_FINISH_REASON_LENGTH);
  /* No token evaluated twice. */
  g_assert_cmpuint (model->rows, ==, expected > 0 ? expected - 1 : 0);
  g_assert_cmpint (model->shifts > 0, ==, fits + model->rows > CONTEXT);
  runnel_generation_get_sequence (g);
  g_assert_cmpuint (model->rows, ==, expected);
}

static void
test_limits (void)
{
  ScriptedModel model = { .pieces = letters, .n_pieces = 5, .n_vocab = 5,
                          .stop_token = 4, .replies = abcd, .n_replies = 4 };

  for (int policy = 0; policy <= RUNNEL_OVERFLOW_POLICY_STOP; policy++)
    for (guint n_prompt = 1; n_prompt <= 70; n_prompt++)
      for (int max_tokens = 0; max_tokens <= 70; max_tokens++)
        check_limit (&model, (RunnelOverflowPolicy) policy, n_prompt,
                     max_tokens);
  scripted_model_clear (&model);
}

static void
test_many_shifts (void)
{
  ScriptedModel model = { .pieces = letters, .n_pieces = 5, .n_vocab = 5,
                          .stop_token = 4, .replies = abcd, .n_replies = 4 };
  g_autoptr (RunnelGenerationParams) p = greedy_params ();
  g_autoptr (RunnelGeneration) g = NULL;
  g_autoptr (Reply) reply = NULL;

  p->overflow_policy = RUNNEL_OVERFLOW_POLICY_SHIFT;
  p->max_tokens = 1000;
  p->n_keep = 47; /* the most there can be of 64 */
  g = generation_new (&model, 64, 60, p);
  reply = run_to_end (g);
  g_assert_cmpuint (reply->tokens->len, ==, 1000);
  g_assert_cmpuint (model.shifts, >, 50);
  g_clear_object (&g);
  p->n_keep = 48;
  g_assert_null (runnel_generation_new (
    scripted_sequence_new (&model, 64, abcd, 4, 4), p, NULL));
  scripted_model_clear (&model);
}

static const char *const words[] = { "ABC", " DEF", "G", "HI", "JKL", "X",
                                     "\xc3", "\xa9", "!" };

static void
check_stop (const gint32 *script, guint n_script, const char *stop,
            const char *text, guint n_out, guint n_kept, guint n_drawn)
{
  ScriptedModel model = { .pieces = words, .n_pieces = 9, .n_vocab = 9,
                          .stop_token = -1, .replies = script,
                          .n_replies = n_script };
  g_autoptr (RunnelGenerationParams) p = greedy_params ();
  g_autoptr (RunnelGeneration) g = NULL;
  g_autoptr (Reply) reply = NULL;

  p->stops = g_strdupv ((char *[]){ (char *) stop, NULL });
  p->max_tokens = (gint) n_script;
  g = generation_new (&model, 32, 2, p);
  reply = run_to_end (g);
  g_assert_cmpstr (reply->text->str, ==, text);
  g_assert_cmpuint (reply->tokens->len, ==, n_out);
  g_assert_cmpuint (runnel_generation_get_n_tokens (g), ==, n_drawn);
  check_sequence (g, 2, script, n_kept);
  /* The cache got the same, but for a last token not forwarded by then. */
  g_assert_cmpuint (model.n_cached, <=, 2 + n_kept);
  g_assert_cmpuint (model.n_cached + 1, >=, 2 + n_kept);
  g_clear_object (&g);
  scripted_model_clear (&model);
}

/* C29: what the stop string cuts is in no history. */
static void
test_stop_strings (void)
{
  static const gint32 full[] = { 0, 1, 2, 3, 4 };
  static const gint32 missed[] = { 0, 1, 2, 3, 5 };
  static const gint32 accent[] = { 0, 6, 7, 8 };

  check_stop (full, 5, "DEFGHIJ", "ABC ", 2, 1, 5);
  check_stop (missed, 5, "DEFGHIJ", "ABC DEFGHIX", 5, 5, 5);
  check_stop (full, 4, "DEFGHIJ", "ABC DEFGHI", 4, 4, 4);
  check_stop (accent, 4, "\xc3\xa9", "ABC", 2, 1, 3);
  check_stop (accent, 4, "!", "ABC\xc3\xa9", 3, 3, 4);
}

/* C05: half a character at the limit gives one U+FFFD. */
static void
test_half_character (void)
{
  static const gint32 script[] = { 0, 6, 7 };
  ScriptedModel model = { .pieces = words, .n_pieces = 9, .n_vocab = 9,
                          .stop_token = -1, .replies = script,
                          .n_replies = 3 };
  g_autoptr (RunnelGenerationParams) p = greedy_params ();
  g_autoptr (RunnelGeneration) g = NULL;
  g_autoptr (Reply) reply = NULL;

  p->max_tokens = 2;
  g = generation_new (&model, 32, 2, p);
  reply = run_to_end (g);
  g_assert_cmpstr (reply->text->str, ==, "ABC\xef\xbf\xbd");
  g_assert_cmpuint (reply->tokens->len, ==, 2);
  check_sequence (g, 2, script, 2);
  g_clear_object (&g);
  scripted_model_clear (&model);
}

static void
test_cancel (void)
{
  static const gint32 script[] = { 0, 1, 2 };
  ScriptedModel model = { .pieces = words, .n_pieces = 9, .n_vocab = 9,
                          .stop_token = -1, .replies = script,
                          .n_replies = 3 };
  g_autoptr (RunnelGenerationParams) p = greedy_params ();
  g_autoptr (RunnelGeneration) g = NULL;
  g_autoptr (Reply) reply = reply_new ();

  p->stops = g_strdupv ((char *[]){ "DEFGHIJ", NULL });
  g = generation_new (&model, 32, 2, p);
  for (int i = 0; i < 3; i++)
    g_assert_true (step_once (g, reply));
  g_assert_cmpstr (reply->text->str, ==, "ABC ");
  runnel_generation_cancel (g);
  g_assert_false (step_once (g, reply));
  g_assert_cmpstr (reply->text->str, ==, "ABC DEFG"); /* what came stays */
  g_assert_cmpint (runnel_generation_get_finish_reason (g), ==,
                   RUNNEL_FINISH_REASON_CANCELLED);
  check_sequence (g, 2, script, 3);
  g_clear_object (&g);
  scripted_model_clear (&model);
}

static void
test_failures (void)
{
  ScriptedModel model = { .pieces = letters, .n_pieces = 5, .n_vocab = 5,
                          .stop_token = 4, .replies = abcd, .n_replies = 4,
                          .fail_at = 2 };
  g_autoptr (RunnelGenerationParams) p = greedy_params ();
  g_autoptr (RunnelGeneration) g = generation_new (&model, 32, 2, p);
  g_autoptr (Reply) reply = reply_new ();
  g_autoptr (GError) error = NULL;
  RunnelGenerationStep step;

  g_assert_true (step_once (g, reply));
  g_assert_true (step_once (g, reply));
  g_assert_false (runnel_generation_next (g, &step, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY);
  g_assert_cmpint (runnel_generation_get_finish_reason (g), ==,
                   RUNNEL_FINISH_REASON_ERROR);
  g_clear_error (&error);
  g_clear_object (&g);
  model.fail_at = 0;
  model.bad = TRUE;
  g = generation_new (&model, 32, 7, p);
  g_assert_false (runnel_generation_next (g, &step, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_BAD_LOGITS);
  g_assert_nonnull (strstr (error->message, "position 7"));
  g_clear_object (&g);
  scripted_model_clear (&model);
}

static void
test_refused (void)
{
  ScriptedModel model = { .pieces = letters, .n_pieces = 5, .n_vocab = 5,
                          .stop_token = 4, .replies = abcd, .n_replies = 4 };
  g_autoptr (RunnelGenerationParams) p = greedy_params ();
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_generation_new (
    scripted_sequence_new (&model, 32, NULL, 0, 0), p, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  g_clear_error (&error);
  p->prompt_length = 3;
  g_assert_null (runnel_generation_new (
    scripted_sequence_new (&model, 32, abcd, 2, 2), p, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  g_assert_nonnull (strstr (error->message, "prompt_length"));
}

/* A reply taken up in the middle goes on as it would have: noise by position,
 * penalties by what is prompt and what is reply (C20). Ids that pad the
 * vocabulary are never drawn, however good they look. */
static void
test_resume (void)
{
  enum { N = 20, PROMPT = 3 };
  ScriptedModel model = { .pieces = letters, .n_pieces = 5, .n_vocab = 40,
                          .stop_token = -1, .replies = abcd, .n_replies = 4,
                          .flat = TRUE };
  g_autoptr (RunnelGenerationParams) p = runnel_generation_params_new ();
  g_autoptr (RunnelGeneration) whole = NULL;
  g_autoptr (Reply) reply = NULL;
  gint32 tokens[PROMPT + N] = { 0 };

  p->max_tokens = N;
  p->sampler->frequency_penalty = 0.5;
  p->sampler->seed = 7;
  whole = generation_new (&model, 64, PROMPT, p);
  reply = run_to_end (whole);
  memcpy (tokens + PROMPT, reply->tokens->data, N * sizeof *tokens);
  for (guint done = 1; done < N; done++) {
    g_autoptr (RunnelGeneration) rest = NULL;
    g_autoptr (Reply) tail = NULL;

    p->prompt_length = PROMPT;
    p->max_tokens = (gint) (N - done);
    rest = runnel_generation_new (
      scripted_sequence_new (&model, 64, tokens, PROMPT + done, PROMPT), p,
      NULL);
    tail = run_to_end (rest);
    g_assert_cmpmem (tail->tokens->data, (N - done) * sizeof *tokens,
                     tokens + PROMPT + done, (N - done) * sizeof *tokens);
  }
  g_clear_object (&whole);
  scripted_model_clear (&model);
}

static void
test_logprobs (void)
{
  static const gint32 script[] = { 0, 1, 2, 3, 4 };
  ScriptedModel model = { .pieces = words, .n_pieces = 9, .n_vocab = 9,
                          .stop_token = -1, .replies = script,
                          .n_replies = 5 };
  g_autoptr (RunnelGenerationParams) p = greedy_params ();
  g_autoptr (RunnelGeneration) g = NULL;
  RunnelGenerationStep step;
  guint n = 0;

  p->stops = g_strdupv ((char *[]){ "DEFGHIX", NULL });
  p->n_top_logprobs = 2;
  p->max_tokens = 5;
  g = generation_new (&model, 32, 2, p);
  do {
    g_assert_true (runnel_generation_next (g, &step, NULL));
    for (gsize i = 0; i < step.n_tokens; i++, n++) {
      g_assert_cmpint (step.tokens[i], ==, script[n]);
      g_assert_cmpint (step.top[2 * i].token, ==, script[n]);
      g_assert_cmpfloat (step.top[2 * i].logprob, ==, step.logprobs[i]);
      g_assert_cmpfloat (step.top[2 * i + 1].logprob, <, step.logprobs[i]);
      g_assert_cmpfloat_with_epsilon (step.logprobs[i],
                                      -log (1 + 8 * exp (-20)), 1e-6);
    }
  } while (!step.finished);
  g_assert_cmpuint (n, ==, 5);
  g_clear_object (&g);
  scripted_model_clear (&model);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/generation/max-tokens", test_max_tokens);
  g_test_add_func ("/generation/stop-token", test_stop_token);
  g_test_add_func ("/generation/own-stop-tokens", test_own_stop_tokens);
  g_test_add_func ("/generation/limits", test_limits);
  g_test_add_func ("/generation/many-shifts", test_many_shifts);
  g_test_add_func ("/generation/stop-strings", test_stop_strings);
  g_test_add_func ("/generation/half-character", test_half_character);
  g_test_add_func ("/generation/cancel", test_cancel);
  g_test_add_func ("/generation/failures", test_failures);
  g_test_add_func ("/generation/refused", test_refused);
  g_test_add_func ("/generation/resume", test_resume);
  g_test_add_func ("/generation/logprobs", test_logprobs);
  return g_test_run ();
}
