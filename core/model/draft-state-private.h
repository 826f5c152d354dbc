/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What sequences, batches and the prefix cache do with draft states. A state
 * lags behind its sequence: hidden rows that a batch gave it wait until it is
 * fed, so that rows of rejected guesses cost nothing.
 */
#pragma once

#include "drafter.h"

G_BEGIN_DECLS

/* Room for the taps of @n rows that a batch is about to compute, behind those
 * that wait: [n][n_taps][n_embd]; NULL if the drafter taps nothing. Valid
 * until the next call. */
float *runnel_draft_state_expect (RunnelDraftState *self, guint n);
/* The sequence has @length rows now: forgets what is behind them. */
void runnel_draft_state_settle (RunnelDraftState *self, guint length);
/* Feeds it the rows up to @length of @tokens. */
gboolean runnel_draft_state_catch_up (RunnelDraftState *self,
                                      const gint32 *tokens, guint length,
                                      GError **error);
/* Rows of a sequence of @length that it has not been fed. */
guint runnel_draft_state_get_lag (RunnelDraftState *self, guint length);
RunnelDraftState *runnel_draft_state_fork (RunnelDraftState *self);
gboolean runnel_draft_state_propose (RunnelDraftState *self,
                                     const RunnelDraftRequest *request,
                                     RunnelProposal *proposal,
                                     GError **error);
void runnel_draft_state_accepted (RunnelDraftState *self, guint n_proposed,
                                  guint n_accepted);
gsize runnel_draft_state_get_bytes (RunnelDraftState *self);
/* NULL if it can be fed anew. */
GBytes *runnel_draft_state_save (RunnelDraftState *self);

/* A state with nothing in it. */
RunnelDraftState *runnel_drafter_new_state (RunnelDrafter *self,
                                            RunnelEngine *engine,
                                            GError **error);
RunnelDraftState *runnel_drafter_load_state (RunnelDrafter *self,
                                             RunnelEngine *engine,
                                             GBytes *image, guint n_rows,
                                             GError **error);

G_END_DECLS
