/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The one forward pass. What differs between architectures is which weights a
 * layer has.
 */
#pragma once

#include "weights.h"

G_BEGIN_DECLS

/* Hidden rows behind a layer that somebody wants. */
typedef struct {
  guint layer;
  guint row, n_rows;         /* of the pass */
  float *out;                /* [n_rows], each @stride floats after the last */
  gsize stride;
} RunnelTap;

/* Somebody who looks at what products read, through ops->read_input. */
typedef struct {
  void (*look) (gpointer user_data, RunnelPass *pass, guint n_rows,
                guint layer, RunnelInput input);
  gpointer user_data;
  guint n_rows;                /* of the pass */
} RunnelProbe;

/* Runs all layers over the rows of a pass that has begun. @embedding: the
 * weights' own, or that of a draft's target; @probe may be NULL. */
void runnel_forward (const RunnelWeights *weights,
                     const RunnelOperand *embedding, RunnelPass *pass,
                     const RunnelTap *taps, guint n_taps,
                     const RunnelProbe *probe);

/* The shape that a backend needs to know. */
RunnelShape runnel_forward_shape (const RunnelHyperparameters *hp,
                                  RunnelKvType kv_type);

G_END_DECLS
