/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "question-private.h"

#include <string.h>

#include "../error.h"
#include "../formats/json.h"

struct _RunnelQuestion {
  GObject parent_instance;
  RunnelQuestionType type;
  char *id;
  char *instructions;
  guint n_options;
  char **labels;             /* [n_options] */
  char **descriptions;       /* [n_options], each nullable */
  guint *order;              /* [n_options] */
};

G_DEFINE_FINAL_TYPE (RunnelQuestion, runnel_question, G_TYPE_OBJECT)

/* Bindings can make an object without its constructor: nothing is in it. */
#define IS_MADE(self) (RUNNEL_IS_QUESTION (self) && (self)->labels != NULL)

GType
runnel_question_type_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_QUESTION_TYPE_CHOICE, "RUNNEL_QUESTION_TYPE_CHOICE", "choice" },
    { RUNNEL_QUESTION_TYPE_YESNO, "RUNNEL_QUESTION_TYPE_YESNO", "yesno" },
    { RUNNEL_QUESTION_TYPE_SCORE, "RUNNEL_QUESTION_TYPE_SCORE", "score" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
        g_enum_register_static ("RunnelQuestionType", values));
  return type;
}

static void
runnel_question_finalize (GObject *object)
{
  RunnelQuestion *self = RUNNEL_QUESTION (object);

  for (guint i = 0; i < self->n_options; i++) {
    g_free (self->labels[i]);
    g_free (self->descriptions[i]);
  }
  g_free (self->labels);
  g_free (self->descriptions);
  g_free (self->order);
  g_free (self->instructions);
  g_free (self->id);
  G_OBJECT_CLASS (runnel_question_parent_class)->finalize (object);
}

static void
runnel_question_class_init (RunnelQuestionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_question_finalize;
}

static void
runnel_question_init (RunnelQuestion *self)
{
}

/* ---- Checks -------------------------------------------------------------- */

static gboolean
check_text (const char *id, const char *what, const char *text,
            GError **error)
{
  const char *bad;

  if (!g_utf8_validate (text, -1, &bad)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "question '%s': %s is not UTF-8 at byte %" G_GSIZE_FORMAT, id, what,
        (gsize) (bad - text));
    return FALSE;
  }
  for (; *text != '\0'; text = g_utf8_next_char (text))
    if (!g_unichar_isspace (g_utf8_get_char (text)))
      return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
      "question '%s': %s is empty", id, what);
  return FALSE;
}

static gboolean
check_count (const char *id, RunnelQuestionType type, gsize n, GError **error)
{
  if (type == RUNNEL_QUESTION_TYPE_YESNO && n != 2) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "question '%s': a yesno question has the two options yes and no, not "
        "%" G_GSIZE_FORMAT, id, n);
    return FALSE;
  }
  if (n >= 2 && n <= RUNNEL_MAX_OPTIONS)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
      "question '%s': %" G_GSIZE_FORMAT " options; give 2 to %d", id, n,
      RUNNEL_MAX_OPTIONS);
  return FALSE;
}

static gboolean
check_options (const char *id, const char *const *labels,
               const char *const *descriptions, gsize n, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);

  for (gsize i = 0; i < n; i++) {
    g_autofree char *what
        = g_strdup_printf ("option %" G_GSIZE_FORMAT, i + 1);

    if (!check_text (id, what, labels[i], error))
      return FALSE;
    if (!g_hash_table_add (seen, (gpointer) labels[i])) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
          "question '%s': option '%s' is there twice; leave one out", id,
          labels[i]);
      return FALSE;
    }
    if (descriptions != NULL && descriptions[i] != NULL
        && descriptions[i][0] != '\0'
        && !check_text (id, "a description", descriptions[i], error))
      return FALSE;
  }
  return TRUE;
}

/* ---- Making -------------------------------------------------------------- */

static int
compare_options (gconstpointer a, gconstpointer b, gpointer data)
{
  const RunnelQuestion *self = data;
  guint i = *(const guint *) a, k = *(const guint *) b;

  return strcmp (self->labels[i], self->labels[k]);
}

static RunnelQuestion *
make_question (const char *id, RunnelQuestionType type,
               const char *instructions, const char *const *labels,
               const char *const *descriptions, gsize n)
{
  RunnelQuestion *self = g_object_new (RUNNEL_TYPE_QUESTION, NULL);

  self->type = type;
  self->id = g_strdup (id);
  self->instructions = g_strdup (instructions);
  self->n_options = n;
  self->labels = g_new (char *, n);
  self->descriptions = g_new (char *, n);
  self->order = g_new (guint, n);
  for (gsize i = 0; i < n; i++) {
    const char *description = descriptions ? descriptions[i] : NULL;

    self->labels[i] = g_strdup (labels[i]);
    self->descriptions[i] = description && description[0] != '\0' ?
        g_strdup (description) : NULL;
    self->order[i] = i;
  }
  g_qsort_with_data (self->order, n, sizeof *self->order, compare_options,
      self);
  return self;
}

