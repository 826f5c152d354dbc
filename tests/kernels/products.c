/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products: scalar against double precision, every level against scalar.
 */
#include "testing.h"

/* A random tensor as a file has it and as the kernels read it, the latter at
 * any address. */
typedef struct {
  const TensorType *type;
  RunnelMatrix w;
  uint8_t *file;
  float *bias;
} Tensor;

static void
make_tensor (Tensor *tensor, const TensorType *type, uint32_t rows,
    uint32_t columns, Codes codes)
{
  RunnelMatrix *w = &tensor->w;
  size_t bytes = tensor_bytes (type, rows, columns);
  size_t size, shift = random_below (2) ? random_below (64) : 0;
  uint32_t tiles, middle;
  uint8_t *data;

  tensor->type = type;
  tensor->file = guarded (bytes, 1);
  fill_tensor (type, tensor->file, rows, columns, codes);
  tensor->bias = NULL;
  if (random_below (2)) {
    tensor->bias = guarded (rows * sizeof (float), 4);
    fill_floats (tensor->bias, rows, FILL_NORMAL);
  }

  expect (runnel_matrix_kind_for_type (type->type, &w->kind), "kind of %s",
      type->name);
  w->rows = rows;
  w->columns = columns;
  w->stride = runnel_matrix_stride (w->kind, columns);
  expect (runnel_matrix_is_packed (type->type) == (type->half_bytes > 0),
      "%s is packed", type->name);
  if (!runnel_matrix_is_interleaved (w->kind) || type->half_bytes > 0) {
    expect (w->stride == tensor_bytes (type, 1, columns), "stride of %s",
        type->name);
    w->data = tensor->file;
    return;
  }
  tiles = runnel_matrix_n_tiles (w);
  size = tiles * w->stride;
  data = (uint8_t *) guarded (size + shift, 64);
  w->data = data;
  middle = random_below (tiles + 1);
  runnel_matrix_pack (type->type, tensor->file, bytes / rows, rows, columns,
      data, middle, tiles);
  runnel_matrix_pack (type->type, tensor->file, bytes / rows, rows, columns,
      data, 0, middle);
}

/* The product of one row in double precision, and the sum of the magnitudes,
 * against which an error is judged. */
static double
multiply (const Tensor *tensor, const double *weights, const RunnelRows *x,
    uint32_t i, double *magnitude)
{
  size_t groups = runnel_n_groups (x->columns);
  double sum = 0.0;

  *magnitude = 0.0;
  for (uint32_t c = 0; c < x->columns; c++) {
    size_t at = i * groups + c / RUNNEL_GROUP;
    double product = weights[c];

    if (runnel_matrix_is_quantised (tensor->w.kind))
      product *= (double) x->scale[at]
          * x->q[at * RUNNEL_GROUP + c % RUNNEL_GROUP];
    else
      product *= x->f[i * x->f_stride + c];
    sum += product;
    *magnitude += fabs (product);
  }
  return sum;
}

static void
check_against_double (const Tensor *tensor, const RunnelRows *x,
    const float *y, size_t y_stride)
{
  const RunnelMatrix *w = &tensor->w;
  double *weights = guarded (w->columns * sizeof (double), 8);

  for (uint32_t r = 0; r < w->rows; r++) {
    double largest = 0.0;

    dequantise_row (tensor->type, tensor->file, r, w->columns, weights);
    for (uint32_t c = 0; c < w->columns; c++)
      largest = fmax (largest, fabs (weights[c]));
    for (uint32_t i = 0; i < x->n; i++) {
      double magnitude, reference, error;

      reference = multiply (tensor, weights, x, i, &magnitude);
      if (tensor->bias != NULL)
        reference += tensor->bias[r];
      error = fabs (y[i * y_stride + r] - reference);
      /* Offsets and codes of one weight may cancel, not their roundings. */
      expect (error <= 1e-6 * (magnitude + fabs (reference)
              + largest * w->columns), "%s row %u × x row %u: %g, not %g",
          tensor->type->name, r, i, y[i * y_stride + r], reference);
    }
  }
}

static void
check_rows (const RunnelKernels *kernels, const Tensor *tensor)
{
  const RunnelMatrix *w = &tensor->w;
  double *weights = guarded (w->columns * sizeof (double), 8);
  float *y = guarded (w->columns * sizeof (float), 4);
  float *scalar = guarded (w->columns * sizeof (float), 4);
  uint32_t r = random_below (w->rows);

  dequantise_row (tensor->type, tensor->file, r, w->columns, weights);
  kernels->row (w, r, y);
  runnel_kernels_scalar.row (w, r, scalar);
  expect (same_floats (y, scalar, w->columns), "%s row of %s", kernels->name,
      tensor->type->name);
  for (uint32_t c = 0; c < w->columns; c++) {
    double error = fabs (scalar[c] - weights[c]);

    expect (error <= 1e-6 * fabs (weights[c]) + 1e-5 || isnan (weights[c])
        || isinf (weights[c]), "%s row %u column %u: %g, not %g",
        tensor->type->name, r, c, scalar[c], weights[c]);
  }
}

/* The whole range by scalar; by the level in two calls, into memory whose
 * other floats must stay as they are. */
