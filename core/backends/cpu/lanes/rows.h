/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What happens to rows between the products, for any level with eight float
 * lanes (its own header comes first).
 */
#pragma once

#include "../exp.h"
#include "../kernels.h"

void
LEVEL (norm) (const float *x, const float *weight, float epsilon,
    uint32_t columns, float *y)
{
  Lanes a = lanes_set (0.0f), b = a, factor;
  float lanes[16], r;
  uint32_t c;

  for (c = 0; c + 16 <= columns; c += 16) {
    Lanes first = lanes_load (x + c), second = lanes_load (x + c + 8);

    a = lanes_fma (first, first, a);
    b = lanes_fma (second, second, b);
  }
  lanes_store (lanes, a);
  lanes_store (lanes + 8, b);
  for (uint32_t l = 0; c < columns; c++, l++)
    lanes[l] = fmaf (x[c], x[c], lanes[l]);
  r = lanes_sum (lanes_add (lanes_load (lanes), lanes_load (lanes + 8)));
  r = 1.0f / sqrtf (r / (float) columns + epsilon);

  factor = lanes_set (r);
  for (c = 0; c + 8 <= columns; c += 8)
    lanes_store (y + c, lanes_mul (lanes_mul (lanes_load (x + c), factor),
            lanes_load (weight + c)));
  for (; c < columns; c++)
    y[c] = (x[c] * r) * weight[c];
}

void
LEVEL (silu_mul) (float *gate, const float *up, uint32_t n)
{
  const Lanes one = lanes_set (1.0f);
  uint32_t i;

  for (i = 0; i + 8 <= n; i += 8) {
    Lanes g = lanes_load (gate + i);

    g = lanes_div (g, lanes_add (one, lanes_exp (lanes_negate (g))));
    lanes_store (gate + i, lanes_mul (g, lanes_load (up + i)));
  }
  for (; i < n; i++)
    gate[i] = (gate[i] / (1.0f + runnel_exp_inline (-gate[i]))) * up[i];
}

void
LEVEL (rope) (float *head, const float *cos, const float *sin, uint32_t half,
    bool halves)
{
  uint32_t i = 0;

  for (; halves && i + 8 <= half; i += 8) {
    Lanes a = lanes_load (head + i), b = lanes_load (head + half + i);
    Lanes c = lanes_load (cos + i), s = lanes_load (sin + i);

    lanes_store (head + i, lanes_sub (lanes_mul (a, c), lanes_mul (b, s)));
    lanes_store (head + half + i, lanes_add (lanes_mul (a, s),
            lanes_mul (b, c)));
  }
  for (; !halves && i + 4 <= half; i += 4)
    rotate_4_pairs (head + 2 * i, cos + i, sin + i);

  for (; i < half; i++) {
    float *a = head + (halves ? i : 2 * i);
    float *b = a + (halves ? half : 1);
    float re = *a * cos[i] - *b * sin[i];
    float im = *a * sin[i] + *b * cos[i];

    *a = re;
    *b = im;
  }
}
