/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "../api.h"
#include "../generate/question.h"

G_BEGIN_DECLS

/**
 * RunnelDecisionForm:
 * @RUNNEL_DECISION_FORM_DECISION2: Decision 2.0: one causal prompt, options as
 *   they are given, read at the end of each option and at the last token
 * @RUNNEL_DECISION_FORM_ISOLATED: our own: options as forks that do not see
 *   each other, a deciding token that sees all, and perhaps an option for none
 *   of them
 *
 * How a head wants its prompt, and what it reads of it.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_DECISION_FORM_DECISION2,
  RUNNEL_DECISION_FORM_ISOLATED,
} RunnelDecisionForm;

#define RUNNEL_TYPE_DECISION_FORM (runnel_decision_form_get_type ())
RUNNEL_API GType runnel_decision_form_get_type (void);

#define RUNNEL_TYPE_DECISION_HEAD (runnel_decision_head_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelDecisionHead, runnel_decision_head, RUNNEL, DECISION_HEAD, GObject)

/**
 * RunnelDecisionHead:
 *
 * A head that scores options by a model's last hidden rows, from a file:
 * docs/decisions.md. Immutable and safe to use from several threads.
 *
 * Since: 0.1
 */
RUNNEL_API RunnelDecisionHead *runnel_decision_head_open (const char *path,
                                                          GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
RUNNEL_API gboolean runnel_decision_head_save (RunnelDecisionHead *self,
                                               const char *path,
                                               GError **error);
RUNNEL_API const char *runnel_decision_head_get_path (RunnelDecisionHead *self);
RUNNEL_API RunnelDecisionForm
runnel_decision_head_get_form (RunnelDecisionHead *self);
RUNNEL_API guint runnel_decision_head_get_n_embd (RunnelDecisionHead *self);
RUNNEL_API guint runnel_decision_head_get_head_dim (RunnelDecisionHead *self);
RUNNEL_API double
runnel_decision_head_get_temperature (RunnelDecisionHead *self,
                                      RunnelQuestionType type);
RUNNEL_API gboolean
runnel_decision_head_get_can_abstain (RunnelDecisionHead *self);

G_END_DECLS
