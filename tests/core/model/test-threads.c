/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The GLib-free threaded code: thread team, pages, scheduler and cancel flags.
 * Built also under ThreadSanitizer, so it uses only C11 and pthreads and
 * prints TAP itself.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/thread-team.h"
#include "model/page-arena.h"
#include "model/pages.h"
#include "model/scheduler.h"

static unsigned n_tests, n_failed;

static void
report (const char *name, bool ok)
{
  printf ("%s %u %s\n", ok ? "ok" : "not ok", ++n_tests, name);
  fflush (stdout);
  n_failed += !ok;
}

/* ---- The team ------------------------------------------------------------ */

#define N_ITEMS 1000

/* Plain memory: the team's own synchronisation must order it. */
static void
count_items (void *data, unsigned thread, size_t begin, size_t end)
{
  unsigned *counts = data;

  for (size_t i = begin; i < end; i++)
    counts[i]++;
}

static bool
run_loops (unsigned n_threads, unsigned n_loops)
{
  RunnelTeam *team = runnel_team_new (n_threads, NULL);
  unsigned *counts = calloc (N_ITEMS, sizeof *counts);
  bool ok = team != NULL && runnel_team_n_threads (team) == n_threads;

  runnel_team_lock (team, n_threads);
  for (unsigned loop = 0; loop < n_loops; loop++) {
    size_t n = loop % 7 == 0 ? 1 : loop % 5 == 0 ? 3 : N_ITEMS;

    /* Other numbers of threads take turns. */
    if (loop % 3 == 0) {
      runnel_team_unlock (team);
      runnel_team_lock (team, 1 + loop % n_threads);
      ok &= runnel_team_n_active (team) == 1 + loop % n_threads;
    }
    memset (counts, 0, N_ITEMS * sizeof *counts);
    runnel_team_for (team, n, 1 + loop % 9, count_items, counts);
    for (size_t i = 0; i < N_ITEMS; i++)
      ok &= counts[i] == (i < n);
    /* Now and then the workers fall asleep. */
    if (loop % 50 == 0)
      nanosleep (&(struct timespec) { 0, 1000000 }, NULL);
  }
  runnel_team_unlock (team);
  runnel_team_free (team);
  free (counts);
  return ok;
}

static void
test_team (void)
{
  report ("team of 1", run_loops (1, 100));
  report ("team of 2", run_loops (2, 300));
  report ("team of 4", run_loops (4, 300));
  report ("team of 8", run_loops (8, 100));
}

typedef struct {
  RunnelTeam *team;
  unsigned counts[N_ITEMS];
  bool ok;
} User;

static void *
use_team (void *data)
{
  User *user = data;

  user->ok = true;
  for (unsigned i = 0; i < 50; i++) {
    runnel_team_lock (user->team, 1 + i % 3);
    memset (user->counts, 0, sizeof user->counts);
    runnel_team_for (user->team, N_ITEMS, 10, count_items, user->counts);
    for (unsigned k = 0; k < N_ITEMS; k++)
      user->ok &= user->counts[k] == 1;
    runnel_team_unlock (user->team);
  }
  return NULL;
}

static void
test_team_is_shared (void)
{
  RunnelTeam *team = runnel_team_new (3, NULL);
  static User users[3];
  pthread_t threads[3];
  bool ok = true;

  for (unsigned i = 0; i < 3; i++) {
    users[i].team = team;
    pthread_create (&threads[i], NULL, use_team, &users[i]);
  }
  for (unsigned i = 0; i < 3; i++) {
    pthread_join (threads[i], NULL);
    ok &= users[i].ok;
  }
  runnel_team_free (team);
  report ("three users of a team", ok);
}

/* ---- Pages --------------------------------------------------------------- */

typedef struct {
  RunnelPagePool *pool;
  RunnelPage *page;
  unsigned claims;           /* of single rows of the shared page */
  bool ok;
} Holder;

static void *
hold_pages (void *data)
{
  Holder *holder = data;

  holder->ok = true;
  for (uint32_t row = 0; row < 32; row++)
    if (runnel_page_claim (holder->page, row, 1)) {
      runnel_page_data (holder->page)[row]++;
      holder->claims++;
    }
  for (unsigned i = 0; i < 200; i++) {
    RunnelPage *own = runnel_page_new (holder->pool);

    if (own == NULL)
      continue;              /* over the limit: allowed */
    holder->ok &= runnel_page_data (own)[63] == 0;
    runnel_page_data (own)[63] = 1;
    holder->ok &= !runnel_page_is_shared (own);
    runnel_page_unref (runnel_page_ref (own));
    runnel_page_unref (own);
  }
  runnel_page_unref (holder->page);
  return NULL;
}

