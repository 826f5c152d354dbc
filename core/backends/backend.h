/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "../api.h"

G_BEGIN_DECLS

/**
 * RunnelKvType:
 * @RUNNEL_KV_TYPE_F16: half floats
 * @RUNNEL_KV_TYPE_F32: floats
 * @RUNNEL_KV_TYPE_INT8: 8-bit codes, with one scale for each token's row of a
 *   head: half the memory of half floats
 *
 * The type of the elements of keys and values in the cache.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_KV_TYPE_F16,
  RUNNEL_KV_TYPE_F32,
  RUNNEL_KV_TYPE_INT8,
} RunnelKvType;

#define RUNNEL_TYPE_KV_TYPE (runnel_kv_type_get_type ())
RUNNEL_API GType runnel_kv_type_get_type (void);

#define RUNNEL_TYPE_BACKEND (runnel_backend_get_type ())
RUNNEL_API
G_DECLARE_DERIVABLE_TYPE (RunnelBackend, runnel_backend, RUNNEL, BACKEND, GObject)

/**
 * RunnelBackend:
 *
 * Who computes: a device with its memory and its table of operations. Safe to
 * use from several threads.
 *
 * Since: 0.1
 */

RUNNEL_API RunnelBackend *runnel_backend_get (const char *name,
                                              guint n_threads,
                                              const char *kernels,
                                              GError **error);
RUNNEL_API RunnelBackend *runnel_backend_get_with_threads (
    const char *name, guint n_threads, guint n_prefill_threads,
    const char *kernels, GError **error);
RUNNEL_API const char *runnel_backend_get_name (RunnelBackend *self);
RUNNEL_API const char *runnel_backend_get_kernels (RunnelBackend *self);
RUNNEL_API guint runnel_backend_get_n_threads (RunnelBackend *self);
RUNNEL_API guint runnel_backend_get_n_prefill_threads (RunnelBackend *self);
RUNNEL_API void runnel_backend_start_profile (RunnelBackend *self);
RUNNEL_API GVariant *runnel_backend_take_profile (RunnelBackend *self);
RUNNEL_API void runnel_backend_measure_limits (RunnelBackend *self,
                                               double *bytes,
                                               double *integer_macs,
                                               double *float_macs);

G_END_DECLS
