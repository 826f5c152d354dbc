/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "tokenizer-private.h"

/* The stages around the model in tokenizer.json: normaliser, pre-tokenizer,
 * decoder and post-processor. */

G_BEGIN_DECLS

/* NULL also for a member of NULL, so that a path can be followed. */
static inline const RunnelJsonNode *
runnel_tokenizer_json_member (const RunnelJsonNode *node, const char *key)
{
  return node != NULL ? runnel_json_node_member (node, key) : NULL;
}

/* The beginning of a string of the file, for an error message. */
char *runnel_tokenizer_json_excerpt (const char *text);

/* Which of the four pre-tokenizers the file describes; RUNNEL_ERROR_UNSUPPORTED
 * with the name of the stage when it is none of them. */
gboolean runnel_tokenizer_json_pretokenizer (const RunnelJson *json,
                                             RunnelPretokenizer *ret,
                                             GError **error);
/* Sets bos and add_bos from a template that puts one token before a text. */
gboolean runnel_tokenizer_json_postprocessor (const RunnelJson *json,
                                              RunnelTokenizerParts *parts,
                                              GError **error);

G_END_DECLS
