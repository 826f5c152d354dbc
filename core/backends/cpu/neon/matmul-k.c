/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with ggml's K-quants. Eight rows' blocks are unpacked to bytes once
 * for all rows of x; sums of 16 columns are then paired up across the rows, so
 * that a lane is a row. Compiled for the baseline and for dotprod.
 */
#include "dot.h"

#include "../scalar/scalar.h"

#define ROWS RUNNEL_TILE_ROWS
#define GROUPS (RUNNEL_K_BLOCK / RUNNEL_GROUP)

typedef struct {
  float d[ROWS];
  float dmin[ROWS];
  int8_t codes[2 * GROUPS][ROWS][16];
  int32_t scales[2 * GROUPS][ROWS];
  int32_t mins[2 * GROUPS][ROWS];
} Tile;

static void
unpack_row (Tile *tile, uint32_t r, RunnelMatrixKind kind, const uint8_t *p)
{
  RunnelKBlock block;

  runnel_scalar_unpack_k (kind, p, r, &block);
  tile->d[r] = block.d;
  tile->dmin[r] = block.dmin;
  for (int j = 0; j < 2 * GROUPS; j++) {
    vst1q_s8 (tile->codes[j][r], vld1q_s8 (block.codes + 16 * j));
    tile->scales[j][r] = block.scales[j];
    tile->mins[j][r] = block.mins[j];
  }
}

/* Four rows' sums of products of 16 columns. */
ALWAYS_INLINE int32x4_t
sum_16_columns (int8_t (*codes)[16], int8x16_t x)
{
  int32x4_t sums[4];

#pragma GCC unroll 4
  for (int r = 0; r < 4; r++) {
    int8x16_t c = vld1q_s8 (codes[r]);

#ifdef __ARM_FEATURE_DOTPROD
    sums[r] = vdotq_s32 (vdupq_n_s32 (0), c, x);
#else
    /* Codes are below 64 in magnitude: two products fit 16 bits. */
    sums[r] = vpaddlq_s16 (vmlal_high_s8 (vmull_s8 (vget_low_s8 (c),
                vget_low_s8 (x)), c, x));
#endif
  }
  return vpaddq_s32 (vpaddq_s32 (sums[0], sums[1]),
      vpaddq_s32 (sums[2], sums[3]));
}

ALWAYS_INLINE Lanes
add_group (Tile *tile, int g, bool has_min, const int8_t *q, float x_scale,
    Lanes acc)
{
  int32x4_t isum[2], msum[2];
  Lanes scale, sums;

#pragma GCC unroll 2
  for (int h = 0; h < 2; h++)
    isum[h] = msum[h] = vdupq_n_s32 (0);
#pragma GCC unroll 2
  for (int j = 2 * g; j < 2 * g + 2; j++) {
    int8x16_t x = vld1q_s8 (q + 16 * (j - 2 * g));
    int32_t sum = has_min ? vaddlvq_s8 (x) : 0;

#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
      isum[h] = vmlaq_s32 (isum[h], sum_16_columns (tile->codes[j] + 4 * h, x),
          vld1q_s32 (tile->scales[j] + 4 * h));
      if (has_min)
        msum[h] = vmlaq_n_s32 (msum[h], vld1q_s32 (tile->mins[j] + 4 * h),
            sum);
    }
  }
  scale = lanes_mul (lanes_load (tile->d), lanes_set (x_scale));
  sums = (Lanes) { vcvtq_f32_s32 (isum[0]), vcvtq_f32_s32 (isum[1]) };
  acc = lanes_add (acc, lanes_mul (scale, sums));
  if (has_min) {
    scale = lanes_mul (lanes_load (tile->dmin), lanes_set (x_scale));
    sums = (Lanes) { vcvtq_f32_s32 (msum[0]), vcvtq_f32_s32 (msum[1]) };
    acc = lanes_sub (acc, lanes_mul (scale, sums));
  }
  return acc;
}

ALWAYS_INLINE void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    size_t block_bytes, bool has_min)
{
  size_t groups = runnel_n_groups (w->columns);
  Tile tile;

  for (uint32_t t = tile_begin; t < tile_end; t++) {
    uint32_t first = t * ROWS;

    for (size_t g = 0; g < groups; g += GROUPS) {
      for (uint32_t r = 0; r < ROWS; r++)
        unpack_row (&tile, r, w->kind, w->data + t * w->stride
            + g / GROUPS * ROWS * block_bytes);
      for (uint32_t i = 0; i < x->n; i++) {
        float *out = y + i * y_stride + first;
        Lanes acc = g == 0 ? lanes_set (0.0f) : lanes_load (out);
        size_t at = i * groups + g;

        for (int j = 0; j < GROUPS; j++)
          acc = add_group (&tile, j, has_min, x->q + (at + j) * RUNNEL_GROUP,
              x->scale[at + j], acc);
        if (g + GROUPS < groups)
          lanes_store (out, acc);
        else
          store_tile (acc, w, first, bias, y + i * y_stride);
      }
    }
  }
}

RUNNEL_DECLARE_MATMUL (LEVEL (matmul_q2_k))
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end,
      sizeof (RunnelBlockQ2K), true);
}

RUNNEL_DECLARE_MATMUL (LEVEL (matmul_q3_k))
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end,
      sizeof (RunnelBlockQ3K), false);
}

RUNNEL_DECLARE_MATMUL (LEVEL (matmul_q4_k))
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end,
      sizeof (RunnelBlockQ4K), true);
}

RUNNEL_DECLARE_MATMUL (LEVEL (matmul_q5_k))
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end,
      sizeof (RunnelBlockQ5K), true);
}

RUNNEL_DECLARE_MATMUL (LEVEL (matmul_q6_k))
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end,
      sizeof (RunnelBlockQ6K), false);
}
