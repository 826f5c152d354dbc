/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The NEON levels: baseline ARMv8.0, dotprod and i8mm. Sources that gain from
 * the later instructions are compiled once a level and differ in LEVEL and in
 * dot.h; the rest exists once, at the baseline.
 */
#pragma once

#include <arm_neon.h>

#include "../blocks-layout.h"
#include "../exp.h"
#include "../kernels.h"

#if defined(__ARM_FEATURE_MATMUL_INT8)
#define LEVEL(name) runnel_i8mm_##name
#elif defined(__ARM_FEATURE_DOTPROD)
#define LEVEL(name) runnel_dotprod_##name
#else
#define LEVEL(name) runnel_neon_##name
#endif

#define ALWAYS_INLINE static inline __attribute__ ((always_inline))

#define RUNNEL_DECLARE_MATMUL(name)                                           \
  void name (const RunnelMatrix *w, const RunnelRows *x, const float *bias,   \
      float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end)

#define RUNNEL_DECLARE_TILES(kind, name)                                      \
  RUNNEL_DECLARE_MATMUL (runnel_neon_matmul_##name);                          \
  RUNNEL_DECLARE_MATMUL (runnel_dotprod_matmul_##name);                       \
  RUNNEL_DECLARE_MATMUL (runnel_i8mm_matmul_##name);
RUNNEL_FOR_EACH_TILE_KIND (RUNNEL_DECLARE_TILES)
#undef RUNNEL_DECLARE_TILES

#define RUNNEL_DECLARE_K(level)                                               \
  RUNNEL_DECLARE_MATMUL (runnel_##level##_matmul_q2_k);                       \
  RUNNEL_DECLARE_MATMUL (runnel_##level##_matmul_q3_k);                       \
  RUNNEL_DECLARE_MATMUL (runnel_##level##_matmul_q4_k);                       \
  RUNNEL_DECLARE_MATMUL (runnel_##level##_matmul_q5_k);                       \
  RUNNEL_DECLARE_MATMUL (runnel_##level##_matmul_q6_k)

RUNNEL_DECLARE_K (neon);
RUNNEL_DECLARE_K (dotprod);
RUNNEL_DECLARE_MATMUL (runnel_neon_matmul_f32);
RUNNEL_DECLARE_MATMUL (runnel_neon_matmul_f16);
RUNNEL_DECLARE_MATMUL (runnel_neon_matmul_bf16);

uint64_t runnel_neon_peak_integer (uint64_t rounds);
uint64_t runnel_dotprod_peak_integer (uint64_t rounds);
uint64_t runnel_i8mm_peak_integer (uint64_t rounds);
uint64_t runnel_neon_peak_float (uint64_t rounds);

void runnel_neon_quantise (RunnelRows *x, uint32_t i, uint32_t group_begin,
    uint32_t group_end);
void runnel_neon_norm (const float *x, const float *weight, float epsilon,
    uint32_t columns, float *y);
void runnel_neon_silu_mul (float *gate, const float *up, uint32_t n);
void runnel_neon_rope (float *head, const float *cos, const float *sin,
    uint32_t half, bool halves);
uint32_t runnel_neon_find_non_finite (const float *x, uint32_t n);

void runnel_neon_kv_store (const RunnelKvLayout *kv, uint8_t *layer,
    uint32_t row, const float *k, const float *v);
void runnel_neon_attend (const RunnelKvLayout *kv, const RunnelKvRun *runs,
    uint32_t n_runs, uint32_t kv_head, uint32_t key_begin, uint32_t key_end,
    const float *q, size_t q_stride, uint32_t n_queries, uint32_t n_heads,
    const uint32_t *limits, uint8_t *partials, size_t partial_stride);
void runnel_neon_merge (RunnelPartial *into, const RunnelPartial *from,
    uint32_t head_dim);

/* ---- Eight float lanes, as ../lanes needs them --------------------------- */

typedef struct {
  float32x4_t a;
  float32x4_t b;
} Lanes;

ALWAYS_INLINE Lanes
lanes_set (float value)
{
  return (Lanes) { vdupq_n_f32 (value), vdupq_n_f32 (value) };
}

ALWAYS_INLINE Lanes
lanes_load (const float *p)
{
  return (Lanes) { vld1q_f32 (p), vld1q_f32 (p + 4) };
}

ALWAYS_INLINE void
lanes_store (float *p, Lanes v)
{
  vst1q_f32 (p, v.a);
  vst1q_f32 (p + 4, v.b);
}

ALWAYS_INLINE Lanes
lanes_load_halves (const void *p)
{
  float16x8_t halves = vreinterpretq_f16_u8 (vld1q_u8 (p));

  return (Lanes) { vcvt_f32_f16 (vget_low_f16 (halves)),
    vcvt_high_f32_f16 (halves) };
}

/* Eight signed bytes as floats. */
ALWAYS_INLINE Lanes
lanes_load_codes (const void *p)
{
  int16x8_t codes = vmovl_s8 (vreinterpret_s8_u8 (vld1_u8 (p)));

  return (Lanes) { vcvtq_f32_s32 (vmovl_s16 (vget_low_s16 (codes))),
    vcvtq_f32_s32 (vmovl_high_s16 (codes)) };
}

ALWAYS_INLINE void
lanes_store_halves (void *p, Lanes v)
{
  float16x8_t halves = vcvt_high_f16_f32 (vcvt_f16_f32 (v.a), v.b);

  vst1q_u8 (p, vreinterpretq_u8_f16 (halves));
}

ALWAYS_INLINE Lanes
lanes_load_bfloat16 (const void *p)
{
  uint16x8_t values = vreinterpretq_u16_u8 (vld1q_u8 (p));

  return (Lanes) {
    vreinterpretq_f32_u32 (vshll_n_u16 (vget_low_u16 (values), 16)),
    vreinterpretq_f32_u32 (vshll_high_n_u16 (values, 16))
  };
}

ALWAYS_INLINE Lanes
lanes_add (Lanes a, Lanes b)
{
  return (Lanes) { vaddq_f32 (a.a, b.a), vaddq_f32 (a.b, b.b) };
}

ALWAYS_INLINE Lanes
lanes_sub (Lanes a, Lanes b)
{
  return (Lanes) { vsubq_f32 (a.a, b.a), vsubq_f32 (a.b, b.b) };
}

ALWAYS_INLINE Lanes
lanes_mul (Lanes a, Lanes b)
{
  return (Lanes) { vmulq_f32 (a.a, b.a), vmulq_f32 (a.b, b.b) };
}

ALWAYS_INLINE Lanes
lanes_div (Lanes a, Lanes b)
{
  return (Lanes) { vdivq_f32 (a.a, b.a), vdivq_f32 (a.b, b.b) };
}

ALWAYS_INLINE Lanes
lanes_fma (Lanes a, Lanes b, Lanes c)
{
  return (Lanes) { vfmaq_f32 (c.a, a.a, b.a), vfmaq_f32 (c.b, a.b, b.b) };
}

ALWAYS_INLINE Lanes
lanes_negate (Lanes v)
{
  return (Lanes) { vnegq_f32 (v.a), vnegq_f32 (v.b) };
}

/* The larger; b where a is NaN. */
ALWAYS_INLINE Lanes
lanes_max_number (Lanes a, Lanes b)
{
  return (Lanes) { vmaxnmq_f32 (a.a, b.a), vmaxnmq_f32 (a.b, b.b) };
}

/* The first n lanes of v, the rest of other. */
ALWAYS_INLINE Lanes
lanes_first (Lanes v, uint32_t n, Lanes other)
{
  static const uint32_t numbers[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  uint32x4_t limit = vdupq_n_u32 (n);

  return (Lanes) {
    vbslq_f32 (vcltq_u32 (vld1q_u32 (numbers), limit), v.a, other.a),
    vbslq_f32 (vcltq_u32 (vld1q_u32 (numbers + 4), limit), v.b, other.b)
  };
}

ALWAYS_INLINE float
lanes_largest (Lanes v)
{
  return vmaxnmvq_f32 (vmaxnmq_f32 (v.a, v.b));
}

/* Lanes i += i + s for s = 4, 2, 1. */
ALWAYS_INLINE float
lanes_sum (Lanes v)
{
  float32x4_t four = vaddq_f32 (v.a, v.b);
  float32x2_t two = vadd_f32 (vget_low_f32 (four), vget_high_f32 (four));

  return vget_lane_f32 (two, 0) + vget_lane_f32 (two, 1);
}

/* runnel_exp_inline () of four floats. */
ALWAYS_INLINE float32x4_t
exp_4 (float32x4_t x)
{
  const float32x4_t round = vdupq_n_f32 (RUNNEL_EXP_ROUND);
  const float32x4_t one = vdupq_n_f32 (1.0f);
  uint32x4_t low = vcltq_f32 (x, vdupq_n_f32 (RUNNEL_EXP_LOWEST));
  float32x4_t shifted, n, r, p;
  uint32x4_t power;

  x = vminq_f32 (x, vdupq_n_f32 (RUNNEL_EXP_HIGHEST));
  shifted = vaddq_f32 (vmulq_f32 (x, vdupq_n_f32 (RUNNEL_EXP_LOG2E)), round);
  n = vsubq_f32 (shifted, round);
  r = vfmaq_f32 (x, n, vdupq_n_f32 (-RUNNEL_EXP_LN2_HI));
  r = vfmaq_f32 (r, n, vdupq_n_f32 (-RUNNEL_EXP_LN2_LO));
  p = vfmaq_f32 (vdupq_n_f32 (RUNNEL_EXP_C5), vdupq_n_f32 (RUNNEL_EXP_C6), r);
  p = vfmaq_f32 (vdupq_n_f32 (RUNNEL_EXP_C4), p, r);
  p = vfmaq_f32 (vdupq_n_f32 (RUNNEL_EXP_C3), p, r);
  p = vfmaq_f32 (vdupq_n_f32 (RUNNEL_EXP_C2), p, r);
  p = vfmaq_f32 (one, p, r);
  p = vfmaq_f32 (one, p, r);
  power = vaddq_u32 (vshlq_n_u32 (vreinterpretq_u32_f32 (shifted), 23),
      vreinterpretq_u32_f32 (one));
  p = vmulq_f32 (p, vreinterpretq_f32_u32 (power));
  return vreinterpretq_f32_u32 (vbicq_u32 (vreinterpretq_u32_f32 (p), low));
}

ALWAYS_INLINE Lanes
lanes_exp (Lanes v)
{
  return (Lanes) { exp_4 (v.a), exp_4 (v.b) };
}

/* Rotates the four pairs (2i, 2i + 1) at head. */
ALWAYS_INLINE void
rotate_4_pairs (float *head, const float *cos, const float *sin)
{
  float32x4x2_t x = vld2q_f32 (head), y;
  float32x4_t c = vld1q_f32 (cos), s = vld1q_f32 (sin);

  y.val[0] = vsubq_f32 (vmulq_f32 (x.val[0], c), vmulq_f32 (x.val[1], s));
  y.val[1] = vaddq_f32 (vmulq_f32 (x.val[0], s), vmulq_f32 (x.val[1], c));
  vst2q_f32 (head, y);
}

/* ---- For products -------------------------------------------------------- */

/* Adds the bias (or not), clears the padding rows and stores a tile's row. */
ALWAYS_INLINE void
store_tile (Lanes acc, const RunnelMatrix *w, uint32_t first,
    const float *bias, float *y)
{
  const Lanes zero = lanes_set (0.0f);
  uint32_t n = w->rows - first;
  float padded[RUNNEL_TILE_ROWS];

  if (bias != NULL && n >= RUNNEL_TILE_ROWS) {
    acc = lanes_add (acc, lanes_load (bias + first));
  } else if (bias != NULL) {
    for (uint32_t r = 0; r < RUNNEL_TILE_ROWS; r++)
      padded[r] = r < n ? bias[first + r] : 0.0f;
    acc = lanes_add (acc, lanes_load (padded));
  }
  lanes_store (y + first, lanes_first (acc, n, zero));
}
