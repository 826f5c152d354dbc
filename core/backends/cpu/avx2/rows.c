/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What happens to rows between the products.
 */
#include "avx2.h"
#include "../lanes/rows.h"

#define SMALLEST 0x1p-100f
#define QUIET_NAN 0x7fc00000u

ALWAYS_INLINE uint32_t
largest_lane (__m256i v)
{
  __m128i x = _mm_max_epi32 (_mm256_castsi256_si128 (v),
      _mm256_extracti128_si256 (v, 1));

  x = _mm_max_epi32 (x, _mm_shuffle_epi32 (x, 0x4e));
  x = _mm_max_epi32 (x, _mm_shuffle_epi32 (x, 0xb1));
  return (uint32_t) _mm_cvtsi128_si32 (x);
}

ALWAYS_INLINE int32_t
sum_lanes (__m256i v)
{
  __m128i x = _mm_add_epi32 (_mm256_castsi256_si128 (v),
      _mm256_extracti128_si256 (v, 1));

  x = _mm_add_epi32 (x, _mm_shuffle_epi32 (x, 0x4e));
  x = _mm_add_epi32 (x, _mm_shuffle_epi32 (x, 0xb1));
  return _mm_cvtsi128_si32 (x);
}

/* Magnitudes compare as integers; without the sign bit signed comparison
 * will do. */
ALWAYS_INLINE uint32_t
largest_magnitude (const float *f)
{
  const __m256i no_sign = _mm256_set1_epi32 (0x7fffffff);
  __m256i largest = _mm256_setzero_si256 ();

#pragma GCC unroll 4
  for (int v = 0; v < 4; v++)
    largest = _mm256_max_epi32 (largest, _mm256_and_si256 (no_sign,
            _mm256_castps_si256 (_mm256_loadu_ps (f + 8 * v))));
  return largest_lane (largest);
}

/* Rounds 32 products to codes, stores them and returns their sum. */
ALWAYS_INLINE int32_t
store_codes (const float *f, float inverse, int8_t *q)
{
  const __m256i order = _mm256_setr_epi32 (0, 4, 1, 5, 2, 6, 3, 7);
  __m256i codes[4], sum;

#pragma GCC unroll 4
  for (int v = 0; v < 4; v++) {
    codes[v] = _mm256_cvtps_epi32 (_mm256_mul_ps (_mm256_loadu_ps (f + 8 * v),
            _mm256_set1_ps (inverse)));
    codes[v] = _mm256_max_epi32 (_mm256_min_epi32 (codes[v],
            _mm256_set1_epi32 (127)), _mm256_set1_epi32 (-127));
  }
  sum = _mm256_add_epi32 (_mm256_add_epi32 (codes[0], codes[1]),
      _mm256_add_epi32 (codes[2], codes[3]));
  codes[0] = _mm256_packs_epi16 (_mm256_packs_epi32 (codes[0], codes[1]),
      _mm256_packs_epi32 (codes[2], codes[3]));
  _mm256_storeu_si256 ((__m256i *) q, _mm256_permutevar8x32_epi32 (codes[0],
          order));
  return sum_lanes (sum);
}

ALWAYS_INLINE void
quantise_group (const float *f, int8_t *q, float *scale, int32_t *sum,
    float *moment)
{
  uint32_t largest = largest_magnitude (f);
  float a = runnel_float_from_bits (largest);

  if (largest >= 0x7f800000 || a < SMALLEST) {
    float value = largest >= 0x7f800000 ? runnel_float_from_bits (QUIET_NAN)
        : 0.0f;

    _mm256_storeu_si256 ((__m256i *) q, _mm256_setzero_si256 ());
    *sum = 0;
    *scale = *moment = value;
    return;
  }
  *sum = store_codes (f, 127.0f / a, q);
  *scale = a / 127.0f;
  *moment = *scale * (float) *sum;
}

void
runnel_avx2_quantise (RunnelRows *x, uint32_t i, uint32_t group_begin,
    uint32_t group_end)
{
  size_t first = (size_t) i * runnel_n_groups (x->columns);
  const float *f = x->f + i * x->f_stride;

  for (uint32_t g = group_begin; g < group_end; g++) {
    uint32_t c = g * RUNNEL_GROUP, n = x->columns - c;
    float padded[RUNNEL_GROUP] = { 0.0f };
    const float *from = f + c;
    size_t at = first + g;

    if (n < RUNNEL_GROUP) {
      memcpy (padded, from, n * sizeof (float));
      from = padded;
    }
    quantise_group (from, x->q + at * RUNNEL_GROUP, &x->scale[at],
        &x->sum[at], &x->moment[at]);
  }
}

uint32_t
runnel_avx2_find_non_finite (const float *x, uint32_t n)
{
  const __m256i exponent = _mm256_set1_epi32 (0x7f800000);
  uint32_t i;

  for (i = 0; i + 8 <= n; i += 8) {
    __m256i bits = _mm256_castps_si256 (_mm256_loadu_ps (x + i));

    bits = _mm256_cmpeq_epi32 (_mm256_and_si256 (bits, exponent), exponent);
    if (!_mm256_testz_si256 (bits, bits))
      break;
  }
  while (i < n && (runnel_float_bits (x[i]) & 0x7f800000) != 0x7f800000)
    i++;
  return i;
}
