/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "error.h"
#include "generate/candidates.h"
#include "generate/elementary.h"
#include "generate/noise.h"
#include "generate/sampler.h"

static RunnelSamplerParams *
plain_params (double temperature)
{
  RunnelSamplerParams *p = runnel_sampler_params_new ();

  p->temperature = temperature;
  p->top_k = 0;
  p->top_p = 1;
  p->min_p = 0;
  return p;
}

static gint32
draw (const RunnelSamplerParams *params, const float *logits, guint n,
      guint64 position, const guint32 *mask, GError **error)
{
  g_autoptr (RunnelSampler) sampler = runnel_sampler_new (params, n, NULL);
  g_autofree float *copy = g_memdup2 (logits, n * sizeof *logits);
  gint32 token = -1;

  g_assert_nonnull (sampler);
  if (!runnel_sampler_draw (sampler, copy, position, mask, &token, NULL, NULL,
                            0, error))
    g_assert_cmpint (token, ==, -1);
  return token;
}

/* Which tokens come in 400 draws, as a bit set. */
static guint
drawn (const RunnelSamplerParams *params, const float *logits, guint n)
{
  guint set = 0;

  for (guint i = 0; i < 400; i++) {
    const gint32 token = draw (params, logits, n, i, NULL, NULL);

    g_assert_cmpint (token, >=, 0);
    g_assert_cmpint (token, <, n);
    set |= 1u << token;
  }
  return set;
}

typedef struct {
  const char *name;
  RunnelSamplerParams *params;
} Chain;

/* Every path through the cuts. */
static Chain *
make_chains (void)
{
  static const struct {
    const char *name;
    double temperature;
    guint top_k;
    double top_p, min_p;
  } rows[] = {
    { "greedy", 0, 0, 1, 0 },          { "temperature", 1, 0, 1, 0 },
    { "hot", 1e30, 0, 1, 0 },          { "top-k", 1, 3, 1, 0 },
    { "top-p", 1, 0, 0.9, 0 },         { "min-p", 1, 0, 1, 0.1 },
    { "all", 0.7, 5, 0.9, 0.05 },      { "top-p, min-p", 1, 0, 0.9, 0.05 },
    { "default", 0.8, 40, 0.95, 0.05 },
  };
  Chain *chains = g_new0 (Chain, G_N_ELEMENTS (rows) + 1);

  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++) {
    chains[i].name = rows[i].name;
    chains[i].params = plain_params (rows[i].temperature);
    chains[i].params->top_k = rows[i].top_k;
    chains[i].params->top_p = rows[i].top_p;
    chains[i].params->min_p = rows[i].min_p;
  }
  return chains;
}

static void
free_chains (Chain *chains)
{
  for (Chain *c = chains; c->name; c++)
    runnel_sampler_params_free (c->params);
  g_free (chains);
}

/* C18 */
static void
test_degenerate (void)
{
  enum { N = 40 };
  Chain *chains = make_chains ();
  float x[N];

  for (Chain *c = chains; c->name; c++) {
    g_autoptr (GError) error = NULL;

    for (guint64 position = 0; position < 50; position++) {
      for (int i = 0; i < N; i++)
        x[i] = -INFINITY;
      x[17] = -1e30f;
      g_assert_cmpint (draw (c->params, x, N, position, NULL, NULL), ==, 17);
      for (int i = 0; i < N; i++)
        x[i] = NAN;
      x[38] = 1;
      g_assert_cmpint (draw (c->params, x, N, position, NULL, NULL), ==, 38);
      for (int i = 0; i < N; i++)
        x[i] = 1;
      x[0] = NAN;
      g_assert_cmpint (draw (c->params, x, N, position, NULL, NULL), >, 0);
      x[20] = INFINITY;
      g_assert_cmpint (draw (c->params, x, N, position, NULL, NULL), ==, 20);
      x[33] = INFINITY;
      gint32 token = draw (c->params, x, N, position, NULL, NULL);
      g_assert_true (token == 20 || token == 33);
    }
    for (int i = 0; i < N; i++)
      x[i] = NAN;
    draw (c->params, x, N, 4711, NULL, &error);
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_BAD_LOGITS);
    g_assert_nonnull (strstr (error->message, "4711"));
    g_clear_error (&error);
    for (int i = 0; i < N; i++)
      x[i] = -INFINITY;
    draw (c->params, x, N, 4711, NULL, &error);
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_BAD_LOGITS);
  }
  free_chains (chains);
}

