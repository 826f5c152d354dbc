/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Keys and values and attention over them: pages are filled with NaN but for
 * the rows in use, so that reading a wrong row shows.
 */
#include "testing.h"

#define MAX_RUNS 64
#define MAX_KEYS (2 * RUNNEL_KEY_BLOCK + 100)

typedef struct {
  RunnelKvLayout layout;
  uint32_t n_keys;
  RunnelKvRun runs[MAX_RUNS];
  uint32_t n_runs;
  float *k;                    /* [key][kv_head][head_dim], as stored */
  float *v;
} Context;

static void
make_context (Context *context, const RunnelKernels *kernels)
{
  static const uint32_t dims[] = { 16, 32, 64, 128, 8, 40, 80, 23 };
  RunnelKvLayout *kv = &context->layout;
  uint32_t head_dim = dims[random_below (random_below (4) ? 4 : 8)], key = 0;
  size_t row, page_size;

  kv->format = random_below (3);
  kv->page_rows = 8 * random_between (1, random_below (3) ? 16 : 2);
  kv->n_kv_heads = random_between (1, 3);
  kv->head_dim = head_dim;
  row = (size_t) kv->n_kv_heads * head_dim;
  page_size = 2 * runnel_kv_plane_bytes (kv);
  context->n_runs = 0;
  context->k = guarded (MAX_KEYS * row * sizeof (float), 4);
  context->v = guarded (MAX_KEYS * row * sizeof (float), 4);

  while (context->n_runs < MAX_RUNS && key < MAX_KEYS) {
    RunnelKvRun *run = &context->runs[context->n_runs++];
    bool whole = random_below (2);

    run->layer = guarded (page_size, 64);
    memset (run->layer, 0xff, page_size);
    run->first = whole ? 0 : random_below (kv->page_rows);
    run->n = whole ? kv->page_rows
        : random_between (1, kv->page_rows - run->first);
    if (run->n > MAX_KEYS - key)
      run->n = MAX_KEYS - key;
    run->key = key;
    for (uint32_t r = run->first; r < run->first + run->n; r++, key++) {
      float *k = context->k + key * row, *v = context->v + key * row;

      fill_floats (k, row, FILL_NORMAL);
      fill_floats (v, row, FILL_NORMAL);
      kernels->kv_store (kv, run->layer, r, k, v);
      runnel_kernels_scalar.kv_load (kv, run->layer, r, k, v);
    }
  }
  context->n_keys = key;
}

/* Element c of a head's row as it is read back. */
static float
round_to_format (RunnelKvFormat format, const float *x, uint32_t head_dim,
    uint32_t c)
{
  float a = 0.0f;

  if (format == RUNNEL_KV_F32)
    return x[c];
  if (format == RUNNEL_KV_F16)
    return runnel_half_to_float (runnel_float_to_half (x[c]));
  for (uint32_t d = 0; d < head_dim; d++)
    a = fmaxf (a, fabsf (x[d]));
  if (a < 0x1p-100f)
    return 0.0f;
  return a / 127.0f * fmaxf (fminf (rintf (x[c] * (127.0f / a)), 127.0f),
      -127.0f);
}

static void
test_kv_rows (const RunnelKernels *kernels)
{
  for (int i = 0; i < effort; i++) {
    RunnelKvLayout kv = {
      random_below (3), 8 * random_between (1, 4), random_between (1, 4),
      random_between (1, 70)
    };
    size_t size = 2 * runnel_kv_plane_bytes (&kv);
    size_t row = (size_t) kv.n_kv_heads * kv.head_dim;
    uint8_t *page = guarded (size, 4), *scalar = guarded (size, 4);
    float *x = guarded (2 * row * sizeof (float), 4);
    float *y = guarded (2 * row * sizeof (float), 4);
    uint32_t r = random_below (kv.page_rows);

    fill_floats (x, 2 * row, i % 4 == 0 ? FILL_WIDE : FILL_NORMAL);
    kernels->kv_store (&kv, page, r, x, x + row);
    runnel_kernels_scalar.kv_store (&kv, scalar, r, x, x + row);
    expect (memcmp (page, scalar, size) == 0, "%s kv_store", kernels->name);
    kernels->kv_load (&kv, page, r, y, y + row);
    for (size_t c = 0; c < 2 * row; c++) {
      float rounded = round_to_format (kv.format,
          x + c / kv.head_dim * kv.head_dim, kv.head_dim, c % kv.head_dim);

      expect (y[c] == rounded, "%s kv_load: %g, not %g", kernels->name, y[c],
          rounded);
    }
    release_all ();
  }
}

