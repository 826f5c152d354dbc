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

#include "error.h"
#include "formats/decision-head-private.h"
#include "generate/decider.h"
#include "generate/head-prompt.h"
#include "generate/head-scores.h"
#include "model/engine-private.h"
#include "tiny-model.h"

#define H 64
#define D 16
#define K 5
#define TEXT "my card has not come, where is it?"

/* ---- Files --------------------------------------------------------------- */

/* The generator of head-reference.py. */
static float
draw (guint32 *state, double scale)
{
  *state = *state * 1664525u + 1013904223u;
  return (float) (((*state >> 8) / 16777216.0 - 0.5) * scale);
}

static float *
draw_many (guint32 *state, gsize n, double scale)
{
  float *values = g_new (float, n);

  for (gsize i = 0; i < n; i++)
    values[i] = draw (state, scale);
  return values;
}

/* What is to be wrong with a file. */
typedef struct {
  RunnelDecisionForm form;
  const char *left_out;      /* a tensor or key; or NULL */
  const char *type;          /* instead of the form's name; or NULL */
  guint head_dim;            /* instead of D; or 0 */
  const char *not_finite;    /* a tensor; or NULL */
  gint32 decide;             /* instead of a token; or 0 */
  guint score_levels;        /* with offsets; or 0 */
} File;

static const struct {
  const char *name;
  guint rows, columns;
  double scale;
  gboolean is_null;
} tensors[] = {
  { "candidate_norm.weight", 1, H, 4, FALSE },
  { "candidate_norm.bias", 1, H, 1, FALSE },
  { "query_norm.weight", 1, H, 4, FALSE },
  { "query_norm.bias", 1, H, 1, FALSE },
  { "key.weight", D, H, 2, FALSE },
  { "query.weight", D, H, 2, FALSE },
  { "candidate_mlp.weight", D, H, 1, FALSE },
  { "candidate_mlp.bias", 1, D, 1, FALSE },
  { "query_mlp.weight", D, H, 1, FALSE },
  { "scalar.weight", 1, D, 1, FALSE },
  { "null.weight", 1, H, 1, TRUE },
  { "null.bias", 1, 1, 1, TRUE },
};

static void
add_tensors (RunnelGgufWriter *writer, const File *file, guint32 *state)
{
  gboolean isolated = file->form == RUNNEL_DECISION_FORM_ISOLATED;

  for (guint i = 0; i < G_N_ELEMENTS (tensors); i++) {
    gsize n = (gsize) tensors[i].rows * tensors[i].columns;
    guint64 dims[2] = { tensors[i].columns, tensors[i].rows };
    float *values = draw_many (state, n, tensors[i].scale);
    g_autoptr (GBytes) data = NULL;
    g_autofree char *name = g_strconcat (isolated ? "decision."
        : "decision2.", tensors[i].name, NULL);

    if (g_strcmp0 (file->not_finite, tensors[i].name) == 0)
      values[n - 1] = NAN;
    data = g_bytes_new_take (values, n * sizeof (float));
    if (g_strcmp0 (file->left_out, tensors[i].name) != 0
        && (isolated || !tensors[i].is_null))
      runnel_gguf_writer_add_tensor (writer, name, RUNNEL_TENSOR_F32, dims,
          tensors[i].rows == 1 && tensors[i].columns != D ? 1 : 2, data);
  }
}

static void
add_keys (RunnelGgufWriter *writer, const File *file)
{
  const gint32 tokens[] = { TINY_FIRST_BYTE + 1, TINY_FIRST_BYTE + 2,
    TINY_FIRST_BYTE + 3, file->decide ? file->decide : TINY_FIRST_BYTE + 4 };

  runnel_gguf_writer_add_string (writer, "general.architecture", "llama", -1);
  if (g_strcmp0 (file->left_out, "type") != 0)
    runnel_gguf_writer_add_string (writer, "llama.decision.type",
        file->type ? file->type
        : file->form == RUNNEL_DECISION_FORM_ISOLATED ? "isolated"
        : "decision2", -1);
  runnel_gguf_writer_add_uint32 (writer, "llama.decision.head_dim",
      file->head_dim ? file->head_dim : D);
  for (guint i = 0; i < file->score_levels; i++) {
    g_autofree char *key = g_strdup_printf ("llama.decision.score_bias.%u.%u",
        file->score_levels, i);

    runnel_gguf_writer_add_float32 (writer, key, i * 0.5f);
  }
  if (file->form != RUNNEL_DECISION_FORM_ISOLATED)
    return;
  runnel_gguf_writer_add_boolean (writer, "llama.decision.null_option", TRUE);
  if (g_strcmp0 (file->left_out, "tokens") != 0)
    runnel_gguf_writer_add_int32s (writer, "llama.decision.tokens", tokens, 4);
  runnel_gguf_writer_add_float32 (writer, "llama.decision.temperature.choice",
      2);
}

