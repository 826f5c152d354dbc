/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * ggml's blocks and the tiled types from their descriptions, one block at a
 * time and in double precision: what the kernels' weights must mean.
 */
#include "testing.h"

enum { F32 = 0, F16 = 1, Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8,
  Q2_K = 10, Q3_K = 11, Q4_K = 12, Q5_K = 13, Q6_K = 14, BF16 = 30 };

const TensorType tensor_types[] = {
  {F32, "F32", 1, 4},
  {F16, "F16", 1, 2},
  {BF16, "BF16", 1, 2},
  {Q4_0, "Q4_0", 32, 18},
  {Q4_1, "Q4_1", 32, 20},
  {Q5_0, "Q5_0", 32, 22},
  {Q5_1, "Q5_1", 32, 24},
  {Q8_0, "Q8_0", 32, 34},
  {Q2_K, "Q2_K", 256, 84},
  {Q3_K, "Q3_K", 256, 110},
  {Q4_K, "Q4_K", 256, 144},
  {Q5_K, "Q5_K", 256, 176},
  {Q6_K, "Q6_K", 256, 210},
  {0x52040020, "INT4_32", 32, 0, 128, 8, false},
  {0x52140020, "INT4_32_OFFSET", 32, 0, 128, 0, true},
  {0x52240020, "INT4_32_CENTRED", 32, 0, 128, 8, true},
  {0x52040040, "INT4_64", 64, 0, 128, 8, false},
  {0x52140040, "INT4_64_OFFSET", 64, 0, 128, 0, true},
  {0x52240040, "INT4_64_CENTRED", 64, 0, 128, 8, true},
  {0x52080020, "INT8_32", 32, 0, 256, 0, false},
  {0x52180020, "INT8_32_OFFSET", 32, 0, 256, 0, true},
  {0x52080040, "INT8_64", 64, 0, 256, 0, false},
  {0x52180040, "INT8_64_OFFSET", 64, 0, 256, 0, true},
};

const size_t n_tensor_types = sizeof tensor_types / sizeof tensor_types[0];

static double
half_at (const uint8_t *p)
{
  return runnel_load_half (p);
}

static void
q4 (const uint8_t *p, bool offset, double *y)
{
  double d = half_at (p), m = offset ? half_at (p + 2) : -8.0 * d;
  const uint8_t *codes = p + (offset ? 4 : 2);

  for (int j = 0; j < 16; j++) {
    y[j] = d * (codes[j] % 16) + m;
    y[j + 16] = d * (codes[j] / 16) + m;
  }
}

static void
q5 (const uint8_t *p, bool offset, double *y)
{
  double d = half_at (p), m = offset ? half_at (p + 2) : -16.0 * d;
  const uint8_t *high = p + (offset ? 4 : 2), *codes = high + 4;

  for (int j = 0; j < 32; j++) {
    int code = j < 16 ? codes[j] % 16 : codes[j - 16] / 16;

    if (high[j / 8] & 1 << j % 8)
      code += 16;
    y[j] = d * code + m;
  }
}

static void
q8 (const uint8_t *p, double *y)
{
  for (int j = 0; j < 32; j++)
    y[j] = half_at (p) * (int8_t) p[2 + j];
}

static void
q2_k (const uint8_t *p, double *y)
{
  const uint8_t *scales = p, *codes = p + 16;
  double d = half_at (p + 80), dmin = half_at (p + 82);

  for (int half = 0; half < 2; half++) {
    for (int shift = 0; shift < 8; shift += 2) {
      for (int l = 0; l < 32; l++) {
        uint8_t scale = scales[l / 16];

        *y++ = d * (scale % 16) * (codes[l] >> shift & 3)
            - dmin * (scale / 16);
      }
      scales += 2;
    }
    codes += 32;
  }
}

static void
q3_k (const uint8_t *p, double *y)
{
  const uint8_t *high = p, *codes = p + 32, *packed = p + 96;
  double d = half_at (p + 108);
  int bit = 1, scale = 0;

  for (int half = 0; half < 2; half++) {
    for (int shift = 0; shift < 8; shift += 2) {
      for (int l = 0; l < 32; l++) {
        int s = scale + l / 16;
        int six = (s < 8 ? packed[s] % 16 : packed[s - 8] / 16)
            + 16 * (packed[8 + s % 4] >> (s / 4 * 2) & 3);

        *y++ = d * (six - 32)
            * ((codes[l] >> shift & 3) - (high[l] & bit ? 0 : 4));
      }
      scale += 2;
      bit *= 2;
    }
    codes += 32;
  }
}

