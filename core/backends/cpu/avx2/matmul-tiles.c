/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with interleaved weights. A 32-bit lane is a row of the tile: its
 * four bytes meet the same four columns of x in every lane, so that nothing
 * is ever summed across lanes.
 */
#include "avx2.h"

/* So few rows are bound by memory, which is fastest as one stream of tiles
 * (measured: two at a time lose a third), fetched this far ahead. */
#define STREAMED_ROWS 4
#define PREFETCH_BYTES 2560

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
sum_4_bits (const uint8_t *p, size_t stride, int n_tiles, const Rows *rows,
    uint32_t g, int n, bool origin_8, __m256i isum[2][4])
{
  const __m256i nibble = _mm256_set1_epi8 (15);
  __m256i s[2][4];

#pragma GCC unroll 4
  for (int v = 0; v < 4; v++) {
    __m256i low[2], high[2];

#pragma GCC unroll 4
    for (int t = 0; t < n_tiles; t++) {
      __m256i codes = _mm256_loadu_si256 ((const __m256i *) (p + t * stride
              + 32 * v));

      low[t] = _mm256_and_si256 (codes, nibble);
      high[t] = _mm256_and_si256 (_mm256_srli_epi16 (codes, 4), nibble);
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
      const int8_t *q = rows->q[i] + (size_t) g * RUNNEL_GROUP + 4 * v;
      __m256i xl = broadcast_4_bytes (q), xh = broadcast_4_bytes (q + 16);

#pragma GCC unroll 4
      for (int t = 0; t < n_tiles; t++) {
        __m256i a = _mm256_maddubs_epi16 (low[t], xl);
        __m256i b = _mm256_maddubs_epi16 (high[t], xh);

        __asm__ ("" : "+x"(a), "+x"(b));
        a = _mm256_add_epi16 (a, b);
        s[t][i] = v == 0 ? a : _mm256_add_epi16 (s[t][i], a);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) {
    __m256i origin = _mm256_setzero_si256 ();

    if (origin_8)
      origin = _mm256_slli_epi32 (_mm256_set1_epi32 (rows->sum[i][g]), 3);
#pragma GCC unroll 4
    for (int t = 0; t < n_tiles; t++) {
      isum[t][i] = _mm256_madd_epi16 (s[t][i], _mm256_set1_epi16 (1));
      if (origin_8)
        isum[t][i] = _mm256_sub_epi32 (isum[t][i], origin);
    }
  }
}

/* The same of signed 8-bit codes; one pair of products, at most 2 · 128 · 127,
 * fills 16 bits. */
ALWAYS_INLINE void
sum_8_bits (const uint8_t *p, size_t stride, int n_tiles, const Rows *rows,
    uint32_t g, int n, __m256i isum[2][4])
{
  const __m256i ones = _mm256_set1_epi16 (1);

#pragma GCC unroll 8
  for (int v = 0; v < 8; v++) {
    __m256i codes[2], magnitude[2];

#pragma GCC unroll 4
    for (int t = 0; t < n_tiles; t++) {
      codes[t] = _mm256_loadu_si256 ((const __m256i *) (p + t * stride
              + 32 * v));
      magnitude[t] = _mm256_abs_epi8 (codes[t]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
      __m256i x = broadcast_4_bytes (rows->q[i] + (size_t) g * RUNNEL_GROUP
          + 4 * v);

#pragma GCC unroll 4
      for (int t = 0; t < n_tiles; t++) {
        __m256i a = _mm256_madd_epi16 (_mm256_maddubs_epi16 (magnitude[t],
                _mm256_sign_epi8 (x, codes[t])), ones);

        isum[t][i] = v == 0 ? a : _mm256_add_epi32 (isum[t][i], a);
      }
    }
  }
}

/* acc + (d · scale) · isum (+ m · moment) of the g-th 32 columns. */
ALWAYS_INLINE void
add_group (__m256 acc[4], __m256 d, __m256 m, const __m256i isum[4],
    const Rows *rows, uint32_t g, int n, bool offset)
{
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) {
    acc[i] = _mm256_add_ps (acc[i], _mm256_mul_ps (_mm256_mul_ps (d,
                _mm256_set1_ps (rows->scale[i][g])),
            _mm256_cvtepi32_ps (isum[i])));
    if (offset)
      acc[i] = _mm256_add_ps (acc[i], _mm256_mul_ps (m,
              _mm256_set1_ps (rows->moment[i][g])));
  }
}

/* n_tiles tiles times n rows of x. */
ALWAYS_INLINE void
multiply_tiles (const uint8_t *p, size_t stride, int n_tiles, uint32_t groups,
    const Rows *rows, int n, RunnelTileForm form, __m256 acc[2][4])
{
  const int heads = (int) runnel_tile_head_bytes (form);
  const int codes = (int) runnel_tile_code_bytes (form);
  const uint32_t per_scale = (uint32_t) form.group / RUNNEL_GROUP;

#pragma GCC unroll 4
  for (int t = 0; t < n_tiles; t++) {
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
      acc[t][i] = _mm256_setzero_ps ();
  }
  for (uint32_t g = 0; g < groups;) {
    const uint8_t *head = p;

    p += heads;
#pragma GCC unroll 2
    for (uint32_t k = 0; k < per_scale && g < groups; k++, g++, p += codes) {
      __m256i isum[2][4];

      if (form.bits == 4)
        sum_4_bits (p, stride, n_tiles, rows, g, n, form.origin == 8, isum);
      else
        sum_8_bits (p, stride, n_tiles, rows, g, n, isum);
#pragma GCC unroll 4
      for (int t = 0; t < n_tiles; t++) {
        __m256 d = lanes_load_halves (head + t * stride), m = d;

        if (form.offset)
          m = lanes_load_halves (head + t * stride + 16);
        if (n_tiles == 1) {
          for (int line = 0; line < codes; line += 64)
            _mm_prefetch ((const char *) p + t * stride + PREFETCH_BYTES
                + line, _MM_HINT_T0);
        }
        add_group (acc[t], d, m, isum[t], rows, g, n, form.offset);
      }
    }
  }
}

/* n_tiles tiles from the t-th on times n rows of x from the i-th on. */
ALWAYS_INLINE void
multiply_block (const RunnelMatrix *w, const RunnelRows *x, uint32_t i, int n,
    const float *bias, float *y, size_t y_stride, uint32_t t, int n_tiles,
    RunnelTileForm form)
{
  __m256 acc[2][4];
  Rows rows;

  take_rows (&rows, x, i, (uint32_t) n);
  multiply_tiles (w->data + t * w->stride, w->stride, n_tiles,
      runnel_n_groups (w->columns), &rows, n, form, acc);
#pragma GCC unroll 2
  for (int k = 0; k < n_tiles; k++) {
#pragma GCC unroll 4
    for (int j = 0; j < n; j++)
      store_tile (acc[k][j], w, (t + (uint32_t) k) * RUNNEL_TILE_ROWS, bias,
          y + (i + (uint32_t) j) * y_stride);
  }
}

/* Tiles meet all rows of x while they are in the nearest cache, four rows at a
 * time, which share the unpacking of codes; two tiles share the broadcasts of
 * x. The last five rows are three and two: one alone is dear. */
ALWAYS_INLINE void
multiply_pass (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t t, int n_tiles, RunnelTileForm form)
{
  uint32_t i = 0, left;

  for (; (left = x->n - i) >= 4 && left != 5; i += 4)
    multiply_block (w, x, i, 4, bias, y, y_stride, t, n_tiles, form);
  if (left == 5 || left == 3) {
    multiply_block (w, x, i, 3, bias, y, y_stride, t, n_tiles, form);
    i += 3;
  }
  if (x->n - i == 2)
    multiply_block (w, x, i, 2, bias, y, y_stride, t, n_tiles, form);
  else if (x->n - i == 1)
    multiply_block (w, x, i, 1, bias, y, y_stride, t, n_tiles, form);
}

ALWAYS_INLINE void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    RunnelTileForm form)
{
  uint32_t t = tile_begin;

  for (; x->n <= STREAMED_ROWS && t < tile_end; t++)
    multiply_pass (w, x, bias, y, y_stride, t, 1, form);
  for (; t + 2 <= tile_end; t += 2)
    multiply_pass (w, x, bias, y, y_stride, t, 2, form);
  if (t < tile_end)
    multiply_pass (w, x, bias, y, y_stride, t, 1, form);
}

#define DEFINE_MATMUL(kind, name)                                             \
  RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_##name)                           \
  {                                                                           \
    matmul (w, x, bias, y, y_stride, tile_begin, tile_end,                    \
        runnel_matrix_tile_form (RUNNEL_MATRIX_##kind));                      \
  }

RUNNEL_FOR_EACH_TILE_KIND (DEFINE_MATMUL)
