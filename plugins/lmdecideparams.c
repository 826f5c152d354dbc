/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "lmdecideparams.h"

#include "text-file.h"

#define MAX_FILE_BYTES ((gsize) 16 * 1024 * 1024)
#define DEFAULT_QUESTION_TYPE RUNNEL_QUESTION_TYPE_CHOICE
#define DEFAULT_LAYOUT RUNNEL_DECISION_LAYOUT_HIDDEN
#define DEFAULT_USE_PRIOR TRUE
#define DEFAULT_LENGTH_EXPONENT 0.5
#define DEFAULT_TEMPERATURE 0.0
#define MIN_TEMPERATURE 0.001
#define MAX_TEMPERATURE 1000.0

struct _GstLmDecideParams {
  char *questions;           /* JSON */
  char *location;
  char *instructions;
  char **options;
  char *head;                /* a file */
  char *prior_location;
  RunnelQuestionType type;
  RunnelDecisionLayout layout;
  gboolean use_prior;
  double length_exponent;
  double temperatures[RUNNEL_QUESTION_TYPE_SCORE + 1];

  GPtrArray *from_location;  /* questions, once the file has been read */
  RunnelDecisionHead *opened_head;
  GPtrArray *prior_texts;    /* strings and NULL, once that has been read */
};

GstLmDecideParams *
gst_lm_decide_params_new (void)
{
  GstLmDecideParams *self = g_new0 (GstLmDecideParams, 1);

  self->type = DEFAULT_QUESTION_TYPE;
  self->layout = DEFAULT_LAYOUT;
  self->use_prior = DEFAULT_USE_PRIOR;
  self->length_exponent = DEFAULT_LENGTH_EXPONENT;
  for (guint i = 0; i < G_N_ELEMENTS (self->temperatures); i++)
    self->temperatures[i] = DEFAULT_TEMPERATURE;
  return self;
}

GstLmDecideParams *
gst_lm_decide_params_copy (const GstLmDecideParams *self)
{
  GstLmDecideParams *copy = g_memdup2 (self, sizeof *self);

  copy->questions = g_strdup (self->questions);
  copy->location = g_strdup (self->location);
  copy->instructions = g_strdup (self->instructions);
  copy->options = g_strdupv (self->options);
  copy->head = g_strdup (self->head);
  copy->prior_location = g_strdup (self->prior_location);
  if (copy->opened_head)
    g_object_ref (copy->opened_head);
  if (copy->from_location)
    g_ptr_array_ref (copy->from_location);
  if (copy->prior_texts)
    g_ptr_array_ref (copy->prior_texts);
  return copy;
}

void
gst_lm_decide_params_free (GstLmDecideParams *self)
{
  g_free (self->questions);
  g_free (self->location);
  g_free (self->instructions);
  g_strfreev (self->options);
  g_free (self->head);
  g_free (self->prior_location);
  g_clear_object (&self->opened_head);
  g_clear_pointer (&self->from_location, g_ptr_array_unref);
  g_clear_pointer (&self->prior_texts, g_ptr_array_unref);
  g_free (self);
}

/* ---- Properties ---------------------------------------------------------- */

static void
install_temperature (GObjectClass *klass, guint id, const char *name,
                     const char *blurb)
{
  g_object_class_install_property (klass, id,
      g_param_spec_double (name, "Temperature", blurb, 0, MAX_TEMPERATURE,
          DEFAULT_TEMPERATURE, G_PARAM_READWRITE
          | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING));
}