static void
scale_k4 (const uint8_t *packed, int j, int *scale, int *min)
{
  if (j < 4) {
    *scale = packed[j] % 64;
    *min = packed[j + 4] % 64;
  } else {
    *scale = packed[j + 4] % 16 + packed[j - 4] / 64 * 16;
    *min = packed[j + 4] / 16 + packed[j] / 64 * 16;
  }
}

static void
q45_k (const uint8_t *p, bool five, double *y)
{
  double d = half_at (p), dmin = half_at (p + 2);
  const uint8_t *high = p + 16, *codes = p + (five ? 48 : 16);

  for (int g = 0; g < 8; g++) {
    int scale, min;

    scale_k4 (p + 4, g, &scale, &min);
    for (int l = 0; l < 32; l++) {
      uint8_t byte = codes[32 * (g / 2) + l];
      int code = g % 2 ? byte / 16 : byte % 16;

      if (five && high[l] & 1 << g)
        code += 16;
      *y++ = d * scale * code - dmin * min;
    }
  }
}

static void
q6_k (const uint8_t *p, double *y)
{
  const uint8_t *low = p, *high = p + 128;
  const int8_t *scales = (const int8_t *) p + 192;
  double d = half_at (p + 208);

  for (int half = 0; half < 2; half++) {
    for (int l = 0; l < 32; l++) {
      int is = l / 16;

      y[l] = d * scales[is]
          * ((low[l] % 16 | (high[l] >> 0 & 3) << 4) - 32);
      y[l + 32] = d * scales[is + 2]
          * ((low[l + 32] % 16 | (high[l] >> 2 & 3) << 4) - 32);
      y[l + 64] = d * scales[is + 4]
          * ((low[l] / 16 | (high[l] >> 4 & 3) << 4) - 32);
      y[l + 96] = d * scales[is + 6]
          * ((low[l + 32] / 16 | (high[l] >> 6 & 3) << 4) - 32);
    }
    y += 128;
    low += 64;
    high += 32;
    scales += 8;
  }
}

static void
dequantise_block (uint32_t type, const uint8_t *p, double *y)
{
  float f;

  switch (type) {
    case F32:
      memcpy (&f, p, 4);
      *y = f;
      break;
    case F16:
      *y = half_at (p);
      break;
    case BF16:
      *y = runnel_bfloat_to_float (runnel_load_u16 (p));
      break;
    case Q4_0:
    case Q4_1:
      q4 (p, type == Q4_1, y);
      break;
    case Q5_0:
    case Q5_1:
      q5 (p, type == Q5_1, y);
      break;
    case Q8_0:
      q8 (p, y);
      break;
    case Q2_K:
      q2_k (p, y);
      break;
    case Q3_K:
      q3_k (p, y);
      break;
    case Q4_K:
    case Q5_K:
      q45_k (p, type == Q5_K, y);
      break;
    default:
      q6_k (p, y);
      break;
  }
}

/* Bytes of a tile: whole groups, and half of one where columns end in it. */
static size_t
tile_bytes (const TensorType *type, uint32_t columns)
{
  size_t head = type->offset ? 32 : 16;
  size_t groups = columns / type->block_elements;
  size_t bytes = groups * (head + type->block_elements / 32
      * type->half_bytes);

  return columns % type->block_elements == 0 ? bytes
      : bytes + head + type->half_bytes;
}

size_t
tensor_bytes (const TensorType *type, uint32_t rows, uint32_t columns)
{
  if (type->half_bytes > 0)
    return (rows + 7) / 8 * tile_bytes (type, columns);
  return (size_t) rows * (columns / type->block_elements) * type->block_bytes;
}

/* Column c of row r of the tile at p. */
static double
tile_weight (const TensorType *type, const uint8_t *p, uint32_t r, uint32_t c)
{
  size_t head = type->offset ? 32 : 16, halves = type->block_elements / 32;
  const uint8_t *group = p + c / type->block_elements * (head + halves
      * type->half_bytes);
  const uint8_t *codes = group + head + c % type->block_elements / 32
      * type->half_bytes;
  double d = half_at (group + 2 * r);
  double m = type->offset ? half_at (group + 16 + 2 * r) : 0.0;
  int code;

  c %= 32;
  if (type->half_bytes == 256)
    code = (int8_t) codes[32 * (c / 4) + 4 * r + c % 4];
  else if (c < 16)
    code = codes[32 * (c / 4) + 4 * r + c % 4] % 16;
  else
    code = codes[32 * (c / 4 - 4) + 4 * r + c % 4] / 16;
  return d * (code - type->origin) + m;
}

