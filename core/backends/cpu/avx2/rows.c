/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What happens to rows between the products.
 */
#include "avx2.h"

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

void
runnel_avx2_norm (const float *x, const float *weight, float epsilon,
    uint32_t columns, float *y)
{
  __m256 a = _mm256_setzero_ps (), b = a, factor;
  float lanes[16], r;
  uint32_t c;

  for (c = 0; c + 16 <= columns; c += 16) {
    __m256 first = _mm256_loadu_ps (x + c);
    __m256 second = _mm256_loadu_ps (x + c + 8);

    a = _mm256_fmadd_ps (first, first, a);
    b = _mm256_fmadd_ps (second, second, b);
  }
  _mm256_storeu_ps (lanes, a);
  _mm256_storeu_ps (lanes + 8, b);
  for (uint32_t l = 0; c < columns; c++, l++)
    lanes[l] = fmaf (x[c], x[c], lanes[l]);
  r = sum_8_lanes (_mm256_add_ps (_mm256_loadu_ps (lanes),
          _mm256_loadu_ps (lanes + 8)));
  r = 1.0f / sqrtf (r / (float) columns + epsilon);

  factor = _mm256_set1_ps (r);
  for (c = 0; c + 8 <= columns; c += 8)
    _mm256_storeu_ps (y + c, _mm256_mul_ps (_mm256_mul_ps (
                _mm256_loadu_ps (x + c), factor), _mm256_loadu_ps (weight + c)));
  for (; c < columns; c++)
    y[c] = (x[c] * r) * weight[c];
}

void
runnel_avx2_silu_mul (float *gate, const float *up, uint32_t n)
{
  const __m256 one = _mm256_set1_ps (1.0f);
  const __m256 sign = _mm256_set1_ps (-0.0f);
  uint32_t i;

  for (i = 0; i + 8 <= n; i += 8) {
    __m256 g = _mm256_loadu_ps (gate + i);
    __m256 e = exp_8 (_mm256_xor_ps (g, sign));

    g = _mm256_div_ps (g, _mm256_add_ps (one, e));
    _mm256_storeu_ps (gate + i, _mm256_mul_ps (g, _mm256_loadu_ps (up + i)));
  }
  for (; i < n; i++)
    gate[i] = (gate[i] / (1.0f + runnel_exp_inline (-gate[i]))) * up[i];
}

/* Pairs (i, i + half): two plain halves. */
static uint32_t
rope_halves (float *head, const float *cos, const float *sin, uint32_t half)
{
  uint32_t i;

  for (i = 0; i + 8 <= half; i += 8) {
    __m256 a = _mm256_loadu_ps (head + i);
    __m256 b = _mm256_loadu_ps (head + half + i);
    __m256 c = _mm256_loadu_ps (cos + i), s = _mm256_loadu_ps (sin + i);

    _mm256_storeu_ps (head + i, _mm256_sub_ps (_mm256_mul_ps (a, c),
            _mm256_mul_ps (b, s)));
    _mm256_storeu_ps (head + half + i, _mm256_add_ps (_mm256_mul_ps (a, s),
            _mm256_mul_ps (b, c)));
  }
  return i;
}

/* Pairs (2i, 2i + 1): every cosine and sine serves two lanes. */
static uint32_t
rope_neighbours (float *head, const float *cos, const float *sin,
    uint32_t half)
{
  const __m256i twice = _mm256_setr_epi32 (0, 0, 1, 1, 2, 2, 3, 3);
  uint32_t i;

  for (i = 0; i + 4 <= half; i += 4) {
    __m256 x = _mm256_loadu_ps (head + 2 * i);
    __m256 swapped = _mm256_permute_ps (x, 0xb1);
    __m256 c = _mm256_permutevar8x32_ps (_mm256_castps128_ps256 (
            _mm_loadu_ps (cos + i)), twice);
    __m256 s = _mm256_permutevar8x32_ps (_mm256_castps128_ps256 (
            _mm_loadu_ps (sin + i)), twice);

    /* (a·c − b·s, b·c + a·s) */
    _mm256_storeu_ps (head + 2 * i, _mm256_addsub_ps (_mm256_mul_ps (x, c),
            _mm256_mul_ps (swapped, s)));
  }
  return i;
}

void
runnel_avx2_rope (float *head, const float *cos, const float *sin,
    uint32_t half, bool halves)
{
  uint32_t i = halves ? rope_halves (head, cos, sin, half)
      : rope_neighbours (head, cos, sin, half);

  for (; i < half; i++) {
    float *a = head + (halves ? i : 2 * i);
    float *b = a + (halves ? half : 1);
    float re = *a * cos[i] - *b * sin[i];
    float im = *a * sin[i] + *b * cos[i];

    *a = re;
    *b = im;
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