typedef struct {
  uint32_t n_queries;
  uint32_t n_heads;            /* of one KV head */
  size_t stride;
  float *q;
  uint32_t *limits;
  size_t partial_stride;
} Queries;

static void
make_queries (Queries *queries, const Context *context, Fill fill)
{
  uint32_t head_dim = context->layout.head_dim;
  bool causal = random_below (2);

  queries->n_queries = random_between (1, random_below (2) ? 3 : 11);
  queries->n_heads = random_between (1, 9);
  queries->stride = queries->n_heads * head_dim + random_below (3);
  queries->q = guarded (queries->n_queries * queries->stride * sizeof (float),
      4);
  fill_floats (queries->q, queries->n_queries * queries->stride, fill);
  queries->limits = guarded (queries->n_queries * sizeof (uint32_t), 4);
  for (uint32_t i = 0; i < queries->n_queries; i++) {
    queries->limits[i] = random_below (context->n_keys + 1);
    if (causal && i > 0) {
      uint32_t next = queries->limits[i - 1] + 1;

      queries->limits[i] = next < context->n_keys ? next : context->n_keys;
    }
  }
  queries->partial_stride = sizeof (RunnelPartial) + head_dim * sizeof (float)
      + 4 * random_below (3);
}

static size_t
partials_size (const Queries *queries)
{
  return queries->n_queries * queries->n_heads * queries->partial_stride;
}

static void
attend (const RunnelKernels *kernels, const Context *context,
    const Queries *queries, uint32_t kv_head, uint32_t begin, uint32_t end,
    bool exact_runs, uint8_t *partials)
{
  RunnelKvRun runs[MAX_RUNS];
  uint32_t n_runs = 0;

  for (uint32_t r = 0; r < context->n_runs; r++) {
    RunnelKvRun run = context->runs[r];

    if (run.key >= end || run.key + run.n <= begin)
      continue;
    if (exact_runs) {
      uint32_t skip = run.key < begin ? begin - run.key : 0;

      run.first += skip;
      run.key += skip;
      run.n -= skip;
      if (run.n > end - run.key)
        run.n = end - run.key;
    }
    runs[n_runs++] = run;
  }
  kernels->attend (&context->layout, runs, n_runs, kv_head, begin, end,
      queries->q, queries->stride, queries->n_queries, queries->n_heads,
      queries->limits, partials, queries->partial_stride);
}

/* Softmax attention of one query in double precision, over all its keys. */
static void
attend_double (const Context *context, const float *q, uint32_t kv_head,
    uint32_t limit, double *out)
{
  uint32_t head_dim = context->layout.head_dim;
  size_t row = (size_t) context->layout.n_kv_heads * head_dim;
  double sum = 0.0, max = -INFINITY, scores[MAX_KEYS];

  for (uint32_t key = 0; key < limit; key++) {
    const float *k = context->k + key * row + kv_head * head_dim;

    scores[key] = 0.0;
    for (uint32_t d = 0; d < head_dim; d++)
      scores[key] += (double) q[d] * k[d];
    max = fmax (max, scores[key]);
  }
  memset (out, 0, head_dim * sizeof *out);
  for (uint32_t key = 0; key < limit; key++) {
    const float *v = context->v + key * row + kv_head * head_dim;
    double p = exp (scores[key] - max);

    sum += p;
    for (uint32_t d = 0; d < head_dim; d++)
      out[d] += p * v[d];
  }
  for (uint32_t d = 0; d < head_dim; d++)
    out[d] /= sum;
}

