/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with float weights, for any level with eight float lanes (its own
 * header comes first): the sixteen lanes of an output are two vectors, and
 * several outputs at a time hide the latency of the fma.
 */
#pragma once

#include <math.h>

#include "../half.h"
#include "../kernels.h"

typedef enum { WEIGHTS_F32, WEIGHTS_F16, WEIGHTS_BF16 } Format;

ALWAYS_INLINE size_t
element_size (Format format)
{
  return format == WEIGHTS_F32 ? 4 : 2;
}

ALWAYS_INLINE Lanes
load_8 (const uint8_t *p, Format format)
{
  if (format == WEIGHTS_F32)
    return lanes_load ((const float *) p);
  if (format == WEIGHTS_F16)
    return lanes_load_halves (p);
  return lanes_load_bfloat16 (p);
}

ALWAYS_INLINE float
load_1 (const uint8_t *p, Format format)
{
  float f;

  if (format == WEIGHTS_F16)
    return runnel_load_half (p);
  if (format == WEIGHTS_BF16)
    return runnel_bfloat_to_float (runnel_load_u16 (p));
  memcpy (&f, p, sizeof f);
  return f;
}

/* The columns after the last whole sixteen, lane by lane. */
ALWAYS_INLINE void
add_tail (const uint8_t *w, const float *x, uint32_t n, Format format,
    Lanes *acc)
{
  float lanes[16];

  lanes_store (lanes, acc[0]);
  lanes_store (lanes + 8, acc[1]);
  for (uint32_t c = 0; c < n; c++)
    lanes[c] = fmaf (load_1 (w + c * element_size (format), format), x[c],
        lanes[c]);
  acc[0] = lanes_load (lanes);
  acc[1] = lanes_load (lanes + 8);
}

/* n_rows outputs from row r on for n_x rows of x from row i on. */
ALWAYS_INLINE void
multiply (const RunnelMatrix *w, const RunnelRows *x, uint32_t r, int n_rows,
    uint32_t i, int n_x, const float *bias, float *y, size_t y_stride,
    Format format)
{
  const uint8_t *row = w->data + r * w->stride;
  const float *f = x->f + i * x->f_stride;
  uint32_t whole = w->columns / 16 * 16;
  Lanes acc[4][3][2];

#pragma GCC unroll 4
  for (int a = 0; a < n_rows; a++) {
#pragma GCC unroll 3
    for (int b = 0; b < n_x; b++)
      acc[a][b][0] = acc[a][b][1] = lanes_set (0.0f);
  }
  for (uint32_t c = 0; c < whole; c += 16) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      uint32_t at = c + 8 * half;
      Lanes xs[3];

#pragma GCC unroll 3
      for (int b = 0; b < n_x; b++)
        xs[b] = lanes_load (f + b * x->f_stride + at);
#pragma GCC unroll 4
      for (int a = 0; a < n_rows; a++) {
        Lanes weights = load_8 (row + a * w->stride
            + at * element_size (format), format);

#pragma GCC unroll 3
        for (int b = 0; b < n_x; b++)
          acc[a][b][half] = lanes_fma (weights, xs[b], acc[a][b][half]);
      }
    }
  }
#pragma GCC unroll 4
  for (int a = 0; a < n_rows; a++) {
#pragma GCC unroll 3
    for (int b = 0; b < n_x; b++) {
      float *out = y + (i + b) * y_stride + r + a;

      if (whole < w->columns)
        add_tail (row + a * w->stride + whole * element_size (format),
            f + b * x->f_stride + whole, w->columns - whole, format,
            acc[a][b]);
      *out = lanes_sum (lanes_add (acc[a][b][0], acc[a][b][1]));
      if (bias != NULL)
        *out = *out + bias[r + a];
    }
  }
}

ALWAYS_INLINE void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    Format format)
{
  uint32_t begin = tile_begin * RUNNEL_TILE_ROWS, r, i;
  uint32_t padded_end = tile_end * RUNNEL_TILE_ROWS;
  uint32_t end = padded_end < w->rows ? padded_end : w->rows;

  /* Four rows at a time, so that x is read from the nearest cache; of x,
   * three rows against two, and a single one against four. */
  for (r = begin; r + 4 <= end; r += 4) {
    for (i = 0; i + 3 <= x->n; i += 3) {
      multiply (w, x, r, 2, i, 3, bias, y, y_stride, format);
      multiply (w, x, r + 2, 2, i, 3, bias, y, y_stride, format);
    }
    if (x->n - i == 2) {
      multiply (w, x, r, 2, i, 2, bias, y, y_stride, format);
      multiply (w, x, r + 2, 2, i, 2, bias, y, y_stride, format);
    } else if (x->n - i == 1) {
      multiply (w, x, r, 4, i, 1, bias, y, y_stride, format);
    }
  }
  for (; r < end; r++) {
    for (i = 0; i < x->n; i++)
      multiply (w, x, r, 1, i, 1, bias, y, y_stride, format);
  }
  for (; r < padded_end; r++) {
    for (i = 0; i < x->n; i++)
      y[i * y_stride + r] = 0.0f;
  }
}

RUNNEL_DECLARE_MATMUL (LEVEL (matmul_f32))
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, WEIGHTS_F32);
}

RUNNEL_DECLARE_MATMUL (LEVEL (matmul_f16))
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, WEIGHTS_F16);
}

RUNNEL_DECLARE_MATMUL (LEVEL (matmul_bf16))
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, WEIGHTS_BF16);
}
