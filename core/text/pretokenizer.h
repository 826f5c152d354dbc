/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

/* Cuts a text into the words within which byte pairs are merged. The four
 * splitters do by hand what the published regular expressions do. */

G_BEGIN_DECLS

typedef enum {
  RUNNEL_PRETOKENIZER_QWEN2,
  RUNNEL_PRETOKENIZER_SMOLLM,
  RUNNEL_PRETOKENIZER_GPT2,
  RUNNEL_PRETOKENIZER_LLAMA_BPE,
} RunnelPretokenizer;

/* By the name GGUF files use: "qwen2", "smollm", "gpt-2", "llama-bpe". */
gboolean runnel_pretokenizer_from_name (const char *name, gsize length,
                                        RunnelPretokenizer *ret);
/* By the regular expression of a tokenizer.json that has one. */
gboolean runnel_pretokenizer_from_pattern (const char *pattern, gsize length,
                                           RunnelPretokenizer *ret);
const char *runnel_pretokenizer_name (RunnelPretokenizer self);

/* Whether the text is normalised to NFC first. */
gboolean runnel_pretokenizer_wants_nfc (RunnelPretokenizer self);

/* The length of the first word of a text that is not empty, valid UTF-8, and
 * starts where the word before ended. @classes: runnel_character_classes. */
gsize runnel_pretokenizer_next (RunnelPretokenizer self, const guint8 *classes,
                                const guint8 *text, gsize length);

G_END_DECLS
