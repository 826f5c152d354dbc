/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Decision heads: against NumPy (head-reference.py), the rows they read
 * against a prompt forwarded token by token, equality, and bad files.
 */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "decision-fixture.h"
#include "error.h"
#include "formats/converter.h"
#include "formats/decision-head-private.h"
#include "formats/verify.h"
#include "generate/head-prompt.h"
#include "generate/head-scores.h"
#include "model/engine-private.h"
#include "model/model-private.h"

#define H TINY_HEAD_WIDTH
#define K 5

static const TinyHead decision2 = { RUNNEL_DECISION_FORM_DECISION2 };
static const TinyHead isolated = { RUNNEL_DECISION_FORM_ISOLATED };

/* ---- Against NumPy ------------------------------------------------------- */

static void
assert_near (double value, double expected)
{
  g_assert_cmpfloat (fabs (value - expected), <=, 1e-5 * fabs (expected));
}

static void
test_reference (void)
{
  static const double expected[K] = { -43.7886193648, 5.89222659881,
    3.15341194702, 4.33399999648, -8.38129723648 };
  g_autoptr (RunnelDecisionHead) head = decision_make_head (&isolated);
  g_autofree float *candidates = NULL, *query = NULL;
  double logits[K], null_logit = NAN;
  guint32 state = 1;

  tiny_head_skip (&state);
  candidates = tiny_head_draw (&state, K * H, 8);
  query = tiny_head_draw (&state, H, 8);
  runnel_head_scores (head, candidates, K, query, logits, &null_logit);
  for (guint i = 0; i < K; i++)
    assert_near (logits[i], expected[i]);
  assert_near (null_logit, -0.374479904968);
}

/* ---- On a model ---------------------------------------------------------- */

static const char *const labels[] = { "delivery", "fraud", "a bill" };
static const char *const permuted[] = { "a bill", "delivery", "fraud" };

static GPtrArray *
ask (RunnelQuestionType type, const char *const *options, guint n)
{
  return decision_ask (type, "What is it?", options, n);
}

static RunnelDecisions *
decide (RunnelDecider *decider, GPtrArray *questions)
{
  g_autoptr (RunnelSequence) state
      = decision_read (decider, DECISION_TEXT, FALSE);

  return decision_decide (decider, state, questions);
}

static void
copy_hidden (RunnelSequence *sequence, float *row)
{
  memcpy (row, runnel_sequence_get_history (sequence)->hidden,
      H * sizeof (float));
}

static RunnelSequence *
new_sequence (DecisionFixture *f, const char *text)
{
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (f->model, NULL);
  g_autoptr (GError) error = NULL;
  RunnelSequence *sequence = runnel_sequence_new (f->engine, 0, &error);
  gsize n;
  g_autofree gint32 *tokens = runnel_tokenizer_encode (tokenizer, text, -1,
      FALSE, &n, &error);

  g_assert_no_error (error);
  decision_append_slowly (sequence, tokens, n);
  return sequence;
}

static void
read_isolated_slowly (DecisionFixture *f, const RunnelHeadPrompt *prompt,
                      float *hidden)
{
  g_autoptr (RunnelSequence) asked = new_sequence (f, DECISION_TEXT);
  g_autoptr (GPtrArray) forks = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (RunnelSequence) joined = NULL;
  g_autoptr (GError) error = NULL;

  decision_append_slowly (asked, prompt->before.tokens, prompt->before.n);
  for (guint i = 0; i < prompt->n; i++) {
    g_ptr_array_add (forks, runnel_sequence_fork (asked));
    decision_append_slowly (forks->pdata[i], prompt->options[i].tokens,
        prompt->options[i].n);
    copy_hidden (forks->pdata[i], hidden + i * H);
  }
  joined = runnel_sequence_join ((RunnelSequence **) forks->pdata, forks->len,
      runnel_sequence_get_length (asked), &error);
  g_assert_no_error (error);
  decision_append_slowly (joined, prompt->after.tokens, prompt->after.n);
  copy_hidden (joined, hidden + prompt->n * H);
}

