/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "property-values.h"

#include <string.h>

#include "draft-elements.h"
#include "loading.h"
#include "report.h"

typedef struct {
  const char *option;   /* as the user wrote it */
  char *element;        /* NULL: every element that has the property */
  char *property;
  char *value;
} Setting;

/* In the order given. */
static GArray *settings;
static char **stops, **drafters;

static void
remember (const char *option, const char *element, const char *property,
          const char *value)
{
  Setting setting = { option, g_strdup (element), g_strdup (property),
    g_strdup (value) };

  if (settings == NULL)
    settings = g_array_new (FALSE, FALSE, sizeof (Setting));
  g_array_append_val (settings, setting);
}

/* An option named as its property. */
static gboolean
on_property (const char *option, const char *value, gpointer data,
             GError **error)
{
  const char *property = strcmp (option, "-n") == 0 ? "max-tokens"
      : option + strlen ("--");

  remember (g_intern_string (option), NULL, property, value);
  return TRUE;
}

static gboolean
on_set (const char *option, const char *value, gpointer data, GError **error)
{
  const char *equals = strchr (value, '=');
  g_autofree char *name = equals ? g_strndup (value, equals - value) : NULL;
  char *dot = name ? strchr (name, '.') : NULL;

  if (name == NULL || *name == '\0') {
    report_set_usage (error, "--set: '%s' is not of the form PROPERTY=VALUE "
        "or ELEMENT.PROPERTY=VALUE", value);
    return FALSE;
  }
  if (dot == name || (dot != NULL && dot[1] == '\0')) {
    report_set_usage (error, "--set: '%s' names no element or no property; it "
        "must be of the form ELEMENT.PROPERTY=VALUE", value);
    return FALSE;
  }
  if (dot != NULL)
    *dot = '\0';
  remember ("--set", dot ? name : NULL, dot ? dot + 1 : name, equals + 1);
  return TRUE;
}

#define PROPERTY(name, letter, blurb, nick) \
  { name, letter, 0, G_OPTION_ARG_CALLBACK, on_property, blurb, nick }

const GOptionEntry property_value_entries[] = {
  PROPERTY ("max-tokens", 'n', "End after this many tokens (-1: where the "
      "model does)", "N"),
  PROPERTY ("temperature", 0, "Above 1 more varied, below 1 less; 0 always "
      "takes the most probable token", "X"),
  PROPERTY ("top-k", 0, "Draw from this many of the best (0: all)", "N"),
  PROPERTY ("top-p", 0, "Draw from the best that together have this "
      "probability", "X"),
  PROPERTY ("min-p", 0, "Drop what is less probable than this times the best",
      "X"),
  PROPERTY ("repetition-penalty", 0, "Make repetitions less probable (1: off)",
      "X"),
  { "stop", 0, 0, G_OPTION_ARG_STRING_ARRAY, &stops,
    "End before this text; may be given several times", "TEXT" },
  PROPERTY ("ignore-eos", 0, "Do not end where the model would",
      "true|false"),
  PROPERTY ("context-length", 0, "Tokens that prompt and reply may have "
      "together", "N"),
  PROPERTY ("overflow-policy", 0, "At the end of the context: error, "
      "truncate, shift or stop", "POLICY"),
  PROPERTY ("system", 0, "System message", "TEXT"),
  PROPERTY ("template", 0, "Jinja file instead of the model's own template",
      "FILE"),
  PROPERTY ("tools", 0, "JSON file of tools to offer", "FILE"),
  PROPERTY ("thinking", 0, "Whether the model thinks before it answers",
      "auto|on|off"),
  { "draft", 0, 0, G_OPTION_ARG_STRING_ARRAY, &drafters,
    "Let a drafter guess ahead: lookup, from prompt and reply, or a draft "
    "model that was made for the model; may be given several times",
    "lookup|FILE" },
  PROPERTY ("draft-max", 0, "Verify at most this many guesses at once", "N"),
  { "set", 0, 0, G_OPTION_ARG_CALLBACK, on_set,
    "Any property of the pipeline's elements", "[ELEMENT.]PROPERTY=VALUE" },
  G_OPTION_ENTRY_NULL
};

gboolean
element_is (GstElement *element, const char *factory)
{
  GstElementFactory *made_by = gst_element_get_factory (element);

  return made_by != NULL && g_str_equal (GST_OBJECT_NAME (made_by), factory);
}

