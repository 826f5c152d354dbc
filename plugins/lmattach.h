/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* What the elements that attach drafters do with a request. */
#pragma once

#include <gstrunnel.h>

G_BEGIN_DECLS

/* Pushes @request (taken) with the drafter attached; without a drafter the
 * request fails by @error. */
GstFlowReturn gst_lm_attach_drafter (GstLmFilter *filter, GstBuffer *request,
                                     RunnelDrafter *drafter,
                                     const GError *error);
/* Tokens keep their vocabulary: a get_src_caps of GstLmFilterClass. */
GstCaps *gst_lm_attach_get_src_caps (GstLmFilter *filter, GstBuffer *request);

G_END_DECLS
