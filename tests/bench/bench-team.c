/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What a loop of the thread team costs beside its work; a decoding pass has
 * five for each layer. First loops that do nothing, which the caller often ends
 * alone, then loops in which all threads meet: the way there and back. The
 * best of many is the cost, the rest is what else runs. No GLib.
 *
 *     bench-team [THREADS]…
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backends/cpu/thread-team.h"

#define SAMPLES 100
#define LOOPS 200

static double
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

static int
compare_doubles (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static void
do_nothing (void *data, unsigned thread, size_t begin, size_t end)
{
}

static atomic_uint n_there;
static unsigned n_awaited;

/* Every thread gets one item, for none ends before all have begun. */
static void
meet (void *data, unsigned thread, size_t begin, size_t end)
{
  atomic_fetch_add (&n_there, 1);
  while (atomic_load_explicit (&n_there, memory_order_acquire) < n_awaited)
    ;
}

static double
time_loops (RunnelTeam *team, size_t n_items, RunnelTeamFunc func)
{
  double begin = now ();

  for (int i = 0; i < LOOPS; i++) {
    atomic_store (&n_there, 0);
    runnel_team_for (team, n_items, 1, func, NULL);
  }
  return (now () - begin) / LOOPS * 1e9;
}

static void
bench_loops (unsigned n_threads, size_t n_items, RunnelTeamFunc func)
{
  RunnelTeam *team = runnel_team_new (n_threads, NULL);
  double times[SAMPLES];

  if (team == NULL)
    exit (1);
  n_awaited = n_threads;
  runnel_team_lock (team, n_threads);
  time_loops (team, n_items, func);
  for (int s = 0; s < SAMPLES; s++)
    times[s] = time_loops (team, n_items, func);
  runnel_team_unlock (team);
  runnel_team_free (team);
  qsort (times, SAMPLES, sizeof (double), compare_doubles);
  printf ("%u threads, %3zu items%s  %8.0f ns a loop (%.0f - %.0f, "
      "best %.0f)\n", n_threads, n_items,
      func == meet ? ", all meet" : "          ", times[SAMPLES / 2],
      times[SAMPLES / 4], times[SAMPLES * 3 / 4], times[0]);
}

int
main (int argc, char **argv)
{
  static const size_t n_items[] = { 2, 12, 100 };

  printf ("%d samples of %d loops, wall time, median (quartiles)\n", SAMPLES,
      LOOPS);
  for (int i = 1; i < argc || i == 1; i++) {
    const unsigned n_threads = argc > 1 ? (unsigned) atoi (argv[i]) : 2;

    for (size_t k = 0; k < sizeof n_items / sizeof n_items[0]; k++)
      bench_loops (n_threads, n_items[k], do_nothing);
    bench_loops (n_threads, n_threads, meet);
  }
  return 0;
}