static void
read_decision2_slowly (DecisionFixture *f, const RunnelHeadPrompt *prompt,
                       float *hidden)
{
  g_autoptr (RunnelSequence) sequence = new_sequence (f, "");

  decision_append_slowly (sequence, prompt->before.tokens, prompt->before.n);
  for (guint i = 0; i < prompt->n; i++) {
    decision_append_slowly (sequence, prompt->options[i].tokens,
        prompt->options[i].n);
    copy_hidden (sequence, hidden + i * H);
  }
  decision_append_slowly (sequence, prompt->after.tokens, prompt->after.n);
  copy_hidden (sequence, hidden + prompt->n * H);
}

static const TinyHead *const forms[] = { &decision2, &isolated };

static RunnelHeadPrompt *
make_prompt (DecisionFixture *f, RunnelDecisionHead *head,
             RunnelQuestion *question)
{
  g_autoptr (GError) error = NULL;
  RunnelHeadPrompt *prompt
      = runnel_decision_head_get_form (head) == RUNNEL_DECISION_FORM_ISOLATED ?
      runnel_head_prompt_new_isolated (head, f->model, question, &error) :
      runnel_head_prompt_new_decision2 (f->model, question, DECISION_TEXT,
          &error);

  g_assert_no_error (error);
  return prompt;
}

/* The rows that are read are those of the prompt, and the tied model's norm
 * weights are applied once. */
static void
test_rows (DecisionFixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) questions
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, labels, 3);
  RunnelCheckpoint *checkpoint = NULL;

  for (guint form = 0; form < G_N_ELEMENTS (forms); form++) {
    g_autoptr (RunnelDecisionHead) head = decision_make_head (forms[form]);
    g_autoptr (RunnelDecider) decider = decision_make_decider (f->engine, head);
    g_autoptr (RunnelDecisions) decisions = decide (decider, questions);
    RunnelDecision *decision = runnel_decisions_get (decisions, 0);
    g_autoptr (RunnelHeadPrompt) prompt
        = make_prompt (f, head, questions->pdata[0]);
    float hidden[4 * H];
    double logits[3], null_logit;
    RunnelDecisionCost cost;

    checkpoint = runnel_engine_get_weights (f->engine)->checkpoint;
    if (forms[form] == &isolated)
      read_isolated_slowly (f, prompt, hidden);
    else
      read_decision2_slowly (f, prompt, hidden);
    runnel_head_norm ((const float *) runnel_tensor_data
        (runnel_checkpoint_tensor (checkpoint, "output_norm.weight")), H,
        runnel_checkpoint_hyperparameters (checkpoint)->norm_epsilon, hidden,
        4);
    runnel_head_scores (head, hidden, 3, hidden + 3 * H, logits, &null_logit);
    for (guint i = 0; i < 3; i++) {
      double logit = runnel_decision_get_logit (decision,
          runnel_head_prompt_get_order (prompt, questions->pdata[0])[i]);

      g_assert_cmpmem (&logit, sizeof logit, &logits[i], sizeof logit);
    }
    runnel_decisions_get_cost (decisions, &cost);
    g_assert_cmpuint (cost.logits_rows, ==, 0);
    g_assert_cmpuint (cost.prior_rows, ==, 0);
  }
}

