/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Sums of four products of bytes in every 32-bit lane: with the dot product
 * instruction, or by widening to 16 bits.
 */
#pragma once

#include "neon.h"

#ifdef __ARM_FEATURE_DOTPROD

typedef int32x4_t Dot;

ALWAYS_INLINE Dot
dot_zero (void)
{
  return vdupq_n_s32 (0);
}

/* Adds c0 · x0 + c1 · x1. */
ALWAYS_INLINE Dot
dot_add (Dot dot, int8x16_t c0, int8x16_t x0, int8x16_t c1, int8x16_t x1)
{
  return vdotq_s32 (vdotq_s32 (dot, c0, x0), c1, x1);
}

ALWAYS_INLINE int32x4_t
dot_sum (Dot dot)
{
  return dot;
}

#else

/* Sums of two products, of lanes 0 and 1 and of lanes 2 and 3. */
typedef struct {
  int32x4_t a;
  int32x4_t b;
} Dot;

ALWAYS_INLINE Dot
dot_zero (void)
{
  return (Dot) { vdupq_n_s32 (0), vdupq_n_s32 (0) };
}

/* Adds c0 · x0 + c1 · x1: two products, each at most 128 · 127, fit 16 bits. */
ALWAYS_INLINE Dot
dot_add (Dot dot, int8x16_t c0, int8x16_t x0, int8x16_t c1, int8x16_t x1)
{
  int16x8_t a = vmull_s8 (vget_low_s8 (c0), vget_low_s8 (x0));
  int16x8_t b = vmull_high_s8 (c0, x0);

  a = vmlal_s8 (a, vget_low_s8 (c1), vget_low_s8 (x1));
  b = vmlal_high_s8 (b, c1, x1);
  return (Dot) { vpadalq_s16 (dot.a, a), vpadalq_s16 (dot.b, b) };
}

ALWAYS_INLINE int32x4_t
dot_sum (Dot dot)
{
  return vpaddq_s32 (dot.a, dot.b);
}

#endif
