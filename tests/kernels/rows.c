/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What happens to rows between the products.
 */
#include "testing.h"

static void
test_quantise (const RunnelKernels *kernels)
{
  for (int k = 0; k < 4 * effort; k++) {
    uint32_t n = random_between (1, 3), columns = random_between (1, 200);
    uint32_t groups = runnel_n_groups (columns);
    uint32_t middle = random_below (groups + 1);
    Fill fill = random_below (N_FILLS);
    RunnelRows *x = new_rows (n, columns, fill), *scalar = copy_rows (x);

    for (uint32_t i = 0; i < n; i++) {
      kernels->quantise (x, i, middle, groups);
      kernels->quantise (x, i, 0, middle);
      runnel_kernels_scalar.quantise (scalar, i, 0, groups);
    }
    expect (same_rows (x, scalar), "%s quantise, %u columns, fill %d",
        kernels->name, columns, fill);
    for (uint32_t c = 0; c < columns && fill == FILL_NORMAL; c++) {
      double scale = scalar->scale[c / RUNNEL_GROUP];
      double error = fabs (scalar->q[c] * scale - scalar->f[c]);

      expect (error <= scale * 0.5001, "code of %g is %d", scalar->f[c],
          scalar->q[c]);
    }
    release_all ();
  }
}

static void
test_norm (const RunnelKernels *kernels)
{
  for (int k = 0; k < 4 * effort; k++) {
    uint32_t n = random_between (1, k % 4 ? 100 : 1200);
    float *x = guarded (n * sizeof (float), 4);
    float *weight = guarded (n * sizeof (float), 4);
    float *y = guarded (n * sizeof (float), 4);
    float *scalar = guarded (n * sizeof (float), 4);
    Fill fill = random_below (N_FILLS);
    double squares = 0.0;

    fill_floats (x, n, fill);
    fill_floats (weight, n, FILL_NORMAL);
    kernels->norm (x, weight, 1e-5f, n, y);
    runnel_kernels_scalar.norm (x, weight, 1e-5f, n, scalar);
    expect (same_floats (y, scalar, n), "%s norm of %u", kernels->name, n);
    for (uint32_t i = 0; i < n; i++)
      squares += (double) x[i] * x[i];
    for (uint32_t i = 0; i < n && fill == FILL_NORMAL; i++) {
      double reference = x[i] / sqrt (squares / n + 1e-5) * weight[i];

      expect (fabs (scalar[i] - reference) <= 1e-6 * fabs (reference),
          "norm: %g, not %g", scalar[i], reference);
    }
    kernels->norm (x, weight, 1e-5f, n, x);
    expect (same_floats (x, scalar, n), "%s norm in place", kernels->name);
    release_all ();
  }
}

