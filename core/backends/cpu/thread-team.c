/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "thread-team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "kernels.h"

/* How often a thread looks before it sleeps: some tens of microseconds, more
 * than lie between two loops of a pass and less than a scheduler's slice. A
 * team with more threads than processors hardly looks: whom it waits for may
 * be waiting for its processor. */
#define SPINS 4000
#define SPINS_OVERLOADED 20

struct RunnelTeam {
  unsigned n_threads;
  unsigned spins;
  pthread_t *threads;        /* n_threads − 1 of them */
  pthread_mutex_t use;       /* held by the caller that uses the team */

  /* The loop. Written by the caller before it advances the epoch. */
  RunnelTeamFunc func;
  void *data;
  size_t n_items;
  size_t grain;
  atomic_size_t next;        /* first item that nobody has taken */

  atomic_uint epoch;         /* advanced to start a loop */
  atomic_uint busy;          /* workers that have not finished it */
  atomic_bool quit;

  pthread_mutex_t mutex;     /* with the conditions, for those who sleep */
  pthread_cond_t started;
  pthread_cond_t finished;
  atomic_uint sleepers;      /* workers asleep or about to be */
  atomic_bool caller_sleeps;
};

typedef struct {
  RunnelTeam *team;
  unsigned index;
} Worker;

static inline void
relax (void)
{
#if defined (__x86_64__) || defined (__i386__)
  __builtin_ia32_pause ();
#elif defined (__aarch64__)
  __asm__ volatile ("yield");
#endif
}

static void
take_items (RunnelTeam *team, unsigned thread)
{
  for (;;) {
    size_t begin = atomic_fetch_add_explicit (&team->next, team->grain,
        memory_order_relaxed);
    size_t end;

    if (begin >= team->n_items)
      return;
    end = begin + team->grain < team->n_items ? begin + team->grain
                                              : team->n_items;
    team->func (team->data, thread, begin, end);
  }
}

/* Waits until the epoch is no longer `seen`; returns the new one. */
static unsigned
wait_for_epoch (RunnelTeam *team, unsigned seen)
{
  unsigned epoch;

  for (unsigned i = 0; i < team->spins; i++) {
    epoch = atomic_load_explicit (&team->epoch, memory_order_acquire);
    if (epoch != seen)
      return epoch;
    relax ();
  }
  pthread_mutex_lock (&team->mutex);
  atomic_fetch_add (&team->sleepers, 1);
  while ((epoch = atomic_load (&team->epoch)) == seen)
    pthread_cond_wait (&team->started, &team->mutex);
  atomic_fetch_sub (&team->sleepers, 1);
  pthread_mutex_unlock (&team->mutex);
  return epoch;
}

static void
wait_for_workers (RunnelTeam *team)
{
  for (unsigned i = 0; i < team->spins; i++) {
    if (atomic_load_explicit (&team->busy, memory_order_acquire) == 0)
      return;
    relax ();
  }
  pthread_mutex_lock (&team->mutex);
  atomic_store (&team->caller_sleeps, true);
  while (atomic_load (&team->busy) != 0)
    pthread_cond_wait (&team->finished, &team->mutex);
  atomic_store (&team->caller_sleeps, false);
  pthread_mutex_unlock (&team->mutex);
}

static void *
worker_main (void *argument)
{
  Worker worker = *(Worker *) argument;
  RunnelTeam *team = worker.team;
  unsigned seen = 0;

  free (argument);
  runnel_fp_enter ();
  for (;;) {
    seen = wait_for_epoch (team, seen);
    if (atomic_load (&team->quit))
      return NULL;
    take_items (team, worker.index);
    if (atomic_fetch_sub (&team->busy, 1) == 1
        && atomic_load (&team->caller_sleeps)) {
      pthread_mutex_lock (&team->mutex);
      pthread_cond_signal (&team->finished);
      pthread_mutex_unlock (&team->mutex);
    }
  }
}

static void
start_loop (RunnelTeam *team)
{
  atomic_fetch_add (&team->epoch, 1);
  if (atomic_load (&team->sleepers) == 0)
    return;
  pthread_mutex_lock (&team->mutex);
  pthread_cond_broadcast (&team->started);
  pthread_mutex_unlock (&team->mutex);
}

static bool
start_worker (RunnelTeam *team, unsigned index)
{
  Worker *worker = malloc (sizeof *worker);

  if (worker == NULL)
    return false;
  worker->team = team;
  worker->index = index;
  if (pthread_create (&team->threads[index - 1], NULL, worker_main, worker)
      == 0)
    return true;
  free (worker);
  return false;
}

static unsigned
n_processors (void)
{
  cpu_set_t set;

  return sched_getaffinity (0, sizeof set, &set) == 0 ? CPU_COUNT (&set) : 1;
}

RunnelTeam *
runnel_team_new (unsigned n_threads)
{
  RunnelTeam *team = calloc (1, sizeof *team);

  if (team == NULL)
    return NULL;
  team->threads = calloc (n_threads, sizeof *team->threads);
  if (team->threads == NULL) {
    free (team);
    return NULL;
  }
  team->spins = n_threads <= n_processors () ? SPINS : SPINS_OVERLOADED;
  pthread_mutex_init (&team->use, NULL);
  pthread_mutex_init (&team->mutex, NULL);
  pthread_cond_init (&team->started, NULL);
  pthread_cond_init (&team->finished, NULL);
  for (team->n_threads = 1; team->n_threads < n_threads; team->n_threads++)
    if (!start_worker (team, team->n_threads)) {
      runnel_team_free (team);
      return NULL;
    }
  return team;
}

void
runnel_team_free (RunnelTeam *team)
{
  if (team == NULL)
    return;
  atomic_store (&team->quit, true);
  start_loop (team);
  for (unsigned i = 1; i < team->n_threads; i++)
    pthread_join (team->threads[i - 1], NULL);
  pthread_cond_destroy (&team->finished);
  pthread_cond_destroy (&team->started);
  pthread_mutex_destroy (&team->mutex);
  pthread_mutex_destroy (&team->use);
  free (team->threads);
  free (team);
}

unsigned
runnel_team_n_threads (const RunnelTeam *team)
{
  return team->n_threads;
}

void
runnel_team_lock (RunnelTeam *team)
{
  pthread_mutex_lock (&team->use);
}

void
runnel_team_unlock (RunnelTeam *team)
{
  pthread_mutex_unlock (&team->use);
}

void
runnel_team_for (RunnelTeam *team, size_t n_items, size_t grain,
                 RunnelTeamFunc func, void *data)
{
  if (n_items == 0)
    return;
  if (team->n_threads == 1 || n_items <= grain) {
    func (data, 0, 0, n_items);
    return;
  }
  team->func = func;
  team->data = data;
  team->n_items = n_items;
  team->grain = grain;
  atomic_store_explicit (&team->next, 0, memory_order_relaxed);
  atomic_store_explicit (&team->busy, team->n_threads - 1,
      memory_order_relaxed);
  start_loop (team);
  take_items (team, 0);
  wait_for_workers (team);
}
