/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "../api.h"
#include "question.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_DECISION (runnel_decision_get_type ())

/**
 * RunnelDecision:
 *
 * The answer to a question: a probability for each option. Immutable; a copy
 * is a reference.
 *
 * Since: 0.1
 */
typedef struct _RunnelDecision RunnelDecision;
RUNNEL_API GType runnel_decision_get_type (void);
RUNNEL_API RunnelDecision *runnel_decision_copy (const RunnelDecision *self);
RUNNEL_API void runnel_decision_free (RunnelDecision *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelDecision, runnel_decision_free)

RUNNEL_API RunnelQuestion *
runnel_decision_get_question (const RunnelDecision *self);
RUNNEL_API int runnel_decision_get_choice (const RunnelDecision *self);
RUNNEL_API double runnel_decision_get_probability (const RunnelDecision *self,
                                                   guint i);
RUNNEL_API double runnel_decision_get_logit (const RunnelDecision *self,
                                             guint i);
RUNNEL_API double runnel_decision_get_level (const RunnelDecision *self);
RUNNEL_API double runnel_decision_get_confidence (const RunnelDecision *self);
RUNNEL_API double runnel_decision_get_entropy (const RunnelDecision *self);
RUNNEL_API double runnel_decision_get_abstain (const RunnelDecision *self);

#define RUNNEL_TYPE_DECISIONS (runnel_decisions_get_type ())

/**
 * RunnelDecisions:
 *
 * The answers to several questions about one state, and what they cost.
 * Immutable; a copy is a reference.
 *
 * Since: 0.1
 */
typedef struct _RunnelDecisions RunnelDecisions;
RUNNEL_API GType runnel_decisions_get_type (void);
RUNNEL_API RunnelDecisions *runnel_decisions_copy (const RunnelDecisions *self);
RUNNEL_API void runnel_decisions_free (RunnelDecisions *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelDecisions, runnel_decisions_free)

/**
 * RunnelDecisionCost:
 * @state_tokens: tokens of the state that the questions were asked about
 * @rows: token rows forwarded for the answers, the state not counted
 * @logits_rows: rows of them whose logits were computed
 * @prior_rows: rows forwarded for priors that were not cached yet
 * @duration: nanoseconds
 *
 * What answers cost. All but @duration is the same on every machine.
 *
 * Since: 0.1
 */
typedef struct {
  guint64 state_tokens;
  guint64 rows;
  guint64 logits_rows;
  guint64 prior_rows;
  guint64 duration;
} RunnelDecisionCost;

RUNNEL_API guint runnel_decisions_get_n (const RunnelDecisions *self);
RUNNEL_API RunnelDecision *runnel_decisions_get (const RunnelDecisions *self,
                                                 guint i);
RUNNEL_API void runnel_decisions_get_cost (const RunnelDecisions *self,
                                           RunnelDecisionCost *ret_cost);
RUNNEL_API char *runnel_decisions_to_json (const RunnelDecisions *self)
    G_GNUC_WARN_UNUSED_RESULT;
RUNNEL_API gboolean runnel_decisions_sum_json (const char *json, gssize length,
                                               const char *question,
                                               const char *const *labels,
                                               double *ret_sum,
                                               GError **error);

G_END_DECLS
