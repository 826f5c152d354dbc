/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A question as the forms of heads want it: segments that are tokenized each
 * for itself, so that the ends of options are where they are.
 */
#pragma once

#include "../formats/decision-head.h"
#include "../model/model.h"
#include "option-rows.h"
#include "question.h"

G_BEGIN_DECLS

typedef struct {
  RunnelTokenRun before;     /* isolated: behind the state; else from the
                              * text's very beginning */
  RunnelTokenRun *options;   /* [n] */
  guint *order;              /* [n]: which option of the question each is;
                              * NULL: isolated, in canonical order */
  RunnelTokenRun after;      /* ends with the deciding token */
  guint n;
} RunnelHeadPrompt;

RunnelHeadPrompt *runnel_head_prompt_new_isolated (RunnelDecisionHead *head,
                                                   RunnelModel *model,
                                                   RunnelQuestion *question,
                                                   GError **error);
/* @state: the text of the state. */
RunnelHeadPrompt *runnel_head_prompt_new_decision2 (RunnelModel *model,
                                                    RunnelQuestion *question,
                                                    const char *state,
                                                    GError **error);
/* Which option of @question, one with the same options, each is. */
const guint *runnel_head_prompt_get_order (const RunnelHeadPrompt *self,
                                           RunnelQuestion *question);
void runnel_head_prompt_free (RunnelHeadPrompt *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelHeadPrompt, runnel_head_prompt_free)

/* What stands before the state in the Decision 2.0 form. */
#define RUNNEL_DECISION2_CONTEXT "Context:\n"

G_END_DECLS
