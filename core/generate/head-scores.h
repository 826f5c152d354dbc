/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What a decision head computes of hidden rows. In binary64 and a fixed order,
 * so that the bits are the same everywhere.
 */
#pragma once

#include "../formats/decision-head.h"

G_BEGIN_DECLS

/* @candidates: [n][n_embd], @query: [n_embd], both behind the model's last
 * norm. *@ret_null is set where the head can abstain. */
void runnel_head_scores (RunnelDecisionHead *head, const float *candidates,
                         guint n, const float *query, double *logits,
                         double *ret_null);

/* The model's last norm, over @n_rows rows in place. */
void runnel_head_norm (const float *weight, guint n_embd, double epsilon,
                       float *rows, guint n_rows);

G_END_DECLS
