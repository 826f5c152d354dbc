/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "thread-team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

/* How often a thread looks before it sleeps: some tens of microseconds, more
 * than lie between two loops of a pass and less than a scheduler's slice. A
 * team with more threads than processors hardly looks: whom it waits for may
 * be waiting for its processor. */
#define SPINS 4000
#define SPINS_OVERLOADED 20

#define CACHE_LINE 64

/* What is written by several threads has a cache line of its own. */
#define ON_ITS_OWN _Alignas (CACHE_LINE)

typedef struct {
  ON_ITS_OWN RunnelTeam *team;
  unsigned index;
  pthread_t thread;
  pthread_cond_t started;    /* with the team's mutex */
  atomic_bool asleep;        /* or about to be */
} Worker;

struct RunnelTeam {
  unsigned n_threads;
  unsigned spins;
  unsigned n_active;         /* of this use, set under `use` */
  Worker *workers;           /* [n_threads]; the caller's is not used */
  bool pinned;
  cpu_set_t cpus;            /* where all compute, if pinned */
  cpu_set_t callers_cpus;    /* to be given back */
  pthread_mutex_t use;       /* held by the caller that uses the team */
  pthread_mutex_t mutex;     /* with the conditions, for those who sleep */
  pthread_cond_t finished;
  atomic_bool quit;

  /* The loop. Written by the caller before it starts it. */
  ON_ITS_OWN RunnelTeamFunc func;
  void *data;
  size_t n_items;
  size_t grain;

  ON_ITS_OWN _Atomic uint64_t loop;
  atomic_bool caller_sleeps;
  ON_ITS_OWN atomic_size_t next;     /* first item that nobody has taken */
};

/* A loop in one word: its number, how many threads may take part, whether it
 * is closed, and how many workers are inside. A worker enters only an open
 * loop, and the caller closes it when no items are left and waits for those
 * inside: one that has not come by then, since another program has its
 * processor, is not waited for. */
#define LOOP_INSIDE UINT64_C (0x3ff)
#define LOOP_CLOSED (UINT64_C (1) << 10)
#define LOOP_THREADS_SHIFT 11
#define LOOP_THREADS(loop) ((unsigned) ((loop) >> LOOP_THREADS_SHIFT) & 0x3ff)
#define LOOP_NUMBER_SHIFT 21
#define LOOP_NUMBER(loop) ((loop) >> LOOP_NUMBER_SHIFT)
_Static_assert (RUNNEL_TEAM_MAX_THREADS <= 0x3ff, "they can be counted");

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

/* Waits for a loop after number `seen`; returns its number. */
static uint64_t
wait_for_loop (Worker *worker, uint64_t seen)
{
  RunnelTeam *team = worker->team;
  uint64_t number;

  for (unsigned i = 0; i < team->spins; i++) {
    number = LOOP_NUMBER (atomic_load_explicit (&team->loop,
            memory_order_acquire));
    if (number != seen)
      return number;
    relax ();
  }
  pthread_mutex_lock (&team->mutex);
  atomic_store (&worker->asleep, true);
  while ((number = LOOP_NUMBER (atomic_load (&team->loop))) == seen)
    pthread_cond_wait (&worker->started, &team->mutex);
  atomic_store (&worker->asleep, false);
  pthread_mutex_unlock (&team->mutex);
  return number;
}

/* Whether the worker is inside loop `number` now. */
static bool
enter_loop (Worker *worker, uint64_t number)
{
  RunnelTeam *team = worker->team;
  uint64_t loop = atomic_load (&team->loop);

  do {
    if (LOOP_NUMBER (loop) != number || (loop & LOOP_CLOSED) != 0
        || worker->index >= LOOP_THREADS (loop))
      return false;
  } while (!atomic_compare_exchange_weak (&team->loop, &loop, loop + 1));
  return true;
}

static void
leave_loop (RunnelTeam *team)
{
  uint64_t loop = atomic_fetch_sub (&team->loop, 1);

  if ((loop & LOOP_CLOSED) == 0 || (loop & LOOP_INSIDE) != 1
      || !atomic_load (&team->caller_sleeps))
    return;
  pthread_mutex_lock (&team->mutex);
  pthread_cond_signal (&team->finished);
  pthread_mutex_unlock (&team->mutex);
}

/* Closes the loop and waits for the workers inside. */
static void
finish_loop (RunnelTeam *team)
{
  if ((atomic_fetch_or (&team->loop, LOOP_CLOSED) & LOOP_INSIDE) == 0)
    return;
  for (unsigned i = 0; i < team->spins; i++) {
    if ((atomic_load_explicit (&team->loop, memory_order_acquire)
            & LOOP_INSIDE) == 0)
      return;
    relax ();
  }
  pthread_mutex_lock (&team->mutex);
  atomic_store (&team->caller_sleeps, true);
  while ((atomic_load (&team->loop) & LOOP_INSIDE) != 0)
    pthread_cond_wait (&team->finished, &team->mutex);
  atomic_store (&team->caller_sleeps, false);
  pthread_mutex_unlock (&team->mutex);
}

