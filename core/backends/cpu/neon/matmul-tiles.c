/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with interleaved weights. A 32-bit lane is a row of the tile: its
 * four bytes meet the same four columns of x in every lane. Compiled for each
 * NEON level.
 */
#include "dot.h"

#define AT_ONCE 4               /* rows of x that share a tile's codes */

ALWAYS_INLINE int8x16_t
load_codes (const uint8_t *p)
{
  return vreinterpretq_s8_u8 (vld1q_u8 (p));
}

/* The low or high nibbles less the origin. */
ALWAYS_INLINE int8x16_t
low_codes (int8x16_t bytes, bool origin_8)
{
  int8x16_t codes = vandq_s8 (bytes, vdupq_n_s8 (15));

  return origin_8 ? vsubq_s8 (codes, vdupq_n_s8 (8)) : codes;
}

ALWAYS_INLINE int8x16_t
high_codes (int8x16_t bytes, bool origin_8)
{
  int8x16_t codes = vreinterpretq_s8_u8 (vshrq_n_u8 (vreinterpretq_u8_s8 (
              bytes), 4));

  return origin_8 ? vsubq_s8 (codes, vdupq_n_s8 (8)) : codes;
}

ALWAYS_INLINE int8x16_t
broadcast_4_bytes (const int8_t *q)
{
  int32_t bytes;

  memcpy (&bytes, q, sizeof bytes);
  return vreinterpretq_s8_s32 (vdupq_n_s32 (bytes));
}

/* Sums of a group for n rows of x, `stride` apart; isum[i][h] are those of
 * rows 4h to 4h + 3 of the tile. */
ALWAYS_INLINE void
sum_group (const uint8_t *p, const int8_t *q, size_t stride, int n, RunnelTileForm form,
    int32x4_t isum[AT_ONCE][2])
{
  Dot dots[AT_ONCE][2];

#pragma GCC unroll 4
  for (int i = 0; i < n; i++)
    dots[i][0] = dots[i][1] = dot_zero ();

#pragma GCC unroll 4
  for (int v = 0; v < 4; v++) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
      int second = form.bits == 4 ? 16 : 4;     /* columns of the other codes */
      int column = form.bits == 4 ? 4 * v : 8 * v;
      int8x16_t c0, c1;

      if (form.bits == 4) {
        int8x16_t bytes = load_codes (p + 32 * v + 16 * h);

        c0 = low_codes (bytes, form.origin == 8);
        c1 = high_codes (bytes, form.origin == 8);
      } else {
        c0 = load_codes (p + 64 * v + 16 * h);
        c1 = load_codes (p + 64 * v + 32 + 16 * h);
      }
#pragma GCC unroll 4
      for (int i = 0; i < n; i++) {
        const int8_t *x = q + i * stride + column;

        dots[i][h] = dot_add (dots[i][h], c0, broadcast_4_bytes (x), c1,
            broadcast_4_bytes (x + second));
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) {
    isum[i][0] = dot_sum (dots[i][0]);
    isum[i][1] = dot_sum (dots[i][1]);
  }
}

#ifdef __ARM_FEATURE_MATMUL_INT8

/* Eight columns of two rows of x. */
ALWAYS_INLINE int8x16_t
load_pair (const int8_t *q, size_t stride)
{
  return vcombine_s8 (vld1_s8 (q), vld1_s8 (q + stride));
}

/* Rows 2k and 2k + 1 of four, with eight columns each, of codes that have four
 * columns in a lane. */
ALWAYS_INLINE int8x16_t
zip_rows (int8x16_t first, int8x16_t second, int k)
{
  int32x4_t a = vreinterpretq_s32_s8 (first);
  int32x4_t b = vreinterpretq_s32_s8 (second);

  return vreinterpretq_s8_s32 (k == 0 ? vzip1q_s32 (a, b) : vzip2q_s32 (a, b));
}

/* The same for an even number of rows of x: a product of matrices of 2 × 8
 * and 8 × 2 an instruction. */