static char *
write_head (const File *file)
{
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autoptr (GError) error = NULL;
  char *path = g_build_filename (g_get_tmp_dir (), "runnel-head-XXXXXX", NULL);
  guint32 state = 1;

  g_close (g_mkstemp (path), NULL);
  add_keys (writer, file);
  add_tensors (writer, file, &state);
  runnel_gguf_writer_save (writer, path, &error);
  g_assert_no_error (error);
  return path;
}

static RunnelDecisionHead *
make_head (const File *file)
{
  g_autofree char *path = write_head (file);
  g_autoptr (GError) error = NULL;
  RunnelDecisionHead *head = runnel_decision_head_open (path, &error);

  g_unlink (path);
  g_assert_no_error (error);
  return head;
}

static const File decision2 = { RUNNEL_DECISION_FORM_DECISION2 };
static const File isolated = { RUNNEL_DECISION_FORM_ISOLATED };

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
  g_autoptr (RunnelDecisionHead) head = make_head (&isolated);
  g_autofree float *candidates = NULL, *query = NULL;
  double logits[K], null_logit = NAN;
  guint32 state = 1;

  for (guint i = 0; i < G_N_ELEMENTS (tensors); i++)
    g_free (draw_many (&state, (gsize) tensors[i].rows * tensors[i].columns,
            1));
  candidates = draw_many (&state, K * H, 8);
  query = draw_many (&state, H, 8);
  runnel_head_scores (head, candidates, K, query, logits, &null_logit);
  for (guint i = 0; i < K; i++)
    assert_near (logits[i], expected[i]);
  assert_near (null_logit, -0.374479904968);
}

/* ---- On a model ---------------------------------------------------------- */

typedef struct {
  RunnelModel *model;
  RunnelEngine *engine;
} Fixture;

static RunnelEngine *
get_engine (RunnelModel *model, guint n_threads)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelBackend) backend
      = runnel_backend_get ("cpu", n_threads, NULL, &error);
  RunnelEngine *engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16,
      NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  return engine;
}

static void
set_up (Fixture *f, gconstpointer data)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autofree char *path = NULL;
  g_autoptr (GError) error = NULL;

  tiny.context_length = 1024;
  path = tiny_model_write (&tiny);
  f->model = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_assert_no_error (error);
  g_unlink (path);
  f->engine = get_engine (f->model, 1);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_clear_object (&f->engine);
  g_clear_object (&f->model);
}

static const char *const labels[] = { "delivery", "fraud", "a bill" };
static const char *const permuted[] = { "a bill", "delivery", "fraud" };

static GPtrArray *
ask (RunnelQuestionType type, const char *const *options, guint n)
{
  g_autoptr (GError) error = NULL;
  GPtrArray *questions = g_ptr_array_new_with_free_func (g_object_unref);

  g_ptr_array_add (questions, runnel_question_new ("q", type, "What is it?",
      options, NULL, n, &error));
  g_assert_no_error (error);
  return questions;
}

static RunnelDecider *
make_decider (RunnelEngine *engine, RunnelDecisionHead *head)
{
  g_autoptr (GError) error = NULL;
  RunnelDecider *decider = runnel_decider_new (engine, head, &error);

  g_assert_no_error (error);
  return decider;
}

static RunnelDecisions *
decide (RunnelDecider *decider, const char *text, GPtrArray *questions)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelSequence) state
      = runnel_decider_read (decider, text, -1, FALSE, NULL, &error);
  RunnelDecisions *decisions;

  g_assert_no_error (error);
  decisions = runnel_decider_decide (decider, state, -1, questions, NULL,
      &error);
  g_assert_no_error (error);
  return decisions;
}

/* One token after the other. */
static void
forward_slowly (RunnelSequence *sequence, const RunnelTokenRun *run)
{
  g_autoptr (GError) error = NULL;

  runnel_sequence_prefill (sequence, run->tokens, run->n, 1, FALSE, NULL,
      NULL, NULL, NULL, &error);
  g_assert_no_error (error);
}

static void
copy_hidden (RunnelSequence *sequence, float *row)
{
  memcpy (row, runnel_sequence_get_history (sequence)->hidden,
      H * sizeof (float));
}

