/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with ggml's K-quants. A row's block of 256 columns is unpacked to
 * bytes, and lanes are its eight groups of 32 columns; the terms of eight rows
 * are then transposed, so that they are added up in the order of the columns
 * with one lane a row.
 */
#include "avx2.h"

#define ROWS RUNNEL_TILE_ROWS
#define GROUPS (RUNNEL_K_BLOCK / RUNNEL_GROUP)

/* A row's block. Scales are 16-bit and twice each, those of groups 0 to 3 and
 * of 4 to 7; their low lane belongs to the first 16 columns of the groups.
 * Minimums are pairs of 16 bits: of both halves, or of all 32 columns and 0. */
typedef struct {
  __m256i codes[GROUPS];
  __m256i scales[2];
  __m256i mins;
  float d;
  float dmin;
} Row;

ALWAYS_INLINE __m256i
load_32 (const void *p)
{
  return _mm256_loadu_si256 ((const __m256i *) p);
}

ALWAYS_INLINE uint32_t
load_u32 (const uint8_t *p)
{
  uint32_t value;

  memcpy (&value, p, sizeof value);
  return value;
}

ALWAYS_INLINE __m256i
bits_from (__m256i bytes, int shift, int mask)
{
  return _mm256_and_si256 (_mm256_srli_epi16 (bytes, shift),
      _mm256_set1_epi8 ((char) mask));
}

/* Sixteen scales, of 16 columns each. */
ALWAYS_INLINE void
put_16_scales (Row *row, __m128i scales)
{
  const __m128i order = _mm_setr_epi8 (0, 0, 2, 2, 4, 4, 6, 6, 1, 1, 3, 3, 5,
      5, 7, 7);
  const __m128i eight = _mm_set1_epi8 (8);

  row->scales[0] = _mm256_cvtepi8_epi16 (_mm_shuffle_epi8 (scales, order));
  row->scales[1] = _mm256_cvtepi8_epi16 (_mm_shuffle_epi8 (scales,
          _mm_add_epi8 (order, eight)));
}

/* The 6-bit scales and minimums of 32 columns that Q4_K and Q5_K have: see
 * runnel_unpack_scales_k4 (), of which this does four bytes at a time. */
ALWAYS_INLINE void
put_8_scales (Row *row, const uint8_t *packed)
{
  const __m128i order = _mm_setr_epi8 (0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2,
      2, 3, 3);
  const __m128i four = _mm_set1_epi8 (4);
  uint32_t a = load_u32 (packed), b = load_u32 (packed + 4);
  uint32_t c = load_u32 (packed + 8);
  uint64_t scales = (c & 0x0f0f0f0f) | ((a >> 2) & 0x30303030);
  uint64_t mins = ((c >> 4) & 0x0f0f0f0f) | ((b >> 2) & 0x30303030);
  __m128i bytes;

  scales = scales << 32 | (a & 0x3f3f3f3f);
  mins = mins << 32 | (b & 0x3f3f3f3f);
  bytes = _mm_cvtsi64_si128 ((int64_t) scales);
  row->scales[0] = _mm256_cvtepi8_epi16 (_mm_shuffle_epi8 (bytes, order));
  row->scales[1] = _mm256_cvtepi8_epi16 (_mm_shuffle_epi8 (bytes,
          _mm_add_epi8 (order, four)));
  row->mins = _mm256_cvtepu8_epi32 (_mm_cvtsi64_si128 ((int64_t) mins));
}

ALWAYS_INLINE void
unpack_q2_k (Row *row, const uint8_t *p)
{
  const RunnelBlockQ2K *block = (const RunnelBlockQ2K *) p;
  const __m128i nibble = _mm_set1_epi8 (15);
  __m128i scales = _mm_loadu_si128 ((const __m128i *) block->scales);

  row->d = runnel_load_half (block->d);
  row->dmin = runnel_load_half (block->dmin);
  put_16_scales (row, _mm_and_si128 (scales, nibble));
  row->mins = _mm256_cvtepu8_epi16 (_mm_and_si128 (_mm_srli_epi16 (scales, 4),
          nibble));
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++)
    row->codes[g] = bits_from (load_32 (block->codes + g / 4 * 32), g % 4 * 2,
        3);
}

