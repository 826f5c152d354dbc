/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "log-probability.h"

#include <math.h>

double
log_sum_exp (const float *logits, gsize n)
{
  double max = -INFINITY, sum = 0;

  for (gsize i = 0; i < n; i++)
    max = MAX (max, logits[i]);
  for (gsize i = 0; i < n; i++)
    sum += exp (logits[i] - max);
  return max + log (sum);
}
