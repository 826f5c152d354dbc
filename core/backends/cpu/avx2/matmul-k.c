/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with ggml's K-quants, eight rows interleaved (see kernels.h): a
 * 32-bit lane is a row. Scales are unpacked once for all rows of x, codes too
 * where there are many rows; few take them as they are read.
 */
#include "avx2.h"

#define ROWS RUNNEL_TILE_ROWS
#define GROUPS (RUNNEL_K_BLOCK / RUNNEL_GROUP)
#define VECTORS (RUNNEL_GROUP / 4)
#define FEW_ROWS 4
#define PREFETCH_BYTES 2560

/* How the formats differ once unpacked. */
typedef enum { SIGNED_CODES, MINS_OF_32, MINS_OF_16 } Form;

ALWAYS_INLINE Form
form_of (RunnelMatrixKind kind)
{
  switch (kind) {
    case RUNNEL_MATRIX_Q2_K:
      return MINS_OF_16;
    case RUNNEL_MATRIX_Q4_K:
    case RUNNEL_MATRIX_Q5_K:
      return MINS_OF_32;
    default:
      return SIGNED_CODES;
  }
}

/* Of blocks of eight rows. scales[g][h] holds twice the 16-bit scale of half
 * h of group g, mins[g] as 16 bits the minimums of both halves, or that of the
 * group and 0; codes[g][v], of many rows, the columns 4v to 4v + 3. */
typedef struct {
  __m256 d;
  __m256 dmin;
  __m256i scales[GROUPS][2];
  __m256i mins[GROUPS];
  __m256i codes[GROUPS][VECTORS];
} Tile;

ALWAYS_INLINE __m256i
bits_from (__m256i bytes, int shift, int mask)
{
  return _mm256_and_si256 (_mm256_srli_epi16 (bytes, shift),
      _mm256_set1_epi8 ((char) mask));
}

/* Bytes `offset` to offset + 3 of every row's block; a multiple of 4. */
ALWAYS_INLINE __m256i
load_bytes (const uint8_t *blocks, size_t offset)
{
  return _mm256_loadu_si256 ((const __m256i *) (blocks + ROWS * offset));
}

/* ---- Scales -------------------------------------------------------------- */

/* The half floats in the low 16 bits of every lane. */
ALWAYS_INLINE __m256
widen_halves (__m256i halves)
{
  __m256i packed = _mm256_and_si256 (halves, _mm256_set1_epi32 (0xffff));

  packed = _mm256_permute4x64_epi64 (_mm256_packus_epi32 (packed, packed), 8);
  return _mm256_cvtph_ps (_mm256_castsi256_si128 (packed));
}

/* Byte b of every lane twice, as 16 bits without or with sign. */
ALWAYS_INLINE __m256i
twice_unsigned (__m256i bytes, int b)
{
  return _mm256_shuffle_epi8 (bytes, _mm256_add_epi8 (_mm256_setr_epi8 (0, -128,
              0, -128, 4, -128, 4, -128, 8, -128, 8, -128, 12, -128, 12, -128,
              0, -128, 0, -128, 4, -128, 4, -128, 8, -128, 8, -128, 12, -128,
              12, -128), _mm256_set1_epi8 ((char) b)));
}

ALWAYS_INLINE __m256i
twice_signed (__m256i bytes, int b)
{
  return _mm256_srai_epi16 (_mm256_slli_epi16 (twice_unsigned (bytes, b), 8),
      8);
}

/* Bytes b and b + 1 of every lane as 16 bits. */
ALWAYS_INLINE __m256i
pair_unsigned (__m256i bytes, int b)
{
  return _mm256_shuffle_epi8 (bytes, _mm256_add_epi8 (_mm256_setr_epi8 (0, -128,
              1, -128, 4, -128, 5, -128, 8, -128, 9, -128, 12, -128, 13, -128,
              0, -128, 1, -128, 4, -128, 5, -128, 8, -128, 9, -128, 12, -128,
              13, -128), _mm256_set1_epi8 ((char) b)));
}

