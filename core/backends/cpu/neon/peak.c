/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Compiled for each NEON level.
 */
#include "dot.h"

#define SUMS 8

#ifdef __ARM_FEATURE_MATMUL_INT8

typedef int32x4_t Sum;

/* Two rows of eight bytes times two. */
ALWAYS_INLINE Sum
multiply (Sum sum, int8x16_t x)
{
  return vmmlaq_s32 (sum, x, x);
}

#else

typedef Dot Sum;

/* 16 products and 16 more. */
ALWAYS_INLINE Sum
multiply (Sum sum, int8x16_t x)
{
  return dot_add (sum, x, x, x, x);
}

#endif

uint64_t
LEVEL (peak_integer) (uint64_t rounds)
{
  int8x16_t x = vdupq_n_s8 (3);
  Sum sums[SUMS];

  memset (sums, 0, sizeof sums);
  for (uint64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 8
    for (int i = 0; i < SUMS; i++) {
      __asm__ ("" : "+w" (x));
      sums[i] = multiply (sums[i], x);
    }
  }
  __asm__ volatile ("" : : "m" (sums));
  return rounds * SUMS * 32;
}

#ifndef __ARM_FEATURE_DOTPROD

uint64_t
runnel_neon_peak_float (uint64_t rounds)
{
  float32x4_t sums[SUMS], x = vdupq_n_f32 (0.5f);

#pragma GCC unroll 8
  for (int i = 0; i < SUMS; i++)
    sums[i] = vdupq_n_f32 (0.0f);
  for (uint64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 8
    for (int i = 0; i < SUMS; i++) {
      __asm__ ("" : "+w" (x), "+w" (sums[i]));
      sums[i] = vfmaq_f32 (sums[i], x, x);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < SUMS; i++)
    __asm__ volatile ("" : : "w" (sums[i]));
  return rounds * SUMS * 4;
}

#endif
