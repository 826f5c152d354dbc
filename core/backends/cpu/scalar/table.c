/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "scalar.h"

const RunnelKernels runnel_kernels_scalar = {
  .name = "scalar",
  .matmul = {
#define TILES(kind, name)                                                     \
    [RUNNEL_MATRIX_##kind] = runnel_scalar_matmul_##name,
    RUNNEL_FOR_EACH_TILE_KIND (TILES)
    [RUNNEL_MATRIX_Q2_K] = runnel_scalar_matmul_q2_k,
    [RUNNEL_MATRIX_Q3_K] = runnel_scalar_matmul_q3_k,
    [RUNNEL_MATRIX_Q4_K] = runnel_scalar_matmul_q4_k,
    [RUNNEL_MATRIX_Q5_K] = runnel_scalar_matmul_q5_k,
    [RUNNEL_MATRIX_Q6_K] = runnel_scalar_matmul_q6_k,
    [RUNNEL_MATRIX_F32] = runnel_scalar_matmul_f32,
    [RUNNEL_MATRIX_F16] = runnel_scalar_matmul_f16,
    [RUNNEL_MATRIX_BF16] = runnel_scalar_matmul_bf16,
  },
  .row = runnel_scalar_row,
  .quantise = runnel_scalar_quantise,
  .norm = runnel_scalar_norm,
  .add = runnel_scalar_add,
  .silu_mul = runnel_scalar_silu_mul,
  .rope = runnel_scalar_rope,
  .scale = runnel_scalar_scale,
  .conv_tap = runnel_scalar_conv_tap,
  .kv_store = runnel_scalar_kv_store,
  .kv_load = runnel_scalar_kv_load,
  .attend = runnel_scalar_attend,
  .merge = runnel_scalar_merge,
  .finish = runnel_scalar_finish,
  .find_non_finite = runnel_scalar_find_non_finite,
  .peak_integer = runnel_scalar_peak_integer,
  .peak_float = runnel_scalar_peak_float,
};
