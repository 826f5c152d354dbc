/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "../formats/gguf.h"

/* A vocabulary of full size for models that are noise: a byte-level BPE that
 * cuts English, Chinese and code into pieces of the usual lengths, built by
 * rule and trained on nothing. Its control tokens are the last ids, in the
 * order and at the ends that Qwen3's have. */

G_BEGIN_DECLS

#define RUNNEL_SYNTHETIC_CONTROLS 26
/* The least that it takes: bytes, control tokens, and a merge. */
#define RUNNEL_SYNTHETIC_MIN_TOKENS (256 + RUNNEL_SYNTHETIC_CONTROLS + 1)

/* Adds the tokenizer of @n_tokens, and a ChatML template, to a file. */
void runnel_synthetic_vocabulary_write (RunnelGgufWriter *writer,
                                        guint n_tokens);

G_END_DECLS
