/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Labels as replies to a question: how likely a model without a head holds
 * them.
 */
#pragma once

#include "decider.h"
#include "option-rows.h"
#include "question-turn.h"
#include "static-options.h"

G_BEGIN_DECLS

/* Whether the question fits behind @state, in the worst case. */
gboolean runnel_label_rows_check_room (RunnelDecisionLayout layout,
                                       RunnelSequence *state,
                                       RunnelQuestion *question,
                                       const RunnelQuestionTurn *turn,
                                       GError **error);
/* The log-likelihoods of the labels, in canonical order. @fixed: the options
 * of the static layout, else NULL. @state does not change. */
gboolean runnel_label_rows_score (RunnelDecisionLayout layout,
                                  RunnelOptionRows *rows,
                                  RunnelSequence *state,
                                  const RunnelQuestionTurn *turn,
                                  const RunnelStaticOptions *fixed,
                                  double *log_likelihoods, GError **error);

G_END_DECLS
