/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "neon.h"

#include "../scalar/scalar.h"

/* What is left to scalar code is either rare or as fast as memory. */
#define DEFINE_TABLE(level, level_k)                                          \
  const RunnelKernels runnel_kernels_##level = {                              \
    .name = #level,                                                           \
    .matmul = {                                                               \
      RUNNEL_FOR_EACH_TILE_KIND (TILES_##level)                               \
      [RUNNEL_MATRIX_Q2_K] = runnel_##level_k##_matmul_q2_k,                  \
      [RUNNEL_MATRIX_Q3_K] = runnel_##level_k##_matmul_q3_k,                  \
      [RUNNEL_MATRIX_Q4_K] = runnel_##level_k##_matmul_q4_k,                  \
      [RUNNEL_MATRIX_Q5_K] = runnel_##level_k##_matmul_q5_k,                  \
      [RUNNEL_MATRIX_Q6_K] = runnel_##level_k##_matmul_q6_k,                  \
      [RUNNEL_MATRIX_F32] = runnel_neon_matmul_f32,                           \
      [RUNNEL_MATRIX_F16] = runnel_neon_matmul_f16,                           \
      [RUNNEL_MATRIX_BF16] = runnel_neon_matmul_bf16,                         \
    },                                                                        \
    .row = runnel_scalar_row,                                                 \
    .quantise = runnel_neon_quantise,                                         \
    .norm = runnel_neon_norm,                                                 \
    .add = runnel_scalar_add,                                                 \
    .silu_mul = runnel_neon_silu_mul,                                         \
    .rope = runnel_neon_rope,                                                 \
    .scale = runnel_scalar_scale,                                             \
    .conv_tap = runnel_scalar_conv_tap,                                       \
    .kv_store = runnel_neon_kv_store,                                         \
    .kv_load = runnel_scalar_kv_load,                                         \
    .attend = runnel_neon_attend,                                             \
    .merge = runnel_neon_merge,                                               \
    .finish = runnel_scalar_finish,                                           \
    .find_non_finite = runnel_neon_find_non_finite,                           \
    .peak_integer = runnel_##level##_peak_integer,                            \
    .peak_float = runnel_neon_peak_float,                                     \
  }

#define TILES_neon(kind, name)                                                \
  [RUNNEL_MATRIX_##kind] = runnel_neon_matmul_##name,
#define TILES_dotprod(kind, name)                                             \
  [RUNNEL_MATRIX_##kind] = runnel_dotprod_matmul_##name,
#define TILES_i8mm(kind, name)                                                \
  [RUNNEL_MATRIX_##kind] = runnel_i8mm_matmul_##name,

DEFINE_TABLE (neon, neon);
DEFINE_TABLE (dotprod, dotprod);
DEFINE_TABLE (i8mm, dotprod);
