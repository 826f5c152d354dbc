/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Questions from JSON: docs/decisions.md.
 */
#include "question.h"

#include <string.h>

#include "../error.h"
#include "../formats/json.h"

/* One question while it is read. */
typedef struct {
  const char *file;          /* what errors call the text */
  const char *id;
  RunnelQuestionType type;
  const char *instructions;
  GPtrArray *labels;         /* borrowed strings */
  GPtrArray *descriptions;   /* borrowed strings, "" for none */
} Reader;

static gboolean
fail (const Reader *reader, GError **error, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

static gboolean
fail (const Reader *reader, GError **error, const char *format, ...)
{
  g_autofree char *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
      "%s: question '%s': %s", reader->file, reader->id, text);
  return FALSE;
}

/* A string without NUL, which C and models could not tell from its end. */
static const char *
get_string (const Reader *reader, const RunnelJsonNode *node,
            const char *what, GError **error)
{
  const char *text;
  gsize length;

  if (runnel_json_node_kind (node) != RUNNEL_JSON_STRING) {
    fail (reader, error, "%s is not a string", what);
    return NULL;
  }
  text = runnel_json_node_string (node, &length);
  if (strlen (text) != length) {
    fail (reader, error, "%s holds a NUL character", what);
    return NULL;
  }
  return text;
}

static gboolean
read_type (Reader *reader, const RunnelJsonNode *node, GError **error)
{
  static const struct {
    const char *name;
    RunnelQuestionType type;
  } types[] = {
    { "choice", RUNNEL_QUESTION_TYPE_CHOICE },
    { "yesno", RUNNEL_QUESTION_TYPE_YESNO },
    { "noul", RUNNEL_QUESTION_TYPE_YESNO },
    { "score", RUNNEL_QUESTION_TYPE_SCORE },
  };
  const char *name = "choice";

  if (node != NULL)
    name = get_string (reader, node, "type", error);
  if (name == NULL)
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    if (strcmp (name, types[i].name) == 0) {
      reader->type = types[i].type;
      return TRUE;
    }
  return fail (reader, error, "type '%s' is none of choice, yesno and score",
      name);
}

static gboolean
read_array (Reader *reader, const RunnelJsonNode *node, GError **error)
{
  for (gsize i = 0; i < runnel_json_node_size (node); i++) {
    const char *label = get_string (reader, runnel_json_node_item (node, i),
        "an option", error);

    if (label == NULL)
      return FALSE;
    g_ptr_array_add (reader->labels, (gpointer) label);
    g_ptr_array_add (reader->descriptions, (gpointer) "");
  }
  return TRUE;
}

/* A description may be null. */
static const char *
get_description (const Reader *reader, const RunnelJsonNode *node,
                 GError **error)
{
  if (node == NULL || runnel_json_node_kind (node) == RUNNEL_JSON_NULL)
    return "";
  return get_string (reader, node, "a description", error);
}

static gboolean
read_object (Reader *reader, const RunnelJsonNode *node, GError **error)
{
  for (gsize i = 0; i < runnel_json_node_size (node); i++) {
    gsize length;
    const char *label = runnel_json_node_key (node, i, &length);
    const char *description
        = get_description (reader, runnel_json_node_value (node, i), error);

    if (description == NULL)
      return FALSE;
    if (strlen (label) != length)
      return fail (reader, error, "an option holds a NUL character");
    g_ptr_array_add (reader->labels, (gpointer) label);
    g_ptr_array_add (reader->descriptions, (gpointer) description);
  }
  return TRUE;
}

/* The two answers are always yes and no; criteria may say what they mean. */
static gboolean
read_yesno (Reader *reader, const RunnelJsonNode *node, GError **error)
{
  static const char *const names[][2] = { { "yes", "true" },
    { "no", "false" } };
  gsize n_known = 0;

  if (node != NULL && runnel_json_node_kind (node) != RUNNEL_JSON_OBJECT
      && runnel_json_node_kind (node) != RUNNEL_JSON_NULL)
    return fail (reader, error, "criteria of a yesno question are an object "
        "with 'yes' and 'no'");
  for (guint i = 0; i < 2; i++) {
    const RunnelJsonNode *value = NULL;
    const char *description;

    for (guint k = 0; node != NULL && value == NULL && k < 2; k++)
      value = runnel_json_node_member (node, names[i][k]);
    n_known += value != NULL;
    description = get_description (reader, value, error);
    if (description == NULL)
      return FALSE;
    g_ptr_array_add (reader->labels, (gpointer) names[i][0]);
    g_ptr_array_add (reader->descriptions, (gpointer) description);
  }
  if (node != NULL && runnel_json_node_kind (node) == RUNNEL_JSON_OBJECT
      && runnel_json_node_size (node) != n_known)
    return fail (reader, error, "criteria of a yesno question are 'yes' and "
        "'no', nothing else");
  return TRUE;
}

