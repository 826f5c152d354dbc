/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gst/gst.h>
#include <runnel.h>
#include "api.h"
#include "enums.h"
#include "model-holder.h"

G_BEGIN_DECLS

#define GST_TYPE_LM_FILTER (gst_lm_filter_get_type ())
GST_LM_API
G_DECLARE_DERIVABLE_TYPE (GstLmFilter, gst_lm_filter, GST, LM_FILTER, GstElement)

/**
 * GstLmFilter:
 *
 * The base of elements with one sink pad `sink` and one source pad `src` that
 * work request by request. It does what is the same in all of them: gathers
 * text into requests, gives every request a #GstLmRequestMeta, loads the
 * model, sends caps before the segment, and a segment in time, passes on
 * requests that have ended already, answers the model query, and obeys
 * flushing, EOS and state changes. Derived classes say what to do with one
 * request.
 *
 * Since: 0.1
 */

/**
 * GstLmFilterClass:
 * @parent_class: parent
 * @model_parts: set by gst_lm_filter_class_use_model()
 * @frames_text: set by gst_lm_filter_class_frame_text()
 * @get_src_caps: the fixed caps of what @request (nullable) will give. The
 *   model is ready, unless @request is %NULL: then a gap comes before any
 *   request. The default is the source template, fixated.
 * @process: one request, or one buffer of it. Takes @buffer, which has a
 *   #GstLmRequestMeta and is not ended early; the model is ready and caps and
 *   segment are sent. Pushes with gst_lm_filter_push(); a request that fails
 *   ends with gst_lm_filter_fail(); returns what these return.
 * @drain: everything that is still to be pushed before EOS goes out
 * @reset: forget what belongs to requests: after a flush (@hard %FALSE) and
 *   when the element has stopped (@hard %TRUE). No data flows meanwhile.
 * @unlock: from any thread: wake whatever waits in @process, which sees
 *   gst_lm_filter_is_flushing() then
 * @src_event: an event from downstream. Takes @event; the default passes it
 *   on.
 *
 * Since: 0.1
 */
struct _GstLmFilterClass {
  GstElementClass parent_class;

  GstLmModelParts model_parts;
  gboolean frames_text;

  GstCaps *(*get_src_caps) (GstLmFilter *self, GstBuffer *request);
  GstFlowReturn (*process) (GstLmFilter *self, GstBuffer *buffer);
  GstFlowReturn (*drain) (GstLmFilter *self);
  void (*reset) (GstLmFilter *self, gboolean hard);
  void (*unlock) (GstLmFilter *self);
  gboolean (*src_event) (GstLmFilter *self, GstEvent *event);

  /*< private >*/
  gpointer padding[8];
};

GST_LM_API void gst_lm_filter_class_use_model (GstLmFilterClass *klass,
                                               GstLmModelParts parts);
GST_LM_API void gst_lm_filter_class_frame_text (GstLmFilterClass *klass);

GST_LM_API GstFlowReturn gst_lm_filter_push (GstLmFilter *self,
                                             GstBuffer *buffer);
GST_LM_API GstFlowReturn gst_lm_filter_fail (GstLmFilter *self,
                                             GstBuffer *request,
                                             const GError *error);
GST_LM_API gboolean gst_lm_filter_send_upstream (GstLmFilter *self,
                                                 GstEvent *event);
GST_LM_API gboolean gst_lm_filter_is_flushing (GstLmFilter *self);
GST_LM_API GstPad *gst_lm_filter_get_sink_pad (GstLmFilter *self);
GST_LM_API GstPad *gst_lm_filter_get_src_pad (GstLmFilter *self);
GST_LM_API GstLmModelHolder *gst_lm_filter_get_model_holder (GstLmFilter *self);
GST_LM_API GstLmFraming gst_lm_filter_get_framing (GstLmFilter *self);
GST_LM_API GstLmErrorPolicy gst_lm_filter_get_error_policy (GstLmFilter *self);

G_END_DECLS
