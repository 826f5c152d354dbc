/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The order in which lanes are added up: acc[i] += acc[i + s] for i < s, s
 * halving.
 */
#pragma once

static inline float
runnel_sum_lanes (float *lanes, int n)
{
  for (int s = n / 2; s > 0; s /= 2) {
    for (int i = 0; i < s; i++)
      lanes[i] = lanes[i] + lanes[i + s];
  }
  return lanes[0];
}
