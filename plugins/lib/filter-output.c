/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* What stands before the data of a filter's source pad, in its order: caps,
 * segment, then the other sticky events. All in the streaming thread. */
#include "filter-output.h"

void
gst_lm_filter_output_init (GstLmFilterOutput *self, GstPad *pad)
{
  self->pad = pad;
  g_queue_init (&self->pending);
}

void
gst_lm_filter_output_clear (GstLmFilterOutput *self)
{
  gst_lm_filter_output_forget_segment (self);
  gst_caps_replace (&self->caps, NULL);
  g_queue_clear_full (&self->pending, (GDestroyNotify) gst_event_unref);
}

void
gst_lm_filter_output_forget_segment (GstLmFilterOutput *self)
{
  gst_clear_event (&self->segment);
  self->segment_sent = FALSE;
}

/* fdsrc and filesrc count bytes; text has no use for them. */
static GstEvent *
make_time_segment (GstEvent *event)
{
  const GstSegment *given;
  GstSegment segment;

  gst_event_parse_segment (event, &given);
  if (given->format == GST_FORMAT_TIME)
    return event;
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_event_unref (event);
  return gst_event_new_segment (&segment);
}

void
gst_lm_filter_output_hold_segment (GstLmFilterOutput *self, GstEvent *event)
{
  gst_lm_filter_output_forget_segment (self);
  self->segment = make_time_segment (event);
}

gboolean
gst_lm_filter_output_hold_event (GstLmFilterOutput *self, GstEvent *event)
{
  if (!GST_EVENT_IS_STICKY (event) || self->caps != NULL)
    return FALSE;
  g_queue_push_tail (&self->pending, event);
  return TRUE;
}

/* Names both sides: a refused caps event alone says nothing. */
static void
post_refused_caps (GstLmFilterOutput *self, GstElement *element,
                   GstCaps *caps)
{
  g_autoptr (GstCaps) theirs =
      gst_pad_peer_query_caps (self->pad, NULL);
  g_autofree gchar *ours = gst_caps_to_string (caps);
  g_autofree gchar *accepted =
      theirs != NULL ? gst_caps_to_string (theirs) : g_strdup ("nothing");

  GST_ELEMENT_ERROR (element, CORE, NEGOTIATION,
                     ("%s gives %s, but the element after it takes %s.",
                      GST_OBJECT_NAME (element), ours, accepted),
                     (NULL));
}

static GstFlowReturn
send_caps (GstLmFilterOutput *self, GstLmFilter *filter, GstCaps *caps)
{
  if (self->caps != NULL && gst_caps_is_equal (caps, self->caps))
    return GST_FLOW_OK;
  /* Some elements take any caps event and refuse the data. */
  if (!gst_pad_peer_query_accept_caps (self->pad, caps) ||
      !gst_pad_push_event (self->pad, gst_event_new_caps (caps)))
    {
      if (gst_lm_filter_is_flushing (filter) ||
          GST_PAD_IS_FLUSHING (self->pad))
        return GST_FLOW_FLUSHING;
      post_refused_caps (self, GST_ELEMENT (filter), caps);
      return GST_FLOW_NOT_NEGOTIATED;
    }
  gst_caps_replace (&self->caps, caps);
  return GST_FLOW_OK;
}

static void
send_segment (GstLmFilterOutput *self)
{
  GstEvent *event;
  GstSegment segment;

  if (!self->segment_sent)
    {
      if (self->segment == NULL)
        {
          gst_segment_init (&segment, GST_FORMAT_TIME);
          self->segment = gst_event_new_segment (&segment);
        }
      gst_pad_push_event (self->pad, g_steal_pointer (&self->segment));
      self->segment_sent = TRUE;
    }
  while ((event = g_queue_pop_head (&self->pending)) != NULL)
    gst_pad_push_event (self->pad, event);
}

GstFlowReturn
gst_lm_filter_output_prepare (GstLmFilterOutput *self, GstLmFilter *filter,
                              GstCaps *caps)
{
  GstFlowReturn ret = send_caps (self, filter, caps);

  if (ret == GST_FLOW_OK)
    send_segment (self);
  return ret;
}
