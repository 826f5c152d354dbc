/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with ggml's K-quants, whose rows stay as the file has them.
 */
#include "scalar.h"

static void
unpack_q2_k (const RunnelBlockQ2K *in, RunnelKBlock *out)
{
  out->d = runnel_load_half (in->d);
  out->dmin = runnel_load_half (in->dmin);
  for (int j = 0; j < 16; j++) {
    out->scales[j] = in->scales[j] & 15;
    out->mins[j] = in->scales[j] >> 4;
  }
  for (int g = 0; g < 8; g++) {
    for (int l = 0; l < 32; l++)
      out->codes[32 * g + l] = in->codes[g / 4 * 32 + l] >> (g % 4 * 2) & 3;
  }
}

static void
unpack_q3_k (const RunnelBlockQ3K *in, RunnelKBlock *out)
{
  out->d = runnel_load_half (in->d);
  out->dmin = 0.0f;
  runnel_unpack_scales_k3 (in->scales, out->scales);
  for (int g = 0; g < 8; g++) {
    for (int l = 0; l < 32; l++) {
      int low = in->codes[g / 4 * 32 + l] >> (g % 4 * 2) & 3;
      int high = in->high[l] >> g & 1;

      out->codes[32 * g + l] = (int8_t) ((low | high << 2) - 4);
    }
  }
}

static void
double_scales (const uint8_t *packed, RunnelKBlock *out)
{
  uint8_t scales[8], mins[8];

  runnel_unpack_scales_k4 (packed, scales, mins);
  for (int j = 0; j < 16; j++) {
    out->scales[j] = (int8_t) scales[j / 2];
    out->mins[j] = mins[j / 2];
  }
}

static void
unpack_q4_k (const RunnelBlockQ4K *in, RunnelKBlock *out)
{
  out->d = runnel_load_half (in->d);
  out->dmin = runnel_load_half (in->dmin);
  double_scales (in->scales, out);
  for (int g = 0; g < 8; g++) {
    for (int l = 0; l < 32; l++)
      out->codes[32 * g + l] = in->codes[g / 2 * 32 + l] >> (g % 2 * 4) & 15;
  }
}

static void
unpack_q5_k (const RunnelBlockQ5K *in, RunnelKBlock *out)
{
  out->d = runnel_load_half (in->d);
  out->dmin = runnel_load_half (in->dmin);
  double_scales (in->scales, out);
  for (int g = 0; g < 8; g++) {
    for (int l = 0; l < 32; l++) {
      int low = in->codes[g / 2 * 32 + l] >> (g % 2 * 4) & 15;
      int high = in->high[l] >> g & 1;

      out->codes[32 * g + l] = (int8_t) (low | high << 4);
    }
  }
}

static void
unpack_q6_k (const RunnelBlockQ6K *in, RunnelKBlock *out)
{
  out->d = runnel_load_half (in->d);
  out->dmin = 0.0f;
  for (int j = 0; j < 16; j++)
    out->scales[j] = (int8_t) in->scales[j];
  for (int g = 0; g < 8; g++) {
    int h = g / 4, j = g % 4;

    for (int l = 0; l < 32; l++) {
      int low = in->low[64 * h + j % 2 * 32 + l] >> (j / 2 * 4) & 15;
      int high = in->high[32 * h + l] >> (2 * j) & 3;

      out->codes[32 * g + l] = (int8_t) ((low | high << 4) - 32);
    }
  }
}

/* Unpacks row r's block out of eight and returns the size of all. */
size_t
runnel_scalar_unpack_k (RunnelMatrixKind kind, const uint8_t *tile,
    uint32_t r, RunnelKBlock *out)
{
  size_t bytes = runnel_k_block_bytes (kind);
  uint8_t block[RUNNEL_K_MAX_BYTES];

  runnel_gather_k_block (tile, r, bytes, block);
  switch (kind) {
    case RUNNEL_MATRIX_Q2_K:
      unpack_q2_k ((const RunnelBlockQ2K *) block, out);
      break;
    case RUNNEL_MATRIX_Q3_K:
      unpack_q3_k ((const RunnelBlockQ3K *) block, out);
      break;
    case RUNNEL_MATRIX_Q4_K:
      unpack_q4_k ((const RunnelBlockQ4K *) block, out);
      break;
    case RUNNEL_MATRIX_Q5_K:
      unpack_q5_k ((const RunnelBlockQ5K *) block, out);
      break;
    default:
      unpack_q6_k ((const RunnelBlockQ6K *) block, out);
      break;
  }
  return RUNNEL_TILE_ROWS * bytes;
}

static float
add_group (const RunnelKBlock *block, int group, bool has_min, const int8_t *q,
    float scale, float acc)
{
  int32_t isum = 0, msum = 0;

  for (int j = 2 * group; j < 2 * group + 2; j++) {
    int32_t product = 0, sum = 0;

    for (int c = 0; c < 16; c++) {
      product += block->codes[16 * j + c] * q[16 * (j % 2) + c];
      sum += q[16 * (j % 2) + c];
    }
    isum += block->scales[j] * product;
    msum += block->mins[j] * sum;
  }
  acc = acc + (block->d * scale) * (float) isum;
  if (has_min)
    acc = acc - (block->dmin * scale) * (float) msum;
  return acc;
}

static void
multiply_row (const RunnelMatrix *w, uint32_t row, const RunnelRows *x,
    bool has_min, float *y, size_t y_stride)
{
  const uint8_t *p = w->data + row / RUNNEL_TILE_ROWS * w->stride;
  uint32_t groups = runnel_n_groups (w->columns);

  for (uint32_t i = 0; i < x->n; i++)
    y[i * y_stride] = 0.0f;
  for (uint32_t g = 0; g < groups; g += 8) {
    RunnelKBlock block;

    p += runnel_scalar_unpack_k (w->kind, p, row % RUNNEL_TILE_ROWS, &block);
    for (uint32_t i = 0; i < x->n; i++) {
      size_t at = (size_t) i * groups + g;
      float acc = y[i * y_stride];

      for (int j = 0; j < 8; j++)
        acc = add_group (&block, j, has_min, x->q + (at + j) * RUNNEL_GROUP,
            x->scale[at + j], acc);
      y[i * y_stride] = acc;
    }
  }
}

static void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    bool has_min)
{
  for (uint32_t r = tile_begin * RUNNEL_TILE_ROWS;
      r < tile_end * RUNNEL_TILE_ROWS; r++) {
    if (r < w->rows)
      multiply_row (w, r, x, has_min, y + r, y_stride);
    for (uint32_t i = 0; i < x->n; i++) {
      if (r >= w->rows)
        y[i * y_stride + r] = 0.0f;
      else if (bias != NULL)
        y[i * y_stride + r] = y[i * y_stride + r] + bias[r];
    }
  }
}

RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_q2_k)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, true);
}

RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_q3_k)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, false);
}

RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_q4_k)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, true);
}

RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_q5_k)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, true);
}

RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_q6_k)
{
  matmul (w, x, bias, y, y_stride, tile_begin, tile_end, false);
}
