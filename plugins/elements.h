/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* The elements of the plugin; each is registered by the file of its name. */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

GST_ELEMENT_REGISTER_DECLARE (lmchat)
GST_ELEMENT_REGISTER_DECLARE (lmdecide)
GST_ELEMENT_REGISTER_DECLARE (lmdecode)
GST_ELEMENT_REGISTER_DECLARE (lmdetokenize)
GST_ELEMENT_REGISTER_DECLARE (lmdraft)
GST_ELEMENT_REGISTER_DECLARE (lmgate)
GST_ELEMENT_REGISTER_DECLARE (lmgenerate)
GST_ELEMENT_REGISTER_DECLARE (lmlookup)
GST_ELEMENT_REGISTER_DECLARE (lmprefill)
GST_ELEMENT_REGISTER_DECLARE (lmprompt)
GST_ELEMENT_REGISTER_DECLARE (lmtokenize)

/* What lmgenerate is made of, who reads overrides, and the tracer. */
GType gst_lm_chat_get_type (void);
GType gst_lm_decode_get_type (void);
GType gst_lm_detokenize_get_type (void);
GType gst_lm_lookup_get_type (void);
GType gst_lm_prefill_get_type (void);
GType gst_lm_stats_get_type (void);
GType gst_lm_tokenize_get_type (void);

G_END_DECLS