static void
test_equality (DecisionFixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) questions
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, labels, 3);
  g_autoptr (GPtrArray) turned
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, permuted, 3);

  for (guint form = 0; form < G_N_ELEMENTS (forms); form++) {
    g_autoptr (RunnelDecisionHead) head = decision_make_head (forms[form]);
    g_autoptr (RunnelDecider) decider = decision_make_decider (f->engine, head);
    g_autoptr (RunnelDecisions) first = decide (decider, questions);
    RunnelDecision *expected = runnel_decisions_get (first, 0);

    for (guint threads = 1; threads <= 4; threads *= 2) {
      g_autoptr (RunnelEngine) engine = decision_get_engine (f->model, threads);
      g_autoptr (RunnelDecider) other = decision_make_decider (engine, head);
      gboolean permutes = forms[form] == &isolated;
      g_autoptr (RunnelDecisions) again
          = decide (other, permutes ? turned : questions);

      for (guint i = 0; i < 3; i++)
        g_assert_cmpfloat (runnel_decision_get_probability (expected, i), ==,
            runnel_decision_get_probability (runnel_decisions_get (again, 0),
                permutes ? (i + 1) % 3 : i));
    }
  }
}

/* Abstaining and the temperature of a type are the head's. */
static void
test_isolated (DecisionFixture *f, gconstpointer data)
{
  g_autoptr (RunnelDecisionHead) head = decision_make_head (&isolated);
  g_autoptr (RunnelDecider) decider = decision_make_decider (f->engine, head);
  g_autoptr (GPtrArray) questions
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, labels, 3);
  g_autoptr (RunnelDecisions) decisions = decide (decider, questions);
  RunnelDecision *decision = runnel_decisions_get (decisions, 0);
  double sum = runnel_decision_get_abstain (decision), ratio;

  g_assert_true (runnel_decision_head_get_can_abstain (head));
  g_assert_cmpfloat (runnel_decider_get_temperature (decider,
      RUNNEL_QUESTION_TYPE_CHOICE), ==, 2);
  for (guint i = 0; i < 3; i++)
    sum += runnel_decision_get_probability (decision, i);
  g_assert_cmpfloat_with_epsilon (sum, 1, 1e-12);
  ratio = log (runnel_decision_get_probability (decision, 0)
      / runnel_decision_get_probability (decision, 1));
  g_assert_cmpfloat_with_epsilon (ratio,
      (runnel_decision_get_logit (decision, 0)
      - runnel_decision_get_logit (decision, 1)) / 2, 1e-9);
}

/* Options before the state are computed once; the answer is that of one who
 * has not kept them, and another than behind the state. */
static void
test_static (DecisionFixture *f, gconstpointer data)
{
  g_autoptr (RunnelDecisionHead) head = decision_make_head (&isolated);
  g_autoptr (RunnelDecider) plain = decision_make_decider (f->engine, head);
  g_autoptr (RunnelDecider) decider = decision_make_decider (f->engine, head);
  g_autoptr (RunnelDecider) fresh = decision_make_decider (f->engine, head);
  g_autoptr (GPtrArray) questions
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, labels, 3);
  g_autoptr (GPtrArray) turned
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, permuted, 3);
  g_autoptr (RunnelSequence) other = decision_read (decider, "hello", FALSE);
  g_autoptr (RunnelDecisions) behind = decide (plain, questions);
  g_autoptr (RunnelDecisions) warm = NULL, kept = NULL, expected = NULL;
  RunnelDecisionCost cost, whole;

  runnel_decider_set_layout (decider, RUNNEL_DECISION_LAYOUT_STATIC);
  runnel_decider_set_layout (fresh, RUNNEL_DECISION_LAYOUT_STATIC);
  warm = decision_decide (decider, other, questions);
  kept = decide (decider, turned);
  expected = decide (fresh, questions);
  decision_assert_same (runnel_decisions_get (expected, 0),
      runnel_decisions_get (kept, 0));
  g_assert_cmpfloat (
      runnel_decision_get_logit (runnel_decisions_get (expected, 0), 0), !=,
      runnel_decision_get_logit (runnel_decisions_get (behind, 0), 0));
  runnel_decisions_get_cost (kept, &cost);
  runnel_decisions_get_cost (expected, &whole);
  /* The state, and the deciding token. */
  g_assert_cmpuint (cost.rows, ==, cost.state_tokens + 1);
  g_assert_cmpuint (whole.rows, >, cost.rows + 20);
}

