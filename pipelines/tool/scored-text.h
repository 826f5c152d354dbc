/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* A text whose tokens models foretell, in windows. */
#pragma once

#include <runnel.h>

G_BEGIN_DECLS

typedef struct {
  RunnelTokenizer *tokenizer;   /* borrowed from the model */
  gint32 *tokens;
  gsize n_tokens;
  gsize window;       /* tokens in one */
  gsize n_windows;
  gsize first;        /* of a window: the first token that is scored */
} ScoredText;

/* --context, --skip and --chunk. */
extern const GOptionEntry scored_text_entries[];

/* Reads a file, or standard input when @path is "-", and cuts it into windows
 * by the options. @context_length: the longest that is possible. */
gboolean scored_text_read (ScoredText *self, RunnelModel *model,
                           guint context_length, const char *path,
                           GError **error);
void scored_text_clear (ScoredText *self);

/* @logits: of each engine, for the token at @position. */
typedef void (*ScoredTextFunc) (const ScoredText *self, gsize position,
                                const float *const *logits,
                                gpointer user_data);
#define SCORED_TEXT_MAX_ENGINES 2
/* Lets engines of one vocabulary read it side by side. */
gboolean scored_text_run (ScoredText *self, RunnelEngine *const *engines,
                          guint n_engines, ScoredTextFunc func,
                          gpointer user_data, GError **error);

G_END_DECLS
