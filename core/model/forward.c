/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "forward.h"

static void
read_taps (const RunnelOps *ops, RunnelPass *pass, guint layer,
           const RunnelTap *taps, guint n_taps)
{
  for (guint i = 0; i < n_taps; i++)
    for (guint row = 0; taps[i].layer == layer && row < taps[i].n_rows; row++)
      ops->read_hidden (pass, taps[i].row + row,
          taps[i].out + row * taps[i].stride);
}

static inline void
look (const RunnelProbe *probe, RunnelPass *pass, guint layer,
      RunnelInput input)
{
  if (probe != NULL)
    probe->look (probe->user_data, pass, probe->n_rows, layer, input);
}

void
runnel_forward (const RunnelWeights *weights, const RunnelOperand *embedding,
                RunnelPass *pass, const RunnelTap *taps, guint n_taps,
                const RunnelProbe *probe)
{
  const RunnelOps *ops = weights->ops;

  ops->embed (pass, embedding);
  for (guint i = 0; i < weights->hp.n_layers; i++) {
    const RunnelLayer *layer = &weights->layers[i];

    ops->project (pass, layer);
    look (probe, pass, i, RUNNEL_INPUT_QKV);
    ops->rope_append (pass, layer, i);
    ops->attend (pass, layer, i);
    look (probe, pass, i, RUNNEL_INPUT_O);
    ops->project_add (pass, layer);
    ops->mlp (pass, layer);
    read_taps (ops, pass, i, taps, n_taps);
    look (probe, pass, i, RUNNEL_INPUT_GATE_UP);
    look (probe, pass, i, RUNNEL_INPUT_DOWN);
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
    .conv_taps = hp->draft.conv_taps,
    .conv_group = hp->draft.conv_group,
    .n_fused = hp->draft.n_taps * hp->n_embd,
  };

  return shape;
}
