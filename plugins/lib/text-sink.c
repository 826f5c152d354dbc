/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "text-sink.h"

#include "caps.h"
#include "events.h"
#include "reply-channel.h"
#include "request-meta.h"

/**
 * GstLmTextSink:
 *
 * The element lmtextsink: gives replies to an application, in the
 * application's own thread. gst_lm_text_sink_expect() says which reply is
 * wanted; text that nobody expects is thrown away. A reply whose reader stops
 * reading stops generation, after `max-pieces` pieces.
 *
 * It neither waits for the clock nor prerolls. When its pipeline ends, is
 * flushed or goes to READY, replies that are still expected fail.
 *
 * Since: 0.1
 */

GST_DEBUG_CATEGORY_STATIC (lmtextsink_debug);
#define GST_CAT_DEFAULT lmtextsink_debug

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_LM_CAPS_TEXT "; " GST_LM_CAPS_JSON));

enum { PROP_0, PROP_MAX_PIECES };

#define DEFAULT_MAX_PIECES 64

struct _GstLmTextSink {
  GstBaseSink parent_instance;

  /* under the object lock */
  guint max_pieces;
  GList *expected;            /* GstLmReplyChannel with an id, owned */
  GQueue unassigned;          /* GstLmReplyChannel without, owned */
  GstLmReplyChannel *current; /* nullable: being pushed to; owned */
  gboolean is_unlocked;       /* nothing may wait */
  GError *failure;            /* nullable: no reply can come any more */
};

G_DEFINE_FINAL_TYPE (GstLmTextSink, gst_lm_text_sink, GST_TYPE_BASE_SINK)

/* The list is as long as the requests on their way: a few. */
static GList *
find_unlocked (GstLmTextSink *self, guint64 id)
{
  for (GList *at = self->expected; at != NULL; at = at->next)
    if (gst_lm_reply_channel_get_id (at->data) == id)
      return at;
  return NULL;
}

/**
 * gst_lm_text_sink_expect:
 * @self: the sink
 * @id: the request whose reply is wanted; 0: the first that comes and that
 *   nobody expects
 *
 * Asks for a reply, before its request is on its way.
 *
 * Returns: (transfer full): the reply
 *
 * Since: 0.1
 */
GstLmReply *
gst_lm_text_sink_expect (GstLmTextSink *self, guint64 id)
{
  g_autoptr (GstLmReplyChannel) channel = gst_lm_reply_channel_new (id);

  g_return_val_if_fail (GST_IS_LM_TEXT_SINK (self), NULL);

  GST_OBJECT_LOCK (self);
  if (self->failure != NULL)
    gst_lm_reply_channel_fail (channel, self->failure);
  else if (id != 0)
    self->expected = g_list_append (self->expected,
                                    gst_lm_reply_channel_ref (channel));
  else
    g_queue_push_tail (&self->unassigned, gst_lm_reply_channel_ref (channel));
  GST_OBJECT_UNLOCK (self);
  return gst_lm_reply_new (self, channel);
}

static void
drop_unlocked (GstLmTextSink *self, GstLmReplyChannel *channel)
{
  GList *at = g_list_find (self->expected, channel);

  if (at != NULL)
    {
      self->expected = g_list_delete_link (self->expected, at);
      gst_lm_reply_channel_unref (channel);
    }
  else if (g_queue_remove (&self->unassigned, channel))
    gst_lm_reply_channel_unref (channel);
}

void
gst_lm_text_sink_forget (GstLmTextSink *self, GstLmReplyChannel *channel)
{
  GST_OBJECT_LOCK (self);
  drop_unlocked (self, channel);
  GST_OBJECT_UNLOCK (self);
}

/* The replies that are expected now will not come. */
static void
fail_expected_unlocked (GstLmTextSink *self, const GError *error)
{
  for (GList *at = self->expected; at != NULL; at = at->next)
    gst_lm_reply_channel_fail (at->data, error);
  for (GList *at = self->unassigned.head; at != NULL; at = at->next)
    gst_lm_reply_channel_fail (at->data, error);
  g_clear_list (&self->expected, (GDestroyNotify) gst_lm_reply_channel_unref);
  g_queue_clear_full (&self->unassigned,
                      (GDestroyNotify) gst_lm_reply_channel_unref);
}

