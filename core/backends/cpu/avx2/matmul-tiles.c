/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with interleaved weights. A 32-bit lane is a row of the tile: its
 * four bytes meet the same four columns of x in every lane, so that nothing
 * is ever summed across lanes.
 */
#include "avx2.h"

#define PREFETCH_BYTES 1280

/* What a product needs of up to four rows of x. */
typedef struct {
  const int8_t *q[4];
  const float *scale[4];
  const int32_t *sum[4];
  const float *moment[4];
} Rows;

static void
take_rows (Rows *rows, const RunnelRows *x, uint32_t first, uint32_t n)
{
  size_t groups = runnel_n_groups (x->columns);

  for (uint32_t i = 0; i < n; i++) {
    size_t at = (first + i) * groups;

    rows->q[i] = x->q + at * RUNNEL_GROUP;
    rows->scale[i] = x->scale + at;
    rows->sum[i] = x->sum + at;
    rows->moment[i] = x->moment + at;
  }
}

/* Integer sums of a group of 4-bit codes, 32 columns. A lane's eight pairs of
 * products are at most 8 · 2 · 15 · 127 in magnitude: 16 bits hold them. */
ALWAYS_INLINE void
sum_q4 (const uint8_t *p, const Rows *rows, uint32_t g, int n, bool origin_8,
    __m256i *isum)
{
  const __m256i nibble = _mm256_set1_epi8 (15);
  __m256i s[4];

#pragma GCC unroll 4
  for (int v = 0; v < 4; v++) {
    __m256i codes = _mm256_loadu_si256 ((const __m256i *) (p + 32 * v));
    __m256i low = _mm256_and_si256 (codes, nibble);
    __m256i high = _mm256_and_si256 (_mm256_srli_epi16 (codes, 4), nibble);

#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
      const int8_t *q = rows->q[i] + (size_t) g * RUNNEL_GROUP + 4 * v;
      __m256i a = _mm256_maddubs_epi16 (low, broadcast_4_bytes (q));
      __m256i b = _mm256_maddubs_epi16 (high, broadcast_4_bytes (q + 16));

      a = _mm256_add_epi16 (a, b);
      s[i] = v == 0 ? a : _mm256_add_epi16 (s[i], a);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) {
    isum[i] = _mm256_madd_epi16 (s[i], _mm256_set1_epi16 (1));
    if (origin_8)
      isum[i] = _mm256_sub_epi32 (isum[i],
          _mm256_slli_epi32 (_mm256_set1_epi32 (rows->sum[i][g]), 3));
  }
}

/* The same of signed 8-bit codes; one pair of products, at most 2 · 128 · 127,
 * fills 16 bits. */
ALWAYS_INLINE void
sum_q8 (const uint8_t *p, const Rows *rows, uint32_t g, int n, __m256i *isum)
{
  const __m256i ones = _mm256_set1_epi16 (1);

#pragma GCC unroll 8
  for (int v = 0; v < 8; v++) {
    __m256i codes = _mm256_loadu_si256 ((const __m256i *) (p + 32 * v));
    __m256i magnitude = _mm256_abs_epi8 (codes);

#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
      const int8_t *q = rows->q[i] + (size_t) g * RUNNEL_GROUP + 4 * v;
      __m256i x = _mm256_sign_epi8 (broadcast_4_bytes (q), codes);
      __m256i a = _mm256_madd_epi16 (_mm256_maddubs_epi16 (magnitude, x), ones);

      isum[i] = v == 0 ? a : _mm256_add_epi32 (isum[i], a);
    }
  }
}

/* A tile times n rows of x. */
ALWAYS_INLINE void
multiply_tile (const uint8_t *p, uint32_t groups, const Rows *rows, int n,
    bool four_bits, bool origin_8, bool offset, __m256 *acc)
{
#pragma GCC unroll 4
  for (int i = 0; i < n; i++)
    acc[i] = _mm256_setzero_ps ();

  for (uint32_t g = 0; g < groups; g++) {
    __m256 d = load_8_halves (p), m = d;
    __m256i isum[4];

    if (n == 1) {
      for (int line = 0; line < (four_bits ? 160 : 288); line += 64)
        _mm_prefetch ((const char *) p + PREFETCH_BYTES + line, _MM_HINT_T0);
    }
    if (offset)
      m = load_8_halves (p + 16);
    p += offset ? 32 : 16;
    if (four_bits)
      sum_q4 (p, rows, g, n, origin_8, isum);
    else
      sum_q8 (p, rows, g, n, isum);
    p += four_bits ? 128 : 256;

#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
      __m256 scale = _mm256_mul_ps (d, _mm256_set1_ps (rows->scale[i][g]));

      acc[i] = _mm256_add_ps (acc[i],
          _mm256_mul_ps (scale, _mm256_cvtepi32_ps (isum[i])));
      if (offset)
        acc[i] = _mm256_add_ps (acc[i],
            _mm256_mul_ps (m, _mm256_set1_ps (rows->moment[i][g])));
    }
  }
}

/* All tiles for n rows of x from row i on. */
ALWAYS_INLINE void
multiply_rows (const RunnelMatrix *w, const uint8_t *tile, const Rows *rows,
    uint32_t i, int n, const float *bias, float *y, size_t y_stride,
    uint32_t first, bool four_bits, bool origin_8, bool offset)
{
  __m256 acc[4];

  multiply_tile (tile, runnel_n_groups (w->columns), rows, n, four_bits,
      origin_8, offset, acc);
#pragma GCC unroll 4
  for (int j = 0; j < n; j++)
    store_tile (acc[j], w, first, bias, y + (i + j) * y_stride);
}

ALWAYS_INLINE void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    bool four_bits, bool origin_8, bool offset)
{
  for (uint32_t t = tile_begin; t < tile_end; t++) {
    const uint8_t *tile = w->data + t * w->stride;
    uint32_t first = t * RUNNEL_TILE_ROWS, n;

    for (uint32_t i = 0; i < x->n; i += n) {
      Rows rows;

      n = x->n - i < 4 ? x->n - i : 4;
      take_rows (&rows, x, i, n);
      switch (n) {
        case 1:
          multiply_rows (w, tile, &rows, i, 1, bias, y, y_stride, first,
              four_bits, origin_8, offset);
          break;
        case 2:
          multiply_rows (w, tile, &rows, i, 2, bias, y, y_stride, first,
              four_bits, origin_8, offset);
          break;
        case 3:
          multiply_rows (w, tile, &rows, i, 3, bias, y, y_stride, first,
              four_bits, origin_8, offset);
          break;
        default:
          multiply_rows (w, tile, &rows, i, 4, bias, y, y_stride, first,
              four_bits, origin_8, offset);
          break;
      }
    }
  }
}

RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q4)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, true, true, false);
}

RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q4_offset)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, true, false, true);
}

RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q8)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, false, false, false);
}

RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q8_offset)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, false, false, true);
}
