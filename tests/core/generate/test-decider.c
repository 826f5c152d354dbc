/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Decisions without a head on a two-layer model: the same bits alone and
 * beside other questions, with every number of threads, whatever the order of
 * the options, cold and cached; and equal to the definition, forwarded row by
 * row.
 */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "decision-fixture.h"
#include "error.h"
#include "generate/decision-private.h"
#include "generate/question-turn.h"
#include "model/engine-private.h"

static RunnelQuestion *
make_choice (const char *id, const char *instructions,
             const char *const *labels)
{
  g_autoptr (GError) error = NULL;
  RunnelQuestion *question = runnel_question_new (id,
      RUNNEL_QUESTION_TYPE_CHOICE, instructions, labels, NULL,
      g_strv_length ((char **) labels), &error);

  g_assert_no_error (error);
  return question;
}

/* Some begin with the same tokens. */
static const char *const labels[] = { "delivery", "payment of a bill", "fraud",
  "card", "card number", "a", "payment of a fee", "payment", NULL };
#define N_LABELS 8
static const char *const permuted[] = { "a", "payment of a fee", "fraud",
  "payment of a bill", "delivery", "card number", "payment", "card", NULL };

static GPtrArray *
one_question (const char *const *options)
{
  return decision_ask (RUNNEL_QUESTION_TYPE_CHOICE, "What is it about?",
      options, g_strv_length ((char **) options));
}

static RunnelDecider *
make_decider (RunnelEngine *engine, RunnelDecisionLayout layout)
{
  RunnelDecider *decider = decision_make_decider (engine, NULL);

  runnel_decider_set_layout (decider, layout);
  return decider;
}

static const RunnelDecisionLayout layouts[] = {
  RUNNEL_DECISION_LAYOUT_SHOWN, RUNNEL_DECISION_LAYOUT_HIDDEN,
  RUNNEL_DECISION_LAYOUT_STATIC,
};

static void
test_equality (DecisionFixture *f, gconstpointer data)
{
  for (guint l = 0; l < G_N_ELEMENTS (layouts); l++) {
    g_autoptr (RunnelDecider) decider = make_decider (f->engine, layouts[l]);
    g_autoptr (RunnelSequence) state
        = decision_read (decider, DECISION_TEXT, FALSE);
    g_autoptr (GPtrArray) questions = one_question (labels);
    g_autoptr (GPtrArray) turned = one_question (permuted);
    g_autoptr (RunnelDecisions) first
        = decision_decide (decider, state, questions);
    RunnelDecision *expected = runnel_decisions_get (first, 0);
    guint length = runnel_sequence_get_length (state);

    for (guint threads = 1; threads <= 4; threads *= 2)
      for (guint cached = 0; cached < 3; cached++) {
        g_autoptr (RunnelEngine) engine
            = decision_get_engine (f->model, threads);
        g_autoptr (RunnelDecider) other = make_decider (engine, layouts[l]);
        g_autoptr (RunnelSequence) again
            = decision_read (other, DECISION_TEXT, cached > 0);
        g_autoptr (RunnelDecisions) a
            = decision_decide (other, again, questions);
        g_autoptr (RunnelDecisions) b = decision_decide (other, again, turned);

        decision_assert_same (expected, runnel_decisions_get (a, 0));
        decision_assert_same (expected, runnel_decisions_get (b, 0));
      }
    g_assert_cmpuint (runnel_sequence_get_length (state), ==, length);
  }
}

/* Beside other questions, none of which it sees. */
static void
test_several (DecisionFixture *f, gconstpointer data)
{
  g_autoptr (RunnelDecider) decider
      = make_decider (f->engine, RUNNEL_DECISION_LAYOUT_SHOWN);
  g_autoptr (RunnelSequence) state
      = decision_read (decider, DECISION_TEXT, FALSE);
  g_autoptr (GPtrArray) one = one_question (labels);
  g_autoptr (GPtrArray) three = one_question (permuted);
  g_autoptr (RunnelDecisions) alone = decision_decide (decider, state, one);
  g_autoptr (RunnelDecisions) together = NULL;
  RunnelDecisionCost cost, cost_alone;

  g_ptr_array_insert (three, 0, make_choice ("before", "Why?", permuted));
  g_ptr_array_add (three, make_choice ("behind", "How?", labels));
  together = decision_decide (decider, state, three);
  g_assert_cmpuint (runnel_decisions_get_n (together), ==, 3);
  decision_assert_same (runnel_decisions_get (alone, 0),
      runnel_decisions_get (together, 1));
  runnel_decisions_get_cost (alone, &cost_alone);
  runnel_decisions_get_cost (together, &cost);
  g_assert_cmpuint (cost.state_tokens, ==,
      runnel_sequence_get_length (state));
  g_assert_cmpuint (cost.rows, >, 2 * cost_alone.rows);
  /* The prior of the second question was there. */
  g_assert_cmpuint (cost.prior_rows, <, 3 * cost_alone.prior_rows);
}

