/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What happens to rows between the products.
 */
#include "scalar.h"

#include <math.h>

#include "../exp.h"
#include "../quantise.h"
#include "lanes.h"

static void
quantise_group (const float *f, uint32_t n, int8_t *q, float *scale,
    int32_t *sum, float *moment)
{
  RunnelCodeScale code_scale = runnel_code_scale (f, n);

  memset (q, 0, RUNNEL_GROUP);
  *sum = 0;
  for (uint32_t c = 0; c < n; c++) {
    q[c] = runnel_code (f[c], code_scale);
    *sum += q[c];
  }
  *scale = code_scale.scale;
  *moment = *scale * (float) *sum;
}

void
runnel_scalar_quantise (RunnelRows *x, uint32_t i, uint32_t group_begin,
    uint32_t group_end)
{
  size_t first = (size_t) i * runnel_n_groups (x->columns);
  const float *f = x->f + i * x->f_stride;

  for (uint32_t g = group_begin; g < group_end; g++) {
    size_t at = first + g;
    uint32_t c = g * RUNNEL_GROUP, n = x->columns - c;

    quantise_group (f + c, n < RUNNEL_GROUP ? n : RUNNEL_GROUP,
        x->q + at * RUNNEL_GROUP, &x->scale[at], &x->sum[at], &x->moment[at]);
  }
}

void
runnel_scalar_norm (const float *x, const float *weight, float epsilon,
    uint32_t columns, float *y)
{
  float lanes[16] = { 0.0f }, r;

  for (uint32_t c = 0; c < columns; c++)
    lanes[c % 16] = fmaf (x[c], x[c], lanes[c % 16]);
  r = 1.0f / sqrtf (runnel_sum_lanes (lanes, 16) / (float) columns + epsilon);
  for (uint32_t c = 0; c < columns; c++)
    y[c] = (x[c] * r) * weight[c];
}

void
runnel_scalar_add (float *x, const float *y, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    x[i] = x[i] + y[i];
}

void
runnel_scalar_silu_mul (float *gate, const float *up, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    gate[i] = (gate[i] / (1.0f + runnel_exp_inline (-gate[i]))) * up[i];
}

void
runnel_scalar_rope (float *head, const float *cos, const float *sin,
    uint32_t half, bool halves)
{
  for (uint32_t i = 0; i < half; i++) {
    float *a = head + (halves ? i : 2 * i);
    float *b = a + (halves ? half : 1);
    float re = *a * cos[i] - *b * sin[i];
    float im = *a * sin[i] + *b * cos[i];

    *a = re;
    *b = im;
  }
}

void
runnel_scalar_scale (float *x, float factor, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    x[i] = x[i] * factor;
}

void
runnel_scalar_conv_tap (float *y, const float *x, const float *base,
    float factor, uint32_t n, bool add)
{
  for (uint32_t i = 0; i < n && !add; i++)
    y[i] = (base[i] + factor) * x[i];
  for (uint32_t i = 0; i < n && add; i++)
    y[i] = y[i] + (base[i] + factor) * x[i];
}

uint32_t
runnel_scalar_find_non_finite (const float *x, uint32_t n)
{
  uint32_t i = 0;

  while (i < n && (runnel_float_bits (x[i]) & 0x7f800000) != 0x7f800000)
    i++;
  return i;
}