static void
test_mask (void)
{
  enum { N = 70 };
  Chain *chains = make_chains ();
  float x[N];

  for (int i = 0; i < N; i++)
    x[i] = (float) i;
  for (Chain *c = chains; c->name; c++) {
    g_autoptr (GError) error = NULL;

    for (int only = 0; only < N; only++) {
      guint32 mask[3] = { 0 };

      mask[only / 32] = 1u << only % 32;
      g_assert_cmpint (draw (c->params, x, N, 0, mask, NULL), ==, only);
    }
    draw (c->params, x, N, 9, (guint32[]){ 0, 0, 0 }, &error);
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NO_VALID_TOKEN);
    g_clear_error (&error);
    /* Bits past the vocabulary are no tokens. */
    draw (c->params, x, N, 9, (guint32[]){ 0, 0, 0xffffffc0 }, &error);
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NO_VALID_TOKEN);
  }
  free_chains (chains);
}

static void
check_refused (const RunnelSamplerParams *params, const char *field)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (runnel_sampler_params_check (params, 10, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  g_assert_nonnull (strstr (error->message, field));
  g_assert_null (runnel_sampler_new (params, 10, NULL));
}

/* C19 */
static void
test_corners (void)
{
  static const float x[4] = { 1, 3, 2, 3 };
  g_autoptr (RunnelSamplerParams) p = plain_params (0);

  g_assert_cmpuint (drawn (p, x, 4), ==, 1 << 1);
  p->temperature = 1e-30;
  g_assert_cmpuint (drawn (p, x, 4), ==, 1 << 1);
  p->temperature = 1e30;
  g_assert_cmpuint (drawn (p, x, 4), ==, 0xf);
  p->temperature = 1;
  g_assert_cmpuint (drawn (p, x, 4), ==, 0xf);
  p->top_p = 0;
  g_assert_cmpuint (drawn (p, x, 4), ==, 1 << 1);
  p->top_p = 1e-9;
  g_assert_cmpuint (drawn (p, x, 4), ==, 1 << 1);
  p->top_p = 0.75; /* the best have 0.40 each */
  g_assert_cmpuint (drawn (p, x, 4), ==, 1 << 1 | 1 << 3);
  p->top_p = 1;
  p->top_k = 1;
  g_assert_cmpuint (drawn (p, x, 4), ==, 1 << 1);
  p->top_k = 3;
  g_assert_cmpuint (drawn (p, x, 4), ==, 1 << 1 | 1 << 2 | 1 << 3);
  p->top_p = 0.9; /* of what top-k kept: 0.42, 0.84, 1 */
  g_assert_cmpuint (drawn (p, x, 4), ==, 1 << 1 | 1 << 2 | 1 << 3);
  p->top_p = 1;
  p->top_k = 5;
  g_assert_cmpuint (drawn (p, x, 4), ==, 0xf);
  p->top_k = 0;
  p->min_p = 1;
  g_assert_cmpuint (drawn (p, x, 4), ==, 1 << 1 | 1 << 3);
  p->min_p = 0.2; /* e^-1 is above it, e^-2 below */
  g_assert_cmpuint (drawn (p, x, 4), ==, 1 << 1 | 1 << 2 | 1 << 3);
}

static void
test_refused (void)
{
  static const double bad_p[] = { 1.5, -1, 1.1, NAN, INFINITY };
  g_autoptr (RunnelSamplerParams) p = runnel_sampler_params_new ();
  RunnelLogitBias bias = { 10, 1 };

  g_assert_true (runnel_sampler_params_check (p, 10, NULL));
  for (gsize i = 0; i < G_N_ELEMENTS (bad_p); i++) {
    p->top_p = bad_p[i];
    check_refused (p, "top_p");
    p->top_p = 1;
    p->min_p = bad_p[i];
    check_refused (p, "min_p");
    p->min_p = 0;
  }
  p->temperature = -0.1;
  check_refused (p, "temperature");
  p->temperature = NAN;
  check_refused (p, "temperature");
  p->temperature = 1;
  p->repetition_penalty = 0;
  check_refused (p, "repetition_penalty");
  p->repetition_penalty = NAN;
  check_refused (p, "repetition_penalty");
  p->repetition_penalty = 1;
  p->presence_penalty = -101;
  check_refused (p, "presence_penalty");
  p->presence_penalty = 0;
  p->frequency_penalty = INFINITY;
  check_refused (p, "frequency_penalty");
  p->frequency_penalty = 0;
  runnel_sampler_params_set_biases (p, &bias, 1);
  check_refused (p, "biases[0]");
  g_assert_true (runnel_sampler_params_check (p, 0, NULL));
  p->biases[0] = (RunnelLogitBias){ -1, 1 };
  check_refused (p, "biases[0]");
  p->biases[0] = (RunnelLogitBias){ 1, NAN };
  check_refused (p, "biases[0]");
  p->biases[0] = (RunnelLogitBias){ 1, INFINITY };
  check_refused (p, "biases[0]");
  p->biases[0] = (RunnelLogitBias){ 1, -INFINITY };
  g_assert_true (runnel_sampler_params_check (p, 10, NULL));
  g_assert_null (runnel_sampler_new (p, 0, NULL));
}

/* What the logits are after the penalties: greedy leaves them in place. */
static void
check_penalised (RunnelSampler *sampler, const float *logits,
                 const float *expected, guint n)
{
  g_autofree float *copy = g_memdup2 (logits, n * sizeof *logits);
  gint32 token;

  g_assert_true (runnel_sampler_draw (sampler, copy, 0, NULL, &token, NULL,
                                      NULL, 0, NULL));
  for (guint i = 0; i < n; i++)
    if (copy[i] != expected[i])
      g_error ("logit %u is %g, expected %g", i, copy[i], expected[i]);
}

static RunnelSampler *
c20_sampler (const RunnelSamplerParams *params)
{
  RunnelSampler *sampler = runnel_sampler_new (params, 10, NULL);

  runnel_sampler_accept_prompt (sampler, (gint32[]){ 5, 5, 7 }, 3);
  runnel_sampler_accept (sampler, 7);
  runnel_sampler_accept (sampler, 9);
  runnel_sampler_accept (sampler, 9);
  return sampler;
}

/* C20 */
static void
test_penalties (void)
{
  static const float zero[10] = { 0 };
  static const float some[10] = { [5] = 4, [7] = -4, [9] = 4, [1] = 4 };
  static const float repeated[10] = { [5] = 2, [7] = -8, [9] = 2, [1] = 4 };
  g_autoptr (RunnelSamplerParams) p = plain_params (0);
  g_autoptr (RunnelSampler) presence = NULL, frequency = NULL;
  g_autoptr (RunnelSampler) repetition = NULL;

  p->presence_penalty = 1;
  presence = c20_sampler (p);
  check_penalised (presence, zero, (float[10]){ [7] = -1, [9] = -1 }, 10);
  p->presence_penalty = 0;
  p->frequency_penalty = 1;
  frequency = c20_sampler (p);
  check_penalised (frequency, zero, (float[10]){ [7] = -1, [9] = -2 }, 10);
  p->frequency_penalty = 0;
  p->repetition_penalty = 2;
  repetition = c20_sampler (p);
  check_penalised (repetition, some, repeated, 10);
}

/* Drafts that were not kept leave no trace, forks do not see each other. */
static void
test_rewind_and_fork (void)
{
  static const float zero[10] = { 0 };
  g_autoptr (RunnelSamplerParams) p = plain_params (0);
  g_autoptr (RunnelSampler) sampler = NULL, fork = NULL;

  p->frequency_penalty = 1;
  sampler = c20_sampler (p);
  fork = runnel_sampler_fork (sampler);
  runnel_sampler_accept (sampler, 3);
  runnel_sampler_accept (sampler, 9);
  check_penalised (sampler, zero,
                   (float[10]){ [3] = -1, [7] = -1, [9] = -3 }, 10);
  check_penalised (fork, zero, (float[10]){ [7] = -1, [9] = -2 }, 10);
  runnel_sampler_rewind (sampler, 2);
  check_penalised (sampler, zero, (float[10]){ [7] = -1, [9] = -2 }, 10);
  runnel_sampler_rewind (sampler, 3);
  check_penalised (sampler, zero, zero, 10);
  /* A new turn: what was the reply is prompt now. */
  runnel_sampler_accept_prompt (fork, (gint32[]){ 2 }, 1);
  check_penalised (fork, zero, zero, 10);
  runnel_sampler_accept (fork, 9);
  check_penalised (fork, zero, (float[10]){ [9] = -1 }, 10);
}

/* The window against a count from scratch, over random walks of accept and
 * rewind. */
static void
test_penalty_window (void)
{
  enum { N = 6 };
  const guint32 seed = g_test_rand_int ();
  GRand *rand = g_rand_new_with_seed (seed);
  static const float one[N] = { 1, 1, 1, 1, 1, 1 };

  g_test_message ("seed %u", seed);
  for (guint window = 0; window < 8; window++) {
    g_autoptr (RunnelSamplerParams) p = plain_params (0);
    g_autoptr (RunnelSampler) sampler = NULL;
    gint32 tokens[200];
    guint n = 5;

    p->repetition_penalty = 2;
    p->frequency_penalty = 1;
    p->presence_penalty = 8;
    p->penalty_window = window;
    sampler = runnel_sampler_new (p, N, NULL);
    for (guint i = 0; i < n; i++)
      tokens[i] = g_rand_int_range (rand, -1, N + 1); /* some foreign */
    runnel_sampler_accept_prompt (sampler, tokens, n);
    for (int step = 0; step < 150; step++) {
      float expected[N];

      if (n > 5 && g_rand_int_range (rand, 0, 3) == 0) {
        const guint back = (guint) g_rand_int_range (rand, 1, (gint) n - 4);

        runnel_sampler_rewind (sampler, back);
        n -= back;
      } else {
        tokens[n] = g_rand_int_range (rand, 0, N);
        runnel_sampler_accept (sampler, tokens[n++]);
      }
      for (int t = 0; t < N; t++) {
        int any = 0, reply = 0;

        for (guint i = window > 0 && n > window ? n - window : 0; i < n; i++) {
          any += tokens[i] == t;
          reply += tokens[i] == t && i >= 5;
        }
        expected[t] = (any ? 0.5f : 1) - (reply ? 8 + reply : 0);
      }
      check_penalised (sampler, one, expected, N);
    }
  }
  g_rand_free (rand);
}

static void
test_bias (void)
{
  static const float x[4] = { 1, 3, 2, 3 };
  const RunnelLogitBias biases[] = { { 1, -INFINITY }, { 2, 1.5f }, { 2, 1 } };
  g_autoptr (RunnelSamplerParams) p = plain_params (0);
  g_autoptr (GError) error = NULL;
  RunnelLogitBias ban[4];

  runnel_sampler_params_set_biases (p, biases, 3);
  g_assert_cmpint (draw (p, x, 4, 0, NULL, NULL), ==, 2);
  for (int i = 0; i < 4; i++)
    ban[i] = (RunnelLogitBias){ i, -INFINITY };
  runnel_sampler_params_set_biases (p, ban, 4);
  draw (p, x, 4, 0, NULL, &error);
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NO_VALID_TOKEN);
}

