/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Rejection sampling of a guess (Leviathan, Kalman, Matias, "Fast Inference
 * from Transformers via Speculative Decoding", ICML 2023): a guess x drawn
 * from q is kept with probability min (1, p (x) / q (x)), else a token is
 * drawn from the part of p that is above q. What comes out is distributed as
 * p, whatever q is.
 *
 * The two numbers that are drawn are noise of (seed, position) in streams of
 * their own, so that a guess that was drawn with the sampler's own noise is
 * independent of them. Includes nothing but C.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "candidates.h"

/* What a guess was drawn from: @n different tokens with their probabilities;
 * without any, the guess is certain. */
typedef struct {
  uint32_t token;
  size_t n;
  const int32_t *candidates;
  const float *probabilities;
} RunnelGuess;

/* By numbers in [0, 1) that are given: whether the guess is kept, and what
 * comes in its place else, drawn along the keys. weights: p of each key. */
bool runnel_rejection_keeps (const uint64_t *keys, const double *weights,
                             size_t n, const RunnelGuess *guess, double u);
uint32_t runnel_rejection_replace (const uint64_t *keys,
                                   const double *weights, size_t n,
                                   const RunnelGuess *guess, double u);

/* The token at this position: the guess or another one. p is the softmax of
 * the n > 0 kept candidates at the draw's temperature (above 0); max is their
 * largest logit. weights: room for n. */
uint32_t runnel_rejection_draw (const uint64_t *keys, size_t n, float max,
                                const RunnelGuess *guess,
                                const RunnelGumbelDraw *draw, double *weights);
