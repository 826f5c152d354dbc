/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with ggml's K-quants. Eight rows of a block of 256 columns are
 * unpacked to bytes; then, for each row of x and 32 columns, the eight rows'
 * products are summed across lanes together, so that one float lane is one
 * row, as with interleaved weights.
 */
#include "avx2.h"

#define ROWS RUNNEL_TILE_ROWS
#define GROUPS (RUNNEL_K_BLOCK / RUNNEL_GROUP)

typedef struct {
  float d[ROWS];
  float dmin[ROWS];
  int8_t codes[GROUPS][ROWS][RUNNEL_GROUP];
  int16_t scales[GROUPS][ROWS][16];    /* eight times each half's */
  int32_t mins[GROUPS][2][ROWS];       /* of each half */
} Tile;

ALWAYS_INLINE __m256i
load_32 (const void *p)
{
  return _mm256_loadu_si256 ((const __m256i *) p);
}

ALWAYS_INLINE __m256i
bits_from (__m256i bytes, int shift, int mask)
{
  return _mm256_and_si256 (_mm256_srli_epi16 (bytes, shift),
      _mm256_set1_epi8 ((char) mask));
}

ALWAYS_INLINE void
put_codes (Tile *tile, int g, int r, __m256i codes)
{
  _mm256_storeu_si256 ((__m256i *) tile->codes[g][r], codes);
}

ALWAYS_INLINE void
put_scales (Tile *tile, int g, int r, int first, int second)
{
  __m256i both = _mm256_inserti128_si256 (_mm256_castsi128_si256 (
          _mm_set1_epi16 ((int16_t) first)),
      _mm_set1_epi16 ((int16_t) second), 1);

  _mm256_storeu_si256 ((__m256i *) tile->scales[g][r], both);
}

static void
unpack_q2_k (Tile *tile, int r, const uint8_t *p)
{
  const RunnelBlockQ2K *block = (const RunnelBlockQ2K *) p;

  tile->d[r] = runnel_load_half (block->d);
  tile->dmin[r] = runnel_load_half (block->dmin);
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    const uint8_t *s = block->scales + 2 * g;

    put_codes (tile, g, r, bits_from (load_32 (block->codes + g / 4 * 32),
            g % 4 * 2, 3));
    put_scales (tile, g, r, s[0] & 15, s[1] & 15);
    tile->mins[g][0][r] = s[0] >> 4;
    tile->mins[g][1][r] = s[1] >> 4;
  }
}

static void
unpack_q3_k (Tile *tile, int r, const uint8_t *p)
{
  const RunnelBlockQ3K *block = (const RunnelBlockQ3K *) p;
  __m256i high = load_32 (block->high);
  int8_t scales[16];

  tile->d[r] = runnel_load_half (block->d);
  runnel_unpack_scales_k3 (block->scales, scales);
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    __m256i low = bits_from (load_32 (block->codes + g / 4 * 32), g % 4 * 2, 3);
    __m256i third = _mm256_slli_epi16 (bits_from (high, g, 1), 2);

    put_codes (tile, g, r, _mm256_sub_epi8 (_mm256_or_si256 (low, third),
            _mm256_set1_epi8 (4)));
    put_scales (tile, g, r, scales[2 * g], scales[2 * g + 1]);
  }
}

static void
unpack_scales_k4 (Tile *tile, int r, const uint8_t *packed)
{
  uint8_t scales[8], mins[8];

  runnel_unpack_scales_k4 (packed, scales, mins);
  for (int g = 0; g < GROUPS; g++) {
    put_scales (tile, g, r, scales[g], scales[g]);
    tile->mins[g][0][r] = mins[g];
  }
}

static void
unpack_q4_k (Tile *tile, int r, const uint8_t *p)
{
  const RunnelBlockQ4K *block = (const RunnelBlockQ4K *) p;

  tile->d[r] = runnel_load_half (block->d);
  tile->dmin[r] = runnel_load_half (block->dmin);
  unpack_scales_k4 (tile, r, block->scales);
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++)
    put_codes (tile, g, r, bits_from (load_32 (block->codes + g / 2 * 32),
            g % 2 * 4, 15));
}

static void
unpack_q5_k (Tile *tile, int r, const uint8_t *p)
{
  const RunnelBlockQ5K *block = (const RunnelBlockQ5K *) p;
  __m256i high = load_32 (block->high);

  tile->d[r] = runnel_load_half (block->d);
  tile->dmin[r] = runnel_load_half (block->dmin);
  unpack_scales_k4 (tile, r, block->scales);
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    __m256i low = bits_from (load_32 (block->codes + g / 2 * 32), g % 2 * 4,
        15);
    __m256i fifth = _mm256_slli_epi16 (bits_from (high, g, 1), 4);

    put_codes (tile, g, r, _mm256_or_si256 (low, fifth));
  }
}

