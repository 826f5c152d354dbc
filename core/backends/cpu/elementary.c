/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * exp, log, pow, sin and cos of one fixed form (docs/exactness.md): rope
 * tables must not depend on the libm at hand. The series are Taylor's:
 * reduced arguments are small enough that the first term left out is below
 * the rounding.
 */
#include "kernels.h"

#include "exp.h"

#define LOG2E 0x1.71547652b82fep+0
#define LN2_HI 0x1.62e42fefa39efp-1
#define LN2_LO 0x1.abc9e3b39803fp-56
#define HALF_PI_HI 0x1.921fb54442d18p+0
#define HALF_PI_LO 0x1.1a62633145c07p-54
#define TWO_OVER_PI 0x1.45f306dc9c883p-1
#define SQRT2 0x1.6a09e667f3bcdp+0
#define ROUND 0x1.8p+52         /* rounds to an integer, ties to even */

static double
double_from_bits (uint64_t bits)
{
  double d;

  memcpy (&d, &bits, sizeof d);
  return d;
}

static uint64_t
double_bits (double d)
{
  uint64_t bits;

  memcpy (&bits, &d, sizeof bits);
  return bits;
}

float
runnel_exp (float x)
{
  return runnel_exp_inline (x);
}

/* log (x) = hi + lo for finite x > 0: x = 2^k m with m in [sqrt 1/2, sqrt 2),
 * log m = 2 atanh s, s = (m - 1) / (m + 1) kept in two parts. */
static void
log_two_parts (double x, double *hi, double *lo)
{
  uint64_t bits;
  double m, f, g, s, s_lo, z, p, a, b;
  int k = 0;

  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  bits = double_bits (x);
  k += (int) (bits >> 52) - 1023;
  m = double_from_bits ((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (m > SQRT2) {
    m *= 0.5;
    k++;
  }

  f = m - 1.0;
  g = m + 1.0;
  s = f / g;
  s_lo = (fma (-s, g, f) - s * (m - (g - 1.0))) / g;
  z = s * s;
  p = 1.0 / 23;
  for (int n = 21; n >= 3; n -= 2)
    p = fma (p, z, 1.0 / n);
  p = 2.0 * (s_lo + s * z * p);

  /* k ln 2 + 2 s + p, the large parts added without loss. */
  a = k * LN2_HI;
  b = fma ((double) k, LN2_HI, -a) + k * LN2_LO;
  s *= 2.0;
  m = a + s;
  p += (k != 0 ? s - (m - a) : 0.0) + b;
  *hi = m + p;
  *lo = p - (*hi - m);
}

/* exp (hi + lo), |lo| small beside hi. */
static double
exp_two_parts (double hi, double lo)
{
  double n, r, p;
  int k;

  if (hi > 710.0)
    return INFINITY;
  if (hi < -746.0)
    return 0.0;
  n = (hi * LOG2E + ROUND) - ROUND;
  r = fma (n, -LN2_HI, hi);
  r = fma (n, -LN2_LO, r) + lo;
  p = 1.0;
  for (int i = 14; i >= 1; i--)
    p = fma (p, r / i, 1.0);
  /* In two steps, for results beyond either end of the exponent range. */
  k = (int) n;
  p *= double_from_bits ((uint64_t) (k / 2 + 1023) << 52);
  return p * double_from_bits ((uint64_t) (k - k / 2 + 1023) << 52);
}

double
runnel_log (double x)
{
  double hi, lo;

  if (!(x > 0.0) || x > 0x1.fffffffffffffp+1023)
    return NAN;
  log_two_parts (x, &hi, &lo);
  return hi + lo;
}

double
runnel_pow (double base, double exponent)
{
  double hi, lo, product;

  if (!(base > 0.0) || base > 0x1.fffffffffffffp+1023)
    return NAN;
  log_two_parts (base, &hi, &lo);
  product = exponent * hi;
  return exp_two_parts (product,
      fma (exponent, hi, -product) + exponent * lo);
}

void
runnel_sin_cos (double angle, double *sin_out, double *cos_out)
{
  /* The argument less the nearest multiple of pi / 2; the first fma is exact
   * below 2^40. */
  double n = (angle * TWO_OVER_PI + ROUND) - ROUND;
  double r = fma (n, -HALF_PI_LO, fma (n, -HALF_PI_HI, angle));
  double z = r * r, s = 1.0, c = 1.0;

  for (int i = 16; i >= 2; i -= 2) {
    s = fma (s, -z / (i * (i + 1)), 1.0);
    c = fma (c, -z / (i * (i - 1)), 1.0);
  }
  s *= r;
  switch ((int64_t) n & 3) {
    case 0:
      *sin_out = s;
      *cos_out = c;
      break;
    case 1:
      *sin_out = c;
      *cos_out = -s;
      break;
    case 2:
      *sin_out = -s;
      *cos_out = -c;
      break;
    default:
      *sin_out = -c;
      *cos_out = s;
      break;
  }
}