/* The texts of the form, and its offsets for scores. */
static void
test_decision2 (DecisionFixture *f, gconstpointer data)
{
  static const char *const yesno[] = { "yes", "no" };
  static const char expected[] = "\n<option>\n{\"description\":\"No\","
      "\"key\":\"false\"}\n</option>";
  TinyHead file = decision2;
  g_autoptr (RunnelDecisionHead) plain = decision_make_head (&decision2);
  g_autoptr (RunnelDecisionHead) biased = NULL;
  g_autoptr (GPtrArray) questions = ask (RUNNEL_QUESTION_TYPE_YESNO, yesno, 2);
  g_autoptr (GPtrArray) score = ask (RUNNEL_QUESTION_TYPE_SCORE, labels, 3);
  g_autoptr (RunnelHeadPrompt) prompt
      = make_prompt (f, plain, questions->pdata[0]);
  g_autoptr (RunnelDecider) a = decision_make_decider (f->engine, plain);
  g_autoptr (RunnelDecider) b = NULL;
  g_autoptr (RunnelDecisions) x = decide (a, score);
  g_autoptr (RunnelDecisions) y = NULL;
  g_autoptr (GBytes) text = NULL;
  gsize length;

  text = runnel_tokenizer_decode (
      runnel_model_get_tokenizer (f->model, NULL), prompt->options[0].tokens,
      prompt->options[0].n, FALSE, NULL);
  g_assert_cmpmem (g_bytes_get_data (text, &length), length, expected,
      strlen (expected));
  file.score_levels = 3;
  biased = decision_make_head (&file);
  b = decision_make_decider (f->engine, biased);
  y = decide (b, score);
  for (guint i = 0; i < 3; i++)
    g_assert_cmpfloat_with_epsilon (0.5 * i,
        runnel_decision_get_logit (runnel_decisions_get (y, 0), i)
        - runnel_decision_get_logit (runnel_decisions_get (x, 0), i), 1e-9);
}

/* ---- Written ------------------------------------------------------------- */

static char *
save_head (RunnelDecisionHead *head)
{
  char *path = g_build_filename (g_get_tmp_dir (), "runnel-saved-XXXXXX", NULL);
  g_autoptr (GError) error = NULL;

  g_close (g_mkstemp (path), NULL);
  runnel_decision_head_save (head, path, &error);
  g_assert_no_error (error);
  return path;
}

/* The model as a package, with what @head is, or what it comes with. */
static RunnelModel *
convert (const char *source, RunnelDecisionHead *head, RunnelPackageType type)
{
  g_autofree char *path
      = g_build_filename (g_get_tmp_dir (), "runnel-package-XXXXXX", NULL);
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) report = NULL;
  RunnelModel *model;
  gboolean has_head = FALSE;

  g_close (g_mkstemp (path), NULL);
  g_object_set (converter, "type", type, NULL);
  runnel_converter_set_head (converter, head);
  report = runnel_converter_convert (converter, source, path, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  g_assert_true (g_variant_lookup (report, "has_decision_head", "b",
      &has_head) && has_head);
  g_assert_true (runnel_verify_file (path, NULL, NULL, NULL, &error));
  model = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_assert_no_error (error);
  return model;
}

/* A head that is kept beside is the one that it was. */
static void
test_saved (DecisionFixture *f, gconstpointer data)
{
  TinyHead biased = decision2;
  const TinyHead *const files[] = { &decision2, &isolated, &biased };
  g_autoptr (GPtrArray) questions = ask (RUNNEL_QUESTION_TYPE_SCORE, labels, 3);

  biased.score_levels = 3;
  for (guint i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autoptr (RunnelDecisionHead) head = decision_make_head (files[i]);
    g_autofree char *path = save_head (head);
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelDecisionHead) saved
        = runnel_decision_head_open (path, &error);
    g_autoptr (RunnelDecider) a = decision_make_decider (f->engine, head);
    g_autoptr (RunnelDecider) b = decision_make_decider (f->engine, saved);
    g_autoptr (RunnelDecisions) x = decide (a, questions);
    g_autoptr (RunnelDecisions) y = decide (b, questions);

    g_unlink (path);
    g_assert_no_error (error);
    decision_assert_same (runnel_decisions_get (x, 0),
        runnel_decisions_get (y, 0));
    g_assert_cmpfloat (
        runnel_decision_head_get_temperature (head,
            RUNNEL_QUESTION_TYPE_CHOICE), ==,
        runnel_decision_head_get_temperature (saved,
            RUNNEL_QUESTION_TYPE_CHOICE));
  }
}

