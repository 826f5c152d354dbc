/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "pipeline-run.h"

#include <glib/gstdio.h>
#include <stdlib.h>

#include "tiny-model.h"

#define WAIT_SECONDS 120

struct _Watchdog {
  GThread *thread;
  GMutex lock;
  GCond cond;
  gboolean stopped;
  guint seconds;
  char *what;
};

static gpointer
watch (gpointer data)
{
  Watchdog *self = data;
  gint64 end = g_get_monotonic_time () + self->seconds * G_TIME_SPAN_SECOND;

  g_mutex_lock (&self->lock);
  while (!self->stopped)
    if (!g_cond_wait_until (&self->cond, &self->lock, end)) {
      g_printerr ("watchdog: not done after %u s: %s\n", self->seconds,
          self->what);
      abort ();
    }
  g_mutex_unlock (&self->lock);
  return NULL;
}

Watchdog *
watchdog_start (guint seconds, const char *what)
{
  Watchdog *self = g_new0 (Watchdog, 1);

  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
  self->seconds = seconds * PIPELINE_SLACK;
  self->what = g_strdup (what);
  self->thread = g_thread_new ("watchdog", watch, self);
  return self;
}

void
watchdog_stop (Watchdog *self)
{
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->lock);
  g_thread_join (self->thread);
  g_cond_clear (&self->cond);
  g_mutex_clear (&self->lock);
  g_free (self->what);
  g_free (self);
}

static char *model_path;

static void
remove_model (void)
{
  g_unlink (model_path);
  g_free (model_path);
}

const char *
pipeline_model_path (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;

  if (!model_path) {
    model_path = tiny_model_write (&model);
    atexit (remove_model);
  }
  return model_path;
}

GstElement *
pipeline_new (const char *format, ...)
{
  g_autofree char *launch = NULL;
  g_autoptr (GError) error = NULL;
  GstElement *element;
  va_list args;

  va_start (args, format);
  launch = g_strdup_vprintf (format, args);
  va_end (args);
  element = gst_parse_launch_full (launch, NULL, GST_PARSE_FLAG_FATAL_ERRORS,
      &error);
  g_assert_no_error (error);
  if (!GST_IS_PIPELINE (element)) {
    GstElement *pipeline = gst_pipeline_new (NULL);

    gst_bin_add (GST_BIN (pipeline), element);
    element = pipeline;
  }
  return gst_object_ref_sink (element);
}

void
pipeline_free (GstElement *pipeline)
{
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
}

GstMessage *
pipeline_wait_message (GstElement *pipeline, GstMessageType types)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  GstMessage *message = gst_bus_timed_pop_filtered (bus,
      WAIT_SECONDS * GST_SECOND, types);

  if (!message)
    g_error ("no message of types 0x%x came", types);
  return message;
}

guint
pipeline_count_messages (GstElement *pipeline, GstMessageType types)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  GstMessage *message;
  guint n = 0;

  for (; (message = gst_bus_pop_filtered (bus, types)); n++)
    gst_message_unref (message);
  return n;
}

static char *
get_error_text (GstMessage *message)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *debug = NULL;

  gst_message_parse_error (message, &error, &debug);
  return g_strdup_printf ("%s: %s (%s)", GST_MESSAGE_SRC_NAME (message),
      error->message, debug ? debug : "");
}

void
pipeline_run (GstElement *pipeline)
{
  g_autoptr (GstMessage) message = NULL;
  GstStateChangeReturn ret =
      gst_element_set_state (pipeline, GST_STATE_PLAYING);

  g_assert_cmpint (ret, !=, GST_STATE_CHANGE_FAILURE);
  message = pipeline_wait_message (pipeline,
      GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    g_error ("%s", get_error_text (message));
  gst_element_set_state (pipeline, GST_STATE_NULL);
}

char *
pipeline_run_to_error (GstElement *pipeline)
{
  g_autoptr (GstMessage) message = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = pipeline_wait_message (pipeline,
      GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  g_assert_cmpint (GST_MESSAGE_TYPE (message), ==, GST_MESSAGE_ERROR);
  return get_error_text (message);
}

GstElement *
pipeline_get (GstElement *pipeline, const char *name)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), name);

  g_assert_nonnull (element);
  gst_object_unref (element);
  return element;
}

guint64
pipeline_send (GstElement *pipeline, const char *text, GstStructure *overrides)
{
  g_autoptr (GstBuffer) buffer = *text ?
      gst_buffer_new_memdup (text, strlen (text)) : gst_buffer_new ();
  guint64 id = gst_lm_request_id_new ();
  GstFlowReturn ret;

  gst_lm_request_meta_set_overrides
      (gst_lm_buffer_add_request_meta (buffer, id), overrides);
  g_clear_pointer (&overrides, gst_structure_free);
  g_signal_emit_by_name (pipeline_get (pipeline, "in"), "push-buffer", buffer,
      &ret);
  g_assert_cmpint (ret, ==, GST_FLOW_OK);
  return id;
}

void
pipeline_end (GstElement *pipeline)
{
  GstFlowReturn ret;

  g_signal_emit_by_name (pipeline_get (pipeline, "in"), "end-of-stream", &ret);
}

gboolean
pipeline_cancel (GstElement *pipeline, const char *element, guint64 id)
{
  g_autoptr (GstPad) pad =
      gst_element_get_static_pad (pipeline_get (pipeline, element), "sink");

  return gst_pad_push_event (pad, gst_lm_event_new_cancel (id));
}

