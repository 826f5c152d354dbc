/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "architecture.h"

#include <string.h>

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
/* Of a draft, without what it borrows. */
#define DRAFT \
  ((DECODER & ~BIT (RUNNEL_PART_EMBEDDING)) | HEAD_NORMS \
   | BIT (RUNNEL_PART_FUSION) | BIT (RUNNEL_PART_CONTEXT_NORM))
#define CONVOLUTIONS \
  (BIT (RUNNEL_PART_ATTN_CONV_BASE) | BIT (RUNNEL_PART_ATTN_CONV) \
   | BIT (RUNNEL_PART_FFN_CONV_BASE) | BIT (RUNNEL_PART_FFN_CONV))
#define SELECTOR \
  (BIT (RUNNEL_PART_SELECTOR) | BIT (RUNNEL_PART_PREDECESSORS) \
   | BIT (RUNNEL_PART_SUCCESSORS))
#define ROPE_FACTORS BIT (RUNNEL_PART_ROPE_FACTORS)

/* Pre-norm decoders with rotary positions, grouped-query attention and a
 * gated MLP; they differ in what surrounds q, k and v. DFlash drafts, versions
 * 1 and 2, are such layers too, without a mask: Chen et al., "DFlash: Block
 * Diffusion for Flash Speculative Decoding", 2026, arXiv 2602.06036. */
static const RunnelArchitecture architectures[] = {
  { "llama", "LlamaForCausalLM", RUNNEL_ROPE_PAIRS, 0,
    DECODER, OUTPUT | ROPE_FACTORS },
  { "qwen2", "Qwen2ForCausalLM", RUNNEL_ROPE_HALVES, 0,
    DECODER | QKV_BIASES, OUTPUT },
  { "qwen3", "Qwen3ForCausalLM", RUNNEL_ROPE_HALVES, 128,
    DECODER | HEAD_NORMS, OUTPUT },
};

const RunnelArchitecture runnel_draft_architecture = {
  "dflash", "DFlashDraftModel", RUNNEL_ROPE_HALVES, 128, DRAFT, 0, TRUE,
};

typedef enum {
  ONE, EMBD, FF, QUERY, KEY, HEAD, VOCAB, HALF_ROPE, TAPPED, CONV_TAPS,
  CONV_FACTORS, RANK
} Size;

