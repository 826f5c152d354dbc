/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <gio/gio.h>
#include <gstrunnel.h>

#include "pipeline-file.h"
#include "property-values.h"
#include "report.h"
#include "verb.h"

static char *format = "dot", *output_path;
static gboolean full;

static const GOptionEntry entries[] = {
  { "format", 'f', 0, G_OPTION_ARG_STRING, &format,
    "dot (default), or what the program dot makes of it: svg, png, pdf",
    "FORMAT" },
  { "output", 'o', 0, G_OPTION_ARG_FILENAME, &output_path,
    "Write to this file instead of standard output", "FILE" },
  { "full", 0, 0, G_OPTION_ARG_NONE, &full,
    "All that GStreamer tells: pads, caps, properties", NULL },
  G_OPTION_ENTRY_NULL
};

static void
append_quoted (GString *dot, const char *text)
{
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\')
      g_string_append_c (dot, '\\');
    g_string_append_c (dot, *text);
  }
}

/* What a property of @element was set to; NULL where it is as in @fresh. */
static char *
dup_setting (GstElement *element, GstElement *fresh, GParamSpec *spec)
{
  g_auto (GValue) value = G_VALUE_INIT, initial = G_VALUE_INIT;
  const GParamFlags both = G_PARAM_READWRITE;

  if ((spec->flags & both) != both || strcmp (spec->name, "name") == 0
      || strcmp (spec->name, "parent") == 0
      || G_IS_PARAM_SPEC_BOXED (spec) || G_IS_PARAM_SPEC_OBJECT (spec))
    return NULL;
  g_value_init (&value, G_PARAM_SPEC_VALUE_TYPE (spec));
  g_value_init (&initial, G_PARAM_SPEC_VALUE_TYPE (spec));
  g_object_get_property (G_OBJECT (element), spec->name, &value);
  g_object_get_property (G_OBJECT (fresh), spec->name, &initial);
  return g_param_values_cmp (spec, &value, &initial) == 0 ? NULL
      : gst_value_serialize (&value);
}

/* The properties that the launch string sets. */
static void
append_properties (GString *dot, GstElement *element)
{
  GstElement *fresh
      = gst_element_factory_create (gst_element_get_factory (element), NULL);
  g_autofree GParamSpec **specs = NULL;
  guint n;

  gst_object_ref_sink (fresh);
  specs = g_object_class_list_properties (G_OBJECT_GET_CLASS (element), &n);
  for (guint i = 0; i < n; i++) {
    g_autofree char *text = dup_setting (element, fresh, specs[i]);

    if (text == NULL)
      continue;
    g_string_append_printf (dot, "\\n%s=", specs[i]->name);
    append_quoted (dot, text);
  }
  gst_object_unref (fresh);
}

/* An element's own name is told where it says more than its factory's. */
static void
append_node (GString *dot, GstElement *element)
{
  const char *factory = GST_OBJECT_NAME (gst_element_get_factory (element));
  const char *name = GST_OBJECT_NAME (element);

  g_string_append (dot, "  \"");
  append_quoted (dot, name);
  g_string_append_printf (dot, "\" [label=\"%s", factory);
  if (!g_str_has_prefix (name, factory)
      && !g_str_equal (name, factory + (g_str_has_prefix (factory, "lm") * 2))) {
    g_string_append (dot, "\\n(");
    append_quoted (dot, name);
    g_string_append_c (dot, ')');
  }
  append_properties (dot, element);
  g_string_append (dot, "\"];\n");
}

/* What runs through a link, by the formats that both ends take. */
static const char *
get_link_label (GstPad *src, GstPad *sink)
{
  static const struct {
    const char *media_type, *label;
  } kinds[] = {
    { "text/x-raw", "text" }, { GST_LM_CAPS_JSON, "JSON" },
    { GST_LM_CAPS_TOKENS, "tokens" }, { GST_LM_CAPS_STATE, "state" },
  };
  g_autoptr (GstCaps) from = gst_pad_query_caps (src, NULL);
  g_autoptr (GstCaps) to = gst_pad_query_caps (sink, NULL);
  g_autoptr (GstCaps) both = gst_caps_intersect (from, to);

  if (gst_caps_is_any (both) || gst_caps_is_empty (both))
    return "";
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (gst_structure_has_name (gst_caps_get_structure (both, 0),
            kinds[i].media_type))
      return kinds[i].label;
  return gst_structure_get_name (gst_caps_get_structure (both, 0));
}

static void
append_links (GString *dot, GstElement *element)
{
  for (GList *l = element->srcpads; l != NULL; l = l->next) {
    g_autoptr (GstPad) peer = gst_pad_get_peer (l->data);
    g_autoptr (GstElement) next
        = peer ? gst_pad_get_parent_element (peer) : NULL;

    if (next == NULL)
      continue;
    g_string_append (dot, "  \"");
    append_quoted (dot, GST_OBJECT_NAME (element));
    g_string_append (dot, "\" -> \"");
    append_quoted (dot, GST_OBJECT_NAME (next));
    g_string_append_printf (dot, "\" [label=\" %s \"];\n",
        get_link_label (l->data, peer));
  }
}

