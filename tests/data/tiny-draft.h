/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * DFlash drafts of random weights: as GGUF files in llama.cpp's layout, or as
 * Hugging Face folders that hold the same weights.
 */
#pragma once

#include <glib.h>

#include "formats/gguf.h"

typedef struct {
  guint version;             /* 1 or 2 */
  guint block_size;
  guint n_embd;              /* of the target; a multiple of 32 */
  guint n_vocab;             /* of the target */
  guint tap;                 /* the target's layer behind which it reads */
  guint64 seed;
  guint window;              /* of sliding layers; 0: none slide */
  gboolean all_slide;        /* or else the first of its two layers */
  const RunnelGguf *tokenizer;   /* a file whose tokenizer it has, or NULL */
  const char *pretokenizer;  /* in the place of that one's, or NULL */
} TinyDraft;

/* As tiny_model_write(). */
char *tiny_draft_write (const TinyDraft *draft);
/* A folder; without a tokenizer. */
char *tiny_draft_write_folder (const TinyDraft *draft);
/* Deletes either. */
void tiny_draft_delete (const char *path);
