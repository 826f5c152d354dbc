/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "scheduler.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct _RunnelParticipant {
  RunnelParticipant *next;
  bool awaited;              /* took part in the last batch, or just came */
  bool submitted;            /* has a job in the queue */
};

struct RunnelScheduler {
  RunnelBatchFunc run;
  void *data;

  pthread_mutex_t mutex;     /* guards everything below */
  pthread_cond_t arrived;    /* a job or a departure: for the leader */
  pthread_cond_t changed;    /* a batch ended: for the waiting */
  RunnelParticipant *participants;
  RunnelJob *first, **last;  /* jobs that no batch has taken */
  bool led;                  /* somebody leads */
  int64_t first_arrival;     /* of the oldest job in the queue, ns */
  int64_t last_duration;     /* of the last batch, ns */
};

static int64_t
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C (1000000000) + t.tv_nsec;
}

RunnelScheduler *
runnel_scheduler_new (RunnelBatchFunc run, void *data)
{
  RunnelScheduler *self = calloc (1, sizeof *self);
  pthread_condattr_t attributes;

  if (self == NULL)
    return NULL;
  self->run = run;
  self->data = data;
  self->last = &self->first;
  pthread_mutex_init (&self->mutex, NULL);
  pthread_condattr_init (&attributes);
  pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
  pthread_cond_init (&self->arrived, &attributes);
  pthread_cond_init (&self->changed, &attributes);
  pthread_condattr_destroy (&attributes);
  return self;
}

void
runnel_scheduler_free (RunnelScheduler *self)
{
  pthread_cond_destroy (&self->changed);
  pthread_cond_destroy (&self->arrived);
  pthread_mutex_destroy (&self->mutex);
  free (self);
}

RunnelParticipant *
runnel_scheduler_register (RunnelScheduler *self)
{
  RunnelParticipant *participant = calloc (1, sizeof *participant);

  if (participant == NULL)
    abort ();
  participant->awaited = true;
  pthread_mutex_lock (&self->mutex);
  participant->next = self->participants;
  self->participants = participant;
  pthread_mutex_unlock (&self->mutex);
  return participant;
}

void
runnel_scheduler_unregister (RunnelScheduler *self,
                             RunnelParticipant *participant)
{
  RunnelParticipant **at;

  pthread_mutex_lock (&self->mutex);
  for (at = &self->participants; *at != participant; at = &(*at)->next)
    ;
  *at = participant->next;
  pthread_cond_signal (&self->arrived);
  pthread_mutex_unlock (&self->mutex);
  free (participant);
}

static bool
all_submitted_unlocked (RunnelScheduler *self)
{
  for (RunnelParticipant *p = self->participants; p != NULL; p = p->next)
    if (p->awaited && !p->submitted)
      return false;
  return true;
}

static bool
is_cancelled (const RunnelJob *job)
{
  return job->cancel != NULL && atomic_load (&job->cancel->set);
}

/* Waits for the awaited participants, but not for long. */
static void
gather_unlocked (RunnelScheduler *self, const RunnelJob *own)
{
  int64_t deadline = self->first_arrival + self->last_duration / 2;
  struct timespec until = { deadline / 1000000000, deadline % 1000000000 };

  while (!all_submitted_unlocked (self) && !is_cancelled (own)
      && now () < deadline)
    pthread_cond_timedwait (&self->arrived, &self->mutex, &until);
}

static void
find_end_unlocked (RunnelScheduler *self)
{
  for (self->last = &self->first; *self->last != NULL;)
    self->last = &(*self->last)->next;
}

/* Takes the next batch out of the queue: decode jobs and one other. */
static unsigned
take_batch_unlocked (RunnelScheduler *self, RunnelJob **jobs)
{
  RunnelJob **at = &self->first;
  bool has_prefill = false;
  unsigned n = 0;

  while (*at != NULL && n < RUNNEL_MAX_BATCH_JOBS) {
    RunnelJob *job = *at;

    if (job->participant == NULL && has_prefill) {
      at = &job->next;
      continue;
    }
    has_prefill |= job->participant == NULL;
    *at = job->next;
    job->taken = true;
    jobs[n++] = job;
  }
  find_end_unlocked (self);
  return n;
}

/* Takes a job that no batch has taken out of the queue. */
static void
withdraw_unlocked (RunnelScheduler *self, RunnelJob *job)
{
  RunnelJob **at;

  for (at = &self->first; *at != job; at = &(*at)->next)
    ;
  *at = job->next;
  find_end_unlocked (self);
  if (job->participant != NULL)
    job->participant->awaited = job->participant->submitted = false;
}

/* Runs the next batch, unless the leader's own job is cancelled first. */
static void
lead_unlocked (RunnelScheduler *self, const RunnelJob *own)
{
  RunnelJob *jobs[RUNNEL_MAX_BATCH_JOBS];
  unsigned n;
  int64_t start;

  gather_unlocked (self, own);
  if (is_cancelled (own))
    return;
  n = take_batch_unlocked (self, jobs);
  for (RunnelParticipant *p = self->participants; p != NULL; p = p->next)
    p->awaited = p->submitted;
  for (unsigned i = 0; i < n; i++)
    if (jobs[i]->participant != NULL)
      jobs[i]->participant->submitted = false;
  pthread_mutex_unlock (&self->mutex);

  start = now ();
  self->run (self->data, jobs, n);

  pthread_mutex_lock (&self->mutex);
  self->last_duration = now () - start;
  self->first_arrival = now ();
  for (unsigned i = 0; i < n; i++)
    jobs[i]->done = true;
}

bool
runnel_scheduler_submit (RunnelScheduler *self, RunnelJob *job)
{
  pthread_mutex_lock (&self->mutex);
  job->next = NULL;
  job->taken = job->done = false;
  if (self->first == NULL && !self->led)
    self->first_arrival = now ();
  *self->last = job;
  self->last = &job->next;
  if (job->participant != NULL)
    job->participant->awaited = job->participant->submitted = true;
  pthread_cond_signal (&self->arrived);

  while (!job->done) {
    if (!job->taken && is_cancelled (job)) {
      withdraw_unlocked (self, job);
      break;
    }
    if (self->led) {
      pthread_cond_wait (&self->changed, &self->mutex);
      continue;
    }
    self->led = true;
    lead_unlocked (self, job);
    self->led = false;
    pthread_cond_broadcast (&self->changed);
  }
  pthread_mutex_unlock (&self->mutex);
  return job->done;
}

void
runnel_scheduler_wake (RunnelScheduler *self)
{
  pthread_mutex_lock (&self->mutex);
  pthread_cond_broadcast (&self->arrived);
  pthread_cond_broadcast (&self->changed);
  pthread_mutex_unlock (&self->mutex);
}
