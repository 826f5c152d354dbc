/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "architecture.h"

#include "../error.h"

#define BIT(part) (G_GUINT64_CONSTANT (1) << (part))

#define DECODER \
  (BIT (RUNNEL_PART_ATTN_NORM) | BIT (RUNNEL_PART_Q) | BIT (RUNNEL_PART_K) \
   | BIT (RUNNEL_PART_V) | BIT (RUNNEL_PART_O) | BIT (RUNNEL_PART_FFN_NORM) \
   | BIT (RUNNEL_PART_GATE) | BIT (RUNNEL_PART_UP) | BIT (RUNNEL_PART_DOWN) \
   | BIT (RUNNEL_PART_EMBEDDING) | BIT (RUNNEL_PART_OUTPUT_NORM))
#define QKV_BIASES \
  (BIT (RUNNEL_PART_Q_BIAS) | BIT (RUNNEL_PART_K_BIAS) \
   | BIT (RUNNEL_PART_V_BIAS))
#define HEAD_NORMS (BIT (RUNNEL_PART_Q_NORM) | BIT (RUNNEL_PART_K_NORM))
#define OUTPUT BIT (RUNNEL_PART_OUTPUT)
#define ROPE_FACTORS BIT (RUNNEL_PART_ROPE_FACTORS)

/* Pre-norm decoders with rotary positions, grouped-query attention and a
 * gated MLP; they differ in what surrounds q, k and v. */
static const RunnelArchitecture architectures[] = {
  { "llama", DECODER, OUTPUT | ROPE_FACTORS },
  { "qwen2", DECODER | QKV_BIASES, OUTPUT },
  { "qwen3", DECODER | HEAD_NORMS, OUTPUT },
};

static const char *const part_names[RUNNEL_N_PARTS] = {
  "attn_norm.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight",
  "attn_output.weight", "attn_q.bias", "attn_k.bias", "attn_v.bias",
  "attn_q_norm.weight", "attn_k_norm.weight", "ffn_norm.weight",
  "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight",
  "token_embd.weight", "output_norm.weight", "output.weight",
  "rope_freqs.weight",
};

const RunnelArchitecture *
runnel_architecture_find (const char *name, const char *path, GError **error)
{
  g_autoptr (GString) known = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (architectures); i++) {
    if (g_strcmp0 (name, architectures[i].name) == 0)
      return &architectures[i];
    g_string_append_printf (known, "%s%s", i > 0 ? ", " : "",
        architectures[i].name);
  }
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
      "%s: architecture '%s' is not supported; supported are %s", path, name,
      known->str);
  return NULL;
}

char *
runnel_part_dup_name (RunnelPart part, guint layer)
{
  if (part < RUNNEL_N_LAYER_PARTS)
    return g_strdup_printf ("blk.%u.%s", layer, part_names[part]);
  return g_strdup (part_names[part]);
}

void
runnel_part_get_dims (RunnelPart part, const RunnelHyperparameters *hp,
                      guint64 ret_dims[2])
{
  guint64 n_q = (guint64) hp->n_heads * hp->head_dim;
  guint64 n_kv = (guint64) hp->n_kv_heads * hp->head_dim;
  const guint64 dims[RUNNEL_N_PARTS][2] = {
    [RUNNEL_PART_ATTN_NORM] = { hp->n_embd, 0 },
    [RUNNEL_PART_Q] = { hp->n_embd, n_q },
    [RUNNEL_PART_K] = { hp->n_embd, n_kv },
    [RUNNEL_PART_V] = { hp->n_embd, n_kv },
    [RUNNEL_PART_O] = { n_q, hp->n_embd },
    [RUNNEL_PART_Q_BIAS] = { n_q, 0 },
    [RUNNEL_PART_K_BIAS] = { n_kv, 0 },
    [RUNNEL_PART_V_BIAS] = { n_kv, 0 },
    [RUNNEL_PART_Q_NORM] = { hp->head_dim, 0 },
    [RUNNEL_PART_K_NORM] = { hp->head_dim, 0 },
    [RUNNEL_PART_FFN_NORM] = { hp->n_embd, 0 },
    [RUNNEL_PART_GATE] = { hp->n_embd, hp->n_ff },
    [RUNNEL_PART_UP] = { hp->n_embd, hp->n_ff },
    [RUNNEL_PART_DOWN] = { hp->n_ff, hp->n_embd },
    [RUNNEL_PART_EMBEDDING] = { hp->n_embd, hp->n_vocab },
    [RUNNEL_PART_OUTPUT_NORM] = { hp->n_embd, 0 },
    [RUNNEL_PART_OUTPUT] = { hp->n_embd, hp->n_vocab },
    [RUNNEL_PART_ROPE_FACTORS] = { hp->rope_dimensions / 2, 0 },
  };

  ret_dims[0] = dims[part][0];
  ret_dims[1] = dims[part][1];
}