/* Byte b of every lane as 32 bits. */
ALWAYS_INLINE __m256i
byte_of (__m256i bytes, int b)
{
  return _mm256_and_si256 (_mm256_srli_epi32 (bytes, 8 * b),
      _mm256_set1_epi32 (255));
}

/* The 6-bit scales and minimums of Q4_K and Q5_K, as
 * runnel_unpack_scales_k4 () takes them apart. */
ALWAYS_INLINE void
put_8_scales (Tile *tile, const uint8_t *blocks, size_t offset)
{
  __m256i a = load_bytes (blocks, offset), b = load_bytes (blocks, offset + 4);
  __m256i c = load_bytes (blocks, offset + 8);
  const __m256i two = _mm256_set1_epi8 (0x30);
  __m256i scales[2], mins[2];

  scales[0] = bits_from (a, 0, 63);
  mins[0] = bits_from (b, 0, 63);
  scales[1] = _mm256_or_si256 (bits_from (c, 0, 15), _mm256_and_si256 (
          _mm256_srli_epi16 (a, 2), two));
  mins[1] = _mm256_or_si256 (bits_from (c, 4, 15), _mm256_and_si256 (
          _mm256_srli_epi16 (b, 2), two));
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    tile->scales[g][0] = tile->scales[g][1]
        = twice_unsigned (scales[g / 4], g % 4);
    tile->mins[g] = byte_of (mins[g / 4], g % 4);
  }
}

/* Sixteen signed scales, four bytes a vector. */
ALWAYS_INLINE void
put_16_scales (Tile *tile, const __m256i *scales)
{
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    tile->scales[g][0] = twice_signed (scales[g / 2], 2 * g % 4);
    tile->scales[g][1] = twice_signed (scales[g / 2], 2 * g % 4 + 1);
  }
}

/* The 6-bit scales of Q3_K, as runnel_unpack_scales_k3 () takes them apart. */
ALWAYS_INLINE void
load_scales_k3 (const uint8_t *blocks, size_t offset, __m256i *scales)
{
  __m256i a = load_bytes (blocks, offset), b = load_bytes (blocks, offset + 4);
  __m256i c = load_bytes (blocks, offset + 8);
  const __m256i high = _mm256_set1_epi8 (0x30);

  scales[0] = _mm256_or_si256 (bits_from (a, 0, 15), _mm256_and_si256 (
          _mm256_slli_epi16 (c, 4), high));
  scales[1] = _mm256_or_si256 (bits_from (b, 0, 15), _mm256_and_si256 (
          _mm256_slli_epi16 (c, 2), high));
  scales[2] = _mm256_or_si256 (bits_from (a, 4, 15), _mm256_and_si256 (c,
          high));
  scales[3] = _mm256_or_si256 (bits_from (b, 4, 15), _mm256_and_si256 (
          _mm256_srli_epi16 (c, 2), high));
  for (int i = 0; i < 4; i++)
    scales[i] = _mm256_sub_epi8 (scales[i], _mm256_set1_epi8 (32));
}

/* A byte is a scale and a minimum. */
ALWAYS_INLINE void
put_scales_k2 (Tile *tile, const uint8_t *blocks)
{
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    __m256i both = load_bytes (blocks, offsetof (RunnelBlockQ2K, scales)
        + (size_t) (g / 2) * 4);
    __m256i scales = bits_from (both, 0, 15);

    tile->scales[g][0] = twice_unsigned (scales, 2 * g % 4);
    tile->scales[g][1] = twice_unsigned (scales, 2 * g % 4 + 1);
    tile->mins[g] = pair_unsigned (bits_from (both, 4, 15), 2 * g % 4);
  }
}

