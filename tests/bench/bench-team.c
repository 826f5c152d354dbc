/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What a loop of the thread team costs beside its work: the time of loops that
 * do nothing, a decoding pass has about six for each layer. No GLib.
 *
 *     bench-team [THREADS]…
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backends/cpu/thread-team.h"

#define SAMPLES 15
#define LOOPS 2000

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

static void
bench_loops (unsigned n_threads, size_t n_items)
{
  RunnelTeam *team = runnel_team_new (n_threads, NULL);
  double times[SAMPLES];

  if (team == NULL)
    exit (1);
  runnel_team_lock (team, n_threads);
  for (int s = -1; s < SAMPLES; s++) {
    double begin = now ();

    for (int i = 0; i < LOOPS; i++)
      runnel_team_for (team, n_items, 1, do_nothing, NULL);
    if (s >= 0)
      times[s] = (now () - begin) / LOOPS * 1e9;
  }
  runnel_team_unlock (team);
  runnel_team_free (team);
  qsort (times, SAMPLES, sizeof (double), compare_doubles);
  printf ("%u threads, %3zu items  %8.0f ns a loop (%.0f - %.0f, best %.0f)\n",
      n_threads, n_items, times[SAMPLES / 2], times[SAMPLES / 4],
      times[SAMPLES * 3 / 4], times[0]);
}

int
main (int argc, char **argv)
{
  static const size_t n_items[] = { 2, 12, 100 };

  printf ("%d samples of %d loops, wall time, median (quartiles)\n", SAMPLES,
      LOOPS);
  for (int i = 1; i < argc || i == 1; i++)
    for (size_t k = 0; k < sizeof n_items / sizeof n_items[0]; k++)
      bench_loops (argc > 1 ? (unsigned) atoi (argv[i]) : 2, n_items[k]);
  return 0;
}
