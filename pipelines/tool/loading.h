/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* From the common options to a model and what computes it. */
#pragma once

#include <runnel.h>

#include "verb.h"

G_BEGIN_DECLS

/* A usage error when no model was named. */
gboolean loading_check_model (const Options *options, GError **error);
RunnelModel *loading_open_model (const Options *options, GError **error);
RunnelBackend *loading_get_backend (const Options *options, GError **error);
/* FALSE when there is no such type. */
gboolean loading_get_kv_type (const Options *options, RunnelKvType *ret_type);
/* The engine of @model, with progress. */
RunnelEngine *loading_get_engine (const Options *options, RunnelModel *model,
                                  GError **error);

G_END_DECLS