static void
unpack_q6_k (Tile *tile, int r, const uint8_t *p)
{
  const RunnelBlockQ6K *block = (const RunnelBlockQ6K *) p;

  tile->d[r] = runnel_load_half (block->d);
#pragma GCC unroll 8
  for (int g = 0; g < GROUPS; g++) {
    int h = g / 4, j = g % 4;
    __m256i low = bits_from (load_32 (block->low + 64 * h + j % 2 * 32),
        j / 2 * 4, 15);
    __m256i high = bits_from (load_32 (block->high + 32 * h), 2 * j, 3);
    __m256i codes = _mm256_or_si256 (low, _mm256_slli_epi16 (high, 4));

    put_codes (tile, g, r, _mm256_sub_epi8 (codes, _mm256_set1_epi8 (32)));
    put_scales (tile, g, r, (int8_t) block->scales[2 * g],
        (int8_t) block->scales[2 * g + 1]);
  }
}

/* Sums each of eight vectors; sum r comes in lane r. */
ALWAYS_INLINE __m256i
sum_vectors (const __m256i *v)
{
  __m256i a = _mm256_hadd_epi32 (_mm256_hadd_epi32 (v[0], v[1]),
      _mm256_hadd_epi32 (v[2], v[3]));
  __m256i b = _mm256_hadd_epi32 (_mm256_hadd_epi32 (v[4], v[5]),
      _mm256_hadd_epi32 (v[6], v[7]));

  return _mm256_add_epi32 (_mm256_permute2x128_si256 (a, b, 0x20),
      _mm256_permute2x128_si256 (a, b, 0x31));
}

/* The sum of the first 16 codes of a group. */
ALWAYS_INLINE int32_t
sum_first_half (const int8_t *q)
{
  __m128i biased = _mm_xor_si128 (_mm_loadu_si128 ((const __m128i *) q),
      _mm_set1_epi8 ((char) 0x80));
  __m128i sums = _mm_sad_epu8 (biased, _mm_setzero_si128 ());

  return _mm_cvtsi128_si32 (sums) + _mm_extract_epi16 (sums, 4) - 16 * 128;
}

/* How the formats differ once unpacked. */
typedef enum { SIGNED_CODES, MINS_OF_32, MINS_OF_16 } Form;

ALWAYS_INLINE __m256
add_group (const Tile *tile, int g, Form form, const int8_t *q, float scale,
    int32_t sum, __m256 acc)
{
  __m256i x = load_32 (q), products[ROWS], msum;
  __m256 d = _mm256_loadu_ps (tile->d), dmin;

#pragma GCC unroll 8
  for (int r = 0; r < ROWS; r++) {
    __m256i codes = load_32 (tile->codes[g][r]), pairs;

    if (form == SIGNED_CODES)
      pairs = _mm256_maddubs_epi16 (_mm256_abs_epi8 (codes),
          _mm256_sign_epi8 (x, codes));
    else
      pairs = _mm256_maddubs_epi16 (codes, x);
    products[r] = _mm256_madd_epi16 (pairs, load_32 (tile->scales[g][r]));
  }
  acc = _mm256_add_ps (acc, _mm256_mul_ps (_mm256_mul_ps (d,
              _mm256_set1_ps (scale)),
          _mm256_cvtepi32_ps (sum_vectors (products))));
  if (form == SIGNED_CODES)
    return acc;

  msum = load_32 (tile->mins[g][0]);
  if (form == MINS_OF_32) {
    msum = _mm256_mullo_epi32 (msum, _mm256_set1_epi32 (sum));
  } else {
    int32_t first = sum_first_half (q);

    msum = _mm256_add_epi32 (
        _mm256_mullo_epi32 (msum, _mm256_set1_epi32 (first)),
        _mm256_mullo_epi32 (load_32 (tile->mins[g][1]),
            _mm256_set1_epi32 (sum - first)));
  }
  dmin = _mm256_mul_ps (_mm256_loadu_ps (tile->dmin), _mm256_set1_ps (scale));
  return _mm256_sub_ps (acc, _mm256_mul_ps (dmin, _mm256_cvtepi32_ps (msum)));
}

ALWAYS_INLINE void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    void (*unpack) (Tile *, int, const uint8_t *), size_t block_bytes,
    Form form)
{
  size_t groups = runnel_n_groups (w->columns);
  Tile tile;

  for (uint32_t t = tile_begin; t < tile_end; t++) {
    uint32_t first = t * ROWS;
    int n_rows = w->rows - first < ROWS ? (int) (w->rows - first) : ROWS;

    if (n_rows < ROWS)
      memset (&tile, 0, sizeof tile);
    for (size_t g = 0; g < groups; g += GROUPS) {
      const uint8_t *p = w->data + first * w->stride
          + g / GROUPS * block_bytes;

      for (int r = 0; r < n_rows; r++)
        unpack (&tile, r, p + r * w->stride);
      for (uint32_t i = 0; i < x->n; i++) {
        float *out = y + i * y_stride + first;
        __m256 acc = g == 0 ? _mm256_setzero_ps () : _mm256_loadu_ps (out);
        size_t at = i * groups + g;

        for (int j = 0; j < GROUPS; j++)
          acc = add_group (&tile, j, form, x->q + (at + j) * RUNNEL_GROUP,
              x->scale[at + j], x->sum[at + j], acc);
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
