/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Keys and values, for any level with eight float lanes (its own header comes
 * first). A lane is a key while scores are computed, and an element of the
 * value after that; sums run in the order of keys in both.
 *
 * Queries that look at the same keys, be they heads of one token or tokens of
 * a chunk, are taken in groups that share registers, several independent sums
 * at once to hide the latency of fma. A strip of keys that fits in the first
 * cache serves all groups before the next; where there are many groups its
 * elements are widened to floats once for all of them. While the first group
 * works on a strip, the next is fetched: the processor's own prefetching ends
 * with every page of memory, and here is one every few thousand cycles.
 */
#pragma once

#include "../exp.h"
#include "../kernels.h"
#include "../scalar/scalar.h"

#define KV_TILE RUNNEL_KV_TILE
#define MAX_GROUP 6             /* queries that share registers */
#define MAX_QUERIES 64          /* queries that share a strip */
#define MAX_GROUPS ((MAX_QUERIES + MAX_GROUP - 1) / MAX_GROUP)
#define MANY_QUERIES 9          /* from here on strips are widened */
#define STRIP_KEYS 64
#define STRIP_FLOATS 4096       /* that a widened strip may have */

/* Queries and what becomes of them. Scores may be written for the rest of a
 * tile past the last key. */
typedef struct {
  const RunnelKvLayout *kv;
  const RunnelKvRun *runs;
  uint32_t n_runs;
  uint32_t kv_head;
  uint32_t key_begin;
  uint32_t n;
  uint32_t most_keys;          /* of any query */
  uint32_t strip_keys;         /* a whole number of tiles */
  uint32_t n_groups;
  uint32_t groups[MAX_GROUPS + 1];   /* their first queries, and the end */
  uint32_t n_keys[MAX_QUERIES];
  const float *q[MAX_QUERIES];
  RunnelPartial *partial[MAX_QUERIES];
  float scores[MAX_QUERIES][RUNNEL_KEY_BLOCK + KV_TILE];
  float strip[STRIP_FLOATS];
} Block;

ALWAYS_INLINE Lanes
load_elements (const uint8_t *p, RunnelKvFormat format)
{
  if (format == RUNNEL_KV_INT8)
    return lanes_load_codes (p);
  if (format == RUNNEL_KV_F16)
    return lanes_load_halves (p);
  return lanes_load ((const float *) p);
}

ALWAYS_INLINE size_t
element_size (RunnelKvFormat format)
{
  return format == RUNNEL_KV_INT8 ? 1 : format == RUNNEL_KV_F16 ? 2 : 4;
}

ALWAYS_INLINE void
prefetch_bytes (const uint8_t *p, size_t size)
{
#pragma GCC unroll 4
  for (size_t i = 0; i < size; i += 64)
    __builtin_prefetch (p + i);
}

/* ---- Groups -------------------------------------------------------------- */

/* They differ in size by one at most. */
static void
divide_into_groups (Block *block)
{
  block->n_groups = (block->n + MAX_GROUP - 1) / MAX_GROUP;
  for (uint32_t g = 0; g <= block->n_groups; g++)
    block->groups[g] = block->n * g / block->n_groups;
}

/* acc[i][j] += factors[i][at] · the j-th of n_vectors vectors at p, which are
 * `step` bytes apart. The fewer of both stay in registers. */
ALWAYS_INLINE void
multiply_add_group (const uint8_t *p, size_t step, const float *const *factors,
    uint32_t at, Lanes (*acc)[8], int n, int n_vectors, RunnelKvFormat format)
{
  Lanes kept[8];

  if (n <= n_vectors) {
#pragma GCC unroll 6
    for (int i = 0; i < n; i++)
      kept[i] = lanes_set (factors[i][at]);
#pragma GCC unroll 8
    for (int j = 0; j < n_vectors; j++) {
      Lanes vector = load_elements (p + j * step, format);

#pragma GCC unroll 6
      for (int i = 0; i < n; i++)
        acc[i][j] = lanes_fma (kept[i], vector, acc[i][j]);
    }
    return;
  }
#pragma GCC unroll 8
  for (int j = 0; j < n_vectors; j++)
    kept[j] = load_elements (p + j * step, format);
#pragma GCC unroll 6
  for (int i = 0; i < n; i++) {
    Lanes factor = lanes_set (factors[i][at]);

#pragma GCC unroll 8
    for (int j = 0; j < n_vectors; j++)
      acc[i][j] = lanes_fma (factor, kept[j], acc[i][j]);
  }
}

