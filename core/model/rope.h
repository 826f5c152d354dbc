/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Rotary positions (Su et al., 2021, "RoFormer") with the scalings of the
 * families we run: linear (Chen et al., 2023), YaRN (Peng et al., 2023) and
 * Llama 3's.
 */
#pragma once

#include "hyperparameters.h"

G_BEGIN_DECLS

typedef struct {
  guint half;                /* pairs that rotate */
  double *frequencies;       /* [half] radians per position */
  float attention_factor;    /* on cosine and sine */
} RunnelRope;

/* @factors: [half] divisors of the frequencies, or NULL. */
void runnel_rope_init (RunnelRope *self, const RunnelHyperparameters *hp,
                       const float *factors);
void runnel_rope_clear (RunnelRope *self);

/* Cosines and sines of a (possibly negative) position: [half] each. */
void runnel_rope_angles (const RunnelRope *self, gint64 position, float *cos,
                         float *sin);
/* The same without the attention factor: turning what was rotated before. */
void runnel_rope_turn (const RunnelRope *self, gint64 positions, float *cos,
                       float *sin);

G_END_DECLS
