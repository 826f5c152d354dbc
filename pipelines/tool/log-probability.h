/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* From logits to probabilities, in double. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* log Σ exp (logits): a logit less this is a log-probability. */
double log_sum_exp (const float *logits, gsize n);

G_END_DECLS
