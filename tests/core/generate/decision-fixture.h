/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A two-layer model, and the questions that tests of decisions ask of it.
 */
#pragma once

#include "generate/decider.h"
#include "tiny-head.h"
#include "tiny-model.h"

#define DECISION_TEXT "my card has not come, where is it?"
#define DECISION_CONTEXT 2048

typedef struct {
  RunnelModel *model;
  RunnelEngine *engine;      /* of one thread */
} DecisionFixture;

/* For g_test_add (). */
void decision_fixture_set_up (DecisionFixture *f, gconstpointer data);
void decision_fixture_tear_down (DecisionFixture *f, gconstpointer data);

RunnelEngine *decision_get_engine (RunnelModel *model, guint n_threads);
RunnelDecider *decision_make_decider (RunnelEngine *engine,
                                      RunnelDecisionHead *head);
RunnelDecisionHead *decision_make_head (const TinyHead *head);
/* One question, in an array. */
GPtrArray *decision_ask (RunnelQuestionType type, const char *instructions,
                         const char *const *options, guint n);
RunnelSequence *decision_read (RunnelDecider *decider, const char *text,
                               gboolean use_cache);
RunnelDecisions *decision_decide (RunnelDecider *decider,
                                  RunnelSequence *state, GPtrArray *questions);
/* One token after the other. */
void decision_append_slowly (RunnelSequence *sequence, const gint32 *tokens,
                             gsize n);
/* −1 when it is not there. */
int decision_find_label (RunnelQuestion *question, const char *label);
/* The same bits for every label, wherever it stands. */
void decision_assert_same (RunnelDecision *a, RunnelDecision *b);
