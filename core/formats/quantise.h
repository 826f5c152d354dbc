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

/* What an error in one column lets the others make good, in blocks of @block
 * columns, of which the last may be shorter. @factors: of each block the upper
 * triangle U, [block][block] and no more than the block has, of U' U = H^-1,
 * H = the second moments of the inputs. */
typedef struct {
  uint32_t block;              /* a multiple of 64 */
  const float *factors;
} RunnelFeedback;

/* The same, one column after the other, and what a column loses is spread over
 * those behind it (Frantar, Ashkboos, Hoefler, Alistarh, "GPTQ", ICLR 2023).
 * @rows are changed. */
void runnel_quantise_tile_with_feedback (RunnelTensorType type,
                                         float *const rows[RUNNEL_TILE_ROWS],
                                         uint32_t columns,
                                         const RunnelFeedback *feedback,
                                         uint8_t *tile);
