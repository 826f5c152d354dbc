/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "candidates.h"

#include <math.h>
#include <string.h>

#include "elementary.h"
#include "noise.h"

enum {
  LANES = 16, /* of the maximum: independent chains for the vector units */
  BLOCK = 256,
};

/* e^-50, for every token there may be, is less than the rounding error of a
 * sum of probabilities. */
#define NEGLIGIBLE (-50.0)

/* Steps of 1/8 from 0 to 50 under the maximum. */
enum {
  BUCKETS_PER_NAT = 8,
  BUCKETS = 50 * BUCKETS_PER_NAT,
};

static float
lanes_max (const float *x, size_t n)
{
  float lane[LANES], best = -INFINITY;
  size_t i = 0;

  for (int j = 0; j < LANES; j++)
    lane[j] = -INFINITY;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++)
      lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  for (; i < n; i++)
    lane[0] = x[i] > lane[0] ? x[i] : lane[0];
  for (int j = 0; j < LANES; j++)
    best = lane[j] > best ? lane[j] : best;
  return best;
}

float
runnel_logits_max (const float *logits, size_t n, size_t *ret_index)
{
  float best = -INFINITY;
  size_t from = 0, at;

  for (size_t i = 0; i < n; i += BLOCK) {
    const float m = lanes_max (logits + i, n - i < BLOCK ? n - i : BLOCK);

    if (m > best) {
      best = m;
      from = i;
    }
  }
  if (best > -INFINITY) {
    for (at = from; logits[at] != best; at++)
      ;
    *ret_index = at;
  }
  return best;
}

/* How far a logit is under the maximum. The comparison also turns NaN and -inf
 * into a number. */
static inline double
raised (double distance)
{
  return distance > NEGLIGIBLE ? distance : NEGLIGIBLE;
}

/* A token's part in a sum of probabilities. */
static double
weight (float logit, float max)
{
  return elementary_exp_within (raised ((double) logit - (double) max));
}

/* Distances and weights of up to BLOCK logits. The loops are apart because
 * that is how compilers vectorise them. */
static void
weigh (const float *logits, size_t n, float max, double *distances,
       double *weights)
{
  for (size_t i = 0; i < n; i++)
    distances[i] = (double) logits[i] - (double) max;
  for (size_t i = 0; i < n; i++)
    distances[i] = raised (distances[i]);
  for (size_t i = 0; i < n; i++)
    weights[i] = elementary_exp_within (distances[i]);
}

