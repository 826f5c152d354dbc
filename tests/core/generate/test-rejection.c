/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Draws by rejection are distributed as plain draws: 20,000 of each kind
 * against the exact probabilities (chi-square, p > 0.001), whatever the guess
 * was drawn from.
 */
#include <math.h>
#include <string.h>

#include "generate/noise.h"
#include "generate/sampler-private.h"

#define N_VOCAB 8
#define N_DRAWS 20000

static const float logits[N_VOCAB] = { 1.5f, -0.5f, 2.0f, 0.0f,
                                       1.0f, -1.0f, 0.5f, -2.0f };

/* What guesses are drawn from; probabilities are NULL for a fixed guess. */
typedef struct {
  const char *name;
  gint32 candidates[N_VOCAB];
  float probabilities[N_VOCAB];
  guint n;
  gint32 fixed;              /* when n is 0 */
} Guesses;

/* The probabilities that plain draws have. */
static void
get_target (const RunnelSamplerParams *params, double *p)
{
  double total = 0;

  for (guint i = 0; i < N_VOCAB; i++) {
    guint better = 0;

    for (guint k = 0; k < N_VOCAB; k++)
      better += logits[k] > logits[i];
    p[i] = params->top_k > 0 && better >= params->top_k
             ? 0
             : exp (logits[i] / params->temperature);
    total += p[i];
  }
  for (guint i = 0; i < N_VOCAB; i++)
    p[i] /= total;
}

/* A drafter's draw, by the noise of the sampler as drafters do it. */
static gint32
draw_guess (const Guesses *g, guint64 seed, guint64 position)
{
  double best = -INFINITY;
  gint32 token = g->fixed;

  for (guint i = 0; i < g->n; i++) {
    const double value =
      log (g->probabilities[i]) +
      runnel_noise_gumbel (
        runnel_noise_word (seed, position, g->candidates[i]));

    if (value > best) {
      best = value;
      token = g->candidates[i];
    }
  }
  return token;
}

static void
count_draws (const Guesses *g, const RunnelSamplerParams *params,
             guint *counts)
{
  g_autoptr (RunnelSampler) sampler =
    runnel_sampler_new (params, N_VOCAB, NULL);

  memset (counts, 0, N_VOCAB * sizeof *counts);
  for (guint64 position = 0; position < N_DRAWS; position++) {
    float own[N_VOCAB];
    RunnelGuess guess = {
      .token = draw_guess (g, params->seed, position),
      .n = g->n,
      .candidates = g->candidates,
      .probabilities = g->probabilities,
    };
    gint32 token;

    memcpy (own, logits, sizeof own);
    g_assert_true (runnel_sampler_draw_against (sampler, own, position, NULL,
                                                &guess, &token, NULL, NULL, 0,
                                                NULL));
    g_assert_cmpint (token, >=, 0);
    g_assert_cmpint (token, <, N_VOCAB);
    counts[token]++;
  }
}

/* Values that chi-square exceeds with probability 0.001, by degrees of
 * freedom. */
static const double critical[N_VOCAB] = { 0, 10.83, 13.82, 16.27, 18.47,
                                          20.52, 22.46, 24.32 };

static void
check (const Guesses *g, const RunnelSamplerParams *params)
{
  guint counts[N_VOCAB], freedom = 0;
  double p[N_VOCAB], chi = 0;

  get_target (params, p);
  count_draws (g, params, counts);
  for (guint i = 0; i < N_VOCAB; i++) {
    const double expected = p[i] * N_DRAWS;

    if (expected == 0) {
      g_assert_cmpuint (counts[i], ==, 0);
      continue;
    }
    chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    freedom++;
  }
  g_test_message ("%s, temperature %g, top-k %u: chi-square %.2f", g->name,
                  params->temperature, params->top_k, chi);
  g_assert_cmpfloat (chi, <, critical[freedom - 1]);
}

