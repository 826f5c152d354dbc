/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Floats to tiles (tiles.h), with as little error as a scale and an offset for
 * each group allow. The same input gives the same bytes everywhere. Free of
 * GLib.
 */
#pragma once

#include "blocks.h"

/* Writes a tile of @type. @rows: rows of @columns finite floats, a multiple of
 * 32; NULL for padding. @importance: how much a squared error in a column
 * weighs, none negative; NULL when all weigh the same. Weights that are
 * exactly codes times a scale plus an offset come back as they were. */
void runnel_quantise_tile (RunnelTensorType type,
                           const float *const rows[RUNNEL_TILE_ROWS],
                           uint32_t columns, const float *importance,
                           uint8_t *tile);