static void
list_children (GstBin *bin, GPtrArray *elements)
{
  /* The newest child stands first. */
  for (GList *l = g_list_last (GST_BIN_CHILDREN (bin)); l; l = l->prev) {
    g_ptr_array_add (elements, l->data);
    if (GST_IS_BIN (l->data))
      list_children (l->data, elements);
  }
}

GPtrArray *
pipeline_list_elements (GstElement *pipeline)
{
  GPtrArray *elements = g_ptr_array_new ();

  list_children (GST_BIN (pipeline), elements);
  return elements;
}

/* What a property may be, for people. */
static char *
describe_values (GParamSpec *spec)
{
  GString *text = g_string_new (NULL);

  if (G_IS_PARAM_SPEC_ENUM (spec)) {
    GEnumClass *klass = G_PARAM_SPEC_ENUM (spec)->enum_class;

    g_string_append (text, "one of");
    for (guint i = 0; i < klass->n_values; i++)
      g_string_append_printf (text, " %s", klass->values[i].value_nick);
  } else if (G_IS_PARAM_SPEC_DOUBLE (spec)) {
    g_string_append_printf (text, "a number from %g to %g",
        G_PARAM_SPEC_DOUBLE (spec)->minimum,
        G_PARAM_SPEC_DOUBLE (spec)->maximum);
  } else if (G_IS_PARAM_SPEC_INT (spec)) {
    g_string_append_printf (text, "a whole number from %d to %d",
        G_PARAM_SPEC_INT (spec)->minimum, G_PARAM_SPEC_INT (spec)->maximum);
  } else if (G_IS_PARAM_SPEC_UINT (spec)) {
    g_string_append_printf (text, "a whole number from %u to %u",
        G_PARAM_SPEC_UINT (spec)->minimum, G_PARAM_SPEC_UINT (spec)->maximum);
  } else if (GST_IS_PARAM_SPEC_ARRAY_LIST (spec)) {
    g_string_append (text, "a list, such as <one,two>");
  } else if (G_PARAM_SPEC_VALUE_TYPE (spec) == GST_TYPE_STRUCTURE) {
    g_string_append (text, "a structure, such as name,field=1.0");
  } else if (G_IS_PARAM_SPEC_BOOLEAN (spec)) {
    g_string_append (text, "true or false");
  } else {
    g_string_append_printf (text, "a value of the type %s",
        g_type_name (G_PARAM_SPEC_VALUE_TYPE (spec)));
  }
  return g_string_free (text, FALSE);
}

/* GStreamer also takes an empty text, for 0, and a structure without fields,
 * which asks for nothing: a slip in either case. */
static gboolean
value_from_text (GValue *value, const char *text, GParamSpec *spec)
{
  if (*text == '\0' || !gst_value_deserialize_with_pspec (value, text, spec)
      || g_param_value_validate (spec, value))
    return FALSE;
  return !GST_VALUE_HOLDS_STRUCTURE (value)
      || gst_structure_n_fields (gst_value_get_structure (value)) > 0;
}

static gboolean
set_from_text (GstElement *element, GParamSpec *spec, const char *option,
               const char *text, GError **error)
{
  g_auto (GValue) value = G_VALUE_INIT;
  g_autofree char *values = NULL;

  g_value_init (&value, G_PARAM_SPEC_VALUE_TYPE (spec));
  if (G_IS_PARAM_SPEC_STRING (spec)) {
    g_value_set_string (&value, text);
  } else if (!value_from_text (&value, text, spec)) {
    values = describe_values (spec);
    report_set_usage (error, "%s: '%s' does not fit: %s is %s", option, text,
        spec->name, values);
    return FALSE;
  }
  g_object_set_property (G_OBJECT (element), spec->name, &value);
  return TRUE;
}

static GParamSpec *
find_writable (GstElement *element, const char *name)
{
  GParamSpec *spec = g_object_class_find_property (
      G_OBJECT_GET_CLASS (element), name);

  return spec != NULL && spec->flags & G_PARAM_WRITABLE ? spec : NULL;
}

