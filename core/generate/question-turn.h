/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A question as a turn of the user, by the model's own chat template, or as
 * plain text where there is none.
 */
#pragma once

#include "../model/model.h"
#include "option-rows.h"
#include "question.h"

G_BEGIN_DECLS

typedef struct {
  RunnelTokenRun before;     /* up to where the options stand */
  RunnelTokenRun after;      /* from there to where the reply begins */
  RunnelTokenRun closes;     /* the part of it that ends the turn, for a state
                              * that comes behind the options */
  RunnelTokenRun replies;    /* where the reply begins behind such a state */
  RunnelTokenRun *shown;     /* [n], canonical order: the options to be seen */
  RunnelTokenRun *labels;    /* [n], canonical order: the replies to score */
  guint n;
} RunnelQuestionTurn;

RunnelQuestionTurn *runnel_question_turn_new (RunnelModel *model,
                                              RunnelQuestion *question,
                                              GError **error);
void runnel_question_turn_free (RunnelQuestionTurn *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelQuestionTurn, runnel_question_turn_free)

/* @text as the turn that questions follow. */
gboolean runnel_question_turn_read (RunnelModel *model, const char *text,
                                    gssize length, RunnelTokenRun *ret_run,
                                    GError **error);

G_END_DECLS