/* ---- Scores -------------------------------------------------------------- */

/* n queries times n_tiles tiles of keys at k, with the keys' scales or none;
 * as much is fetched at `next`. */
ALWAYS_INLINE void
score_tiles (const uint8_t *k, const uint8_t *next, uint32_t head_dim,
    const float *const *q, const float *scales, float *const *out, int n,
    int n_tiles, RunnelKvFormat format)
{
  size_t row = KV_TILE * element_size (format), tile = row * head_dim;
  Lanes acc[MAX_GROUP][8];

#pragma GCC unroll 6
  for (int i = 0; i < n; i++) {
#pragma GCC unroll 8
    for (int t = 0; t < n_tiles; t++)
      acc[i][t] = lanes_set (0.0f);
  }
  for (uint32_t d = 0; d < head_dim; d++) {
    prefetch_bytes (next + d * row * n_tiles, row * n_tiles);
    multiply_add_group (k + d * row, tile, q, d, acc, n, n_tiles, format);
  }
#pragma GCC unroll 6
  for (int i = 0; i < n; i++) {
#pragma GCC unroll 8
    for (int t = 0; t < n_tiles; t++) {
      if (scales != NULL)
        acc[i][t] = lanes_mul (acc[i][t], lanes_load (scales + KV_TILE * t));
      lanes_store (out[i] + KV_TILE * t, acc[i][t]);
    }
  }
}

/* All tiles of a strip, as many at once as there are registers for. */
ALWAYS_INLINE void
score_strip (const uint8_t *k, const uint8_t *next, uint32_t head_dim,
    uint32_t n_tiles, const float *const *q, const float *scales,
    float *const *first_out, int n, int at_once, RunnelKvFormat format)
{
  size_t tile = (size_t) head_dim * KV_TILE * element_size (format);
  const uint32_t steps[] = { at_once, at_once > 4 ? 4 : 1, 1 };
  const int n_steps = at_once > 4 ? 3 : 2;
  float *out[MAX_GROUP];
  uint32_t t = 0;

  for (int i = 0; i < n; i++)
    out[i] = first_out[i];
#pragma GCC unroll 3
  for (int s = 0; s < n_steps; s++) {
    for (; t + steps[s] <= n_tiles; t += steps[s]) {
      score_tiles (k + t * tile, next + t * tile, head_dim, q, scales, out, n,
          steps[s], format);
      for (int i = 0; i < n; i++)
        out[i] += steps[s] * KV_TILE;
      if (scales != NULL)
        scales += steps[s] * KV_TILE;
    }
  }
}

/* ---- Values -------------------------------------------------------------- */

/* Elements [d, d + 8 n_vectors) of n queries' outputs, over n_rows rows of
 * values at v whose weights are p; as much is fetched at `next`. */
ALWAYS_INLINE void
add_elements (const uint8_t *v, const uint8_t *next, size_t row_bytes,
    uint32_t n_rows, const float *const *p, float *const *out, uint32_t d,
    int n, int n_vectors, RunnelKvFormat format)
{
  size_t size = 8 * n_vectors * element_size (format);
  Lanes acc[MAX_GROUP][8];

#pragma GCC unroll 6
  for (int i = 0; i < n; i++) {
#pragma GCC unroll 8
    for (int j = 0; j < n_vectors; j++)
      acc[i][j] = lanes_load (out[i] + d + 8 * j);
  }
  v += d * element_size (format);
  next += d * element_size (format) * n_rows;
  for (uint32_t r = 0; r < n_rows; r++, v += row_bytes, next += size) {
    prefetch_bytes (next, size);
    multiply_add_group (v, 8 * element_size (format), p, r, acc, n, n_vectors,
        format);
  }
#pragma GCC unroll 6
  for (int i = 0; i < n; i++) {
#pragma GCC unroll 8
    for (int j = 0; j < n_vectors; j++)
      lanes_store (out[i] + d + 8 * j, acc[i][j]);
  }
}

