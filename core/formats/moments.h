/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "quantise.h"

G_BEGIN_DECLS

/* Columns whose errors are made good among each other: more of them lose less,
 * and take memory and time for it. */
#define RUNNEL_MOMENTS_BLOCK 512

/* The second moments of a matrix's inputs, in blocks of columns: sums of x·x'
 * over all rows seen, of each block the upper triangle. */
typedef struct {
  guint columns;
  float *sums;                /* [blocks][block][block] */
} RunnelMoments;

void runnel_moments_init (RunnelMoments *self, guint columns);
void runnel_moments_clear (RunnelMoments *self);
/* Adds @n_rows rows, [n_rows + 3][columns]: the three at the end are room that
 * is written. */
void runnel_moments_add (RunnelMoments *self, float *rows, guint n_rows);
/* The sum of squares of a column. */
float runnel_moments_get_square (const RunnelMoments *self, guint column);
/* The factors that a quantiser wants (RunnelFeedback), to be freed. */
float *runnel_moments_make_factors (const RunnelMoments *self);

G_END_DECLS