/* ---- The definition ------------------------------------------------------ */

static double
log_probability (const float *logits, guint n, gint32 token)
{
  double sum = 0;

  for (guint i = 0; i < n; i++)
    sum += exp ((double) logits[i] - logits[token]);
  return -log (sum);
}

/* Of a label behind a prompt, row by row. */
static double
score_slowly (RunnelSequence *prompt, const RunnelTokenRun *label)
{
  RunnelEngine *engine = runnel_sequence_get_engine (prompt);
  guint n = runnel_model_get_n_vocab (runnel_engine_get_model (engine));
  g_autoptr (RunnelSequence) fork = runnel_sequence_fork (prompt);
  g_autofree float *logits = g_new (float, n);
  g_autoptr (GError) error = NULL;
  double sum = 0;

  runnel_sequence_compute_logits (fork, logits, n, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < label->n; i++) {
    sum += log_probability (logits, n, label->tokens[i]);
    runnel_sequence_forward (fork, &label->tokens[i], 1, logits, n, &error);
    g_assert_no_error (error);
  }
  return sum;
}

/* Where the state comes last it is read behind the options. */
static RunnelSequence *
ask_slowly (RunnelSequence *state, const RunnelQuestionTurn *turn,
            RunnelDecisionLayout layout)
{
  gboolean is_static = layout == RUNNEL_DECISION_LAYOUT_STATIC;
  g_autoptr (RunnelSequence) asked = is_static ?
      runnel_sequence_new (runnel_sequence_get_engine (state), 0, NULL)
      : runnel_sequence_fork (state);
  g_autoptr (GPtrArray) forks = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GError) error = NULL;
  RunnelSequence *joined;

  decision_append_slowly (asked, turn->before.tokens, turn->before.n);
  for (guint i = 0; i < turn->n; i++) {
    g_ptr_array_add (forks, runnel_sequence_fork (asked));
    decision_append_slowly (forks->pdata[i], turn->shown[i].tokens,
        turn->shown[i].n);
  }
  joined = layout == RUNNEL_DECISION_LAYOUT_HIDDEN ? g_object_ref (asked)
      : runnel_sequence_join ((RunnelSequence **) forks->pdata, forks->len,
          runnel_sequence_get_length (asked), &error);
  g_assert_no_error (error);
  if (is_static) {
    gsize n;
    const gint32 *tokens = runnel_sequence_get_tokens (state, &n);

    decision_append_slowly (joined, turn->closes.tokens, turn->closes.n);
    decision_append_slowly (joined, tokens, n);
    decision_append_slowly (joined, turn->replies.tokens, turn->replies.n);
    return joined;
  }
  decision_append_slowly (joined, turn->after.tokens, turn->after.n);
  return joined;
}

static void
test_definition (DecisionFixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) questions = one_question (labels);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelQuestionTurn) turn
      = runnel_question_turn_new (f->model, questions->pdata[0], &error);

  g_assert_no_error (error);
  for (guint l = 0; l < G_N_ELEMENTS (layouts); l++) {
    g_autoptr (RunnelDecider) decider = make_decider (f->engine, layouts[l]);
    g_autoptr (RunnelSequence) state
        = decision_read (decider, DECISION_TEXT, FALSE);
    g_autoptr (RunnelSequence) prompt = ask_slowly (state, turn, layouts[l]);
    g_autoptr (RunnelDecisions) decisions = NULL;

    runnel_decider_set_use_prior (decider, FALSE);
    runnel_decider_set_length_exponent (decider, 1);
    decisions = decision_decide (decider, state, questions);
    for (guint i = 0; i < turn->n; i++) {
      int option = decision_find_label (questions->pdata[0],
          ((const char *[]) { "a", "card", "card number", "delivery", "fraud",
              "payment", "payment of a bill", "payment of a fee" })[i]);
      double expected = score_slowly (prompt, &turn->labels[i])
          / turn->labels[i].n;

      g_assert_cmpfloat_with_epsilon (expected, runnel_decision_get_logit
          (runnel_decisions_get (decisions, 0), option), 1e-6);
    }
  }
}

