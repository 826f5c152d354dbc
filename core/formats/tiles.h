/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The tiled layout of weights: what packages hold and what the CPU kernels
 * read, so that a mapped package is used in place. Free of GLib.
 *
 * A matrix is its rows in tiles of 8, the last tile padded with zero rows (d,
 * m and codes 0). A tile is its groups of 32 or 64 columns in ascending order,
 * the columns of a row being a multiple of 32; of a group of 64 the second
 * half is missing at the end of rows of an odd number of halves. A group is
 *
 *   d[8]   half floats, the scales of the 8 rows
 *   m[8]   half floats, their offsets (types with an offset only)
 *   codes  of each 32 columns, one half of a group of 64 after the other:
 *          4 bits: 128 bytes, 4 vectors v of 32; byte 4·row + b of vector v
 *                  has column 4v + b in its low and 16 + 4v + b in its high
 *                  nibble
 *          8 bits: 256 bytes, 8 vectors v of 32; byte 4·row + b of vector v is
 *                  column 4v + b, signed
 *
 * A weight is d·(code − origin), or d·(code − origin) + m.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNNEL_TILE_ROWS 8     /* weight rows interleaved in a tile */
#define RUNNEL_TILE_COLUMNS 32 /* rows are a multiple of these long */

typedef struct {
  int bits;                    /* of a code: 4 (unsigned) or 8 (signed) */
  int group;                   /* columns that share d and m: 32 or 64 */
  int origin;                  /* 0 or 8 */
  bool offset;
} RunnelTileForm;

/* Bytes of d and m in front of a group's codes. */
static inline size_t
runnel_tile_head_bytes (RunnelTileForm form)
{
  return form.offset ? 4 * RUNNEL_TILE_ROWS : 2 * RUNNEL_TILE_ROWS;
}

/* Bytes of the codes of 32 columns. */
static inline size_t
runnel_tile_code_bytes (RunnelTileForm form)
{
  return (size_t) form.bits * RUNNEL_TILE_ROWS * RUNNEL_TILE_COLUMNS / 8;
}

/* Bytes of a tile; columns is a multiple of 32. */
static inline size_t
runnel_tile_bytes (RunnelTileForm form, uint64_t columns)
{
  uint64_t parts = columns / RUNNEL_TILE_COLUMNS;
  uint64_t groups = (columns + (uint64_t) form.group - 1)
      / (uint64_t) form.group;

  return groups * runnel_tile_head_bytes (form)
      + parts * runnel_tile_code_bytes (form);
}
