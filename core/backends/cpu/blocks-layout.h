/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The blocks that the kernels read beside tiles (see core/formats/tiles.h):
 * ggml's K-quants, 256 columns each. The K layouts are those of GGUF files
 * (ggml/src/ggml-common.h of the ggml project describes them); all members
 * are bytes, so blocks may lie at any address.
 */
#pragma once

#include <string.h>

#include "kernels.h"
#include "half.h"

/* DO (kind, name of its kernel) for the INT kinds. */
#define RUNNEL_FOR_EACH_TILE_KIND(DO)                                         \
  DO (INT4_32, int4_32)                                                       \
  DO (INT4_32_OFFSET, int4_32_offset)                                         \
  DO (INT4_32_CENTRED, int4_32_centred)                                       \
  DO (INT4_64, int4_64)                                                       \
  DO (INT4_64_OFFSET, int4_64_offset)                                         \
  DO (INT4_64_CENTRED, int4_64_centred)                                       \
  DO (INT8_32, int8_32)                                                       \
  DO (INT8_32_OFFSET, int8_32_offset)                                         \
  DO (INT8_64, int8_64)                                                       \
  DO (INT8_64_OFFSET, int8_64_offset)

#define RUNNEL_K_BLOCK 256
#define RUNNEL_K_MAX_BYTES 210  /* of a block */

/* Column c = 128 h + 32 j + l has its code in bits 2j of codes[32 h + l]; a
 * byte of scales is the scale (low) and minimum (high) of 16 columns. */
typedef struct {
  uint8_t scales[16];
  uint8_t codes[64];
  uint8_t d[2];
  uint8_t dmin[2];
} RunnelBlockQ2K;

/* Codes as in Q2_K, their third bit is bit 4 h + j of high[l]; 16 scales of 6
 * bits, 32 too large. */
typedef struct {
  uint8_t high[32];
  uint8_t codes[64];
  uint8_t scales[12];
  uint8_t d[2];
} RunnelBlockQ3K;

/* Column 64 p + l is the low and 64 p + 32 + l the high nibble of
 * codes[32 p + l]; 8 scales and 8 minimums of 6 bits. */
typedef struct {
  uint8_t d[2];
  uint8_t dmin[2];
  uint8_t scales[12];
  uint8_t codes[128];
} RunnelBlockQ4K;

/* As Q4_K; the fifth bit of column 32 g + l is bit g of high[l]. */
typedef struct {
  uint8_t d[2];
  uint8_t dmin[2];
  uint8_t scales[12];
  uint8_t high[32];
  uint8_t codes[128];
} RunnelBlockQ5K;

/* Column 128 h + 32 j + l has its low bits in nibble j / 2 of
 * low[64 h + 32 (j % 2) + l], its two high bits at 2j of high[32 h + l]; a
 * signed scale for 16 columns. */
typedef struct {
  uint8_t low[128];
  uint8_t high[64];
  uint8_t scales[16];
  uint8_t d[2];
} RunnelBlockQ6K;

/* Bytes of a block of a K kind. */
static inline size_t
runnel_k_block_bytes (RunnelMatrixKind kind)
{
  switch (kind) {
    case RUNNEL_MATRIX_Q2_K:
      return sizeof (RunnelBlockQ2K);
    case RUNNEL_MATRIX_Q3_K:
      return sizeof (RunnelBlockQ3K);
    case RUNNEL_MATRIX_Q4_K:
      return sizeof (RunnelBlockQ4K);
    case RUNNEL_MATRIX_Q5_K:
      return sizeof (RunnelBlockQ5K);
    default:
      return sizeof (RunnelBlockQ6K);
  }
}

/* Row r's block out of eight interleaved ones, and into them. */
static inline void
runnel_gather_k_block (const uint8_t *tile, uint32_t r, size_t bytes,
    uint8_t *block)
{
  size_t i;

  for (i = 0; i + 4 <= bytes; i += 4)
    memcpy (block + i, tile + RUNNEL_TILE_ROWS * i + 4 * r, 4);
  if (i < bytes)
    memcpy (block + i, tile + RUNNEL_TILE_ROWS * i + 2 * r, 2);
}

static inline void
runnel_scatter_k_block (const uint8_t *block, uint32_t r, size_t bytes,
    uint8_t *tile)
{
  size_t i;

  for (i = 0; i + 4 <= bytes; i += 4)
    memcpy (tile + RUNNEL_TILE_ROWS * i + 4 * r, block + i, 4);
  if (i < bytes)
    memcpy (tile + RUNNEL_TILE_ROWS * i + 2 * r, block + i, 2);
}

/* The 6-bit scales and minimums of Q4_K and Q5_K: the first four of each
 * have a byte of their own, whose top two bits complete the last four. */
static inline void
runnel_unpack_scales_k4 (const uint8_t *packed, uint8_t *scales, uint8_t *mins)
{
  for (int j = 0; j < 4; j++) {
    scales[j] = packed[j] & 63;
    mins[j] = packed[j + 4] & 63;
    scales[j + 4] = (packed[j + 8] & 15) | (packed[j] >> 6 << 4);
    mins[j + 4] = (packed[j + 8] >> 4) | (packed[j + 4] >> 6 << 4);
  }
}

/* The 16 signed scales of Q3_K: nibbles first, then their high bits. */
static inline void
runnel_unpack_scales_k3 (const uint8_t *packed, int8_t *scales)
{
  for (int j = 0; j < 16; j++) {
    int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
    int high = packed[8 + j % 4] >> (2 * (j / 4)) & 3;

    scales[j] = (int8_t) ((low | high << 4) - 32);
  }
}
