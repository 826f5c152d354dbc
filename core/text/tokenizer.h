/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "../api.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_TOKENIZER (runnel_tokenizer_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelTokenizer, runnel_tokenizer, RUNNEL, TOKENIZER, GObject)

/**
 * RunnelTokenizer:
 *
 * Text to token ids and back: byte-level BPE with the pre-tokenizers qwen2,
 * smollm, gpt-2 and llama-bpe. Immutable after construction and safe to use
 * from several threads.
 *
 * Since: 0.1
 */

/**
 * RunnelTextSpan:
 * @start: first byte
 * @length: bytes
 *
 * A byte range of a text that came from a chat template, and so may hold
 * control tokens.
 *
 * Since: 0.1
 */
typedef struct {
  gsize start;
  gsize length;
} RunnelTextSpan;

RUNNEL_API RunnelTokenizer *runnel_tokenizer_new_from_file (const char *path,
                                                            GError **error);

RUNNEL_API gint32 *runnel_tokenizer_encode (RunnelTokenizer *self,
                                            const char *text, gssize length,
                                            gboolean parse_special,
                                            gsize *n_tokens, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
RUNNEL_API gint32 *
runnel_tokenizer_encode_spans (RunnelTokenizer *self, const char *text,
                               gssize length, const RunnelTextSpan *spans,
                               gsize n_spans, gsize *n_tokens, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
RUNNEL_API GBytes *runnel_tokenizer_decode (RunnelTokenizer *self,
                                            const gint32 *tokens,
                                            gsize n_tokens,
                                            gboolean render_special,
                                            GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
RUNNEL_API const guint8 *runnel_tokenizer_get_piece (RunnelTokenizer *self,
                                                     gint32 token,
                                                     gsize *length);
RUNNEL_API gboolean runnel_tokenizer_is_control (RunnelTokenizer *self,
                                                 gint32 token);
RUNNEL_API gint32 runnel_tokenizer_find_token (RunnelTokenizer *self,
                                               const char *text);
RUNNEL_API guint runnel_tokenizer_get_n_tokens (RunnelTokenizer *self);
RUNNEL_API const char *runnel_tokenizer_get_digest (RunnelTokenizer *self);
RUNNEL_API const char *runnel_tokenizer_get_pre (RunnelTokenizer *self);
RUNNEL_API gint32 runnel_tokenizer_get_bos (RunnelTokenizer *self);
RUNNEL_API gint32 runnel_tokenizer_get_eos (RunnelTokenizer *self);
RUNNEL_API gboolean runnel_tokenizer_get_add_bos (RunnelTokenizer *self);
RUNNEL_API const gint32 *runnel_tokenizer_get_stop_tokens (RunnelTokenizer *self,
                                                           gsize *n);
RUNNEL_API const char *runnel_tokenizer_get_chat_template (RunnelTokenizer *self);

G_END_DECLS
