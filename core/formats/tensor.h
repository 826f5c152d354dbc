/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>
#include "blocks.h"
#include "mapping.h"

G_BEGIN_DECLS

typedef struct {
  const char *name;         /* upper case, as people write it: "Q4_1" */
  guint block_elements;     /* rows are whole blocks of these (1 for floats) */
  guint block_bytes;        /* 0 for tiled types, whose rows share blocks */
} RunnelTensorTypeInfo;

/* NULL for a number that is no type of ours. */
const RunnelTensorTypeInfo *runnel_tensor_type_info (guint type);

/* Bytes of @rows rows of @columns elements (whole blocks) of a type of ours;
 * FALSE when they overflow. */
gboolean runnel_tensor_type_bytes (guint type, guint64 columns, guint64 rows,
                                   guint64 *ret_bytes);

/* Row @row, of @columns elements, of the matrix at @data as floats. */
void runnel_tensor_type_dequantize_row (guint type, const void *data,
                                        guint64 columns, guint64 row,
                                        float *values);

#define RUNNEL_TENSOR_MAX_DIMS 4

/* A tensor as a file holds it. dims[0] is the length of a row (the fastest
 * axis); a matrix of R rows and C columns has dims {C, R}. Checked by the
 * reader: offset and bytes lie inside the file, whole blocks, no wrap. */
typedef struct {
  const char *name;
  RunnelTensorType type;
  guint n_dims;
  guint64 dims[RUNNEL_TENSOR_MAX_DIMS];   /* unused ones are 1 */
  RunnelMapping *mapping;                 /* borrowed */
  gsize offset;                           /* from the mapping's start */
  gsize bytes;
} RunnelTensor;

static inline const guint8 *
runnel_tensor_data (const RunnelTensor *tensor)
{
  return runnel_mapping_data (tensor->mapping) + tensor->offset;
}

/* Rows of dims[0] elements, over all other axes. */
static inline guint64
runnel_tensor_n_rows (const RunnelTensor *tensor)
{
  return tensor->dims[1] * tensor->dims[2] * tensor->dims[3];
}

G_END_DECLS
