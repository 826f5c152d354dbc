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

#define RUNNEL_QUANTISE_BLOCK 1024     /* columns of the largest block */

/* What a matrix is given, in blocks of @block columns whose errors are made
 * good among each other; the last may be shorter. Of each block
 * [block][block] floats, and no more of them than the block has columns.
 * @moments: H, the second moments of the inputs, made definite. @factors: the
 * upper triangle U of U' U = H^-1. */
typedef struct {
  uint32_t block;              /* a multiple of 64, or all columns */
  const float *moments, *factors;
} RunnelFeedback;

/* The same, so that the outputs for such inputs change least: one column after
 * the other, and what a column loses is spread over those behind it (Frantar,
 * Ashkboos, Hoefler, Alistarh, "GPTQ", ICLR 2023); then scales, offsets and
 * codes in turn. */
void runnel_quantise_tile_with_feedback (
    RunnelTensorType type, const float *const rows[RUNNEL_TILE_ROWS],
    uint32_t columns, const RunnelFeedback *feedback, uint8_t *tile);
