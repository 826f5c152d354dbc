/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "../model/drafter.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_LOOKUP_DRAFTER (runnel_lookup_drafter_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelLookupDrafter, runnel_lookup_drafter, RUNNEL,
                      LOOKUP_DRAFTER, RunnelDrafter)

/**
 * RUNNEL_LOOKUP_MAX_NGRAM:
 *
 * The longest n-gram that may be asked for.
 *
 * Since: 0.1
 */
#define RUNNEL_LOOKUP_MAX_NGRAM 64

RUNNEL_API RunnelDrafter *runnel_lookup_drafter_new (guint min_ngram,
                                                     guint max_ngram,
                                                     guint max_draft,
                                                     GError **error);

G_END_DECLS
