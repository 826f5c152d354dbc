/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Whether a level's kernels give the bits of scalar on this very machine: a
 * few tiles of every kind, one row of everything else and a block of keys.
 * A few milliseconds, once a process and level.
 */
#include "self-check.h"

#include <string.h>

#include "half.h"

#define ROWS 19                 /* three tiles, the last one not full */
#define PADDED_ROWS 24
#define COLUMNS 256
#define HALF_GROUPS 224         /* columns that end in half a group of 64 */
#define INPUTS 26
#define GROUPS (COLUMNS / RUNNEL_GROUP)

typedef struct {
  RunnelRows x;
  float f[INPUTS][COLUMNS];
  _Alignas (64) int8_t q[INPUTS * COLUMNS];
  float scale[INPUTS * GROUPS];
  int32_t sum[INPUTS * GROUPS];
  float moment[INPUTS * GROUPS];
} Input;

static uint32_t
draw (uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t) (*state >> 32);
}

static void
fill_floats (float *f, size_t n, uint64_t *state)
{
  for (size_t i = 0; i < n; i++)
    f[i] = (float) (int32_t) draw (state) * 0x1p-31f;
}

/* Without this bit no byte makes a half, bfloat16 or float of 2 or more,
 * wherever it falls. */
static void
fill_weights (uint8_t *bytes, size_t n, uint64_t *state)
{
  for (size_t i = 0; i < n; i++)
    bytes[i] = draw (state) & 0xbf;
}

static void
init_input (Input *input, uint32_t columns, uint64_t *state)
{
  input->x = (RunnelRows) { INPUTS, columns, input->f[0], COLUMNS, input->q,
    input->scale, input->sum, input->moment };
  fill_floats (input->f[0], INPUTS * COLUMNS, state);
  input->f[1][3] *= 0x1p20f;
  memset (input->f[2], 0, RUNNEL_GROUP * sizeof (float));
}

static bool
check_quantise (const RunnelKernels *kernels, uint64_t *state)
{
  Input a, b;

  memset (&a, 0, sizeof a);
  memset (&b, 0, sizeof b);
  init_input (&a, COLUMNS - 5, state);
  init_input (&b, COLUMNS - 5, state);
  memcpy (b.f, a.f, sizeof a.f);
  for (uint32_t i = 0; i < INPUTS; i++) {
    runnel_kernels_scalar.quantise (&a.x, i, 0, GROUPS);
    kernels->quantise (&b.x, i, 0, GROUPS);
  }
  return memcmp (&a.f, &b.f, sizeof a - offsetof (Input, f)) == 0;
}

/* All numbers of rows of x that a kernel may treat differently. */
static bool
check_product (const RunnelKernels *kernels, RunnelMatrixKind kind,
    uint64_t *state)
{
  static const uint32_t n_inputs[] = { 1, 2, 3, 4, 5, 6, 7, 8, INPUTS };
  uint32_t columns = kind < RUNNEL_MATRIX_Q2_K ? HALF_GROUPS : COLUMNS;
  RunnelMatrix w = { kind, ROWS, columns, runnel_matrix_stride (kind, columns)};
  uint8_t data[PADDED_ROWS * COLUMNS * sizeof (float)];
  float expected[INPUTS][PADDED_ROWS], y[INPUTS][PADDED_ROWS], bias[ROWS];
  Input input;

  w.data = data;
  fill_weights (data, sizeof data, state);
  fill_floats (bias, ROWS, state);
  init_input (&input, columns, state);
  for (uint32_t i = 0; i < INPUTS; i++)
    runnel_kernels_scalar.quantise (&input.x, i, 0, runnel_n_groups (columns));
  runnel_kernels_scalar.matmul[kind] (&w, &input.x, bias, expected[0],
      PADDED_ROWS, 0, PADDED_ROWS / RUNNEL_TILE_ROWS);
  for (size_t k = 0; k < sizeof n_inputs / sizeof n_inputs[0]; k++) {
    input.x.n = n_inputs[k];
    kernels->matmul[kind] (&w, &input.x, bias, y[0], PADDED_ROWS, 0,
        PADDED_ROWS / RUNNEL_TILE_ROWS);
    if (memcmp (y, expected, n_inputs[k] * sizeof y[0]) != 0)
      return false;
  }
  return true;
}

