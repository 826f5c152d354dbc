/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Merges the work of concurrent callers into batches. There is no thread of
 * its own: one of the waiting callers leads, forms the next batch and runs it
 * for all. Only C11 and pthreads.
 *
 * A running generation is a *participant*. A batch starts when all awaited
 * participants have submitted, or half the last batch's time after the first
 * job came; a participant that missed a batch is not awaited until it
 * submits again. A batch holds all decode jobs and at most one prefill chunk,
 * in the order of arrival.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct RunnelScheduler RunnelScheduler;
typedef struct _RunnelParticipant RunnelParticipant;

/* Set by anybody, at any time; then runnel_scheduler_wake. */
typedef struct {
  atomic_bool set;
} RunnelCancel;

typedef struct RunnelJob RunnelJob;
struct RunnelJob {
  void *data;                      /* the caller's */
  RunnelParticipant *participant;  /* NULL: a prefill chunk or one-off work */
  const RunnelCancel *cancel;      /* or NULL */

  RunnelJob *next;                 /* the scheduler's own from here on */
  bool taken;
  bool done;
};

typedef void (*RunnelBatchFunc) (void *data, RunnelJob **jobs,
                                 unsigned n_jobs);

#define RUNNEL_MAX_BATCH_JOBS 64

RunnelScheduler *runnel_scheduler_new (RunnelBatchFunc run, void *data);
void runnel_scheduler_free (RunnelScheduler *scheduler);

RunnelParticipant *runnel_scheduler_register (RunnelScheduler *scheduler);
void runnel_scheduler_unregister (RunnelScheduler *scheduler,
                                  RunnelParticipant *participant);

/* Submits and waits until a batch with this job has run. FALSE if it was
 * cancelled before a batch took it; then nothing was done. */
bool runnel_scheduler_submit (RunnelScheduler *scheduler, RunnelJob *job);
/* Lets those who wait look at their cancel flags. */
void runnel_scheduler_wake (RunnelScheduler *scheduler);
