/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include <runnel.h>

#include "decide-evaluate.h"
#include "input.h"
#include "loading.h"
#include "report.h"
#include "verb.h"

static char *instructions, *options_text, *options_path, *questions_path;
static char *type_name, *layout_name, *head_path, *evaluate_path;
static char *prior_path;
static gboolean no_prior;
static int limit;
/* What nobody can ask for: the decider's own is taken. */
#define UNSET (-G_MAXDOUBLE)

static double temperature = UNSET;
static double length_exponent = UNSET;

static const GOptionEntry entries[] = {
  { "instructions", 'i', 0, G_OPTION_ARG_STRING, &instructions,
    "What to decide about the text", "TEXT" },
  { "options", 'o', 0, G_OPTION_ARG_STRING, &options_text,
    "The options; of a score the levels, lowest first", "A,B,…" },
  { "options-file", 0, 0, G_OPTION_ARG_FILENAME, &options_path,
    "The same from a file, one a line, a description behind a tab", "FILE" },
  { "type", 0, 0, G_OPTION_ARG_STRING, &type_name,
    "Type of the question (default: choice)", "choice|yesno|score" },
  { "questions", 'q', 0, G_OPTION_ARG_FILENAME, &questions_path,
    "Several questions from a JSON file (docs/decisions.md)", "FILE" },
  { "layout", 0, 0, G_OPTION_ARG_STRING, &layout_name,
    "Whether the model sees the options before it decides (default: hidden)",
    "shown|hidden|static" },
  { "no-prior", 0, 0, G_OPTION_ARG_NONE, &no_prior,
    "Do not compare with a text that says nothing: half the work", NULL },
  { "prior-texts", 0, 0, G_OPTION_ARG_FILENAME, &prior_path,
    "Compare with the mean over texts like those to be decided, one a line, "
    "and not with a text that says nothing", "FILE" },
  { "length-exponent", 0, 0, G_OPTION_ARG_DOUBLE, &length_exponent,
    "Divide a log-likelihood by the option's tokens to this power, 0 to 2 "
    "(default: 0.5)", "E" },
  { "head", 0, 0, G_OPTION_ARG_FILENAME, &head_path,
    "A decision head (default: the one in the model's own file)", "FILE" },
  { "temperature", 0, 0, G_OPTION_ARG_DOUBLE, &temperature,
    "What scores are divided by (default: as the head says, or 1)", "T" },
  { "evaluate", 0, 0, G_OPTION_ARG_FILENAME, &evaluate_path,
    "Decide all of a CSV file of text,label (a header line first), and tell "
    "how often it was right", "FILE" },
  { "limit", 'n', 0, G_OPTION_ARG_INT, &limit,
    "Only so many of them, drawn with --seed", "N" },
  G_OPTION_ENTRY_NULL
};

/* ---- Questions ----------------------------------------------------------- */

static gboolean
parse_enum (GType type, const char *option, const char *text, int *ret,
            GError **error)
{
  g_autoptr (GEnumClass) klass = g_type_class_ref (type);
  const GEnumValue *value;

  if (text == NULL)
    return TRUE;
  value = g_enum_get_value_by_nick (klass, text);
  if (value == NULL) {
    report_set_usage (error, "%s: there is no '%s'", option, text);
    return FALSE;
  }
  *ret = value->value;
  return TRUE;
}

/* Lines, each a label and perhaps a tab and its description. */
static gboolean
read_options_file (GPtrArray *labels, GPtrArray *descriptions, GError **error)
{
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;
  gsize length;

  text = input_read_file (options_path, &length, error);
  if (text == NULL || !input_check_text (text, length, options_path, error))
    return FALSE;
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++) {
    char *line = g_strchomp (lines[i]);
    char *tab = strchr (line, '\t');

    if (*line == '\0')
      continue;
    if (tab != NULL)
      *tab++ = '\0';
    g_ptr_array_add (labels, g_strdup (line));
    g_ptr_array_add (descriptions, g_strdup (tab ? tab : ""));
  }
  return TRUE;
}

static void
add_option (GPtrArray *labels, GPtrArray *descriptions, const char *label)
{
  g_ptr_array_add (labels, g_strdup (label));
  g_ptr_array_add (descriptions, g_strdup (""));
}