ALWAYS_INLINE void
unpack_scales (Tile *tile, RunnelMatrixKind kind, const uint8_t *blocks)
{
  __m256i v[4], halves;

  switch (kind) {
    case RUNNEL_MATRIX_Q2_K:
      halves = load_bytes (blocks, offsetof (RunnelBlockQ2K, d));
      tile->d = widen_halves (halves);
      tile->dmin = widen_halves (_mm256_srli_epi32 (halves, 16));
      put_scales_k2 (tile, blocks);
      break;
    case RUNNEL_MATRIX_Q3_K:
      tile->d = lanes_load_halves (blocks
          + ROWS * offsetof (RunnelBlockQ3K, d));
      load_scales_k3 (blocks, offsetof (RunnelBlockQ3K, scales), v);
      put_16_scales (tile, v);
      break;
    case RUNNEL_MATRIX_Q4_K:
    case RUNNEL_MATRIX_Q5_K:
      halves = load_bytes (blocks, offsetof (RunnelBlockQ4K, d));
      tile->d = widen_halves (halves);
      tile->dmin = widen_halves (_mm256_srli_epi32 (halves, 16));
      put_8_scales (tile, blocks, offsetof (RunnelBlockQ4K, scales));
      break;
    default:
      tile->d = lanes_load_halves (blocks
          + ROWS * offsetof (RunnelBlockQ6K, d));
      for (int i = 0; i < 4; i++)
        v[i] = load_bytes (blocks, offsetof (RunnelBlockQ6K, scales)
            + (size_t) i * 4);
      put_16_scales (tile, v);
      break;
  }
}

/* ---- Codes --------------------------------------------------------------- */

/* Columns 4v to 4v + 3 of group g. */
ALWAYS_INLINE __m256i
load_codes (RunnelMatrixKind kind, const uint8_t *blocks, int g, int v)
{
  const size_t half = (size_t) g / 4, pair = (size_t) g / 2;
  const size_t at = (size_t) v * 4;
  const int j = g % 4;
  __m256i low, high;

  switch (kind) {
    case RUNNEL_MATRIX_Q2_K:
      low = load_bytes (blocks, offsetof (RunnelBlockQ2K, codes) + 32 * half
          + at);
      return bits_from (low, 2 * j, 3);
    case RUNNEL_MATRIX_Q3_K:
      low = load_bytes (blocks, offsetof (RunnelBlockQ3K, codes) + 32 * half
          + at);
      high = load_bytes (blocks, offsetof (RunnelBlockQ3K, high) + at);
      return _mm256_sub_epi8 (_mm256_or_si256 (bits_from (low, 2 * j, 3),
              _mm256_slli_epi16 (bits_from (high, g, 1), 2)),
          _mm256_set1_epi8 (4));
    case RUNNEL_MATRIX_Q4_K:
      low = load_bytes (blocks, offsetof (RunnelBlockQ4K, codes) + 32 * pair
          + at);
      return bits_from (low, 4 * (g % 2), 15);
    case RUNNEL_MATRIX_Q5_K:
      low = load_bytes (blocks, offsetof (RunnelBlockQ5K, codes) + 32 * pair
          + at);
      high = load_bytes (blocks, offsetof (RunnelBlockQ5K, high) + at);
      return _mm256_or_si256 (bits_from (low, 4 * (g % 2), 15),
          _mm256_slli_epi16 (bits_from (high, g, 1), 4));
    default:
      low = load_bytes (blocks, offsetof (RunnelBlockQ6K, low) + 64 * half
          + 32 * (size_t) (j % 2) + at);
      high = load_bytes (blocks, offsetof (RunnelBlockQ6K, high) + 32 * half
          + at);
      return _mm256_sub_epi8 (_mm256_or_si256 (bits_from (low, j / 2 * 4, 15),
              _mm256_slli_epi16 (bits_from (high, 2 * j, 3), 4)),
          _mm256_set1_epi8 (32));
  }
}

/* ---- The product --------------------------------------------------------- */

