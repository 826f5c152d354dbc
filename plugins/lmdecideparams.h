/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* What lmdecide asks, and how: its properties. */
#pragma once

#include <gstrunnel.h>

G_BEGIN_DECLS

/* Property ids. */
enum {
  GST_LM_DECIDE_QUESTIONS = 1,
  GST_LM_DECIDE_LOCATION,
  GST_LM_DECIDE_INSTRUCTIONS,
  GST_LM_DECIDE_OPTIONS,
  GST_LM_DECIDE_QUESTION_TYPE,
  GST_LM_DECIDE_HEAD,
  GST_LM_DECIDE_LAYOUT,
  GST_LM_DECIDE_USE_PRIOR,
  GST_LM_DECIDE_PRIOR_LOCATION,
  GST_LM_DECIDE_LENGTH_EXPONENT,
  GST_LM_DECIDE_CHOICE_TEMPERATURE,
  GST_LM_DECIDE_YESNO_TEMPERATURE,
  GST_LM_DECIDE_SCORE_TEMPERATURE,
  GST_LM_DECIDE_N_PARAMS,
};

/* Not thread-safe: guarded by the element's object lock. */
typedef struct _GstLmDecideParams GstLmDecideParams;

GstLmDecideParams *gst_lm_decide_params_new (void);
GstLmDecideParams *gst_lm_decide_params_copy (const GstLmDecideParams *self);
void gst_lm_decide_params_free (GstLmDecideParams *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstLmDecideParams, gst_lm_decide_params_free)

void gst_lm_decide_params_install (GObjectClass *klass);
void gst_lm_decide_params_set (GstLmDecideParams *self, guint id,
                               const GValue *value);
void gst_lm_decide_params_get (const GstLmDecideParams *self, guint id,
                               GValue *value);

/* Reads the files and checks the questions that are there. */
gboolean gst_lm_decide_params_load (GstLmDecideParams *self, GError **error);
/* What a request brings of its own. */
gboolean gst_lm_decide_params_override (GstLmDecideParams *self,
                                        GstElement *element,
                                        const GstLmRequestMeta *meta,
                                        GError **error);
/* Of RunnelQuestion. An error when there are none. */
GPtrArray *gst_lm_decide_params_get_questions (const GstLmDecideParams *self,
                                               GError **error);
/* NULL: the model's own, if it has one. */
RunnelDecisionHead *
gst_lm_decide_params_get_head (const GstLmDecideParams *self);
void gst_lm_decide_params_apply (const GstLmDecideParams *self,
                                 RunnelDecider *decider);

G_END_DECLS
