/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Keys and values, for any level with eight float lanes (its own header comes
 * first). Queries that look at the same keys, be they heads of one token or
 * tokens of a chunk, are taken four at a time and share every key and value
 * that is read and widened. A lane is a key while scores are computed, and an
 * element of the value after that; sums run in the order of
 * keys in both, several independent ones at once to hide the latency of fma.
 */
#pragma once

#include "../exp.h"
#include "../kernels.h"

#define KV_TILE RUNNEL_KV_TILE
#define MAX_QUERIES 4

/* Up to four queries and what becomes of them. Scores may be written for the
 * rest of a tile past the last key. */
typedef struct {
  const RunnelKvLayout *kv;
  const RunnelKvRun *runs;
  uint32_t n_runs;
  uint32_t kv_head;
  uint32_t key_begin;
  int n;
  uint32_t most_keys;          /* of any query */
  uint32_t fewest_keys;
  uint32_t n_keys[MAX_QUERIES];
  const float *q[MAX_QUERIES];
  RunnelPartial *partial[MAX_QUERIES];
  float scores[MAX_QUERIES][RUNNEL_KEY_BLOCK + KV_TILE];
} Block;

ALWAYS_INLINE Lanes
load_elements (const uint8_t *p, RunnelKvFormat format)
{
  if (format == RUNNEL_KV_F16)
    return lanes_load_halves (p);
  return lanes_load ((const float *) p);
}

ALWAYS_INLINE size_t
element_size (RunnelKvFormat format)
{
  return format == RUNNEL_KV_F16 ? 2 : 4;
}

/* ---- Scores --------------------------------------------------------------- */

