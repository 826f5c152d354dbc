/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "repack.h"

#include <string.h>

unsigned
runnel_repack_exact_type (unsigned type, int bits)
{
  RunnelTileForm form;

  if (runnel_blocks_tile_form (type, &form)) {
    if (form.bits == bits)
      return (type & ~0xffu) | 32;
    if (bits == 4)
      return 0;
    return form.offset ? RUNNEL_TENSOR_INT8_32_OFFSET : RUNNEL_TENSOR_INT8_32;
  }
  switch (type) {
    case RUNNEL_TENSOR_Q4_0:
      return bits == 4 ? RUNNEL_TENSOR_INT4_32 : RUNNEL_TENSOR_INT8_32;
    case RUNNEL_TENSOR_Q4_1:
      return bits == 4 ? RUNNEL_TENSOR_INT4_32_OFFSET
                       : RUNNEL_TENSOR_INT8_32_OFFSET;
    case RUNNEL_TENSOR_Q5_0:
    case RUNNEL_TENSOR_Q8_0:
      return bits == 8 ? RUNNEL_TENSOR_INT8_32 : 0;
    case RUNNEL_TENSOR_Q5_1:
      return bits == 8 ? RUNNEL_TENSOR_INT8_32_OFFSET : 0;
    default:
      return 0;
  }
}

unsigned
runnel_repack_wide_type (unsigned tiled_type)
{
  return (tiled_type & ~0xffu) | 64;
}

/* ---- Reading --------------------------------------------------------- */

static void
get_nibbles (const uint8_t *codes, int origin, int16_t *q)
{
  for (int i = 0; i < 16; i++) {
    q[i] = (codes[i] & 15) - origin;
    q[i + 16] = (codes[i] >> 4) - origin;
  }
}

static void
get_5_bits (const uint8_t *high, const uint8_t *codes, int origin, int16_t *q)
{
  get_nibbles (codes, origin, q);
  for (int i = 0; i < 32; i++)
    q[i] += (high[i / 8] >> i % 8 & 1) << 4;
}

static void
get_block (unsigned type, const uint8_t *block, RunnelGroup *group)
{
  group->d = runnel_load_u16 (block);
  group->m = 0;
  switch (type) {
    case RUNNEL_TENSOR_Q4_0:
      get_nibbles (block + 2, 8, group->q);
      break;
    case RUNNEL_TENSOR_Q4_1:
      group->m = runnel_load_u16 (block + 2);
      get_nibbles (block + 4, 0, group->q);
      break;
    case RUNNEL_TENSOR_Q5_0:
      get_5_bits (block + 2, block + 6, 16, group->q);
      break;
    case RUNNEL_TENSOR_Q5_1:
      group->m = runnel_load_u16 (block + 2);
      get_5_bits (block + 4, block + 8, 0, group->q);
      break;
    default:   /* Q8_0 */
      for (int i = 0; i < 32; i++)
        group->q[i] = (int8_t) block[2 + i];
  }
}

static size_t
block_bytes (unsigned type)
{
  switch (type) {
    case RUNNEL_TENSOR_Q4_0:
      return 18;
    case RUNNEL_TENSOR_Q4_1:
      return 20;
    case RUNNEL_TENSOR_Q5_0:
      return 22;
    case RUNNEL_TENSOR_Q5_1:
      return 24;
    default:
      return 34;
  }
}

/* Where in a tile the group of 32 columns @part lies: *@ret_head its scales,
 * *@ret_codes its codes. */
static void
find_in_tile (RunnelTileForm form, uint64_t part, size_t *ret_head,
              size_t *ret_codes)
{
  uint64_t halves = (uint64_t) form.group / RUNNEL_TILE_COLUMNS;
  size_t head = runnel_tile_head_bytes (form);
  size_t codes = runnel_tile_code_bytes (form);

  *ret_head = part / halves * (head + halves * codes);
  *ret_codes = *ret_head + head + part % halves * codes;
}

/* The byte of a tile's codes that holds column @c of row @r. */
static size_t
code_at (int bits, int r, int c)
{
  int within = bits == 4 ? c % 16 : c;

  return (size_t) (32 * (within / 4) + 4 * r + within % 4);
}

static void
get_from_tile (const uint8_t *tile, RunnelTileForm form, int r, uint64_t part,
               RunnelGroup *group)
{
  size_t head, codes;

  find_in_tile (form, part, &head, &codes);
  group->d = runnel_load_u16 (tile + head + 2 * r);
  group->m = form.offset
      ? runnel_load_u16 (tile + head + 2 * RUNNEL_TILE_ROWS + 2 * r) : 0;
  for (int c = 0; c < RUNNEL_TILE_COLUMNS; c++) {
    uint8_t byte = tile[codes + code_at (form.bits, r, c)];

    group->q[c] = form.bits == 8 ? (int8_t) byte
        : (byte >> c / 16 * 4 & 15) - form.origin;
  }
}

void
runnel_repack_get (const RunnelGroupRows *rows, uint64_t row, uint64_t part,
                   RunnelGroup *group)
{
  RunnelTileForm form;

  if (runnel_blocks_tile_form (rows->type, &form)) {
    get_from_tile (rows->data + row / RUNNEL_TILE_ROWS
            * runnel_tile_bytes (form, rows->columns), form,
        row % RUNNEL_TILE_ROWS, part, group);
  } else {
    uint64_t parts = rows->columns / RUNNEL_TILE_COLUMNS;

    get_block (rows->type,
        rows->data + (row * parts + part) * block_bytes (rows->type), group);
  }
}

bool
runnel_repack_can_join (const RunnelGroupRows *rows, uint64_t n)
{
  uint64_t parts = rows->columns / RUNNEL_TILE_COLUMNS;

  for (uint64_t row = 0; row < n; row++)
    for (uint64_t part = 1; part < parts; part += 2) {
      RunnelGroup first, second;

      runnel_repack_get (rows, row, part - 1, &first);
      runnel_repack_get (rows, row, part, &second);
      if (first.d != second.d || first.m != second.m)
        return false;
    }
  return true;
}

/* ---- Writing --------------------------------------------------------- */

static void
put_into_tile (uint8_t *tile, RunnelTileForm form, int r, uint64_t part,
               const RunnelGroup *group)
{
  size_t head, codes;

  find_in_tile (form, part, &head, &codes);
  memcpy (tile + head + 2 * r, &group->d, 2);
  if (form.offset)
    memcpy (tile + head + 2 * RUNNEL_TILE_ROWS + 2 * r, &group->m, 2);
  for (int c = 0; c < RUNNEL_TILE_COLUMNS; c++) {
    uint8_t *byte = &tile[codes + code_at (form.bits, r, c)];
    uint8_t code = (uint8_t) (group->q[c] + form.origin);

    *byte |= form.bits == 8 ? code : code << c / 16 * 4;
  }
}

void
runnel_repack_tile (const RunnelGroupRows *rows, uint64_t row, int n,
                    unsigned type, uint8_t *tile)
{
  RunnelTileForm form = { .bits = 4, .group = 32 };

  runnel_blocks_tile_form (type, &form);
  memset (tile, 0, runnel_tile_bytes (form, rows->columns));
  for (int r = 0; r < n; r++)
    for (uint64_t part = 0; part < rows->columns / RUNNEL_TILE_COLUMNS;
        part++) {
      RunnelGroup group;

      runnel_repack_get (rows, row + (uint64_t) r, part, &group);
      put_into_tile (tile, form, r, part, &group);
    }
}