/* The prior is the mean over the texts: of one text twice it is that of the
 * text, and behind that text all options are equal then. */
static void
test_prior_texts (DecisionFixture *f, gconstpointer data)
{
  static const char *const once[] = { DECISION_TEXT, NULL };
  static const char *const twice[] = { DECISION_TEXT, "", DECISION_TEXT, NULL };
  static const char *const nothing[] = { "", NULL };
  g_autoptr (RunnelDecider) decider
      = make_decider (f->engine, RUNNEL_DECISION_LAYOUT_HIDDEN);
  g_autoptr (RunnelSequence) state
      = decision_read (decider, DECISION_TEXT, FALSE);
  g_autoptr (GPtrArray) questions = one_question (labels);
  g_autoptr (RunnelDecisions) first
      = decision_decide (decider, state, questions);
  g_autoptr (RunnelDecisions) again = NULL;
  const char *const *const texts[] = { once, twice };
  RunnelDecisionCost cost, cost_again;

  for (guint k = 0; k < G_N_ELEMENTS (texts); k++) {
    g_autoptr (RunnelDecisions) equal = NULL;

    runnel_decider_set_prior_texts (decider, texts[k]);
    equal = decision_decide (decider, state, questions);
    for (guint i = 0; i < N_LABELS; i++)
      g_assert_cmpfloat (runnel_decision_get_probability
          (runnel_decisions_get (equal, 0), i), ==, 1.0 / N_LABELS);
    runnel_decisions_get_cost (equal, &cost_again);
    runnel_decisions_get_cost (first, &cost);
    g_assert_cmpuint (cost_again.prior_rows, >, cost.prior_rows * (k + 1));
  }
  g_assert_cmpuint (
      g_strv_length ((char **) runnel_decider_get_prior_texts (decider)), ==,
      2);
  runnel_decider_set_prior_texts (decider, nothing);
  g_assert_null (runnel_decider_get_prior_texts (decider));
  again = decision_decide (decider, state, questions);
  decision_assert_same (runnel_decisions_get (first, 0),
      runnel_decisions_get (again, 0));
}

/* Two states are told apart, the prior and the length count. */
static void
test_settings (DecisionFixture *f, gconstpointer data)
{
  g_autoptr (RunnelDecider) decider
      = make_decider (f->engine, RUNNEL_DECISION_LAYOUT_HIDDEN);
  g_autoptr (RunnelSequence) state
      = decision_read (decider, DECISION_TEXT, FALSE);
  g_autoptr (RunnelSequence) nothing = decision_read (decider, "N/A", FALSE);
  g_autoptr (GPtrArray) questions = one_question (labels);
  g_autoptr (RunnelDecisions) first
      = decision_decide (decider, state, questions);
  g_autoptr (RunnelDecisions) hot = NULL, empty = NULL;
  RunnelDecision *a = runnel_decisions_get (first, 0), *b;
  double sum = 0;

  for (guint i = 0; i < N_LABELS; i++)
    sum += runnel_decision_get_probability (a, i);
  g_assert_cmpfloat_with_epsilon (sum, 1, 1e-12);
  g_assert_true (isnan (runnel_decision_get_abstain (a)));
  runnel_decider_set_temperature (decider, RUNNEL_QUESTION_TYPE_CHOICE, 50);
  hot = decision_decide (decider, state, questions);
  b = runnel_decisions_get (hot, 0);
  g_assert_cmpfloat (runnel_decision_get_entropy (b), >,
      runnel_decision_get_entropy (a));
  g_assert_cmpfloat (runnel_decision_get_confidence (b), <,
      runnel_decision_get_confidence (a));
  /* A text that says nothing is its own prior: all options are equal, and
   * the first in canonical order wins. */
  empty = decision_decide (decider, nothing, questions);
  b = runnel_decisions_get (empty, 0);
  for (guint i = 0; i < N_LABELS; i++)
    g_assert_cmpfloat (runnel_decision_get_probability (b, i), ==,
        1.0 / N_LABELS);
  g_assert_cmpint (runnel_decision_get_choice (b), ==, 5);
  g_assert_cmpfloat_with_epsilon (runnel_decision_get_confidence (b), 0, 1e-12);
}

