/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Interleaving of a file's rows into tiles. Low nibbles of ggml's 4-bit
 * blocks are columns 0 to 15 and high ones 16 to 31, so four bytes of a block
 * are four bytes of a tile. K-quants are not unpacked at all.
 */
#include "kernels.h"

#include <string.h>

#include "../../formats/blocks.h"
#include "blocks-layout.h"

bool
runnel_matrix_kind_for_type (uint32_t tensor_type, RunnelMatrixKind *kind)
{
  static const struct {
    uint32_t type;
    RunnelMatrixKind kind;
  } kinds[] = {
    {RUNNEL_TENSOR_F32, RUNNEL_MATRIX_F32},
    {RUNNEL_TENSOR_F16, RUNNEL_MATRIX_F16},
    {RUNNEL_TENSOR_Q4_0, RUNNEL_MATRIX_INT4_32},
    {RUNNEL_TENSOR_Q4_1, RUNNEL_MATRIX_INT4_32_OFFSET},
    {RUNNEL_TENSOR_Q5_0, RUNNEL_MATRIX_INT8_32},
    {RUNNEL_TENSOR_Q5_1, RUNNEL_MATRIX_INT8_32_OFFSET},
    {RUNNEL_TENSOR_Q8_0, RUNNEL_MATRIX_INT8_32},
    {RUNNEL_TENSOR_Q2_K, RUNNEL_MATRIX_Q2_K},
    {RUNNEL_TENSOR_Q3_K, RUNNEL_MATRIX_Q3_K},
    {RUNNEL_TENSOR_Q4_K, RUNNEL_MATRIX_Q4_K},
    {RUNNEL_TENSOR_Q5_K, RUNNEL_MATRIX_Q5_K},
    {RUNNEL_TENSOR_Q6_K, RUNNEL_MATRIX_Q6_K},
    {RUNNEL_TENSOR_BF16, RUNNEL_MATRIX_BF16},
#define TILED(kind, name) {RUNNEL_TENSOR_##kind, RUNNEL_MATRIX_##kind},
    RUNNEL_FOR_EACH_TILE_KIND (TILED)
  };

  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (kinds[i].type == tensor_type) {
      *kind = kinds[i].kind;
      return true;
    }
  }
  return false;
}

bool
runnel_matrix_is_packed (uint32_t tensor_type)
{
  switch (tensor_type) {
#define CASE(kind, name) case RUNNEL_TENSOR_##kind:
    RUNNEL_FOR_EACH_TILE_KIND (CASE)
      return true;
    default:
      return false;
  }
}

size_t
runnel_matrix_stride (RunnelMatrixKind kind, uint32_t columns)
{
  switch (kind) {
    case RUNNEL_MATRIX_Q2_K:
    case RUNNEL_MATRIX_Q3_K:
    case RUNNEL_MATRIX_Q4_K:
    case RUNNEL_MATRIX_Q5_K:
    case RUNNEL_MATRIX_Q6_K:
      return columns / RUNNEL_K_BLOCK * RUNNEL_TILE_ROWS
          * runnel_k_block_bytes (kind);
    case RUNNEL_MATRIX_F32:
      return (size_t) columns * 4;
    case RUNNEL_MATRIX_F16:
    case RUNNEL_MATRIX_BF16:
      return (size_t) columns * 2;
    default:
      return runnel_tile_bytes (runnel_matrix_tile_form (kind), columns);
  }
}

/* Copies the 4-byte pieces of n_vectors vectors of one row into its lanes. */
static inline void
scatter_codes (uint8_t *dst, const uint8_t *codes, int n_vectors)
{
  for (int v = 0; v < n_vectors; v++)
    memcpy (dst + 32 * v, codes + 4 * v, 4);
}

/* One row of a 5-bit block as bytes: 32 codes less the origin. */
static void
unpack_5_bits (const uint8_t *high_bits, const uint8_t *nibbles, int origin,
    uint8_t *codes)
{
  uint32_t high;

  memcpy (&high, high_bits, sizeof high);
  for (int c = 0; c < 16; c++) {
    int low_code = (nibbles[c] & 15) | (int) (((high >> c) & 1) << 4);
    int high_code = (nibbles[c] >> 4) | (int) (((high >> (c + 16)) & 1) << 4);

    codes[c] = (uint8_t) (low_code - origin);
    codes[c + 16] = (uint8_t) (high_code - origin);
  }
}

/* Rows [0, n) of a tile; dst is the tile, src its first row. What ties a
 * type to its layouts: bytes of its block and of the codes of a tile's group,
 * halves in front of the codes, and how the codes are copied. */
