/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gst/gst.h>
#include "api.h"
#include "enums.h"

G_BEGIN_DECLS

/**
 * GST_LM_MAX_REQUEST_BYTES:
 *
 * The longest text that is gathered into one request.
 */
#define GST_LM_MAX_REQUEST_BYTES (64 * 1024 * 1024)

#define GST_TYPE_LM_TEXT_FRAMER (gst_lm_text_framer_get_type ())
GST_LM_API
G_DECLARE_FINAL_TYPE (GstLmTextFramer, gst_lm_text_framer, GST, LM_TEXT_FRAMER, GObject)

/**
 * GstLmTextFramer:
 *
 * Turns a stream of text buffers into buffers of one request each, whatever
 * way the stream was cut: in the middle of a character, of a line, of a reply.
 *
 * A request buffer is one memory of text with a #GstLmRequestMeta, and a
 * #GstLmTextMeta if its parts had one. Text that comes from a reply is a new
 * request with a new id. For use by one thread at a time.
 *
 * Since: 0.1
 */

GST_LM_API GstLmTextFramer *gst_lm_text_framer_new (void);
GST_LM_API gboolean gst_lm_text_framer_push (GstLmTextFramer *self,
                                             GstBuffer *buffer,
                                             GstLmFraming framing,
                                             GError **error);
GST_LM_API void gst_lm_text_framer_drain (GstLmTextFramer *self);
GST_LM_API GstBuffer *gst_lm_text_framer_pull (GstLmTextFramer *self);
GST_LM_API void gst_lm_text_framer_reset (GstLmTextFramer *self);

G_END_DECLS