static void
test_types (DecisionFixture *f, gconstpointer data)
{
  g_autoptr (RunnelDecider) decider
      = make_decider (f->engine, RUNNEL_DECISION_LAYOUT_SHOWN);
  g_autoptr (RunnelSequence) state
      = decision_read (decider, DECISION_TEXT, FALSE);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) questions = runnel_question_parse_json (
      "{\"questions\":{\"u\":{\"type\":\"yesno\",\"instructions\":\"Urgent?\","
      "\"criteria\":{\"yes\":\"now\"}},\"s\":{\"type\":\"score\","
      "\"instructions\":\"Warm?\",\"criteria\":[\"low\",\"mid\",\"high\"]}}}",
      -1, "test", &error);
  g_autoptr (RunnelDecisions) decisions = NULL;
  g_autofree char *json = NULL;
  double level;

  g_assert_no_error (error);
  decisions = decision_decide (decider, state, questions);
  level = runnel_decision_get_level (runnel_decisions_get (decisions, 1));
  g_assert_cmpfloat (level, >, 0);
  g_assert_cmpfloat (level, <, 2);
  json = runnel_decisions_to_json (decisions);
  g_assert_true (g_str_has_prefix (json,
      "{\"answers\":{\"u\":{\"type\":\"yesno\",\"yesno\":0."));
  g_assert_nonnull (strstr (json, "\"s\":{\"type\":\"score\",\"score\":"));
  g_assert_nonnull (strstr (json, "\"abstain\":null"));
}

/* Options before the state are kept, within the cache's budget: the answers
 * are those of one who computes them anew. */
static void
test_static (DecisionFixture *f, gconstpointer data)
{
  const RunnelDecisionLayout layout = RUNNEL_DECISION_LAYOUT_STATIC;
  g_autoptr (RunnelDecider) decider = make_decider (f->engine, layout);
  g_autoptr (RunnelDecider) fresh = make_decider (f->engine, layout);
  g_autoptr (RunnelSequence) other = decision_read (decider, "hello", FALSE);
  g_autoptr (RunnelSequence) state
      = decision_read (decider, DECISION_TEXT, FALSE);
  g_autoptr (GPtrArray) questions = one_question (labels);
  g_autoptr (GPtrArray) turned = one_question (permuted);
  guint64 budget = runnel_engine_get_cache_budget (f->engine);
  g_autoptr (RunnelDecisions) warm
      = decision_decide (decider, other, questions);
  g_autoptr (RunnelDecisions) kept = decision_decide (decider, state, turned);
  g_autoptr (RunnelDecisions) expected
      = decision_decide (fresh, state, questions);
  g_autoptr (RunnelDecisions) again = NULL;
  RunnelDecisionCost cost, whole;

  decision_assert_same (runnel_decisions_get (expected, 0),
      runnel_decisions_get (kept, 0));
  runnel_decisions_get_cost (kept, &cost);
  runnel_decisions_get_cost (expected, &whole);
  g_assert_cmpuint (cost.rows, <, whole.rows - 20);
  g_assert_cmpuint (cost.prior_rows, ==, 0);
  runnel_engine_set_cache_budget (f->engine, 0);
  for (guint i = 0; i < 2; i++) {
    g_clear_pointer (&again, runnel_decisions_free);
    again = decision_decide (decider, state, questions);
    decision_assert_same (runnel_decisions_get (expected, 0),
        runnel_decisions_get (again, 0));
  }
  runnel_decisions_get_cost (again, &cost);
  g_assert_cmpuint (cost.rows, ==, whole.rows);
  runnel_engine_set_cache_budget (f->engine, budget);
}

