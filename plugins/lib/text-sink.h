/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gst/base/gstbasesink.h>
#include "reply.h"

G_BEGIN_DECLS

#define GST_TYPE_LM_TEXT_SINK (gst_lm_text_sink_get_type ())
GST_LM_API
G_DECLARE_FINAL_TYPE (GstLmTextSink, gst_lm_text_sink, GST, LM_TEXT_SINK,
                      GstBaseSink)

GST_LM_API GstLmReply *gst_lm_text_sink_expect (GstLmTextSink *self,
                                                guint64 id)
    G_GNUC_WARN_UNUSED_RESULT;
GST_LM_API void gst_lm_text_sink_fail (GstLmTextSink *self,
                                       const GError *error);

G_END_DECLS
