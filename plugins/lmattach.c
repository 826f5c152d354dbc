/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "lmattach.h"

GstFlowReturn
gst_lm_attach_drafter (GstLmFilter *filter, GstBuffer *request,
                       RunnelDrafter *drafter, const GError *error)
{
  GstBuffer *out;

  if (!drafter)
    return gst_lm_filter_fail (filter, request, error);
  out = gst_buffer_copy (request);
  gst_buffer_unref (request);
  gst_lm_request_meta_add_drafter (gst_lm_buffer_get_request_meta (out),
      drafter);
  return gst_lm_filter_push (filter, out);
}

GstCaps *
gst_lm_attach_get_src_caps (GstLmFilter *filter, GstBuffer *request)
{
  GstLmFilterClass *base = g_type_class_peek (GST_TYPE_LM_FILTER);
  GstCaps *caps =
      gst_pad_get_current_caps (gst_lm_filter_get_sink_pad (filter));

  return caps ? caps : base->get_src_caps (filter, request);
}
