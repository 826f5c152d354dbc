/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The block layouts of GGUF tensors and their plain C dequantisation, which
 * is what the values are by definition. Free of GLib.
 *
 * Source: the ggml project's published formats. All numbers are little-endian;
 * f16 is IEEE 754 binary16. In the layouts below the left number is the byte
 * offset in the block, w[i] the i-th weight, and products and sums are rounded
 * to float32 one by one, in the order written.
 *
 * Q4_0: 32 weights in 18 bytes, w = q d
 *    0  f16  d
 *    2  u8   qs[16]: q[i] + 8 in the low half of byte i, q[i + 16] + 8 in the
 *            high half
 * Q4_1: 32 weights in 20 bytes, w = q d + m
 *    0  f16  d
 *    2  f16  m
 *    4  u8   qs[16]: q[i] low, q[i + 16] high
 * Q5_0: 32 weights in 22 bytes, w = q d
 *    0  f16  d
 *    2  u32  qh: bit i is bit 4 of q[i] + 16
 *    6  u8   qs[16]: bits 0 to 3 of q + 16, as in Q4_0
 * Q5_1: 32 weights in 24 bytes, w = q d + m
 *    0  f16  d
 *    2  f16  m
 *    4  u32  qh
 *    8  u8   qs[16]
 * Q8_0: 32 weights in 34 bytes, w = q d
 *    0  f16  d
 *    2  i8   q[32]
 *
 * The K types have 256 weights in a block, in groups of 16 or 32.
 *
 * Q2_K: 84 bytes, w = (d scale) q - (dmin min), groups of 16
 *    0  u8   scales[16]: low half scale, high half min of group g
 *   16  u8   qs[64]: q[128 h + 32 k + l] in bits 2k, 2k + 1 of byte 32 h + l
 *   80  f16  d
 *   82  f16  dmin
 * Q3_K: 110 bytes, w = (d (scale - 32)) q, groups of 16
 *    0  u8   hmask[32]: bit 4h + k of byte l is bit 2 of q + 4 (at 128 h +
 *            32 k + l)
 *   32  u8   qs[64]: bits 0 and 1 of q + 4, as in Q2_K
 *   96  u8   scales[12]: bits 0 to 3 of the scale of group g in byte g % 8 (low
 *            half for g < 8), bits 4 and 5 in byte 8 + g % 4 at bit 2 (g / 4)
 *  108  f16  d
 * Q4_K: 144 bytes, w = (d scale) q - (dmin min), groups of 32
 *    0  f16  d
 *    2  f16  dmin
 *    4  u8   scales[12]: for g < 4 the low 6 bits of byte g are the scale, of
 *            byte g + 4 the min; for g >= 4 the low and high half of byte g + 4
 *            are bits 0 to 3 of scale and min, their bits 4 and 5 are the top
 *            bits of bytes g - 4 and g
 *   16  u8   qs[128]: q[64 j + l] in the low half of byte 32 j + l, q[64 j +
 *            32 + l] in the high half
 * Q5_K: 176 bytes, as Q4_K
 *    0  f16  d
 *    2  f16  dmin
 *    4  u8   scales[12]
 *   16  u8   qh[32]: bit g of byte l is bit 4 of q[32 g + l]
 *   48  u8   qs[128]: bits 0 to 3, as in Q4_K
 * Q6_K: 210 bytes, w = (d scale) q, groups of 16
 *    0  u8   ql[128]: bits 0 to 3 of q + 32: in byte 64 h + l those of
 *            128 h + l (low half) and 128 h + 64 + l (high half), l < 64
 *  128  u8   qh[64]: bits 2k, 2k + 1 of byte 32 h + l are bits 4 and 5 of
 *            q[128 h + 32 k + l] + 32
 *  192  i8   scales[16]
 *  208  f16  d
 *
 * The types of our own are not made of blocks of one row: tiles.h has their
 * layout. Their numbers say what they are: 0x52, then origin 0 and offset (1),
 * origin 8 and offset (2) or no offset (0), then the bits of a code, then the
 * columns of a group.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../backends/cpu/half.h"
#include "tiles.h"

/* Tensor types by their numbers in GGUF files: ggml's, and the tiled ones. */
typedef enum {
  RUNNEL_TENSOR_F32 = 0,
  RUNNEL_TENSOR_F16 = 1,
  RUNNEL_TENSOR_Q4_0 = 2,
  RUNNEL_TENSOR_Q4_1 = 3,
  RUNNEL_TENSOR_Q5_0 = 6,
  RUNNEL_TENSOR_Q5_1 = 7,
  RUNNEL_TENSOR_Q8_0 = 8,
  RUNNEL_TENSOR_Q2_K = 10,
  RUNNEL_TENSOR_Q3_K = 11,
  RUNNEL_TENSOR_Q4_K = 12,
  RUNNEL_TENSOR_Q5_K = 13,
  RUNNEL_TENSOR_Q6_K = 14,
  RUNNEL_TENSOR_BF16 = 30,
  RUNNEL_TENSOR_INT4_32 = 0x52040020,          /* w = d (q - 8) */
  RUNNEL_TENSOR_INT4_64 = 0x52040040,
  RUNNEL_TENSOR_INT8_32 = 0x52080020,          /* w = d q, q signed */
  RUNNEL_TENSOR_INT8_64 = 0x52080040,
  RUNNEL_TENSOR_INT4_32_OFFSET = 0x52140020,   /* w = d q + m */
  RUNNEL_TENSOR_INT4_64_OFFSET = 0x52140040,
  RUNNEL_TENSOR_INT8_32_OFFSET = 0x52180020,   /* w = d q + m, q signed */
  RUNNEL_TENSOR_INT8_64_OFFSET = 0x52180040,
  RUNNEL_TENSOR_INT4_32_CENTRED = 0x52240020,  /* w = d (q - 8) + m */
  RUNNEL_TENSOR_INT4_64_CENTRED = 0x52240040,
} RunnelTensorType;

/* Writes @n floats; @n is a multiple of the type's block. @blocks need not be
 * aligned. */
typedef void (*RunnelDequantize) (float *out, const void *blocks, size_t n);

/* NULL for a number that is no type of blocks. */
RunnelDequantize runnel_blocks_dequantize (unsigned type);

/* Whether @type is tiled, and its form. */
bool runnel_blocks_tile_form (unsigned type, RunnelTileForm *ret_form);

/* Writes row @row of @columns floats of the tiled matrix at @tiles. */
void runnel_tiles_dequantize (float *out, const void *tiles,
    RunnelTileForm form, uint64_t columns, uint64_t row);
