/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The elementary functions of the sampler, in a fixed form: every step is an
 * IEEE 754 double add, multiply or divide, so that the bits are equal on every
 * CPU (docs/exactness.md). libm gives no such promise. Inline and free of
 * branches where that lets a compiler vectorise a loop over them. Includes
 * nothing but C.
 */
#pragma once

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

_Static_assert (FLT_EVAL_METHOD == 0,
                "excess precision would change the bits of the sampler");

/* ln 2 in two parts; the first has 21 trailing zero bits, so that its product
 * with an exponent is exact (Cody and Waite, Software Manual for the
 * Elementary Functions, 1980). */
#define ELEMENTARY_LN2_HI 0x1.62e42feep-1
#define ELEMENTARY_LN2_LO 0x1.a39ef35793c76p-33
#define ELEMENTARY_LOG2_E 0x1.71547652b82fep+0

/* Adding and subtracting this rounds to an integer, ties to even. */
#define ELEMENTARY_ROUNDER 0x1.8p52

/* e^x for x from -708 to 709, within 1e-15 of it (relative). x = n ln 2 + r
 * with |r| <= ln 2 / 2, and the Taylor series of e^r up to r^13: the first
 * term left out is below 5e-18. */
static inline double
elementary_exp_within (double x)
{
  const double shifted = x * ELEMENTARY_LOG2_E + ELEMENTARY_ROUNDER;
  const double n = shifted - ELEMENTARY_ROUNDER;
  const double r = (x - n * ELEMENTARY_LN2_HI) - n * ELEMENTARY_LN2_LO;
  double p = 1.0 / 6227020800.0;
  double scale;
  uint64_t bits;

  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;

  /* The low bits of the shifted value are n; moved into the exponent's place
   * they make 2^n. */
  memcpy (&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  memcpy (&scale, &bits, sizeof scale);
  return p * scale;
}

/* e^x. Under -708 the result is 0 (no subnormal results), above 709 it is
 * infinite. */
static inline double
elementary_exp (double x)
{
  if (x < -708.0)
    return 0.0;
  if (x > 709.0)
    return (double) INFINITY;
  return elementary_exp_within (x);
}

/* The natural logarithm, within 1e-15 of it (relative). x = 2^k m with m in
 * [sqrt 1/2, sqrt 2), ln m = 2 artanh s with s = (m - 1) / (m + 1), and the
 * series of artanh up to s^21: s^2 < 0.0295, the first term left out is below
 * 1e-18 of the sum. */
static inline double
elementary_log (double x)
{
  double k, m, s, z, p;
  uint64_t bits;
  int exponent = -1023;

  if (!(x > 0.0))
    return x == 0.0 ? -(double) INFINITY : (double) NAN;
  if (x > DBL_MAX)
    return x;
  if (x < DBL_MIN) {
    x *= 0x1p54;
    exponent -= 54;
  }
  memcpy (&bits, &x, sizeof bits);
  exponent += (int) (bits >> 52);
  bits = (bits & UINT64_C (0x000fffffffffffff)) | UINT64_C (0x3ff0000000000000);
  memcpy (&m, &bits, sizeof m);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    exponent++;
  }
  k = exponent;
  s = (m - 1.0) / (m + 1.0);
  z = s * s;
  p = 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  s *= 2.0;
  return k * ELEMENTARY_LN2_HI + (s + (s * (z * p) + k * ELEMENTARY_LN2_LO));
}