/* The least budget that keeps the options of a question. */
static guint64
find_budget (DecisionFixture *f, RunnelSequence *state, GPtrArray *questions)
{
  gsize step = runnel_page_pool_page_bytes (runnel_engine_get_pool (f->engine));

  for (guint64 budget = step;; budget += step) {
    g_autoptr (RunnelDecider) decider
        = make_decider (f->engine, RUNNEL_DECISION_LAYOUT_STATIC);
    g_autoptr (RunnelDecisions) first = NULL, second = NULL;
    RunnelDecisionCost cost, again;

    runnel_engine_set_cache_budget (f->engine, budget);
    first = decision_decide (decider, state, questions);
    second = decision_decide (decider, state, questions);
    runnel_decisions_get_cost (first, &cost);
    runnel_decisions_get_cost (second, &again);
    if (again.rows < cost.rows)
      return budget;
  }
}

static guint64
get_kv_bytes (DecisionFixture *f)
{
  RunnelEngineStats stats;

  runnel_engine_get_stats (f->engine, &stats);
  return stats.kv_bytes;
}

/* Where two questions have room, a third one takes the place of one. */
static void
test_static_budget (DecisionFixture *f, gconstpointer data)
{
  static const char *const instructions[] = { "Why 1?", "Why 2?", "Why 3?" };
  g_autoptr (RunnelDecider) decider
      = make_decider (f->engine, RUNNEL_DECISION_LAYOUT_STATIC);
  g_autoptr (RunnelSequence) state
      = decision_read (decider, DECISION_TEXT, FALSE);
  guint64 default_budget = runnel_engine_get_cache_budget (f->engine);
  guint64 budget = 0, before = get_kv_bytes (f), one = 0;

  for (guint i = 0; i < G_N_ELEMENTS (instructions); i++) {
    g_autoptr (GPtrArray) questions = decision_ask (
        RUNNEL_QUESTION_TYPE_CHOICE, instructions[i], labels, N_LABELS);
    g_autoptr (RunnelDecisions) decisions = NULL;

    if (i == 0)
      budget = find_budget (f, state, questions);
    runnel_engine_set_cache_budget (f->engine, 2 * budget);
    decisions = decision_decide (decider, state, questions);
    if (i == 0)
      one = get_kv_bytes (f) - before;
  }
  g_assert_cmpuint (one, >, 0);
  g_assert_cmpuint (get_kv_bytes (f) - before, ==, 2 * one);
  runnel_engine_set_cache_budget (f->engine, default_budget);
}

/* ---- What is wrong ------------------------------------------------------- */

