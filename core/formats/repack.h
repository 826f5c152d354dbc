/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Quantised weights from one layout to another without loss: a type whose
 * weights are d·q or d·q + m, per 32 columns, in tiles that say the same. Free
 * of GLib.
 */
#pragma once

#include "blocks.h"

/* 32 columns of a row: w = d q, or d q + m. */
typedef struct {
  uint16_t d, m;     /* half floats; m is 0 without an offset */
  int16_t q[RUNNEL_TILE_COLUMNS];
} RunnelGroup;

/* Rows of a matrix in any type that is made of such groups. */
typedef struct {
  unsigned type;
  uint64_t columns;  /* a multiple of 32 */
  const uint8_t *data;   /* row 0; of tiled types the start of its tile */
} RunnelGroupRows;

/* The tiled type with groups of 32 that holds the same with codes of 4 or 8
 * bits; 0 when there is none. */
unsigned runnel_repack_exact_type (unsigned type, int bits);
/* The same with groups of 64. */
unsigned runnel_repack_wide_type (unsigned tiled_type);

/* Columns 32 @part … of row @row. */
void runnel_repack_get (const RunnelGroupRows *rows, uint64_t row,
                        uint64_t part, RunnelGroup *group);
/* Whether in each of @n rows both halves of all groups of 64 columns have the
 * same scale and offset. */
bool runnel_repack_can_join (const RunnelGroupRows *rows, uint64_t n);
/* Writes a tile of @type from @n rows from row @row on, at most 8; the others
 * are padding. */
void runnel_repack_tile (const RunnelGroupRows *rows, uint64_t row, int n,
                         unsigned type, uint8_t *tile);
