/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Counter-based noise: a pure function of (seed, position, token), never of
 * how many numbers were drawn before. Whoever asks for the same place gets the
 * same noise, so that a reply does not depend on batching, forks, caches or
 * drafts. Includes nothing but C.
 *
 * The bits are Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel Random
 * Numbers: As Easy as 1, 2, 3", SC 2011). Key: seed, low half first. Counter:
 * (token / 4, position low, position high, 0). Word token % 4 of the result
 * belongs to the token.
 */
#pragma once

#include <stdint.h>

/* The words of tokens 4 * block … 4 * block + 3. */
void runnel_noise_block (uint64_t seed, uint64_t position, uint32_t block,
                         uint32_t words[4]);

uint32_t runnel_noise_word (uint64_t seed, uint64_t position, uint32_t token);

/* (word + 1/2) / 2^32: in (0, 1), never 0 or 1. */
double runnel_noise_uniform (uint32_t word);

/* Standard Gumbel noise, -ln (-ln u): the arg max of logit + noise is a draw
 * from the softmax of the logits (Gumbel 1954; Maddison, Tarlow, Minka, "A*
 * Sampling", NIPS 2014). */
double runnel_noise_gumbel (uint32_t word);

/* The largest noise there is. */
#define RUNNEL_NOISE_GUMBEL_MAX (33 * 0.69314719)

/* At least runnel_noise_gumbel () of the word, without a logarithm. As
 * -ln u >= 1 - u, the noise is at most -ln (1 - u); 1 - u = (v + 1/2) / 2^32
 * for v = ~word, which has its first one behind so many zeros. 0.69314719 is
 * ln 2 rounded up by more than the error of the noise. */
static inline double
runnel_noise_gumbel_bound (uint32_t word)
{
  const uint32_t v = ~word;

  return ((v ? __builtin_clz (v) : 32) + 1) * 0.69314719;
}
