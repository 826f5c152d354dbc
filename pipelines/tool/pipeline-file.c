/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "pipeline-file.h"

#include <string.h>

#include <runnel.h>

#include "input.h"
#include "report.h"

#define SUFFIX ".pipeline"

/* Where files are looked for, first to last. */
static char **
get_folders (void)
{
  g_autoptr (GStrvBuilder) folders = g_strv_builder_new ();
  const char *path = g_getenv ("RUNNEL_PIPELINE_PATH");
  g_auto (GStrv) named = g_strsplit (path ? path : "",
      G_SEARCHPATH_SEPARATOR_S, -1);
  g_autofree char *user = g_build_filename (g_get_user_data_dir (), "runnel",
      "pipelines", NULL);

  for (guint i = 0; named[i] != NULL; i++)
    if (*named[i] != '\0')
      g_strv_builder_add (folders, named[i]);
  g_strv_builder_add (folders, user);
  g_strv_builder_add (folders, RUNNEL_PIPELINE_DIR);
  return g_strv_builder_end (folders);
}

static gboolean
is_path (const char *name)
{
  return strchr (name, '/') != NULL || g_str_has_suffix (name, SUFFIX);
}

static char *
find (const char *name)
{
  g_auto (GStrv) folders = get_folders ();
  g_autofree char *file = g_strconcat (name, SUFFIX, NULL);

  if (is_path (name))
    return g_file_test (name, G_FILE_TEST_IS_REGULAR) ? g_strdup (name) : NULL;
  for (guint i = 0; folders[i] != NULL; i++) {
    g_autofree char *path = g_build_filename (folders[i], file, NULL);

    if (g_file_test (path, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&path);
  }
  return NULL;
}

gboolean
pipeline_file_exists (const char *name)
{
  g_autofree char *path = *name != '\0' ? find (name) : NULL;

  return path != NULL;
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

char **
pipeline_file_list (void)
{
  g_auto (GStrv) folders = get_folders ();
  GPtrArray *names = g_ptr_array_new ();

  for (guint i = 0; folders[i] != NULL; i++) {
    g_autoptr (GDir) dir = g_dir_open (folders[i], 0, NULL);
    const char *file;

    while (dir != NULL && (file = g_dir_read_name (dir)) != NULL) {
      g_autofree char *name = g_strndup (file,
          MAX (strlen (file), strlen (SUFFIX)) - strlen (SUFFIX));

      if (g_str_has_suffix (file, SUFFIX)
          && !g_ptr_array_find_with_equal_func (names, name, g_str_equal,
              NULL))
        g_ptr_array_add (names, g_steal_pointer (&name));
    }
  }
  g_ptr_array_sort (names, compare_names);
  g_ptr_array_add (names, NULL);
  return (char **) g_ptr_array_free (names, FALSE);
}

static void
parse (PipelineFile *self, const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_autoptr (GString) launch = g_string_new (NULL);

  for (guint i = 0; lines[i] != NULL; i++) {
    char *line = g_strstrip (lines[i]);

    if (*line != '#') {
      g_string_append_printf (launch, "%s ", line);
      continue;
    }
    line = g_strchug (line + 1);
    if (self->description == NULL && !g_str_has_prefix (line, "SPDX-"))
      self->description = g_strdup (line);
  }
  if (self->description == NULL)
    self->description = g_strdup ("");
  self->launch = g_strstrip (g_strdup (launch->str));
}

PipelineFile *
pipeline_file_load (const char *name, GError **error)
{
  g_autoptr (PipelineFile) self = g_new0 (PipelineFile, 1);
  g_autofree char *text = NULL;
  gsize length;

  self->path = find (name);
  if (self->path == NULL) {
    report_set_usage (error, "there is no pipeline '%s'; 'runnel run --list' "
        "names those there are", name);
    return NULL;
  }
  text = input_read_file (self->path, &length, error);
  if (text == NULL)
    return NULL;
  if (!input_check_text (text, length, self->path, error))
    return NULL;
  self->name = g_path_get_basename (self->path);
  if (g_str_has_suffix (self->name, SUFFIX))
    self->name[strlen (self->name) - strlen (SUFFIX)] = '\0';
  parse (self, text);
  return g_steal_pointer (&self);
}

/* Where the build or the installation put it, if GStreamer does not look
 * there by itself. */
static gboolean
ensure_elements (GError **error)
{
  g_autoptr (GstElementFactory) factory = NULL;

  if (!gst_is_initialized ())
    gst_init (NULL, NULL);
  factory = gst_element_factory_find ("lmprefill");
  if (factory == NULL) {
    gst_registry_scan_path (gst_registry_get (), RUNNEL_GST_PLUGIN_DIR);
    factory = gst_element_factory_find ("lmprefill");
  }
  if (factory == NULL)
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "GStreamer does not find Runnel's elements: set GST_PLUGIN_PATH_1_0 "
        "to the folder of libgstrunnel.so");
  return factory != NULL;
}

GstElement *
pipeline_file_launch (const PipelineFile *self, GError **error)
{
  g_autoptr (GError) cause = NULL;
  g_autoptr (GstElement) pipeline = NULL;

  if (!ensure_elements (error))
    return NULL;
  pipeline = gst_parse_launch_full (self->launch, NULL,
      GST_PARSE_FLAG_FATAL_ERRORS, &cause);
  if (pipeline != NULL)
    gst_object_ref_sink (pipeline);
  if (pipeline == NULL || !GST_IS_PIPELINE (pipeline)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED, "%s: %s",
        self->path, cause ? cause->message
        : "a pipeline has more than one element");
    return NULL;
  }
  return g_steal_pointer (&pipeline);
}

void
pipeline_file_free (PipelineFile *self)
{
  g_free (self->name);
  g_free (self->path);
  g_free (self->description);
  g_free (self->launch);
  g_free (self);
}
