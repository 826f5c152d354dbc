/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A question forwarded as a head wants it, and scored by it. The vocabulary
 * matrix is not touched.
 */
#pragma once

#include "../formats/decision-head.h"
#include "option-rows.h"
#include "question.h"

G_BEGIN_DECLS

/* @logits: as the options were given. *@ret_null is set where the head can
 * abstain. @state does not change. */
gboolean runnel_head_rows_score (RunnelDecisionHead *head,
                                 RunnelOptionRows *rows, RunnelSequence *state,
                                 RunnelQuestion *question, double *logits,
                                 double *ret_null, GError **error);
/* @text as the state that the form wants. */
gboolean runnel_head_rows_read (RunnelDecisionHead *head, RunnelModel *model,
                                const char *text, gssize length,
                                RunnelTokenRun *ret_run, GError **error);

G_END_DECLS