static void
test_too_long (DecisionFixture *f, gconstpointer data)
{
  g_autofree char *endless = g_strnfill (3000, 'x');
  const char *const options[] = { "short", endless, NULL };

  for (guint l = 0; l < G_N_ELEMENTS (layouts); l++) {
    g_autoptr (RunnelDecider) decider = make_decider (f->engine, layouts[l]);
    g_autoptr (RunnelSequence) state
        = decision_read (decider, DECISION_TEXT, FALSE);
    g_autoptr (GPtrArray) questions = one_question (options);
    g_autoptr (GError) error = NULL;

    g_assert_null (runnel_decider_decide (decider, state, -1, questions, NULL,
        &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CONTEXT_OVERFLOW);
    g_assert_nonnull (strstr (error->message, "question 'q'"));
    g_assert_nonnull (strstr (error->message, "xxxx"));
    g_assert_cmpuint (strlen (error->message), <, 500);
  }
}

/* As long as a batch and longer: in pieces, with the same result. */
static void
test_long (DecisionFixture *f, gconstpointer data)
{
  g_autofree char *fits = g_strnfill (500, 'x');
  const char *const options[] = { "short", fits, NULL };
  g_autoptr (RunnelDecider) decider
      = make_decider (f->engine, RUNNEL_DECISION_LAYOUT_SHOWN);
  g_autoptr (RunnelSequence) state
      = decision_read (decider, DECISION_TEXT, FALSE);
  g_autoptr (GPtrArray) questions = one_question (options);
  g_autoptr (RunnelDecisions) decisions
      = decision_decide (decider, state, questions);
  RunnelDecisionCost cost;

  runnel_decisions_get_cost (decisions, &cost);
  g_assert_cmpuint (cost.rows, >, 1000);
}

static void
test_cancelled (DecisionFixture *f, gconstpointer data)
{
  g_autoptr (RunnelDecider) decider
      = make_decider (f->engine, RUNNEL_DECISION_LAYOUT_SHOWN);
  g_autoptr (RunnelSequence) state
      = decision_read (decider, DECISION_TEXT, FALSE);
  g_autoptr (GPtrArray) questions = one_question (labels);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_cancellable_cancel (cancellable);
  g_assert_null (runnel_decider_decide (decider, state, -1, questions,
      cancellable, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED);
}

static void
test_mismatch (DecisionFixture *f, gconstpointer data)
{
  g_autoptr (RunnelDecider) decider
      = make_decider (f->engine, RUNNEL_DECISION_LAYOUT_SHOWN);
  g_autoptr (RunnelEngine) other = decision_get_engine (f->model, 2);
  g_autoptr (RunnelDecider) foreign
      = make_decider (other, RUNNEL_DECISION_LAYOUT_SHOWN);
  g_autoptr (RunnelSequence) state
      = decision_read (foreign, DECISION_TEXT, FALSE);
  g_autoptr (GPtrArray) questions = one_question (labels);
  g_autoptr (GPtrArray) none = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_decider_decide (decider, state, -1, questions, NULL,
      &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH);
  g_clear_error (&error);
  g_assert_null (runnel_decider_decide (foreign, state, -1, none, NULL,
      &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT);
  g_clear_error (&error);
  g_assert_null (runnel_decider_decide (foreign, state, 100000, questions,
      NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
}

/* ---- Scores -------------------------------------------------------------- */

static RunnelDecision *
decide_scores (const double *logits, double abstain, gboolean can_abstain,
               GError **error)
{
  static const char *const options[] = { "c", "a", "b", NULL };
  g_autoptr (RunnelQuestion) question = make_choice ("q", "Q", options);
  RunnelDecisionScores scores = { logits, can_abstain, abstain, 1, FALSE };

  return runnel_decision_new (question, &scores, error);
}

static void
test_scores (void)
{
  const double equal[] = { 3, 3, 3 };
  const double one[] = { -INFINITY, 700, -INFINITY };
  const double apart[] = { -1e300, 1e300, 0 };
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelDecision) a = decide_scores (equal, 0, FALSE, &error);
  g_autoptr (RunnelDecision) b = decide_scores (one, 0, FALSE, &error);
  g_autoptr (RunnelDecision) c = decide_scores (apart, 0, FALSE, &error);
  g_autoptr (RunnelDecision) d = decide_scores (equal, 3, TRUE, &error);

  g_assert_no_error (error);
  g_assert_cmpint (runnel_decision_get_choice (a), ==, 1);
  g_assert_cmpfloat (runnel_decision_get_probability (a, 0), ==, 1.0 / 3);
  g_assert_cmpint (runnel_decision_get_choice (b), ==, 1);
  g_assert_cmpfloat (runnel_decision_get_probability (b, 1), ==, 1);
  g_assert_cmpfloat (runnel_decision_get_confidence (b), ==, 1);
  g_assert_cmpint (runnel_decision_get_choice (c), ==, 1);
  g_assert_cmpint (runnel_decision_get_choice (d), ==, -1);
  g_assert_cmpfloat (runnel_decision_get_abstain (d), ==, 0.25);
}

static void
test_bad_scores (void)
{
  const double bad[][3] = {
    { 0, NAN, 0 }, { INFINITY, 0, 0 }, { -INFINITY, -INFINITY, -INFINITY },
  };
  const double good[] = { 1, 2, 3 };

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (decide_scores (bad[i], 0, FALSE, &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_BAD_LOGITS);
    g_assert_nonnull (strstr (error->message, "question 'q'"));
  }
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (decide_scores (good, i ? NAN : INFINITY, TRUE, &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_BAD_LOGITS);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, test) \
  g_test_add ("/decider/" name, DecisionFixture, NULL, \
      decision_fixture_set_up, test, decision_fixture_tear_down)
  ADD ("equality", test_equality);
  ADD ("several", test_several);
  ADD ("definition", test_definition);
  ADD ("static", test_static);
  ADD ("static-budget", test_static_budget);
  ADD ("prior-texts", test_prior_texts);
  ADD ("settings", test_settings);
  ADD ("types", test_types);
  ADD ("too-long", test_too_long);
  ADD ("long", test_long);
  ADD ("cancelled", test_cancelled);
  ADD ("mismatch", test_mismatch);
#undef ADD
  g_test_add_func ("/decider/scores", test_scores);
  g_test_add_func ("/decider/bad-scores", test_bad_scores);
  return g_test_run ();
}
