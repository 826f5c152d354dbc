/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * How many guesses to verify. It measures what passes of so many rows cost
 * here and how often guesses are right, takes the number that promises the
 * most tokens per second, and none where one row at a time is faster. What
 * drafting may lose is bounded: a loss is paid from a balance that begins with
 * the time of one token, grows by a small part of the time spent and by what
 * drafting earns. Times are disturbed by other programs: single ones are never
 * trusted.
 */
#pragma once

#include "../model/drafter.h"

G_BEGIN_DECLS

#define RUNNEL_MAX_DRAFTERS 8
#define RUNNEL_COST_SAMPLES 5

/* The last times that something took, in seconds. */
typedef struct {
  double samples[RUNNEL_COST_SAMPLES];
  guint n;          /* in this reply, and those below */
  guint n_recalled; /* that stand for what earlier replies measured */
} RunnelCost;

/* What passes take on a machine, by their rows: kept from reply to reply. */
typedef struct {
  RunnelCost rows[RUNNEL_MAX_DRAFT + 2];
} RunnelPassCosts;

/* Of one drafter: how often the i-th guess was right where those before it
 * were, with older trials counting less. */
typedef struct {
  RunnelCost propose;
  double trials[RUNNEL_DRAFT_GRADES][RUNNEL_MAX_DRAFT];
  double hits[RUNNEL_DRAFT_GRADES][RUNNEL_MAX_DRAFT];
} RunnelDraftRecord;

typedef struct {
  gboolean adaptive; /* else whatever is proposed is verified */
  double balance;    /* in plain tokens */
  RunnelPassCosts costs;
  RunnelDraftRecord records[RUNNEL_MAX_DRAFTERS];
} RunnelDraftController;

/* @costs: as they are known; NULL: not at all. */
void runnel_draft_controller_init (RunnelDraftController *self,
                                   gboolean adaptive,
                                   const RunnelPassCosts *costs);

/* What earlier replies taught of a drafter, as if it were of a few trials. */
void runnel_draft_controller_recall (RunnelDraftController *self,
                                     guint drafter,
                                     const RunnelDraftRecord *record);

/* How many guesses to ask a drafter for, at most @max; 0: do not ask. */
guint runnel_draft_controller_plan (RunnelDraftController *self,
                                    guint drafter, guint max);
/* How many of the @n guesses that came to verify. */
guint runnel_draft_controller_cut (RunnelDraftController *self, guint drafter,
                                   guint grade, guint n);

/* A drafter was asked. */
void runnel_draft_controller_note_propose (RunnelDraftController *self,
                                           guint drafter, double seconds);
/* A pass of so many rows, 1 being plain, gave so many tokens. */
void runnel_draft_controller_note_pass (RunnelDraftController *self,
                                        guint n_rows, guint n_tokens,
                                        double seconds);
void runnel_draft_controller_note_accepted (RunnelDraftController *self,
                                            guint drafter, guint grade,
                                            guint n_verified,
                                            guint n_accepted);

G_END_DECLS