#define DEFINE_PACK(name, block_bytes, code_bytes, n_halves, copy_codes)      \
  static void                                                                 \
  name (const uint8_t *src, size_t src_stride, uint32_t n, uint32_t groups,   \
      uint8_t *dst)                                                           \
  {                                                                           \
    for (uint32_t r = 0; r < n; r++) {                                        \
      const uint8_t *block = src + r * src_stride;                            \
      uint8_t *out = dst;                                                     \
                                                                              \
      for (uint32_t g = 0; g < groups; g++) {                                 \
        for (int h = 0; h < n_halves; h++)                                    \
          memcpy (out + 16 * h + 2 * r, block + 2 * h, 2);                    \
        copy_codes;                                                           \
        block += block_bytes;                                                 \
        out += 16 * n_halves + code_bytes;                                    \
      }                                                                       \
    }                                                                         \
  }

DEFINE_PACK (pack_q4_0, 18, 128, 1,
    scatter_codes (out + 16 + 4 * r, block + 2, 4))
DEFINE_PACK (pack_q4_1, 20, 128, 2,
    scatter_codes (out + 32 + 4 * r, block + 4, 4))
DEFINE_PACK (pack_q8_0, 34, 256, 1,
    scatter_codes (out + 16 + 4 * r, block + 2, 8))
DEFINE_PACK (pack_q5_0, 22, 256, 1,
    uint8_t codes[32];
    unpack_5_bits (block + 2, block + 6, 16, codes);
    scatter_codes (out + 16 + 4 * r, codes, 8))
DEFINE_PACK (pack_q5_1, 24, 256, 2,
    uint8_t codes[32];
    unpack_5_bits (block + 4, block + 8, 0, codes);
    scatter_codes (out + 32 + 4 * r, codes, 8))

/* Rows of K-quants stay as they are, in turn. */
#define DEFINE_PACK_K(name, block)                                            \
  static void                                                                 \
  name (const uint8_t *src, size_t src_stride, uint32_t n, uint32_t groups,   \
      uint8_t *dst)                                                           \
  {                                                                           \
    size_t blocks = groups * RUNNEL_GROUP / RUNNEL_K_BLOCK;                   \
                                                                              \
    for (uint32_t r = 0; r < n; r++) {                                        \
      for (size_t b = 0; b < blocks; b++)                                     \
        runnel_scatter_k_block (src + r * src_stride + b * sizeof (block), r, \
            sizeof (block), dst + b * RUNNEL_TILE_ROWS * sizeof (block));     \
    }                                                                         \
  }

DEFINE_PACK_K (pack_q2_k, RunnelBlockQ2K)
DEFINE_PACK_K (pack_q3_k, RunnelBlockQ3K)
DEFINE_PACK_K (pack_q4_k, RunnelBlockQ4K)
DEFINE_PACK_K (pack_q5_k, RunnelBlockQ5K)
DEFINE_PACK_K (pack_q6_k, RunnelBlockQ6K)

void
runnel_matrix_pack (uint32_t tensor_type, const uint8_t *src,
    size_t src_stride, uint32_t rows, uint32_t columns, uint8_t *dst,
    uint32_t tile_begin, uint32_t tile_end)
{
  void (*pack) (const uint8_t *, size_t, uint32_t, uint32_t, uint8_t *);
  RunnelMatrixKind kind;
  size_t stride;

  if (!runnel_matrix_kind_for_type (tensor_type, &kind))
    return;
  switch (tensor_type) {
    case RUNNEL_TENSOR_Q4_0:
      pack = pack_q4_0;
      break;
    case RUNNEL_TENSOR_Q4_1:
      pack = pack_q4_1;
      break;
    case RUNNEL_TENSOR_Q5_0:
      pack = pack_q5_0;
      break;
    case RUNNEL_TENSOR_Q5_1:
      pack = pack_q5_1;
      break;
    case RUNNEL_TENSOR_Q8_0:
      pack = pack_q8_0;
      break;
    case RUNNEL_TENSOR_Q2_K:
      pack = pack_q2_k;
      break;
    case RUNNEL_TENSOR_Q3_K:
      pack = pack_q3_k;
      break;
    case RUNNEL_TENSOR_Q4_K:
      pack = pack_q4_k;
      break;
    case RUNNEL_TENSOR_Q5_K:
      pack = pack_q5_k;
      break;
    case RUNNEL_TENSOR_Q6_K:
      pack = pack_q6_k;
      break;
    default:
      return;
  }
  stride = runnel_matrix_stride (kind, columns);

  for (uint32_t t = tile_begin; t < tile_end; t++) {
    uint32_t first = t * RUNNEL_TILE_ROWS;
    uint32_t n = rows - first;
    uint8_t *tile = dst + t * stride;

    if (n < RUNNEL_TILE_ROWS)
      memset (tile, 0, stride);
    else
      n = RUNNEL_TILE_ROWS;
    pack (src + first * src_stride, src_stride, n, runnel_n_groups (columns),
        tile);
  }
}
