/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "scalar.h"

#define SUMS 8

/* The empty assembly keeps a sum in a register and in the program. */
uint64_t
runnel_scalar_peak_integer (uint64_t rounds)
{
  int32_t sums[SUMS] = { 0 };
  int32_t x = 3, y = 5;

  for (uint64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 8
    for (int i = 0; i < SUMS; i++) {
      __asm__ ("" : "+r" (x), "+r" (sums[i]));
      sums[i] += (int8_t) x * (int8_t) y;
    }
  }
  __asm__ volatile ("" : : "r" (sums[0]), "r" (sums[SUMS - 1]));
  return rounds * SUMS;
}

uint64_t
runnel_scalar_peak_float (uint64_t rounds)
{
  float sums[SUMS] = { 0.0f };

  for (uint64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 8
    for (int i = 0; i < SUMS; i++) {
      sums[i] = sums[i] * 0.5f + 1.0f;
      __asm__ ("" : "+m" (sums[i]));
    }
  }
  return rounds * SUMS;
}
