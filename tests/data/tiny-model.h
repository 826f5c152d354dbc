/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Tiny models made by the tests: two layers of random weights of any
 * architecture and tensor type, or a scripted chain of tokens, with a
 * byte-level vocabulary, ChatML's control tokens and a ChatML template.
 */
#pragma once

#include <glib.h>

#include "formats/tensor.h"

typedef struct {
  const char *architecture;  /* "llama", "qwen2", "qwen3" */
  RunnelTensorType type;     /* of the matrices */
  gboolean tied;             /* no output matrix of its own */
  guint n_embd;              /* a multiple of 64; of 256 for K types */
  guint n_layers;
  guint context_length;
  guint64 seed;
  /* A reply to be given after any prompt, then the end of text: each string
   * becomes a token of its own, used once. NULL: random weights. */
  const char *const *script;
} TinyModel;

#define TINY_MODEL_DEFAULT \
  { .architecture = "llama", .type = RUNNEL_TENSOR_Q4_1, .tied = TRUE, \
    .n_embd = 64, .n_layers = 2, .context_length = 512, .seed = 1 }

/* Ids: the control tokens, then the 256 bytes, then pieces of English, then
 * the script. */
enum {
  TINY_END_OF_TEXT,          /* "<|endoftext|>" */
  TINY_IM_START,             /* "<|im_start|>" */
  TINY_IM_END,               /* "<|im_end|>", the end of a reply */
  TINY_FIRST_BYTE,
  TINY_FIRST_PIECE = TINY_FIRST_BYTE + 256,
};

/* Writes the model into a fresh file in the system's folder for temporary
 * files and returns its path; the caller removes it. Aborts on failure. */
char *tiny_model_write (const TinyModel *model);

/* The id of the script's token @i. */
gint32 tiny_model_script_token (guint i);
