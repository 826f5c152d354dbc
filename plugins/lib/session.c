/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "session.h"

#include <string.h>
#include "caps.h"
#include "reply-channel.h"
#include "request-meta.h"
#include "text-sink.h"

struct _GstLmSession {
  GObject parent_instance;

  GstPipeline *pipeline;
  GstElement *source;  /* borrowed from the pipeline, as are the next two */
  GstElement *element;
  GstLmTextSink *sink;
};

G_DEFINE_FINAL_TYPE (GstLmSession, gst_lm_session, G_TYPE_OBJECT)

static GError *
new_element_error (GstMessage *message)
{
  g_autofree gchar *debug = NULL;
  GError *error = NULL;

  gst_message_parse_error (message, &error, &debug);
  if (debug != NULL)
    GST_INFO_OBJECT (GST_MESSAGE_SRC (message), "%s", debug);
  return error;
}

/* Any thread. A pipeline that failed gives no more replies; nobody reads the
 * other messages, and they must not gather. */
static GstBusSyncReply
on_message (GstBus *bus, GstMessage *message, gpointer sink)
{
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    {
      g_autoptr (GError) error = new_element_error (message);

      gst_lm_text_sink_fail (sink, error);
    }
  gst_message_unref (message); /* who drops it owns it */
  return GST_BUS_DROP;
}

static void
stop_pipeline (GstElement *pipeline, gpointer unused)
{
  gst_element_set_state (pipeline, GST_STATE_NULL);
}

/* Stopping waits for the work in hand, so another thread does it. */
static void
stop (GstLmSession *self)
{
  g_autoptr (GError) error = g_error_new_literal (
      G_IO_ERROR, G_IO_ERROR_CLOSED, "The session has been closed");

  gst_lm_text_sink_fail (self->sink, error);
  gst_element_call_async (GST_ELEMENT (self->pipeline), stop_pipeline, NULL,
                          NULL);
}

static void
gst_lm_session_dispose (GObject *object)
{
  GstLmSession *self = GST_LM_SESSION (object);

  if (self->pipeline != NULL)
    stop (self);
  g_clear_object (&self->pipeline);
  G_OBJECT_CLASS (gst_lm_session_parent_class)->dispose (object);
}

static void
gst_lm_session_class_init (GstLmSessionClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = gst_lm_session_dispose;
}

static void
gst_lm_session_init (GstLmSession *self)
{
}

/* ---- Starting ----------------------------------------------------------- */

static GstElement *
add_source (GstBin *bin, GError **error)
{
  g_autoptr (GstCaps) caps = gst_lm_caps_new_text ();
  GstElement *source = gst_element_factory_make ("appsrc", "prompts");

  if (source == NULL)
    {
      g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN,
                   "There is no element appsrc: install the GStreamer plugin "
                   "app (package gstreamer1.0-plugins-base)");
      return NULL;
    }
  g_object_set (source, "caps", caps, "format", GST_FORMAT_TIME, "max-bytes",
                (guint64) 0, NULL);
  gst_bin_add (bin, source);
  return source;
}

static gboolean
build (GstLmSession *self, GstElement *element, GError **error)
{
  GstBin *bin = GST_BIN (self->pipeline);
  g_autoptr (GstBus) bus = gst_pipeline_get_bus (self->pipeline);

  self->element = element;
  gst_bin_add (bin, element);
  self->sink = g_object_new (GST_TYPE_LM_TEXT_SINK, "name", "replies", NULL);
  gst_bin_add (bin, GST_ELEMENT (self->sink));
  gst_bus_set_sync_handler (bus, on_message, gst_object_ref (self->sink),
                            gst_object_unref);
  self->source = add_source (bin, error);
  if (self->source == NULL)
    return FALSE;
  if (gst_element_link_many (self->source, element,
                             GST_ELEMENT (self->sink), NULL))
    return TRUE;
  g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_PAD,
               "%s cannot be the element of a session: it needs a sink pad "
               "and a source pad for text", GST_OBJECT_NAME (element));
  return FALSE;
}

