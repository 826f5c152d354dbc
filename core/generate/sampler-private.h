/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "rejection.h"
#include "sampler.h"

G_BEGIN_DECLS

/* runnel_sampler_draw, but for a guess by rejection sampling: it is kept or
 * replaced by another token, which is distributed as if drawn. */
gboolean runnel_sampler_draw_against (RunnelSampler *self, float *logits,
                                      guint64 position, const guint32 *mask,
                                      const RunnelGuess *guess,
                                      gint32 *ret_token, float *ret_logprob,
                                      RunnelTokenLogprob *top, gsize n_top,
                                      GError **error);

/* The temperature of its draws, 0 where they are greedy. */
double runnel_sampler_get_temperature (RunnelSampler *self);

G_END_DECLS