/* Logprobs are those of the raw logits, whatever is done to them. */
static void
test_logprobs (void)
{
  enum { N = 1000 };
  GRand *rand = g_rand_new_with_seed (4);
  g_autoptr (RunnelSamplerParams) p = plain_params (0);
  g_autoptr (RunnelSampler) sampler = NULL;
  const RunnelLogitBias biases[] = { { 7, 100 } };
  RunnelTokenLogprob top[N + 2];
  float x[N], raw[N], lp;
  double sum = 0, total = 0;
  gint32 token;

  for (int i = 0; i < N; i++)
    x[i] = (float) g_rand_double_range (rand, -5, 5);
  x[3] = NAN;
  x[4] = -INFINITY;
  memcpy (raw, x, sizeof x);
  for (int i = 0; i < N; i++)
    if (x[i] > -INFINITY)
      total += exp (x[i]);
  p->presence_penalty = 1;
  p->top_k = 2;
  runnel_sampler_params_set_biases (p, biases, 1);
  sampler = runnel_sampler_new (p, N, NULL);
  runnel_sampler_accept (sampler, 7);
  g_assert_true (runnel_sampler_draw (sampler, x, 0, NULL, &token, &lp, top,
                                      N + 2, NULL));
  g_assert_cmpint (token, ==, 7);
  g_assert_cmpfloat_with_epsilon (lp, raw[7] - log (total), 1e-5);
  for (int i = 0; i < N - 2; i++) {
    g_assert_cmpfloat_with_epsilon (top[i].logprob,
                                    raw[top[i].token] - log (total), 1e-5);
    g_assert_true (i == 0 || top[i].logprob <= top[i - 1].logprob);
    sum += exp (top[i].logprob);
  }
  g_assert_cmpfloat_with_epsilon (sum, 1, 1e-5);
  for (int i = N - 2; i < N + 2; i++) {
    g_assert_cmpint (top[i].token, ==, -1);
    g_assert_true (isinf (top[i].logprob));
  }
  g_rand_free (rand);
}