static RunnelSequence *
new_sequence (Fixture *f, const char *text)
{
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (f->model, NULL);
  g_autoptr (GError) error = NULL;
  RunnelSequence *sequence = runnel_sequence_new (f->engine, 0, &error);
  RunnelTokenRun run;
  gsize n;

  run.tokens = runnel_tokenizer_encode (tokenizer, text, -1, FALSE, &n,
      &error);
  run.n = n;
  forward_slowly (sequence, &run);
  runnel_token_run_clear (&run);
  return sequence;
}

static void
read_isolated_slowly (Fixture *f, const RunnelHeadPrompt *prompt, float *hidden)
{
  g_autoptr (RunnelSequence) asked = new_sequence (f, TEXT);
  g_autoptr (GPtrArray) forks = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (RunnelSequence) joined = NULL;
  g_autoptr (GError) error = NULL;

  forward_slowly (asked, &prompt->before);
  for (guint i = 0; i < prompt->n; i++) {
    g_ptr_array_add (forks, runnel_sequence_fork (asked));
    forward_slowly (forks->pdata[i], &prompt->options[i]);
    copy_hidden (forks->pdata[i], hidden + i * H);
  }
  joined = runnel_sequence_join ((RunnelSequence **) forks->pdata, forks->len,
      runnel_sequence_get_length (asked), &error);
  g_assert_no_error (error);
  forward_slowly (joined, &prompt->after);
  copy_hidden (joined, hidden + prompt->n * H);
}

static void
read_decision2_slowly (Fixture *f, const RunnelHeadPrompt *prompt,
                       float *hidden)
{
  g_autoptr (RunnelSequence) sequence = new_sequence (f, "");

  forward_slowly (sequence, &prompt->before);
  for (guint i = 0; i < prompt->n; i++) {
    forward_slowly (sequence, &prompt->options[i]);
    copy_hidden (sequence, hidden + i * H);
  }
  forward_slowly (sequence, &prompt->after);
  copy_hidden (sequence, hidden + prompt->n * H);
}

static const File *const forms[] = { &decision2, &isolated };

static RunnelHeadPrompt *
make_prompt (Fixture *f, RunnelDecisionHead *head, RunnelQuestion *question)
{
  g_autoptr (GError) error = NULL;
  RunnelHeadPrompt *prompt
      = runnel_decision_head_get_form (head) == RUNNEL_DECISION_FORM_ISOLATED ?
      runnel_head_prompt_new_isolated (head, f->model, question, &error) :
      runnel_head_prompt_new_decision2 (f->model, question, TEXT, &error);

  g_assert_no_error (error);
  return prompt;
}

/* The rows that are read are those of the prompt, and the tied model's norm
 * weights are applied once. */
static void
test_rows (Fixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) questions
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, labels, 3);
  RunnelCheckpoint *checkpoint = NULL;

  for (guint form = 0; form < G_N_ELEMENTS (forms); form++) {
    g_autoptr (RunnelDecisionHead) head = make_head (forms[form]);
    g_autoptr (RunnelDecider) decider = make_decider (f->engine, head);
    g_autoptr (RunnelDecisions) decisions = decide (decider, TEXT, questions);
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
      double logit = runnel_decision_get_logit (decision, prompt->order[i]);

      g_assert_cmpmem (&logit, sizeof logit, &logits[i], sizeof logit);
    }
    runnel_decisions_get_cost (decisions, &cost);
    g_assert_cmpuint (cost.logits_rows, ==, 0);
    g_assert_cmpuint (cost.prior_rows, ==, 0);
  }
}

static void
test_equality (Fixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) questions
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, labels, 3);
  g_autoptr (GPtrArray) turned
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, permuted, 3);

  for (guint form = 0; form < G_N_ELEMENTS (forms); form++) {
    g_autoptr (RunnelDecisionHead) head = make_head (forms[form]);
    g_autoptr (RunnelDecider) decider = make_decider (f->engine, head);
    g_autoptr (RunnelDecisions) first = decide (decider, TEXT, questions);
    RunnelDecision *expected = runnel_decisions_get (first, 0);

    for (guint threads = 1; threads <= 4; threads *= 2) {
      g_autoptr (RunnelEngine) engine = get_engine (f->model, threads);
      g_autoptr (RunnelDecider) other = make_decider (engine, head);
      gboolean permutes = forms[form] == &isolated;
      g_autoptr (RunnelDecisions) again
          = decide (other, TEXT, permutes ? turned : questions);

      for (guint i = 0; i < 3; i++)
        g_assert_cmpfloat (runnel_decision_get_probability (expected, i), ==,
            runnel_decision_get_probability (runnel_decisions_get (again, 0),
                permutes ? (i + 1) % 3 : i));
    }
  }
}

