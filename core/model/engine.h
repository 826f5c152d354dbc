/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "../api.h"
#include "../backends/backend.h"
#include "model.h"

G_BEGIN_DECLS

/**
 * RunnelKvType:
 * @RUNNEL_KV_TYPE_F16: half floats
 * @RUNNEL_KV_TYPE_F32: floats
 *
 * The type of the elements of keys and values in the cache.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_KV_TYPE_F16,
  RUNNEL_KV_TYPE_F32,
} RunnelKvType;

#define RUNNEL_TYPE_KV_TYPE (runnel_kv_type_get_type ())
RUNNEL_API GType runnel_kv_type_get_type (void);

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

/**
 * RunnelProgressFunc:
 * @fraction: 0 to 1
 * @user_data: the caller's
 *
 * Told how far a slow operation has come, from the thread that does it.
 *
 * Since: 0.1
 */
typedef void (*RunnelProgressFunc) (double fraction, gpointer user_data);

/* The engine of this model, backend and KV type: an existing one, or made
 * now (slow: weights are read and packed). */
RUNNEL_API RunnelEngine *runnel_engine_get (RunnelModel *model,
                                            RunnelBackend *backend,
                                            RunnelKvType kv_type,
                                            RunnelProgressFunc progress,
                                            gpointer user_data,
                                            GCancellable *cancellable,
                                            GError **error);
RUNNEL_API RunnelModel *runnel_engine_get_model (RunnelEngine *self);
RUNNEL_API RunnelBackend *runnel_engine_get_backend (RunnelEngine *self);
RUNNEL_API RunnelKvType runnel_engine_get_kv_type (RunnelEngine *self);

/* Bytes that pages of keys and values may take together: sequences, the
 * prefix cache and states in flight. 0 (default) is no limit. */
RUNNEL_API void runnel_engine_set_max_memory (RunnelEngine *self, guint64 bytes);
RUNNEL_API guint64 runnel_engine_get_max_memory (RunnelEngine *self);
/* Bytes of it that the prefix cache may keep (default 256 MiB); 0 turns the
 * cache off and empties it. */
RUNNEL_API void runnel_engine_set_cache_budget (RunnelEngine *self, guint64 bytes);
RUNNEL_API guint64 runnel_engine_get_cache_budget (RunnelEngine *self);
RUNNEL_API void runnel_engine_clear_cache (RunnelEngine *self);

/* Work done, for tests and statistics: what was computed, never how fast. */
typedef struct {
  guint64 batches;          /* forward passes */
  guint64 rows;             /* token rows forwarded */
  guint64 decode_batches;   /* batches that held a generation's row */
  guint64 decode_rows;      /* rows of generations in them */
  guint64 logits_rows;
  guint64 cached_rows;      /* rows that the prefix cache saved */
  guint64 kv_bytes;         /* pages in use now, unique */
  guint64 kv_bytes_peak;
  guint64 cache_bytes;      /* of them held by the prefix cache */
  guint64 weight_bytes;     /* packed or mapped in place */
} RunnelEngineStats;

RUNNEL_API void runnel_engine_get_stats (RunnelEngine *self,
                                         RunnelEngineStats *ret_stats);

G_END_DECLS