static gboolean
check_tensor (RunnelCheckpoint *checkpoint, RunnelPart part, const char *name,
              gboolean required, GError **error)
{
  const RunnelTensor *tensor = runnel_checkpoint_tensor (checkpoint, name);
  guint64 dims[2];

  runnel_part_get_dims (part, runnel_checkpoint_hyperparameters (checkpoint),
      dims);
  if (tensor == NULL && !required)
    return TRUE;
  if (tensor == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: tensor '%s' is missing", runnel_checkpoint_path (checkpoint),
        name);
    return FALSE;
  }
  if (tensor->n_dims == (dims[1] == 0 ? 1 : 2) && tensor->dims[0] == dims[0]
      && (dims[1] == 0 || tensor->dims[1] == dims[1]))
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
      "%s: tensor '%s' is %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT
      ", but the hyperparameters ask for %" G_GUINT64_FORMAT " x %"
      G_GUINT64_FORMAT, runnel_checkpoint_path (checkpoint), name,
      tensor->dims[0], tensor->dims[1], dims[0], MAX (dims[1], 1));
  return FALSE;
}

/* Whether the description has a place for a tensor of this name. */
static gboolean
is_known (const RunnelArchitecture *self, const RunnelHyperparameters *hp,
          const char *name)
{
  const char *suffix = name;
  guint first = RUNNEL_N_LAYER_PARTS, end = RUNNEL_N_PARTS;

  if (g_str_has_prefix (name, "blk.")) {
    char *after;
    guint64 layer = g_ascii_strtoull (name + 4, &after, 10);

    if (*after != '.' || layer >= hp->n_layers)
      return FALSE;
    suffix = after + 1;
    first = 0;
    end = RUNNEL_N_LAYER_PARTS;
  }
  for (guint part = first; part < end; part++)
    if (((self->parts | self->optional) & BIT (part)) != 0
        && g_strcmp0 (suffix, part_names[part]) == 0)
      return TRUE;
  return FALSE;
}

gboolean
runnel_architecture_check (const RunnelArchitecture *self,
                           RunnelCheckpoint *checkpoint, GError **error)
{
  const RunnelHyperparameters *hp
      = runnel_checkpoint_hyperparameters (checkpoint);

  for (guint part = 0; part < RUNNEL_N_PARTS; part++) {
    guint n = part < RUNNEL_N_LAYER_PARTS ? hp->n_layers : 1;

    if (((self->parts | self->optional) & BIT (part)) == 0)
      continue;
    for (guint layer = 0; layer < n; layer++) {
      g_autofree char *name = runnel_part_dup_name (part, layer);

      if (!check_tensor (checkpoint, part, name,
              (self->parts & BIT (part)) != 0, error))
        return FALSE;
    }
  }
  for (gsize i = 0; i < runnel_checkpoint_n_tensors (checkpoint); i++) {
    const char *name = runnel_checkpoint_nth_tensor (checkpoint, i)->name;

    if (is_known (self, hp, name))
      continue;
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: tensor '%s' has no meaning in architecture '%s'",
        runnel_checkpoint_path (checkpoint), name, self->name);
    return FALSE;
  }
  return TRUE;
}