/* Everything that happens to one row between products, one after another. */
static void
pass_row (const RunnelKernels *kernels, const float *x, float *y)
{
  kernels->norm (x, x + COLUMNS, 1e-5f, COLUMNS, y);
  kernels->rope (y, x, x + COLUMNS, 24, false);
  kernels->rope (y + 64, x, x + COLUMNS, 32, true);
  kernels->scale (y, 0.125f, COLUMNS);
  kernels->add (y, x + COLUMNS, COLUMNS - 3);
  kernels->silu_mul (y, x, COLUMNS - 1);
}

static bool
check_row (const RunnelKernels *kernels, uint64_t *state)
{
  float x[2 * COLUMNS], y[2][COLUMNS];

  fill_floats (x, 2 * COLUMNS, state);
  pass_row (&runnel_kernels_scalar, x, y[0]);
  pass_row (kernels, x, y[1]);
  if (memcmp (y[0], y[1], sizeof y[0]) != 0)
    return false;
  y[0][77] = runnel_float_from_bits (0x7f800000);
  return kernels->find_non_finite (y[1], COLUMNS) == COLUMNS
      && kernels->find_non_finite (y[0], COLUMNS) == 77;
}

#define KEYS 19
#define HEAD_DIM 64
#define QUERIES 3
#define QUERY_HEADS 2

typedef struct {
  float max;
  float sum;
  float out[HEAD_DIM];
} Partial;

/* Queries with two heads each over the keys of one page. */
static void
attend (const RunnelKernels *kernels, RunnelKvFormat format,
    const float *values, float *y)
{
  const RunnelKvLayout kv = { format, 64, 1, HEAD_DIM };
  const uint32_t limits[QUERIES] = { 5, KEYS - 1, KEYS };
  _Alignas (64) uint8_t page[64 * HEAD_DIM * 2 * sizeof (float)] = { 0 };
  const RunnelKvRun run = { page, 0, KEYS, 0 };
  Partial partials[QUERIES * QUERY_HEADS];

  for (uint32_t k = 0; k < KEYS; k++)
    kernels->kv_store (&kv, page, k, values + k * HEAD_DIM,
        values + (KEYS + k) * HEAD_DIM);
  kernels->attend (&kv, &run, 1, 0, 0, KEYS, values, QUERY_HEADS * HEAD_DIM,
      QUERIES, QUERY_HEADS, limits, (uint8_t *) partials, sizeof (Partial));
  kernels->merge ((RunnelPartial *) &partials[0],
      (const RunnelPartial *) &partials[QUERY_HEADS], HEAD_DIM);
  for (uint32_t i = 0; i < QUERIES * QUERY_HEADS; i++)
    kernels->finish ((const RunnelPartial *) &partials[i], HEAD_DIM,
        y + i * HEAD_DIM);
}

static bool
check_attention (const RunnelKernels *kernels, uint64_t *state)
{
  static const RunnelKvFormat formats[] = { RUNNEL_KV_F16, RUNNEL_KV_F32,
    RUNNEL_KV_INT8 };
  float values[2 * KEYS * HEAD_DIM];
  float y[2][QUERIES * QUERY_HEADS * HEAD_DIM];

  fill_floats (values, 2 * KEYS * HEAD_DIM, state);
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    attend (&runnel_kernels_scalar, formats[i], values, y[0]);
    attend (kernels, formats[i], values, y[1]);
    if (memcmp (y[0], y[1], sizeof y[0]) != 0)
      return false;
  }
  return true;
}

const char *
runnel_kernels_find_fault (const RunnelKernels *kernels)
{
  uint64_t state = 1, saved = runnel_fp_enter ();
  const char *fault = NULL;

  for (int kind = 0; fault == NULL && kind < RUNNEL_N_MATRIX_KINDS; kind++)
    if (!check_product (kernels, (RunnelMatrixKind) kind, &state))
      fault = "a product";
  if (fault == NULL && !check_quantise (kernels, &state))
    fault = "the quantisation of activations";
  if (fault == NULL && !check_row (kernels, &state))
    fault = "a row operation";
  if (fault == NULL && !check_attention (kernels, &state))
    fault = "attention";
  runnel_fp_leave (saved);
  return fault;
}

const RunnelKernels *
runnel_kernels_first_sound (const RunnelKernels *const *ladder, size_t n,
    const char **fault)
{
  size_t i;

  *fault = NULL;
  for (i = 0; i + 1 < n; i++) {
    const char *found = runnel_kernels_find_fault (ladder[i]);

    if (found == NULL)
      break;
    if (*fault == NULL)
      *fault = found;
  }
  return ladder[i];
}