static void
test_logprobs_infinite (void)
{
  float x[4] = { 1, INFINITY, 2, INFINITY };
  g_autoptr (RunnelSamplerParams) p = plain_params (0);
  g_autoptr (RunnelSampler) sampler = runnel_sampler_new (p, 4, NULL);
  RunnelTokenLogprob top[3];
  gint32 token;
  float lp;

  g_assert_true (
    runnel_sampler_draw (sampler, x, 0, NULL, &token, &lp, top, 3, NULL));
  g_assert_cmpint (token, ==, 1);
  g_assert_cmpfloat (lp, ==, (float) log (0.5));
  g_assert_cmpint (top[1].token, ==, 3);
  g_assert_cmpfloat (top[1].logprob, ==, lp);
  g_assert_cmpfloat (top[2].logprob, ==, -INFINITY);
}

/* The definition of the draw, without a shortcut. */
static gint32
draw_naive (const RunnelSamplerParams *p, const float *x, guint n,
            guint64 position)
{
  g_autofree guint64 *keys = g_new (guint64, n);
  gsize kept = runnel_candidates_top_k (x, n, n, keys);
  double best = -INFINITY;
  gint32 chosen = -1;
  float max;

  for (gsize i = 1; i < kept; i++)
    g_assert_cmpuint (keys[i], <, keys[i - 1]);
  if (p->top_k > 0)
    kept = MIN (kept, p->top_k);
  max = runnel_candidate_logit (keys[0]);
  if (p->top_p < 1) {
    double total = 0, sum = 0;
    gsize m = 0;

    if (p->top_k > 0)
      for (gsize i = 0; i < kept; i++)
        total += elementary_exp ((double) x[~(guint32) keys[i]] - max);
    else
      total = runnel_logits_sum_exp (x, n, max);
    do
      sum += elementary_exp ((double) x[~(guint32) keys[m++]] - max);
    while (m < kept && sum < p->top_p * total);
    kept = m;
  }
  for (gsize i = 0; i < kept; i++) {
    const guint32 token = ~(guint32) keys[i];
    const double value = ((double) x[token] - max) / p->temperature +
                         runnel_noise_gumbel (runnel_noise_word (
                           p->seed, position, token));

    if (!((double) x[token] - max >= elementary_log (p->min_p)))
      continue;
    if (value > best || (value == best && token < (guint32) chosen)) {
      best = value;
      chosen = (gint32) token;
    }
  }
  return chosen;
}

