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
 * GST_LM_TEXT_END_NONE:
 *
 * A #GstLmTokensMeta.text_end that limits nothing.
 */
#define GST_LM_TEXT_END_NONE G_MAXUINT64

/**
 * GST_LM_TOKENS_META_API_TYPE: (skip)
 */
#define GST_LM_TOKENS_META_API_TYPE (gst_lm_tokens_meta_api_get_type ())
/**
 * GST_LM_TOKENS_META_INFO: (skip)
 */
#define GST_LM_TOKENS_META_INFO (gst_lm_tokens_meta_get_info ())

typedef struct _GstLmTokensMeta GstLmTokensMeta;

/**
 * GstLmTokensMeta:
 * @meta: parent
 * @text_end: bytes of the reply's text, counted from its beginning, that may
 *   be shown after this buffer; %GST_LM_TEXT_END_NONE: all. A stop string that
 *   ends inside a token is cut off by it.
 * @logprobs: (nullable) (array length=n_logprobs): natural logarithm of each
 *   token's probability
 * @n_logprobs: entries of @logprobs: 0, or the number of tokens
 * @top: (nullable) (array length=n_top): alternatives of each token, best
 *   first, the same number for every token
 * @n_top: entries of @top: a multiple of the number of tokens
 *
 * What generation says about the tokens of a buffer.
 *
 * Since: 0.1
 */
struct _GstLmTokensMeta {
  GstMeta meta;

  guint64 text_end;
  gfloat *logprobs;
  gsize n_logprobs;
  RunnelTokenLogprob *top;
  gsize n_top;
};

GST_LM_API GType gst_lm_tokens_meta_api_get_type (void);
GST_LM_API const GstMetaInfo *gst_lm_tokens_meta_get_info (void);

GST_LM_API GstLmTokensMeta *
gst_lm_buffer_add_tokens_meta (GstBuffer *buffer, guint64 text_end,
                               const gfloat *logprobs, gsize n_logprobs,
                               const RunnelTokenLogprob *top, gsize n_top);
GST_LM_API GstLmTokensMeta *gst_lm_buffer_get_tokens_meta (GstBuffer *buffer);

GST_LM_API GstBuffer *gst_lm_buffer_new_tokens (const gint32 *tokens,
                                                gsize n_tokens);
GST_LM_API gint32 *gst_lm_buffer_dup_tokens (GstBuffer *buffer,
                                             gsize *n_tokens, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