/* Before anything was sent, a reply can only have failed. */
static gboolean
has_failed (GstLmReply *reply, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autofree gchar *piece = NULL;

  gst_lm_reply_try_next (reply, &piece, &failure);
  if (failure == NULL)
    return FALSE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return TRUE;
}

/* An element that refuses the change says why by a message, which failed the
 * sink: a reply that is expected now tells. */
static gboolean
play (GstLmSession *self, GError **error)
{
  GstStateChangeReturn change =
      gst_element_set_state (GST_ELEMENT (self->pipeline), GST_STATE_PLAYING);
  g_autoptr (GstLmReply) probe = NULL;

  if (change != GST_STATE_CHANGE_FAILURE)
    return TRUE;
  probe = gst_lm_text_sink_expect (self->sink, 0);
  if (!has_failed (probe, error))
    g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_STATE_CHANGE,
                 "%s cannot be started", GST_OBJECT_NAME (self->element));
  return FALSE;
}

/**
 * gst_lm_session_new:
 * @element: (transfer floating): what turns prompts into replies: an
 *   lmgenerate with its model set, or a bin of other elements
 * @error: return location for a #GError
 *
 * Starts a session. A model's header is read before this returns, its weights
 * meanwhile.
 *
 * Returns: (transfer full): the session
 *
 * Since: 0.1
 */
GstLmSession *
gst_lm_session_new (GstElement *element, GError **error)
{
  g_autoptr (GstLmSession) self = NULL;

  g_return_val_if_fail (GST_IS_ELEMENT (element), NULL);
  g_return_val_if_fail (GST_OBJECT_PARENT (element) == NULL, NULL);

  self = g_object_new (GST_TYPE_LM_SESSION, NULL);
  self->pipeline = GST_PIPELINE (gst_object_ref_sink (gst_pipeline_new (NULL)));
  if (!build (self, element, error) || !play (self, error))
    return NULL;
  return g_steal_pointer (&self);
}

/**
 * gst_lm_session_get_element:
 * @self: the session
 *
 * What turns prompts into replies. Its properties are the values of requests
 * that bring none of their own.
 *
 * Returns: (transfer none): the element
 *
 * Since: 0.1
 */
GstElement *
gst_lm_session_get_element (GstLmSession *self)
{
  g_return_val_if_fail (GST_IS_LM_SESSION (self), NULL);

  return self->element;
}

/**
 * gst_lm_session_get_pipeline:
 * @self: the session
 *
 * The pipeline: an appsrc `prompts`, the element, an lmtextsink `replies`. The
 * session handles the messages of its bus.
 *
 * Returns: (transfer none): the pipeline
 *
 * Since: 0.1
 */
GstPipeline *
gst_lm_session_get_pipeline (GstLmSession *self)
{
  g_return_val_if_fail (GST_IS_LM_SESSION (self), NULL);

  return self->pipeline;
}

/* ---- Sending ------------------------------------------------------------ */

/**
 * gst_lm_session_send:
 * @self: the session
 * @prompt: (transfer full): a prompt; its #GstLmRequestMeta, if it has one, may
 *   hold overrides
 * @is_messages: whether it is a JSON array of chat messages, and not text
 * @error: return location for a #GError
 *
 * Sends a request.
 *
 * Returns: (transfer full): its reply, which begins to arrive later
 *
 * Since: 0.1
 */
GstLmReply *
gst_lm_session_send (GstLmSession *self, GstBuffer *prompt,
                     gboolean is_messages, GError **error)
{
  g_autoptr (GstCaps) caps = NULL;
  g_autoptr (GstLmReply) reply = NULL;
  g_autoptr (GstSample) sample = NULL;
  GstFlowReturn flow = GST_FLOW_ERROR;
  guint64 id;

  g_return_val_if_fail (GST_IS_LM_SESSION (self), NULL);
  g_return_val_if_fail (GST_IS_BUFFER (prompt), NULL);

  id = gst_lm_buffer_ensure_request_meta (&prompt)->id;
  caps = is_messages ? gst_caps_from_string (GST_LM_CAPS_JSON)
                     : gst_lm_caps_new_text ();
  sample = gst_sample_new (prompt, caps, NULL, NULL);
  gst_buffer_unref (prompt);
  reply = gst_lm_text_sink_expect (self->sink, id);
  if (has_failed (reply, error))
    return NULL;
  gst_lm_reply_set_owner (reply, G_OBJECT (self));
  g_signal_emit_by_name (self->source, "push-sample", sample, &flow);
  if (flow == GST_FLOW_OK)
    return g_steal_pointer (&reply);
  if (!has_failed (reply, error))
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_CLOSED,
                 "The session takes no prompts: %s", gst_flow_get_name (flow));
  return NULL;
}

