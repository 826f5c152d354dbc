/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Architectures as descriptions: what tensors a model of a family has and what
 * they are for. A new architecture is an entry of the table in architecture.c.
 */
#pragma once

#include "../formats/checkpoint.h"

G_BEGIN_DECLS

/* Where a tensor goes: the order of the members of RunnelLayer in
 * backends/ops.h, then the model's own. */
typedef enum {
  RUNNEL_PART_ATTN_NORM, RUNNEL_PART_Q, RUNNEL_PART_K, RUNNEL_PART_V,
  RUNNEL_PART_O, RUNNEL_PART_Q_BIAS, RUNNEL_PART_K_BIAS, RUNNEL_PART_V_BIAS,
  RUNNEL_PART_Q_NORM, RUNNEL_PART_K_NORM, RUNNEL_PART_FFN_NORM,
  RUNNEL_PART_GATE, RUNNEL_PART_UP, RUNNEL_PART_DOWN,
  RUNNEL_N_LAYER_PARTS,
  RUNNEL_PART_EMBEDDING = RUNNEL_N_LAYER_PARTS,
  RUNNEL_PART_OUTPUT_NORM, RUNNEL_PART_OUTPUT, RUNNEL_PART_ROPE_FACTORS,
  RUNNEL_N_PARTS
} RunnelPart;

typedef struct {
  const char *name;
  guint64 parts;             /* bit per RunnelPart that it must have */
  guint64 optional;          /* bit per RunnelPart that it may have */
} RunnelArchitecture;

/* NULL with RUNNEL_ERROR_UNSUPPORTED, which names the known ones. */
const RunnelArchitecture *runnel_architecture_find (const char *name,
                                                    const char *path,
                                                    GError **error);

/* The GGUF name of a part ("blk.3.attn_q.weight"); @layer is ignored for the
 * model's own parts. */
char *runnel_part_dup_name (RunnelPart part, guint layer);

/* The shape a part must have: dims[1] is 0 for a vector. */
void runnel_part_get_dims (RunnelPart part, const RunnelHyperparameters *hp,
                           guint64 ret_dims[2]);

/* Checks that the checkpoint has every tensor the architecture needs, each of
 * the right shape, and none that it does not know. */
gboolean runnel_architecture_check (const RunnelArchitecture *self,
                                    RunnelCheckpoint *checkpoint,
                                    GError **error);

G_END_DECLS
