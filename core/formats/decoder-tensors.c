/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The tensors of a decoder in files: names in GGUF and Hugging Face, shapes,
 * and which architectures have them. A tensor that is not in this table would
 * change the result without being computed, so it is refused by name.
 */
#include "checkpoint-private.h"

#include <math.h>
#include <string.h>

#include "../error.h"

static const RunnelDecoderLayout layouts[] = {
  { "llama", "LlamaForCausalLM", RUNNEL_ROPE_PAIRS, FALSE, FALSE },
  { "qwen2", "Qwen2ForCausalLM", RUNNEL_ROPE_HALVES, TRUE, FALSE },
  { "qwen3", "Qwen3ForCausalLM", RUNNEL_ROPE_HALVES, FALSE, TRUE },
};

typedef enum { ONE, EMBD, FF, QUERY, KEY, HEAD, VOCAB, HALF_ROPE } Size;
typedef enum { ALWAYS, UNTIED, QKV_BIAS, QK_NORM, MAY } When;

typedef struct {
  const char *gguf;    /* after "blk.N." */
  const char *hf;      /* after "model.layers.N." */
  Size columns, rows;
  When when;
} Tensor;

static const Tensor global_tensors[] = {
  { "token_embd.weight", "model.embed_tokens.weight", EMBD, VOCAB, ALWAYS },
  { "output_norm.weight", "model.norm.weight", EMBD, ONE, ALWAYS },
  { "output.weight", "lm_head.weight", EMBD, VOCAB, UNTIED },
  { "rope_freqs.weight", NULL, HALF_ROPE, ONE, MAY },
};

static const Tensor layer_tensors[] = {
  { "attn_norm.weight", "input_layernorm.weight", EMBD, ONE, ALWAYS },
  { "attn_q.weight", "self_attn.q_proj.weight", EMBD, QUERY, ALWAYS },
  { "attn_k.weight", "self_attn.k_proj.weight", EMBD, KEY, ALWAYS },
  { "attn_v.weight", "self_attn.v_proj.weight", EMBD, KEY, ALWAYS },
  { "attn_q.bias", "self_attn.q_proj.bias", QUERY, ONE, QKV_BIAS },
  { "attn_k.bias", "self_attn.k_proj.bias", KEY, ONE, QKV_BIAS },
  { "attn_v.bias", "self_attn.v_proj.bias", KEY, ONE, QKV_BIAS },
  { "attn_q_norm.weight", "self_attn.q_norm.weight", HEAD, ONE, QK_NORM },
  { "attn_k_norm.weight", "self_attn.k_norm.weight", HEAD, ONE, QK_NORM },
  { "attn_output.weight", "self_attn.o_proj.weight", QUERY, EMBD, ALWAYS },
  { "ffn_norm.weight", "post_attention_layernorm.weight", EMBD, ONE, ALWAYS },
  { "ffn_gate.weight", "mlp.gate_proj.weight", EMBD, FF, ALWAYS },
  { "ffn_up.weight", "mlp.up_proj.weight", EMBD, FF, ALWAYS },
  { "ffn_down.weight", "mlp.down_proj.weight", FF, EMBD, ALWAYS },
};

const RunnelDecoderLayout *
runnel_decoder_layout (const char *architecture, const char *file,
    GError **error)
{
  g_autoptr (GString) known = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (layouts); i++) {
    if (strcmp (layouts[i].name, architecture) == 0)
      return &layouts[i];
    g_string_append_printf (known, "%s%s", i > 0 ? ", " : "",
        layouts[i].name);
  }
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
      "%s: architecture '%s' is not supported (%s are)", file, architecture,
      known->str);
  return NULL;
}

/* Splits "blk.12.attn_q.weight" after its prefix; the number as it would be
 * written, so that a layer has one name only. */
