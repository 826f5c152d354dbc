/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* `runnel bench decide`: what a decision costs beside a prompt of as many
 * rows, and beside a prompt for each option. */
#pragma once

#include "verb.h"

G_BEGIN_DECLS

int bench_decide_run (const Options *options, guint repeats);

G_END_DECLS
