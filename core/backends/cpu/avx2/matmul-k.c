/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with ggml's K-quants. Blocks of eight rows are interleaved on the
 * fly, four columns at a time, into what a tile of 8-bit weights looks like;
 * that is done once for all rows of x.
 */
#include "avx2.h"

#define ROWS RUNNEL_TILE_ROWS
#define GROUPS (RUNNEL_K_BLOCK / RUNNEL_GROUP)
#define VECTORS (RUNNEL_GROUP / 4)

/* How the formats differ once unpacked. */
typedef enum { SIGNED_CODES, MINS_OF_32, MINS_OF_16 } Form;

/* Blocks of eight rows; a 32-bit lane is a row. codes[g][v] holds the columns
 * 4v to 4v + 3 of group g, scales[g][h] twice the 16-bit scale of half h of
 * the group, mins[g] as 16 bits the minimums of both halves, or that of the
 * group and 0. */
typedef struct {
  __m256 d;
  __m256 dmin;
  __m256i codes[GROUPS][VECTORS];
  __m256i scales[GROUPS][2];
  __m256i mins[GROUPS];
} Tile;

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

/* ---- Interleaving ----------------------------------------------------------- */

/* 32 bytes at `offset` of every row: bytes 4v to 4v + 3 come in v[v]. */
ALWAYS_INLINE void
load_interleaved (const uint8_t *const *rows, size_t offset, __m256i *v)
{
  __m256i a[8], b[8];

#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    __m256i even = _mm256_loadu_si256 ((const __m256i *) (rows[2 * i]
            + offset));
    __m256i odd = _mm256_loadu_si256 ((const __m256i *) (rows[2 * i + 1]
            + offset));

    a[2 * i] = _mm256_unpacklo_epi32 (even, odd);
    a[2 * i + 1] = _mm256_unpackhi_epi32 (even, odd);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    b[4 * i] = _mm256_unpacklo_epi64 (a[4 * i], a[4 * i + 2]);
    b[4 * i + 1] = _mm256_unpackhi_epi64 (a[4 * i], a[4 * i + 2]);
    b[4 * i + 2] = _mm256_unpacklo_epi64 (a[4 * i + 1], a[4 * i + 3]);
    b[4 * i + 3] = _mm256_unpackhi_epi64 (a[4 * i + 1], a[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    v[i] = _mm256_permute2x128_si256 (b[i], b[i + 4], 0x20);
    v[i + 4] = _mm256_permute2x128_si256 (b[i], b[i + 4], 0x31);
  }
}

/* Halves at `offset` of every row, widened. */
ALWAYS_INLINE __m256
load_halves (const uint8_t *const *rows, size_t offset)
{
  uint16_t halves[ROWS];

#pragma GCC unroll 8
  for (int r = 0; r < ROWS; r++)
    halves[r] = runnel_load_u16 (rows[r] + offset);
  return lanes_load_halves (halves);
}

/* 16 bytes of each of eight rows: those of column 2i come in the low half of
 * v[i], of 2i + 1 in the high half. In place. */