ALWAYS_INLINE float
load_element (const uint8_t *p, RunnelKvFormat format)
{
  float value;

  if (format == RUNNEL_KV_INT8)
    return (float) (int8_t) *p;
  if (format == RUNNEL_KV_F16)
    return runnel_load_half (p);
  memcpy (&value, p, sizeof value);
  return value;
}

ALWAYS_INLINE void
add_strip (const uint8_t *v, const uint8_t *next, uint32_t head_dim,
    uint32_t n_rows, const float *const *p, float *const *out, int n,
    int at_once, RunnelKvFormat format)
{
  size_t row_bytes = head_dim * element_size (format);
  uint32_t d = 0;

  for (; d + 8 * at_once <= head_dim; d += 8 * at_once)
    add_elements (v, next, row_bytes, n_rows, p, out, d, n, at_once, format);
  for (; d + 8 <= head_dim; d += 8)
    add_elements (v, next, row_bytes, n_rows, p, out, d, n, 1, format);
  for (; d < head_dim; d++) {
    for (uint32_t r = 0; r < n_rows; r++) {
      float value = load_element (v + r * row_bytes
          + d * element_size (format), format);

      for (int i = 0; i < n; i++)
        out[i][d] = fmaf (p[i][r], value, out[i][d]);
    }
  }
}

/* ---- By format and number of queries ------------------------------------- */

typedef void (*ScoreFunc) (const uint8_t *k, const uint8_t *next,
    uint32_t head_dim, uint32_t n_tiles, const float *const *q,
    const float *scales, float *const *out);
typedef void (*AddFunc) (const uint8_t *v, const uint8_t *next,
    uint32_t head_dim, uint32_t n_rows, const float *const *p,
    float *const *out);

#define DEFINE_GROUP(n, at_once, suffix, format)                              \
  static void                                                                 \
  score_##n##_##suffix (const uint8_t *k, const uint8_t *next,                \
      uint32_t head_dim, uint32_t n_tiles, const float *const *q,             \
      const float *scales, float *const *out)                                 \
  {                                                                           \
    score_strip (k, next, head_dim, n_tiles, q, scales, out, n, at_once,      \
        format);                                                              \
  }                                                                           \
                                                                              \
  static void                                                                 \
  add_##n##_##suffix (const uint8_t *v, const uint8_t *next,                  \
      uint32_t head_dim, uint32_t n_rows, const float *const *p,              \
      float *const *out)                                                      \
  {                                                                           \
    add_strip (v, next, head_dim, n_rows, p, out, n, at_once, format);        \
  }

/* How many tiles or vectors at once fills the registers. */
#define DEFINE_GROUPS(suffix, format)                                         \
  DEFINE_GROUP (1, 8, suffix, format)                                         \
  DEFINE_GROUP (2, 4, suffix, format)                                         \
  DEFINE_GROUP (3, 4, suffix, format)                                         \
  DEFINE_GROUP (4, 2, suffix, format)                                         \
  DEFINE_GROUP (5, 2, suffix, format)                                         \
  DEFINE_GROUP (6, 2, suffix, format)

DEFINE_GROUPS (f16, RUNNEL_KV_F16)
DEFINE_GROUPS (f32, RUNNEL_KV_F32)
DEFINE_GROUPS (int8, RUNNEL_KV_INT8)