/* Names of a layer's parts follow "blk.N." and "model.layers.N.". */
static const struct {
  const char *gguf;
  const char *hf;            /* NULL: such files do not have it */
  Size columns, rows;
} parts[RUNNEL_N_PARTS] = {
  [RUNNEL_PART_ATTN_NORM]
    = { "attn_norm.weight", "input_layernorm.weight", EMBD, ONE },
  [RUNNEL_PART_Q]
    = { "attn_q.weight", "self_attn.q_proj.weight", EMBD, QUERY },
  [RUNNEL_PART_K] = { "attn_k.weight", "self_attn.k_proj.weight", EMBD, KEY },
  [RUNNEL_PART_V] = { "attn_v.weight", "self_attn.v_proj.weight", EMBD, KEY },
  [RUNNEL_PART_O]
    = { "attn_output.weight", "self_attn.o_proj.weight", QUERY, EMBD },
  [RUNNEL_PART_Q_BIAS] = { "attn_q.bias", "self_attn.q_proj.bias", QUERY, ONE },
  [RUNNEL_PART_K_BIAS] = { "attn_k.bias", "self_attn.k_proj.bias", KEY, ONE },
  [RUNNEL_PART_V_BIAS] = { "attn_v.bias", "self_attn.v_proj.bias", KEY, ONE },
  [RUNNEL_PART_Q_NORM]
    = { "attn_q_norm.weight", "self_attn.q_norm.weight", HEAD, ONE },
  [RUNNEL_PART_K_NORM]
    = { "attn_k_norm.weight", "self_attn.k_norm.weight", HEAD, ONE },
  [RUNNEL_PART_FFN_NORM]
    = { "ffn_norm.weight", "post_attention_layernorm.weight", EMBD, ONE },
  [RUNNEL_PART_GATE] = { "ffn_gate.weight", "mlp.gate_proj.weight", EMBD, FF },
  [RUNNEL_PART_UP] = { "ffn_up.weight", "mlp.up_proj.weight", EMBD, FF },
  [RUNNEL_PART_DOWN] = { "ffn_down.weight", "mlp.down_proj.weight", FF, EMBD },
  [RUNNEL_PART_EMBEDDING]
    = { "token_embd.weight", "model.embed_tokens.weight", EMBD, VOCAB },
  [RUNNEL_PART_OUTPUT_NORM]
    = { "output_norm.weight", "model.norm.weight", EMBD, ONE },
  [RUNNEL_PART_OUTPUT] = { "output.weight", "lm_head.weight", EMBD, VOCAB },
  [RUNNEL_PART_ROPE_FACTORS] = { "rope_freqs.weight", NULL, HALF_ROPE, ONE },
  [RUNNEL_PART_ATTN_CONV_BASE]
    = { "attn_conv_base", "attention_conv.base_kernel", EMBD, CONV_TAPS },
  [RUNNEL_PART_ATTN_CONV]
    = { "attn_conv_proj.weight", "attention_conv.kernel_projection.weight",
      EMBD, CONV_FACTORS },
  [RUNNEL_PART_FFN_CONV_BASE]
    = { "ffn_conv_base", "mlp_conv.base_kernel", EMBD, CONV_TAPS },
  [RUNNEL_PART_FFN_CONV]
    = { "ffn_conv_proj.weight", "mlp_conv.kernel_projection.weight", EMBD,
      CONV_FACTORS },
  [RUNNEL_PART_FUSION] = { "fc.weight", "model.fc.weight", TAPPED, EMBD },
  [RUNNEL_PART_CONTEXT_NORM]
    = { "enc.output_norm.weight", "model.hidden_norm.weight", EMBD, ONE },
  [RUNNEL_PART_SELECTOR]
    = { "selector_hidden.weight",
      "model.candidate_selector.hidden_projection.weight", EMBD, RANK },
  [RUNNEL_PART_PREDECESSORS]
    = { "selector_predecessor.weight",
      "model.candidate_selector.predecessor_codebook", RANK, VOCAB },
  [RUNNEL_PART_SUCCESSORS]
    = { "selector_successor.weight",
      "model.candidate_selector.successor_codebook", RANK, VOCAB },
};

/* Hugging Face's drafts have no "model." before their names. */
#define HF_PREFIX "model."

const RunnelArchitecture *
runnel_architecture_find (const char *name, const char *file, GError **error)
{
  g_autoptr (GString) known = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (architectures); i++) {
    if (strcmp (name, architectures[i].name) == 0)
      return &architectures[i];
    g_string_append_printf (known, "%s%s", i > 0 ? ", " : "",
        architectures[i].name);
  }
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
      "%s: architecture '%s' is not supported (%s are)", file, name,
      known->str);
  return NULL;
}

gboolean
runnel_architecture_needs (const RunnelArchitecture *self,
                           const RunnelHyperparameters *hp, RunnelPart part)
{
  return (self->parts & BIT (part)) != 0
      || (part == RUNNEL_PART_OUTPUT && !hp->tied)
      || (hp->draft.conv_taps > 0 && (CONVOLUTIONS & BIT (part)) != 0)
      || (hp->draft.selector_top_k > 0 && (SELECTOR & BIT (part)) != 0);
}

gboolean
runnel_architecture_allows (const RunnelArchitecture *self,
                            const RunnelHyperparameters *hp, RunnelPart part)
{
  if (part == RUNNEL_PART_OUTPUT && hp->tied)
    return FALSE;
  return (self->optional & BIT (part)) != 0
      || runnel_architecture_needs (self, hp, part);
}

/* ---- Names --------------------------------------------------------------- */

