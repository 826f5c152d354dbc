/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The blobs of an MNN package as tensors. Integer codes become the tiled types
 * of tiles.h when they are asked for: codes and half-float scales as they are,
 * scales of longer blocks repeated, float32 scales rounded.
 *
 * Codes lie row after row, the first of a byte in its high bits, stored
 * unsigned: u = code + 2^(bits - 1). A row's columns are in equal blocks, each
 * with a scale, or a zero point and a scale:
 *
 *   w = (u - 2^(bits - 1)) scale + zero
 *
 * A blob of the file of weights starts with a header: u8 2; u16 rows and
 * columns (or u32); u8 2^bits, of which 256 is written 0; that many i8 values
 * of the codes, -2^(bits - 1) and up. The scales follow the codes, a float32
 * bias for each row the scales.
 */
#pragma once

#include "mnn-graph.h"
#include "tensor.h"

G_BEGIN_DECLS

typedef struct {
  RunnelMapping *file;         /* borrowed until a tensor is made of it */
  const char *name;            /* for messages */
  guint rows, columns, bits;
  gboolean offset, half_scales;
  guint64 codes_at, codes_bytes, scales_at, scales_bytes;
} RunnelMnnCodes;

/* What scales and zero points lost when float32 became half floats. */
typedef struct {
  guint64 n, n_rounded;
  double max_error;            /* relative */
} RunnelMnnRounding;

/* The codes of a blob after a look at its header; @linear has no half-float
 * weights. */
gboolean runnel_mnn_codes_find (RunnelMnnCodes *self, RunnelMapping *file,
                                const RunnelMnnLinear *linear,
                                GError **error);
/* Fills in type, shape, bytes and mapping of @ret, whose mapping belongs to
 * the caller. @again: see runnel_mapping_new_filled. */
gboolean runnel_mnn_codes_make_tensor (const RunnelMnnCodes *self,
                                       gboolean again, RunnelTensor *ret,
                                       RunnelMnnRounding *rounding,
                                       GError **error);

/* Whether [@at, @at + @bytes) lies in the file, with an error that names
 * @what. */
gboolean runnel_mnn_check_range (const RunnelMapping *file, guint64 at,
                                 guint64 bytes, const char *what,
                                 GError **error);

G_END_DECLS
