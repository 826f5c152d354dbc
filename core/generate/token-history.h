/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What the penalties count: the tokens of prompt and reply, the last of them
 * in a window, and how often each stands there. Every step costs the same
 * whatever the length of the history.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
  guint32 in_window; /* occurrences in prompt and reply */
  guint32 in_reply;  /* those of them in the reply */
  guint32 slot;      /* its place in distinct, while in_window > 0 */
} RunnelTokenCount;

typedef struct {
  guint n_vocab;
  gsize window;              /* 0: everything */
  GArray *tokens;            /* gint32: prompt, then reply */
  gsize n_prompt;            /* of tokens */
  gsize start;               /* first token inside the window */
  RunnelTokenCount *counts;  /* [n_vocab] */
  gint32 *distinct;          /* [n_distinct]: the tokens in the window */
  guint32 n_distinct;
} RunnelTokenHistory;

RunnelTokenHistory *runnel_token_history_new (guint n_vocab, gsize window);
RunnelTokenHistory *
runnel_token_history_copy (const RunnelTokenHistory *self);
void runnel_token_history_free (RunnelTokenHistory *self);

/* Appends to the reply. Ids outside the vocabulary take a place in the window
 * and are not counted. */
void runnel_token_history_append (RunnelTokenHistory *self, gint32 token);

/* What is there so far counts as prompt from now on. */
void runnel_token_history_end_reply (RunnelTokenHistory *self);

/* Takes back the last token of the reply; FALSE when there is none. */
gboolean runnel_token_history_pop (RunnelTokenHistory *self);

/* Changes the logits as the penalties say. */
void runnel_token_history_penalise (const RunnelTokenHistory *self,
                                    double repetition, double presence,
                                    double frequency, float *logits);

G_END_DECLS