static char *
make_dot (GstElement *pipeline, const PipelineFile *file)
{
  GString *dot = g_string_new ("digraph pipeline {\n"
      "  rankdir=LR;\n"
      "  graph [fontname=\"sans-serif\", fontsize=11, labelloc=t];\n"
      "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#eef3f8\", "
      "color=\"#4a6785\", fontname=\"sans-serif\", fontsize=11];\n"
      "  edge [color=\"#4a6785\", fontname=\"sans-serif\", fontsize=9];\n"
      "  label=\"");

  append_quoted (dot, file->name);
  g_string_append (dot, "\";\n");
  /* The newest child stands first. */
  for (GList *l = g_list_last (GST_BIN_CHILDREN (pipeline)); l; l = l->prev)
    append_node (dot, l->data);
  for (GList *l = g_list_last (GST_BIN_CHILDREN (pipeline)); l; l = l->prev)
    append_links (dot, l->data);
  g_string_append (dot, "}\n");
  return g_string_free (dot, FALSE);
}

static gboolean
check_format (GError **error)
{
  static const char *const formats[] = { "dot", "svg", "png", "pdf", NULL };

  if (g_strv_contains (formats, format))
    return TRUE;
  report_set_usage (error, "--format: '%s' is none of dot, svg, png and pdf",
      format);
  return FALSE;
}

/* What the program dot makes of @dot, which is taken. */
static GBytes *
convert (char *dot, GError **error)
{
  g_autoptr (GBytes) input = g_bytes_new_take (dot, strlen (dot));
  g_autofree char *program = NULL;
  g_autofree char *option = g_strdup_printf ("-T%s", format);
  g_autoptr (GSubprocess) process = NULL;
  g_autoptr (GBytes) output = NULL;

  if (strcmp (format, "dot") == 0)
    return g_steal_pointer (&input);
  program = g_find_program_in_path ("dot");
  if (program == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "the program dot, which draws %s, is not installed: install the "
        "package graphviz, or leave out --format", format);
    return NULL;
  }
  process = g_subprocess_new (G_SUBPROCESS_FLAGS_STDIN_PIPE
      | G_SUBPROCESS_FLAGS_STDOUT_PIPE, error, program, option, NULL);
  if (process == NULL || !g_subprocess_communicate (process, input, NULL,
          &output, NULL, error)
      || !g_subprocess_wait_check (process, NULL, error))
    return NULL;
  return g_steal_pointer (&output);
}

/* In place, for the file may be a device or a pipe. */
static gboolean
write_file (const char *path, const char *data, gsize size, GError **error)
{
  FILE *file = fopen (path, "wbe");
  gboolean written = file != NULL && fwrite (data, 1, size, file) == size;

  if (file != NULL && fclose (file) != 0)
    written = FALSE;
  if (!written)
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "--output: %s cannot be written: %s", path, g_strerror (errno));
  return written;
}

static gboolean
write_graph (GBytes *graph, GError **error)
{
  gsize size;
  const char *data = g_bytes_get_data (graph, &size);

  if (output_path != NULL)
    return write_file (output_path, data, size, error);
  fwrite (data, 1, size, stdout);
  return TRUE;
}

static gboolean
draw (const char *name, GError **error)
{
  g_autoptr (PipelineFile) file = NULL;
  g_autoptr (GstElement) pipeline = NULL;
  g_autoptr (GBytes) graph = NULL;

  if (!check_format (error))
    return FALSE;
  file = pipeline_file_load (name, error);
  pipeline = file ? pipeline_file_launch (file, error) : NULL;
  if (pipeline == NULL)
    return FALSE;
  graph = convert (full
      ? gst_debug_bin_to_dot_data (GST_BIN (pipeline),
          GST_DEBUG_GRAPH_SHOW_ALL)
      : make_dot (pipeline, file), error);
  return graph != NULL && write_graph (graph, error);
}

static int
run (const Options *options)
{
  g_autoptr (GError) error = NULL;
  const char *name = options->n_arguments > 0 ? options->arguments[0]
      : "reply";

  return draw (name, &error) ? EXIT_OK : report_error (error);
}

const Verb verb_graph = {
  .name = "graph",
  .parameters = "[PRESET]",
  .summary = "A picture of a pipeline",
  .details = "PRESET is as for 'runnel run', which is what lists them.\n\n"
    "  runnel graph two-replies -f svg -o two-replies.svg",
  .uses = 0,
  .max_arguments = 1,
  .entries = entries,
  .run = run,
};