/* Sums of group g, scaled, for n rows of x at q, `stride` apart; codes come
 * from the blocks if there are any, or from the tile. Eight products of 16
 * columns, at most 8 · 32 · 127, fit 16 bits. */
ALWAYS_INLINE void
sum_group (const Tile *tile, const uint8_t *blocks, RunnelMatrixKind kind,
    int g, const int8_t *q, size_t stride, int n, __m256i *isum)
{
  const Form form = form_of (kind);

#pragma GCC unroll 2
  for (int h = 0; h < 2; h++) {
    __m256i s[4];

#pragma GCC unroll 4
    for (int v = 0; v < 4; v++) {
      __m256i codes = blocks != NULL ? load_codes (kind, blocks, g, 4 * h + v)
          : tile->codes[g][4 * h + v];
      __m256i magnitude = form == SIGNED_CODES ? _mm256_abs_epi8 (codes)
          : codes;

#pragma GCC unroll 4
      for (int i = 0; i < n; i++) {
        __m256i x = broadcast_4_bytes (q + i * stride + 16 * h + 4 * v);

        if (form == SIGNED_CODES)
          x = _mm256_sign_epi8 (x, codes);
        x = _mm256_maddubs_epi16 (magnitude, x);
        s[i] = v == 0 ? x : _mm256_add_epi16 (s[i], x);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
      __m256i scaled = _mm256_madd_epi16 (s[i], tile->scales[g][h]);

      isum[i] = h == 0 ? scaled : _mm256_add_epi32 (isum[i], scaled);
    }
  }
}

/* What minimums multiply, in every lane: a group's sum of x, or those of its
 * halves as 16 bits each. */
ALWAYS_INLINE __m256i
sums_of_x (const int8_t *q, int32_t sum, Form form)
{
  __m128i biased, sums;
  int32_t first;

  if (form == MINS_OF_32)
    return _mm256_set1_epi32 (sum);
  biased = _mm_xor_si128 (_mm_loadu_si128 ((const __m128i *) q),
      _mm_set1_epi8 ((char) 0x80));
  sums = _mm_sad_epu8 (biased, _mm_setzero_si128 ());
  first = _mm_cvtsi128_si32 (sums) + _mm_extract_epi16 (sums, 4) - 16 * 128;
  return _mm256_set1_epi32 ((int32_t) ((uint32_t) (sum - first) << 16
          | (first & 0xffff)));
}

/* Group g of the tile times n rows of x, of which `at` is the first's. */
ALWAYS_INLINE void
multiply_group (const Tile *tile, const uint8_t *blocks, RunnelMatrixKind kind,
    int g, const RunnelRows *x, size_t at, size_t groups, int n, __m256 *acc)
{
  const Form form = form_of (kind);
  __m256i isum[4];

  sum_group (tile, blocks, kind, g, x->q + at * RUNNEL_GROUP,
      groups * RUNNEL_GROUP, n, isum);
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) {
    size_t k = at + (size_t) i * groups;
    __m256 scale = _mm256_set1_ps (x->scale[k]);

    acc[i] = _mm256_add_ps (acc[i], _mm256_mul_ps (_mm256_mul_ps (tile->d,
                scale), _mm256_cvtepi32_ps (isum[i])));
    if (form != SIGNED_CODES) {
      __m256i msum = _mm256_madd_epi16 (tile->mins[g],
          sums_of_x (x->q + k * RUNNEL_GROUP, x->sum[k], form));

      acc[i] = _mm256_sub_ps (acc[i], _mm256_mul_ps (_mm256_mul_ps (
                  tile->dmin, scale), _mm256_cvtepi32_ps (msum)));
    }
  }
}

/* Block b of rows [first, first + 8) times n rows of x from i on; y carries
 * the accumulators from block to block. */
