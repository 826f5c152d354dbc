/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with interleaved weights on AVX-512 with VNNI: the products of
 * ../avx2 with two tiles, 16 rows, in a register. A 32-bit lane is a row; the
 * four products of bytes that meet in it are summed by one instruction, which
 * takes unsigned codes: signed ones are moved up by 128 and the sum down by
 * 128 times that of the activations.
 *
 * tests/kernels compiles this file with a model of its intrinsics in plain C.
 */
#include "avx512.h"

#define PREFETCH_BYTES 2560
#define AT_ONCE 8               /* rows of x that share a tile's codes */

/* A tile at p and the one `stride` bytes on, 32 bytes of each. */
ALWAYS_INLINE __m512i
load_codes (const uint8_t *p, size_t stride)
{
  return _mm512_inserti64x4 (_mm512_castsi256_si512 (
          _mm256_loadu_si256 ((const __m256i *) p)),
      _mm256_loadu_si256 ((const __m256i *) (p + stride)), 1);
}

ALWAYS_INLINE __m512
load_halves (const uint8_t *p, size_t stride)
{
  return _mm512_cvtph_ps (_mm256_inserti128_si256 (_mm256_castsi128_si256 (
              _mm_loadu_si128 ((const __m128i *) p)),
          _mm_loadu_si128 ((const __m128i *) (p + stride)), 1));
}

ALWAYS_INLINE __m512i
broadcast_4_bytes (const int8_t *q)
{
  int32_t bytes;

  memcpy (&bytes, q, sizeof bytes);
  return _mm512_set1_epi32 (bytes);
}

/* Sums of 32 columns for n rows of x, at q and `x_stride` bytes apart. */
ALWAYS_INLINE void
sum_group (const uint8_t *p, size_t stride, const int8_t *q, size_t x_stride,
    int n, RunnelTileForm form, __m512i isum[AT_ONCE])
{
  const __m512i nibble = _mm512_set1_epi32 (0x0f0f0f0f);
  const __m512i middle = _mm512_set1_epi32 ((int) 0x80808080u);

#pragma GCC unroll 8
  for (int i = 0; i < n; i++)
    isum[i] = _mm512_setzero_si512 ();
#pragma GCC unroll 4
  for (int v = 0; v < 4; v++) {
    int second = form.bits == 4 ? 16 : 4;       /* columns of the other codes */
    int column = form.bits == 4 ? 4 * v : 8 * v;
    __m512i c0, c1;

    if (form.bits == 4) {
      __m512i codes = load_codes (p + 32 * v, stride);

      c0 = _mm512_and_si512 (codes, nibble);
      c1 = _mm512_and_si512 (_mm512_srli_epi16 (codes, 4), nibble);
    } else {
      c0 = _mm512_xor_si512 (load_codes (p + 64 * v, stride), middle);
      c1 = _mm512_xor_si512 (load_codes (p + 64 * v + 32, stride), middle);
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
      const int8_t *x = q + (size_t) i * x_stride + column;

      isum[i] = _mm512_dpbusd_epi32 (isum[i], c0, broadcast_4_bytes (x));
      isum[i] = _mm512_dpbusd_epi32 (isum[i], c1,
          broadcast_4_bytes (x + second));
    }
  }
}

/* Two tiles (stride 0: one, twice) times n rows of x, the i-th on. */
ALWAYS_INLINE void
multiply_rows (const RunnelMatrix *w, const uint8_t *p, size_t stride,
    uint32_t first, const RunnelRows *x, uint32_t i, int n, const float *bias,
    float *y, size_t y_stride, RunnelTileForm form)
{
  const int origin = form.bits == 4 ? form.origin : 128;
  const size_t heads = runnel_tile_head_bytes (form);
  const size_t codes = runnel_tile_code_bytes (form);
  const uint32_t per_scale = (uint32_t) form.group / RUNNEL_GROUP;
  const size_t groups = runnel_n_groups (w->columns);
  const uint32_t left = w->rows - first;
  const __mmask16 rows = left < 16 ? (__mmask16) ((1u << left) - 1) : 0xffff;
  const __mmask16 stored = stride == 0 ? 0xff : 0xffff;
  __m512 acc[AT_ONCE];

#pragma GCC unroll 8
  for (int j = 0; j < n; j++)
    acc[j] = _mm512_setzero_ps ();
  for (uint32_t g = 0; g < groups;) {
    __m512 d = load_halves (p, stride), m = d;

    if (form.offset)
      m = load_halves (p + 16, stride);
    p += heads;
    for (uint32_t k = 0; k < per_scale && g < groups; k++, g++, p += codes) {
      size_t at = i * groups + g;
      __m512i isum[AT_ONCE];

      if (n == 1) {
        for (size_t line = 0; line < codes; line += 64) {
          _mm_prefetch ((const char *) p + PREFETCH_BYTES + line, _MM_HINT_T0);
          _mm_prefetch ((const char *) p + stride + PREFETCH_BYTES + line,
              _MM_HINT_T0);
        }
      }
      sum_group (p, stride, x->q + at * RUNNEL_GROUP, groups * RUNNEL_GROUP, n,
          form, isum);
#pragma GCC unroll 8
      for (int j = 0; j < n; j++, at += groups) {
        if (origin != 0)
          isum[j] = _mm512_sub_epi32 (isum[j],
              _mm512_set1_epi32 (origin * x->sum[at]));
        acc[j] = _mm512_add_ps (acc[j], _mm512_mul_ps (_mm512_mul_ps (d,
                    _mm512_set1_ps (x->scale[at])),
                _mm512_cvtepi32_ps (isum[j])));
        if (form.offset)
          acc[j] = _mm512_add_ps (acc[j], _mm512_mul_ps (m,
                  _mm512_set1_ps (x->moment[at])));
      }
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < n; j++) {
    if (bias != NULL)
      acc[j] = _mm512_add_ps (acc[j], _mm512_maskz_loadu_ps (rows & stored,
              bias + first));
    _mm512_mask_storeu_ps (y + (i + (uint32_t) j) * y_stride + first, stored,
        _mm512_maskz_mov_ps (rows, acc[j]));
  }
}

ALWAYS_INLINE void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    RunnelTileForm form)
{
  for (uint32_t t = tile_begin; t < tile_end; t += 2) {
    const uint8_t *p = w->data + t * w->stride;
    size_t stride = t + 1 < tile_end ? w->stride : 0;
    uint32_t first = t * RUNNEL_TILE_ROWS, i = 0;

    for (; i + 8 <= x->n; i += 8)
      multiply_rows (w, p, stride, first, x, i, 8, bias, y, y_stride, form);
    for (; i + 4 <= x->n; i += 4)
      multiply_rows (w, p, stride, first, x, i, 4, bias, y, y_stride, form);
    for (; i + 2 <= x->n; i += 2)
      multiply_rows (w, p, stride, first, x, i, 2, bias, y, y_stride, form);
    for (; i < x->n; i++)
      multiply_rows (w, p, stride, first, x, i, 1, bias, y, y_stride, form);
  }
}

#define DEFINE_MATMUL(kind, name)                                             \
  RUNNEL_DECLARE_MATMUL (LEVEL (matmul_##name))                               \
  {                                                                           \
    matmul (w, x, bias, y, y_stride, tile_begin, tile_end,                    \
        runnel_matrix_tile_form (RUNNEL_MATRIX_##kind));                      \
  }

RUNNEL_FOR_EACH_TILE_KIND (DEFINE_MATMUL)
