/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Architectures as descriptions: what tensors a model of a family has, what
 * they are for, and what files call them. A new architecture is an entry of
 * the table in architecture.c. Readers of files (formats/) look names up here;
 * the forward pass sees which parts are there.
 */
#pragma once

#include "hyperparameters.h"

G_BEGIN_DECLS

/* What a tensor is for: the order of the members of RunnelLayer in
 * backends/ops.h, then the model's own. */
typedef enum {
  RUNNEL_PART_ATTN_NORM, RUNNEL_PART_Q, RUNNEL_PART_K, RUNNEL_PART_V,
  RUNNEL_PART_O, RUNNEL_PART_Q_BIAS, RUNNEL_PART_K_BIAS, RUNNEL_PART_V_BIAS,
  RUNNEL_PART_Q_NORM, RUNNEL_PART_K_NORM, RUNNEL_PART_FFN_NORM,
  RUNNEL_PART_GATE, RUNNEL_PART_UP, RUNNEL_PART_DOWN,
  RUNNEL_PART_ATTN_CONV_BASE, RUNNEL_PART_ATTN_CONV, RUNNEL_PART_FFN_CONV_BASE,
  RUNNEL_PART_FFN_CONV,
  RUNNEL_N_LAYER_PARTS,
  RUNNEL_PART_EMBEDDING = RUNNEL_N_LAYER_PARTS,
  RUNNEL_PART_OUTPUT_NORM, RUNNEL_PART_OUTPUT, RUNNEL_PART_ROPE_FACTORS,
  RUNNEL_PART_FUSION, RUNNEL_PART_CONTEXT_NORM, RUNNEL_PART_SELECTOR,
  RUNNEL_PART_PREDECESSORS, RUNNEL_PART_SUCCESSORS,
  RUNNEL_N_PARTS
} RunnelPart;

typedef struct {
  const char *name;            /* in GGUF, and model_type in config.json */
  const char *hf_class;        /* in "architectures" of config.json */
  RunnelRopeStyle gguf_rope;   /* of the rows of q and k in GGUF */
  guint hf_head_dim;           /* if config.json has none; 0: n_embd / n_heads */
  guint64 parts;               /* bit per RunnelPart that it must have */
  guint64 optional;            /* bit per RunnelPart that it may have */
  gboolean is_draft;           /* borrows embedding and output matrix */
} RunnelArchitecture;

/* Not one that is found by name: a draft is no model of its own. */
extern const RunnelArchitecture runnel_draft_architecture;

/* NULL with RUNNEL_ERROR_UNSUPPORTED, which names @file and the known ones. */
const RunnelArchitecture *runnel_architecture_find (const char *name,
                                                    const char *file,
                                                    GError **error);

/* Whether a model with these hyperparameters must or may have the part. The
 * output matrix must be there unless it is tied to the embedding, and what
 * convolutions and path selectors need if there are any. */
gboolean runnel_architecture_needs (const RunnelArchitecture *self,
                                    const RunnelHyperparameters *hp,
                                    RunnelPart part);
gboolean runnel_architecture_allows (const RunnelArchitecture *self,
                                     const RunnelHyperparameters *hp,
                                     RunnelPart part);

/* The name in GGUF ("blk.3.attn_q.weight") and in Hugging Face files
 * ("model.layers.3.self_attn.q_proj.weight"; NULL for a part that those do not
 * have). @layer is ignored for the model's own parts. */
char *runnel_part_dup_name (RunnelPart part, guint layer);
char *runnel_part_dup_hf_name (RunnelPart part, guint layer);
/* In Hugging Face files of drafts, which begin their names with the layer. */
char *runnel_part_dup_hf_draft_name (RunnelPart part, guint layer);

/* FALSE when no part has that name; @ret_layer is 0 for the model's own. */
gboolean runnel_part_find (const char *name, RunnelPart *ret_part,
                           guint *ret_layer);
gboolean runnel_part_find_hf (const char *hf_name, RunnelPart *ret_part,
                              guint *ret_layer);
gboolean runnel_part_find_hf_draft (const char *hf_name, RunnelPart *ret_part,
                                    guint *ret_layer);

/* The columns and rows that a part must have; a vector has one row. */
void runnel_part_get_dims (RunnelPart part, const RunnelHyperparameters *hp,
                           guint64 ret_dims[2]);
gboolean runnel_part_is_vector (RunnelPart part);
/* Whether it is used value by value, as floats, and in no product. */
gboolean runnel_part_is_elementwise (RunnelPart part);

G_END_DECLS