static void
test_element_wise (const RunnelKernels *kernels)
{
  for (int k = 0; k < 4 * effort; k++) {
    uint32_t n = random_between (1, 100);
    float *x = guarded (n * sizeof (float), 4);
    float *y = guarded (n * sizeof (float), 4);
    float *got = guarded (n * sizeof (float), 4);
    float *scalar = guarded (n * sizeof (float), 4);
    Fill fill = random_below (N_FILLS);
    uint32_t first = 0;

    fill_floats (x, n, fill);
    fill_floats (y, n, random_below (N_FILLS));
    if (fill == FILL_NORMAL && k % 2) {
      for (uint32_t i = 0; i < n; i++)
        x[i] *= 60.0f;
    }

    memcpy (got, x, n * sizeof (float));
    memcpy (scalar, x, n * sizeof (float));
    kernels->add (got, y, n);
    runnel_kernels_scalar.add (scalar, y, n);
    expect (same_floats (got, scalar, n), "%s add", kernels->name);

    memcpy (got, x, n * sizeof (float));
    memcpy (scalar, x, n * sizeof (float));
    kernels->silu_mul (got, y, n);
    runnel_kernels_scalar.silu_mul (scalar, y, n);
    expect (same_floats (got, scalar, n), "%s silu_mul", kernels->name);
    for (uint32_t i = 0; i < n && fill == FILL_NORMAL; i++) {
      double reference = x[i] / (1.0 + exp (-(double) x[i])) * y[i];

      expect (isnan (y[i]) || isinf (y[i])
          || fabs (scalar[i] - reference) <= 4e-7 * fabs (reference)
          + 3e-36 * fabs (y[i]) + 1e-37,
          "silu_mul (%g, %g): %g, not %g", x[i], y[i], scalar[i], reference);
    }

    memcpy (got, x, n * sizeof (float));
    memcpy (scalar, x, n * sizeof (float));
    kernels->scale (got, 0.35355338f, n);
    runnel_kernels_scalar.scale (scalar, 0.35355338f, n);
    expect (same_floats (got, scalar, n), "%s scale", kernels->name);

    memcpy (got, x, n * sizeof (float));
    memcpy (scalar, x, n * sizeof (float));
    kernels->conv_tap (got, got, y, 0.25f, n, false);
    runnel_kernels_scalar.conv_tap (scalar, scalar, y, 0.25f, n, false);
    expect (same_floats (got, scalar, n), "%s conv_tap", kernels->name);
    kernels->conv_tap (got, x, y, -1.5f, n, true);
    runnel_kernels_scalar.conv_tap (scalar, x, y, -1.5f, n, true);
    expect (same_floats (got, scalar, n), "%s conv_tap added", kernels->name);
    for (uint32_t i = 0; i < n && fill == FILL_NORMAL; i++) {
      double reference = (y[i] + 0.25) * x[i] + (y[i] - 1.5) * x[i];

      expect (isnan (y[i]) || isinf (y[i]) || fabs (scalar[i] - reference)
          <= 1e-6 * (fabs (y[i]) + 2) * fabs (x[i]), "conv_tap: %g, not %g",
          scalar[i], reference);
    }

    while (first < n && isfinite (x[first]))
      first++;
    expect (kernels->find_non_finite (x, n) == first, "%s find_non_finite",
        kernels->name);
    release_all ();
  }
}

static void
test_rope (const RunnelKernels *kernels)
{
  for (int k = 0; k < 2 * effort; k++) {
    uint32_t half = random_between (1, 70);
    bool halves = random_below (2);
    float *angles = guarded (half * sizeof (float), 4);
    float *cosines = guarded (half * sizeof (float), 4);
    float *sines = guarded (half * sizeof (float), 4);
    float *x = guarded (2 * half * sizeof (float), 4);
    float *got = guarded (2 * half * sizeof (float), 4);
    float *scalar = guarded (2 * half * sizeof (float), 4);

    fill_floats (angles, half, FILL_NORMAL);
    fill_floats (x, 2 * half, FILL_NORMAL);
    for (uint32_t i = 0; i < half; i++) {
      cosines[i] = cosf (angles[i]);
      sines[i] = sinf (angles[i]);
    }
    memcpy (got, x, 2 * half * sizeof (float));
    memcpy (scalar, x, 2 * half * sizeof (float));
    kernels->rope (got, cosines, sines, half, halves);
    runnel_kernels_scalar.rope (scalar, cosines, sines, half, halves);
    expect (same_floats (got, scalar, 2 * half), "%s rope %u %d",
        kernels->name, half, halves);
    for (uint32_t i = 0; i < half; i++) {
      uint32_t a = halves ? i : 2 * i, b = halves ? i + half : 2 * i + 1;

      expect (fabsf (hypotf (scalar[a], scalar[b]) - hypotf (x[a], x[b]))
          < 1e-5f && fabsf (remainderf (atan2f (scalar[b], scalar[a])
                  - atan2f (x[b], x[a]) - angles[i], 6.2831853f))
          * hypotf (x[a], x[b]) < 1e-5f, "rope does not rotate by %g",
          angles[i]);
    }
    release_all ();
  }
}

void
test_rows (const RunnelKernels *kernels)
{
  test_quantise (kernels);
  test_norm (kernels);
  test_element_wise (kernels);
  test_rope (kernels);
}
