/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "model.h"
#include "weights.h"

G_BEGIN_DECLS

RunnelCheckpoint *runnel_model_get_checkpoint (RunnelModel *self);

/* The weights on a kind of backend: made on the first call, then kept as long
 * as the model. @max_memory limits them when they are made; 0 does not. MT
 * safe: one caller makes them, the others wait for it. */
RunnelWeights *runnel_model_ref_weights (RunnelModel *self,
                                         RunnelBackend *backend,
                                         guint64 max_memory,
                                         RunnelProgressFunc progress,
                                         gpointer user_data,
                                         GCancellable *cancellable,
                                         GError **error);

/* Whether the constructor made it: bindings can make an object without. */
gboolean runnel_model_is_made (RunnelModel *self);

G_END_DECLS
