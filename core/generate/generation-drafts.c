/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "generation-drafts.h"

#include <string.h>
#include <time.h>

#include "../model/engine-private.h"

/* Hidden rows that wait for a drafter which is not asked; more are fed to it
 * at once. */
#define MAX_LAG 256

/* A thread that computed for less than this part of the time did not compute,
 * but waited for one that did. */
#define MIN_THREAD_PART 0.125

/* What passes take is known by the engine, and how often a drafter is right by
 * the drafter, from reply to reply. */
static GMutex known_mutex; /* guards what hangs on engines and drafters */

static GQuark
costs_quark (void)
{
  return g_quark_from_static_string ("runnel-pass-costs");
}

static GQuark
record_quark (void)
{
  return g_quark_from_static_string ("runnel-draft-record");
}

/* Zeros where nothing is known. */
static void
recall (gpointer object, GQuark quark, gpointer ret_known, gsize size)
{
  gconstpointer known;

  g_mutex_lock (&known_mutex);
  known = g_object_get_qdata (object, quark);
  if (known != NULL)
    memcpy (ret_known, known, size);
  else
    memset (ret_known, 0, size);
  g_mutex_unlock (&known_mutex);
}

static void
remember (gpointer object, GQuark quark, gconstpointer known, gsize size)
{
  g_mutex_lock (&known_mutex);
  g_object_set_qdata_full (object, quark, g_memdup2 (known, size), g_free);
  g_mutex_unlock (&known_mutex);
}

void
runnel_generation_drafts_init (RunnelGenerationDrafts *self,
                               RunnelSequence *sequence,
                               const RunnelGenerationParams *params)
{
  const RunnelDrafts *drafts = runnel_sequence_get_drafts (sequence);
  RunnelPassCosts costs;
  RunnelDraftRecord record;

  self->engine = runnel_sequence_get_engine (sequence);
  recall (self->engine, costs_quark (), &costs, sizeof costs);
  runnel_draft_controller_init (&self->controller, params->adaptive_drafts,
                                &costs);
  /* By rejection, the choice must not depend on what was drawn. */
  self->choice = params->acceptance == RUNNEL_ACCEPTANCE_REJECTION
                   ? RUNNEL_DRAFT_CHOICE_FIRST
                   : params->draft_choice;
  self->max_draft = params->max_draft;
  self->n_drafters = MIN (runnel_drafts_count (drafts), RUNNEL_MAX_DRAFTERS);
  for (guint i = 0; i < self->n_drafters; i++) {
    self->drafters[i] = g_object_ref (
      runnel_draft_state_get_drafter (runnel_drafts_get (drafts, i)));
    recall (self->drafters[i], record_quark (), &record, sizeof record);
    runnel_draft_controller_recall (&self->controller, i, &record);
  }
}

void
runnel_generation_drafts_clear (RunnelGenerationDrafts *self)
{
  if (self->n_drafters > 0)
    remember (self->engine, costs_quark (), &self->controller.costs,
              sizeof self->controller.costs);
  for (guint i = 0; i < self->n_drafters; i++) {
    remember (self->drafters[i], record_quark (), &self->controller.records[i],
              sizeof self->controller.records[i]);
    g_object_unref (self->drafters[i]);
  }
}

static gint64
get_thread_time (void)
{
  struct timespec time;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * G_GINT64_CONSTANT (1000000000) + time.tv_nsec;
}

RunnelDraftTimer
runnel_draft_timer_start (void)
{
  return (RunnelDraftTimer){ g_get_monotonic_time (), get_thread_time () };
}

/* Since then by the clock, in µs. What it took, in seconds: this thread's time,
 * in which other programs do not count, unless another thread or a device did
 * the work. */
static gint64
stop_timer (const RunnelDraftTimer *started, double *ret_seconds)
{
  const gint64 elapsed = g_get_monotonic_time () - started->clock;
  const double seconds = (get_thread_time () - started->thread) / 1e9;

  *ret_seconds =
    seconds < MIN_THREAD_PART * elapsed / 1e6 ? elapsed / 1e6 : seconds;
  return elapsed;
}