ALWAYS_INLINE void
multiply_rows (const RunnelMatrix *w, const Tile *tile, const uint8_t *blocks,
    RunnelMatrixKind kind, const RunnelRows *x, uint32_t i, int n, size_t b,
    uint32_t first, const float *bias, float *y, size_t y_stride)
{
  size_t groups = runnel_n_groups (w->columns), at = i * groups + b * GROUPS;
  __m256 acc[4];

#pragma GCC unroll 4
  for (int j = 0; j < n; j++)
    acc[j] = b == 0 ? _mm256_setzero_ps ()
        : _mm256_loadu_ps (y + (i + (uint32_t) j) * y_stride + first);
  if (blocks != NULL) {
#pragma GCC unroll 8
    for (int g = 0; g < GROUPS; g++)
      multiply_group (tile, blocks, kind, g, x, at + (size_t) g, groups, n,
          acc);
  } else {
    for (int g = 0; g < GROUPS; g++)
      multiply_group (tile, NULL, kind, g, x, at + (size_t) g, groups, n, acc);
  }
#pragma GCC unroll 4
  for (int j = 0; j < n; j++) {
    if ((b + 1) * GROUPS < groups)
      _mm256_storeu_ps (y + (i + (uint32_t) j) * y_stride + first, acc[j]);
    else
      store_tile (acc[j], w, first, bias, y + (i + (uint32_t) j) * y_stride);
  }
}

/* A block of eight rows times few rows of x, or all of many. */
ALWAYS_INLINE void
multiply_block (const RunnelMatrix *w, Tile *tile, const uint8_t *blocks,
    RunnelMatrixKind kind, const RunnelRows *x, size_t b, uint32_t first,
    const float *bias, float *y, size_t y_stride)
{
  const uint8_t *direct = x->n <= FEW_ROWS ? blocks : NULL;
  uint32_t i = 0;

  unpack_scales (tile, kind, blocks);
  if (direct != NULL) {
    for (size_t line = 0; line < ROWS * runnel_k_block_bytes (kind); line += 64)
      _mm_prefetch ((const char *) blocks + PREFETCH_BYTES + line,
          _MM_HINT_T0);
    for (; i + 2 <= x->n; i += 2)
      multiply_rows (w, tile, blocks, kind, x, i, 2, b, first, bias, y,
          y_stride);
    if (i < x->n)
      multiply_rows (w, tile, blocks, kind, x, i, 1, b, first, bias, y,
          y_stride);
    return;
  }
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    for (int v = 0; v < VECTORS; v++)
      tile->codes[g][v] = load_codes (kind, blocks, g, v);
  }
  for (; i + 4 <= x->n; i += 4)
    multiply_rows (w, tile, NULL, kind, x, i, 4, b, first, bias, y, y_stride);
  for (; i + 2 <= x->n; i += 2)
    multiply_rows (w, tile, NULL, kind, x, i, 2, b, first, bias, y, y_stride);
  for (; i < x->n; i++)
    multiply_rows (w, tile, NULL, kind, x, i, 1, b, first, bias, y, y_stride);
}

ALWAYS_INLINE void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    RunnelMatrixKind kind)
{
  const size_t bytes = ROWS * runnel_k_block_bytes (kind);
  size_t blocks = w->columns / RUNNEL_K_BLOCK;
  Tile tile;

  for (uint32_t t = tile_begin; t < tile_end; t++) {
    for (size_t b = 0; b < blocks; b++)
      multiply_block (w, &tile, w->data + t * w->stride + b * bytes, kind, x,
          b, t * ROWS, bias, y, y_stride);
  }
}

#define DEFINE_MATMUL(kind, name)                                             \
  RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_##name)                           \
  {                                                                           \
    matmul (w, x, bias, y, y_stride, tile_begin, tile_end,                    \
        RUNNEL_MATRIX_##kind);                                                \
  }

DEFINE_MATMUL (Q2_K, q2_k)
DEFINE_MATMUL (Q3_K, q3_k)
DEFINE_MATMUL (Q4_K, q4_k)
DEFINE_MATMUL (Q5_K, q5_k)
DEFINE_MATMUL (Q6_K, q6_k)
