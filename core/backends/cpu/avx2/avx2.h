/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The AVX2 level (with FMA and F16C): the bits of the scalar level, eight
 * floats at a time.
 */
#pragma once

#include <immintrin.h>

#include "../blocks-layout.h"
#include "../exp.h"
#include "../kernels.h"

#define LEVEL(name) runnel_avx2_##name
#define ALWAYS_INLINE static inline __attribute__ ((always_inline))

#define RUNNEL_DECLARE_MATMUL(name)                                           \
  void name (const RunnelMatrix *w, const RunnelRows *x, const float *bias,   \
      float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end)

#define RUNNEL_DECLARE_TILE_MATMUL(kind, name)                                \
  RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_##name);
RUNNEL_FOR_EACH_TILE_KIND (RUNNEL_DECLARE_TILE_MATMUL)
#undef RUNNEL_DECLARE_TILE_MATMUL
RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q2_k);
RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q3_k);
RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q4_k);
RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q5_k);
RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_q6_k);
RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_f32);
RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_f16);
RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_bf16);

uint64_t runnel_avx2_peak_integer (uint64_t rounds);
uint64_t runnel_avx2_peak_float (uint64_t rounds);

void runnel_avx2_quantise (RunnelRows *x, uint32_t i, uint32_t group_begin,
    uint32_t group_end);
void runnel_avx2_norm (const float *x, const float *weight, float epsilon,
    uint32_t columns, float *y);
void runnel_avx2_silu_mul (float *gate, const float *up, uint32_t n);
void runnel_avx2_rope (float *head, const float *cos, const float *sin,
    uint32_t half, bool halves);
uint32_t runnel_avx2_find_non_finite (const float *x, uint32_t n);

void runnel_avx2_kv_store (const RunnelKvLayout *kv, uint8_t *layer,
    uint32_t row, const float *k, const float *v);
void runnel_avx2_attend (const RunnelKvLayout *kv, const RunnelKvRun *runs,
    uint32_t n_runs, uint32_t kv_head, uint32_t key_begin, uint32_t key_end,
    const float *q, size_t q_stride, uint32_t n_queries, uint32_t n_heads,
    const uint32_t *limits, uint8_t *partials, size_t partial_stride);
void runnel_avx2_merge (RunnelPartial *into, const RunnelPartial *from,
    uint32_t head_dim);

/* ---- Eight float lanes, as ../lanes needs them --------------------------- */

typedef __m256 Lanes;

/* All ones in the first n lanes (all of them from 8 on). */
ALWAYS_INLINE __m256i
first_lanes (uint32_t n)
{
  const __m256i lanes = _mm256_setr_epi32 (0, 1, 2, 3, 4, 5, 6, 7);

  return _mm256_cmpgt_epi32 (_mm256_set1_epi32 (n < 8 ? (int) n : 8), lanes);
}

ALWAYS_INLINE Lanes
lanes_set (float value)
{
  return _mm256_set1_ps (value);
}

ALWAYS_INLINE Lanes
lanes_load (const float *p)
{
  return _mm256_loadu_ps (p);
}

ALWAYS_INLINE void
lanes_store (float *p, Lanes v)
{
  _mm256_storeu_ps (p, v);
}

ALWAYS_INLINE Lanes
lanes_load_halves (const void *p)
{
  return _mm256_cvtph_ps (_mm_loadu_si128 ((const __m128i *) p));
}

/* Eight signed bytes as floats. */
ALWAYS_INLINE Lanes
lanes_load_codes (const void *p)
{
  return _mm256_cvtepi32_ps (_mm256_cvtepi8_epi32 (_mm_loadl_epi64 (
              (const __m128i *) p)));
}

ALWAYS_INLINE void
lanes_store_halves (void *p, Lanes v)
{
  _mm_storeu_si128 ((__m128i *) p, _mm256_cvtps_ph (v,
          _MM_FROUND_TO_NEAREST_INT));
}

ALWAYS_INLINE Lanes
lanes_load_bfloat16 (const void *p)
{
  __m128i values = _mm_loadu_si128 ((const __m128i *) p);

  return _mm256_castsi256_ps (_mm256_slli_epi32 (_mm256_cvtepu16_epi32 (
              values), 16));
}

ALWAYS_INLINE Lanes
lanes_add (Lanes a, Lanes b)
{
  return _mm256_add_ps (a, b);
}

ALWAYS_INLINE Lanes
lanes_sub (Lanes a, Lanes b)
{
  return _mm256_sub_ps (a, b);
}

ALWAYS_INLINE Lanes
lanes_mul (Lanes a, Lanes b)
{
  return _mm256_mul_ps (a, b);
}

ALWAYS_INLINE Lanes
lanes_div (Lanes a, Lanes b)
{
  return _mm256_div_ps (a, b);
}

ALWAYS_INLINE Lanes
lanes_fma (Lanes a, Lanes b, Lanes c)
{
  return _mm256_fmadd_ps (a, b, c);
}

ALWAYS_INLINE Lanes
lanes_negate (Lanes v)
{
  return _mm256_xor_ps (v, _mm256_set1_ps (-0.0f));
}