static void
test_pages (void)
{
  RunnelPagePool *pool = runnel_page_pool_new (32, 64);
  RunnelPage *page = runnel_page_new (pool);
  Holder holders[4];
  pthread_t threads[4];
  unsigned claims = 0;
  bool ok = true;

  runnel_page_pool_set_limit (pool, 3 * 64);
  for (unsigned i = 0; i < 4; i++) {
    holders[i] = (Holder) { pool, runnel_page_ref (page), 0, false };
    pthread_create (&threads[i], NULL, hold_pages, &holders[i]);
  }
  for (unsigned i = 0; i < 4; i++) {
    pthread_join (threads[i], NULL);
    claims += holders[i].claims;
    ok &= holders[i].ok;
  }
  /* Rows are claimed in order and once each. */
  ok &= claims <= 32;
  for (unsigned row = 0; row < 32; row++)
    ok &= runnel_page_data (page)[row] == (row < claims);
  ok &= runnel_page_pool_peak (pool) <= 3 * 64;
  ok &= runnel_page_pool_bytes (pool) == 64;
  runnel_page_unref (page);
  ok &= runnel_page_pool_bytes (pool) == 0;
  runnel_page_pool_unref (pool);
  report ("pages shared by four holders", ok && claims > 0);
}

/* Pages on huge pages: zeroed, also when used before, apart from each other,
 * and no more huge pages than they lie in. */
#define HUGE_TEST_BYTES ((size_t) 700000)
#define HUGE_TEST_PAGES 60

static bool
is_filled (const uint8_t *data, uint8_t value)
{
  return data[0] == value
      && memcmp (data, data + 1, HUGE_TEST_BYTES - 1) == 0;
}

static void *
take_and_give_back (void *data)
{
  RunnelPageArena *arena = data;
  bool ok = true;

  for (unsigned i = 0; i < 40; i++) {
    uint8_t *pages[3];

    for (unsigned k = 0; k < 3; k++) {
      pages[k] = runnel_page_arena_take (arena);
      ok &= is_filled (pages[k], 0);
      memset (pages[k], 1 + k, HUGE_TEST_BYTES);
    }
    for (unsigned k = 0; k < 3; k++) {
      ok &= is_filled (pages[k], 1 + k);
      runnel_page_arena_give_back (arena, pages[k]);
    }
  }
  return ok ? data : NULL;
}

static void
test_arena (void)
{
  RunnelPageArena *arena = runnel_page_arena_new (HUGE_TEST_BYTES);
  const size_t huge = 2 << 20;
  uint8_t *pages[HUGE_TEST_PAGES];
  pthread_t threads[3];
  bool ok = arena != NULL;

  for (unsigned i = 0; i < HUGE_TEST_PAGES; i++) {
    pages[i] = runnel_page_arena_take (arena);
    ok &= is_filled (pages[i], 0);
    memset (pages[i], 1 + i, HUGE_TEST_BYTES);
  }
  ok &= runnel_page_arena_bytes (arena)
      <= HUGE_TEST_PAGES * HUGE_TEST_BYTES + 2 * huge;
  /* All but every seventh, from both ends. */
  for (unsigned i = 0; i < HUGE_TEST_PAGES; i++) {
    unsigned page = i % 2 == 0 ? i / 2 : HUGE_TEST_PAGES - 1 - i / 2;

    if (page % 7 != 0)
      runnel_page_arena_give_back (arena, pages[page]);
  }
  ok &= runnel_page_arena_bytes (arena)
      <= (HUGE_TEST_PAGES / 7 + 1) * 2 * huge;
  for (unsigned i = 0; i < 3; i++)
    pthread_create (&threads[i], NULL, take_and_give_back, arena);
  for (unsigned i = 0; i < 3; i++) {
    void *result;

    pthread_join (threads[i], &result);
    ok &= result != NULL;
  }
  for (unsigned i = 0; i < HUGE_TEST_PAGES; i += 7) {
    ok &= is_filled (pages[i], 1 + i);
    runnel_page_arena_give_back (arena, pages[i]);
  }
  ok &= runnel_page_arena_bytes (arena) == 0;
  runnel_page_arena_free (arena);
  report ("pages on huge pages", ok);
}

