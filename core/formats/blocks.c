/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "blocks.h"

static uint16_t
load_u16 (const uint8_t *p)
{
  return (uint16_t) (p[0] | p[1] << 8);
}

static uint32_t
load_u32 (const uint8_t *p)
{
  return load_u16 (p) | (uint32_t) load_u16 (p + 2) << 16;
}

static float
load_half (const uint8_t *p)
{
  return runnel_half_to_float (load_u16 (p));
}

static void
dequantize_f32 (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (size_t i = 0; i < n; i++) {
    uint32_t bits = load_u32 (p + 4 * i);

    memcpy (&out[i], &bits, sizeof bits);
  }
}

static void
dequantize_f16 (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (size_t i = 0; i < n; i++)
    out[i] = load_half (p + 2 * i);
}

static void
dequantize_bf16 (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (size_t i = 0; i < n; i++)
    out[i] = runnel_bfloat_to_float (load_u16 (p + 2 * i));
}

static void
dequantize_q4_0 (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (; n > 0; n -= 32, p += 18, out += 32) {
    float d = load_half (p);

    for (int i = 0; i < 16; i++) {
      out[i] = (float) ((p[2 + i] & 15) - 8) * d;
      out[i + 16] = (float) ((p[2 + i] >> 4) - 8) * d;
    }
  }
}

static void
dequantize_q4_1 (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (; n > 0; n -= 32, p += 20, out += 32) {
    float d = load_half (p), m = load_half (p + 2);

    for (int i = 0; i < 16; i++) {
      out[i] = (float) (p[4 + i] & 15) * d + m;
      out[i + 16] = (float) (p[4 + i] >> 4) * d + m;
    }
  }
}

/* Five bits: four from a half of @low, the fifth is bit @i of @high. */
static int
join5 (int low, uint32_t high, int i)
{
  return low | (int) (high >> i & 1) << 4;
}

static void
dequantize_q5_0 (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (; n > 0; n -= 32, p += 22, out += 32) {
    float d = load_half (p);
    uint32_t qh = load_u32 (p + 2);

    for (int i = 0; i < 16; i++) {
      out[i] = (float) (join5 (p[6 + i] & 15, qh, i) - 16) * d;
      out[i + 16] = (float) (join5 (p[6 + i] >> 4, qh, i + 16) - 16) * d;
    }
  }
}

static void
dequantize_q5_1 (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (; n > 0; n -= 32, p += 24, out += 32) {
    float d = load_half (p), m = load_half (p + 2);
    uint32_t qh = load_u32 (p + 4);

    for (int i = 0; i < 16; i++) {
      out[i] = (float) join5 (p[8 + i] & 15, qh, i) * d + m;
      out[i + 16] = (float) join5 (p[8 + i] >> 4, qh, i + 16) * d + m;
    }
  }
}

static void
dequantize_q8_0 (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (; n > 0; n -= 32, p += 34, out += 32) {
    float d = load_half (p);

    for (int i = 0; i < 32; i++)
      out[i] = (float) (int8_t) p[2 + i] * d;
  }
}

static void
dequantize_q2_k (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (; n > 0; n -= 256, p += 84, out += 256) {
    float d = load_half (p + 80), dmin = load_half (p + 82);

    for (int g = 0; g < 16; g++) {
      const uint8_t *qs = p + 16 + 32 * (g / 8) + 16 * (g % 2);
      float scale = d * (float) (p[g] & 15), min = dmin * (float) (p[g] >> 4);
      int shift = g / 2 % 4 * 2;

      for (int l = 0; l < 16; l++)
        out[16 * g + l] = scale * (float) (qs[l] >> shift & 3) - min;
    }
  }
}

static void
dequantize_q3_k (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (; n > 0; n -= 256, p += 110, out += 256) {
    const uint8_t *scales = p + 96;
    float d = load_half (p + 108);

    for (int g = 0; g < 16; g++) {
      const uint8_t *hmask = p + 16 * (g % 2);
      const uint8_t *qs = p + 32 + 32 * (g / 8) + 16 * (g % 2);
      int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
      int high = scales[8 + g % 4] >> g / 4 * 2 & 3;
      float scale = d * (float) ((low | high << 4) - 32);
      int shift = g / 2 % 4 * 2;

      for (int l = 0; l < 16; l++)
        out[16 * g + l] = scale * (float) ((qs[l] >> shift & 3) +
            (hmask[l] >> g / 2 & 1) * 4 - 4);
    }
  }
}

/* Scale and min of group @g as Q4_K and Q5_K pack them. */
static void
unpack_scale_min (const uint8_t *scales, int g, int *scale, int *min)
{
  if (g < 4) {
    *scale = scales[g] & 63;
    *min = scales[g + 4] & 63;
  } else {
    *scale = (scales[g + 4] & 15) | scales[g - 4] >> 6 << 4;
    *min = scales[g + 4] >> 4 | scales[g] >> 6 << 4;
  }
}

static void
dequantize_q4_k (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (; n > 0; n -= 256, p += 144, out += 256) {
    float d = load_half (p), dmin = load_half (p + 2);

    for (int g = 0; g < 8; g++) {
      const uint8_t *qs = p + 16 + g / 2 * 32;
      int scale, min, shift = g % 2 * 4;
      float s, m;

      unpack_scale_min (p + 4, g, &scale, &min);
      s = d * (float) scale;
      m = dmin * (float) min;
      for (int l = 0; l < 32; l++)
        out[32 * g + l] = s * (float) (qs[l] >> shift & 15) - m;
    }
  }
}

