/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "../api.h"

G_BEGIN_DECLS

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

/**
 * runnel_backend_get:
 * @name: "auto" or "cpu"
 * @n_threads: threads to compute with; 0 chooses by the machine
 * @kernels: (nullable): a kernel level ("scalar", "avx2", ...), or %NULL for
 *   the best
 * @error: return location for a #GError
 *
 * The backend of these properties, shared by all who ask for the same ones.
 *
 * Returns: (transfer full): the backend, or %NULL with
 *   %RUNNEL_ERROR_UNSUPPORTED or %RUNNEL_ERROR_INVALID_ARGUMENT
 *
 * Since: 0.1
 */
RUNNEL_API RunnelBackend *runnel_backend_get (const char *name,
                                              guint n_threads,
                                              const char *kernels,
                                              GError **error);
RUNNEL_API const char *runnel_backend_get_name (RunnelBackend *self);
/* The kernel level in use. */
RUNNEL_API const char *runnel_backend_get_kernels (RunnelBackend *self);
RUNNEL_API guint runnel_backend_get_n_threads (RunnelBackend *self);

G_END_DECLS