ALWAYS_INLINE void
sum_group_pairs (const uint8_t *p, const int8_t *q, size_t stride, int n,
    RunnelTileForm form, int32x4_t isum[AT_ONCE][2])
{
  const int n_chunks = form.bits == 4 ? 2 : 4;
  const int32x4_t zero = vdupq_n_s32 (0);
  int32x4_t acc[AT_ONCE / 2][4] = {
    {zero, zero, zero, zero}, {zero, zero, zero, zero}
  };

#pragma GCC unroll 4
  for (int c = 0; c < n_chunks; c++) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      const uint8_t *at = p + 64 * c + 16 * (k / 2);
      int8x16_t codes = zip_rows (load_codes (at), load_codes (at + 32), k % 2);

      for (int i = 0; i < n / 2; i++) {
        const int8_t *x = q + 2 * i * stride + 8 * c;

        if (form.bits == 4) {
          acc[i][k] = vmmlaq_s32 (acc[i][k], low_codes (codes, form.origin == 8),
              load_pair (x, stride));
          acc[i][k] = vmmlaq_s32 (acc[i][k], high_codes (codes, form.origin == 8),
              load_pair (x + 16, stride));
        } else {
          acc[i][k] = vmmlaq_s32 (acc[i][k], codes, load_pair (x, stride));
        }
      }
    }
  }
  for (int i = 0; i < n / 2; i++) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
      isum[2 * i][h] = vuzp1q_s32 (acc[i][2 * h], acc[i][2 * h + 1]);
      isum[2 * i + 1][h] = vuzp2q_s32 (acc[i][2 * h], acc[i][2 * h + 1]);
    }
  }
}

#endif

/* A tile times n rows of x, the i-th on. */
ALWAYS_INLINE void
multiply_rows (const RunnelMatrix *w, const uint8_t *p, uint32_t first,
    const RunnelRows *x, uint32_t i, int n, const float *bias, float *y,
    size_t y_stride, RunnelTileForm form)
{
  const int heads = (int) runnel_tile_head_bytes (form);
  const int codes = (int) runnel_tile_code_bytes (form);
  const size_t per_scale = (size_t) form.group / RUNNEL_GROUP;
  size_t groups = runnel_n_groups (w->columns), at = i * groups;
  Lanes acc[AT_ONCE];

#pragma GCC unroll 4
  for (int j = 0; j < n; j++)
    acc[j] = lanes_set (0.0f);
  for (size_t g = 0; g < groups;) {
    Lanes d = lanes_load_halves (p), m = d;

    if (form.offset)
      m = lanes_load_halves (p + 16);
    p += heads;
#pragma GCC unroll 2
    for (size_t k = 0; k < per_scale && g < groups; k++, g++, p += codes) {
      const float *scale = x->scale + at + g, *moment = x->moment + at + g;
      const int8_t *q = x->q + (at + g) * RUNNEL_GROUP;
      int32x4_t isum[AT_ONCE][2];

#ifdef __ARM_FEATURE_MATMUL_INT8
      if (n % 2 == 0)
        sum_group_pairs (p, q, groups * RUNNEL_GROUP, n, form, isum);
      else
#endif
        sum_group (p, q, groups * RUNNEL_GROUP, n, form, isum);

#pragma GCC unroll 4
      for (int j = 0; j < n; j++) {
        Lanes sums = { vcvtq_f32_s32 (isum[j][0]), vcvtq_f32_s32 (isum[j][1]) };
        Lanes both = lanes_mul (d, lanes_set (scale[j * groups]));

        acc[j] = lanes_add (acc[j], lanes_mul (both, sums));
        if (form.offset)
          acc[j] = lanes_add (acc[j], lanes_mul (m,
                  lanes_set (moment[j * groups])));
      }
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < n; j++)
    store_tile (acc[j], w, first, bias, y + (i + j) * y_stride);
}

ALWAYS_INLINE void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    RunnelTileForm form)
{
  for (uint32_t t = tile_begin; t < tile_end; t++) {
    const uint8_t *p = w->data + t * w->stride;
    uint32_t first = t * RUNNEL_TILE_ROWS, i;

    for (i = 0; i + 4 <= x->n; i += 4)
      multiply_rows (w, p, first, x, i, 4, bias, y, y_stride, form);
    for (; i + 2 <= x->n; i += 2)
      multiply_rows (w, p, first, x, i, 2, bias, y, y_stride, form);
    for (; i < x->n; i++)
      multiply_rows (w, p, first, x, i, 1, bias, y, y_stride, form);
  }
}

#define DEFINE_MATMUL(kind, name)                                             \
  RUNNEL_DECLARE_MATMUL (LEVEL (matmul_##name))                               \
  {                                                                           \
    matmul (w, x, bias, y, y_stride, tile_begin, tile_end,                    \
        runnel_matrix_tile_form (RUNNEL_MATRIX_##kind));                      \
  }

RUNNEL_FOR_EACH_TILE_KIND (DEFINE_MATMUL)
