/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "avx2.h"

#include "../scalar/scalar.h"

/* What is left to scalar code is either rare or as fast as memory. The
 * AVX-512 level has products with tiles of its own. */
#define DEFINE_TABLE(level)                                                   \
  const RunnelKernels runnel_kernels_##level = {                              \
    .name = #level,                                                           \
    .matmul = {                                                               \
      RUNNEL_FOR_EACH_TILE_KIND (TILES_##level)                               \
      [RUNNEL_MATRIX_Q2_K] = runnel_avx2_matmul_q2_k,                         \
      [RUNNEL_MATRIX_Q3_K] = runnel_avx2_matmul_q3_k,                         \
      [RUNNEL_MATRIX_Q4_K] = runnel_avx2_matmul_q4_k,                         \
      [RUNNEL_MATRIX_Q5_K] = runnel_avx2_matmul_q5_k,                         \
      [RUNNEL_MATRIX_Q6_K] = runnel_avx2_matmul_q6_k,                         \
      [RUNNEL_MATRIX_F32] = runnel_avx2_matmul_f32,                           \
      [RUNNEL_MATRIX_F16] = runnel_avx2_matmul_f16,                           \
      [RUNNEL_MATRIX_BF16] = runnel_avx2_matmul_bf16,                         \
    },                                                                        \
    .row = runnel_scalar_row,                                                 \
    .quantise = runnel_avx2_quantise,                                         \
    .norm = runnel_avx2_norm,                                                 \
    .add = runnel_scalar_add,                                                 \
    .silu_mul = runnel_avx2_silu_mul,                                         \
    .rope = runnel_avx2_rope,                                                 \
    .scale = runnel_scalar_scale,                                             \
    .conv_tap = runnel_scalar_conv_tap,                                       \
    .kv_store = runnel_avx2_kv_store,                                         \
    .kv_load = runnel_scalar_kv_load,                                         \
    .attend = runnel_avx2_attend,                                             \
    .merge = runnel_avx2_merge,                                               \
    .finish = runnel_scalar_finish,                                           \
    .find_non_finite = runnel_avx2_find_non_finite,                           \
    .peak_integer = runnel_##level##_peak_integer,                            \
    .peak_float = runnel_avx2_peak_float,                                     \
  }

#define TILES_avx2(kind, name)                                                \
  [RUNNEL_MATRIX_##kind] = runnel_avx2_matmul_##name,

DEFINE_TABLE (avx2);

#ifdef RUNNEL_HAVE_AVX512VNNI
#define TILES_avx512vnni(kind, name)                                          \
  [RUNNEL_MATRIX_##kind] = runnel_avx512vnni_matmul_##name,
#define DECLARE(kind, name)                                                   \
  RUNNEL_DECLARE_MATMUL (runnel_avx512vnni_matmul_##name);

RUNNEL_FOR_EACH_TILE_KIND (DECLARE)
uint64_t runnel_avx512vnni_peak_integer (uint64_t rounds);

DEFINE_TABLE (avx512vnni);
#endif