static void
dequantize_q5_k (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (; n > 0; n -= 256, p += 176, out += 256) {
    float d = load_half (p), dmin = load_half (p + 2);

    for (int g = 0; g < 8; g++) {
      const uint8_t *qs = p + 48 + g / 2 * 32;
      int scale, min, shift = g % 2 * 4;
      float s, m;

      unpack_scale_min (p + 4, g, &scale, &min);
      s = d * (float) scale;
      m = dmin * (float) min;
      for (int l = 0; l < 32; l++)
        out[32 * g + l] =
            s * (float) join5 (qs[l] >> shift & 15, p[16 + l], g) - m;
    }
  }
}

static void
dequantize_q6_k (float *out, const void *blocks, size_t n)
{
  const uint8_t *p = blocks;

  for (; n > 0; n -= 256, p += 210, out += 256) {
    float d = load_half (p + 208);

    for (int g = 0; g < 16; g++) {
      int half = g / 8, k = g / 2 % 4, first = 16 * (g % 2);
      const uint8_t *ql = p + 64 * half + 32 * (k % 2) + first;
      const uint8_t *qh = p + 128 + 32 * half + first;
      float scale = d * (float) (int8_t) p[192 + g];

      for (int l = 0; l < 16; l++) {
        int q = (ql[l] >> k / 2 * 4 & 15) | (qh[l] >> 2 * k & 3) << 4;

        out[16 * g + l] = scale * (float) (q - 32);
      }
    }
  }
}

RunnelDequantize
runnel_blocks_dequantize (unsigned type)
{
  switch (type) {
    case RUNNEL_TENSOR_F32: return dequantize_f32;
    case RUNNEL_TENSOR_F16: return dequantize_f16;
    case RUNNEL_TENSOR_Q4_0: return dequantize_q4_0;
    case RUNNEL_TENSOR_Q4_1: return dequantize_q4_1;
    case RUNNEL_TENSOR_Q5_0: return dequantize_q5_0;
    case RUNNEL_TENSOR_Q5_1: return dequantize_q5_1;
    case RUNNEL_TENSOR_Q8_0: return dequantize_q8_0;
    case RUNNEL_TENSOR_Q2_K: return dequantize_q2_k;
    case RUNNEL_TENSOR_Q3_K: return dequantize_q3_k;
    case RUNNEL_TENSOR_Q4_K: return dequantize_q4_k;
    case RUNNEL_TENSOR_Q5_K: return dequantize_q5_k;
    case RUNNEL_TENSOR_Q6_K: return dequantize_q6_k;
    case RUNNEL_TENSOR_BF16: return dequantize_bf16;
    default: return NULL;
  }
}

bool
runnel_blocks_tile_form (unsigned type, RunnelTileForm *ret_form)
{
  unsigned flavour = type >> 20 & 15;

  switch (type) {
    case RUNNEL_TENSOR_INT4_32:
    case RUNNEL_TENSOR_INT4_64:
    case RUNNEL_TENSOR_INT4_32_OFFSET:
    case RUNNEL_TENSOR_INT4_64_OFFSET:
    case RUNNEL_TENSOR_INT4_32_CENTRED:
    case RUNNEL_TENSOR_INT4_64_CENTRED:
    case RUNNEL_TENSOR_INT8_32:
    case RUNNEL_TENSOR_INT8_64:
    case RUNNEL_TENSOR_INT8_32_OFFSET:
    case RUNNEL_TENSOR_INT8_64_OFFSET:
      ret_form->bits = type >> 16 & 15;
      ret_form->group = type & 255;
      ret_form->origin = ret_form->bits == 4 && flavour != 1 ? 8 : 0;
      ret_form->offset = flavour != 0;
      return true;
    default:
      return false;
  }
}

/* Code of column @c of 32 in row @r of a tile. */
static int
tile_code (const uint8_t *codes, int bits, int r, int c)
{
  if (bits == 8)
    return (int8_t) codes[32 * (c / 4) + 4 * r + c % 4];
  return codes[32 * (c % 16 / 4) + 4 * r + c % 4] >> c / 16 * 4 & 15;
}

void
runnel_tiles_dequantize (float *out, const void *tiles, RunnelTileForm form,
    uint64_t columns, uint64_t row)
{
  const uint8_t *p = (const uint8_t *) tiles
      + row / RUNNEL_TILE_ROWS * runnel_tile_bytes (form, columns);
  int r = row % RUNNEL_TILE_ROWS;
  float d = 0.0f, m = 0.0f;

  for (uint64_t c = 0; c < columns; c += RUNNEL_TILE_COLUMNS) {
    if (c % (uint64_t) form.group == 0) {
      d = load_half (p + 2 * r);
      m = form.offset ? load_half (p + 16 + 2 * r) : 0.0f;
      p += runnel_tile_head_bytes (form);
    }
    for (int i = 0; i < RUNNEL_TILE_COLUMNS; i++) {
      int code = tile_code (p, form.bits, r, i) - form.origin;

      out[c + i] = d * (float) code;
      if (form.offset)
        out[c + i] = out[c + i] + m;
    }
    p += runnel_tile_code_bytes (form);
  }
}
