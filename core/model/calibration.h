/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "engine.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_CALIBRATION (runnel_calibration_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelCalibration, runnel_calibration, RUNNEL,
                      CALIBRATION, GObject)

/**
 * RunnelCalibration:
 *
 * What the inputs of a model's matrices look like while it reads a text: their
 * second moments, by which a quantiser knows what an error costs and how other
 * columns can make it good.
 *
 * Since: 0.1
 */

RUNNEL_API RunnelCalibration *runnel_calibration_new (RunnelEngine *engine,
                                                      GError **error);
RUNNEL_API gboolean runnel_calibration_feed (RunnelCalibration *self,
                                             const gint32 *tokens,
                                             gsize n_tokens,
                                             RunnelProgressFunc progress,
                                             gpointer user_data,
                                             GCancellable *cancellable,
                                             GError **error);
RUNNEL_API guint64 runnel_calibration_get_n_tokens (RunnelCalibration *self);
RUNNEL_API float *runnel_calibration_dup_importance (RunnelCalibration *self,
                                                     const char *tensor,
                                                     gsize *n_columns);

G_END_DECLS
