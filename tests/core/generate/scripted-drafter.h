/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A drafter that guesses what a test wrote down, right or wrong, and checks
 * what a state may count on: that it is fed the rows of its sequence, each
 * once and in order, and asked about the one behind them.
 */
#pragma once

#include "model/drafter.h"

G_BEGIN_DECLS

typedef struct {
  const char *id;            /* NULL: "scripted" */
  const gint32 *tokens;      /* [n_tokens]: the whole sequence to be */
  guint n_tokens;
  guint length;              /* guesses each time */
  gint wrong_at;             /* this one of them is wrong; -1: none */
  gboolean too_long;         /* gives 15 guesses whatever it was asked for */
  guint n_vocab;
  guint n_candidates;        /* above 0: draws each guess from so many tokens,
                                this many ids apart, equally likely */
  guint grade;
  guint taps[2], n_taps;
  guint work;                /* µs that a proposal takes */
} ScriptedDrafts;

/* @drafts and what it points to live longer. */
RunnelDrafter *scripted_drafter_new (const ScriptedDrafts *drafts);

/* What a state with taps was fed: [rows][n_taps][n_embd]. */
const GArray *scripted_state_get_taps (RunnelDraftState *state);

G_END_DECLS