static void
test_distribution (void)
{
  static const Guesses kinds[] = {
    { .name = "fixed, likely", .fixed = 2 },
    { .name = "fixed, unlikely", .fixed = 7 },
    { .name = "far from the target",
      .candidates = { 7, 5, 1, 3 },
      .probabilities = { 0.7f, 0.1f, 0.1f, 0.1f },
      .n = 4 },
    { .name = "candidates miss the best",
      .candidates = { 0, 4, 6 },
      .probabilities = { 0.5f, 0.25f, 0.25f },
      .n = 3 },
    { .name = "one candidate", .candidates = { 4 }, .probabilities = { 1 },
      .n = 1 },
    { .name = "all alike",
      .candidates = { 0, 1, 2, 3, 4, 5, 6, 7 },
      .probabilities = { .125f, .125f, .125f, .125f, .125f, .125f, .125f,
                         .125f },
      .n = 8 },
  };
  g_autoptr (RunnelSamplerParams) params = runnel_sampler_params_new ();

  params->top_p = 1;
  params->min_p = 0;
  params->seed = 20261201;
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    for (guint k = 0; k <= 4; k += 2) {
      params->top_k = k;
      params->temperature = 1;
      check (&kinds[i], params);
      params->temperature = 0.6;
      check (&kinds[i], params);
    }
}

/* The drafter is the target: everything is kept but for rounding, and then
 * nothing of p is above q. */
static void
test_equal (void)
{
  g_autoptr (RunnelSamplerParams) params = runnel_sampler_params_new ();
  Guesses same = { .name = "equal", .n = N_VOCAB };
  double p[N_VOCAB];

  params->top_k = 0;
  params->top_p = 1;
  params->min_p = 0;
  params->temperature = 1;
  get_target (params, p);
  for (guint i = 0; i < N_VOCAB; i++) {
    same.candidates[i] = i;
    same.probabilities[i] = (float) p[i];
  }
  check (&same, params);
  /* q above p everywhere, which no drafter may claim: still a draw from p. */
  for (guint i = 0; i < N_VOCAB; i++)
    same.probabilities[i] = 1;
  same.name = "no residual";
  check (&same, params);
}

/* Greedy is greedy, and impossible logits are errors. */
static void
test_corners (void)
{
  g_autoptr (RunnelSamplerParams) params = runnel_sampler_params_new ();
  g_autoptr (RunnelSampler) sampler = NULL, drawing = NULL;
  const RunnelGuess guess = { .token = 4 };
  float own[N_VOCAB];
  gint32 token;

  drawing = runnel_sampler_new (params, N_VOCAB, NULL);
  params->temperature = 0;
  sampler = runnel_sampler_new (params, N_VOCAB, NULL);
  memcpy (own, logits, sizeof own);
  g_assert_true (runnel_sampler_draw_against (sampler, own, 0, NULL, &guess,
                                              &token, NULL, NULL, 0, NULL));
  g_assert_cmpint (token, ==, 2);
  g_assert_cmpfloat (runnel_sampler_get_temperature (sampler), ==, 0);
  for (guint i = 0; i < 100; i++) {
    for (guint k = 0; k < N_VOCAB; k++)
      own[k] = k == 3 || k == 5 ? INFINITY : NAN;
    g_assert_true (runnel_sampler_draw_against (drawing, own, i, NULL, &guess,
                                                &token, NULL, NULL, 0, NULL));
    g_assert_true (token == 3 || token == 5);
  }
  for (guint k = 0; k < N_VOCAB; k++)
    own[k] = NAN;
  g_assert_false (runnel_sampler_draw_against (drawing, own, 0, NULL, &guess,
                                               &token, NULL, NULL, 0, NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/rejection/distribution", test_distribution);
  g_test_add_func ("/rejection/equal", test_equal);
  g_test_add_func ("/rejection/corners", test_corners);
  return g_test_run ();
}
