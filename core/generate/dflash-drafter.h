/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "../model/drafter.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_DFLASH_DRAFTER (runnel_dflash_drafter_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelDflashDrafter, runnel_dflash_drafter, RUNNEL, DFLASH_DRAFTER, RunnelDrafter)

RUNNEL_API RunnelDrafter *runnel_dflash_drafter_new (RunnelModel *draft,
                                                     GError **error);

G_END_DECLS
