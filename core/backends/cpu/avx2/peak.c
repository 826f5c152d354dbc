/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "avx2.h"

#define SUMS 10                 /* more than latency times throughput */

/* Sums of products of bytes as the products of 4-bit codes make them. Every
 * loop over the sums is unrolled, or they would lie in memory. */
uint64_t
runnel_avx2_peak_integer (uint64_t rounds)
{
  __m256i sums[SUMS], x = _mm256_set1_epi8 (3), y = _mm256_set1_epi8 (-5);

#pragma GCC unroll 10
  for (int i = 0; i < SUMS; i++)
    sums[i] = _mm256_setzero_si256 ();
  for (uint64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 10
    for (int i = 0; i < SUMS; i++) {
      __asm__ ("" : "+x" (x), "+x" (sums[i]));
      sums[i] = _mm256_add_epi16 (sums[i], _mm256_maddubs_epi16 (x, y));
    }
  }
#pragma GCC unroll 10
  for (int i = 0; i < SUMS; i++)
    __asm__ volatile ("" : : "x" (sums[i]));
  return rounds * SUMS * 32;
}

uint64_t
runnel_avx2_peak_float (uint64_t rounds)
{
  __m256 sums[SUMS], x = _mm256_set1_ps (0.5f), y = _mm256_set1_ps (0.25f);

#pragma GCC unroll 10
  for (int i = 0; i < SUMS; i++)
    sums[i] = _mm256_setzero_ps ();
  for (uint64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 10
    for (int i = 0; i < SUMS; i++) {
      __asm__ ("" : "+x" (x), "+x" (sums[i]));
      sums[i] = _mm256_fmadd_ps (x, y, sums[i]);
    }
  }
#pragma GCC unroll 10
  for (int i = 0; i < SUMS; i++)
    __asm__ volatile ("" : : "x" (sums[i]));
  return rounds * SUMS * 8;
}
