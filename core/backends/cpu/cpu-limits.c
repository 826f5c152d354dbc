/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What this machine's memory and processors can do at best, by the team's
 * threads together: the roof over an engine's speed.
 */
#include <sys/mman.h>

#include "cpu-backend.h"

#define BUFFER_BYTES ((gsize) 128 << 20)     /* more than caches hold */
#define PIECE_BYTES ((gsize) 1 << 20)
#define ATTEMPTS 6                            /* the best one counts */
#define PEAK_ROUNDS 200000

typedef struct {
  const RunnelKernels *kernels;
  const guint8 *memory;
  guint64 sum;
  guint64 macs;
} Limits;

/* Whole words, eight sums at once: no slower than memory. */
static void
read_pieces (void *data, unsigned thread, size_t first, size_t last)
{
  Limits *limits = data;
  const guint64 *word
      = (const guint64 *) (limits->memory + first * PIECE_BYTES);
  const guint64 *end = (const guint64 *) (limits->memory + last * PIECE_BYTES);
  guint64 sums[8] = { 0 }, sum = 0;

  for (; word < end; word += 8)
    for (guint i = 0; i < 8; i++)
      sums[i] += word[i];
  for (guint i = 0; i < 8; i++)
    sum += sums[i];
  __atomic_fetch_add (&limits->sum, sum, __ATOMIC_RELAXED);
}

static void
multiply_integers (void *data, unsigned thread, size_t first, size_t last)
{
  Limits *limits = data;

  __atomic_fetch_add (&limits->macs,
      limits->kernels->peak_integer ((last - first) * PEAK_ROUNDS),
      __ATOMIC_RELAXED);
}

static void
multiply_floats (void *data, unsigned thread, size_t first, size_t last)
{
  Limits *limits = data;

  __atomic_fetch_add (&limits->macs,
      limits->kernels->peak_float ((last - first) * PEAK_ROUNDS),
      __ATOMIC_RELAXED);
}

/* Seconds of the fastest attempt; func does n items once an attempt. */
static double
fastest (RunnelTeam *team, size_t n, RunnelTeamFunc func, Limits *limits)
{
  gint64 best = G_MAXINT64;

  for (guint i = 0; i < ATTEMPTS; i++) {
    gint64 started = g_get_monotonic_time ();

    limits->macs = 0;
    runnel_team_for (team, n, 1, func, limits);
    best = MIN (best, g_get_monotonic_time () - started);
  }
  return MAX (best, 1) * 1e-6;
}

void
runnel_cpu_measure_limits (RunnelBackend *backend, double *bytes,
                           double *integer_macs, double *float_macs)
{
  RunnelTeam *team = runnel_cpu_backend_team (backend);
  size_t n = 4 * runnel_team_n_threads (team);
  Limits limits = { runnel_cpu_backend_table (backend) };
  guint8 *memory = mmap (NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  guint64 saved;
  double seconds;

  *bytes = 0;
  runnel_team_lock (team, runnel_team_n_threads (team));
  if (memory != MAP_FAILED) {
#ifdef MADV_HUGEPAGE
    madvise (memory, BUFFER_BYTES, MADV_HUGEPAGE);
#endif
    memset (memory, 1, BUFFER_BYTES);
    limits.memory = memory;
    *bytes = BUFFER_BYTES / fastest (team, BUFFER_BYTES / PIECE_BYTES,
        read_pieces, &limits);
    munmap (memory, BUFFER_BYTES);
  }
  saved = runnel_fp_enter ();
  seconds = fastest (team, n, multiply_integers, &limits);
  *integer_macs = limits.macs / seconds;
  seconds = fastest (team, n, multiply_floats, &limits);
  *float_macs = limits.macs / seconds;
  runnel_fp_leave (saved);
  runnel_team_unlock (team);
}