static gboolean
read_criteria (Reader *reader, const RunnelJsonNode *node, GError **error)
{
  if (reader->type == RUNNEL_QUESTION_TYPE_YESNO)
    return read_yesno (reader, node, error);
  if (node == NULL)
    return fail (reader, error, "criteria are missing");
  if (runnel_json_node_kind (node) == RUNNEL_JSON_ARRAY)
    return read_array (reader, node, error);
  if (reader->type == RUNNEL_QUESTION_TYPE_CHOICE
      && runnel_json_node_kind (node) == RUNNEL_JSON_OBJECT)
    return read_object (reader, node, error);
  return fail (reader, error, reader->type == RUNNEL_QUESTION_TYPE_CHOICE ?
      "criteria are neither an object of options and descriptions nor an "
      "array of options" : "criteria of a score are an array of levels, the "
      "lowest first");
}

static gboolean
check_members (const Reader *reader, const RunnelJsonNode *node,
               GError **error)
{
  static const char *const known[] = { "type", "instructions", "criteria",
    NULL };

  if (runnel_json_node_kind (node) != RUNNEL_JSON_OBJECT)
    return fail (reader, error, "it is not an object");
  for (gsize i = 0; i < runnel_json_node_size (node); i++) {
    const char *key = runnel_json_node_key (node, i, NULL);

    if (!g_strv_contains (known, key))
      return fail (reader, error, "'%s' is none of type, instructions and "
          "criteria", key);
  }
  return TRUE;
}

static RunnelQuestion *
make_question (const Reader *reader, GError **error)
{
  g_autoptr (GError) problem = NULL;
  RunnelQuestion *question = runnel_question_new (reader->id, reader->type,
      reader->instructions, (const char *const *) reader->labels->pdata,
      (const char *const *) reader->descriptions->pdata, reader->labels->len,
      &problem);

  if (question == NULL) {
    g_prefix_error (&problem, "%s: ", reader->file);
    g_propagate_error (error, g_steal_pointer (&problem));
  }
  return question;
}

static RunnelQuestion *
read_question (const char *file, const char *id, const RunnelJsonNode *node,
               GError **error)
{
  g_autoptr (GPtrArray) labels = g_ptr_array_new ();
  g_autoptr (GPtrArray) descriptions = g_ptr_array_new ();
  Reader reader = { .file = file, .id = id, .labels = labels,
    .descriptions = descriptions };
  const RunnelJsonNode *instructions;

  if (!check_members (&reader, node, error)
      || !read_type (&reader, runnel_json_node_member (node, "type"), error)
      || !read_criteria (&reader, runnel_json_node_member (node, "criteria"),
          error))
    return NULL;
  instructions = runnel_json_node_member (node, "instructions");
  if (instructions == NULL) {
    fail (&reader, error, "instructions are missing");
    return NULL;
  }
  reader.instructions
      = get_string (&reader, instructions, "instructions", error);
  return reader.instructions ? make_question (&reader, error) : NULL;
}

static const RunnelJsonNode *
find_questions (const RunnelJson *json, const char *name, GError **error)
{
  const RunnelJsonNode *root = runnel_json_root (json);
  const RunnelJsonNode *questions
      = runnel_json_node_member (root, "questions");
  gsize n;

  if (questions == NULL
      || runnel_json_node_kind (questions) != RUNNEL_JSON_OBJECT) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: there is no object 'questions'", name);
    return NULL;
  }
  if (runnel_json_node_size (root) != 1) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: 'questions' must be its only member", name);
    return NULL;
  }
  n = runnel_json_node_size (questions);
  if (n >= 1 && n <= RUNNEL_MAX_QUESTIONS)
    return questions;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
      "%s: %" G_GSIZE_FORMAT " questions; give 1 to %d", name, n,
      RUNNEL_MAX_QUESTIONS);
  return NULL;
}

/**
 * runnel_question_parse_json:
 * @json: an object with the member `questions`, an object of questions by
 *   their ids
 * @length: its length in bytes; −1: to the NUL
 * @name: what errors call it: a file name, a property
 * @error: return location for a #GError
 *
 * Reads questions. Each is an object with `instructions`, a string, with
 * `type`, "choice" (the default), "yesno" or "score", and with `criteria`: for
 * a choice an object of options and their descriptions (or null), or an array
 * of options; for a score an array of levels, the lowest first; for yesno, if
 * it is there, an object that describes `yes` and `no`.
 *
 * Returns: (transfer container) (element-type RunnelQuestion): the questions in
 *   their order, or %NULL with %RUNNEL_ERROR_MALFORMED, %RUNNEL_ERROR_LIMIT or
 *   an error of runnel_question_new()
 *
 * Since: 0.1
 */
GPtrArray *
runnel_question_parse_json (const char *json, gssize length, const char *name,
                            GError **error)
{
  g_autoptr (RunnelJson) document = NULL;
  g_autoptr (GPtrArray) questions = NULL;
  const RunnelJsonNode *node;

  g_return_val_if_fail (json != NULL && name != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  document = runnel_json_parse (json, length < 0 ? strlen (json) : length,
      name, error);
  node = document ? find_questions (document, name, error) : NULL;
  if (node == NULL)
    return NULL;
  questions = g_ptr_array_new_with_free_func (g_object_unref);
  for (gsize i = 0; i < runnel_json_node_size (node); i++) {
    RunnelQuestion *question = read_question (name,
        runnel_json_node_key (node, i, NULL),
        runnel_json_node_value (node, i), error);

    if (question == NULL)
      return NULL;
    g_ptr_array_add (questions, question);
  }
  return g_steal_pointer (&questions);
}
