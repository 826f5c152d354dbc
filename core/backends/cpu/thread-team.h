/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A persistent team of threads for data-parallel loops. Only C11 and
 * pthreads.
 */
#pragma once

#include <sched.h>
#include <stddef.h>

typedef struct RunnelTeam RunnelTeam;

/* Computes items [begin, end) of a loop as thread number `thread`. */
typedef void (*RunnelTeamFunc) (void *data, unsigned thread, size_t begin,
                                size_t end);

#define RUNNEL_TEAM_MAX_THREADS 256

/* A team of n_threads, of which the caller of runnel_team_for is one; they
 * run on `cpus`, the caller too while it holds the team, or with NULL
 * anywhere. NULL when threads cannot be made. */
RunnelTeam *runnel_team_new (unsigned n_threads, const cpu_set_t *cpus);
void runnel_team_free (RunnelTeam *team);
unsigned runnel_team_n_threads (const RunnelTeam *team);
/* Those of the present use. */
unsigned runnel_team_n_active (const RunnelTeam *team);

/* One caller at a time may use a team, or its first n_active threads; a pass
 * over a model is one use. */
void runnel_team_lock (RunnelTeam *team, unsigned n_active);
void runnel_team_unlock (RunnelTeam *team);

/* Calls func for items 0 … n_items − 1, handed out in runs of `grain`, and
 * returns when all are done. The team must be locked. */
void runnel_team_for (RunnelTeam *team, size_t n_items, size_t grain,
                      RunnelTeamFunc func, void *data);
