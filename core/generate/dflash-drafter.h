/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "../model/drafter.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_DFLASH_DRAFTER (runnel_dflash_drafter_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelDflashDrafter, runnel_dflash_drafter, RUNNEL,
                      DFLASH_DRAFTER, RunnelDrafter)

RUNNEL_API RunnelDrafter *runnel_dflash_drafter_new (RunnelModel *draft,
                                                     GError **error);
RUNNEL_API gboolean
runnel_dflash_drafter_load (RunnelDflashDrafter *self, RunnelBackend *backend,
                            guint64 max_memory, RunnelProgressFunc progress,
                            gpointer user_data, GCancellable *cancellable,
                            GError **error);

G_END_DECLS
