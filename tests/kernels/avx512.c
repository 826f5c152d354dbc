/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The AVX-512 products, compiled with the model of their intrinsics.
 */
#define RUNNEL_AVX512_MODEL
#define LEVEL(name) model_##name
/* Lanes in plain C are many: inlined and unrolled they take minutes. */
#define ALWAYS_INLINE static __attribute__ ((noinline))
#pragma GCC optimize ("O1")

#include "avx512-model.h"
#include "testing.h"

#include "backends/cpu/avx512/matmul-tiles.c"

void
test_avx512_model (void)
{
  RunnelKernels kernels = runnel_kernels_scalar;

  kernels.name = "model of avx512vnni";
#define USE(kind, name)                                                       \
  kernels.matmul[RUNNEL_MATRIX_##kind] = model_matmul_##name;
  RUNNEL_FOR_EACH_TILE_KIND (USE)
  test_products (&kernels);
}