/* n queries times n_tiles tiles of keys at k. */
ALWAYS_INLINE void
score_tiles (const uint8_t *k, uint32_t head_dim, const float *const *q, int n,
    int n_tiles, float *const *out, RunnelKvFormat format)
{
  size_t row = KV_TILE * element_size (format), tile = row * head_dim;
  Lanes acc[MAX_QUERIES][8];

#pragma GCC unroll 4
  for (int i = 0; i < n; i++) {
#pragma GCC unroll 8
    for (int t = 0; t < n_tiles; t++)
      acc[i][t] = lanes_set (0.0f);
  }
  for (uint32_t d = 0; d < head_dim; d++) {
#pragma GCC unroll 8
    for (int t = 0; t < n_tiles; t++) {
      Lanes key = load_elements (k + t * tile + d * row, format);

#pragma GCC unroll 4
      for (int i = 0; i < n; i++)
        acc[i][t] = lanes_fma (lanes_set (q[i][d]), key, acc[i][t]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) {
#pragma GCC unroll 8
    for (int t = 0; t < n_tiles; t++)
      lanes_store (out[i] + KV_TILE * t, acc[i][t]);
  }
}

/* n_tiles whole tiles, as many at once as there are registers for. */
ALWAYS_INLINE void
score_whole_tiles (const Block *block, const uint8_t *k, uint32_t n_tiles,
    float *const *first_out, int n, int at_once, RunnelKvFormat format)
{
  uint32_t head_dim = block->kv->head_dim, t = 0;
  size_t tile = (size_t) head_dim * KV_TILE * element_size (format);
  float *out[MAX_QUERIES];

  for (int i = 0; i < n; i++)
    out[i] = first_out[i];
  for (; t + at_once <= n_tiles; t += at_once) {
    score_tiles (k + t * tile, head_dim, block->q, n, at_once, out, format);
    for (int i = 0; i < n; i++)
      out[i] += at_once * KV_TILE;
  }
  for (; t < n_tiles; t++) {
    score_tiles (k + t * tile, head_dim, block->q, n, 1, out, format);
    for (int i = 0; i < n; i++)
      out[i] += KV_TILE;
  }
}

/* Rows [first, first + n_rows) of a page, whose scores start at `index`. A
 * first tile that starts before them is scored aside, as its leading lanes
 * belong to other keys. */
ALWAYS_INLINE void
score_rows (Block *block, const uint8_t *layer, uint32_t first,
    uint32_t n_rows, uint32_t index, int n, int at_once, RunnelKvFormat format)
{
  const RunnelKvLayout *kv = block->kv;
  size_t tile = (size_t) kv->head_dim * KV_TILE * element_size (format);
  const uint8_t *k = layer + tile * ((size_t) block->kv_head
      * (kv->page_rows / KV_TILE) + first / KV_TILE);
  uint32_t lead = first % KV_TILE;
  float aside[MAX_QUERIES][KV_TILE], *out[MAX_QUERIES];

  if (lead != 0) {
    uint32_t taken = KV_TILE - lead < n_rows ? KV_TILE - lead : n_rows;

    for (int i = 0; i < n; i++)
      out[i] = aside[i];
    score_tiles (k, kv->head_dim, block->q, n, 1, out, format);
    for (int i = 0; i < n; i++)
      memcpy (block->scores[i] + index, aside[i] + lead,
          taken * sizeof (float));
    k += tile;
    index += taken;
    n_rows -= taken;
  }
  for (int i = 0; i < n; i++)
    out[i] = block->scores[i] + index;
  score_whole_tiles (block, k, (n_rows + KV_TILE - 1) / KV_TILE, out, n,
      at_once, format);
}

/* ---- Softmax ---------------------------------------------------------------- */

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

/* ---- Values ----------------------------------------------------------------- */

/* Elements [d, d + 8 n_vectors) of n queries' outputs, over n_rows rows of
 * values at v whose weights are p. */
ALWAYS_INLINE void
add_elements (const uint8_t *v, size_t row_bytes, uint32_t n_rows,
    const float *const *p, float *const *out, uint32_t d, int n, int n_vectors,
    RunnelKvFormat format)
{
  Lanes acc[MAX_QUERIES][8];

#pragma GCC unroll 4
  for (int i = 0; i < n; i++) {
#pragma GCC unroll 8
    for (int j = 0; j < n_vectors; j++)
      acc[i][j] = lanes_load (out[i] + d + 8 * j);
  }
  v += d * element_size (format);
  for (uint32_t r = 0; r < n_rows; r++, v += row_bytes) {
#pragma GCC unroll 8
    for (int j = 0; j < n_vectors; j++) {
      Lanes value = load_elements (v + 8 * j * element_size (format), format);

#pragma GCC unroll 4
      for (int i = 0; i < n; i++)
        acc[i][j] = lanes_fma (lanes_set (p[i][r]), value, acc[i][j]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) {
#pragma GCC unroll 8
    for (int j = 0; j < n_vectors; j++)
      lanes_store (out[i] + d + 8 * j, acc[i][j]);
  }
}

ALWAYS_INLINE void
add_rows (const uint8_t *v, uint32_t head_dim, uint32_t n_rows,
    const float *const *p, float *const *out, int n, int at_once,
    RunnelKvFormat format)
{
  size_t row_bytes = head_dim * element_size (format);
  uint32_t d = 0;

  for (; d + 8 * at_once <= head_dim; d += 8 * at_once)
    add_elements (v, row_bytes, n_rows, p, out, d, n, at_once, format);
  for (; d + 8 <= head_dim; d += 8)
    add_elements (v, row_bytes, n_rows, p, out, d, n, 1, format);
  for (; d < head_dim; d++) {
    for (uint32_t r = 0; r < n_rows; r++) {
      const uint8_t *at = v + r * row_bytes + d * element_size (format);
      float value;

      if (format == RUNNEL_KV_F16)
        value = runnel_load_half (at);
      else
        memcpy (&value, at, sizeof value);
      for (int i = 0; i < n; i++)
        out[i][d] = fmaf (p[i][r], value, out[i][d]);
    }
  }
}

/* ---- A block of keys ---------------------------------------------------------- */

/* The keys [*begin, *end), counted from the block's first, of a run as far as
 * they are below `limit` and not before `from`. */
static bool
clip_run (const Block *block, const RunnelKvRun *run, uint32_t from,
    uint32_t limit, uint32_t *begin, uint32_t *end)
{
  uint32_t run_end = run->key + run->n;

  if (run_end <= block->key_begin + from
      || run->key >= block->key_begin + limit)
    return false;
  *begin = run->key > block->key_begin + from ? run->key - block->key_begin
      : from;
  *end = run_end < block->key_begin + limit ? run_end - block->key_begin
      : limit;
  return true;
}

static uint32_t
row_of_key (const Block *block, const RunnelKvRun *run, uint32_t index)
{
  return run->first + (block->key_begin + index - run->key);
}

ALWAYS_INLINE void
score_block (Block *block, int n, int at_once, RunnelKvFormat format)
{
  for (uint32_t r = 0; r < block->n_runs; r++) {
    const RunnelKvRun *run = &block->runs[r];
    uint32_t begin, end;

    if (clip_run (block, run, 0, block->most_keys, &begin, &end))
      score_rows (block, run->layer, row_of_key (block, run, begin),
          end - begin, begin, n, at_once, format);
  }
}

/* Adds the values of keys [from, limit) for n queries from the i-th on. */
ALWAYS_INLINE void
add_values (Block *block, int i, uint32_t from, uint32_t limit, int n,
    int at_once, RunnelKvFormat format)
{
  const RunnelKvLayout *kv = block->kv;
  size_t row_bytes = kv->head_dim * element_size (format);

  for (uint32_t r = 0; r < block->n_runs; r++) {
    const RunnelKvRun *run = &block->runs[r];
    uint32_t begin, end;
    const float *p[MAX_QUERIES];
    float *out[MAX_QUERIES];
    const uint8_t *v;

    if (!clip_run (block, run, from, limit, &begin, &end))
      continue;
    for (int j = 0; j < n; j++) {
      p[j] = block->scores[i + j] + begin;
      out[j] = block->partial[i + j]->out;
    }
    v = run->layer + runnel_kv_plane_bytes (kv)
        + row_bytes * ((size_t) block->kv_head * kv->page_rows
            + row_of_key (block, run, begin));
    add_rows (v, kv->head_dim, end - begin, p, out, n, at_once, format);
  }
}

/* n queries; how many tiles and vectors at once fills the registers. */
ALWAYS_INLINE void
attend_block (Block *block, int n, int tiles_at_once, int vectors_at_once,
    RunnelKvFormat format)
{
  score_block (block, n, tiles_at_once, format);
  for (int i = 0; i < n; i++) {
    soften (block->scores[i], block->n_keys[i], block->partial[i]);
    memset (block->partial[i]->out, 0, block->kv->head_dim * sizeof (float));
  }
  add_values (block, 0, 0, block->fewest_keys, n, vectors_at_once, format);
  for (int i = 0; i < n; i++) {
    if (block->n_keys[i] > block->fewest_keys)
      add_values (block, i, block->fewest_keys, block->n_keys[i], 1, 8,
          format);
  }
}

#define DEFINE_ATTEND(name, format)                                           \
  static void                                                                 \
  name (Block *block)                                                         \
  {                                                                           \
    switch (block->n) {                                                       \
      case 1:                                                                 \
        attend_block (block, 1, 8, 8, format);                                \
        break;                                                                \
      case 2:                                                                 \
        attend_block (block, 2, 4, 4, format);                                \
        break;                                                                \
      case 3:                                                                 \
        attend_block (block, 3, 4, 4, format);                                \
        break;                                                                \
      default:                                                                \
        attend_block (block, 4, 2, 2, format);                                \
        break;                                                                \
    }                                                                         \
  }

DEFINE_ATTEND (attend_f16, RUNNEL_KV_F16)
DEFINE_ATTEND (attend_f32, RUNNEL_KV_F32)

static void
finish_block (Block *block)
{
  block->most_keys = 0;
  block->fewest_keys = RUNNEL_KEY_BLOCK;
  for (int i = 0; i < block->n; i++) {
    uint32_t n = block->n_keys[i];

    block->most_keys = n > block->most_keys ? n : block->most_keys;
    block->fewest_keys = n < block->fewest_keys ? n : block->fewest_keys;
  }
  if (block->kv->format == RUNNEL_KV_F16)
    attend_f16 (block);
  else
    attend_f32 (block);
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

/* ---- Around it ------------------------------------------------------------------ */

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