void
dequantise_row (const TensorType *type, const uint8_t *file, uint32_t row,
    uint32_t columns, double *y)
{
  const uint8_t *p = file + row * tensor_bytes (type, 1, columns);

  if (type->half_bytes > 0) {
    for (uint32_t c = 0; c < columns; c++)
      y[c] = tile_weight (type, file + row / 8 * tile_bytes (type, columns),
          row % 8, c);
    return;
  }
  for (uint32_t c = 0; c < columns; c += type->block_elements) {
    dequantise_block (type->type, p, y + c);
    p += type->block_bytes;
  }
}

static void
put_half (uint8_t *p, Codes codes)
{
  uint16_t half = runnel_float_to_half (random_normal () * 0.02f);

  if (codes == CODES_ZERO_SCALE)
    half &= 0x8000;
  if (codes == CODES_TINY_SCALE)
    half = (uint16_t) (random_bits () & 0x83ff);
  if (codes == CODES_NON_FINITE_SCALE && random_below (4) == 0)
    half = random_below (2) ? 0x7c00 : 0xfe00;
  memcpy (p, &half, sizeof half);
}

static void
fill_float_row (const TensorType *type, uint8_t *row, uint32_t columns,
    Codes codes)
{
  float tiny = codes == CODES_TINY_SCALE ? 0x1p-130f : 0.05f;

  for (uint32_t c = 0; c < columns; c++) {
    float f = random_normal () * tiny;
    uint32_t bits;

    if (codes == CODES_ZERO_SCALE)
      f *= 0.0f;
    if (codes == CODES_NON_FINITE_SCALE && random_below (50) == 0)
      f = random_below (2) ? INFINITY : NAN;
    bits = runnel_float_bits (f);
    if (type->type == F16)
      put_half (row + 2 * c, codes);
    else if (type->type == BF16)
      memcpy (row + 2 * c, (uint8_t *) &bits + 2, 2);
    else
      memcpy (row + 4 * c, &bits, 4);
  }
}

/* A byte of codes; all bytes of signed codes are in use. */
static uint8_t
random_code (bool is_signed, Codes codes)
{
  if (codes == CODES_LOW)
    return is_signed ? 0x80 : 0;
  if (codes == CODES_HIGH)
    return is_signed ? 0x7f : 0xff;
  return (uint8_t) random_bits ();
}

static void
fill_row (const TensorType *type, uint8_t *row, uint32_t columns, Codes codes)
{
  uint32_t blocks = columns / type->block_elements;

  if (type->block_elements == 1) {
    fill_float_row (type, row, columns, codes);
    return;
  }
  for (uint32_t b = 0; b < blocks; b++) {
    uint8_t *p = row + b * type->block_bytes;

    for (uint32_t i = 0; i < type->block_bytes; i++)
      p[i] = random_code (type->type == Q8_0, codes);
    switch (type->type) {
      case Q2_K:
        put_half (p + 80, codes);
        put_half (p + 82, codes);
        break;
      case Q3_K:
        put_half (p + 108, codes);
        break;
      case Q6_K:
        put_half (p + 208, codes);
        break;
      case Q4_1:
      case Q5_1:
      case Q4_K:
      case Q5_K:
        put_half (p + 2, codes);
        put_half (p, codes);
        break;
      default:
        put_half (p, codes);
        break;
    }
  }
}

/* Padding rows hold what they happen to hold: no kernel may look at them. */
static void
fill_tile (const TensorType *type, uint8_t *p, uint32_t columns, Codes codes)
{
  uint32_t n_halves = type->offset ? 16 : 8;

  for (uint32_t c = 0; c < columns; c += 32, p += type->half_bytes) {
    if (c % type->block_elements == 0) {
      for (uint32_t h = 0; h < n_halves; h++, p += 2)
        put_half (p, codes);
    }
    for (uint32_t i = 0; i < type->half_bytes; i++)
      p[i] = random_code (type->half_bytes == 256, codes);
  }
}

void
fill_tensor (const TensorType *type, uint8_t *file, uint32_t rows,
    uint32_t columns, Codes codes)
{
  size_t stride = tensor_bytes (type, 1, columns);

  for (uint32_t r = 0; r < rows; r++) {
    if (type->half_bytes == 0)
      fill_row (type, file + r * stride, columns, codes);
    else if (r % 8 == 0)
      fill_tile (type, file + r / 8 * stride, columns, codes);
  }
}
