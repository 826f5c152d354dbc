/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "element-fixture.h"

#include <glib/gstdio.h>
#include <string.h>
#include "tiny-model.h"

static GPtrArray *model_paths; /* to be removed */
static GHashTable *models;     /* seed → path */
static char *foreign_model;

static char *
keep_path (char *path)
{
  g_ptr_array_add (model_paths, path);
  return path;
}

const char *
element_test_model (guint64 seed)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  char *path = g_hash_table_lookup (models, GUINT_TO_POINTER ((guint) seed));

  if (path == NULL)
    {
      model.seed = seed;
      path = keep_path (tiny_model_write (&model));
      g_hash_table_insert (models, GUINT_TO_POINTER ((guint) seed), path);
    }
  return path;
}

const char *
element_test_foreign_model (void)
{
  static const char *const script[] = { "another", NULL };
  TinyModel model = TINY_MODEL_DEFAULT;

  if (foreign_model == NULL)
    {
      model.script = script;
      foreign_model = keep_path (tiny_model_write (&model));
    }
  return foreign_model;
}

static char *
replace_model (const char *launch)
{
  g_auto (GStrv) parts = g_strsplit (launch, "$MODEL", -1);

  return g_strjoinv (element_test_model (1), parts);
}

ElementTest *
element_test_new (const char *launch, const char *caps)
{
  ElementTest *self = g_new0 (ElementTest, 1);
  g_autofree char *line = replace_model (launch);

  self->harness = gst_harness_new_parse (line);
  self->bus = gst_bus_new ();
  gst_element_set_bus (self->harness->element, self->bus);
  gst_harness_set_src_caps_str (self->harness, caps);
  return self;
}

void
element_test_free (ElementTest *self)
{
  gst_element_set_bus (self->harness->element, NULL);
  gst_bus_set_flushing (self->bus, TRUE);
  gst_object_unref (self->bus);
  gst_harness_teardown (self->harness);
  g_free (self);
}

GstBuffer *
element_test_buffer (const char *text)
{
  if (*text == '\0')
    return gst_buffer_new ();
  return gst_buffer_new_memdup (text, strlen (text));
}

GstFlowReturn
element_test_push (ElementTest *self, const char *text)
{
  return gst_harness_push (self->harness, element_test_buffer (text));
}

char *
element_test_text (GstBuffer *buffer)
{
  gsize size = gst_buffer_get_size (buffer);
  char *text = g_malloc0 (size + 1);

  gst_buffer_extract (buffer, 0, text, size);
  return text;
}

char *
element_test_pull (ElementTest *self)
{
  g_autoptr (GstBuffer) buffer = gst_harness_pull (self->harness);

  g_assert_nonnull (buffer);
  return element_test_text (buffer);
}

void
element_test_expect (ElementTest *self, GstMessageType type, const char *part)
{
  g_autoptr (GstMessage) message =
      gst_bus_timed_pop_filtered (self->bus, 10 * GST_SECOND, type);
  g_autoptr (GError) error = NULL;

  g_assert_nonnull (message);
  if (type == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, NULL);
  else
    gst_message_parse_warning (message, &error, NULL);
  if (strstr (error->message, part) == NULL)
    g_error ("'%s' is not in '%s'", part, error->message);
}

void
element_test_expect_none (ElementTest *self, GstMessageType types)
{
  g_autoptr (GstMessage) message = gst_bus_pop_filtered (self->bus, types);

  if (message != NULL)
    g_error ("unexpected message %s",
             gst_structure_to_string (gst_message_get_structure (message)));
}

GstEvent *
element_test_pull_reply (ElementTest *self)
{
  GstEvent *event;

  while ((event = gst_harness_try_pull_upstream_event (self->harness)) != NULL)
    {
      if (gst_lm_event_parse_reply (event, NULL, NULL, NULL))
        return event;
      gst_event_unref (event);
    }
  return NULL;
}

int
element_test_run (int *argc, char ***argv, void (*add_tests) (void))
{
  int status;

  gst_init (argc, argv);
  g_test_init (argc, argv, NULL);
  model_paths = g_ptr_array_new_with_free_func (g_free);
  models = g_hash_table_new (NULL, NULL);
  add_tests ();
  status = g_test_run ();
  for (guint i = 0; i < model_paths->len; i++)
    g_unlink (model_paths->pdata[i]);
  g_hash_table_unref (models);
  g_ptr_array_unref (model_paths);
  return status;
}