ALWAYS_INLINE void
interleave_bytes (__m128i *v)
{
  __m128i a[8], b[8];

#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    a[i] = _mm_unpacklo_epi8 (v[2 * i], v[2 * i + 1]);
    a[i + 4] = _mm_unpackhi_epi8 (v[2 * i], v[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm_unpacklo_epi16 (a[i], a[i + 1]);
    b[i + 1] = _mm_unpackhi_epi16 (a[i], a[i + 1]);
    b[i + 2] = _mm_unpacklo_epi16 (a[i + 2], a[i + 3]);
    b[i + 3] = _mm_unpackhi_epi16 (a[i + 2], a[i + 3]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    v[i] = _mm_unpacklo_epi32 (b[i], b[i + 2]);
    v[i + 1] = _mm_unpackhi_epi32 (b[i], b[i + 2]);
    v[i + 2] = _mm_unpacklo_epi32 (b[i + 1], b[i + 3]);
    v[i + 3] = _mm_unpackhi_epi32 (b[i + 1], b[i + 3]);
  }
}

/* Twice each of the eight signed bytes in the low half, as 16 bits. */
ALWAYS_INLINE __m256i
widen_twice (__m128i bytes)
{
  return _mm256_cvtepi8_epi16 (_mm_unpacklo_epi8 (bytes, bytes));
}

/* Sixteen signed scales of each row, two for a group. */
ALWAYS_INLINE void
put_16_scales (Tile *tile, __m128i *v)
{
  interleave_bytes (v);
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    tile->scales[g][0] = widen_twice (v[g]);
    tile->scales[g][1] = widen_twice (_mm_unpackhi_epi64 (v[g], v[g]));
  }
}

/* The 6-bit scales and minimums that Q4_K and Q5_K have: as
 * runnel_unpack_scales_k4 () does, four bytes at a time. */
ALWAYS_INLINE void
put_8_scales (Tile *tile, const uint8_t *const *rows, size_t offset)
{
  __m128i v[ROWS];

#pragma GCC unroll 8
  for (int r = 0; r < ROWS; r++) {
    const uint8_t *packed = rows[r] + offset;
    uint32_t a = load_u32 (packed), b = load_u32 (packed + 4);
    uint32_t c = load_u32 (packed + 8);
    uint64_t scales = (c & 0x0f0f0f0f) | ((a >> 2) & 0x30303030);
    uint64_t mins = ((c >> 4) & 0x0f0f0f0f) | ((b >> 2) & 0x30303030);

    scales = scales << 32 | (a & 0x3f3f3f3f);
    mins = mins << 32 | (b & 0x3f3f3f3f);
    v[r] = _mm_set_epi64x ((int64_t) mins, (int64_t) scales);
  }
  interleave_bytes (v);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    __m128i scales = v[i], mins = v[i + 4];

    tile->scales[2 * i][0] = tile->scales[2 * i][1] = widen_twice (scales);
    tile->mins[2 * i] = _mm256_cvtepu8_epi32 (mins);
    scales = _mm_unpackhi_epi64 (scales, scales);
    mins = _mm_unpackhi_epi64 (mins, mins);
    tile->scales[2 * i + 1][0] = tile->scales[2 * i + 1][1]
        = widen_twice (scales);
    tile->mins[2 * i + 1] = _mm256_cvtepu8_epi32 (mins);
  }
}

/* ---- The formats --------------------------------------------------------------- */

static void
unpack_q2_k (Tile *tile, const uint8_t *const *rows)
{
  const __m128i nibble = _mm_set1_epi8 (15);
  __m128i v[ROWS], scale, min;

  tile->d = load_halves (rows, offsetof (RunnelBlockQ2K, d));
  tile->dmin = load_halves (rows, offsetof (RunnelBlockQ2K, dmin));
  for (int r = 0; r < ROWS; r++)
    v[r] = _mm_loadu_si128 ((const __m128i *) rows[r]);
  interleave_bytes (v);
  for (int g = 0; g < GROUPS; g++) {
    scale = _mm_and_si128 (v[g], nibble);
    min = _mm_and_si128 (_mm_srli_epi16 (v[g], 4), nibble);
    tile->scales[g][0] = widen_twice (scale);
    tile->scales[g][1] = widen_twice (_mm_unpackhi_epi64 (scale, scale));
    tile->mins[g] = _mm256_cvtepu8_epi16 (_mm_unpacklo_epi8 (min,
            _mm_unpackhi_epi64 (min, min)));
  }
  for (int h = 0; h < 2; h++) {
    __m256i codes[VECTORS];

    load_interleaved (rows, offsetof (RunnelBlockQ2K, codes) + 32 * h, codes);
    for (int v4 = 0; v4 < VECTORS; v4++) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++)
        tile->codes[4 * h + j][v4] = bits_from (codes[v4], 2 * j, 3);
    }
  }
}

/* The 6-bit scales of Q3_K: as runnel_unpack_scales_k3 () does, four bytes at
 * a time. */