static void
test_against_naive (void)
{
  enum { N = 3000 };
  const guint32 seed = g_test_rand_int ();
  GRand *rand = g_rand_new_with_seed (seed);
  static const double temperatures[] = { 1e-5, 0.3, 1, 3, 100, 1e30 };
  static const double top_ps[] = { 1, 1, 0.999999999999, 0.95, 0.5 };
  static const double min_ps[] = { 0, 0, 1e-9, 0.05, 1 };
  g_autofree float *x = g_new (float, N);

  g_test_message ("seed %u", seed);
  for (int round = 0; round < 1500; round++) {
    g_autoptr (RunnelSamplerParams) p =
      plain_params (temperatures[g_rand_int_range (rand, 0, 6)]);
    const guint n = (guint) g_rand_int_range (rand, 1, round % 8 ? 50 : N);
    const double spread = exp (g_rand_double_range (rand, -3, 4));
    const guint64 position = g_rand_int (rand);

    p->top_k = (guint) MAX (0, g_rand_int_range (rand, -30, 40));
    if (p->top_k == 1 || p->top_k >= n)
      p->top_k = 0;
    p->top_p = top_ps[g_rand_int_range (rand, 0, 5)];
    p->min_p = min_ps[g_rand_int_range (rand, 0, 5)];
    p->seed = (guint64) g_rand_int (rand) << 32 | g_rand_int (rand);
    for (guint i = 0; i < n; i++) {
      x[i] = (float) (spread * g_rand_double_range (rand, -5, 5));
      if (round % 3 == 0) /* many ties */
        x[i] = roundf (x[i]);
      if (i > 0 && g_rand_int_range (rand, 0, 20) == 0)
        x[i] = i % 2 ? NAN : -INFINITY;
    }
    g_assert_cmpint (draw (p, x, n, position, NULL, NULL), ==,
                     draw_naive (p, x, n, position));
  }
  g_rand_free (rand);
}

