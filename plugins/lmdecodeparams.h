/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* The parameters of a reply: as properties of lmdecode, and as the overrides
 * of one request. */
#pragma once

#include <gstrunnel.h>

G_BEGIN_DECLS

enum {
  GST_LM_DECODE_PARAM_MAX_TOKENS = 1,
  GST_LM_DECODE_PARAM_TEMPERATURE,
  GST_LM_DECODE_PARAM_TOP_K,
  GST_LM_DECODE_PARAM_TOP_P,
  GST_LM_DECODE_PARAM_MIN_P,
  GST_LM_DECODE_PARAM_REPETITION_PENALTY,
  GST_LM_DECODE_PARAM_PRESENCE_PENALTY,
  GST_LM_DECODE_PARAM_FREQUENCY_PENALTY,
  GST_LM_DECODE_PARAM_PENALTY_WINDOW,
  GST_LM_DECODE_PARAM_SEED,
  GST_LM_DECODE_PARAM_LOGIT_BIAS,
  GST_LM_DECODE_PARAM_STOP,
  GST_LM_DECODE_PARAM_STOP_TOKENS,
  GST_LM_DECODE_PARAM_IGNORE_EOS,
  GST_LM_DECODE_PARAM_TOP_LOGPROBS,
  GST_LM_DECODE_PARAM_OVERFLOW_POLICY,
  GST_LM_DECODE_PARAM_N_KEEP,
  GST_LM_DECODE_PARAM_ACCEPTANCE,
  GST_LM_DECODE_PARAM_DRAFT_CHOICE,
  GST_LM_DECODE_PARAM_DRAFT_MAX,
  GST_LM_DECODE_PARAM_DRAFT_ADAPTIVE,
  GST_LM_DECODE_N_PARAMS
};

/* Installs the properties 1 to GST_LM_DECODE_N_PARAMS − 1. */
void gst_lm_decode_params_install (GObjectClass *klass);
/* All but the logit bias, which can be wrong. */
void gst_lm_decode_params_set (RunnelGenerationParams *params, guint id,
                               const GValue *value);
void gst_lm_decode_params_get (const RunnelGenerationParams *params, guint id,
                               GValue *value);
/* The error names the field of @bias (nullable). */
gboolean gst_lm_decode_params_set_bias (RunnelGenerationParams *params,
                                        const GstStructure *bias,
                                        GError **error);
/* What the request asks for itself. Fields that are no parameter of a reply
 * are for other elements. */
gboolean gst_lm_decode_params_override (RunnelGenerationParams *params,
                                        GstElement *element,
                                        const GstLmRequestMeta *meta,
                                        GError **error);

G_END_DECLS
