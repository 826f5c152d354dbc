/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Choosing among logits: maximum, sum, cuts, and the Gumbel-max draw. NaN and
 * -inf are never chosen. Ties go to the lowest id, whatever the algorithm,
 * because candidates are compared by keys that no two of them share. Nothing
 * here allocates. Includes nothing but C.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Where a Gumbel-max draw looks for its noise. */
typedef struct {
  uint64_t seed;
  uint64_t position;
  double temperature;
} RunnelGumbelDraw;

/* The largest logit and its lowest index; -inf when none is above -inf. */
float runnel_logits_max (const float *logits, size_t n, size_t *ret_index);

/* Sum of e^(logit - max), max being the largest of them and above -inf. What
 * lies more than 50 under the maximum counts as 50 under it: even together
 * that is less than the rounding error. Eight partial sums by index modulo 8,
 * added as a tree. With an infinite maximum: how many there are of it. */
double runnel_logits_sum_exp (const float *logits, size_t n, float max);

/* A candidate as an integer: a larger logit makes a larger key, then a lower
 * id does. */
uint64_t runnel_candidate_key (float logit, uint32_t token);
float runnel_candidate_logit (uint64_t key);
uint32_t runnel_candidate_token (uint64_t key);

/* The k best with a logit above -inf, best first; returns how many there are.
 * keys: room for k. */
size_t runnel_candidates_top_k (const float *logits, size_t n, size_t k,
                                uint64_t *keys);

/* How many of the candidates, best first, are needed until their part of all
 * n reaches top_p; at least one. */
size_t runnel_candidates_top_p (const uint64_t *keys, size_t n, double top_p);

/* The same over all logits, sorting few of them: the kept candidates, in no
 * order. The part of the candidates is summed by steps of 1/8 under the
 * maximum (in each by id), then from the best step to the worst, and in the
 * step where the sum reaches top_p from the best candidate to the worst.
 * max: finite. keys: room for n. */
size_t runnel_logits_top_p (const float *logits, size_t n, float max,
                            double top_p, uint64_t *keys);

/* Drops the candidates whose logit is below max + floor; returns how many are
 * left. Keeps the order. */
size_t runnel_candidates_above (uint64_t *keys, size_t n, float max,
                                double floor);

/* The arg max of (logit - max) / temperature + noise over the candidates
 * (n > 0). */
uint32_t runnel_candidates_draw (const uint64_t *keys, size_t n, float max,
                                 const RunnelGumbelDraw *draw);

/* The same over all logits that are above -inf and at least max + floor;
 * best_token is the token with the largest logit. */
uint32_t runnel_logits_draw (const float *logits, size_t n, float max,
                             uint32_t best_token, double floor,
                             const RunnelGumbelDraw *draw);
