/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "quantise.h"

G_BEGIN_DECLS

/* The second moments of a matrix's inputs, in blocks of columns: sums of x·x'
 * over all rows seen, of each block the upper triangle. More columns in a block
 * lose less, and take memory and time for it. */
typedef struct {
  guint columns;
  guint block;                /* columns of a block, all or 1,024 */
  guint64 n_rows;             /* seen */
  float *sums;                /* [blocks][block][block] */
} RunnelMoments;

void runnel_moments_init (RunnelMoments *self, guint columns);
void runnel_moments_clear (RunnelMoments *self);
/* Adds @n_rows rows, [n_rows + 3][columns]: the three at the end are room that
 * is written. */
void runnel_moments_add (RunnelMoments *self, float *rows, guint n_rows);
/* The sum of squares of a column. */
float runnel_moments_get_square (const RunnelMoments *self, guint column);
/* What a quantiser wants of them, in place of what @ret_feedback held: it
 * begins with zeros, and is cleared when it is no longer wanted. */
void runnel_moments_make_feedback (const RunnelMoments *self,
                                   RunnelFeedback *ret_feedback);
void runnel_feedback_clear (RunnelFeedback *feedback);

G_END_DECLS