ALWAYS_INLINE __m128i
load_scales_k3 (const uint8_t *packed)
{
  const uint32_t low = 0x0f0f0f0f, high = 0x30303030;
  uint32_t a = load_u32 (packed), b = load_u32 (packed + 4);
  uint32_t c = load_u32 (packed + 8);
  __m128i scales = _mm_setr_epi32 (
      (int32_t) ((a & low) | ((c << 4) & high)),
      (int32_t) ((b & low) | ((c << 2) & high)),
      (int32_t) (((a >> 4) & low) | (c & high)),
      (int32_t) (((b >> 4) & low) | ((c >> 2) & high)));

  return _mm_sub_epi8 (scales, _mm_set1_epi8 (32));
}

static void
unpack_q3_k (Tile *tile, const uint8_t *const *rows)
{
  __m256i high[VECTORS];
  __m128i v[ROWS];

  tile->d = load_halves (rows, offsetof (RunnelBlockQ3K, d));
  for (int r = 0; r < ROWS; r++)
    v[r] = load_scales_k3 (rows[r] + offsetof (RunnelBlockQ3K, scales));
  put_16_scales (tile, v);
  load_interleaved (rows, offsetof (RunnelBlockQ3K, high), high);
  for (int h = 0; h < 2; h++) {
    __m256i codes[VECTORS];

    load_interleaved (rows, offsetof (RunnelBlockQ3K, codes) + 32 * h, codes);
    for (int v4 = 0; v4 < VECTORS; v4++) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        __m256i third = _mm256_slli_epi16 (bits_from (high[v4], 4 * h + j, 1),
            2);

        tile->codes[4 * h + j][v4] = _mm256_sub_epi8 (_mm256_or_si256 (
                bits_from (codes[v4], 2 * j, 3), third), _mm256_set1_epi8 (4));
      }
    }
  }
}

static void
unpack_q4_k (Tile *tile, const uint8_t *const *rows)
{
  tile->d = load_halves (rows, offsetof (RunnelBlockQ4K, d));
  tile->dmin = load_halves (rows, offsetof (RunnelBlockQ4K, dmin));
  put_8_scales (tile, rows, offsetof (RunnelBlockQ4K, scales));
  for (int p = 0; p < GROUPS / 2; p++) {
    __m256i codes[VECTORS];

    load_interleaved (rows, offsetof (RunnelBlockQ4K, codes) + 32 * p, codes);
    for (int v = 0; v < VECTORS; v++) {
      tile->codes[2 * p][v] = bits_from (codes[v], 0, 15);
      tile->codes[2 * p + 1][v] = bits_from (codes[v], 4, 15);
    }
  }
}

static void
unpack_q5_k (Tile *tile, const uint8_t *const *rows)
{
  __m256i high[VECTORS];

  tile->d = load_halves (rows, offsetof (RunnelBlockQ5K, d));
  tile->dmin = load_halves (rows, offsetof (RunnelBlockQ5K, dmin));
  put_8_scales (tile, rows, offsetof (RunnelBlockQ5K, scales));
  load_interleaved (rows, offsetof (RunnelBlockQ5K, high), high);
#pragma GCC unroll 4
  for (int p = 0; p < GROUPS / 2; p++) {
    __m256i codes[VECTORS];

    load_interleaved (rows, offsetof (RunnelBlockQ5K, codes) + 32 * p, codes);
    for (int v = 0; v < VECTORS; v++) {
#pragma GCC unroll 2
      for (int j = 0; j < 2; j++)
        tile->codes[2 * p + j][v] = _mm256_or_si256 (
            bits_from (codes[v], 4 * j, 15),
            _mm256_slli_epi16 (bits_from (high[v], 2 * p + j, 1), 4));
    }
  }
}

