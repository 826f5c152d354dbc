/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with float weights, and rows of a matrix as floats.
 */
#include "scalar.h"

#include <math.h>

#include "lanes.h"

static float
load_f32 (const uint8_t *p, size_t i)
{
  uint32_t bits;

  memcpy (&bits, p + 4 * i, sizeof bits);
  return runnel_float_from_bits (bits);
}

static float
load_f16 (const uint8_t *p, size_t i)
{
  return runnel_load_half (p + 2 * i);
}

static float
load_bf16 (const uint8_t *p, size_t i)
{
  return runnel_bfloat_to_float (runnel_load_u16 (p + 2 * i));
}

static inline void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    float (*load) (const uint8_t *, size_t))
{
  for (uint32_t r = tile_begin * RUNNEL_TILE_ROWS;
      r < tile_end * RUNNEL_TILE_ROWS; r++) {
    const uint8_t *row = w->data + r * w->stride;

    for (uint32_t i = 0; i < x->n; i++) {
      const float *f = x->f + i * x->f_stride;
      float lanes[16] = { 0.0f }, sum;

      if (r >= w->rows) {
        y[i * y_stride + r] = 0.0f;
        continue;
      }
      for (uint32_t c = 0; c < w->columns; c++)
        lanes[c % 16] = fmaf (load (row, c), f[c], lanes[c % 16]);
      sum = runnel_sum_lanes (lanes, 16);
      y[i * y_stride + r] = bias != NULL ? sum + bias[r] : sum;
    }
  }
}

RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_f32)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, load_f32);
}

RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_f16)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, load_f16);
}

RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_bf16)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, load_bf16);
}

/* d · (code − origin) + m of one row of a tile. */
static void
tile_row (const RunnelMatrix *w, uint32_t row, float *y)
{
  RunnelTileForm form = runnel_matrix_tile_form (w->kind);
  const uint8_t *p = w->data + row / RUNNEL_TILE_ROWS * w->stride;
  uint32_t r = row % RUNNEL_TILE_ROWS;
  float d = 0.0f, m = 0.0f;

  for (uint32_t c = 0; c < w->columns; c += RUNNEL_GROUP) {
    if (c % (uint32_t) form.group == 0) {
      d = runnel_load_half (p + 2 * r);
      m = form.offset ? runnel_load_half (p + 16 + 2 * r) : 0.0f;
      p += runnel_tile_head_bytes (form);
    }
    for (uint32_t i = 0; i < RUNNEL_GROUP; i++) {
      int code;

      if (form.bits == 4)
        code = (p[32 * (i % 16 / 4) + 4 * r + i % 4] >> (i / 16 * 4) & 15)
            - form.origin;
      else
        code = (int8_t) p[32 * (i / 4) + 4 * r + i % 4];
      y[c + i] = d * (float) code;
      if (form.offset)
        y[c + i] = y[c + i] + m;
    }
    p += runnel_tile_code_bytes (form);
  }
}

static void
k_row (const RunnelMatrix *w, uint32_t row, float *y)
{
  const uint8_t *p = w->data + row / RUNNEL_TILE_ROWS * w->stride;
  bool has_min = w->kind != RUNNEL_MATRIX_Q3_K
      && w->kind != RUNNEL_MATRIX_Q6_K;

  for (uint32_t c = 0; c < w->columns; c += RUNNEL_K_BLOCK) {
    RunnelKBlock block;

    p += runnel_scalar_unpack_k (w->kind, p, row % RUNNEL_TILE_ROWS, &block);
    for (int i = 0; i < RUNNEL_K_BLOCK; i++) {
      float value = (block.d * block.scales[i / 16]) * block.codes[i];

      if (has_min)
        value = value - block.dmin * block.mins[i / 16];
      y[c + i] = value;
    }
  }
}

void
runnel_scalar_row (const RunnelMatrix *w, uint32_t row, float *y)
{
  const uint8_t *p = w->data + row * w->stride;

  switch (w->kind) {
    case RUNNEL_MATRIX_F32:
      memcpy (y, p, (size_t) w->columns * sizeof (float));
      break;
    case RUNNEL_MATRIX_F16:
      for (uint32_t c = 0; c < w->columns; c++)
        y[c] = load_f16 (p, c);
      break;
    case RUNNEL_MATRIX_BF16:
      for (uint32_t c = 0; c < w->columns; c++)
        y[c] = load_bf16 (p, c);
      break;
    case RUNNEL_MATRIX_Q2_K:
    case RUNNEL_MATRIX_Q3_K:
    case RUNNEL_MATRIX_Q4_K:
    case RUNNEL_MATRIX_Q5_K:
    case RUNNEL_MATRIX_Q6_K:
      k_row (w, row, y);
      break;
    default:
      tile_row (w, row, y);
      break;
  }
}
