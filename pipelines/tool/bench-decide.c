/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "bench-decide.h"

#include <stdio.h>

#include <runnel.h>

#include "json-output.h"
#include "loading.h"
#include "machine.h"
#include "report.h"
#include "samples.h"

#define N_OPTIONS 77
#define STATE_TOKENS 40
#define WORDS_IN_OPTION 7
/* Separate prompts that are measured; their time stands for all. */
#define N_SEPARATE 11

typedef struct {
  const Options *options;
  RunnelModel *model;
  RunnelEngine *engine;
  RunnelDecider *decider;
  GPtrArray *questions;      /* one */
  gint32 *tokens;            /* as many as the longest prompt has */
  guint rows;                /* of state, question and options together */
  guint forwarded;           /* of them: what options share counts once */
  guint question_rows;       /* behind the state, before the options */
  guint option_rows;         /* of all options */
  Samples decision, prompt, separate;   /* seconds, thread by thread in turn */
} Bench;

/* ---- What is decided ----------------------------------------------------- */

static char *
make_option (GRand *rand)
{
  static const char *const words[] = { "card", "payment", "account", "money",
    "bank", "transfer", "time", "day", "name", "phone", "change", "problem",
    "help", "new", "old", "wrong", "late", "lost", "open", "close" };
  GString *option = g_string_new (NULL);

  for (guint i = 0; i < WORDS_IN_OPTION; i++)
    g_string_append_printf (option, i ? " %s" : "%s",
        words[g_rand_int_range (rand, 0, G_N_ELEMENTS (words))]);
  return g_string_free (option, FALSE);
}

static GPtrArray *
ask (char **labels, guint n, GError **error)
{
  RunnelQuestion *question = runnel_question_new ("bench",
      RUNNEL_QUESTION_TYPE_CHOICE, "What is it about?",
      (const char *const *) labels, NULL, n, error);
  GPtrArray *questions;

  if (question == NULL)
    return NULL;
  questions = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (questions, question);
  return questions;
}

static gboolean
make_question (Bench *self, GError **error)
{
  g_autoptr (GRand) rand
      = g_rand_new_with_seed ((guint32) self->options->seed);
  g_autoptr (GPtrArray) labels = g_ptr_array_new_with_free_func (g_free);

  while (labels->len < N_OPTIONS) {
    char *option = make_option (rand);

    if (g_ptr_array_find_with_equal_func (labels, option, g_str_equal, NULL))
      g_free (option);
    else
      g_ptr_array_add (labels, option);
  }
  self->questions = ask ((char **) labels->pdata, labels->len, error);
  return self->questions != NULL;
}

/* A sequence of the first @n tokens, and how long it took. */
static RunnelSequence *
read_prompt (Bench *self, guint n, double *ret_seconds, GError **error)
{
  g_autoptr (RunnelSequence) sequence
      = runnel_sequence_new (self->engine, 0, error);
  gint64 started = g_get_monotonic_time ();

  if (sequence == NULL || !runnel_sequence_prefill (sequence, self->tokens, n,
          0, FALSE, NULL, NULL, NULL, NULL, error))
    return NULL;
  *ret_seconds = (g_get_monotonic_time () - started) / 1e6;
  return g_steal_pointer (&sequence);
}

/* ---- What is measured ---------------------------------------------------- */

static gboolean
measure_decision (Bench *self, GPtrArray *questions,
                  RunnelDecisionCost *ret_cost, double *ret, GError **error)
{
  double state_seconds;
  g_autoptr (RunnelSequence) state
      = read_prompt (self, STATE_TOKENS, &state_seconds, error);
  g_autoptr (RunnelDecisions) decisions = state ? runnel_decider_decide
      (self->decider, state, -1, questions, NULL, error) : NULL;

  if (decisions == NULL)
    return FALSE;
  runnel_decisions_get_cost (decisions, ret_cost);
  *ret = state_seconds + ret_cost->duration / 1e9;
  return TRUE;
}

/* A prompt of its own for an option: its rows, and logits for the option. */
static gboolean
measure_separate (Bench *self, float *logits, double *ret, GError **error)
{
  guint n_vocab = runnel_model_get_n_vocab (self->model);
  guint n = self->option_rows / N_OPTIONS;
  double seconds = 0, sum = 0;

  for (guint i = 0; i < N_SEPARATE; i++) {
    g_autoptr (RunnelSequence) prompt = read_prompt (self,
        STATE_TOKENS + self->question_rows, &seconds, error);
    gint64 started = g_get_monotonic_time ();

    if (prompt == NULL || !runnel_sequence_forward (prompt, self->tokens, n,
            logits, n * n_vocab, error))
      return FALSE;
    sum += seconds + (g_get_monotonic_time () - started) / 1e6;
  }
  *ret = sum / N_SEPARATE * N_OPTIONS;
  return TRUE;
}

/* Rows of the options of @questions, each for itself; −1 with an error. */
static int
count_option_rows (Bench *self, GPtrArray *questions, GError **error)
{
  RunnelQuestion *question = questions->pdata[0];
  RunnelTokenizer *tokenizer
      = runnel_model_get_tokenizer (self->model, error);
  int rows = 0;

  for (guint i = 0; i < runnel_question_get_n_options (question); i++) {
    gsize n = 0;
    g_autofree gint32 *tokens = runnel_tokenizer_encode (tokenizer,
        runnel_question_get_label (question, i), -1, FALSE, &n, error);

    if (tokens == NULL)
      return -1;
    rows += n - 1;
  }
  return rows;
}

/* The rows of a decision: the question's, which one with next to no options
 * tells, and those of the options. */