static gboolean
read_options (RunnelQuestionType type, GPtrArray *labels,
              GPtrArray *descriptions, GError **error)
{
  g_auto (GStrv) parts = NULL;

  if (options_path != NULL)
    return read_options_file (labels, descriptions, error);
  if (type == RUNNEL_QUESTION_TYPE_YESNO) {
    add_option (labels, descriptions, "yes");
    add_option (labels, descriptions, "no");
    return TRUE;
  }
  if (options_text == NULL) {
    report_set_usage (error, "no options: give --options A,B,… or "
        "--options-file FILE");
    return FALSE;
  }
  parts = g_strsplit (options_text, ",", -1);
  for (guint i = 0; parts[i] != NULL; i++)
    add_option (labels, descriptions, g_strstrip (parts[i]));
  return TRUE;
}

static GPtrArray *
make_single (GError **error)
{
  g_autoptr (GPtrArray) labels = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) descriptions = g_ptr_array_new_with_free_func (g_free);
  int type = RUNNEL_QUESTION_TYPE_CHOICE;
  RunnelQuestion *question;
  GPtrArray *questions;

  if (instructions == NULL) {
    report_set_usage (error, "nothing to decide: give --instructions TEXT and "
        "--options A,B,…, or --questions FILE");
    return NULL;
  }
  if (!parse_enum (RUNNEL_TYPE_QUESTION_TYPE, "--type", type_name, &type,
          error)
      || !read_options (type, labels, descriptions, error))
    return NULL;
  question = runnel_question_new ("decision", type, instructions,
      (const char *const *) labels->pdata,
      (const char *const *) descriptions->pdata, labels->len, error);
  if (question == NULL)
    return NULL;
  questions = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (questions, question);
  return questions;
}

static GPtrArray *
read_questions (GError **error)
{
  g_autofree char *json = NULL;
  gsize length;

  if (questions_path == NULL)
    return make_single (error);
  json = input_read_file (questions_path, &length, error);
  return json ? runnel_question_parse_json (json, length, questions_path,
      error) : NULL;
}

/* ---- Answers ------------------------------------------------------------- */

static int
compare_probabilities (gconstpointer a, gconstpointer b, gpointer data)
{
  double p = runnel_decision_get_probability (data, *(const guint *) a);
  double q = runnel_decision_get_probability (data, *(const guint *) b);

  return p < q ? 1 : p > q ? -1 : 0;
}

/* A level keeps its place; other options stand by their probability. */
static void
print_decision (RunnelDecision *decision, gboolean shows_id)
{
  RunnelQuestion *question = runnel_decision_get_question (decision);
  guint n = runnel_question_get_n_options (question);
  double abstain = runnel_decision_get_abstain (decision);
  g_autofree guint *order = g_new (guint, n);

  for (guint i = 0; i < n; i++)
    order[i] = i;
  if (runnel_question_get_question_type (question)
      != RUNNEL_QUESTION_TYPE_SCORE)
    g_qsort_with_data (order, n, sizeof *order, compare_probabilities,
        decision);
  if (shows_id)
    printf ("%s\n", runnel_question_get_id (question));
  for (guint i = 0; i < n; i++)
    printf ("%.4f  %s\n",
        runnel_decision_get_probability (decision, order[i]),
        runnel_question_get_label (question, order[i]));
  if (abstain >= 0)
    printf ("%.4f  (none of these)\n", abstain);
}

static RunnelDecider *
make_decider (RunnelEngine *engine, GError **error)
{
  g_autoptr (RunnelDecisionHead) head = NULL;

  if (head_path != NULL) {
    head = runnel_decision_head_open (head_path, error);
    if (head == NULL)
      return NULL;
  }
  return runnel_decider_new (engine, head, error);
}

static gboolean
read_prior_texts (RunnelDecider *decider, GError **error)
{
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;
  gsize length;

  if (prior_path == NULL)
    return TRUE;
  if (no_prior) {
    report_set_usage (error, "--prior-texts and --no-prior exclude each other");
    return FALSE;
  }
  text = input_read_file (prior_path, &length, error);
  if (text == NULL || !input_check_text (text, length, prior_path, error))
    return FALSE;
  if (strspn (text, " \t\r\n") == length) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "%s: there is no text in it; --prior-texts takes one a line",
        prior_path);
    return FALSE;
  }
  lines = g_strsplit (text, "\n", -1);
  runnel_decider_set_prior_texts (decider, (const char *const *) lines);
  return TRUE;
}

