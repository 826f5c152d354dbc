/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The graph of an MNN package (llm.mnn) as far as a decoder needs it: which
 * operator is which projection, where its weights lie, what normalises it, how
 * heads are cut and positions rotated. Operators that a decoder of ours does
 * not have are refused.
 *
 * Source: the schema of the MNN project (schema/default) and its exporter
 * (transformers/llm/export), which names operators after the layers.
 */
#pragma once

#include "../model/architecture.h"
#include "flatbuffer.h"
#include "mapping.h"

G_BEGIN_DECLS

/* A projection: a 1×1 convolution. Sizes and places in the file of weights are
 * as the graph says, unchecked. */
typedef struct {
  RunnelPart part;
  guint layer;
  const char *op;              /* for messages */
  guint rows, columns;
  guint bits;                  /* of a code; 16: half floats without codes */
  gboolean offset;             /* scales come in pairs with a zero point */
  gboolean half_scales;
  gboolean wide;               /* 32-bit sizes in the header */
  guint64 at;                  /* bytes: header and codes, scales, bias */
  guint64 codes_bytes, scales_bytes, bias_bytes;
} RunnelMnnLinear;

/* The weights of a norm: in the graph, or in the file of weights. */
typedef struct {
  RunnelPart part;
  guint layer;
  const char *op;
  guint n;
  RunnelFlatVector inside;     /* of n floats, when n_bytes is 0 */
  guint64 at, n_bytes, beta_bytes;
} RunnelMnnNorm;

/* A table of cosines or sines: what positions are multiplied with. */
typedef struct {
  guint rows, columns;
  RunnelFlatVector inside;
  guint64 at;                  /* in the file of weights; inside is empty */
} RunnelMnnTable;

typedef struct {
  RunnelFlatbuffer buffer;
  GArray *linears;             /* of RunnelMnnLinear */
  GArray *norms;               /* of RunnelMnnNorm */
  GArray *tables;              /* of RunnelMnnTable */
  guint n_heads, n_kv_heads, head_dim, rope_dimensions;
  float norm_epsilon;
} RunnelMnnGraph;

/* @mapping outlives it. */
gboolean runnel_mnn_graph_read (RunnelMnnGraph *self,
                                const RunnelMapping *mapping, GError **error);
void runnel_mnn_graph_clear (RunnelMnnGraph *self);
/* NULL when there is none. */
const RunnelMnnLinear *runnel_mnn_graph_find (const RunnelMnnGraph *self,
                                              RunnelPart part);

G_END_DECLS