static gboolean
find_rows (Bench *self, GError **error)
{
  char *short_labels[] = { (char *) "a", (char *) "b" };
  g_autoptr (GPtrArray) plain
      = ask (short_labels, G_N_ELEMENTS (short_labels), error);
  int plain_rows = plain ? count_option_rows (self, plain, error) : -1;
  int option_rows = plain_rows >= 0 ?
      count_option_rows (self, self->questions, error) : -1;
  RunnelDecisionCost cost;
  double seconds;

  if (option_rows < 0
      || !measure_decision (self, plain, &cost, &seconds, error))
    return FALSE;
  self->question_rows = cost.rows - plain_rows;
  self->option_rows = option_rows;
  self->rows = STATE_TOKENS + self->question_rows + self->option_rows;
  if (!measure_decision (self, self->questions, &cost, &seconds, error))
    return FALSE;
  self->forwarded = STATE_TOKENS + cost.rows;
  return TRUE;
}

static gboolean
measure (Bench *self, guint repeats, GError **error)
{
  guint n_vocab = runnel_model_get_n_vocab (self->model);
  g_autofree float *logits = NULL;

  if (!find_rows (self, error))
    return FALSE;
  logits = g_new (float,
      (gsize) (self->option_rows / N_OPTIONS + 1) * n_vocab);
  for (guint i = 0; i < repeats; i++) {
    g_autoptr (RunnelSequence) prompt = NULL;
    RunnelDecisionCost cost;
    double decision, whole, separate;

    report_progress ("Deciding");
    if (!measure_decision (self, self->questions, &cost, &decision, error))
      return FALSE;
    prompt = read_prompt (self, self->rows, &whole, error);
    if (prompt == NULL || !measure_separate (self, logits, &separate, error))
      return FALSE;
    samples_add (&self->decision, decision);
    samples_add (&self->prompt, whole);
    samples_add (&self->separate, separate);
  }
  report_progress_end ();
  return TRUE;
}

/* ---- What comes of it ---------------------------------------------------- */

static guint
get_separate_rows (const Bench *self)
{
  return N_OPTIONS * (STATE_TOKENS + self->question_rows)
      + self->option_rows;
}

static void
print_text (const Bench *self)
{
  double decision = samples_median (&self->decision);
  double by_prompt = decision / samples_median (&self->prompt);
  double faster = samples_median (&self->separate) / decision;
  double fewer = (double) get_separate_rows (self) / self->rows;
  g_autofree char *machine
      = machine_describe (runnel_engine_get_backend (self->engine));

  printf ("decision       %.2f /s, %.1f ms for a question of %d options behind "
      "%d tokens, %u rows, %u without those that options share\n",
      1 / decision, decision * 1e3, N_OPTIONS, STATE_TOKENS, self->rows,
      self->forwarded);
  printf ("by a prompt    %.3f × the time of a prompt of %u rows (%.1f ms)\n",
      by_prompt, self->rows, samples_median (&self->prompt) * 1e3);
  printf ("by %d prompts  %.2f × as fast, with %.2f × fewer rows: %.2f of it "
      "(from %d of them)\n", N_OPTIONS, faster, fewer, faster / fewer,
      N_SEPARATE);
  printf ("samples        %u, medians; decision %.1f to %.1f ms\n",
      samples_count (&self->decision), samples_min (&self->decision) * 1e3,
      samples_max (&self->decision) * 1e3);
  printf ("machine        %s; seed %" G_GUINT64_FORMAT "\n", machine,
      self->options->seed);
}

static void
add_samples (JsonOutput *json, const char *name, const Samples *samples)
{
  json_begin_object (json, name);
  samples_add_json (samples, json);
  json_end_object (json);
}

static void
print_json (const Bench *self)
{
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;

  json_begin_object (&json, NULL);
  json_add_uint (&json, "options", N_OPTIONS);
  json_add_uint (&json, "state_tokens", STATE_TOKENS);
  json_add_uint (&json, "rows", self->rows);
  json_add_uint (&json, "forwarded_rows", self->forwarded);
  json_add_uint (&json, "separate_rows", get_separate_rows (self));
  add_samples (&json, "decision_seconds", &self->decision);
  add_samples (&json, "prompt_seconds", &self->prompt);
  add_samples (&json, "separate_seconds", &self->separate);
  machine_add_json (&json, runnel_engine_get_backend (self->engine));
  json_end_object (&json);
  json_print (&json);
}

static gboolean
set_up (Bench *self, GError **error)
{
  guint n;

  self->model = loading_open_model (self->options, error);
  if (self->model == NULL || !make_question (self, error))
    return FALSE;
  self->engine = loading_get_engine (self->options, self->model, error);
  self->decider = self->engine ? runnel_decider_new (self->engine, NULL, error)
      : NULL;
  if (self->decider == NULL)
    return FALSE;
  runnel_decider_set_use_prior (self->decider, FALSE);
  n = runnel_model_get_context_length (self->model);
  self->tokens = g_new (gint32, n);
  for (guint i = 0; i < n; i++)
    self->tokens[i] = i % runnel_model_get_n_vocab (self->model);
  return TRUE;
}

int
bench_decide_run (const Options *options, guint repeats)
{
  Bench self = { .options = options };
  g_autoptr (GError) error = NULL;
  int status = EXIT_OK;

  samples_init (&self.decision);
  samples_init (&self.prompt);
  samples_init (&self.separate);
  if (!set_up (&self, &error) || !measure (&self, repeats, &error))
    status = report_error (error);
  else if (options->json)
    print_json (&self);
  else
    print_text (&self);
  samples_clear (&self.decision);
  samples_clear (&self.prompt);
  samples_clear (&self.separate);
  g_clear_pointer (&self.questions, g_ptr_array_unref);
  g_free (self.tokens);
  g_clear_object (&self.decider);
  g_clear_object (&self.engine);
  g_clear_object (&self.model);
  return status;
}
