/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Dynamic depthwise convolutions over the rows of a draft's block. A piece of
 * work is a group of channels, in all rows.
 */
#include "cpu-pass.h"

static guint
n_groups (const RunnelPass *self)
{
  return self->shape.n_embd / self->shape.conv_group;
}

typedef struct {
  RunnelPass *pass;
  const RunnelMatrix *matrix;
} FactorWork;

static void
factor_tiles (void *data, unsigned thread, size_t first, size_t last)
{
  FactorWork *work = data;
  RunnelPass *self = work->pass;

  self->kernels->matmul[work->matrix->kind] (work->matrix, &self->normed,
      NULL, self->factors, self->factor_stride, first, last);
}

void
runnel_cpu_conv_prepare (RunnelPass *self, const RunnelOperand *base,
                         const RunnelOperand *conv)
{
  FactorWork work = { self, &conv->matrix };
  const gsize n_tiles = runnel_matrix_n_tiles (&conv->matrix);

  for (guint i = 0; i < 2 * self->shape.conv_taps; i++)
    self->kernels->row (&base->matrix, i,
        self->conv_base + i * self->x_stride);
  runnel_team_for (self->team, n_tiles, runnel_pass_grain (self, n_tiles),
      factor_tiles, &work);
}

typedef struct {
  RunnelPass *pass;
  guint side;
  float *rows;
  gsize stride;
} ConvWork;

/* From the last row up: rows before it are still the input. */
static void
convolve_group (const ConvWork *work, const RunnelPassSequence *block,
                guint group)
{
  const RunnelPass *self = work->pass;
  const guint n = self->shape.conv_group, channel = group * n;

  for (guint slot = block->n_rows; slot-- > 0;) {
    const gsize row = block->row + slot;
    float *y = work->rows + row * work->stride + channel;

    for (guint j = 0; j < self->shape.conv_taps && j <= slot; j++) {
      const guint tap = work->side * self->shape.conv_taps + j;

      self->kernels->conv_tap (y, y - j * work->stride,
          self->conv_base + tap * self->x_stride + channel,
          self->factors[row * self->factor_stride + tap * n_groups (self)
              + group], n, j > 0);
    }
  }
}

static void
convolve_groups (void *data, unsigned thread, size_t first, size_t last)
{
  ConvWork *work = data;
  const RunnelPassRows *rows = work->pass->rows;

  for (size_t group = first; group < last; group++)
    for (guint i = 0; i < rows->n_sequences; i++)
      convolve_group (work, &rows->sequences[i], group);
}

void
runnel_cpu_convolve (RunnelPass *self, guint side, float *rows, gsize stride)
{
  ConvWork work = { self, side, rows, stride };

  runnel_team_for (self->team, n_groups (self),
      runnel_pass_grain (self, n_groups (self)), convolve_groups, &work);
}
