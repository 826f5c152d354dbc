/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Keys and values: writing, reading, attention over one block of keys and
 * the merging of blocks.
 */
#include "scalar.h"

#include "../exp.h"
#include "../quantise.h"
#include "lanes.h"

#define KV_TILE RUNNEL_KV_TILE

static void
store_element (RunnelKvFormat format, uint8_t *plane, size_t i, float value)
{
  if (format == RUNNEL_KV_F16) {
    uint16_t half = runnel_float_to_half (value);

    memcpy (plane + 2 * i, &half, sizeof half);
  } else {
    memcpy (plane + 4 * i, &value, sizeof value);
  }
}

/* Of INT8 it is the code. */
static inline float
load_element (RunnelKvFormat format, const uint8_t *plane, size_t i)
{
  float value;

  if (format == RUNNEL_KV_INT8)
    return (float) (int8_t) plane[i];
  if (format == RUNNEL_KV_F16)
    return runnel_load_half (plane + 2 * i);
  memcpy (&value, plane + 4 * i, sizeof value);
  return value;
}

static float
load_scale (const RunnelKvLayout *kv, const uint8_t *plane, uint32_t head,
    uint32_t row)
{
  float scale = 1.0f;

  if (kv->format == RUNNEL_KV_INT8)
    memcpy (&scale, plane + runnel_kv_scale_offset (kv, head, row),
        sizeof scale);
  return scale;
}

/* Element d of a key or value in its plane is at index + d · (8 or 1). */
static size_t
key_index (const RunnelKvLayout *kv, uint32_t head, uint32_t row)
{
  size_t tile = (size_t) head * (kv->page_rows / KV_TILE) + row / KV_TILE;

  return tile * kv->head_dim * KV_TILE + row % KV_TILE;
}

static size_t
value_index (const RunnelKvLayout *kv, uint32_t head, uint32_t row)
{
  return ((size_t) head * kv->page_rows + row) * kv->head_dim;
}

/* A head's row, whose elements are `step` apart from `first` on. */
static void
store_row (const RunnelKvLayout *kv, uint8_t *plane, uint32_t head,
    uint32_t row, size_t first, size_t step, const float *from)
{
  RunnelCodeScale scale;

  if (kv->format != RUNNEL_KV_INT8) {
    for (uint32_t d = 0; d < kv->head_dim; d++)
      store_element (kv->format, plane, first + d * step, from[d]);
    return;
  }
  scale = runnel_code_scale (from, kv->head_dim);
  memcpy (plane + runnel_kv_scale_offset (kv, head, row), &scale.scale,
      sizeof (float));
  for (uint32_t d = 0; d < kv->head_dim; d++)
    plane[first + d * step] = (uint8_t) runnel_code (from[d], scale);
}

static void
load_row (const RunnelKvLayout *kv, const uint8_t *plane, uint32_t head,
    uint32_t row, size_t first, size_t step, float *to)
{
  float scale = load_scale (kv, plane, head, row);

  for (uint32_t d = 0; d < kv->head_dim; d++)
    to[d] = scale * load_element (kv->format, plane, first + d * step);
}

void
runnel_scalar_kv_store (const RunnelKvLayout *kv, uint8_t *layer,
    uint32_t row, const float *k, const float *v)
{
  uint8_t *values = layer + runnel_kv_plane_bytes (kv);

  for (uint32_t h = 0; h < kv->n_kv_heads; h++) {
    size_t from = (size_t) h * kv->head_dim;

    store_row (kv, layer, h, row, key_index (kv, h, row), KV_TILE, k + from);
    store_row (kv, values, h, row, value_index (kv, h, row), 1, v + from);
  }
}

void
runnel_scalar_kv_load (const RunnelKvLayout *kv, const uint8_t *layer,
    uint32_t row, float *k, float *v)
{
  const uint8_t *values = layer + runnel_kv_plane_bytes (kv);

  for (uint32_t h = 0; h < kv->n_kv_heads; h++) {
    size_t to = (size_t) h * kv->head_dim;

    load_row (kv, layer, h, row, key_index (kv, h, row), KV_TILE, k + to);
    load_row (kv, values, h, row, value_index (kv, h, row), 1, v + to);
  }
}

/* The keys [begin, end) of a run that lie in [key_begin, key_end). */
static void
clip_run (const RunnelKvRun *run, uint32_t key_begin, uint32_t key_end,
    uint32_t *begin, uint32_t *end)
{
  *begin = run->key > key_begin ? run->key : key_begin;
  *end = run->key + run->n < key_end ? run->key + run->n : key_end;
}