/* Merges the blocks and compares the result with double precision. */
static void
check_merged (const RunnelKernels *kernels, const Context *context,
    const Queries *queries, uint32_t kv_head, uint8_t **blocks)
{
  uint32_t head_dim = context->layout.head_dim;
  float *y = guarded (head_dim * sizeof (float), 4);
  float *scalar = guarded (head_dim * sizeof (float), 4);
  double *reference = guarded (head_dim * sizeof (double), 8);

  for (uint32_t j = 0; j < queries->n_queries * queries->n_heads; j++) {
    uint32_t i = j / queries->n_heads, h = j % queries->n_heads;
    size_t at = j * queries->partial_stride;
    RunnelPartial *into = (RunnelPartial *) (blocks[0] + at);
    RunnelPartial *copy = guarded (queries->partial_stride, 4);

    if (queries->limits[i] == 0)
      continue;
    memcpy (copy, into, queries->partial_stride);
    for (uint32_t b = 1; b * RUNNEL_KEY_BLOCK < queries->limits[i]; b++) {
      kernels->merge (into, (RunnelPartial *) (blocks[b] + at), head_dim);
      runnel_kernels_scalar.merge (copy, (RunnelPartial *) (blocks[b] + at),
          head_dim);
    }
    expect (same_floats (&into->max, &copy->max, head_dim + 2), "%s merge",
        kernels->name);
    kernels->finish (into, head_dim, y);
    runnel_kernels_scalar.finish (copy, head_dim, scalar);
    expect (same_floats (y, scalar, head_dim), "%s finish", kernels->name);
    attend_double (context, queries->q + i * queries->stride + h * head_dim,
        kv_head, queries->limits[i], reference);
    for (uint32_t d = 0; d < head_dim; d++)
      expect (fabs (scalar[d] - reference[d]) < 2e-5,
          "attention [%u][%u][%u]: %g, not %g", i, h, d, scalar[d],
          reference[d]);
  }
}

void
test_attention (const RunnelKernels *kernels)
{
  test_kv_rows (kernels);
  for (int k = 0; k < 60 * effort / 100; k++) {
    uint8_t *got[4], *scalar[4];
    Fill fill = k % 4 ? FILL_NORMAL : random_below (N_FILLS);
    Context context;
    Queries queries;
    uint32_t kv_head, n_blocks = 0;

    make_context (&context, kernels);
    make_queries (&queries, &context, fill);
    kv_head = random_below (context.layout.n_kv_heads);
    for (uint32_t begin = 0; begin < context.n_keys;
        begin += RUNNEL_KEY_BLOCK) {
      uint32_t end = begin + RUNNEL_KEY_BLOCK;
      size_t size = partials_size (&queries);

      if (end > context.n_keys)
        end = context.n_keys;
      got[n_blocks] = guarded (size, 4);
      scalar[n_blocks] = guarded (size, 4);
      attend (&runnel_kernels_scalar, &context, &queries, kv_head, begin, end,
          true, scalar[n_blocks]);
      attend (kernels, &context, &queries, kv_head, begin, end,
          random_below (2), got[n_blocks]);
      /* The floats of a partial, and whatever lies between two of them. */
      expect (same_floats ((float *) got[n_blocks],
              (float *) scalar[n_blocks], size / sizeof (float)),
          "%s attend, block %u: head_dim %u, %u queries, %u heads",
          kernels->name, n_blocks, context.layout.head_dim, queries.n_queries,
          queries.n_heads);
      n_blocks++;
    }
    if (fill == FILL_NORMAL)
      check_merged (kernels, &context, &queries, kv_head, scalar);
    release_all ();
  }
}
