/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The drafting side of a generation: which drafter of the sequence is asked
 * for how many guesses, what came of them, and what that cost.
 */
#pragma once

#include "draft-controller.h"
#include "generation.h"
#include "rejection.h"

G_BEGIN_DECLS

/* When something began: by the clock, and by what this thread had computed. */
typedef struct {
  gint64 clock;   /* µs */
  gint64 thread;  /* ns */
} RunnelDraftTimer;

typedef struct {
  RunnelEngine *engine; /* borrowed from the sequence */
  RunnelDraftController controller;
  RunnelDraftChoice choice;
  guint max_draft;
  RunnelDrafter *drafters[RUNNEL_MAX_DRAFTERS]; /* as the records */
  guint n_drafters;
  gboolean off[RUNNEL_MAX_DRAFTERS]; /* failed */

  RunnelProposal proposal; /* to be verified */
  RunnelDraftState *state; /* who made it; borrowed from the sequence; NULL:
                              there is none */
  guint record;

  RunnelDraftStats stats;
} RunnelGenerationDrafts;

void runnel_generation_drafts_init (RunnelGenerationDrafts *self,
                                    RunnelSequence *sequence,
                                    const RunnelGenerationParams *params);
void runnel_generation_drafts_clear (RunnelGenerationDrafts *self);

RunnelDraftTimer runnel_draft_timer_start (void);

/* Asks the drafters of the sequence; returns how many guesses to verify. */
guint runnel_generation_drafts_propose (RunnelGenerationDrafts *self,
                                        RunnelSequence *sequence,
                                        const RunnelDraftRequest *request);
/* The i-th guess, for rejection sampling. */
RunnelGuess runnel_generation_drafts_get_guess (
  const RunnelGenerationDrafts *self, guint i);
/* A pass with @n_guesses of them gave @n_tokens, the last of which is no
 * guess, or ended the reply. */
void runnel_generation_drafts_note_pass (RunnelGenerationDrafts *self,
                                         guint n_guesses, guint n_accepted,
                                         guint n_tokens,
                                         const RunnelDraftTimer *started);

G_END_DECLS
