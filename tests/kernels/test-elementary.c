/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The elementary functions and half floats against libm and against
 * exhaustive conversion. No GLib, so that it runs for any target.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/half.h"
#include "backends/cpu/kernels.h"

static int n_failed;

static void
check (const char *what, double worst, double bound)
{
  printf ("%-28s %.3g (bound %.3g)\n", what, worst, bound);
  if (!(worst <= bound))
    n_failed++;
}

static uint64_t state;

/* Uniform in [0, 1): splitmix64 (Steele, Lea and Flood 2014). */
static double
random_unit (void)
{
  uint64_t z = (state += 0x9e3779b97f4a7c15u);

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double) ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static void
test_exp (void)
{
  double worst = 0.0;

  for (float x = -87.0f; x <= 88.0f; x += 0.0037f) {
    double reference = exp ((double) x);

    worst = fmax (worst, fabs (runnel_exp (x) - reference) / reference);
  }
  check ("exp, relative", worst, 1.3e-7);
  check ("exp (0) - 1", fabsf (runnel_exp (0.0f) - 1.0f), 0.0);
  check ("exp (-87.5)", runnel_exp (-87.5f), 0.0);
  check ("exp (-inf)", runnel_exp (-INFINITY), 0.0);
  check ("exp (inf) is exp (88)",
      fabsf (runnel_exp (INFINITY) - runnel_exp (88.0f)), 0.0);
  check ("exp (NaN) is NaN", isnan (runnel_exp (NAN)) ? 0.0 : 1.0, 0.0);
}

static void
test_log_pow (int n)
{
  double worst_log = 0.0, worst = 0.0, worst_rope = 0.0;

  for (int i = 0; i < n; i++) {
    double x = exp ((random_unit () - 0.5) * (i % 2 ? 1400.0 : 1.0));
    double y = (random_unit () - 0.5) * 1300.0 / fmax (fabs (log (x)), 1e-3);
    double p = pow (x, y), base = 1e3 + random_unit () * 1e7;
    double e = -random_unit ();

    worst_log = fmax (worst_log, fabs (runnel_log (x) / log (x) - 1.0));
    if (p > 0x1p-1000 && p < 0x1p+1000)
      worst = fmax (worst, fabs (runnel_pow (x, y) - p) / p);
    worst_rope = fmax (worst_rope,
        fabs (runnel_pow (base, e) / pow (base, e) - 1.0));
  }
  check ("log, relative", worst_log, 6e-16);
  check ("log (1)", fabs (runnel_log (1.0)), 0.0);
  check ("pow, relative", worst, 1e-14);
  check ("pow as rope uses it", worst_rope, 1e-15);
  check ("pow (10000, 0) - 1", fabs (runnel_pow (1e4, 0.0) - 1.0), 0.0);
  check ("pow of a denormal", fabs (runnel_pow (0x1p-1074, 0.5) / 0x1p-537
          - 1.0), 1e-14);
}

static void
test_sin_cos (int n)
{
  double worst = 0.0, worst_large = 0.0, s, c;

  for (int i = 0; i < n; i++) {
    double angle = (random_unit () - 0.5) * 0x1p21;
    double large = (random_unit () - 0.5) * 0x1p41;

    if (i % 3 == 0)
      angle = floor (angle) * acos (-1.0) / 2.0;
    if (i % 3 == 1)
      angle = angle * 0x1p-20;
    runnel_sin_cos (angle, &s, &c);
    worst = fmax (worst, fmax (fabs (s - sin (angle)), fabs (c - cos (angle))));
    runnel_sin_cos (large, &s, &c);
    worst_large = fmax (worst_large,
        fmax (fabs (s - sin (large)), fabs (c - cos (large))));
  }
  check ("sin, cos below 2^20", worst, 4e-16);
  check ("sin, cos below 2^40", worst_large, 4e-16);
  runnel_sin_cos (0.0, &s, &c);
  check ("sin (0)", fabs (s), 0.0);
  check ("cos (0) - 1", fabs (c - 1.0), 0.0);
}

/* Every half goes to float and back; every float between two neighbouring
 * halves goes to the nearer one, the middle to the even one. */
static void
test_half (void)
{
  int wrong = 0;

  for (uint32_t h = 0; h < 0x7c00; h++) {
    float f = runnel_half_to_float ((uint16_t) h);
    float next = h + 1 < 0x7c00 ? runnel_half_to_float ((uint16_t) (h + 1))
        : 65536.0f;
    float middle = 0.5f * (f + next);
    uint32_t even = h % 2 == 0 ? h : h + 1;
    double value = h < 0x400 ? ldexp (h, -24)
        : ldexp (1024 + h % 1024, (int) (h / 1024) - 25);

    wrong += f != value;
    wrong += runnel_float_to_half (f) != h;
    wrong += runnel_float_to_half (-f) != (h | 0x8000);
    wrong += runnel_half_to_float ((uint16_t) (h | 0x8000)) != -f;
    wrong += runnel_float_to_half (middle) != even;
    wrong += runnel_float_to_half (nextafterf (middle, 0.0f)) != h;
    wrong += runnel_float_to_half (nextafterf (middle, 1e9f)) != h + 1;
  }
  wrong += runnel_float_to_half (INFINITY) != 0x7c00;
  wrong += runnel_float_to_half (-INFINITY) != 0xfc00;
  wrong += !isinf (runnel_half_to_float (0x7c00));
  wrong += !isnan (runnel_half_to_float (0x7e00));
  wrong += !isnan (runnel_half_to_float (runnel_float_to_half (NAN)));
  check ("half conversions wrong", wrong, 0.0);
}

int
main (int argc, char **argv)
{
  const char *seed = getenv ("RUNNEL_TEST_SEED");
  uint64_t saved = runnel_fp_enter ();

  state = seed != NULL ? strtoull (seed, NULL, 0) : 1;
  printf ("seed %llu\n", (unsigned long long) state);
  test_exp ();
  test_log_pow (100000);
  test_sin_cos (100000);
  test_half ();
  runnel_fp_leave (saved);
  printf ("%d failed\n", n_failed);
  return n_failed != 0;
}
