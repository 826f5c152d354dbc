/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "decide-evaluate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "input.h"
#include "json-output.h"
#include "machine.h"
#include "report.h"

#define N_BINS 15
#define DEFAULT_INSTRUCTIONS "Which intent does the message express?"

typedef struct {
  char *text;
  char *label;
} Example;

typedef struct {
  guint n, n_right;
  double sum_confidence;
} Bin;

typedef struct {
  RunnelDecider *decider;
  GPtrArray *examples;       /* Example */
  GPtrArray *questions;      /* one */
  guint n, n_right;
  double nll, brier;         /* sums */
  guint64 rows;
  double seconds;            /* reading and deciding */
  Bin bins[N_BINS];
} Evaluation;

static void
example_free (gpointer data)
{
  Example *example = data;

  g_free (example->text);
  g_free (example->label);
  g_free (example);
}

/* ---- CSV (RFC 4180) ------------------------------------------------------ */

/* The next field and what ended it: ',', '\n' or '\0'. */
static char *
read_field (const char **at, char *ret_end)
{
  g_autoptr (GString) field = g_string_new (NULL);
  const char *p = *at;
  gboolean quoted = *p == '"';

  if (quoted)
    p++;
  while (*p != '\0') {
    if (quoted && *p == '"' && p[1] != '"') {
      quoted = FALSE;
      p++;
      continue;
    }
    if (!quoted && (*p == ',' || *p == '\n'))
      break;
    p += quoted && *p == '"';
    if (*p != '\r' || quoted)
      g_string_append_c (field, *p);
    p++;
  }
  *ret_end = quoted ? '"' : *p;
  *at = *p ? p + 1 : p;
  return g_string_free (g_steal_pointer (&field), FALSE);
}

/* A label as a model may read it. */
static void
make_readable (char *label)
{
  for (; *label != '\0'; label++)
    *label = *label == '_' ? ' ' : g_ascii_tolower (*label);
}

static gboolean
read_examples (Evaluation *self, const char *path, GError **error)
{
  g_autofree char *csv = NULL;
  const char *at;
  gsize length;
  guint line = 0;

  csv = input_read_file (path, &length, error);
  if (csv == NULL || !input_check_text (csv, length, path, error))
    return FALSE;
  for (at = csv; *at != '\0'; line++) {
    Example *example = g_new0 (Example, 1);
    char end;

    example->text = read_field (&at, &end);
    example->label = end == ',' ? read_field (&at, &end) : NULL;
    if (end == ',' || end == '"' || example->label == NULL) {
      example_free (example);
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
          "%s: record %u is not text,label%s", path, line + 1,
          end == '"' ? ": its quotation mark is never closed" : "");
      return FALSE;
    }
    make_readable (example->label);
    if (line > 0)
      g_ptr_array_add (self->examples, example);
    else
      example_free (example);
  }
  return TRUE;
}

/* ---- The question -------------------------------------------------------- */

static gint
compare_strings (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

static gboolean
make_question (Evaluation *self, const char *instructions, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) labels = g_ptr_array_new ();
  RunnelQuestion *question;

  for (guint i = 0; i < self->examples->len; i++) {
    Example *example = self->examples->pdata[i];

    if (g_hash_table_add (seen, example->label))
      g_ptr_array_add (labels, example->label);
  }
  g_ptr_array_sort (labels, compare_strings);
  question = runnel_question_new ("label", RUNNEL_QUESTION_TYPE_CHOICE,
      instructions ? instructions : DEFAULT_INSTRUCTIONS,
      (const char *const *) labels->pdata, NULL, labels->len, error);
  if (question == NULL)
    return FALSE;
  g_ptr_array_add (self->questions, question);
  return TRUE;
}

/* The first @n of a shuffled set stand for all of it. */
static void
shuffle (Evaluation *self, guint64 seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed ((guint32) seed);
  gpointer *items = self->examples->pdata;

  for (guint i = self->examples->len; i > 1; i--) {
    guint k = g_rand_int_range (rand, 0, i);
    gpointer item = items[k];

    items[k] = items[i - 1];
    items[i - 1] = item;
  }
}

/* ---- Answers ------------------------------------------------------------- */

static void
count (Evaluation *self, RunnelDecision *decision, const char *label)
{
  RunnelQuestion *question = runnel_decision_get_question (decision);
  int choice = runnel_decision_get_choice (decision);
  double confidence = choice < 0 ? runnel_decision_get_abstain (decision)
      : runnel_decision_get_probability (decision, choice);
  Bin *bin = &self->bins[MIN ((guint) (confidence * N_BINS), N_BINS - 1)];
  gboolean right = FALSE;

  for (guint i = 0; i < runnel_question_get_n_options (question); i++) {
    gboolean is_label = strcmp (runnel_question_get_label (question, i), label)
        == 0;
    double p = runnel_decision_get_probability (decision, i);

    self->brier += (p - is_label) * (p - is_label);
    if (is_label) {
      self->nll -= log (MAX (p, 1e-300));
      right = (int) i == choice;
    }
  }
  self->n++;
  self->n_right += right;
  bin->n++;
  bin->n_right += right;
  bin->sum_confidence += confidence;
}

static gboolean
decide_one (Evaluation *self, const Example *example, GError **error)
{
  gint64 started = g_get_monotonic_time ();
  g_autoptr (RunnelSequence) state = runnel_decider_read (self->decider,
      example->text, -1, TRUE, NULL, error);
  g_autoptr (RunnelDecisions) decisions = state ? runnel_decider_decide
      (self->decider, state, -1, self->questions, NULL, error) : NULL;
  RunnelDecisionCost cost;

  if (decisions == NULL)
    return FALSE;
  self->seconds += (g_get_monotonic_time () - started) / 1e6;
  runnel_decisions_get_cost (decisions, &cost);
  self->rows += cost.rows + cost.prior_rows + cost.state_tokens;
  count (self, runnel_decisions_get (decisions, 0), example->label);
  return TRUE;
}