static void
install_questions (GObjectClass *klass, GParamFlags flags)
{
  g_object_class_install_property (klass, GST_LM_DECIDE_QUESTIONS,
      g_param_spec_string ("questions", "Questions",
          "Questions as JSON (docs/decisions.md); comes before location", NULL,
          flags));
  g_object_class_install_property (klass, GST_LM_DECIDE_LOCATION,
      g_param_spec_string ("location", "Location",
          "A file of questions as JSON; comes before instructions", NULL,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS
          | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, GST_LM_DECIDE_INSTRUCTIONS,
      g_param_spec_string ("instructions", "Instructions",
          "A single question, as the model is to read it", NULL, flags));
  g_object_class_install_property (klass, GST_LM_DECIDE_OPTIONS,
      gst_param_spec_array ("options", "Options",
          "The options of the single question; of a score the levels, lowest "
          "first", g_param_spec_string ("option", "Option",
              "An option", NULL, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS),
          flags));
  g_object_class_install_property (klass, GST_LM_DECIDE_QUESTION_TYPE,
      g_param_spec_enum ("question-type", "Question type",
          "The type of the single question", RUNNEL_TYPE_QUESTION_TYPE,
          DEFAULT_QUESTION_TYPE, flags));
}

void
gst_lm_decide_params_install (GObjectClass *klass)
{
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS
      | GST_PARAM_MUTABLE_PLAYING;

  install_questions (klass, flags);
  g_object_class_install_property (klass, GST_LM_DECIDE_HEAD,
      g_param_spec_string ("head", "Head",
          "A file with a decision head (default: the one in the model's own "
          "file, if there is one)", NULL, G_PARAM_READWRITE
          | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, GST_LM_DECIDE_LAYOUT,
      g_param_spec_enum ("layout", "Layout",
          "Without a head: whether the model sees the options before it "
          "decides; static: they stand before the state, and are read once "
          "for all states (also with a head of the isolated form)",
          RUNNEL_TYPE_DECISION_LAYOUT, DEFAULT_LAYOUT, flags));
  g_object_class_install_property (klass, GST_LM_DECIDE_USE_PRIOR,
      g_param_spec_boolean ("use-prior", "Use prior",
          "Without a head: subtract what an option scores behind a text that "
          "says nothing", DEFAULT_USE_PRIOR, flags));
  g_object_class_install_property (klass, GST_LM_DECIDE_PRIOR_LOCATION,
      g_param_spec_string ("prior-location", "Prior location",
          "Without a head: a file of texts like those to be decided, one a "
          "line, that the prior is the mean of (default: a text that says "
          "nothing)", NULL, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS
          | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (klass, GST_LM_DECIDE_LENGTH_EXPONENT,
      g_param_spec_double ("length-exponent", "Length exponent",
          "Without a head: divide a log-likelihood by the option's number of "
          "tokens to the power of this (0: the sum, 1: the mean)", 0, 2,
          DEFAULT_LENGTH_EXPONENT, flags));
  install_temperature (klass, GST_LM_DECIDE_CHOICE_TEMPERATURE,
      "choice-temperature", "What the scores of a choice are divided by "
      "(0: as the head says, or 1)");
  install_temperature (klass, GST_LM_DECIDE_YESNO_TEMPERATURE,
      "yesno-temperature", "What the scores of yes and no are divided by "
      "(0: as the head says, or 1)");
  install_temperature (klass, GST_LM_DECIDE_SCORE_TEMPERATURE,
      "score-temperature", "What the scores of levels are divided by "
      "(0: as the head says, or 1)");
}

static void
set_string (char **field, const GValue *value)
{
  g_free (*field);
  *field = g_value_dup_string (value);
}

static void
set_options (GstLmDecideParams *self, const GValue *array)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  for (guint i = 0; i < gst_value_array_get_size (array); i++) {
    const char *option =
        g_value_get_string (gst_value_array_get_value (array, i));

    g_strv_builder_add (builder, option ? option : "");
  }
  g_strfreev (self->options);
  self->options = g_strv_builder_end (builder);
}

static void
get_options (const GstLmDecideParams *self, GValue *array)
{
  for (guint i = 0; self->options && self->options[i]; i++) {
    GValue option = G_VALUE_INIT;

    g_value_init (&option, G_TYPE_STRING);
    g_value_set_string (&option, self->options[i]);
    gst_value_array_append_and_take_value (array, &option);
  }
}

void
gst_lm_decide_params_set (GstLmDecideParams *self, guint id,
                          const GValue *value)
{
  switch (id) {
    case GST_LM_DECIDE_QUESTIONS:
      set_string (&self->questions, value);
      break;
    case GST_LM_DECIDE_LOCATION:
      set_string (&self->location, value);
      break;
    case GST_LM_DECIDE_INSTRUCTIONS:
      set_string (&self->instructions, value);
      break;
    case GST_LM_DECIDE_OPTIONS:
      set_options (self, value);
      break;
    case GST_LM_DECIDE_HEAD:
      set_string (&self->head, value);
      break;
    case GST_LM_DECIDE_QUESTION_TYPE:
      self->type = g_value_get_enum (value);
      break;
    case GST_LM_DECIDE_LAYOUT:
      self->layout = g_value_get_enum (value);
      break;
    case GST_LM_DECIDE_USE_PRIOR:
      self->use_prior = g_value_get_boolean (value);
      break;
    case GST_LM_DECIDE_PRIOR_LOCATION:
      set_string (&self->prior_location, value);
      break;
    case GST_LM_DECIDE_LENGTH_EXPONENT:
      self->length_exponent = g_value_get_double (value);
      break;
    default:
      self->temperatures[id - GST_LM_DECIDE_CHOICE_TEMPERATURE] =
          g_value_get_double (value);
  }
}

void
gst_lm_decide_params_get (const GstLmDecideParams *self, guint id,
                          GValue *value)
{
  switch (id) {
    case GST_LM_DECIDE_QUESTIONS:
      g_value_set_string (value, self->questions);
      break;
    case GST_LM_DECIDE_LOCATION:
      g_value_set_string (value, self->location);
      break;
    case GST_LM_DECIDE_INSTRUCTIONS:
      g_value_set_string (value, self->instructions);
      break;
    case GST_LM_DECIDE_OPTIONS:
      get_options (self, value);
      break;
    case GST_LM_DECIDE_HEAD:
      g_value_set_string (value, self->head);
      break;
    case GST_LM_DECIDE_QUESTION_TYPE:
      g_value_set_enum (value, self->type);
      break;
    case GST_LM_DECIDE_LAYOUT:
      g_value_set_enum (value, self->layout);
      break;
    case GST_LM_DECIDE_USE_PRIOR:
      g_value_set_boolean (value, self->use_prior);
      break;
    case GST_LM_DECIDE_PRIOR_LOCATION:
      g_value_set_string (value, self->prior_location);
      break;
    case GST_LM_DECIDE_LENGTH_EXPONENT:
      g_value_set_double (value, self->length_exponent);
      break;
    default:
      g_value_set_double (value,
          self->temperatures[id - GST_LM_DECIDE_CHOICE_TEMPERATURE]);
  }
}

/* ---- Questions ----------------------------------------------------------- */

static GPtrArray *
read_location (const GstLmDecideParams *self, GError **error)
{
  g_autofree char *json = NULL;
  gsize length;

  json = gst_lm_text_file_read (self->location, MAX_FILE_BYTES, &length, error);
  return json ? runnel_question_parse_json (json, length, self->location,
      error) : NULL;
}

static gboolean
load_prior_texts (GstLmDecideParams *self, GError **error)
{
  g_autofree char *text = NULL;
  g_autofree char **lines = NULL;   /* the strings are the array's */
  gsize length;

  g_clear_pointer (&self->prior_texts, g_ptr_array_unref);
  if (!self->prior_location)
    return TRUE;
  text = gst_lm_text_file_read (self->prior_location, MAX_FILE_BYTES, &length,
      error);
  if (!text)
    return FALSE;
  lines = g_strsplit (text, "\n", -1);
  self->prior_texts = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; lines[i]; i++)
    g_ptr_array_add (self->prior_texts, lines[i]);
  g_ptr_array_add (self->prior_texts, NULL);
  return TRUE;
}

static GPtrArray *
make_single (const GstLmDecideParams *self, GError **error)
{
  static const char *yesno[] = { "yes", "no", NULL };
  const char *const *options = (const char *const *) self->options;
  GPtrArray *questions;
  RunnelQuestion *question;

  if (self->type == RUNNEL_QUESTION_TYPE_YESNO && !options)
    options = yesno;
  question = runnel_question_new ("decision", self->type, self->instructions,
      options, NULL, options ? g_strv_length ((char **) options) : 0, error);
  if (!question)
    return NULL;
  questions = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (questions, question);
  return questions;
}

GPtrArray *
gst_lm_decide_params_get_questions (const GstLmDecideParams *self,
                                    GError **error)
{
  if (self->questions)
    return runnel_question_parse_json (self->questions, -1, "questions",
        error);
  if (self->from_location)
    return g_ptr_array_ref (self->from_location);
  if (self->instructions)
    return make_single (self, error);
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
      "there is nothing to decide: set questions, or location, or "
      "instructions and options");
  return NULL;
}

gboolean
gst_lm_decide_params_load (GstLmDecideParams *self, GError **error)
{
  g_autoptr (GPtrArray) questions = NULL;

  g_clear_object (&self->opened_head);
  if (self->head) {
    self->opened_head = runnel_decision_head_open (self->head, error);
    if (!self->opened_head)
      return FALSE;
  }
  if (!load_prior_texts (self, error))
    return FALSE;
  g_clear_pointer (&self->from_location, g_ptr_array_unref);
  if (self->location) {
    self->from_location = read_location (self, error);
    if (!self->from_location)
      return FALSE;
  }
  /* They may come with the requests. */
  if (!self->questions && !self->location && !self->instructions)
    return TRUE;
  questions = gst_lm_decide_params_get_questions (self, error);
  return questions != NULL;
}

gboolean
gst_lm_decide_params_override (GstLmDecideParams *self, GstElement *element,
                               const GstLmRequestMeta *meta, GError **error)
{
  for (guint id = 1; id < GST_LM_DECIDE_N_PARAMS; id++) {
    static const char *const names[GST_LM_DECIDE_N_PARAMS] = {
      [GST_LM_DECIDE_QUESTIONS] = "questions",
      [GST_LM_DECIDE_INSTRUCTIONS] = "instructions",
      [GST_LM_DECIDE_OPTIONS] = "options",
      [GST_LM_DECIDE_QUESTION_TYPE] = "question-type",
      [GST_LM_DECIDE_LAYOUT] = "layout",
      [GST_LM_DECIDE_USE_PRIOR] = "use-prior",
      [GST_LM_DECIDE_LENGTH_EXPONENT] = "length-exponent",
      [GST_LM_DECIDE_CHOICE_TEMPERATURE] = "choice-temperature",
      [GST_LM_DECIDE_YESNO_TEMPERATURE] = "yesno-temperature",
      [GST_LM_DECIDE_SCORE_TEMPERATURE] = "score-temperature",
    };
    g_auto (GValue) value = G_VALUE_INIT;

    if (!names[id] || !gst_lm_request_meta_has_override (meta, names[id]))
      continue;
    if (!gst_lm_request_meta_get_parameter (meta, G_OBJECT (element),
            names[id], &value, error))
      return FALSE;
    gst_lm_decide_params_set (self, id, &value);
  }
  return TRUE;
}

RunnelDecisionHead *
gst_lm_decide_params_get_head (const GstLmDecideParams *self)
{
  return self->opened_head;
}

static void
apply_temperature (const GstLmDecideParams *self, RunnelDecider *decider,
                   RunnelQuestionType type)
{
  double temperature = self->temperatures[type];
  RunnelDecisionHead *head = runnel_decider_get_head (decider);

  if (temperature == 0)
    temperature = head ? runnel_decision_head_get_temperature (head, type) : 1;
  runnel_decider_set_temperature (decider, type,
      MAX (temperature, MIN_TEMPERATURE));
}

void
gst_lm_decide_params_apply (const GstLmDecideParams *self,
                            RunnelDecider *decider)
{
  runnel_decider_set_layout (decider, self->layout);
  runnel_decider_set_use_prior (decider, self->use_prior);
  runnel_decider_set_prior_texts (decider, self->prior_texts ?
      (const char *const *) self->prior_texts->pdata : NULL);
  runnel_decider_set_length_exponent (decider, self->length_exponent);
  for (guint i = 0; i < G_N_ELEMENTS (self->temperatures); i++)
    apply_temperature (self, decider, i);
}
