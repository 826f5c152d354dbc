/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * exp in binary32 as docs/exactness.md defines it. The coefficients minimise
 * the relative error of 1 + r + r^2 (c2 + ... + c6 r^4) over |r| <= ln 2 / 2
 * (4.4e-9, below the rounding of the operations).
 */
#pragma once

#include <math.h>

#include "half.h"

#define RUNNEL_EXP_LOWEST (-87.0f)
#define RUNNEL_EXP_HIGHEST 88.0f
#define RUNNEL_EXP_LOG2E 0x1.715476p+0f
#define RUNNEL_EXP_LN2_HI 0x1.62e430p-1f
#define RUNNEL_EXP_LN2_LO (-0x1.05c610p-29f)
#define RUNNEL_EXP_C6 0x1.6a2318p-10f
#define RUNNEL_EXP_C5 0x1.123a8ep-7f
#define RUNNEL_EXP_C4 0x1.5558f6p-5f
#define RUNNEL_EXP_C3 0x1.555490p-3f
#define RUNNEL_EXP_C2 0x1.fffffcp-2f

/* Adding 1.5 * 2^23 rounds to an integer, ties to even, and leaves that
 * integer in the low bits. */
#define RUNNEL_EXP_ROUND 0x1.8p+23f

static inline float
runnel_exp_inline (float x)
{
  float shifted, n, r, p, power;

  if (x < RUNNEL_EXP_LOWEST)
    return 0.0f;
  if (x > RUNNEL_EXP_HIGHEST)
    x = RUNNEL_EXP_HIGHEST;
  shifted = x * RUNNEL_EXP_LOG2E + RUNNEL_EXP_ROUND;
  n = shifted - RUNNEL_EXP_ROUND;
  r = fmaf (n, -RUNNEL_EXP_LN2_HI, x);
  r = fmaf (n, -RUNNEL_EXP_LN2_LO, r);
  p = fmaf (RUNNEL_EXP_C6, r, RUNNEL_EXP_C5);
  p = fmaf (p, r, RUNNEL_EXP_C4);
  p = fmaf (p, r, RUNNEL_EXP_C3);
  p = fmaf (p, r, RUNNEL_EXP_C2);
  p = fmaf (p, r, 1.0f);
  p = fmaf (p, r, 1.0f);
  power = runnel_float_from_bits ((runnel_float_bits (shifted) << 23)
      + 0x3f800000);
  return p * power;
}
