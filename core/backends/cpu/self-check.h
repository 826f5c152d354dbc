/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Kernels are compared with scalar's bits before an engine uses them.
 */
#pragma once

#include "kernels.h"

/* What differs from scalar, in words, or NULL. */
const char *runnel_kernels_find_fault (const RunnelKernels *kernels);

/* The first table of a ladder, best first, without a fault; the last, scalar,
 * needs no check. *fault is the first table's, or NULL. */
const RunnelKernels *runnel_kernels_first_sound (
    const RunnelKernels *const *ladder, size_t n, const char **fault);

/* The same for the levels of this machine from `wanted` on down; found out
 * once a process, from any thread. */
const RunnelKernels *runnel_kernels_sound (const RunnelKernels *wanted,
    const char **fault);
