/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "rejection.h"

#include <math.h>

#include "elementary.h"
#include "noise.h"

/* Other keys of the noise: whether a guess is kept, and what comes instead. */
#define KEEP_STREAM 0x6a09e667f3bcc908u
#define DRAW_STREAM 0xbb67ae8584caa73bu

static double
draw_uniform (const RunnelGumbelDraw *draw, uint64_t stream)
{
  return runnel_noise_uniform (
    runnel_noise_word (draw->seed ^ stream, draw->position, 0));
}

/* Makes weights the probabilities of the candidates. */
static void
weigh (const uint64_t *keys, size_t n, float max, double temperature,
       double *weights)
{
  double total = 0;

  for (size_t i = 0; i < n; i++) {
    const float logit = runnel_candidate_logit (keys[i]);

    weights[i] = logit == max
                   ? 1.0
                   : elementary_exp (((double) logit - max) / temperature);
    total += weights[i];
  }
  for (size_t i = 0; i < n; i++)
    weights[i] /= total;
}

/* With which probability the guess's drafter would have given this token. */
static double
get_draft_probability (const RunnelGuess *guess, uint32_t token)
{
  if (guess->n == 0)
    return token == guess->token ? 1.0 : 0.0;
  for (size_t i = 0; i < guess->n; i++)
    if ((uint32_t) guess->candidates[i] == token)
      return guess->probabilities[i];
  return 0.0;
}

static double
get_probability (const uint64_t *keys, const double *weights, size_t n,
                 uint32_t token)
{
  for (size_t i = 0; i < n; i++)
    if (runnel_candidate_token (keys[i]) == token)
      return weights[i];
  return 0.0;
}

/* What p has above q. */
static double
get_rest (const uint64_t *keys, const double *weights, size_t i,
          const RunnelGuess *guess)
{
  const double rest = weights[i] - get_draft_probability (
                                     guess, runnel_candidate_token (keys[i]));

  return rest > 0 ? rest : 0;
}

bool
runnel_rejection_keeps (const uint64_t *keys, const double *weights, size_t n,
                        const RunnelGuess *guess, double u)
{
  return u * get_draft_probability (guess, guess->token) <
         get_probability (keys, weights, n, guess->token);
}

uint32_t
runnel_rejection_replace (const uint64_t *keys, const double *weights,
                          size_t n, const RunnelGuess *guess, double u)
{
  double total = 0, sum = 0;
  size_t last = 0;
  bool any;

  for (size_t i = 0; i < n; i++)
    total += get_rest (keys, weights, i, guess);
  /* Nothing of p is above q: they are equal, but for rounding. */
  any = total > 0;
  if (!any)
    total = 1.0;
  for (size_t i = 0; i < n; i++) {
    const double weight = any ? get_rest (keys, weights, i, guess)
                              : weights[i];

    if (!(weight > 0))
      continue;
    last = i;
    sum += weight;
    if (u * total < sum)
      break;
  }
  return runnel_candidate_token (keys[last]);
}

uint32_t
runnel_rejection_draw (const uint64_t *keys, size_t n, float max,
                       const RunnelGuess *guess, const RunnelGumbelDraw *draw,
                       double *weights)
{
  weigh (keys, n, max, draw->temperature, weights);
  if (runnel_rejection_keeps (keys, weights, n, guess,
                              draw_uniform (draw, KEEP_STREAM)))
    return guess->token;
  return runnel_rejection_replace (keys, weights, n, guess,
                                   draw_uniform (draw, DRAW_STREAM));
}
