/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Half floats and bfloat16 in plain C, for kernels and file readers. The
 * results are those of the hardware conversions (F16C, NEON): to nearest
 * even, denormals kept, infinities and NaN kept.
 */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float
runnel_float_from_bits (uint32_t bits)
{
  float f;

  memcpy (&f, &bits, sizeof f);
  return f;
}

static inline uint32_t
runnel_float_bits (float f)
{
  uint32_t bits;

  memcpy (&bits, &f, sizeof bits);
  return bits;
}

static inline float
runnel_half_to_float (uint16_t half)
{
  uint32_t sign = (uint32_t) (half & 0x8000) << 16;
  uint32_t magnitude = (uint32_t) (half & 0x7fff) << 13;

  if (magnitude >= 0x0f800000)
    return runnel_float_from_bits (sign | magnitude | 0x7f800000);
  /* The exponents differ in bias by 112; multiplying corrects it for normal
   * and denormal halves alike, without rounding. */
  magnitude = runnel_float_bits (runnel_float_from_bits (magnitude) * 0x1p112f);
  return runnel_float_from_bits (sign | magnitude);
}

static inline uint16_t
runnel_float_to_half (float f)
{
  uint32_t bits = runnel_float_bits (f);
  uint16_t sign = (uint16_t) ((bits >> 16) & 0x8000);

  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return sign | 0x7e00;
  if (bits >= 0x477ff000)       /* rounds to 65536 or more */
    return sign | 0x7c00;
  if (bits < 0x38800000) {      /* below 2^-14: 0.5 has the ulp we round to */
    bits = runnel_float_bits (runnel_float_from_bits (bits) + 0.5f);
    return sign | (uint16_t) (bits - 0x3f000000);
  }
  bits += 0xfff + ((bits >> 13) & 1);
  return sign | (uint16_t) ((bits - 0x38000000) >> 13);
}

static inline float
runnel_bfloat_to_float (uint16_t value)
{
  return runnel_float_from_bits ((uint32_t) value << 16);
}

/* Reads through memory of any alignment, little-endian as files are. */
static inline uint16_t
runnel_load_u16 (const uint8_t *p)
{
  uint16_t value;

  memcpy (&value, p, sizeof value);
  return value;
}

static inline float
runnel_load_half (const uint8_t *p)
{
  return runnel_half_to_float (runnel_load_u16 (p));
}