/* A pool changes over to them once it is large, and not under a limit. */
static void
test_pool_of_huge_pages (void)
{
  RunnelPagePool *pool = runnel_page_pool_new (32, HUGE_TEST_BYTES);
  RunnelPage *pages[HUGE_TEST_PAGES];
  bool ok = true;

  runnel_page_pool_use_huge_pages (pool);
  for (unsigned round = 0; round < 2; round++) {
    runnel_page_pool_set_limit (pool,
        round == 0 ? 0 : HUGE_TEST_PAGES * HUGE_TEST_BYTES);
    for (unsigned i = 0; i < HUGE_TEST_PAGES; i++) {
      pages[i] = runnel_page_new (pool);
      ok &= is_filled (runnel_page_data (pages[i]), 0);
      memset (runnel_page_data (pages[i]), 1 + i, HUGE_TEST_BYTES);
    }
    ok &= round == 0 || runnel_page_new (pool) == NULL;
    for (unsigned i = 0; i < HUGE_TEST_PAGES; i++) {
      ok &= is_filled (runnel_page_data (pages[i]), 1 + i);
      runnel_page_unref (pages[i]);
    }
    ok &= runnel_page_pool_bytes (pool) == 0;
  }
  runnel_page_pool_unref (pool);
  report ("a pool that grows onto huge pages", ok);
}

static void
test_claims (void)
{
  RunnelPagePool *pool = runnel_page_pool_new (32, 64);
  RunnelPage *page = runnel_page_new (pool);
  bool ok = runnel_page_claim (page, 0, 10);

  ok &= !runnel_page_claim (page, 0, 1);
  ok &= !runnel_page_claim (page, 10, 23);
  ok &= runnel_page_claim (page, 10, 22);
  runnel_page_unclaim (page, 20, 32);
  ok &= runnel_page_claim (page, 20, 12);
  runnel_page_trim (page, 5);
  ok &= runnel_page_claim (page, 5, 1);
  runnel_page_ref (page);
  runnel_page_trim (page, 0);
  ok &= !runnel_page_claim (page, 0, 1);
  runnel_page_unref (page);
  runnel_page_unref (page);
  runnel_page_pool_unref (pool);
  report ("claims of rows", ok);
}

/* ---- The scheduler ------------------------------------------------------- */

typedef struct {
  unsigned n_batches, n_full, n_jobs, n_prefills_over_one;
  unsigned pause_us;
} Log;

typedef struct {
  int value;
  bool prefill;
} Work;

static void
run_batch (void *data, RunnelJob **jobs, unsigned n_jobs)
{
  Log *log = data;
  unsigned prefills = 0, decodes = 0;

  for (unsigned i = 0; i < n_jobs; i++) {
    Work *work = jobs[i]->data;

    work->value++;
    prefills += jobs[i]->participant == NULL;
    decodes += jobs[i]->participant != NULL;
  }
  log->n_batches++;
  log->n_jobs += n_jobs;
  log->n_full += decodes == 2;
  log->n_prefills_over_one += prefills > 1;
  nanosleep (&(struct timespec) { 0, log->pause_us * 1000 }, NULL);
}

typedef struct {
  RunnelScheduler *scheduler;
  bool prefill;
  unsigned n;
  bool ok;
} Caller;

static void *
submit_jobs (void *data)
{
  Caller *caller = data;
  RunnelParticipant *participant
      = caller->prefill ? NULL : runnel_scheduler_register (caller->scheduler);

  caller->ok = true;
  for (unsigned i = 0; i < caller->n; i++) {
    Work work = { (int) i, caller->prefill };
    RunnelJob job = { .data = &work, .participant = participant };

    caller->ok &= runnel_scheduler_submit (caller->scheduler, &job);
    caller->ok &= work.value == (int) i + 1;
  }
  if (participant != NULL)
    runnel_scheduler_unregister (caller->scheduler, participant);
  return NULL;
}

static bool
run_callers (Log *log, Caller *callers, unsigned n)
{
  RunnelScheduler *scheduler = runnel_scheduler_new (run_batch, log);
  pthread_t threads[8];
  bool ok = true;

  for (unsigned i = 0; i < n; i++) {
    callers[i].scheduler = scheduler;
    pthread_create (&threads[i], NULL, submit_jobs, &callers[i]);
  }
  for (unsigned i = 0; i < n; i++) {
    pthread_join (threads[i], NULL);
    ok &= callers[i].ok;
  }
  runnel_scheduler_free (scheduler);
  return ok;
}

