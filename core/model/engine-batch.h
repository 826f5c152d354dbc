/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Forms batches of what concurrent callers submit and runs them: reserves rows,
 * one forward pass, logits, commit.
 */
#pragma once

#include "batch.h"

G_BEGIN_DECLS

typedef struct _RunnelBatcher RunnelBatcher;

/* NULL when memory for the pass is short. */
RunnelBatcher *runnel_batcher_new (RunnelEngine *engine);
void runnel_batcher_free (RunnelBatcher *self);
RunnelParticipant *runnel_batcher_join (RunnelBatcher *self);
void runnel_batcher_leave (RunnelBatcher *self, RunnelParticipant *participant);
gboolean runnel_batcher_submit (RunnelBatcher *self, RunnelBatchItem *items,
                                guint n_items, RunnelParticipant *participant,
                                GCancellable *cancellable, GError **error);
/* Bytes of scratch, now or with a batch of @n_rows. */
gsize runnel_batcher_get_scratch_bytes (RunnelBatcher *self, guint n_rows);
void runnel_batcher_trim (RunnelBatcher *self);
/* The counters of work; those of memory are left alone. */
void runnel_batcher_get_stats (RunnelBatcher *self,
                               RunnelEngineStats *ret_stats);
void runnel_batcher_count_cached_rows (RunnelBatcher *self, guint64 n);

G_END_DECLS
