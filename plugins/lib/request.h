/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gst/gst.h>
#include <runnel.h>
#include "api.h"
#include "enums.h"

G_BEGIN_DECLS

GST_LM_API void gst_lm_element_post_error (GstElement *element,
                                           const GError *error);
GST_LM_API void gst_lm_element_post_warning (GstElement *element,
                                             const GError *error);
GST_LM_API GstBuffer *gst_lm_buffer_new_ended (GstBuffer *request);
GST_LM_API GstFlowReturn gst_lm_pad_push_ended (GstPad *srcpad,
                                                GstBuffer *request,
                                                RunnelModel *model,
                                                const gchar *message);
GST_LM_API GstFlowReturn gst_lm_request_fail (GstElement *element,
                                              GstPad *sinkpad, GstPad *srcpad,
                                              GstBuffer *request,
                                              GstLmErrorPolicy policy,
                                              const GError *error);

G_END_DECLS