static void
test_lock_step (void)
{
  Log log = { .pause_us = 20000 };
  Caller callers[2] = { { .n = 50 }, { .n = 50 } };
  bool ok = run_callers (&log, callers, 2);

  ok &= log.n_jobs == 100;
  printf ("# %u batches, %u of them full\n", log.n_batches, log.n_full);
  /* Two that generate together run together. */
  report ("two participants in lock-step",
      ok && log.n_full >= 45 && log.n_batches <= 55);
}

static void
test_mixed (void)
{
  Log log = { .pause_us = 100 };
  Caller callers[6] = {
    { .n = 60 }, { .n = 60 }, { .n = 20, .prefill = true },
    { .n = 20, .prefill = true }, { .n = 20, .prefill = true }, { .n = 60 },
  };
  bool ok = run_callers (&log, callers, 6);

  report ("prefills take turns beside decoding",
      ok && log.n_jobs == 240 && log.n_prefills_over_one == 0);
}

static void
test_absent_participant (void)
{
  Log log = { .pause_us = 1000 };
  RunnelScheduler *scheduler = runnel_scheduler_new (run_batch, &log);
  RunnelParticipant *a = runnel_scheduler_register (scheduler);
  RunnelParticipant *absent = runnel_scheduler_register (scheduler);
  bool ok = true;

  /* Not waited for for ever, nor a second time. */
  for (unsigned i = 0; i < 20; i++) {
    Work work = { 0 };
    RunnelJob job = { .data = &work, .participant = a };

    ok &= runnel_scheduler_submit (scheduler, &job) && work.value == 1;
  }
  runnel_scheduler_unregister (scheduler, absent);
  runnel_scheduler_unregister (scheduler, a);
  runnel_scheduler_free (scheduler);
  report ("an absent participant", ok && log.n_batches == 20);
}

/* ---- Cancelling ---------------------------------------------------------- */

typedef struct {
  atomic_bool running, go_on;
} Gate;

static void
run_gated (void *data, RunnelJob **jobs, unsigned n_jobs)
{
  Gate *gate = data;

  atomic_store (&gate->running, true);
  while (!atomic_load (&gate->go_on))
    sched_yield ();
  for (unsigned i = 0; i < n_jobs; i++)
    ((Work *) jobs[i]->data)->value++;
}

typedef struct {
  RunnelScheduler *scheduler;
  RunnelCancel cancel;
  Work work;
  bool ran;
} Cancelled;

static void *
submit_one (void *data)
{
  Cancelled *c = data;
  RunnelJob job = { .data = &c->work, .cancel = &c->cancel };

  c->ran = runnel_scheduler_submit (c->scheduler, &job);
  return NULL;
}

static void
test_cancel (void)
{
  Gate gate = { false, false };
  RunnelScheduler *scheduler = runnel_scheduler_new (run_gated, &gate);
  Cancelled first = { .scheduler = scheduler };
  Cancelled second = { .scheduler = scheduler };
  pthread_t threads[2];
  bool ok;

  pthread_create (&threads[0], NULL, submit_one, &first);
  while (!atomic_load (&gate.running))
    sched_yield ();
  /* One that waits behind a batch is let go at once; the batch itself is not
   * disturbed. */
  pthread_create (&threads[1], NULL, submit_one, &second);
  atomic_store (&second.cancel.set, true);
  runnel_scheduler_wake (scheduler);
  pthread_join (threads[1], NULL);
  ok = !second.ran && second.work.value == 0;
  atomic_store (&first.cancel.set, true);
  runnel_scheduler_wake (scheduler);
  atomic_store (&gate.go_on, true);
  pthread_join (threads[0], NULL);
  ok &= first.ran && first.work.value == 1;
  runnel_scheduler_free (scheduler);
  report ("cancelling a queued job", ok);
}

int
main (void)
{
  test_team ();
  test_team_is_shared ();
  test_claims ();
  test_pages ();
  test_arena ();
  test_pool_of_huge_pages ();
  test_lock_step ();
  test_mixed ();
  test_absent_participant ();
  test_cancel ();
  printf ("1..%u\n", n_tests);
  return n_failed > 0;
}
