/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What happens to rows between the products.
 */
#include "neon.h"
#include "../lanes/rows.h"

#define SMALLEST 0x1p-100f
#define QUIET_NAN 0x7fc00000u

ALWAYS_INLINE uint32_t
largest_magnitude (const float *f)
{
  uint32x4_t largest = vdupq_n_u32 (0);

#pragma GCC unroll 8
  for (int v = 0; v < 8; v++)
    largest = vmaxq_u32 (largest, vandq_u32 (vreinterpretq_u32_f32 (vld1q_f32 (
                  f + 4 * v)), vdupq_n_u32 (0x7fffffff)));
  return vmaxvq_u32 (largest);
}

/* Rounds 32 products to codes, stores them and returns their sum. */
ALWAYS_INLINE int32_t
store_codes (const float *f, float inverse, int8_t *q)
{
  int32x4_t sum = vdupq_n_s32 (0);

#pragma GCC unroll 4
  for (int v = 0; v < 4; v++) {
    int32x4_t codes[2];

#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
      codes[h] = vcvtnq_s32_f32 (vmulq_n_f32 (vld1q_f32 (f + 8 * v + 4 * h),
              inverse));
      codes[h] = vmaxq_s32 (vminq_s32 (codes[h], vdupq_n_s32 (127)),
          vdupq_n_s32 (-127));
      sum = vaddq_s32 (sum, codes[h]);
    }
    vst1_s8 (q + 8 * v, vmovn_s16 (vcombine_s16 (vmovn_s32 (codes[0]),
                vmovn_s32 (codes[1]))));
  }
  return vaddvq_s32 (sum);
}

ALWAYS_INLINE void
quantise_group (const float *f, int8_t *q, float *scale, int32_t *sum,
    float *moment)
{
  uint32_t largest = largest_magnitude (f);
  float a = runnel_float_from_bits (largest);

  if (largest >= 0x7f800000 || a < SMALLEST) {
    memset (q, 0, RUNNEL_GROUP);
    *sum = 0;
    *scale = *moment = largest >= 0x7f800000
        ? runnel_float_from_bits (QUIET_NAN) : 0.0f;
    return;
  }
  *sum = store_codes (f, 127.0f / a, q);
  *scale = a / 127.0f;
  *moment = *scale * (float) *sum;
}

void
runnel_neon_quantise (RunnelRows *x, uint32_t i, uint32_t group_begin,
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

uint32_t
runnel_neon_find_non_finite (const float *x, uint32_t n)
{
  const uint32x4_t exponent = vdupq_n_u32 (0x7f800000);
  uint32_t i;

  for (i = 0; i + 4 <= n; i += 4) {
    uint32x4_t bits = vreinterpretq_u32_f32 (vld1q_f32 (x + i));

    bits = vceqq_u32 (vandq_u32 (bits, exponent), exponent);
    if (vmaxvq_u32 (bits) != 0)
      break;
  }
  while (i < n && (runnel_float_bits (x[i]) & 0x7f800000) != 0x7f800000)
    i++;
  return i;
}