static gboolean
set_up (RunnelDecider *decider, GError **error)
{
  int layout = runnel_decider_get_layout (decider);

  if (!parse_enum (RUNNEL_TYPE_DECISION_LAYOUT, "--layout", layout_name,
          &layout, error))
    return FALSE;
  if (temperature != UNSET && !(temperature > 0 && temperature <= 1000)) {
    report_set_usage (error, "--temperature: %g is not above 0 and at most "
        "1000", temperature);
    return FALSE;
  }
  if (length_exponent != UNSET
      && !(length_exponent >= 0 && length_exponent <= 2)) {
    report_set_usage (error, "--length-exponent: %g is not between 0 and 2",
        length_exponent);
    return FALSE;
  }
  runnel_decider_set_layout (decider, layout);
  if (length_exponent != UNSET)
    runnel_decider_set_length_exponent (decider, length_exponent);
  runnel_decider_set_use_prior (decider, !no_prior);
  for (guint i = 0; temperature != UNSET && i <= RUNNEL_QUESTION_TYPE_SCORE; i++)
    runnel_decider_set_temperature (decider, i, temperature);
  return read_prior_texts (decider, error);
}

/* A line end at the end of a file or of a terminal's input is not part of
 * what was said. */
static char *
read_text (const Options *options, gsize *length, GError **error)
{
  char *text = input_read_file (
      options->n_arguments > 0 ? options->arguments[0] : "-", length, error);

  if (text != NULL && *length > 0 && text[*length - 1] == '\n')
    text[--*length] = '\0';
  return text;
}

static RunnelDecider *
open_decider (const Options *options, RunnelModel *model, GError **error)
{
  g_autoptr (RunnelEngine) engine
      = loading_get_engine (options, model, error);
  g_autoptr (RunnelDecider) decider
      = engine ? make_decider (engine, error) : NULL;

  return decider && set_up (decider, error) ? g_steal_pointer (&decider)
      : NULL;
}

static gboolean
evaluate (const Options *options, GError **error)
{
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelDecider) decider = NULL;

  if (limit < 0) {
    report_set_usage (error, "--limit: %d is no number of texts", limit);
    return FALSE;
  }
  model = loading_open_model (options, error);
  decider = model ? open_decider (options, model, error) : NULL;
  return decider && decide_evaluate (decider, evaluate_path, instructions,
      limit, options->seed, options->json, error);
}

static gboolean
decide (const Options *options, GError **error)
{
  g_autoptr (GPtrArray) questions = NULL;
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelDecider) decider = NULL;
  g_autoptr (RunnelSequence) state = NULL;
  g_autoptr (RunnelDecisions) decisions = NULL;
  g_autofree char *text = NULL;
  gsize length;

  model = loading_open_model (options, error);
  questions = model ? read_questions (error) : NULL;
  text = questions ? read_text (options, &length, error) : NULL;
  decider = text ? open_decider (options, model, error) : NULL;
  state = decider ? runnel_decider_read (decider, text, length, FALSE, NULL,
      error) : NULL;
  decisions = state ? runnel_decider_decide (decider, state, -1, questions,
      NULL, error) : NULL;
  if (decisions == NULL)
    return FALSE;
  if (options->json) {
    g_autofree char *json = runnel_decisions_to_json (decisions);

    puts (json);
    return TRUE;
  }
  for (guint i = 0; i < runnel_decisions_get_n (decisions); i++)
    print_decision (runnel_decisions_get (decisions, i), questions->len > 1);
  return TRUE;
}

static int
run (const Options *options)
{
  g_autoptr (GError) error = NULL;

  return (evaluate_path ? evaluate (options, &error) :
      decide (options, &error)) ? EXIT_OK : report_error (error);
}

const Verb verb_decide = {
  .name = "decide",
  .parameters = "[FILE]",
  .summary = "Typed questions about a text, with probabilities",
  .details = "FILE is the text (default: standard input). Each option gets a "
    "probability; with\n--json the answers come as described in "
    "docs/decisions.md.",
  .uses = USES_MODEL | USES_ENGINE | USES_SEED | USES_JSON,
  .max_arguments = 1,
  .entries = entries,
  .run = run,
};