/* A drafter that fails is not asked again: the reply needs none. */
static void
switch_off (RunnelGenerationDrafts *self, guint i, const GError *error)
{
  g_warning ("drafter %s is switched off for this reply: %s",
             runnel_drafter_get_id (self->drafters[i]), error->message);
  self->off[i] = TRUE;
}

/* The guesses of one drafter that are worth a pass. */
static guint
ask (RunnelGenerationDrafts *self, guint i, RunnelDraftState *state,
     RunnelSequence *sequence, const RunnelDraftRequest *request,
     RunnelProposal *proposal)
{
  const RunnelDraftTimer started = runnel_draft_timer_start ();
  RunnelDraftRequest own = *request;
  g_autoptr (GError) error = NULL;
  double seconds;
  gsize length;
  const gint32 *tokens = runnel_sequence_get_tokens (sequence, &length);

  own.max_tokens = runnel_draft_controller_plan (
    &self->controller, i, MIN (request->max_tokens, self->max_draft));
  if (own.max_tokens == 0 &&
      runnel_draft_state_get_lag (state, length) < MAX_LAG)
    return 0;
  proposal->n_tokens = 0;
  if (!runnel_draft_state_catch_up (state, tokens, length, &error) ||
      (own.max_tokens > 0 &&
       !runnel_draft_state_propose (state, &own, proposal, &error))) {
    switch_off (self, i, error);
    return 0;
  }
  self->stats.draft_time += stop_timer (&started, &seconds) * 1000;
  runnel_draft_controller_note_propose (&self->controller, i, seconds);
  return runnel_draft_controller_cut (
    &self->controller, i, proposal->grade,
    MIN (proposal->n_tokens, own.max_tokens));
}

guint
runnel_generation_drafts_propose (RunnelGenerationDrafts *self,
                                  RunnelSequence *sequence,
                                  const RunnelDraftRequest *request)
{
  const RunnelDrafts *drafts = runnel_sequence_get_drafts (sequence);
  guint best = 0;

  self->state = NULL;
  for (guint i = 0; i < self->n_drafters; i++) {
    RunnelDraftState *state = runnel_drafts_find (
      drafts, runnel_drafter_get_id (self->drafters[i]));
    RunnelProposal proposal;
    guint n;

    /* A shift may have taken it away. */
    if (state == NULL || self->off[i] || request->max_tokens == 0 ||
        self->max_draft == 0)
      continue;
    n = ask (self, i, state, sequence, request, &proposal);
    if (n <= best)
      continue;
    best = n;
    self->proposal = proposal;
    self->state = state;
    self->record = i;
    if (self->choice == RUNNEL_DRAFT_CHOICE_FIRST)
      break;
  }
  return best;
}

RunnelGuess
runnel_generation_drafts_get_guess (const RunnelGenerationDrafts *self,
                                    guint i)
{
  const RunnelProposal *proposal = &self->proposal;
  const gsize n = proposal->n_candidates;

  return (RunnelGuess){
    .token = (guint32) proposal->tokens[i],
    .n = n,
    .candidates = n > 0 ? proposal->candidates + i * n : NULL,
    .probabilities = n > 0 ? proposal->probabilities + i * n : NULL,
  };
}

void
runnel_generation_drafts_note_pass (RunnelGenerationDrafts *self,
                                    guint n_guesses, guint n_accepted,
                                    guint n_tokens,
                                    const RunnelDraftTimer *started)
{
  double seconds;
  const gint64 elapsed = stop_timer (started, &seconds);

  if (self->n_drafters == 0)
    return;
  runnel_draft_controller_note_pass (&self->controller, n_guesses + 1,
                                     n_tokens, seconds);
  self->stats.passes++;
  if (n_guesses == 0)
    return;
  runnel_draft_controller_note_accepted (&self->controller, self->record,
                                         self->proposal.grade, n_guesses,
                                         n_accepted);
  runnel_draft_state_accepted (self->state, n_guesses, n_accepted);
  self->stats.blocks++;
  self->stats.proposed += n_guesses;
  self->stats.accepted += n_accepted;
  self->stats.verify_time += elapsed * 1000;
}
