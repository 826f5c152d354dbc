/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A question and its options before any state: read once, and kept for all
 * states that follow. Options do not see the state, nor the state the options;
 * what comes behind the state sees both.
 */
#pragma once

#include "option-rows.h"

G_BEGIN_DECLS

typedef struct {
  RunnelSequence *sequence;
  float *hidden;             /* [n][n_embd]: the last row of each option */
} RunnelStaticOptions;

/* @before, then @options side by side, then @closes. */
RunnelStaticOptions *
runnel_static_options_new (RunnelOptionRows *rows, guint context_length,
                           const RunnelTokenRun *before,
                           const RunnelTokenRun *options, guint n,
                           const RunnelTokenRun *closes, GError **error);
void runnel_static_options_free (RunnelStaticOptions *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelStaticOptions,
                               runnel_static_options_free)

/* The tokens of @state behind the options, in a sequence of their own. */
RunnelSequence *runnel_static_options_read (const RunnelStaticOptions *self,
                                            RunnelOptionRows *rows,
                                            RunnelSequence *state,
                                            GError **error);

G_END_DECLS