struct _Recorder {
  GstPad *pad;
  gulong probe;
  GMutex lock;
  GCond cond;
  GPtrArray *buffers;
  guint n_markers;
  guint n_gaps;
  gboolean eos;
};

static GstPadProbeReturn
record (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Recorder *self = user_data;

  g_mutex_lock (&self->lock);
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);

    g_ptr_array_add (self->buffers, gst_buffer_ref (buffer));
    if (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER))
      self->n_markers++;
  } else {
    GstEvent *event = GST_PAD_PROBE_INFO_EVENT (info);

    if (GST_EVENT_TYPE (event) == GST_EVENT_GAP)
      self->n_gaps++;
    else if (GST_EVENT_TYPE (event) == GST_EVENT_EOS)
      self->eos = TRUE;
  }
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);
  return GST_PAD_PROBE_OK;
}

Recorder *
recorder_new (GstElement *pipeline, const char *element)
{
  Recorder *self = g_new0 (Recorder, 1);

  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
  self->buffers =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gst_buffer_unref);
  self->pad = gst_element_get_static_pad (pipeline_get (pipeline, element),
      "sink");
  g_assert_nonnull (self->pad);
  self->probe = gst_pad_add_probe (self->pad, GST_PAD_PROBE_TYPE_BUFFER
      | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, record, self, NULL);
  return self;
}

void
recorder_free (Recorder *self)
{
  gst_pad_remove_probe (self->pad, self->probe);
  gst_object_unref (self->pad);
  g_ptr_array_unref (self->buffers);
  g_cond_clear (&self->cond);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
wait_for (Recorder *self, const guint *count, guint n, const char *what)
{
  gint64 end = g_get_monotonic_time () + WAIT_SECONDS * G_TIME_SPAN_SECOND;

  g_mutex_lock (&self->lock);
  while (*count < n)
    if (!g_cond_wait_until (&self->cond, &self->lock, end))
      g_error ("%u of %u %s came", *count, n, what);
  g_mutex_unlock (&self->lock);
}

void
recorder_wait_buffers (Recorder *self, guint n)
{
  wait_for (self, &self->buffers->len, n, "buffers");
}

void
recorder_wait_markers (Recorder *self, guint n)
{
  wait_for (self, &self->n_markers, n, "marked buffers");
}

guint
recorder_get_n_buffers (Recorder *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->buffers->len;
  g_mutex_unlock (&self->lock);
  return n;
}

guint
recorder_get_n_markers (Recorder *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->n_markers;
  g_mutex_unlock (&self->lock);
  return n;
}

guint
recorder_get_n_gaps (Recorder *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->n_gaps;
  g_mutex_unlock (&self->lock);
  return n;
}

gboolean
recorder_get_eos (Recorder *self)
{
  gboolean eos;

  g_mutex_lock (&self->lock);
  eos = self->eos;
  g_mutex_unlock (&self->lock);
  return eos;
}

GstBuffer *
recorder_get_buffer (Recorder *self, guint i)
{
  GstBuffer *buffer;

  g_mutex_lock (&self->lock);
  g_assert_cmpuint (i, <, self->buffers->len);
  buffer = g_ptr_array_index (self->buffers, i);
  g_mutex_unlock (&self->lock);
  return buffer;
}

GstLmRequestMeta *
recorder_get_end (Recorder *self, guint i)
{
  GstLmRequestMeta *meta = NULL;

  g_mutex_lock (&self->lock);
  for (guint b = 0; b < self->buffers->len && !meta; b++) {
    GstBuffer *buffer = g_ptr_array_index (self->buffers, b);

    if (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER) && i-- == 0)
      meta = gst_lm_buffer_get_request_meta (buffer);
  }
  g_mutex_unlock (&self->lock);
  g_assert_nonnull (meta);
  return meta;
}

char *
recorder_get_text (Recorder *self)
{
  GString *text = g_string_new (NULL);

  g_mutex_lock (&self->lock);
  for (guint b = 0; b < self->buffers->len; b++) {
    GstMapInfo map;

    g_assert_true (gst_buffer_map (g_ptr_array_index (self->buffers, b), &map,
            GST_MAP_READ));
    g_string_append_len (text, (const char *) map.data, map.size);
    gst_buffer_unmap (g_ptr_array_index (self->buffers, b), &map);
  }
  g_mutex_unlock (&self->lock);
  return g_string_free (text, FALSE);
}

GArray *
recorder_get_reply (Recorder *self, guint i)
{
  GArray *tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
  guint reply = 0;

  g_mutex_lock (&self->lock);
  for (guint b = 0; b < self->buffers->len && reply <= i; b++) {
    GstBuffer *buffer = g_ptr_array_index (self->buffers, b);
    GstMapInfo map;

    g_assert_true (gst_buffer_map (buffer, &map, GST_MAP_READ));
    if (reply == i)
      g_array_append_vals (tokens, map.data, map.size / sizeof (gint32));
    gst_buffer_unmap (buffer, &map);
    if (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER))
      reply++;
  }
  g_mutex_unlock (&self->lock);
  return tokens;
}

void
recorder_clear (Recorder *self)
{
  g_mutex_lock (&self->lock);
  g_ptr_array_set_size (self->buffers, 0);
  self->n_markers = self->n_gaps = 0;
  self->eos = FALSE;
  g_mutex_unlock (&self->lock);
}