/* Abstaining and the temperature of a type are the head's. */
static void
test_isolated (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelDecisionHead) head = make_head (&isolated);
  g_autoptr (RunnelDecider) decider = make_decider (f->engine, head);
  g_autoptr (GPtrArray) questions
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, labels, 3);
  g_autoptr (RunnelDecisions) decisions = decide (decider, TEXT, questions);
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

/* The texts of the form, and its offsets for scores. */
static void
test_decision2 (Fixture *f, gconstpointer data)
{
  static const char *const yesno[] = { "yes", "no" };
  static const char expected[] = "\n<option>\n{\"description\":\"No\","
      "\"key\":\"false\"}\n</option>";
  File file = decision2;
  g_autoptr (RunnelDecisionHead) plain = make_head (&decision2);
  g_autoptr (RunnelDecisionHead) biased = NULL;
  g_autoptr (GPtrArray) questions = ask (RUNNEL_QUESTION_TYPE_YESNO, yesno, 2);
  g_autoptr (GPtrArray) score = ask (RUNNEL_QUESTION_TYPE_SCORE, labels, 3);
  g_autoptr (RunnelHeadPrompt) prompt
      = make_prompt (f, plain, questions->pdata[0]);
  g_autoptr (RunnelDecider) a = make_decider (f->engine, plain);
  g_autoptr (RunnelDecider) b = NULL;
  g_autoptr (RunnelDecisions) x = decide (a, TEXT, score);
  g_autoptr (RunnelDecisions) y = NULL;
  g_autoptr (GBytes) text = NULL;
  gsize length;

  text = runnel_tokenizer_decode (
      runnel_model_get_tokenizer (f->model, NULL), prompt->options[0].tokens,
      prompt->options[0].n, FALSE, NULL);
  g_assert_cmpmem (g_bytes_get_data (text, &length), length, expected,
      strlen (expected));
  file.score_levels = 3;
  biased = make_head (&file);
  b = make_decider (f->engine, biased);
  y = decide (b, TEXT, score);
  for (guint i = 0; i < 3; i++)
    g_assert_cmpfloat_with_epsilon (0.5 * i,
        runnel_decision_get_logit (runnel_decisions_get (y, 0), i)
        - runnel_decision_get_logit (runnel_decisions_get (x, 0), i), 1e-9);
}

/* ---- What is wrong ------------------------------------------------------- */

static void
test_bad_files (void)
{
  const File cases[] = {
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
    g_autofree char *path = write_head (&cases[i]);
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
test_misfits (Fixture *f, gconstpointer data)
{
  const File far = { RUNNEL_DECISION_FORM_ISOLATED, .decide = 1 << 20 };
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autoptr (RunnelDecisionHead) head = make_head (&far);
  g_autoptr (RunnelDecisionHead) fits = make_head (&isolated);
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
  engine = get_engine (wide, 1);
  g_assert_null (runnel_decider_new (engine, fits, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH);
  g_assert_nonnull (strstr (error->message, "64"));
  g_assert_nonnull (strstr (error->message, "128"));
}

static void
test_too_long (Fixture *f, gconstpointer data)
{
  g_autofree char *endless = g_strnfill (2000, 'x');
  const char *const options[] = { "short", endless };
  g_autoptr (GPtrArray) questions
      = ask (RUNNEL_QUESTION_TYPE_CHOICE, options, 2);

  for (guint form = 0; form < G_N_ELEMENTS (forms); form++) {
    g_autoptr (RunnelDecisionHead) head = make_head (forms[form]);
    g_autoptr (RunnelDecider) decider = make_decider (f->engine, head);
    g_autoptr (RunnelSequence) state
        = runnel_decider_read (decider, TEXT, -1, FALSE, NULL, NULL);
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
#define ADD(name, test) \
  g_test_add ("/decision-head/" name, Fixture, NULL, set_up, test, tear_down)
  ADD ("rows", test_rows);
  ADD ("equality", test_equality);
  ADD ("isolated", test_isolated);
  ADD ("decision2", test_decision2);
  ADD ("misfits", test_misfits);
  ADD ("too-long", test_too_long);
#undef ADD
  return g_test_run ();
}