ALWAYS_INLINE void
unpack_q3_k (Row *row, const uint8_t *p)
{
  const RunnelBlockQ3K *block = (const RunnelBlockQ3K *) p;
  __m256i high = load_32 (block->high);
  int8_t scales[16];

  row->d = runnel_load_half (block->d);
  runnel_unpack_scales_k3 (block->scales, scales);
  put_16_scales (row, _mm_loadu_si128 ((const __m128i *) scales));
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    __m256i low = bits_from (load_32 (block->codes + g / 4 * 32), g % 4 * 2, 3);
    __m256i third = _mm256_slli_epi16 (bits_from (high, g, 1), 2);

    row->codes[g] = _mm256_sub_epi8 (_mm256_or_si256 (low, third),
        _mm256_set1_epi8 (4));
  }
}

ALWAYS_INLINE void
unpack_q4_k (Row *row, const uint8_t *p)
{
  const RunnelBlockQ4K *block = (const RunnelBlockQ4K *) p;

  row->d = runnel_load_half (block->d);
  row->dmin = runnel_load_half (block->dmin);
  put_8_scales (row, block->scales);
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++)
    row->codes[g] = bits_from (load_32 (block->codes + g / 2 * 32), g % 2 * 4,
        15);
}

ALWAYS_INLINE void
unpack_q5_k (Row *row, const uint8_t *p)
{
  const RunnelBlockQ5K *block = (const RunnelBlockQ5K *) p;
  __m256i high = load_32 (block->high);

  row->d = runnel_load_half (block->d);
  row->dmin = runnel_load_half (block->dmin);
  put_8_scales (row, block->scales);
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    __m256i low = bits_from (load_32 (block->codes + g / 2 * 32), g % 2 * 4,
        15);
    __m256i fifth = _mm256_slli_epi16 (bits_from (high, g, 1), 4);

    row->codes[g] = _mm256_or_si256 (low, fifth);
  }
}

ALWAYS_INLINE void
unpack_q6_k (Row *row, const uint8_t *p)
{
  const RunnelBlockQ6K *block = (const RunnelBlockQ6K *) p;

  row->d = runnel_load_half (block->d);
  put_16_scales (row, _mm_loadu_si128 ((const __m128i *) block->scales));
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    int h = g / 4, j = g % 4;
    __m256i low = bits_from (load_32 (block->low + 64 * h + j % 2 * 32),
        j / 2 * 4, 15);
    __m256i high = bits_from (load_32 (block->high + 32 * h), 2 * j, 3);
    __m256i codes = _mm256_or_si256 (low, _mm256_slli_epi16 (high, 4));

    row->codes[g] = _mm256_sub_epi8 (codes, _mm256_set1_epi8 (32));
  }
}

/* How the formats differ once unpacked. */
typedef enum { SIGNED_CODES, MINS_OF_32, MINS_OF_16 } Form;

/* Sums of 16 columns from eight vectors of pairs of products. A sum of eight
 * products, at most 8 · 32 · 127, fits 16 bits. In a lane of sums[0] are those
 * of groups 0 to 3 (sums[1]: 4 to 7), twice each and not yet added. */
ALWAYS_INLINE void
sum_pairs (const __m256i *pairs, __m256i *sums)
{
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++)
    sums[i] = _mm256_hadd_epi16 (
        _mm256_hadd_epi16 (pairs[4 * i], pairs[4 * i + 1]),
        _mm256_hadd_epi16 (pairs[4 * i + 2], pairs[4 * i + 3]));
}

/* Of each group, the scaled integer sum. */
ALWAYS_INLINE __m256i
sum_groups (const Row *row, const int8_t *q, Form form)
{
  __m256i pairs[GROUPS], sums[2];

#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    __m256i x = load_32 (q + RUNNEL_GROUP * g), codes = row->codes[g];

    if (form == SIGNED_CODES)
      pairs[g] = _mm256_maddubs_epi16 (_mm256_abs_epi8 (codes),
          _mm256_sign_epi8 (x, codes));
    else
      pairs[g] = _mm256_maddubs_epi16 (codes, x);
  }
  sum_pairs (pairs, sums);
  sums[0] = _mm256_madd_epi16 (sums[0], row->scales[0]);
  sums[1] = _mm256_madd_epi16 (sums[1], row->scales[1]);
  return _mm256_add_epi32 (_mm256_permute2x128_si256 (sums[0], sums[1], 0x20),
      _mm256_permute2x128_si256 (sums[0], sums[1], 0x31));
}

/* What minimums multiply: a group's sum of x, or those of its halves, as
 * pairs of 16 bits. */
