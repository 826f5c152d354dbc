/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "forward.h"

void
runnel_forward (const RunnelWeights *weights, RunnelPass *pass)
{
  const RunnelOps *ops = weights->ops;

  ops->embed (pass, weights->embedding);
  for (guint i = 0; i < weights->hp.n_layers; i++) {
    const RunnelLayer *layer = &weights->layers[i];

    ops->project (pass, layer);
    ops->rope_append (pass, layer, i);
    ops->attend (pass, i);
    ops->project_add (pass, layer->o);
    ops->mlp (pass, layer);
  }
}

RunnelShape
runnel_forward_shape (const RunnelHyperparameters *hp, RunnelKvType kv_type)
{
  RunnelShape shape = {
    .n_layers = hp->n_layers,
    .n_embd = hp->n_embd,
    .n_ff = hp->n_ff,
    .n_heads = hp->n_heads,
    .n_kv_heads = hp->n_kv_heads,
    .head_dim = hp->head_dim,
    .n_vocab = hp->n_vocab,
    .rope_dimensions = hp->rope_dimensions,
    .rope_style = hp->rope_style,
    .norm_epsilon = (float) hp->norm_epsilon,
    .kv_type = kv_type,
  };

  return shape;
}