static gboolean
split_layer (const char *name, const char *prefix, guint *layer,
    const char **rest)
{
  const char *at = name + strlen (prefix);
  guint value = 0;

  if (!g_str_has_prefix (name, prefix) || !g_ascii_isdigit (*at) ||
      (at[0] == '0' && g_ascii_isdigit (at[1])))
    return FALSE;
  for (; g_ascii_isdigit (*at) && value <= RUNNEL_MAX_LAYERS; at++)
    value = value * 10 + g_ascii_digit_value (*at);
  if (*at != '.')
    return FALSE;
  *layer = value;
  *rest = at + 1;
  return TRUE;
}

char *
runnel_decoder_gguf_name (const char *hf_name)
{
  const char *rest;
  guint layer;

  if (split_layer (hf_name, "model.layers.", &layer, &rest)) {
    for (guint i = 0; i < G_N_ELEMENTS (layer_tensors); i++)
      if (strcmp (layer_tensors[i].hf, rest) == 0)
        return g_strdup_printf ("blk.%u.%s", layer, layer_tensors[i].gguf);
    return NULL;
  }
  for (guint i = 0; i < G_N_ELEMENTS (global_tensors); i++)
    if (g_strcmp0 (global_tensors[i].hf, hf_name) == 0)
      return g_strdup (global_tensors[i].gguf);
  return NULL;
}

/* --- checking --- */

static const Tensor *
find_tensor (const char *name, guint *layer)
{
  const Tensor *table = global_tensors;
  gsize n = G_N_ELEMENTS (global_tensors);
  const char *rest = name;

  *layer = 0;
  if (split_layer (name, "blk.", layer, &rest)) {
    table = layer_tensors;
    n = G_N_ELEMENTS (layer_tensors);
  }
  for (gsize i = 0; i < n; i++)
    if (strcmp (table[i].gguf, rest) == 0)
      return &table[i];
  return NULL;
}

static gboolean
is_needed (const Tensor *tensor, const RunnelDecoderLayout *layout,
    const RunnelHyperparameters *hp)
{
  switch (tensor->when) {
    case ALWAYS: return TRUE;
    case UNTIED: return !hp->tied;
    case QKV_BIAS: return layout->qkv_bias;
    case QK_NORM: return layout->qk_norm;
    default: return FALSE;
  }
}

static guint64
resolve_size (Size size, const RunnelHyperparameters *hp)
{
  switch (size) {
    case EMBD: return hp->n_embd;
    case FF: return hp->n_ff;
    case QUERY: return (guint64) hp->n_heads * hp->head_dim;
    case KEY: return (guint64) hp->n_kv_heads * hp->head_dim;
    case HEAD: return hp->head_dim;
    case VOCAB: return hp->n_vocab;
    case HALF_ROPE: return hp->rope_dimensions / 2;
    default: return 1;
  }
}

/* As the file calls it; @layer matters only to what belongs to one. */
static char *
name_in_file (RunnelCheckpoint *self, const Tensor *tensor, guint layer)
{
  gboolean hf = self->safetensors != NULL;

  if (tensor >= global_tensors &&
      tensor < global_tensors + G_N_ELEMENTS (global_tensors))
    return g_strdup (hf ? tensor->hf : tensor->gguf);
  return g_strdup_printf ("%s.%u.%s", hf ? "model.layers" : "blk", layer,
      hf ? tensor->hf : tensor->gguf);
}

/* @name: of the file, for the message. */
static gboolean
check_shape (RunnelCheckpoint *self, const RunnelTensor *tensor,
    const char *name, const Tensor *known, GError **error)
{
  guint64 columns = resolve_size (known->columns, &self->hyperparameters);
  guint64 rows = resolve_size (known->rows, &self->hyperparameters);

  if (tensor->dims[0] == columns && tensor->dims[1] == rows &&
      tensor->dims[2] == 1 && tensor->dims[3] == 1)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
      "%s: tensor '%s' has %" G_GUINT64_FORMAT " rows of %" G_GUINT64_FORMAT
      "; the model's sizes ask for %" G_GUINT64_FORMAT " of %"
      G_GUINT64_FORMAT "%s", self->path, name,
      tensor->dims[1] * tensor->dims[2] * tensor->dims[3], tensor->dims[0],
      rows, columns, known->rows == VOCAB ?
      " (rows and tokens of the vocabulary must agree)" : "");
  return FALSE;
}