ALWAYS_INLINE __m256i
sums_of_x (const int8_t *q, const int32_t *sum, Form form)
{
  const __m256i ones = _mm256_set1_epi16 (1);
  __m256i pairs[GROUPS], sums[2], first, second;

  if (form != MINS_OF_16)
    return load_32 (sum);
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++)
    pairs[g] = _mm256_maddubs_epi16 (_mm256_set1_epi8 (1),
        load_32 (q + RUNNEL_GROUP * g));
  sum_pairs (pairs, sums);
  sums[0] = _mm256_madd_epi16 (sums[0], ones);
  sums[1] = _mm256_madd_epi16 (sums[1], ones);
  first = _mm256_permute2x128_si256 (sums[0], sums[1], 0x20);
  second = _mm256_permute2x128_si256 (sums[0], sums[1], 0x31);
  return _mm256_blend_epi16 (first, _mm256_slli_epi32 (second, 16), 0xaa);
}

ALWAYS_INLINE void
transpose (__m256 *m)
{
  __m256 a[8], b[8];

#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    a[2 * i] = _mm256_unpacklo_ps (m[2 * i], m[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_ps (m[2 * i], m[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    b[4 * i] = _mm256_shuffle_ps (a[4 * i], a[4 * i + 2], 0x44);
    b[4 * i + 1] = _mm256_shuffle_ps (a[4 * i], a[4 * i + 2], 0xee);
    b[4 * i + 2] = _mm256_shuffle_ps (a[4 * i + 1], a[4 * i + 3], 0x44);
    b[4 * i + 3] = _mm256_shuffle_ps (a[4 * i + 1], a[4 * i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    m[i] = _mm256_permute2f128_ps (b[i], b[i + 4], 0x20);
    m[i + 4] = _mm256_permute2f128_ps (b[i], b[i + 4], 0x31);
  }
}

/* Eight rows' blocks times one of x. */
ALWAYS_INLINE __m256
add_block (const Row *rows, const int8_t *q, const float *scale,
    const int32_t *sum, Form form, __m256 acc)
{
  __m256 terms[ROWS], offsets[ROWS], scales = _mm256_loadu_ps (scale);
  __m256i x_sums = sums_of_x (q, sum, form);

  for (int r = 0; r < ROWS; r++) {
    const Row *row = &rows[r];

    terms[r] = _mm256_mul_ps (_mm256_mul_ps (_mm256_set1_ps (row->d), scales),
        _mm256_cvtepi32_ps (sum_groups (row, q, form)));
    if (form != SIGNED_CODES)
      offsets[r] = _mm256_mul_ps (_mm256_mul_ps (_mm256_set1_ps (row->dmin),
              scales), _mm256_cvtepi32_ps (_mm256_madd_epi16 (row->mins,
                  x_sums)));
  }
  transpose (terms);
  if (form != SIGNED_CODES)
    transpose (offsets);
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    acc = _mm256_add_ps (acc, terms[g]);
    if (form != SIGNED_CODES)
      acc = _mm256_sub_ps (acc, offsets[g]);
  }
  return acc;
}

ALWAYS_INLINE void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    void (*unpack) (Row *, const uint8_t *), size_t block_bytes, Form form)
{
  size_t groups = runnel_n_groups (w->columns);
  Row rows[ROWS];

  for (uint32_t t = tile_begin; t < tile_end; t++) {
    uint32_t first = t * ROWS;
    int n_rows = w->rows - first < ROWS ? (int) (w->rows - first) : ROWS;

    if (n_rows < ROWS)
      memset (rows, 0, sizeof rows);
    for (size_t g = 0; g < groups; g += GROUPS) {
      const uint8_t *p = w->data + first * w->stride
          + g / GROUPS * block_bytes;

      for (int r = 0; r < n_rows; r++)
        unpack (&rows[r], p + r * w->stride);
      for (uint32_t i = 0; i < x->n; i++) {
        float *out = y + i * y_stride + first;
        __m256 acc = g == 0 ? _mm256_setzero_ps () : _mm256_loadu_ps (out);
        size_t at = i * groups + g;

        acc = add_block (rows, x->q + at * RUNNEL_GROUP, x->scale + at,
            x->sum + at, form, acc);
        if (g + GROUPS < groups)
          _mm256_storeu_ps (out, acc);
        else
          store_tile (acc, w, first, bias, y + i * y_stride);
      }
    }
  }
}

RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q2_k)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, unpack_q2_k,
      sizeof (RunnelBlockQ2K), MINS_OF_16);
}

RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q3_k)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, unpack_q3_k,
      sizeof (RunnelBlockQ3K), SIGNED_CODES);
}

RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q4_k)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, unpack_q4_k,
      sizeof (RunnelBlockQ4K), MINS_OF_32);
}

RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q5_k)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, unpack_q5_k,
      sizeof (RunnelBlockQ5K), MINS_OF_32);
}

RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q6_k)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, unpack_q6_k,
      sizeof (RunnelBlockQ6K), SIGNED_CODES);
}
