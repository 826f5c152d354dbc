/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tensor.h"

static const RunnelTensorTypeInfo infos[] = {
  [RUNNEL_TENSOR_F32] = { "F32", 1, 4 },
  [RUNNEL_TENSOR_F16] = { "F16", 1, 2 },
  [RUNNEL_TENSOR_Q4_0] = { "Q4_0", 32, 18 },
  [RUNNEL_TENSOR_Q4_1] = { "Q4_1", 32, 20 },
  [RUNNEL_TENSOR_Q5_0] = { "Q5_0", 32, 22 },
  [RUNNEL_TENSOR_Q5_1] = { "Q5_1", 32, 24 },
  [RUNNEL_TENSOR_Q8_0] = { "Q8_0", 32, 34 },
  [RUNNEL_TENSOR_Q2_K] = { "Q2_K", 256, 84 },
  [RUNNEL_TENSOR_Q3_K] = { "Q3_K", 256, 110 },
  [RUNNEL_TENSOR_Q4_K] = { "Q4_K", 256, 144 },
  [RUNNEL_TENSOR_Q5_K] = { "Q5_K", 256, 176 },
  [RUNNEL_TENSOR_Q6_K] = { "Q6_K", 256, 210 },
  [RUNNEL_TENSOR_BF16] = { "BF16", 1, 2 },
};

/* Tiled types by their numbers, rising. */
static const struct {
  guint type;
  RunnelTensorTypeInfo info;
} tiled[] = {
  { RUNNEL_TENSOR_INT4_32, { "INT4_32", RUNNEL_TILE_COLUMNS, 0 } },
  { RUNNEL_TENSOR_INT4_64, { "INT4_64", RUNNEL_TILE_COLUMNS, 0 } },
  { RUNNEL_TENSOR_INT8_32, { "INT8_32", RUNNEL_TILE_COLUMNS, 0 } },
  { RUNNEL_TENSOR_INT8_64, { "INT8_64", RUNNEL_TILE_COLUMNS, 0 } },
  { RUNNEL_TENSOR_INT4_32_OFFSET,
      { "INT4_32_OFFSET", RUNNEL_TILE_COLUMNS, 0 } },
  { RUNNEL_TENSOR_INT4_64_OFFSET,
      { "INT4_64_OFFSET", RUNNEL_TILE_COLUMNS, 0 } },
  { RUNNEL_TENSOR_INT8_32_OFFSET,
      { "INT8_32_OFFSET", RUNNEL_TILE_COLUMNS, 0 } },
  { RUNNEL_TENSOR_INT8_64_OFFSET,
      { "INT8_64_OFFSET", RUNNEL_TILE_COLUMNS, 0 } },
  { RUNNEL_TENSOR_INT4_32_CENTRED,
      { "INT4_32_CENTRED", RUNNEL_TILE_COLUMNS, 0 } },
  { RUNNEL_TENSOR_INT4_64_CENTRED,
      { "INT4_64_CENTRED", RUNNEL_TILE_COLUMNS, 0 } },
};

const RunnelTensorTypeInfo *
runnel_tensor_type_info (guint type)
{
  for (guint i = 0; i < G_N_ELEMENTS (tiled); i++) {
    if (tiled[i].type == type)
      return &tiled[i].info;
  }
  if (type >= G_N_ELEMENTS (infos) || infos[type].name == NULL)
    return NULL;
  return &infos[type];
}

gboolean
runnel_tensor_type_bytes (guint type, guint64 columns, guint64 rows,
                          guint64 *ret_bytes)
{
  const RunnelTensorTypeInfo *info = runnel_tensor_type_info (type);
  RunnelTileForm form;
  guint64 blocks;

  if (!runnel_blocks_tile_form (type, &form))
    return g_uint64_checked_mul (&blocks, columns / info->block_elements,
        rows) && g_uint64_checked_mul (ret_bytes, blocks, info->block_bytes);
  /* A column of a tile takes less than this. */
  if (!g_uint64_checked_mul (&blocks, columns, 2 * RUNNEL_TILE_ROWS))
    return FALSE;
  return g_uint64_checked_mul (ret_bytes, runnel_tile_bytes (form, columns),
      rows / RUNNEL_TILE_ROWS + (rows % RUNNEL_TILE_ROWS != 0));
}

void
runnel_tensor_type_dequantize_row (guint type, const void *data,
                                   guint64 columns, guint64 row,
                                   float *values)
{
  const RunnelTensorTypeInfo *info = runnel_tensor_type_info (type);
  RunnelTileForm form;

  if (runnel_blocks_tile_form (type, &form))
    runnel_tiles_dequantize (values, data, form, columns, row);
  else
    runnel_blocks_dequantize (type) (values, (const guint8 *) data
        + row * (columns / info->block_elements) * info->block_bytes, columns);
}