#define LIST_GROUPS(func, suffix)                                             \
  { func##_1_##suffix, func##_2_##suffix, func##_3_##suffix,                  \
    func##_4_##suffix, func##_5_##suffix, func##_6_##suffix }

static const ScoreFunc score_funcs[][MAX_GROUP] = {
  [RUNNEL_KV_F16] = LIST_GROUPS (score, f16),
  [RUNNEL_KV_F32] = LIST_GROUPS (score, f32),
  [RUNNEL_KV_INT8] = LIST_GROUPS (score, int8),
};

static const AddFunc add_funcs[][MAX_GROUP] = {
  [RUNNEL_KV_F16] = LIST_GROUPS (add, f16),
  [RUNNEL_KV_F32] = LIST_GROUPS (add, f32),
  [RUNNEL_KV_INT8] = LIST_GROUPS (add, int8),
};

/* ---- Strips -------------------------------------------------------------- */

/* Elements of a strip, as they are in the page or widened. */
typedef struct {
  const uint8_t *data;
  RunnelKvFormat format;
} Strip;

/* Those that are widened must have room. */
static void
choose_strip_keys (Block *block)
{
  uint32_t fit;

  block->strip_keys = STRIP_KEYS;
  if (block->n < MANY_QUERIES)
    return;
  fit = STRIP_FLOATS / block->kv->head_dim / KV_TILE * KV_TILE;
  if (fit > 0 && fit < STRIP_KEYS)
    block->strip_keys = fit;
}

/* A strip of n elements at p. */
static Strip
get_strip (Block *block, const uint8_t *p, size_t n)
{
  Strip strip = { p, block->kv->format };
  size_t i = 0;

  if (block->n < MANY_QUERIES || strip.format == RUNNEL_KV_F32
      || n > STRIP_FLOATS)
    return strip;
  if (strip.format == RUNNEL_KV_F16) {
    for (; i + 8 <= n; i += 8)
      lanes_store (block->strip + i, lanes_load_halves (p + 2 * i));
    for (; i < n; i++)
      block->strip[i] = load_element (p + 2 * i, RUNNEL_KV_F16);
  } else {
    for (; i + 8 <= n; i += 8)
      lanes_store (block->strip + i, lanes_load_codes (p + i));
    for (; i < n; i++)
      block->strip[i] = load_element (p + i, RUNNEL_KV_INT8);
  }
  strip.data = (const uint8_t *) block->strip;
  strip.format = RUNNEL_KV_F32;
  return strip;
}

/* Scores of n_tiles tiles at k for all queries, into their scores from
 * `index` on; of the first tile the leading lanes may belong to other keys,
 * then it comes alone and only `n` keys from `lead` on are taken. */
static void
score_all (Block *block, const uint8_t *k, const uint8_t *next,
    uint32_t n_tiles, const float *scales, uint32_t index, uint32_t lead,
    uint32_t n)
{
  uint32_t head_dim = block->kv->head_dim;
  Strip strip = get_strip (block, k, (size_t) n_tiles * KV_TILE * head_dim);

  for (uint32_t g = 0; g < block->n_groups; g++) {
    uint32_t first = block->groups[g];
    uint32_t size = block->groups[g + 1] - first;
    float aside[MAX_GROUP][KV_TILE], *out[MAX_GROUP];

    for (uint32_t i = 0; i < size; i++)
      out[i] = lead > 0 ? aside[i] : block->scores[first + i] + index;
    score_funcs[strip.format][size - 1] (strip.data,
        g == 0 ? next : strip.data, head_dim, n_tiles, block->q + first,
        scales, out);
    for (uint32_t i = 0; i < size && lead > 0; i++)
      memcpy (block->scores[first + i] + index, aside[i] + lead,
          n * sizeof (float));
  }
}

/* Rows [first, first + n_rows) of a page, whose scores start at `index`. */
static void
score_rows (Block *block, const uint8_t *layer, const uint8_t *after,
    uint32_t first, uint32_t n_rows, uint32_t index)
{
  const RunnelKvLayout *kv = block->kv;
  size_t row_bytes = kv->head_dim * runnel_kv_element_size (kv->format);
  uint32_t lead = first % KV_TILE;
  const uint8_t *k = layer
      + row_bytes * ((size_t) block->kv_head * kv->page_rows + first - lead);
  const float *scales = kv->format != RUNNEL_KV_INT8 ? NULL
      : (const float *) (layer + runnel_kv_scale_offset (kv, block->kv_head,
          first - lead));

  while (n_rows > 0) {
    uint32_t taken = lead > 0 ? KV_TILE - lead : block->strip_keys;
    uint32_t n_tiles;

    taken = taken < n_rows ? taken : n_rows;
    n_tiles = lead > 0 ? 1 : (taken + KV_TILE - 1) / KV_TILE;
    score_all (block, k, taken < n_rows ? k + n_tiles * KV_TILE * row_bytes
        : after, n_tiles, scales, index, lead, taken);
    k += n_tiles * KV_TILE * row_bytes;
    if (scales != NULL)
      scales += n_tiles * KV_TILE;
    index += taken;
    n_rows -= taken;
    lead = 0;
  }
}

/* Values of rows at v, of the keys [begin, end), for one group. */
static void
add_group (Block *block, Strip strip, const uint8_t *next, uint32_t first,
    uint32_t size, uint32_t begin, uint32_t end)
{
  uint32_t head_dim = block->kv->head_dim, common = end;
  size_t row_bytes = head_dim * runnel_kv_element_size (strip.format);
  const float *p[MAX_GROUP];
  float *out[MAX_GROUP];

  for (uint32_t i = 0; i < size; i++) {
    uint32_t n_keys = block->n_keys[first + i];

    common = n_keys < common ? n_keys : common;
    p[i] = block->scores[first + i] + begin;
    out[i] = block->partial[first + i]->out;
  }
  if (common > begin)
    add_funcs[strip.format][size - 1] (strip.data, next, head_dim,
        common - begin, p, out);
  else
    common = begin;
  for (uint32_t i = 0; i < size; i++) {
    uint32_t n_keys = block->n_keys[first + i];

    p[i] += common - begin;
    n_keys = n_keys < end ? n_keys : end;
    if (n_keys > common)
      add_funcs[strip.format][0] (strip.data + row_bytes * (common - begin),
          next, head_dim, n_keys - common, p + i, out + i);
  }
}

/* Weights of the keys [begin, end) times the scales of their values. */
static void
scale_weights (Block *block, const float *scales, uint32_t begin, uint32_t end)
{
  for (uint32_t i = 0; i < block->n; i++) {
    float *p = block->scores[i];
    uint32_t limit = block->n_keys[i] < end ? block->n_keys[i] : end;
    uint32_t k = begin;

    for (; k + 8 <= limit; k += 8)
      lanes_store (p + k, lanes_mul (lanes_load (p + k),
              lanes_load (scales + (k - begin))));
    for (; k < limit; k++)
      p[k] = p[k] * scales[k - begin];
  }
}

/* Values of rows from `first` on, of the keys [begin, end). */
static void
add_rows (Block *block, const uint8_t *values, const uint8_t *after,
    uint32_t first, uint32_t begin, uint32_t end)
{
  const RunnelKvLayout *kv = block->kv;
  size_t row_bytes = kv->head_dim * runnel_kv_element_size (kv->format);
  const uint8_t *v = values
      + row_bytes * ((size_t) block->kv_head * kv->page_rows + first);

  if (kv->format == RUNNEL_KV_INT8)
    scale_weights (block, (const float *) (values
            + runnel_kv_scale_offset (kv, block->kv_head, first)), begin, end);
  while (begin < end) {
    uint32_t taken = block->strip_keys < end - begin ? block->strip_keys
        : end - begin;
    Strip strip = get_strip (block, v, (size_t) taken * kv->head_dim);

    for (uint32_t g = 0; g < block->n_groups; g++) {
      add_group (block, strip, g > 0 ? strip.data
          : taken < end - begin ? v + taken * row_bytes : after,
          block->groups[g], block->groups[g + 1] - block->groups[g], begin,
          begin + taken);
    }
    v += taken * row_bytes;
    begin += taken;
  }
}

/* ---- Softmax ------------------------------------------------------------- */

/* Scores become weights; the maximum and the sum are noted. */
static void
soften (float *scores, uint32_t n, RunnelPartial *partial)
{
  const Lanes lowest = lanes_set (-INFINITY), zero = lanes_set (0.0f);
  Lanes max = lowest, sum = zero;

  for (uint32_t i = 0; i < n; i += 8) {
    Lanes s = lanes_load (scores + i);

    if (n - i < 8)
      s = lanes_first (s, n - i, lowest);
    max = lanes_max_number (s, max);
  }
  partial->max = lanes_largest (max) + 0.0f;

  max = lanes_set (partial->max);
  for (uint32_t i = 0; i < n; i += 8) {
    Lanes p = lanes_exp (lanes_sub (lanes_load (scores + i), max));

    if (n - i < 8)
      p = lanes_first (p, n - i, zero);
    lanes_store (scores + i, p);
    sum = lanes_add (sum, p);
  }
  partial->sum = lanes_sum (sum);
}

/* ---- A block of keys ----------------------------------------------------- */

/* The keys [*begin, *end), counted from the block's first, of a run. */
static bool
clip_run (const Block *block, const RunnelKvRun *run, uint32_t *begin,
    uint32_t *end)
{
  uint32_t run_end = run->key + run->n;
  uint32_t limit = block->key_begin + block->most_keys;

  if (run_end <= block->key_begin || run->key >= limit)
    return false;
  *begin = run->key > block->key_begin ? run->key - block->key_begin : 0;
  *end = (run_end < limit ? run_end : limit) - block->key_begin;
  return true;
}

static uint32_t
row_of_key (const Block *block, const RunnelKvRun *run, uint32_t index)
{
  return run->first + (block->key_begin + index - run->key);
}

/* Where the keys or the values of a row lie. */
static const uint8_t *
find_row (const Block *block, const RunnelKvRun *run, uint32_t row,
    bool values)
{
  const RunnelKvLayout *kv = block->kv;
  size_t row_bytes = kv->head_dim * runnel_kv_element_size (kv->format);

  return run->layer + (values ? runnel_kv_plane_bytes (kv) : 0)
      + row_bytes * ((size_t) block->kv_head * kv->page_rows
          + row / KV_TILE * KV_TILE);
}

/* What is used after the keys, or the values, of run r: those of the next;
 * behind the last keys come the first values, and behind the last values the
 * keys of the next block, if the runs go on, or nothing. */
static const uint8_t *
find_next (const Block *block, uint32_t r, bool values)
{
  const RunnelKvRun *run = &block->runs[r];
  uint32_t limit = block->key_begin + block->most_keys;

  if (run->key + run->n > limit && values)
    return find_row (block, run, run->first + (limit - run->key), false);
  if (r + 1 < block->n_runs && (values || run[1].key < limit))
    return find_row (block, run + 1, run[1].first,
        values && run[1].key < limit);
  if (values)
    return (const uint8_t *) block;
  return find_row (block, block->runs, block->runs->first, true);
}

/* The scales lie apart from the elements and are few. */
static void
prefetch_scales (const Block *block)
{
  const RunnelKvLayout *kv = block->kv;

  for (uint32_t r = 0; r < block->n_runs; r++) {
    const RunnelKvRun *run = &block->runs[r];
    const uint8_t *scales = run->layer
        + runnel_kv_scale_offset (kv, block->kv_head, run->first);

    for (size_t i = 0; i < run->n * sizeof (float); i += 64) {
      __builtin_prefetch (scales + i);
      __builtin_prefetch (scales + i + runnel_kv_plane_bytes (kv));
    }
  }
}

static void
finish_block (Block *block)
{
  size_t plane = runnel_kv_plane_bytes (block->kv);
  uint32_t begin, end;

  if (block->kv->format == RUNNEL_KV_INT8)
    prefetch_scales (block);
  divide_into_groups (block);
  choose_strip_keys (block);

  block->most_keys = 0;
  for (uint32_t i = 0; i < block->n; i++) {
    if (block->n_keys[i] > block->most_keys)
      block->most_keys = block->n_keys[i];
  }
  for (uint32_t r = 0; r < block->n_runs; r++) {
    const RunnelKvRun *run = &block->runs[r];

    if (clip_run (block, run, &begin, &end))
      score_rows (block, run->layer, find_next (block, r, false),
          row_of_key (block, run, begin), end - begin, begin);
  }
  for (uint32_t i = 0; i < block->n; i++) {
    soften (block->scores[i], block->n_keys[i], block->partial[i]);
    memset (block->partial[i]->out, 0, block->kv->head_dim * sizeof (float));
  }
  for (uint32_t r = 0; r < block->n_runs; r++) {
    const RunnelKvRun *run = &block->runs[r];

    if (clip_run (block, run, &begin, &end))
      add_rows (block, run->layer + plane, find_next (block, r, true),
          row_of_key (block, run, begin), begin, end);
  }
  block->n = 0;
}

void
LEVEL (attend) (const RunnelKvLayout *kv, const RunnelKvRun *runs,
    uint32_t n_runs, uint32_t kv_head, uint32_t key_begin, uint32_t key_end,
    const float *q, size_t q_stride, uint32_t n_queries, uint32_t n_heads,
    const uint32_t *limits, uint8_t *partials, size_t partial_stride)
{
  Block block;

  block.kv = kv;
  block.runs = runs;
  block.n_runs = n_runs;
  block.kv_head = kv_head;
  block.key_begin = key_begin;
  block.n = 0;
  for (uint32_t i = 0; i < n_queries; i++) {
    uint32_t end = limits[i] < key_end ? limits[i] : key_end;

    for (uint32_t h = 0; h < n_heads && end > key_begin; h++) {
      size_t at = ((size_t) i * n_heads + h) * partial_stride;

      block.n_keys[block.n] = end - key_begin;
      block.q[block.n] = q + i * q_stride + (size_t) h * kv->head_dim;
      block.partial[block.n] = (RunnelPartial *) (partials + at);
      if (++block.n == MAX_QUERIES)
        finish_block (&block);
    }
  }
  if (block.n > 0)
    finish_block (&block);
}

/* ---- Around it ----------------------------------------------------------- */

void
LEVEL (merge) (RunnelPartial *into, const RunnelPartial *from,
    uint32_t head_dim)
{
  float max = from->max > into->max ? from->max : into->max;
  float a = runnel_exp_inline (into->max - max);
  float b = runnel_exp_inline (from->max - max);
  uint32_t d;

  into->max = max;
  into->sum = into->sum * a + from->sum * b;
  for (d = 0; d + 8 <= head_dim; d += 8) {
    Lanes x = lanes_mul (lanes_load (into->out + d), lanes_set (a));
    Lanes y = lanes_mul (lanes_load (from->out + d), lanes_set (b));

    lanes_store (into->out + d, lanes_add (x, y));
  }
  for (; d < head_dim; d++)
    into->out[d] = into->out[d] * a + from->out[d] * b;
}

ALWAYS_INLINE void
store_key (uint8_t *k, const float *from, uint32_t head_dim,
    RunnelKvFormat format)
{
  uint32_t d = 0;

  if (format == RUNNEL_KV_F32) {
    for (; d < head_dim; d++)
      memcpy (k + d * KV_TILE * 4, from + d, 4);
    return;
  }
  for (; d + 8 <= head_dim; d += 8) {
    uint16_t halves[8];

    lanes_store_halves (halves, lanes_load (from + d));
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
      memcpy (k + (d + i) * KV_TILE * 2, halves + i, 2);
  }
  for (; d < head_dim; d++) {
    uint16_t half = runnel_float_to_half (from[d]);

    memcpy (k + d * KV_TILE * 2, &half, 2);
  }
}

ALWAYS_INLINE void
store_value (uint8_t *v, const float *from, uint32_t head_dim,
    RunnelKvFormat format)
{
  uint32_t d = 0;

  if (format == RUNNEL_KV_F32) {
    memcpy (v, from, head_dim * sizeof (float));
    return;
  }
  for (; d + 8 <= head_dim; d += 8)
    lanes_store_halves (v + 2 * d, lanes_load (from + d));
  for (; d < head_dim; d++) {
    uint16_t half = runnel_float_to_half (from[d]);

    memcpy (v + 2 * d, &half, 2);
  }
}

void
LEVEL (kv_store) (const RunnelKvLayout *kv, uint8_t *layer, uint32_t row,
    const float *k, const float *v)
{
  size_t size = runnel_kv_element_size (kv->format);
  uint8_t *values = layer + runnel_kv_plane_bytes (kv);

  if (kv->format == RUNNEL_KV_INT8) {
    runnel_scalar_kv_store (kv, layer, row, k, v);
    return;
  }
  for (uint32_t h = 0; h < kv->n_kv_heads; h++) {
    size_t tile = (size_t) h * (kv->page_rows / KV_TILE) + row / KV_TILE;
    uint8_t *key = layer + (tile * kv->head_dim * KV_TILE + row % KV_TILE)
        * size;
    uint8_t *value = values + ((size_t) h * kv->page_rows + row)
        * kv->head_dim * size;
    size_t from = (size_t) h * kv->head_dim;

    if (kv->format == RUNNEL_KV_F16) {
      store_key (key, k + from, kv->head_dim, RUNNEL_KV_F16);
      store_value (value, v + from, kv->head_dim, RUNNEL_KV_F16);
    } else {
      store_key (key, k + from, kv->head_dim, RUNNEL_KV_F32);
      store_value (value, v + from, kv->head_dim, RUNNEL_KV_F32);
    }
  }
}
