/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "filter.h"

G_BEGIN_DECLS

/* The query function of both pads. */
gboolean gst_lm_filter_query (GstPad *pad, GstObject *parent, GstQuery *query);

G_END_DECLS