/* A package that carries a head decides as its model with the head beside, and
 * so does a package of that package; its tensors are never quantised. */
static void
test_attached (void)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autofree char *source = tiny_model_write (&tiny);
  g_autoptr (GPtrArray) questions
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, labels, 3);

  for (guint form = 0; form < G_N_ELEMENTS (forms); form++) {
    g_autoptr (RunnelDecisionHead) head = decision_make_head (forms[form]);
    g_autoptr (RunnelModel) first = convert (source, head,
        RUNNEL_PACKAGE_TYPE_AUTO);
    g_autoptr (RunnelModel) second = convert (runnel_model_get_path (first),
        NULL, RUNNEL_PACKAGE_TYPE_INT4);
    RunnelModel *const models[] = { first, second };

    for (guint i = 0; i < G_N_ELEMENTS (models); i++) {
      g_autoptr (RunnelEngine) engine = decision_get_engine (models[i], 1);
      g_autoptr (RunnelDecider) given = decision_make_decider (engine, head);
      g_autoptr (RunnelDecider) found = decision_make_decider (engine, NULL);
      g_autoptr (RunnelDecisions) x = decide (given, questions);
      g_autoptr (RunnelDecisions) y = decide (found, questions);
      g_autoptr (GVariant) description = runnel_model_describe (models[i]);
      g_autoptr (GVariant) says = g_variant_lookup_value (description,
          "decision_head", G_VARIANT_TYPE_VARDICT);
      const char *name;

      g_assert_nonnull (runnel_decider_get_head (found));
      decision_assert_same (runnel_decisions_get (x, 0),
          runnel_decisions_get (y, 0));
      g_assert_true (g_variant_lookup (says, "form", "&s", &name));
      g_assert_cmpstr (name, ==,
          forms[form] == &isolated ? "isolated" : "decision2");
    }
    g_unlink (runnel_model_get_path (first));
    g_unlink (runnel_model_get_path (second));
  }
  g_unlink (source);
}

/* A head that does not fit goes into no package, and one whose bytes changed
 * is named. */
