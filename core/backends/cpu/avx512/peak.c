/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "avx512.h"

#define SUMS 10                 /* more than latency times throughput */

uint64_t
runnel_avx512vnni_peak_integer (uint64_t rounds)
{
  __m512i sums[SUMS], x = _mm512_set1_epi32 (0x03030303);

#pragma GCC unroll 10
  for (int i = 0; i < SUMS; i++)
    sums[i] = _mm512_setzero_si512 ();
  for (uint64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 10
    for (int i = 0; i < SUMS; i++) {
      __asm__ ("" : "+v" (x), "+v" (sums[i]));
      sums[i] = _mm512_dpbusd_epi32 (sums[i], x, x);
    }
  }
#pragma GCC unroll 10
  for (int i = 0; i < SUMS; i++)
    __asm__ volatile ("" : : "v" (sums[i]));
  return rounds * SUMS * 64;
}
