/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "../api.h"
#include "../progress.h"
#include "../backends/backend.h"
#include "model.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_ENGINE (runnel_engine_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelEngine, runnel_engine, RUNNEL, ENGINE, GObject)

/**
 * RunnelEngine:
 *
 * A model made ready on a backend: its weights in the backend's layout, the
 * scheduler that merges concurrent callers into one batch, the pages of keys
 * and values, and the prefix cache. Shared by all who ask for the same
 * combination. Safe to use from several threads.
 *
 * Since: 0.1
 */

RUNNEL_API RunnelEngine *runnel_engine_get (RunnelModel *model,
                                            RunnelBackend *backend,
                                            RunnelKvType kv_type,
                                            RunnelProgressFunc progress,
                                            gpointer user_data,
                                            GCancellable *cancellable,
                                            GError **error);
RUNNEL_API RunnelEngine *runnel_engine_get_within (RunnelModel *model,
                                                   RunnelBackend *backend,
                                                   RunnelKvType kv_type,
                                                   guint64 max_memory,
                                                   RunnelProgressFunc progress,
                                                   gpointer user_data,
                                                   GCancellable *cancellable,
                                                   GError **error);
RUNNEL_API RunnelModel *runnel_engine_get_model (RunnelEngine *self);
RUNNEL_API RunnelBackend *runnel_engine_get_backend (RunnelEngine *self);
RUNNEL_API RunnelKvType runnel_engine_get_kv_type (RunnelEngine *self);
RUNNEL_API const char *runnel_engine_get_placement (RunnelEngine *self);
RUNNEL_API void runnel_engine_set_max_memory (RunnelEngine *self, guint64 bytes);
RUNNEL_API guint64 runnel_engine_get_max_memory (RunnelEngine *self);
RUNNEL_API void runnel_engine_set_cache_budget (RunnelEngine *self, guint64 bytes);
RUNNEL_API guint64 runnel_engine_get_cache_budget (RunnelEngine *self);
RUNNEL_API void runnel_engine_clear_cache (RunnelEngine *self);
RUNNEL_API void runnel_engine_trim_memory (RunnelEngine *self);
RUNNEL_API void runnel_engine_follow_memory_monitor (RunnelEngine *self,
                                                     GMemoryMonitor *monitor);

/**
 * RunnelEngineStats:
 * @batches: forward passes
 * @rows: token rows forwarded
 * @decode_batches: passes that held a row of a generation
 * @decode_rows: rows of generations in them
 * @logits_rows: rows whose logits were computed
 * @cached_rows: rows that the prefix cache spared
 * @kv_bytes: bytes of pages in use now, each page once
 * @kv_bytes_peak: the most there ever were
 * @cache_bytes: how much of @kv_bytes the prefix cache holds
 * @weight_bytes: bytes of the weights, packed or mapped in place
 * @scratch_bytes: bytes of the scratch of forward passes
 * @draft_bytes: bytes of draft models: weights, scratch, keys and values
 *
 * Work done by an engine and the memory it takes, for tests and statistics:
 * what was computed, never how fast.
 *
 * Since: 0.1
 */
typedef struct {
  guint64 batches;
  guint64 rows;
  guint64 decode_batches;
  guint64 decode_rows;
  guint64 logits_rows;
  guint64 cached_rows;
  guint64 kv_bytes;
  guint64 kv_bytes_peak;
  guint64 cache_bytes;
  guint64 weight_bytes;
  guint64 scratch_bytes;
  guint64 draft_bytes;
} RunnelEngineStats;

RUNNEL_API void runnel_engine_get_stats (RunnelEngine *self,
                                         RunnelEngineStats *ret_stats);

G_END_DECLS