/**
 * gst_lm_text_sink_fail:
 * @self: the sink
 * @error: why
 *
 * Lets all replies that are expected, and those that will be, fail with an
 * error: for applications that saw an error message of the pipeline. Starting
 * again forgets it.
 *
 * Since: 0.1
 */
void
gst_lm_text_sink_fail (GstLmTextSink *self, const GError *error)
{
  g_return_if_fail (GST_IS_LM_TEXT_SINK (self));
  g_return_if_fail (error != NULL);

  GST_OBJECT_LOCK (self);
  if (self->failure == NULL)
    self->failure = g_error_copy (error);
  fail_expected_unlocked (self, error);
  GST_OBJECT_UNLOCK (self);
}

/* ---- Streaming ---------------------------------------------------------- */

static GstLmReplyChannel *
find_channel_unlocked (GstLmTextSink *self, guint64 id)
{
  GList *found = id != 0 ? find_unlocked (self, id) : NULL;
  GstLmReplyChannel *channel;

  if (found != NULL)
    return gst_lm_reply_channel_ref (found->data);
  channel = g_queue_pop_head (&self->unassigned);
  if (channel == NULL)
    return NULL;
  self->expected = g_list_append (self->expected, channel);
  return gst_lm_reply_channel_ref (channel);
}

static GstFlowReturn
gst_lm_text_sink_render (GstBaseSink *base, GstBuffer *buffer)
{
  GstLmTextSink *self = GST_LM_TEXT_SINK (base);
  GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (buffer);
  gboolean last = meta == NULL || !meta->is_reply ||
                  GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER);
  g_autoptr (GstLmReplyChannel) channel = NULL;
  guint64 id = meta != NULL ? meta->id : 0;
  GstFlowReturn ret = GST_FLOW_OK;
  gboolean is_cancelled = FALSE;
  guint room;

  GST_OBJECT_LOCK (self);
  room = self->max_pieces;
  if (self->is_unlocked)
    ret = GST_FLOW_FLUSHING;
  else
    channel = find_channel_unlocked (self, id);
  if (channel != NULL)
    {
      is_cancelled = gst_lm_reply_channel_begin (channel, id);
      self->current = gst_lm_reply_channel_ref (channel);
    }
  GST_OBJECT_UNLOCK (self);
  if (channel == NULL)
    return ret;

  if (is_cancelled && id != 0)
    gst_pad_push_event (GST_BASE_SINK_PAD (self),
                        gst_lm_event_new_cancel (id));
  ret = gst_lm_reply_channel_push (channel, buffer, last, room);
  GST_OBJECT_LOCK (self);
  g_clear_pointer (&self->current, gst_lm_reply_channel_unref);
  if (last)
    drop_unlocked (self, channel);
  GST_OBJECT_UNLOCK (self);
  return ret;
}

static gboolean
gst_lm_text_sink_unlock (GstBaseSink *base)
{
  GstLmTextSink *self = GST_LM_TEXT_SINK (base);

  GST_OBJECT_LOCK (self);
  self->is_unlocked = TRUE;
  if (self->current != NULL)
    gst_lm_reply_channel_interrupt (self->current);
  GST_OBJECT_UNLOCK (self);
  return TRUE;
}

static gboolean
gst_lm_text_sink_unlock_stop (GstBaseSink *base)
{
  GstLmTextSink *self = GST_LM_TEXT_SINK (base);

  GST_OBJECT_LOCK (self);
  self->is_unlocked = FALSE;
  GST_OBJECT_UNLOCK (self);
  return TRUE;
}

static void
fail_expected (GstLmTextSink *self, gint code, const gchar *message)
{
  g_autoptr (GError) error = g_error_new_literal (G_IO_ERROR, code, message);

  GST_OBJECT_LOCK (self);
  fail_expected_unlocked (self, error);
  GST_OBJECT_UNLOCK (self);
}

static gboolean
gst_lm_text_sink_event (GstBaseSink *base, GstEvent *event)
{
  GstLmTextSink *self = GST_LM_TEXT_SINK (base);

  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS)
    fail_expected (self, G_IO_ERROR_CLOSED,
                   "The pipeline ended before the reply");
  else if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START)
    fail_expected (self, G_IO_ERROR_CANCELLED,
                   "The pipeline was flushed before the reply ended");
  return GST_BASE_SINK_CLASS (gst_lm_text_sink_parent_class)
      ->event (base, event);
}

