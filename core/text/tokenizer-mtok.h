/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "tokenizer-private.h"

/* The tokenizer of an MNN package: tokenizer.mtok, or tokenizer.txt of older
 * exports. Both begin with two lines of text and one of ids:
 *
 *   430 KIND
 *   how many special ids, stop ids, prefix ids
 *   these ids
 *
 * Kind 4 goes on in binary, with the stages of tokenizer.json one after the
 * other; kind 3 in text, with how many tokens and merges, then one a line; kind
 * 1 with how many tokens, then one a line in base64, by rank. Kinds 0 and 2
 * (SentencePiece, WordPiece) are refused. Source: the MNN project,
 * transformers/llm/export/utils/tokenizer.py. */

G_BEGIN_DECLS

/* What stands beside the file; all may be NULL, or 0. */
typedef struct {
  const char *architecture;   /* says how kinds 1 and 3 cut words */
  const char *chat_template, *bos, *eos;   /* before those of the file */
  guint n_vocab;              /* ids the model has */
} RunnelMtokContext;

gboolean runnel_tokenizer_is_mtok (const guint8 *data, gsize size);
RunnelTokenizer *runnel_tokenizer_new_from_mtok (
    RunnelMapping *file, const RunnelMtokContext *context, GError **error);

G_END_DECLS