/* Scores of the tile of keys that row is in. */
static void
score_tile (const RunnelKvLayout *kv, const uint8_t *layer, uint32_t kv_head,
    uint32_t row, const float *q, float *scores)
{
  size_t at = key_index (kv, kv_head, row - row % KV_TILE);

  for (uint32_t i = 0; i < KV_TILE; i++)
    scores[i] = 0.0f;
  for (uint32_t d = 0; d < kv->head_dim; d++, at += KV_TILE) {
    for (uint32_t i = 0; i < KV_TILE; i++)
      scores[i] = fmaf (q[d], load_element (kv->format, layer, at + i),
          scores[i]);
  }
  for (uint32_t i = 0; i < KV_TILE; i++)
    scores[i] = scores[i] * load_scale (kv, layer, kv_head,
        row - row % KV_TILE + i);
}

static void
score_run (const RunnelKvLayout *kv, const RunnelKvRun *run, uint32_t kv_head,
    uint32_t begin, uint32_t end, const float *q, float *scores)
{
  float tile[KV_TILE];

  for (uint32_t key = begin; key < end; key++) {
    uint32_t row = run->first + (key - run->key);

    if (key == begin || row % KV_TILE == 0)
      score_tile (kv, run->layer, kv_head, row, q, tile);
    scores[key - begin] = tile[row % KV_TILE];
  }
}

static void
add_value (const RunnelKvLayout *kv, const RunnelKvRun *run, uint32_t kv_head,
    uint32_t key, float p, float *out)
{
  const uint8_t *values = run->layer + runnel_kv_plane_bytes (kv);
  uint32_t row = run->first + (key - run->key);
  size_t at = value_index (kv, kv_head, row);

  p = p * load_scale (kv, values, kv_head, row);
  for (uint32_t d = 0; d < kv->head_dim; d++)
    out[d] = fmaf (p, load_element (kv->format, values, at + d), out[d]);
}

static void
attend_query (const RunnelKvLayout *kv, const RunnelKvRun *runs,
    uint32_t n_runs, uint32_t kv_head, uint32_t key_begin, uint32_t key_end,
    const float *q, RunnelPartial *partial)
{
  float scores[RUNNEL_KEY_BLOCK], lanes[8] = { 0.0f }, max = -INFINITY;
  uint32_t begin, end;

  for (uint32_t r = 0; r < n_runs; r++) {
    clip_run (&runs[r], key_begin, key_end, &begin, &end);
    if (begin < end)
      score_run (kv, &runs[r], kv_head, begin, end, q,
          scores + (begin - key_begin));
  }
  for (uint32_t i = 0; i < key_end - key_begin; i++)
    max = scores[i] > max ? scores[i] : max;
  max = max + 0.0f;             /* of the two zeros, the positive one */

  for (uint32_t i = 0; i < key_end - key_begin; i++) {
    scores[i] = runnel_exp_inline (scores[i] - max);
    lanes[i % 8] = lanes[i % 8] + scores[i];
  }
  partial->max = max;
  partial->sum = runnel_sum_lanes (lanes, 8);

  for (uint32_t d = 0; d < kv->head_dim; d++)
    partial->out[d] = 0.0f;
  for (uint32_t r = 0; r < n_runs; r++) {
    clip_run (&runs[r], key_begin, key_end, &begin, &end);
    for (uint32_t key = begin; key < end; key++)
      add_value (kv, &runs[r], kv_head, key, scores[key - key_begin],
          partial->out);
  }
}

void
runnel_scalar_attend (const RunnelKvLayout *kv, const RunnelKvRun *runs,
    uint32_t n_runs, uint32_t kv_head, uint32_t key_begin, uint32_t key_end,
    const float *q, size_t q_stride, uint32_t n_queries, uint32_t n_heads,
    const uint32_t *limits, uint8_t *partials, size_t partial_stride)
{
  for (uint32_t i = 0; i < n_queries; i++) {
    uint32_t end = limits[i] < key_end ? limits[i] : key_end;

    if (end <= key_begin)
      continue;
    for (uint32_t h = 0; h < n_heads; h++) {
      size_t at = ((size_t) i * n_heads + h) * partial_stride;

      attend_query (kv, runs, n_runs, kv_head, key_begin, end,
          q + i * q_stride + (size_t) h * kv->head_dim,
          (RunnelPartial *) (partials + at));
    }
  }
}

void
runnel_scalar_merge (RunnelPartial *into, const RunnelPartial *from,
    uint32_t head_dim)
{
  float max = from->max > into->max ? from->max : into->max;
  float a = runnel_exp_inline (into->max - max);
  float b = runnel_exp_inline (from->max - max);

  into->max = max;
  into->sum = into->sum * a + from->sum * b;
  for (uint32_t d = 0; d < head_dim; d++)
    into->out[d] = into->out[d] * a + from->out[d] * b;
}

void
runnel_scalar_finish (const RunnelPartial *partial, uint32_t head_dim,
    float *y)
{
  float inverse = 1.0f / partial->sum;

  for (uint32_t d = 0; d < head_dim; d++)
    y[d] = partial->out[d] * inverse;
}