/* Gumbel-max draws follow the softmax: chi-square over 20,000 draws. */
static void
check_frequencies (RunnelSamplerParams *p, const float *x, guint n,
                   double limit)
{
  enum { DRAWS = 20000 };
  g_autofree guint *counts = g_new0 (guint, n);
  g_autofree float *copy = g_new (float, n);
  g_autoptr (RunnelSampler) sampler = runnel_sampler_new (p, n, NULL);
  double total = 0, chi = 0;
  gint32 token;

  for (guint i = 0; i < n; i++)
    total += exp (x[i] / p->temperature);
  for (guint64 i = 0; i < DRAWS; i++) {
    memcpy (copy, x, n * sizeof *x);
    g_assert_true (runnel_sampler_draw (sampler, copy, i, NULL, &token, NULL,
                                        NULL, 0, NULL));
    counts[token]++;
  }
  for (guint i = 0; i < n; i++) {
    const double expected = DRAWS * exp (x[i] / p->temperature) / total;
    const double d = counts[i] - expected;

    chi += d * d / expected;
  }
  g_test_message ("temperature %g: chi-square %.1f", p->temperature, chi);
  g_assert_cmpfloat (chi, <, limit);
}

static void
test_frequencies (void)
{
  static const float x[8] = { 0, 1, -1, 2, 0.5f, 1.5f, -2, 1 };
  static const double temperatures[] = { 0.7, 1, 2 };
  g_autoptr (RunnelSamplerParams) p = plain_params (1);

  p->seed = 2026;
  for (gsize i = 0; i < G_N_ELEMENTS (temperatures); i++) {
    p->temperature = temperatures[i];
    p->top_k = 0;
    check_frequencies (p, x, 8, 24.32); /* 0.999 for 7 degrees of freedom */
    p->top_p = 0.9999999; /* keeps all, by the other path */
    check_frequencies (p, x, 8, 24.32);
    p->top_p = 1;
  }
}

/* A place in the sequence has its token, however one came there. */
static void
test_counter_based (void)
{
  static const float x[8] = { 0, 1, -1, 2, 0.5f, 1.5f, -2, 1 };
  g_autoptr (RunnelSamplerParams) p = runnel_sampler_params_new ();
  g_autoptr (RunnelSampler) sampler = runnel_sampler_new (p, 8, NULL);
  guint differ = 0;

  for (int position = 99; position >= 0; position--) {
    float copy[8];
    gint32 token;

    memcpy (copy, x, sizeof x);
    g_assert_true (runnel_sampler_draw (sampler, copy, (guint64) position,
                                        NULL, &token, NULL, NULL, 0, NULL));
    p->seed = 0;
    g_assert_cmpint (draw (p, x, 8, (guint64) position, NULL, NULL), ==, token);
    p->seed = 1;
    differ += draw (p, x, 8, (guint64) position, NULL, NULL) != token;
  }
  g_assert_cmpuint (differ, >, 20);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sampler/degenerate", test_degenerate);
  g_test_add_func ("/sampler/mask", test_mask);
  g_test_add_func ("/sampler/corners", test_corners);
  g_test_add_func ("/sampler/refused", test_refused);
  g_test_add_func ("/sampler/penalties", test_penalties);
  g_test_add_func ("/sampler/rewind-and-fork", test_rewind_and_fork);
  g_test_add_func ("/sampler/penalty-window", test_penalty_window);
  g_test_add_func ("/sampler/bias", test_bias);
  g_test_add_func ("/sampler/logprobs", test_logprobs);
  g_test_add_func ("/sampler/logprobs-infinite", test_logprobs_infinite);
  g_test_add_func ("/sampler/against-naive", test_against_naive);
  g_test_add_func ("/sampler/frequencies", test_frequencies);
  g_test_add_func ("/sampler/counter-based", test_counter_based);
  return g_test_run ();
}
