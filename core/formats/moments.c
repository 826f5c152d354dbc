/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "moments.h"

#include <math.h>
#include <string.h>

/* Part of the mean moment that is added to each: inputs that were not seen
 * must not look free. */
#define DAMPING 0.01

static gsize
count_values (const RunnelMoments *self)
{
  const gsize n_blocks = (self->columns + self->block - 1) / self->block;

  return n_blocks * self->block * self->block;
}

void
runnel_moments_init (RunnelMoments *self, guint columns)
{
  self->columns = columns;
  self->block = MIN (columns, RUNNEL_QUANTISE_BLOCK);
  self->n_rows = 0;
  self->sums = g_new0 (float, count_values (self));
}

void
runnel_moments_clear (RunnelMoments *self)
{
  g_clear_pointer (&self->sums, g_free);
}

/* Columns whose sums stay in the cache while all rows go by. */
#define STRIP 32

/* The sums of the columns from @first to @end, in a block of @n columns, of
 * four rows: so a sum is loaded and stored a fourth as often. */
static void
add_products (float *sums, guint block, const float *rows, gsize stride,
              guint first, guint end, guint n)
{
  for (guint i = first; i < end; i++) {
    const float a = rows[i], b = rows[stride + i];
    const float c = rows[2 * stride + i], d = rows[3 * stride + i];
    float *restrict to = sums + (gsize) i * block;

    for (guint k = i; k < n; k++)
      to[k] += (a * rows[k] + b * rows[stride + k])
          + (c * rows[2 * stride + k] + d * rows[3 * stride + k]);
  }
}

void
runnel_moments_add (RunnelMoments *self, float *rows, guint n_rows)
{
  const gsize stride = self->columns;

  memset (rows + n_rows * stride, 0, 3 * stride * sizeof (float));
  self->n_rows += n_rows;
  for (guint c = 0; c < self->columns; c += self->block) {
    const guint n = MIN (self->block, self->columns - c);

    for (guint first = 0; first < n; first += STRIP)
      for (guint row = 0; row < n_rows; row += 4)
        add_products (self->sums + (gsize) c * self->block, self->block,
            rows + row * stride + c, stride, first, MIN (first + STRIP, n), n);
  }
}

float
runnel_moments_get_square (const RunnelMoments *self, guint column)
{
  return self->sums[(gsize) column * self->block + column % self->block];
}

/* The lower triangle C of H = C'·C, in place of the upper triangle of H,
 * mirrored: a Cholesky factorisation from the last column on. */
static void
factorise (double *h, guint n)
{
  for (guint j = n; j-- > 0;) {
    double *row = h + (gsize) j * n;
    double pivot = 1 / sqrt (row[j]);

    for (guint k = 0; k <= j; k++)
      row[k] *= pivot;
    for (guint i = 0; i < j; i++)
      for (guint k = 0; k <= i; k++)
        h[(gsize) i * n + k] -= row[i] * row[k];
  }
}

/* The inverse of a lower triangle, row by row. */
static void
invert (const double *c, double *inverse, guint n)
{
  memset (inverse, 0, (gsize) n * n * sizeof *inverse);
  for (guint i = 0; i < n; i++) {
    double *row = inverse + (gsize) i * n;
    double pivot = 1 / c[(gsize) i * n + i];

    for (guint k = 0; k < i; k++) {
      const double factor = c[(gsize) i * n + k];
      const double *other = inverse + (gsize) k * n;

      for (guint l = 0; l <= k; l++)
        row[l] -= factor * other[l];
    }
    for (guint l = 0; l < i; l++)
      row[l] *= pivot;
    row[i] = pivot;
  }
}

/* H of a block, and U of U'·U = H^-1 with H = C'·C: U is C^-1 turned over. The
 * mean moment becomes one. Moments of two columns count for @trust: few rows
 * tell how large inputs are, but not how they hang together. */
static void
work_out (const float *sums, guint n, guint stride, double trust,
          float *moments, float *factors)
{
  g_autofree double *h = g_new (double, (gsize) n * n);
  g_autofree double *inverse = g_new (double, (gsize) n * n);
  double mean = 0;

  for (guint i = 0; i < n; i++)
    mean += sums[(gsize) i * stride + i] / n;
  for (guint i = 0; i < n; i++) {
    for (guint k = 0; k <= i; k++)
      h[(gsize) i * n + k]
          = mean > 0 ? sums[(gsize) k * stride + i] / mean
              * (k < i ? trust : 1) : 0;
    h[(gsize) i * n + i] += mean > 0 ? DAMPING : 1;
    for (guint k = 0; k <= i; k++)
      moments[(gsize) i * stride + k] = moments[(gsize) k * stride + i]
          = (float) h[(gsize) i * n + k];
  }
  factorise (h, n);
  invert (h, inverse, n);
  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < n; k++)
      factors[(gsize) i * stride + k]
          = k < i ? 0 : (float) inverse[(gsize) k * n + i];
}

void
runnel_moments_make_feedback (const RunnelMoments *self,
                              RunnelFeedback *ret_feedback)
{
  float *moments = g_new0 (float, count_values (self));
  float *factors = g_new0 (float, count_values (self));
  const double trust
      = (double) self->n_rows / (double) (self->n_rows + self->block);

  for (guint c = 0; c < self->columns; c += self->block)
    work_out (self->sums + (gsize) c * self->block,
        MIN (self->block, self->columns - c), self->block, trust,
        moments + (gsize) c * self->block, factors + (gsize) c * self->block);
  runnel_feedback_clear (ret_feedback);
  ret_feedback->block = self->block;
  ret_feedback->moments = moments;
  ret_feedback->factors = factors;
}

void
runnel_feedback_clear (RunnelFeedback *feedback)
{
  g_free ((float *) feedback->moments);
  g_free ((float *) feedback->factors);
  *feedback = (RunnelFeedback) { 0 };
}
