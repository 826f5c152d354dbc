/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The AVX-512 level, for processors with VNNI: products with interleaved
 * weights; the rest is the AVX2 level's.
 */
#pragma once

#ifndef RUNNEL_AVX512_MODEL
#include <immintrin.h>
#define LEVEL(name) runnel_avx512vnni_##name
#define ALWAYS_INLINE static inline __attribute__ ((always_inline))
#endif

#include <string.h>

#include "../blocks-layout.h"
#include "../kernels.h"

#define RUNNEL_DECLARE_MATMUL(name)                                           \
  void name (const RunnelMatrix *w, const RunnelRows *x, const float *bias,   \
      float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end)

#define RUNNEL_DECLARE_TILE_MATMUL(kind, name)                                \
  RUNNEL_DECLARE_MATMUL (LEVEL (matmul_##name));
RUNNEL_FOR_EACH_TILE_KIND (RUNNEL_DECLARE_TILE_MATMUL)
#undef RUNNEL_DECLARE_TILE_MATMUL

uint64_t runnel_avx512vnni_peak_integer (uint64_t rounds);
