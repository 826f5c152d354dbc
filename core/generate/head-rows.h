/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A question forwarded as a head wants it, and scored by it. The vocabulary
 * matrix is not touched.
 */
#pragma once

#include "../formats/decision-head.h"
#include "head-prompt.h"
#include "static-options.h"

G_BEGIN_DECLS

/* Whether a prompt, less @skipped tokens, fits behind @base. */
gboolean runnel_head_rows_check_room (RunnelSequence *base,
                                      const RunnelHeadPrompt *prompt,
                                      RunnelQuestion *question, guint skipped,
                                      GError **error);
/* @logits: as the options were given. *@ret_null is set where the head can
 * abstain. @fixed: the options of the static layout, or NULL. @state does not
 * change. */
gboolean runnel_head_rows_score_isolated (RunnelDecisionHead *head,
                                          RunnelOptionRows *rows,
                                          RunnelSequence *state,
                                          RunnelQuestion *question,
                                          const RunnelHeadPrompt *prompt,
                                          const RunnelStaticOptions *fixed,
                                          double *logits, double *ret_null,
                                          GError **error);
gboolean runnel_head_rows_score_decision2 (RunnelDecisionHead *head,
                                           RunnelOptionRows *rows,
                                           RunnelSequence *state,
                                           RunnelQuestion *question,
                                           double *logits, GError **error);
/* @text as the state that the form wants. */
gboolean runnel_head_rows_read (RunnelDecisionHead *head, RunnelModel *model,
                                const char *text, gssize length,
                                RunnelTokenRun *ret_run, GError **error);

G_END_DECLS
