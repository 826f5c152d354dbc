/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

/* Whether the bytes of @buffer are UTF-8; the error names the first that is
 * not, and the remedy. */
gboolean gst_lm_buffer_check_utf8 (GstBuffer *buffer, GError **error);

G_END_DECLS
