/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "sequence.h"

G_BEGIN_DECLS

/* One caller's part of a forward pass: tokens appended to a sequence, and
 * what is wanted of them. Rows are committed to the sequence when the batch
 * has run; on any error the sequence is as before. */
typedef struct {
  RunnelSequence *sequence;
  const gint32 *tokens;
  guint n_tokens;            /* 0 with n_logits 1: of the stored hidden row */
  float *logits;             /* [n_logits][n_vocab] of the last rows */
  guint n_logits;
  float *hidden;             /* [n_tokens][n_embd] of all rows, before the
                              * model's last norm; or NULL */
} RunnelBatchItem;

/* Takes part in lock-step decoding while it lives: see scheduler.h. */
typedef struct _RunnelParticipant RunnelParticipant;
RunnelParticipant *runnel_engine_join (RunnelEngine *self);
void runnel_engine_leave (RunnelEngine *self, RunnelParticipant *participant);

/* Submits and waits. MT safe, but for the sequences, which nobody else may use
 * until it returns. Items must be of different sequences of this engine.
 * @participant: NULL for prefill and one-off work. Errors: context overflow,
 * memory, a non-finite logit (the position is named). */
gboolean runnel_engine_forward (RunnelEngine *self, RunnelBatchItem *items,
                                guint n_items, RunnelParticipant *participant,
                                GError **error);
/* The same, given up when cancelled before a batch has taken it. */
gboolean runnel_engine_forward_cancellable (RunnelEngine *self,
                                            RunnelBatchItem *items,
                                            guint n_items,
                                            GCancellable *cancellable,
                                            GError **error);

/* The prefix cache: keeps a fork of @sequence under its tokens. */
void runnel_engine_cache_sequence (RunnelEngine *self,
                                   RunnelSequence *sequence);

G_END_DECLS
