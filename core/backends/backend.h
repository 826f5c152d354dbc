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

RUNNEL_API RunnelBackend *runnel_backend_get (const char *name,
                                              guint n_threads,
                                              const char *kernels,
                                              GError **error);
RUNNEL_API const char *runnel_backend_get_name (RunnelBackend *self);
RUNNEL_API const char *runnel_backend_get_kernels (RunnelBackend *self);
RUNNEL_API guint runnel_backend_get_n_threads (RunnelBackend *self);

G_END_DECLS