static gboolean
has_property (GstElement *element, const gchar *name)
{
  gboolean found = g_object_class_find_property (G_OBJECT_GET_CLASS (element),
                                                 name) != NULL;
  g_autoptr (GstIterator) children = NULL;
  g_auto (GValue) item = G_VALUE_INIT;

  if (found || !GST_IS_BIN (element))
    return found;
  children = gst_bin_iterate_elements (GST_BIN (element));
  while (!found && gst_iterator_next (children, &item) == GST_ITERATOR_OK)
    {
      found = has_property (g_value_get_object (&item), name);
      g_value_reset (&item);
    }
  return found;
}

/* Elements look at the overrides they know; one that nobody knows would be
 * lost in silence. */
static gboolean
check_overrides (GstLmSession *self, const GstStructure *overrides,
                 GError **error)
{
  gint n = overrides != NULL ? gst_structure_n_fields (overrides) : 0;

  for (gint i = 0; i < n; i++)
    {
      const gchar *name = gst_structure_nth_field_name (overrides, i);

      if (has_property (self->element, name))
        continue;
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                   "%s has no property %s to override; gst-inspect-1.0 lists "
                   "them", GST_OBJECT_NAME (self->element), name);
      return FALSE;
    }
  return TRUE;
}

static GstLmReply *
send_string (GstLmSession *self, const gchar *string, gboolean is_messages,
             const GstStructure *overrides, GError **error)
{
  GstBuffer *prompt;
  GstLmRequestMeta *meta;

  if (!check_overrides (self, overrides, error))
    return NULL;
  prompt = string[0] != '\0' ? gst_buffer_new_memdup (string, strlen (string))
                             : gst_buffer_new ();
  meta = gst_lm_buffer_add_request_meta (prompt, 0);
  gst_lm_request_meta_set_overrides (meta, overrides);
  return gst_lm_session_send (self, prompt, is_messages, error);
}

/**
 * gst_lm_session_send_text:
 * @self: the session
 * @prompt: text
 * @overrides: (nullable): values for this request alone, named as properties
 * @error: return location for a #GError
 *
 * Sends a text.
 *
 * Returns: (transfer full): its reply, which begins to arrive later
 *
 * Since: 0.1
 */
GstLmReply *
gst_lm_session_send_text (GstLmSession *self, const gchar *prompt,
                          const GstStructure *overrides, GError **error)
{
  g_return_val_if_fail (GST_IS_LM_SESSION (self), NULL);
  g_return_val_if_fail (prompt != NULL, NULL);

  return send_string (self, prompt, FALSE, overrides, error);
}

/**
 * gst_lm_session_send_messages:
 * @self: the session
 * @messages: chat messages, a JSON array
 * @overrides: (nullable): values for this request alone, named as properties
 * @error: return location for a #GError
 *
 * Sends a conversation.
 *
 * Returns: (transfer full): its reply, which begins to arrive later
 *
 * Since: 0.1
 */
GstLmReply *
gst_lm_session_send_messages (GstLmSession *self, const gchar *messages,
                              const GstStructure *overrides, GError **error)
{
  g_return_val_if_fail (GST_IS_LM_SESSION (self), NULL);
  g_return_val_if_fail (messages != NULL, NULL);

  return send_string (self, messages, TRUE, overrides, error);
}

/**
 * gst_lm_session_close:
 * @self: the session
 *
 * Ends the session now: replies that have not ended fail, and the pipeline
 * stops soon after. Closing twice is no error.
 *
 * Since: 0.1
 */
void
gst_lm_session_close (GstLmSession *self)
{
  g_return_if_fail (GST_IS_LM_SESSION (self));

  stop (self);
}
