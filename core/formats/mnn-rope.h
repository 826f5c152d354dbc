/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * How positions are rotated in an MNN package. The exporter leaves no base and
 * no scaling, only cosines and sines of the positions 0, 1, 2, … (and of every
 * 2048th); the frequencies are read off the row of position 1.
 */
#pragma once

#include "mnn-graph.h"

G_BEGIN_DECLS

/* Fills in the rope fields of @hp, whose rope_dimensions are known. @factors:
 * floats for each half of them that divide the frequencies where no scaling of
 * ours describes them, else left NULL; a model that may not have them gives
 * NULL for it. */
gboolean runnel_mnn_rope_read (const RunnelMnnGraph *graph,
                               const RunnelMapping *weights,
                               RunnelHyperparameters *hp, GArray **factors,
                               GError **error);

G_END_DECLS
