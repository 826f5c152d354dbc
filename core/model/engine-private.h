/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "batch.h"
#include "drafts.h"
#include "engine.h"
#include "forward.h"
#include "history.h"
#include "prefix-cache.h"
#include "sequence.h"
#include "weights.h"

G_BEGIN_DECLS

const RunnelWeights *runnel_engine_get_weights (RunnelEngine *self);
const RunnelShape *runnel_engine_get_shape (RunnelEngine *self);
RunnelPagePool *runnel_engine_get_pool (RunnelEngine *self);
RunnelPrefixCache *runnel_engine_get_cache (RunnelEngine *self);
void runnel_engine_count_cached_rows (RunnelEngine *self, guint64 n);

/* To be set while nothing is computed; NULL: nobody looks. */
void runnel_engine_set_probe (RunnelEngine *self, RunnelProbe *probe);
RunnelProbe *runnel_engine_get_probe (RunnelEngine *self);

RunnelHistory *runnel_sequence_get_history (RunnelSequence *self);
RunnelDrafts *runnel_sequence_get_drafts (RunnelSequence *self);
/* A sequence over an empty history. */
RunnelSequence *runnel_sequence_new_empty (RunnelEngine *engine,
                                           guint context_length);

/* Reserves rows, of the engine or of a draft within its memory, dropping
 * cached histories while that is short. */
gboolean runnel_engine_reserve (RunnelEngine *self, RunnelHistory *history,
                                guint n, GError **error);
/* Charges what a draft takes to the engine's memory, through @pool, which is
 * the engine's or within it. Give it back by runnel_page_pool_discharge(). */
gboolean runnel_engine_charge (RunnelEngine *self, RunnelPagePool *pool,
                               guint64 bytes, const char *what,
                               GError **error);
/* Counts the scratch that a batch needs, or refuses it. */
gboolean runnel_engine_reserve_scratch (RunnelEngine *self, gsize bytes,
                                        GError **error);

/* Whether the constructor made it: bindings can make an object without. */
gboolean runnel_engine_is_made (RunnelEngine *self);
gboolean runnel_sequence_is_made (RunnelSequence *self);

G_END_DECLS