static void
test_bad_attached (void)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autofree char *source = tiny_model_write (&tiny), *wide = NULL;
  g_autofree char *contents = NULL, *package = NULL;
  g_autoptr (RunnelDecisionHead) head = decision_make_head (&isolated);
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (RunnelModel) model
      = convert (source, head, RUNNEL_PACKAGE_TYPE_AUTO);
  const RunnelTensor *key = runnel_checkpoint_tensor
      (runnel_model_get_checkpoint (model), "decision.key.weight");
  g_autoptr (GError) error = NULL;
  gsize size;

  package = g_strdup (runnel_model_get_path (model));
  g_assert_true (g_file_get_contents (package, &contents, &size, NULL));
  contents[key->offset] ^= 1;
  g_assert_true (g_file_set_contents (package, contents, size, NULL));
  g_assert_false (runnel_verify_file (package, NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CORRUPT);
  g_assert_nonnull (strstr (error->message, "decision.key.weight"));
  g_clear_error (&error);
  tiny.n_embd = 128;
  wide = tiny_model_write (&tiny);
  runnel_converter_set_head (converter, head);
  g_assert_null (runnel_converter_convert (converter, wide, package, NULL,
      NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH);
  g_unlink (source);
  g_unlink (wide);
  g_unlink (package);
}

/* ---- What is wrong ------------------------------------------------------- */

static void
test_bad_files (void)
{
  const TinyHead cases[] = {
    { RUNNEL_DECISION_FORM_DECISION2, .left_out = "key.weight" },
    { RUNNEL_DECISION_FORM_DECISION2, .left_out = "scalar.weight" },
    { RUNNEL_DECISION_FORM_ISOLATED, .left_out = "null.bias" },
    { RUNNEL_DECISION_FORM_ISOLATED, .left_out = "tokens" },
    { RUNNEL_DECISION_FORM_ISOLATED, .left_out = "type" },
    { RUNNEL_DECISION_FORM_DECISION2, .type = "pointer" },
    { RUNNEL_DECISION_FORM_DECISION2, .head_dim = 17 },
    { RUNNEL_DECISION_FORM_DECISION2, .not_finite = "query_mlp.weight" },
  };
  static const char *const says[] = { "key.weight", "scalar.weight",
    "null.bias", "decision.tokens", "decision.type", "pointer", "head_dim",
    "query_mlp.weight" };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path = tiny_head_write (&cases[i]);
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelDecisionHead) head
        = runnel_decision_head_open (path, &error);

    g_unlink (path);
    g_assert_null (head);
    g_assert_nonnull (error);
    g_assert_nonnull (strstr (error->message, says[i]));
    g_assert_nonnull (strstr (error->message, path));
  }
}

static void
test_misfits (DecisionFixture *f, gconstpointer data)
{
  const TinyHead far = { RUNNEL_DECISION_FORM_ISOLATED, .decide = 1 << 20 };
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autoptr (RunnelDecisionHead) head = decision_make_head (&far);
  g_autoptr (RunnelDecisionHead) fits = decision_make_head (&isolated);
  g_autoptr (RunnelModel) wide = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  g_autofree char *path = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_decider_new (f->engine, head, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH);
  g_clear_error (&error);
  tiny.n_embd = 128;
  path = tiny_model_write (&tiny);
  wide = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_unlink (path);
  engine = decision_get_engine (wide, 1);
  g_assert_null (runnel_decider_new (engine, fits, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH);
  g_assert_nonnull (strstr (error->message, "64"));
  g_assert_nonnull (strstr (error->message, "128"));
}

static void
test_too_long (DecisionFixture *f, gconstpointer data)
{
  g_autofree char *endless = g_strnfill (2 * DECISION_CONTEXT, 'x');
  const char *const options[] = { "short", endless };
  g_autoptr (GPtrArray) questions
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, options, 2);

  for (guint form = 0; form < G_N_ELEMENTS (forms); form++) {
    g_autoptr (RunnelDecisionHead) head = decision_make_head (forms[form]);
    g_autoptr (RunnelDecider) decider = decision_make_decider (f->engine, head);
    g_autoptr (RunnelSequence) state
        = runnel_decider_read (decider, DECISION_TEXT, -1, FALSE, NULL, NULL);
    g_autoptr (GError) error = NULL;

    g_assert_null (runnel_decider_decide (decider, state, -1, questions, NULL,
        &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CONTEXT_OVERFLOW);
    g_assert_nonnull (strstr (error->message, "xxxx"));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/decision-head/reference", test_reference);
  g_test_add_func ("/decision-head/bad-files", test_bad_files);
  g_test_add_func ("/decision-head/attached", test_attached);
  g_test_add_func ("/decision-head/bad-attached", test_bad_attached);
#define ADD(name, test) \
  g_test_add ("/decision-head/" name, DecisionFixture, NULL, \
      decision_fixture_set_up, test, decision_fixture_tear_down)
  ADD ("rows", test_rows);
  ADD ("equality", test_equality);
  ADD ("isolated", test_isolated);
  ADD ("decision2", test_decision2);
  ADD ("static", test_static);
  ADD ("saved", test_saved);
  ADD ("misfits", test_misfits);
  ADD ("too-long", test_too_long);
#undef ADD
  return g_test_run ();
}