static void
check_product (const RunnelKernels *kernels, const Tensor *tensor,
    RunnelRows *x, bool oracle)
{
  const RunnelMatrix *w = &tensor->w;
  uint32_t tiles = runnel_matrix_n_tiles (w);
  uint32_t begin = random_below (tiles), end = random_between (begin + 1, tiles);
  uint32_t middle = random_between (begin, end);
  size_t y_stride = tiles * RUNNEL_TILE_ROWS + random_below (3);
  size_t size = ((x->n - 1) * y_stride + tiles * RUNNEL_TILE_ROWS);
  float *y = guarded (size * sizeof (float), 4);
  float *scalar = guarded (size * sizeof (float), 4);

  runnel_kernels_scalar.matmul[w->kind] (w, x, tensor->bias, scalar, y_stride,
      0, tiles);
  if (oracle)
    check_against_double (tensor, x, scalar, y_stride);

  kernels->matmul[w->kind] (w, x, tensor->bias, y, y_stride, begin, middle);
  kernels->matmul[w->kind] (w, x, tensor->bias, y, y_stride, middle, end);
  for (uint32_t i = 0; i < x->n; i++) {
    for (uint32_t r = 0; r < tiles * RUNNEL_TILE_ROWS; r++) {
      float *got = y + i * y_stride + r;

      if (r / RUNNEL_TILE_ROWS >= begin && r / RUNNEL_TILE_ROWS < end) {
        expect (same_floats (got, scalar + i * y_stride + r, 1),
            "%s %s %u × %u, %u rows: [%u][%u] is %a, not %a", kernels->name,
            tensor->type->name, w->rows, w->columns, x->n, i, r, *got,
            scalar[i * y_stride + r]);
        expect (r < w->rows || runnel_float_bits (*got) == 0,
            "%s: padding row is not 0", kernels->name);
      } else {
        expect (runnel_float_bits (*got) == 0xa5a5a5a5,
            "%s %s writes outside its tiles", kernels->name,
            tensor->type->name);
      }
    }
  }
}

static void
test_type (const RunnelKernels *kernels, const TensorType *type, int n_cases)
{
  for (int k = 0; k < n_cases; k++) {
    uint32_t n = k < 17 ? k + 1 : random_between (1, 40);
    uint32_t rows = random_between (1, 41), columns;
    Codes codes = k % 2 ? CODES_RANDOM : random_below (N_CODES);
    Fill fill = k % 3 ? FILL_NORMAL : random_below (N_FILLS);
    Tensor tensor;
    RunnelRows *x;

    if (type->block_elements == 1)
      columns = random_between (1, k % 4 ? 70 : 600);
    else if (type->block_elements <= 64)
      /* Also half a group of 64; many rows may be taken in several panels. */
      columns = 32 * random_between (1, n < 24 ? 20 : 80);
    else
      columns = type->block_elements * random_between (1, 3);
    make_tensor (&tensor, type, rows, columns, codes);
    x = new_rows (n, columns, fill);
    for (uint32_t i = 0; i < n; i++)
      runnel_kernels_scalar.quantise (x, i, 0, runnel_n_groups (columns));
    check_rows (kernels, &tensor);
    check_product (kernels, &tensor, x, (fill == FILL_NORMAL
            || fill == FILL_EXTREME) && codes != CODES_NON_FINITE_SCALE
        && kernels == &runnel_kernels_scalar);
    release_all ();
  }
}

/* Interleaved kinds: a group of 64 gives the bits of two equal groups of 32. */
static void
test_equal_groups (const RunnelKernels *kernels)
{
  static const struct {
    RunnelMatrixKind kind, halved;
    size_t head, half;
  } pairs[] = {
    {RUNNEL_MATRIX_INT4_64, RUNNEL_MATRIX_INT4_32, 16, 128},
    {RUNNEL_MATRIX_INT4_64_OFFSET, RUNNEL_MATRIX_INT4_32_OFFSET, 32, 128},
    {RUNNEL_MATRIX_INT4_64_CENTRED, RUNNEL_MATRIX_INT4_32_CENTRED, 32, 128},
    {RUNNEL_MATRIX_INT8_64, RUNNEL_MATRIX_INT8_32, 16, 256},
    {RUNNEL_MATRIX_INT8_64_OFFSET, RUNNEL_MATRIX_INT8_32_OFFSET, 32, 256},
  };

  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    const size_t head = pairs[i].head, half = pairs[i].half;
    RunnelMatrix w = { pairs[i].kind, 8, 160 }, halved = w;
    RunnelRows *x = new_rows (3, 160, FILL_NORMAL);
    uint8_t *from, *to;
    float y[2][24];

    w.stride = runnel_matrix_stride (w.kind, w.columns);
    halved.kind = pairs[i].halved;
    halved.stride = runnel_matrix_stride (halved.kind, w.columns);
    w.data = from = guarded (w.stride, 1);
    halved.data = to = guarded (halved.stride, 1);
    for (size_t c = 0; c < w.stride; c++)
      from[c] = random_bits () & 0x3f;
    for (int c = 0; c < 160; c += 32) {
      const uint8_t *group = from + c / 64 * (head + 2 * half);

      memcpy (to, group, head);
      memcpy (to + head, group + head + c % 64 / 32 * half, half);
      to += head + half;
    }
    for (uint32_t r = 0; r < x->n; r++)
      kernels->quantise (x, r, 0, 5);
    kernels->matmul[w.kind] (&w, x, NULL, y[0], 8, 0, 1);
    kernels->matmul[halved.kind] (&halved, x, NULL, y[1], 8, 0, 1);
    expect (same_floats (y[0], y[1], 24), "%s: pair %zu of kinds",
        kernels->name, i);
    release_all ();
  }
}

void
test_products (const RunnelKernels *kernels)
{
  for (size_t t = 0; t < n_tensor_types; t++)
    test_type (kernels, &tensor_types[t], 60 * effort / 100);
  test_equal_groups (kernels);
}
