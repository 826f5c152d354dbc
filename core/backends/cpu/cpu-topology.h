/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Which processors to compute on: the physical cores of the fastest clusters,
 * as far as affinity and the container's quota allow. Only C11, pthreads and
 * Linux; nothing is written.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>

typedef struct {
  unsigned n_threads;        /* how many pay, at least 1 */
  bool restricted;           /* `cpus` leaves slower processors out */
  cpu_set_t cpus;            /* those that are fast and allowed */
} RunnelCpuChoice;

/* Reads /sys and /proc below `root` ("" for the machine's own). `allowed` is
 * where the process may run. */
void runnel_cpu_choose (const char *root, const cpu_set_t *allowed,
                        RunnelCpuChoice *ret_choice);