/* Vectors are used as floats; what divides frequencies must be above 0. */
static gboolean
check_vector (RunnelCheckpoint *self, const RunnelTensor *tensor,
    const char *name, const Tensor *known, GError **error)
{
  gboolean divides = known->columns == HALF_ROPE;

  if (runnel_tensor_type_info (tensor->type)->block_elements != 1 ||
      (divides && tensor->type != RUNNEL_TENSOR_F32)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: tensor '%s' is of type %s; %s is expected", self->path, name,
        runnel_tensor_type_info (tensor->type)->name,
        divides ? "F32" : "a float type");
    return FALSE;
  }
  if (!divides)
    return TRUE;
  for (guint64 i = 0; i < tensor->dims[0]; i++) {
    float factor;

    runnel_blocks_dequantize (RUNNEL_TENSOR_F32) (&factor,
        runnel_tensor_data (tensor) + 4 * i, 1);
    if (isfinite (factor) && factor > 0)
      continue;
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: tensor '%s': factor %" G_GUINT64_FORMAT " is %g; it must be "
        "above 0", self->path, name, i, factor);
    return FALSE;
  }
  return TRUE;
}

static gboolean
check_tensor (RunnelCheckpoint *self, const RunnelTensor *tensor,
    const RunnelDecoderLayout *layout, GError **error)
{
  guint layer;
  const Tensor *known = find_tensor (tensor->name, &layer);
  g_autofree char *name = known != NULL ?
      name_in_file (self, known, layer) : g_strdup (tensor->name);

  if (known == NULL || (known->when != MAY &&
          !is_needed (known, layout, &self->hyperparameters))) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: tensor '%s' is not supported in architecture '%s'", self->path,
        name, layout->name);
    return FALSE;
  }
  if (layer >= self->hyperparameters.n_layers) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
        "%s: tensor '%s' belongs to no layer (there are %u)", self->path,
        name, self->hyperparameters.n_layers);
    return FALSE;
  }
  return check_shape (self, tensor, name, known, error) &&
      (known->rows != ONE || check_vector (self, tensor, name, known, error));
}

static gboolean
check_present (RunnelCheckpoint *self, const Tensor *tensor, guint layer,
    GError **error)
{
  g_autofree char *name = name_in_file (self, tensor, layer);
  g_autofree char *gguf_name = self->safetensors != NULL ?
      runnel_decoder_gguf_name (name) : g_strdup (name);
  const char *reason = NULL;

  if (runnel_checkpoint_tensor (self, gguf_name) != NULL)
    return TRUE;
  if (self->safetensors != NULL)
    reason = runnel_safetensors_unusable (self->safetensors, name);
  if (reason != NULL)
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: tensor '%s' %s", self->path, name, reason);
  else
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: tensor '%s' is missing", self->path, name);
  return FALSE;
}

gboolean
runnel_checkpoint_check_tensors (RunnelCheckpoint *self,
    const RunnelDecoderLayout *layout, GError **error)
{
  const RunnelHyperparameters *hp = &self->hyperparameters;

  for (guint i = 0; i < self->tensors->len; i++)
    if (!check_tensor (self, &g_array_index (self->tensors, RunnelTensor, i),
            layout, error))
      return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (global_tensors); i++)
    if (is_needed (&global_tensors[i], layout, hp) &&
        !check_present (self, &global_tensors[i], 0, error))
      return FALSE;
  for (guint layer = 0; layer < hp->n_layers; layer++)
    for (guint i = 0; i < G_N_ELEMENTS (layer_tensors); i++)
      if (is_needed (&layer_tensors[i], layout, hp) &&
          !check_present (self, &layer_tensors[i], layer, error))
        return FALSE;
  return TRUE;
}