static void *
worker_main (void *argument)
{
  Worker *worker = argument;
  RunnelTeam *team = worker->team;
  uint64_t seen = 0;

  if (team->pinned)
    sched_setaffinity (0, sizeof team->cpus, &team->cpus);
  runnel_fp_enter ();
  for (;;) {
    seen = wait_for_loop (worker, seen);
    if (atomic_load (&team->quit))
      return NULL;
    if (!enter_loop (worker, seen))
      continue;
    take_items (team, worker->index);
    leave_loop (team);
  }
}

/* Only those that take part are woken. */
static void
start_loop (RunnelTeam *team, unsigned n_threads)
{
  uint64_t loop = atomic_load_explicit (&team->loop, memory_order_relaxed);

  atomic_store (&team->loop, (LOOP_NUMBER (loop) + 1) << LOOP_NUMBER_SHIFT
      | (uint64_t) n_threads << LOOP_THREADS_SHIFT);
  for (unsigned i = 1; i < n_threads; i++) {
    if (!atomic_load (&team->workers[i].asleep))
      continue;
    pthread_mutex_lock (&team->mutex);
    pthread_cond_signal (&team->workers[i].started);
    pthread_mutex_unlock (&team->mutex);
  }
}

static bool
start_worker (RunnelTeam *team, unsigned index)
{
  Worker *worker = &team->workers[index];

  worker->team = team;
  worker->index = index;
  pthread_cond_init (&worker->started, NULL);
  if (pthread_create (&worker->thread, NULL, worker_main, worker) == 0)
    return true;
  pthread_cond_destroy (&worker->started);
  return false;
}

static unsigned
n_processors (const cpu_set_t *cpus)
{
  cpu_set_t set;

  if (cpus != NULL)
    return CPU_COUNT (cpus);
  return sched_getaffinity (0, sizeof set, &set) == 0 ? CPU_COUNT (&set) : 1;
}

/* Zeroed memory of whole cache lines. */
static void *
allocate_lines (size_t size)
{
  void *memory = aligned_alloc (CACHE_LINE, size);

  if (memory != NULL)
    memset (memory, 0, size);
  return memory;
}

RunnelTeam *
runnel_team_new (unsigned n_threads, const cpu_set_t *cpus)
{
  RunnelTeam *team = allocate_lines (sizeof *team);

  if (team == NULL)
    return NULL;
  team->workers = allocate_lines (n_threads * sizeof *team->workers);
  if (team->workers == NULL) {
    free (team);
    return NULL;
  }
  team->pinned = cpus != NULL;
  if (cpus != NULL)
    team->cpus = *cpus;
  team->n_active = n_threads;
  team->spins = n_threads <= n_processors (cpus) ? SPINS : SPINS_OVERLOADED;
  pthread_mutex_init (&team->use, NULL);
  pthread_mutex_init (&team->mutex, NULL);
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
  start_loop (team, team->n_threads);
  for (unsigned i = 1; i < team->n_threads; i++) {
    pthread_join (team->workers[i].thread, NULL);
    pthread_cond_destroy (&team->workers[i].started);
  }
  pthread_cond_destroy (&team->finished);
  pthread_mutex_destroy (&team->mutex);
  pthread_mutex_destroy (&team->use);
  free (team->workers);
  free (team);
}

unsigned
runnel_team_n_threads (const RunnelTeam *team)
{
  return team->n_threads;
}

unsigned
runnel_team_n_active (const RunnelTeam *team)
{
  return team->n_active;
}

void
runnel_team_lock (RunnelTeam *team, unsigned n_active)
{
  pthread_mutex_lock (&team->use);
  team->n_active = n_active < team->n_threads ? n_active : team->n_threads;
  if (team->pinned && sched_getaffinity (0, sizeof team->callers_cpus,
          &team->callers_cpus) == 0)
    sched_setaffinity (0, sizeof team->cpus, &team->cpus);
}

void
runnel_team_unlock (RunnelTeam *team)
{
  if (team->pinned)
    sched_setaffinity (0, sizeof team->callers_cpus, &team->callers_cpus);
  pthread_mutex_unlock (&team->use);
}

void
runnel_team_for (RunnelTeam *team, size_t n_items, size_t grain,
                 RunnelTeamFunc func, void *data)
{
  if (n_items == 0)
    return;
  if (team->n_active == 1 || n_items <= grain) {
    func (data, 0, 0, n_items);
    return;
  }
  team->func = func;
  team->data = data;
  team->n_items = n_items;
  team->grain = grain;
  atomic_store_explicit (&team->next, 0, memory_order_relaxed);
  start_loop (team, team->n_active);
  take_items (team, 0);
  finish_loop (team);
}