double
runnel_logits_sum_exp (const float *logits, size_t n, float max)
{
  double lane[8] = { 0 }, distances[BLOCK], weights[BLOCK];

  if (max == INFINITY) {
    for (size_t i = 0; i < n; i++)
      lane[0] += logits[i] == max;
    return lane[0];
  }
  for (size_t i = 0; i < n; i += BLOCK) {
    const size_t count = n - i < BLOCK ? n - i : BLOCK;

    weigh (logits + i, count, max, distances, weights);
    for (size_t j = 0; j < count; j++)
      lane[j % 8] += weights[j];
  }
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
         ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

uint64_t
runnel_candidate_key (float logit, uint32_t token)
{
  const float plain = logit + 0.0f; /* -0 and 0 are one value */
  uint32_t bits;

  memcpy (&bits, &plain, sizeof bits);
  bits ^= bits >> 31 ? UINT32_MAX : UINT32_C (0x80000000);
  return (uint64_t) bits << 32 | (uint32_t) ~token;
}

float
runnel_candidate_logit (uint64_t key)
{
  uint32_t bits = (uint32_t) (key >> 32);
  float logit;

  bits ^= bits >> 31 ? UINT32_C (0x80000000) : UINT32_MAX;
  memcpy (&logit, &bits, sizeof logit);
  return logit;
}

uint32_t
runnel_candidate_token (uint64_t key)
{
  return ~(uint32_t) key;
}

/* Binary heaps (Williams 1964). `flip` is 0 for a heap with the largest key
 * on top and all ones for the smallest. */
static void
sift_down (uint64_t *heap, size_t n, size_t at, uint64_t flip)
{
  const uint64_t key = heap[at];

  for (;;) {
    size_t child = 2 * at + 1;

    if (child >= n)
      break;
    if (child + 1 < n && (heap[child + 1] ^ flip) > (heap[child] ^ flip))
      child++;
    if ((heap[child] ^ flip) <= (key ^ flip))
      break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = key;
}

static void
make_heap (uint64_t *heap, size_t n, uint64_t flip)
{
  for (size_t i = n / 2; i > 0; i--)
    sift_down (heap, n, i - 1, flip);
}

/* Moves the top behind the heap, which shrinks by one. */
static uint64_t
pop (uint64_t *heap, size_t n, uint64_t flip)
{
  const uint64_t top = heap[0];

  heap[0] = heap[n - 1];
  heap[n - 1] = top;
  sift_down (heap, n - 1, 0, flip);
  return top;
}

size_t
runnel_candidates_top_k (const float *logits, size_t n, size_t k,
                         uint64_t *keys)
{
  const uint64_t flip = UINT64_MAX;
  float threshold = -INFINITY; /* the worst kept, once k are kept */
  size_t kept = 0;

  if (k == 0)
    return 0;
  for (size_t i = 0; i < n; i += LANES) {
    const size_t end = n - i < LANES ? n : i + LANES;

    if (!(lanes_max (logits + i, end - i) > threshold))
      continue;
    for (size_t j = i; j < end; j++) {
      if (!(logits[j] > threshold)) /* a tie loses: its id is higher */
        continue;
      if (kept < k) {
        keys[kept++] = runnel_candidate_key (logits[j], (uint32_t) j);
        if (kept == k)
          make_heap (keys, k, flip);
      } else {
        keys[0] = runnel_candidate_key (logits[j], (uint32_t) j);
        sift_down (keys, k, 0, flip);
      }
      if (kept == k)
        threshold = runnel_candidate_logit (keys[0]);
    }
  }
  if (kept < k)
    make_heap (keys, kept, flip);
  for (size_t i = kept; i > 1; i--)
    pop (keys, i, flip);
  return kept;
}

size_t
runnel_candidates_top_p (const uint64_t *keys, size_t n, double top_p)
{
  const float max = runnel_candidate_logit (keys[0]);
  double total = 0, sum = 0;
  size_t kept = 0;

  for (size_t i = 0; i < n; i++)
    total += weight (runnel_candidate_logit (keys[i]), max);
  do
    sum += weight (runnel_candidate_logit (keys[kept++]), max);
  while (kept < n && sum < top_p * total);
  return kept;
}

static inline int
bucket_of (double distance)
{
  const int bucket = (int) (-distance * BUCKETS_PER_NAT);

  return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

size_t
runnel_logits_top_p (const float *logits, size_t n, float max, double top_p,
                     uint64_t *keys)
{
  double buckets[BUCKETS] = { 0 }, distances[BLOCK], weights[BLOCK];
  double total = 0, sum = 0, target;
  size_t kept = 0, end = n, left;
  int last = 0;

  for (size_t i = 0; i < n; i += BLOCK) {
    const size_t count = n - i < BLOCK ? n - i : BLOCK;

    weigh (logits + i, count, max, distances, weights);
    for (size_t j = 0; j < count; j++)
      buckets[bucket_of (distances[j])] += weights[j];
  }
  for (int b = 0; b < BUCKETS; b++)
    total += buckets[b];
  target = top_p * total;
  while (last < BUCKETS - 1 && sum + buckets[last] < target)
    sum += buckets[last++];

  /* The buckets before the last are kept whole, at the front; of the last,
   * gathered at the back, the best until the target is reached. */
  for (size_t i = 0; i < n; i++) {
    const double distance = (double) logits[i] - (double) max;
    const int bucket = bucket_of (raised (distance));

    if (bucket > last || !(logits[i] > -INFINITY))
      continue;
    if (bucket < last)
      keys[kept++] = runnel_candidate_key (logits[i], (uint32_t) i);
    else
      keys[--end] = runnel_candidate_key (logits[i], (uint32_t) i);
  }
  left = n - end;
  make_heap (keys + end, left, 0);
  while (left > 0 && (sum < target || (kept == 0 && left == n - end))) {
    const uint64_t key = pop (keys + end, left--, 0);

    sum += weight (runnel_candidate_logit (key), max);
  }
  memmove (keys + kept, keys + end + left,
           (n - end - left) * sizeof *keys);
  return kept + (n - end - left);
}

size_t
runnel_candidates_above (uint64_t *keys, size_t n, float max, double floor)
{
  size_t kept = 0;

  for (size_t i = 0; i < n; i++)
    if ((double) runnel_candidate_logit (keys[i]) - max >= floor)
      keys[kept++] = keys[i];
  return kept;
}

/* Both draws must see the same number here. */
static inline double
scaled (float logit, float max, double temperature)
{
  return logit == max ? 0.0 : ((double) logit - (double) max) / temperature;
}

uint32_t
runnel_candidates_draw (const uint64_t *keys, size_t n, float max,
                        const RunnelGumbelDraw *draw)
{
  double best = -(double) INFINITY;
  uint32_t chosen = 0;

  /* Skipping is exact: rounding is monotonic, so a sum with a bound of the
   * noise that is below the best means that the sum with the noise is. */
  for (size_t i = 0; i < n; i++) {
    const uint32_t token = runnel_candidate_token (keys[i]);
    double value =
      scaled (runnel_candidate_logit (keys[i]), max, draw->temperature);
    uint32_t word;

    if (value + RUNNEL_NOISE_GUMBEL_MAX < best)
      continue;
    word = runnel_noise_word (draw->seed, draw->position, token);
    if (value + runnel_noise_gumbel_bound (word) < best)
      continue;
    value += runnel_noise_gumbel (word);
    if (value > best || (value == best && token < chosen)) {
      best = value;
      chosen = token;
    }
  }
  return chosen;
}

/* The smallest logit that is kept and can still win with the largest noise,
 * rounded down: what is above it is looked at exactly. */
static float
reachable (float max, double floor, double best, double temperature)
{
  double distance = (best - RUNNEL_NOISE_GUMBEL_MAX) * temperature;

  distance = distance > floor ? distance : floor;
  if (max == INFINITY)
    return max;
  return (float) (max + distance -
                  1e-5 * (1.0 + fabs ((double) max) + fabs (distance)));
}

uint32_t
runnel_logits_draw (const float *logits, size_t n, float max,
                    uint32_t best_token, double floor,
                    const RunnelGumbelDraw *draw)
{
  const double t = draw->temperature;
  double best = runnel_noise_gumbel (
    runnel_noise_word (draw->seed, draw->position, best_token));
  float limit = reachable (max, floor, best, t);
  uint32_t chosen = best_token, words[4];

  for (size_t i = 0; i < n; i += 4) {
    const size_t count = n - i < 4 ? n - i : 4;
    int alive = 0;

    for (size_t j = 0; j < count; j++)
      alive |= logits[i + j] >= limit && logits[i + j] > -INFINITY;
    if (!alive)
      continue;
    runnel_noise_block (draw->seed, draw->position, (uint32_t) (i / 4), words);
    for (size_t j = 0; j < count; j++) {
      const float logit = logits[i + j];
      double value = scaled (logit, max, t);

      if (!(logit > -INFINITY) ||
          (logit != max && !((double) logit - max >= floor)) ||
          value + runnel_noise_gumbel_bound (words[j]) < best)
        continue;
      value += runnel_noise_gumbel (words[j]);
      if (value > best || (value == best && i + j < chosen)) {
        best = value;
        chosen = (uint32_t) (i + j);
        limit = reachable (max, floor, best, t);
      }
    }
  }
  return chosen;
}
