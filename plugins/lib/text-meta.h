/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gst/gst.h>
#include <runnel.h>
#include "api.h"

G_BEGIN_DECLS

/**
 * GST_LM_TEXT_META_API_TYPE: (skip)
 */
#define GST_LM_TEXT_META_API_TYPE (gst_lm_text_meta_api_get_type ())
/**
 * GST_LM_TEXT_META_INFO: (skip)
 */
#define GST_LM_TEXT_META_INFO (gst_lm_text_meta_get_info ())

typedef struct _GstLmTextMeta GstLmTextMeta;

/**
 * GstLmTextMeta:
 * @meta: parent
 * @spans: (array length=n_spans): byte ranges of the buffer, ascending
 * @n_spans: entries of @spans
 *
 * The byte ranges of a text that came from a chat template. Only there may a
 * tokenizer see control tokens.
 *
 * Since: 0.1
 */
struct _GstLmTextMeta {
  GstMeta meta;

  RunnelTextSpan *spans;
  gsize n_spans;
};

GST_LM_API GType gst_lm_text_meta_api_get_type (void);
GST_LM_API const GstMetaInfo *gst_lm_text_meta_get_info (void);

GST_LM_API GstLmTextMeta *gst_lm_buffer_add_text_meta (GstBuffer *buffer,
                                                       const RunnelTextSpan *spans,
                                                       gsize n_spans);
GST_LM_API GstLmTextMeta *gst_lm_buffer_get_text_meta (GstBuffer *buffer);

G_END_DECLS