/* The larger; b where a is NaN. */
ALWAYS_INLINE Lanes
lanes_max_number (Lanes a, Lanes b)
{
  return _mm256_max_ps (a, b);
}

/* The first n lanes of v, the rest of other. */
ALWAYS_INLINE Lanes
lanes_first (Lanes v, uint32_t n, Lanes other)
{
  return _mm256_blendv_ps (other, v, _mm256_castsi256_ps (first_lanes (n)));
}

ALWAYS_INLINE float
lanes_largest (Lanes v)
{
  __m128 x = _mm_max_ps (_mm256_castps256_ps128 (v),
      _mm256_extractf128_ps (v, 1));

  x = _mm_max_ps (x, _mm_movehl_ps (x, x));
  x = _mm_max_ss (x, _mm_movehdup_ps (x));
  return _mm_cvtss_f32 (x);
}

/* Lanes i += i + s for s = 4, 2, 1. */
ALWAYS_INLINE float
lanes_sum (Lanes v)
{
  __m128 x = _mm_add_ps (_mm256_castps256_ps128 (v),
      _mm256_extractf128_ps (v, 1));

  x = _mm_add_ps (x, _mm_movehl_ps (x, x));
  x = _mm_add_ss (x, _mm_movehdup_ps (x));
  return _mm_cvtss_f32 (x);
}

/* runnel_exp_inline () of eight floats. */
ALWAYS_INLINE Lanes
lanes_exp (Lanes x)
{
  const __m256 round = _mm256_set1_ps (RUNNEL_EXP_ROUND);
  const __m256 one = _mm256_set1_ps (1.0f);
  __m256 low = _mm256_cmp_ps (x, _mm256_set1_ps (RUNNEL_EXP_LOWEST),
      _CMP_LT_OQ);
  __m256 shifted, n, r, p;
  __m256i power;

  x = _mm256_min_ps (_mm256_set1_ps (RUNNEL_EXP_HIGHEST), x);
  shifted = _mm256_add_ps (_mm256_mul_ps (x,
          _mm256_set1_ps (RUNNEL_EXP_LOG2E)), round);
  n = _mm256_sub_ps (shifted, round);
  r = _mm256_fmadd_ps (n, _mm256_set1_ps (-RUNNEL_EXP_LN2_HI), x);
  r = _mm256_fmadd_ps (n, _mm256_set1_ps (-RUNNEL_EXP_LN2_LO), r);
  p = _mm256_fmadd_ps (_mm256_set1_ps (RUNNEL_EXP_C6), r,
      _mm256_set1_ps (RUNNEL_EXP_C5));
  p = _mm256_fmadd_ps (p, r, _mm256_set1_ps (RUNNEL_EXP_C4));
  p = _mm256_fmadd_ps (p, r, _mm256_set1_ps (RUNNEL_EXP_C3));
  p = _mm256_fmadd_ps (p, r, _mm256_set1_ps (RUNNEL_EXP_C2));
  p = _mm256_fmadd_ps (p, r, one);
  p = _mm256_fmadd_ps (p, r, one);
  power = _mm256_add_epi32 (_mm256_slli_epi32 (_mm256_castps_si256 (shifted),
          23), _mm256_castps_si256 (one));
  return _mm256_andnot_ps (low, _mm256_mul_ps (p,
          _mm256_castsi256_ps (power)));
}

/* Rotates the four pairs (2i, 2i + 1) at head; every cosine and sine serves
 * two lanes. */
ALWAYS_INLINE void
rotate_4_pairs (float *head, const float *cos, const float *sin)
{
  const __m256i twice = _mm256_setr_epi32 (0, 0, 1, 1, 2, 2, 3, 3);
  __m256 x = _mm256_loadu_ps (head);
  __m256 swapped = _mm256_permute_ps (x, 0xb1);
  __m256 c = _mm256_permutevar8x32_ps (_mm256_castps128_ps256 (
          _mm_loadu_ps (cos)), twice);
  __m256 s = _mm256_permutevar8x32_ps (_mm256_castps128_ps256 (
          _mm_loadu_ps (sin)), twice);

  /* (a·c − b·s, b·c + a·s) */
  _mm256_storeu_ps (head, _mm256_addsub_ps (_mm256_mul_ps (x, c),
          _mm256_mul_ps (swapped, s)));
}

/* ---- For products -------------------------------------------------------- */

/* Four bytes in every lane. */
ALWAYS_INLINE __m256i
broadcast_4_bytes (const void *p)
{
  int32_t bytes;

  memcpy (&bytes, p, sizeof bytes);
  return _mm256_set1_epi32 (bytes);
}

/* Adds the bias (or not), clears the padding rows and stores a tile's row. */
ALWAYS_INLINE void
store_tile (__m256 acc, const RunnelMatrix *w, uint32_t first,
    const float *bias, float *y)
{
  __m256i mask = first_lanes (w->rows - first);

  if (bias != NULL)
    acc = _mm256_add_ps (acc, _mm256_maskload_ps (bias + first, mask));
  _mm256_storeu_ps (y + first, _mm256_and_ps (acc,
          _mm256_castsi256_ps (mask)));
}