static gboolean
gst_lm_text_sink_start (GstBaseSink *base)
{
  GstLmTextSink *self = GST_LM_TEXT_SINK (base);

  GST_OBJECT_LOCK (self);
  g_clear_error (&self->failure);
  GST_OBJECT_UNLOCK (self);
  return TRUE;
}

static gboolean
gst_lm_text_sink_stop (GstBaseSink *base)
{
  fail_expected (GST_LM_TEXT_SINK (base), G_IO_ERROR_CANCELLED,
                 "The pipeline was stopped before the reply ended");
  return TRUE;
}

/* ---- The object --------------------------------------------------------- */

static void
gst_lm_text_sink_set_property (GObject *object, guint prop_id,
                               const GValue *value, GParamSpec *pspec)
{
  GstLmTextSink *self = GST_LM_TEXT_SINK (object);

  switch (prop_id)
    {
    case PROP_MAX_PIECES:
      GST_OBJECT_LOCK (self);
      self->max_pieces = g_value_get_uint (value);
      GST_OBJECT_UNLOCK (self);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
      break;
    }
}

static void
gst_lm_text_sink_get_property (GObject *object, guint prop_id, GValue *value,
                               GParamSpec *pspec)
{
  GstLmTextSink *self = GST_LM_TEXT_SINK (object);

  switch (prop_id)
    {
    case PROP_MAX_PIECES:
      GST_OBJECT_LOCK (self);
      g_value_set_uint (value, self->max_pieces);
      GST_OBJECT_UNLOCK (self);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
      break;
    }
}

static void
gst_lm_text_sink_finalize (GObject *object)
{
  GstLmTextSink *self = GST_LM_TEXT_SINK (object);

  g_clear_list (&self->expected, (GDestroyNotify) gst_lm_reply_channel_unref);
  g_queue_clear_full (&self->unassigned,
                      (GDestroyNotify) gst_lm_reply_channel_unref);
  g_clear_error (&self->failure);
  G_OBJECT_CLASS (gst_lm_text_sink_parent_class)->finalize (object);
}

static void
gst_lm_text_sink_class_init (GstLmTextSinkClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSinkClass *base_class = GST_BASE_SINK_CLASS (klass);

  object_class->set_property = gst_lm_text_sink_set_property;
  object_class->get_property = gst_lm_text_sink_get_property;
  object_class->finalize = gst_lm_text_sink_finalize;
  base_class->start = gst_lm_text_sink_start;
  base_class->stop = gst_lm_text_sink_stop;
  base_class->render = gst_lm_text_sink_render;
  base_class->event = gst_lm_text_sink_event;
  base_class->unlock = gst_lm_text_sink_unlock;
  base_class->unlock_stop = gst_lm_text_sink_unlock_stop;

  /**
   * GstLmTextSink:max-pieces:
   *
   * Pieces of a reply that may wait for their reader before the stream waits.
   *
   * Since: 0.1
   */
  g_object_class_install_property (
      object_class, PROP_MAX_PIECES,
      g_param_spec_uint ("max-pieces", "Max pieces",
                         "How many pieces of a reply wait to be read before "
                         "generation has to wait",
                         1, G_MAXUINT, DEFAULT_MAX_PIECES,
                         G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                             GST_PARAM_MUTABLE_PLAYING));
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_set_static_metadata (
      element_class, "Language model text sink", "Sink/Text",
      "Gives replies to an application, in its own thread",
      "The Runnel developers");
  GST_DEBUG_CATEGORY_INIT (lmtextsink_debug, "lmtextsink", 0,
                           "replies for applications");
}

static void
gst_lm_text_sink_init (GstLmTextSink *self)
{
  self->max_pieces = DEFAULT_MAX_PIECES;
  g_queue_init (&self->unassigned);
  gst_base_sink_set_sync (GST_BASE_SINK (self), FALSE);
  gst_base_sink_set_async_enabled (GST_BASE_SINK (self), FALSE);
}