char *
runnel_part_dup_name (RunnelPart part, guint layer)
{
  if (part < RUNNEL_N_LAYER_PARTS)
    return g_strdup_printf ("blk.%u.%s", layer, parts[part].gguf);
  return g_strdup (parts[part].gguf);
}

char *
runnel_part_dup_hf_name (RunnelPart part, guint layer)
{
  if (part < RUNNEL_N_LAYER_PARTS)
    return g_strdup_printf ("model.layers.%u.%s", layer, parts[part].hf);
  return g_strdup (parts[part].hf);
}

char *
runnel_part_dup_hf_draft_name (RunnelPart part, guint layer)
{
  g_autofree char *name = runnel_part_dup_hf_name (part, layer);

  return g_strdup (name != NULL && g_str_has_prefix (name, HF_PREFIX)
      ? name + strlen (HF_PREFIX) : name);
}

/* Splits "blk.12.attn_q.weight" after its prefix; the number as it would be
 * written, so that a layer has one name only. */
static gboolean
split_layer (const char *name, const char *prefix, guint *layer,
             const char **rest)
{
  const char *at = name + strlen (prefix);
  guint value = 0;

  if (!g_str_has_prefix (name, prefix) || !g_ascii_isdigit (*at)
      || (at[0] == '0' && g_ascii_isdigit (at[1])))
    return FALSE;
  for (; g_ascii_isdigit (*at) && value <= RUNNEL_MAX_LAYERS; at++)
    value = value * 10 + g_ascii_digit_value (*at);
  if (*at != '.')
    return FALSE;
  *layer = value;
  *rest = at + 1;
  return TRUE;
}

static gboolean
find (const char *name, gboolean hf, RunnelPart *ret_part, guint *ret_layer)
{
  const char *rest = name;
  guint first = RUNNEL_N_LAYER_PARTS, end = RUNNEL_N_PARTS, layer = 0;

  if (split_layer (name, hf ? "model.layers." : "blk.", &layer, &rest)) {
    first = 0;
    end = RUNNEL_N_LAYER_PARTS;
  }
  for (guint part = first; part < end; part++)
    if (g_strcmp0 (rest, hf ? parts[part].hf : parts[part].gguf) == 0) {
      *ret_part = part;
      *ret_layer = layer;
      return TRUE;
    }
  return FALSE;
}

gboolean
runnel_part_find (const char *name, RunnelPart *ret_part, guint *ret_layer)
{
  return find (name, FALSE, ret_part, ret_layer);
}

gboolean
runnel_part_find_hf (const char *hf_name, RunnelPart *ret_part,
                     guint *ret_layer)
{
  return find (hf_name, TRUE, ret_part, ret_layer);
}

gboolean
runnel_part_find_hf_draft (const char *hf_name, RunnelPart *ret_part,
                           guint *ret_layer)
{
  g_autofree char *name = g_strconcat (HF_PREFIX, hf_name, NULL);

  return find (name, TRUE, ret_part, ret_layer);
}

/* ---- Shapes -------------------------------------------------------------- */

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
    case TAPPED: return (guint64) hp->draft.n_taps * hp->n_embd;
    case CONV_TAPS: return 2 * hp->draft.conv_taps;
    case CONV_FACTORS: return 2 * hp->draft.conv_taps
        * (guint64) (hp->n_embd / MAX (hp->draft.conv_group, 1));
    case RANK: return hp->draft.selector_rank;
    default: return 1;
  }
}

void
runnel_part_get_dims (RunnelPart part, const RunnelHyperparameters *hp,
                      guint64 ret_dims[2])
{
  ret_dims[0] = resolve_size (parts[part].columns, hp);
  ret_dims[1] = resolve_size (parts[part].rows, hp);
}

gboolean
runnel_part_is_vector (RunnelPart part)
{
  return parts[part].rows == ONE;
}

gboolean
runnel_part_is_elementwise (RunnelPart part)
{
  return runnel_part_is_vector (part) || parts[part].rows == CONV_TAPS;
}
