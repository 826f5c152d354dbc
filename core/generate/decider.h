/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "../api.h"
#include "../formats/decision-head.h"
#include "../model/sequence.h"
#include "decision.h"
#include "question.h"

G_BEGIN_DECLS

/**
 * RunnelDecisionLayout:
 * @RUNNEL_DECISION_LAYOUT_SHOWN: the options stand side by side before the
 *   row that decides, which sees all of them; none sees another
 * @RUNNEL_DECISION_LAYOUT_HIDDEN: nothing sees the options; each is only
 *   scored as a reply, for about half the rows
 * @RUNNEL_DECISION_LAYOUT_STATIC: instructions and options stand before the
 *   state, which is read anew behind them: they are computed once for all
 *   states. Neither they nor the state see the other; the row that decides
 *   sees both
 *
 * How the options of a question come before a model that has no head. A head
 * says itself how, but for a static layout, which heads of the form
 * %RUNNEL_DECISION_FORM_ISOLATED can be read in too.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_DECISION_LAYOUT_SHOWN,
  RUNNEL_DECISION_LAYOUT_HIDDEN,
  RUNNEL_DECISION_LAYOUT_STATIC,
} RunnelDecisionLayout;

#define RUNNEL_TYPE_DECISION_LAYOUT (runnel_decision_layout_get_type ())
RUNNEL_API GType runnel_decision_layout_get_type (void);

#define RUNNEL_TYPE_DECIDER (runnel_decider_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelDecider, runnel_decider, RUNNEL, DECIDER, GObject)

/**
 * RunnelDecider:
 *
 * Answers typed questions about a state with probabilities. Options are forks
 * of the state, computed side by side in one batch and in an order of their
 * own, so that the order in which they are given changes nothing, not even a
 * bit. What does not depend on the state is kept: token ids, the priors, and in
 * the static layout the keys and values of the options, which may take as much
 * memory as the engine's cache budget.
 *
 * To be used by one thread at a time.
 *
 * Since: 0.1
 */
RUNNEL_API RunnelDecider *runnel_decider_new (RunnelEngine *engine,
                                              RunnelDecisionHead *head,
                                              GError **error);
RUNNEL_API RunnelEngine *runnel_decider_get_engine (RunnelDecider *self);
RUNNEL_API RunnelDecisionHead *runnel_decider_get_head (RunnelDecider *self);
RUNNEL_API void runnel_decider_set_layout (RunnelDecider *self,
                                           RunnelDecisionLayout layout);
RUNNEL_API RunnelDecisionLayout runnel_decider_get_layout (RunnelDecider *self);
RUNNEL_API void runnel_decider_set_use_prior (RunnelDecider *self,
                                              gboolean use_prior);
RUNNEL_API gboolean runnel_decider_get_use_prior (RunnelDecider *self);
RUNNEL_API void
runnel_decider_set_prior_texts (RunnelDecider *self,
                                const char *const *texts);
RUNNEL_API const char *const *
runnel_decider_get_prior_texts (RunnelDecider *self);
RUNNEL_API void runnel_decider_set_length_exponent (RunnelDecider *self,
                                                    double exponent);
RUNNEL_API double runnel_decider_get_length_exponent (RunnelDecider *self);
RUNNEL_API void runnel_decider_set_temperature (RunnelDecider *self,
                                                RunnelQuestionType type,
                                                double temperature);
RUNNEL_API double runnel_decider_get_temperature (RunnelDecider *self,
                                                  RunnelQuestionType type);
RUNNEL_API RunnelSequence *runnel_decider_read (RunnelDecider *self,
                                                const char *text,
                                                gssize length,
                                                gboolean use_cache,
                                                GCancellable *cancellable,
                                                GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
RUNNEL_API RunnelDecisions *runnel_decider_decide (RunnelDecider *self,
                                                   RunnelSequence *state,
                                                   int n_state,
                                                   GPtrArray *questions,
                                                   GCancellable *cancellable,
                                                   GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
