/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* The machine a number was measured on. */
#pragma once

#include <runnel.h>

#include "json-output.h"

G_BEGIN_DECLS

/* "Some Processor, 4 cores; 2 threads, kernels avx2" */
char *machine_describe (RunnelBackend *backend);
/* The member "machine". */
void machine_add_json (JsonOutput *json, RunnelBackend *backend);

G_END_DECLS
