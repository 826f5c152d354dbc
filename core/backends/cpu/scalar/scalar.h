/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The plain C kernels, which define the bits. Other levels may use them
 * where vector code gains nothing.
 */
#pragma once

#include "../kernels.h"
#include "../blocks-layout.h"

#define RUNNEL_DECLARE_MATMUL(name)                                           \
  void name (const RunnelMatrix *w, const RunnelRows *x, const float *bias,   \
      float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end)

#define RUNNEL_DECLARE_TILE_MATMUL(kind, name)                                \
  RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_##name);
RUNNEL_FOR_EACH_TILE_KIND (RUNNEL_DECLARE_TILE_MATMUL)
#undef RUNNEL_DECLARE_TILE_MATMUL
RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_q2_k);
RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_q3_k);
RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_q4_k);
RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_q5_k);
RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_q6_k);
RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_f32);
RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_f16);
RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_bf16);

/* A K-quant row unpacked: what all of them have in common. Formats with 8
 * scales of 32 columns hold each twice. */
typedef struct {
  float d;
  float dmin;                /* 0 where the format has none */
  int8_t codes[RUNNEL_K_BLOCK];
  int8_t scales[16];         /* of 16 columns each */
  uint8_t mins[16];
} RunnelKBlock;

size_t runnel_scalar_unpack_k (RunnelMatrixKind kind, const uint8_t *tile,
    uint32_t r, RunnelKBlock *out);

void runnel_scalar_row (const RunnelMatrix *w, uint32_t row, float *y);

uint64_t runnel_scalar_peak_integer (uint64_t rounds);
uint64_t runnel_scalar_peak_float (uint64_t rounds);

void runnel_scalar_quantise (RunnelRows *x, uint32_t i, uint32_t group_begin,
    uint32_t group_end);
void runnel_scalar_norm (const float *x, const float *weight, float epsilon,
    uint32_t columns, float *y);
void runnel_scalar_add (float *x, const float *y, uint32_t n);
void runnel_scalar_silu_mul (float *gate, const float *up, uint32_t n);
void runnel_scalar_rope (float *head, const float *cos, const float *sin,
    uint32_t half, bool halves);
void runnel_scalar_scale (float *x, float factor, uint32_t n);
void runnel_scalar_conv_tap (float *y, const float *x, const float *base,
    float factor, uint32_t n, bool add);
uint32_t runnel_scalar_find_non_finite (const float *x, uint32_t n);

void runnel_scalar_kv_store (const RunnelKvLayout *kv, uint8_t *layer,
    uint32_t row, const float *k, const float *v);
void runnel_scalar_kv_load (const RunnelKvLayout *kv, const uint8_t *layer,
    uint32_t row, float *k, float *v);

void runnel_scalar_attend (const RunnelKvLayout *kv, const RunnelKvRun *runs,
    uint32_t n_runs, uint32_t kv_head, uint32_t key_begin, uint32_t key_end,
    const float *q, size_t q_stride, uint32_t n_queries, uint32_t n_heads,
    const uint32_t *limits, uint8_t *partials, size_t partial_stride);
void runnel_scalar_merge (RunnelPartial *into, const RunnelPartial *from,
    uint32_t head_dim);
void runnel_scalar_finish (const RunnelPartial *partial, uint32_t head_dim,
    float *y);
