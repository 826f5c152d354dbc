/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What a head's file holds. Every number is finite, every size checked.
 */
#pragma once

#include "decision-head.h"
#include "gguf.h"

G_BEGIN_DECLS

/* The delimiters of the isolated form. */
typedef enum {
  RUNNEL_HEAD_TOKEN_QUESTION,
  RUNNEL_HEAD_TOKEN_OPTION,
  RUNNEL_HEAD_TOKEN_OPTION_END,
  RUNNEL_HEAD_TOKEN_DECIDE,
  RUNNEL_HEAD_N_TOKENS,
} RunnelHeadToken;

#define RUNNEL_HEAD_N_TYPES (RUNNEL_QUESTION_TYPE_SCORE + 1)
#define RUNNEL_HEAD_MAX_LEVELS 255

struct _RunnelDecisionHead {
  GObject parent_instance;
  char *path;
  RunnelDecisionForm form;
  guint n_embd;                       /* H */
  guint head_dim;                     /* d */
  float *candidate_norm_weight, *candidate_norm_bias;   /* [H] */
  float *query_norm_weight, *query_norm_bias;           /* [H] */
  float *key, *query;                                   /* [d][H] */
  float *candidate_mlp, *query_mlp;                     /* [d][H] */
  float *candidate_mlp_bias;                            /* [d] */
  float *scalar;                                        /* [d] */

  gboolean can_abstain;
  float *null_weight;                                   /* [H] */
  float null_bias;
  gint32 tokens[RUNNEL_HEAD_N_TOKENS];
  double temperatures[RUNNEL_HEAD_N_TYPES];
  /* By the number of levels: added to the logits of a score; or NULL. */
  float *score_bias[RUNNEL_HEAD_MAX_LEVELS + 1];
};

/* Whether a model's file holds a head. */
gboolean runnel_decision_head_is_in (const RunnelGguf *gguf);

G_END_DECLS
