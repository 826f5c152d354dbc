/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "generate/candidates.h"
#include "generate/elementary.h"
#include "generate/noise.h"

#include <glib.h>

/* The known answers of Philox4x32-10 that are ours to ask for (the last
 * counter word is 0), computed by an independent implementation that gives
 * Random123's published vectors. */
static void
test_known_words (void)
{
  static const struct {
    guint64 seed, position;
    guint32 block, words[4];
  } cases[] = {
    { 0, 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { G_GUINT64_CONSTANT (0x2a), G_GUINT64_CONSTANT (0x7),
      0x4d2, { 0xde72eafa, 0x5816357f, 0x922ffc93, 0x59cf84ad } },
    { G_GUINT64_CONSTANT (0xffffffffffffffff),
      G_GUINT64_CONSTANT (0xffffffffffffffff), 0x3fffffff,
      { 0x6e18c6c7, 0x04388541, 0x200407e2, 0x31d60e0d } },
    { G_GUINT64_CONSTANT (0x299f31d0a4093822),
      G_GUINT64_CONSTANT (0x13198a2e85a308d3), 0x90fdaa2,
      { 0xdbf7582f, 0xbca6552a, 0x9be94aa2, 0x42eae36f } },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    guint32 words[4];

    runnel_noise_block (cases[i].seed, cases[i].position, cases[i].block,
                        words);
    for (guint j = 0; j < 4; j++) {
      g_assert_cmphex (words[j], ==, cases[i].words[j]);
      g_assert_cmphex (runnel_noise_word (cases[i].seed, cases[i].position,
                                          cases[i].block * 4 + j),
                       ==, words[j]);
    }
  }
}

static void
test_open_interval (void)
{
  g_assert_cmpfloat (runnel_noise_uniform (0), >, 0.0);
  g_assert_cmpfloat (runnel_noise_uniform (G_MAXUINT32), <, 1.0);
  g_assert_true (isfinite (runnel_noise_gumbel (0)));
  g_assert_true (isfinite (runnel_noise_gumbel (G_MAXUINT32)));
  g_assert_cmpfloat (runnel_noise_gumbel (G_MAXUINT32), <=,
                     RUNNEL_NOISE_GUMBEL_MAX);
}

static void
test_bound (void)
{
  guint32 word = G_MAXUINT32;

  /* Around every power of two, where the bound is tightest. */
  for (int shift = 0; shift < 32; shift++)
    for (int d = -3; d <= 3; d++) {
      word = ~((1u << shift) + (guint32) d);
      g_assert_cmpfloat (runnel_noise_gumbel (word), <=,
                         runnel_noise_gumbel_bound (word));
    }
  for (guint32 i = 0; i < 100000; i++) {
    word = runnel_noise_word (3, 1, i);
    g_assert_cmpfloat (runnel_noise_gumbel (word), <=,
                       runnel_noise_gumbel_bound (word));
  }
}

/* Chi-square of the words in 256 bins, along each of the three directions a
 * caller walks. 330.5 is the 0.999 quantile for 255 degrees of freedom. */
static void
test_uniform (void)
{
  enum { BINS = 256, N = 65536 };

  for (int direction = 0; direction < 3; direction++) {
    guint bins[BINS] = { 0 };
    double chi = 0;

    for (guint i = 0; i < N; i++) {
      const guint64 at[3] = { 11, 5, 3 };
      const double u = runnel_noise_uniform (runnel_noise_word (
        at[0] + (direction == 0) * i, at[1] + (direction == 1) * i,
        (guint32) (at[2] + (direction == 2) * i)));

      bins[(int) (u * BINS)]++;
    }
    for (guint b = 0; b < BINS; b++) {
      const double d = bins[b] - (double) N / BINS;

      chi += d * d / ((double) N / BINS);
    }
    g_test_message ("direction %d: chi-square %.1f", direction, chi);
    g_assert_cmpfloat (chi, <, 330.5);
  }
}

static void
check_close (double value, double expected)
{
  if (fabs (value - expected) > 1e-15 * fabs (expected))
    g_error ("%.17g, expected %.17g", value, expected);
}

/* Correctly rounded results, computed with 60 digits. */
static void
test_elementary_known (void)
{
  static const double logs[][2] = {
    { 0.001, -0x1.ba18a998fffa0p+2 },
    { 0.5, -0x1.62e42fefa39efp-1 },
    { 0.9999999998, -0x1.b7ce0000bce51p-33 },
    { 1.5, 0x1.9f323ecbf984cp-2 },
    { 3, 0x1.193ea7aad030bp+0 },
    { 1e300, 0x1.5963447f87fb5p+9 },
    { 123456.789, 0x1.77281cad8a844p+3 },
  };
  static const double exps[][2] = {
    { -0.1, 0x1.cf46d99d52b3ap-1 },    { -1, 0x1.78b56362cef38p-2 },
    { -20.5, 0x1.57a3afeed00abp-30 },  { 1, 0x1.5bf0a8b145769p+1 },
    { 3.75, 0x1.542b2d0a266e7p+5 },    { -49.999, 0x1.d2cf46d409e3cp-73 },
    { 700, 0x1.d945df4f8ec8ep+1009 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (logs); i++)
    check_close (elementary_log (logs[i][0]), logs[i][1]);
  for (gsize i = 0; i < G_N_ELEMENTS (exps); i++)
    check_close (elementary_exp (exps[i][0]), exps[i][1]);
}

static void
test_elementary_sweep (void)
{
  GRand *rand = g_rand_new_with_seed (20);

  for (int i = 0; i < 100000; i++) {
    const double x = g_rand_double_range (rand, -700, 700);
    const double y = exp (g_rand_double_range (rand, -700, 700));
    const double near = g_rand_double_range (rand, 0.5, 2);

    check_close (elementary_exp (x), exp (x));
    check_close (elementary_log (y), log (y));
    check_close (elementary_log (near), log (near));
  }
  g_rand_free (rand);
}

static void
test_elementary_corners (void)
{
  g_assert_cmpfloat (elementary_exp (0), ==, 1);
  g_assert_cmpfloat (elementary_exp (-INFINITY), ==, 0);
  g_assert_cmpfloat (elementary_exp (-1e9), ==, 0);
  g_assert_cmpfloat (elementary_exp (INFINITY), ==, INFINITY);
  g_assert_true (isnan (elementary_exp (NAN)));
  g_assert_cmpfloat (elementary_log (1), ==, 0);
  g_assert_cmpfloat (elementary_log (0), ==, -INFINITY);
  g_assert_cmpfloat (elementary_log (INFINITY), ==, INFINITY);
  g_assert_true (isnan (elementary_log (-1)));
  g_assert_true (isnan (elementary_log (NAN)));
  check_close (elementary_log (0x1p-1074), -744.44007192138126);
}

/* FNV-1a over the bits of numbers. */
static guint64
hash_double (guint64 hash, double number)
{
  guint64 bits;

  memcpy (&bits, &number, sizeof bits);
  for (int i = 0; i < 8; i++)
    hash = (hash ^ (bits >> 8 * i & 255)) * G_GUINT64_CONSTANT (0x100000001b3);
  return hash;
}

/* The bits are part of the contract: the same from every compiler, at every
 * level of optimisation, on every CPU. These were had from gcc for x86-64 at
 * -O0, -O3 and -march=haswell, and for aarch64. */
static void
test_bits (void)
{
  enum { N = 50000 };
  g_autofree float *logits = g_new (float, N);
  g_autofree guint64 *keys = g_new (guint64, N);
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  gsize best;
  float max;

  for (guint32 i = 0; i < 10000; i++) {
    const guint32 word = runnel_noise_word (5, 6, i);

    hash = hash_double (hash, runnel_noise_gumbel (word));
    hash = hash_double (hash, elementary_exp (-(double) word * 0x1p-26));
    hash = hash_double (hash, elementary_log ((double) word + 1));
  }
  g_assert_cmphex (hash, ==, G_GUINT64_CONSTANT (0x6cac38a1abf6b389));

  for (guint32 i = 0; i < N; i++)
    logits[i] = (float) (runnel_noise_gumbel (runnel_noise_word (1, 2, i)) * 2);
  max = runnel_logits_max (logits, N, &best);
  hash = hash_double (hash, runnel_logits_sum_exp (logits, N, max));
  for (guint64 position = 0; position < 20; position++) {
    const RunnelGumbelDraw draw = { 3, position, 0.9 };
    const gsize n = runnel_logits_top_p (logits, N, max, 0.9, keys);

    hash = hash_double (hash, runnel_logits_draw (logits, N, max,
                                                  (guint32) best, -INFINITY,
                                                  &draw));
    hash = hash_double (hash, n);
    hash = hash_double (hash, runnel_candidates_draw (keys, n, max, &draw));
  }
  g_assert_cmphex (hash, ==, G_GUINT64_CONSTANT (0x48ba7565b990148d));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/noise/known-words", test_known_words);
  g_test_add_func ("/noise/open-interval", test_open_interval);
  g_test_add_func ("/noise/bound", test_bound);
  g_test_add_func ("/noise/uniform", test_uniform);
  g_test_add_func ("/noise/bits", test_bits);
  g_test_add_func ("/elementary/known", test_elementary_known);
  g_test_add_func ("/elementary/sweep", test_elementary_sweep);
  g_test_add_func ("/elementary/corners", test_elementary_corners);
  return g_test_run ();
}
