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
  guint block_elements;     /* elements in a block (1 for floats) */
  guint block_bytes;
} RunnelTensorTypeInfo;

/* NULL for a number that is no type of ours. */
const RunnelTensorTypeInfo *runnel_tensor_type_info (guint type);

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

G_END_DECLS