/**
 * runnel_question_new:
 * @id: names the answer; models do not see it
 * @type: what kind of answer is wanted
 * @instructions: the question, as a model is to read it
 * @labels: (array length=n_options): the options; of a score the levels,
 *   lowest first; of a yesno question "yes" and "no"
 * @descriptions: (nullable) (array length=n_options): what each of them means;
 *   an empty string is none
 * @n_options: 2 to 255; 2 for yesno
 * @error: return location for a #GError
 *
 * Makes a question.
 *
 * Returns: (transfer full): the question, or %NULL with
 *   %RUNNEL_ERROR_INVALID_ARGUMENT, %RUNNEL_ERROR_LIMIT or
 *   %RUNNEL_ERROR_MALFORMED (no UTF-8)
 *
 * Since: 0.1
 */
RunnelQuestion *
runnel_question_new (const char *id, RunnelQuestionType type,
                     const char *instructions, const char *const *labels,
                     const char *const *descriptions, gsize n_options,
                     GError **error)
{
  g_return_val_if_fail (id != NULL && instructions != NULL, NULL);
  g_return_val_if_fail (labels != NULL || n_options == 0, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (!g_utf8_validate (id, -1, NULL)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "the id of a question is not UTF-8");
    return NULL;
  }
  if (!check_text (id, "instructions", instructions, error)
      || !check_count (id, type, n_options, error)
      || !check_options (id, labels, descriptions, n_options, error))
    return NULL;
  return make_question (id, type, instructions, labels, descriptions,
      n_options);
}

/**
 * runnel_question_get_id:
 * @self: a question
 *
 * Its name.
 *
 * Returns: (transfer none): the id
 *
 * Since: 0.1
 */
const char *
runnel_question_get_id (RunnelQuestion *self)
{
  g_return_val_if_fail (IS_MADE (self), NULL);
  return self->id;
}

/**
 * runnel_question_get_question_type:
 * @self: a question
 *
 * What kind of answer it wants.
 *
 * Returns: the type
 *
 * Since: 0.1
 */
RunnelQuestionType
runnel_question_get_question_type (RunnelQuestion *self)
{
  g_return_val_if_fail (IS_MADE (self), RUNNEL_QUESTION_TYPE_CHOICE);
  return self->type;
}

/**
 * runnel_question_get_instructions:
 * @self: a question
 *
 * The question as a model reads it.
 *
 * Returns: (transfer none): the text
 *
 * Since: 0.1
 */
const char *
runnel_question_get_instructions (RunnelQuestion *self)
{
  g_return_val_if_fail (IS_MADE (self), NULL);
  return self->instructions;
}

/**
 * runnel_question_get_n_options:
 * @self: a question
 *
 * How many options it has.
 *
 * Returns: 2 to 255
 *
 * Since: 0.1
 */
guint
runnel_question_get_n_options (RunnelQuestion *self)
{
  g_return_val_if_fail (IS_MADE (self), 0);
  return self->n_options;
}

/**
 * runnel_question_get_label:
 * @self: a question
 * @i: which option, as they were given
 *
 * The name of an option.
 *
 * Returns: (transfer none): the label
 *
 * Since: 0.1
 */
const char *
runnel_question_get_label (RunnelQuestion *self, guint i)
{
  g_return_val_if_fail (IS_MADE (self), NULL);
  g_return_val_if_fail (i < self->n_options, NULL);
  return self->labels[i];
}

/**
 * runnel_question_get_description:
 * @self: a question
 * @i: which option, as they were given
 *
 * What an option means.
 *
 * Returns: (transfer none) (nullable): the description
 *
 * Since: 0.1
 */
const char *
runnel_question_get_description (RunnelQuestion *self, guint i)
{
  g_return_val_if_fail (IS_MADE (self), NULL);
  g_return_val_if_fail (i < self->n_options, NULL);
  return self->descriptions[i];
}

const guint *
runnel_question_get_order (RunnelQuestion *self)
{
  return self->order;
}

char *
runnel_question_make_key (RunnelQuestion *self)
{
  GString *key = g_string_new (NULL);

  g_string_append_printf (key, "%d", self->type);
  runnel_json_append_string (key, self->instructions, -1);
  for (guint i = 0; i < self->n_options; i++) {
    guint option = self->order[i];

    runnel_json_append_string (key, self->labels[option], -1);
    if (self->descriptions[option] != NULL) {
      g_string_append_c (key, ':');
      runnel_json_append_string (key, self->descriptions[option], -1);
    }
  }
  return g_string_free (key, FALSE);
}
