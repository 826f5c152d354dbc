/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "decision.h"

G_BEGIN_DECLS

/* What an answer is made of. @logits are those of the options in the order in
 * which they were given. */
typedef struct {
  const double *logits;
  gboolean can_abstain;
  double abstain_logit;
  double temperature;        /* above 0 */
  gboolean first_wins;       /* of equal ones the first given, else the first
                              * in canonical order */
} RunnelDecisionScores;

/* RUNNEL_ERROR_BAD_LOGITS when they are no numbers: NaN, +inf, nothing above
 * -inf. */
RunnelDecision *runnel_decision_new (RunnelQuestion *question,
                                     const RunnelDecisionScores *scores,
                                     GError **error);
/* Takes @decisions (of RunnelDecision). */
RunnelDecisions *runnel_decisions_new (GPtrArray *decisions,
                                       const RunnelDecisionCost *cost);

G_END_DECLS
