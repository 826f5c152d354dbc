/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What a head's file holds. Every number is finite, every size checked.
 */
#pragma once

#include "checkpoint.h"
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
  char *architecture;                 /* of the file; NULL: safetensors */
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
  float *null_bias;                                     /* [1] */
  gint32 tokens[RUNNEL_HEAD_N_TOKENS];
  double temperatures[RUNNEL_HEAD_N_TYPES];
  /* By the number of levels: added to the logits of a score; or NULL. */
  float *score_bias[RUNNEL_HEAD_MAX_LEVELS + 1];
};

/* What a side of a tensor is as long as. */
typedef enum {
  RUNNEL_HEAD_SIZE_ONE,
  RUNNEL_HEAD_SIZE_N_EMBD,
  RUNNEL_HEAD_SIZE_HEAD_DIM,
} RunnelHeadSize;

typedef struct {
  const char *name;                   /* behind the prefix of the form */
  RunnelHeadSize rows, columns;
  glong member;                       /* where in the object its values are */
  gboolean is_null;                   /* only where it can abstain */
} RunnelHeadTensor;

#define RUNNEL_HEAD_N_TENSORS 12
extern const RunnelHeadTensor runnel_head_tensors[RUNNEL_HEAD_N_TENSORS];

guint runnel_head_get_size (const RunnelDecisionHead *self,
                            RunnelHeadSize size);

static inline float **
runnel_head_get_values (RunnelDecisionHead *self,
                        const RunnelHeadTensor *tensor)
{
  return G_STRUCT_MEMBER_P (self, tensor->member);
}

static inline const char *
runnel_head_get_prefix (const RunnelDecisionHead *self)
{
  return self->form == RUNNEL_DECISION_FORM_DECISION2 ? "decision2."
      : "decision.";
}

/* Whether a tensor of a model's file belongs to a head. */
gboolean runnel_head_owns_tensor (const char *name);
/* The head in a model's own file or folder; NULL when there is none. */
gboolean runnel_decision_head_find (const RunnelCheckpoint *checkpoint,
                                    RunnelDecisionHead **ret, GError **error);
/* Whether a model, called @name in the message, has rows of its width and its
 * tokens. */
gboolean
runnel_decision_head_check_fit (const RunnelDecisionHead *self,
                                const RunnelHyperparameters *hp,
                                const char *name, GError **error);
/* The keys of a head in a file of @architecture. */
void runnel_decision_head_write_keys (const RunnelDecisionHead *self,
                                      RunnelGgufWriter *writer,
                                      const char *architecture);
/* The tensors, each of a mapping of its own; both are the caller's, as are
 * the names. */
GArray *runnel_decision_head_make_tensors (RunnelDecisionHead *self);

G_END_DECLS