/* On every element that has it; they may be many, or must be some. */
static gboolean
apply (GPtrArray *elements, const Setting *setting, GError **error)
{
  gboolean found = FALSE;

  for (guint i = 0; i < elements->len; i++) {
    GstElement *element = elements->pdata[i];
    GParamSpec *spec = find_writable (element, setting->property);

    if (spec == NULL || (setting->element != NULL
            && !g_str_equal (GST_OBJECT_NAME (element), setting->element)))
      continue;
    found = TRUE;
    if (!set_from_text (element, spec, setting->option, setting->value, error))
      return FALSE;
  }
  if (!found)
    report_set_usage (error, "%s: %s%s has the property '%s' in this pipeline",
        setting->option, setting->element ? "no element " : "no element",
        setting->element ? setting->element : "", setting->property);
  return found;
}

/* A list of texts, as GStreamer's arrays have it. */
static gboolean
apply_stops (GPtrArray *elements, GError **error)
{
  g_auto (GValue) array = G_VALUE_INIT;
  gboolean found = FALSE;

  g_value_init (&array, GST_TYPE_ARRAY);
  for (guint i = 0; stops[i] != NULL; i++) {
    GValue stop = G_VALUE_INIT;

    g_value_init (&stop, G_TYPE_STRING);
    g_value_set_string (&stop, stops[i]);
    gst_value_array_append_and_take_value (&array, &stop);
  }
  for (guint i = 0; i < elements->len; i++)
    if (element_is (elements->pdata[i], "lmdecode")
        || element_is (elements->pdata[i], "lmgenerate")) {
      g_object_set_property (elements->pdata[i], "stop", &array);
      found = TRUE;
    }
  if (!found)
    report_set_usage (error, "--stop: nothing generates in this pipeline");
  return found;
}

/* The model goes to those whose model is that of the stream behind them. */
static gboolean
apply_model (GPtrArray *elements, const Options *options, GError **error)
{
  for (guint i = 0; i < elements->len; i++) {
    GstElement *element = elements->pdata[i];
    g_autofree char *model = NULL;

    if (!element_is (element, "lmtokenize")
        && !element_is (element, "lmgenerate"))
      continue;
    if (options->verify)
      g_object_set (element, "verify", TRUE, NULL);
    g_object_get (element, "model", &model, NULL);
    if (model != NULL && !options->model_given)
      continue;
    if (!loading_check_model (options, error))
      return FALSE;
    g_object_set (element, "model", options->model, NULL);
  }
  return TRUE;
}

/* A number of threads as text; NULL for the default. */
static char *
format_threads (int threads)
{
  return threads > 0 ? g_strdup_printf ("%d", threads) : NULL;
}

/* Options that are properties of the elements that compute. */
static gboolean
apply_engine (GPtrArray *elements, const Options *options, GError **error)
{
  g_autofree char *threads = format_threads (options->threads);
  g_autofree char *prefill_threads = format_threads (options->prefill_threads);
  const struct {
    const char *option;   /* "--" and the name of the property */
    const char *value;    /* NULL: not given */
  } given[] = {
    { "--threads", threads },
    { "--prefill-threads", prefill_threads },
    { "--kernels", options->kernels },
    { "--kv-type", options->kv_type },
    { "--load-mode", options->load_mode },
  };

  for (guint i = 0; i < elements->len; i++)
    for (gsize k = 0; k < G_N_ELEMENTS (given); k++) {
      GParamSpec *spec = find_writable (elements->pdata[i],
          given[k].option + 2);

      if (given[k].value != NULL && spec != NULL
          && !set_from_text (elements->pdata[i], spec, given[k].option,
              given[k].value, error))
        return FALSE;
    }
  return TRUE;
}

/* Branches shall differ: the second takes the next seed. */
static void
apply_seed (GPtrArray *elements, guint64 seed)
{
  for (guint i = 0; i < elements->len; i++)
    if (element_is (elements->pdata[i], "lmdecode"))
      g_object_set (elements->pdata[i], "seed", seed++, NULL);
}

gboolean
property_values_apply (GstElement *pipeline, const Options *options,
                       GError **error)
{
  g_autoptr (GPtrArray) elements = NULL;

  if (drafters != NULL && !draft_elements_insert (pipeline, drafters, error))
    return FALSE;
  elements = pipeline_list_elements (pipeline);
  if (!apply_model (elements, options, error)
      || !apply_engine (elements, options, error))
    return FALSE;
  if (options->seed_given)
    apply_seed (elements, options->seed);
  if (stops != NULL && !apply_stops (elements, error))
    return FALSE;
  for (guint i = 0; settings != NULL && i < settings->len; i++)
    if (!apply (elements, &g_array_index (settings, Setting, i), error))
      return FALSE;
  return TRUE;
}