static void
unpack_q6_k (Tile *tile, const uint8_t *const *rows)
{
  __m128i scales[ROWS];

  tile->d = load_halves (rows, offsetof (RunnelBlockQ6K, d));
  for (int r = 0; r < ROWS; r++)
    scales[r] = _mm_loadu_si128 ((const __m128i *) (rows[r]
            + offsetof (RunnelBlockQ6K, scales)));
  put_16_scales (tile, scales);
  for (int h = 0; h < 2; h++) {
    __m256i high[VECTORS], low[VECTORS];

    load_interleaved (rows, offsetof (RunnelBlockQ6K, high) + 32 * h, high);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
      load_interleaved (rows, offsetof (RunnelBlockQ6K, low) + 64 * h + 32 * i,
          low);
      for (int v = 0; v < VECTORS; v++) {
#pragma GCC unroll 2
        for (int j = i; j < 4; j += 2)
          tile->codes[4 * h + j][v] = _mm256_sub_epi8 (_mm256_or_si256 (
                  bits_from (low[v], j / 2 * 4, 15),
                  _mm256_slli_epi16 (bits_from (high[v], 2 * j, 3), 4)),
              _mm256_set1_epi8 (32));
      }
    }
  }
}

/* ---- The product ---------------------------------------------------------------- */

/* Sums of group g, scaled, for n rows of x at q, `stride` apart. Eight
 * products of 16 columns, at most 8 · 32 · 127, fit 16 bits. */
ALWAYS_INLINE void
sum_group (const Tile *tile, int g, const int8_t *q, size_t stride, int n,
    Form form, __m256i *isum)
{
#pragma GCC unroll 2
  for (int h = 0; h < 2; h++) {
    __m256i s[4];

#pragma GCC unroll 4
    for (int v = 0; v < 4; v++) {
      __m256i codes = tile->codes[g][4 * h + v];
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

/* The tile times n rows of x, of which `at` is the first's group. */
ALWAYS_INLINE void
multiply_tile (const Tile *tile, const RunnelRows *x, size_t at,
    size_t groups, int n, Form form, __m256 *acc)
{
  for (int g = 0; g < GROUPS; g++, at++) {
    __m256i isum[4];

    sum_group (tile, g, x->q + at * RUNNEL_GROUP, groups * RUNNEL_GROUP, n,
        form, isum);
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
      size_t k = at + i * groups;
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
}

/* Block b of rows [first, first + 8) times n rows of x from i on; y carries
 * the accumulators from block to block. */
ALWAYS_INLINE void
multiply_rows (const RunnelMatrix *w, const Tile *tile, const RunnelRows *x,
    uint32_t i, int n, size_t b, uint32_t first, const float *bias, float *y,
    size_t y_stride, Form form)
{
  size_t groups = runnel_n_groups (w->columns);
  __m256 acc[4];

#pragma GCC unroll 4
  for (int j = 0; j < n; j++)
    acc[j] = b == 0 ? _mm256_setzero_ps ()
        : _mm256_loadu_ps (y + (i + j) * y_stride + first);
  multiply_tile (tile, x, i * groups + b * GROUPS, groups, n, form, acc);
#pragma GCC unroll 4
  for (int j = 0; j < n; j++) {
    if ((b + 1) * GROUPS < groups)
      _mm256_storeu_ps (y + (i + j) * y_stride + first, acc[j]);
    else
      store_tile (acc[j], w, first, bias, y + (i + j) * y_stride);
  }
}

ALWAYS_INLINE void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    void (*unpack) (Tile *, const uint8_t *const *), size_t block_bytes,
    Form form)
{
  size_t blocks = w->columns / RUNNEL_K_BLOCK;
  Tile tile;

  for (uint32_t t = tile_begin; t < tile_end; t++) {
    uint32_t first = t * ROWS;

    for (size_t b = 0; b < blocks; b++) {
      const uint8_t *rows[ROWS];
      uint32_t i;

      /* The last row again where there are none left. */
      for (uint32_t r = 0; r < ROWS; r++)
        rows[r] = w->data + b * block_bytes + w->stride
            * (first + r < w->rows ? first + r : w->rows - 1);
      unpack (&tile, rows);
      for (i = 0; i + 4 <= x->n; i += 4)
        multiply_rows (w, &tile, x, i, 4, b, first, bias, y, y_stride, form);
      for (; i + 2 <= x->n; i += 2)
        multiply_rows (w, &tile, x, i, 2, b, first, bias, y, y_stride, form);
      for (; i < x->n; i++)
        multiply_rows (w, &tile, x, i, 1, b, first, bias, y, y_stride, form);
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