static gboolean
run (Evaluation *self, guint n, GError **error)
{
  n = n ? MIN (n, self->examples->len) : self->examples->len;
  for (guint i = 0; i < n; i++) {
    g_autofree char *progress = g_strdup_printf ("%u of %u, %.1f %% right",
        i, n, self->n ? 100.0 * self->n_right / self->n : 0);

    report_progress (progress);
    if (!decide_one (self, self->examples->pdata[i], error))
      return FALSE;
  }
  report_progress_end ();
  return TRUE;
}

/* ---- What comes of it ---------------------------------------------------- */

/* Wilson's score interval of 95 % (Wilson 1927). */
static void
get_interval (const Evaluation *self, double *ret_low, double *ret_high)
{
  const double z = 1.959964;
  double n = self->n, p = self->n_right / n;
  double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
  double half = z * sqrt (p * (1 - p) / n + z * z / (4 * n * n))
      / (1 + z * z / n);

  *ret_low = middle - half;
  *ret_high = middle + half;
}

/* Expected calibration error over bins of equal width (Guo et al., "On
 * Calibration of Modern Neural Networks", ICML 2017). */
static double
get_ece (const Evaluation *self)
{
  double sum = 0;

  for (guint i = 0; i < N_BINS; i++)
    sum += fabs (self->bins[i].n_right - self->bins[i].sum_confidence);
  return sum / self->n;
}

static void
print_plot (const Evaluation *self)
{
  printf ("\nreliability    said    right   ('#': how many were right, '|': "
      "how many should be)\n");
  for (guint i = 0; i < N_BINS; i++) {
    const Bin *bin = &self->bins[i];
    char bar[] = "                                        ";
    guint width = sizeof bar - 1;
    double said, right;

    if (bin->n == 0)
      continue;
    said = bin->sum_confidence / bin->n;
    right = (double) bin->n_right / bin->n;
    memset (bar, '#', (gsize) (right * width + 0.5));
    bar[MIN ((guint) (said * width), width - 1)] = '|';
    printf ("%5u in bin   %.3f   %.3f   %s\n", bin->n, said, right, bar);
  }
}

static void
print_text (const Evaluation *self)
{
  g_autofree char *machine = machine_describe (runnel_engine_get_backend
      (runnel_decider_get_engine (self->decider)));
  double low, high;

  get_interval (self, &low, &high);
  printf ("accuracy       %.2f %% (95 %% between %.2f and %.2f), %u of %u "
      "right, %u in the set\n", 100.0 * self->n_right / self->n, 100 * low,
      100 * high, self->n_right, self->n, self->examples->len);
  printf ("options        %u: %.2f %% by chance\n",
      runnel_question_get_n_options (self->questions->pdata[0]),
      100.0 / runnel_question_get_n_options (self->questions->pdata[0]));
  printf ("ECE            %.4f in %d bins\n", get_ece (self), N_BINS);
  printf ("NLL            %.4f nats\n", self->nll / self->n);
  printf ("Brier          %.4f\n", self->brier / self->n);
  printf ("speed          %.2f decisions/s, %.0f rows each\n",
      self->n / self->seconds, (double) self->rows / self->n);
  printf ("machine        %s\n", machine);
  print_plot (self);
}

static void
print_json (const Evaluation *self)
{
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;
  double low, high;

  get_interval (self, &low, &high);
  json_begin_object (&json, NULL);
  json_add_double (&json, "accuracy", (double) self->n_right / self->n);
  json_add_double (&json, "accuracy_low", low);
  json_add_double (&json, "accuracy_high", high);
  json_add_uint (&json, "n", self->n);
  json_add_uint (&json, "n_right", self->n_right);
  json_add_uint (&json, "options",
      runnel_question_get_n_options (self->questions->pdata[0]));
  json_add_double (&json, "ece", get_ece (self));
  json_add_double (&json, "nll", self->nll / self->n);
  json_add_double (&json, "brier", self->brier / self->n);
  json_add_double (&json, "decisions_per_second", self->n / self->seconds);
  json_begin_array (&json, "bins");
  for (guint i = 0; i < N_BINS; i++) {
    json_begin_object (&json, NULL);
    json_add_uint (&json, "n", self->bins[i].n);
    json_add_uint (&json, "n_right", self->bins[i].n_right);
    json_add_double (&json, "sum_confidence", self->bins[i].sum_confidence);
    json_end_object (&json);
  }
  json_end_array (&json);
  machine_add_json (&json, runnel_engine_get_backend
      (runnel_decider_get_engine (self->decider)));
  json_end_object (&json);
  json_print (&json);
}

gboolean
decide_evaluate (RunnelDecider *decider, const char *path,
                 const char *instructions, guint n, guint64 seed,
                 gboolean as_json, GError **error)
{
  g_autoptr (GPtrArray) examples
      = g_ptr_array_new_with_free_func (example_free);
  g_autoptr (GPtrArray) questions
      = g_ptr_array_new_with_free_func (g_object_unref);
  Evaluation self = { .decider = decider, .examples = examples,
    .questions = questions };

  if (!read_examples (&self, path, error)
      || !make_question (&self, instructions, error))
    return FALSE;
  shuffle (&self, seed);
  if (!run (&self, n, error))
    return FALSE;
  if (as_json)
    print_json (&self);
  else
    print_text (&self);
  return TRUE;
}
