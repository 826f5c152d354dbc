/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Floats that share a scale as 8-bit codes, in plain C: the rule of
 * docs/exactness.md for activations and for int8 keys and values.
 */
#pragma once

#include "half.h"

#define RUNNEL_QUANTISE_SMALLEST 0x1p-100f  /* all of a group below it is 0 */
#define RUNNEL_QUANTISE_NAN 0x7fc00000u     /* the scale of what is not finite */
#define RUNNEL_QUANTISE_ROUND 0x1.8p+23f    /* to an integer, ties to even */

typedef struct {
  float scale;
  float inverse;             /* 0 where all codes are 0 */
} RunnelCodeScale;

static inline RunnelCodeScale
runnel_code_scale (const float *x, uint32_t n)
{
  RunnelCodeScale scale = { 0.0f, 0.0f };
  uint32_t largest = 0;
  float a;

  for (uint32_t i = 0; i < n; i++) {
    uint32_t bits = runnel_float_bits (x[i]) & 0x7fffffff;

    if (bits > largest)
      largest = bits;
  }
  a = runnel_float_from_bits (largest);
  if (largest >= 0x7f800000) {
    scale.scale = runnel_float_from_bits (RUNNEL_QUANTISE_NAN);
  } else if (a >= RUNNEL_QUANTISE_SMALLEST) {
    scale.scale = a / 127.0f;
    scale.inverse = 127.0f / a;
  }
  return scale;
}

static inline int8_t
runnel_code (float x, RunnelCodeScale scale)
{
  float code;

  if (scale.inverse == 0.0f)
    return 0;
  code = (x * scale.inverse + RUNNEL_QUANTISE_ROUND) - RUNNEL_QUANTISE_ROUND;
  if (code > 127.0f)
    code = 127.0f;
  if (code < -127.0f)
    code = -127.0f;
  return (int8_t) code;
}
