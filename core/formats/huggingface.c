/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A Hugging Face folder: config.json and safetensors. Keys and defaults are
 * those of the Llama, Qwen2 and Qwen3 classes of transformers, in the spelling
 * of version 4 (rope_theta, rope_scaling) and of version 5 (rope_parameters).
 */
#include "checkpoint-private.h"

#include <string.h>

#include "../error.h"
#include "json-reader.h"

typedef struct {
  RunnelJsonReader in;
  const RunnelArchitecture *architecture;
} Config;

#define fail(self, code, ...) \
  runnel_json_reader_fail (&(self)->in, code, __VA_ARGS__)

/* --- what would change the result --- */

/* Keys that mean something in these classes or their kin; refused unless
 * absent, null, false, 0 or the neutral number. */
static const struct { const char *key; double neutral; } neutral_keys[] = {
  { "mlp_bias", 0 },
  { "quantization_config", 0 },
  { "attn_logit_softcapping", 0 },
  { "final_logit_softcapping", 0 },
  { "embedding_multiplier", 1 },
  { "residual_multiplier", 1 },
  { "logits_scaling", 1 },
  { "attention_multiplier", 0 },
  { "partial_rotary_factor", 1 },
  { "rope_interleaved", 0 },
  { "num_experts", 0 },
  { "num_local_experts", 0 },
  { "clip_qkv", 0 },
  { "alibi", 0 },
  { "attention_chunk_size", 0 },
};

static gboolean
is_neutral (const RunnelJsonNode *node, double neutral)
{
  if (runnel_json_node_kind (node) == RUNNEL_JSON_BOOLEAN)
    return !runnel_json_node_boolean (node);
  return runnel_json_is_number (node) &&
      (runnel_json_node_double (node) == neutral ||
      runnel_json_node_double (node) == 0);
}

static gboolean
refuse (Config *self, const char *key)
{
  return fail (self, RUNNEL_ERROR_UNSUPPORTED, "'%s' asks for something that "
      "is not supported in architecture '%s'", key, self->architecture->name);
}

static gboolean
check_sliding_window (Config *self, const RunnelHyperparameters *hp)
{
  const RunnelJsonNode *types = runnel_json_find (self->in.root, "layer_types");
  gboolean use;
  guint first;

  if (types != NULL) {
    if (runnel_json_node_kind (types) != RUNNEL_JSON_ARRAY ||
        runnel_json_node_size (types) != hp->n_layers)
      return fail (self, RUNNEL_ERROR_MALFORMED,
          "'layer_types' is no array of one entry for each of %u layers",
          hp->n_layers);
    for (guint i = 0; i < hp->n_layers; i++) {
      const RunnelJsonNode *type = runnel_json_node_item (types, i);

      if (runnel_json_node_kind (type) != RUNNEL_JSON_STRING ||
          strcmp (runnel_json_node_string (type, NULL), "full_attention") != 0)
        return refuse (self, "layer_types");
    }
  }
  if (runnel_json_find (self->in.root, "sliding_window") == NULL ||
      types != NULL)
    return TRUE;
  if (!runnel_json_get_boolean_or (&self->in, self->in.root,
          "use_sliding_window", TRUE, &use) ||
      !runnel_json_get_uint_or (&self->in, self->in.root, "max_window_layers",
          G_MAXINT32, 0, &first))
    return FALSE;
  return !use || first >= hp->n_layers || refuse (self, "sliding_window");
}

static gboolean
check_class (Config *self)
{
  const RunnelJsonNode *classes = runnel_json_find (self->in.root,
      "architectures");

  if (classes == NULL || self->architecture->is_draft)
    return TRUE;
  if (runnel_json_node_kind (classes) != RUNNEL_JSON_ARRAY)
    return fail (self, RUNNEL_ERROR_MALFORMED, "'architectures' is no array");
  for (gsize i = 0; i < runnel_json_node_size (classes); i++) {
    const RunnelJsonNode *name = runnel_json_node_item (classes, i);

    if (runnel_json_node_kind (name) == RUNNEL_JSON_STRING &&
        strcmp (runnel_json_node_string (name, NULL),
            self->architecture->hf_class) == 0)
      return TRUE;
  }
  return fail (self, RUNNEL_ERROR_UNSUPPORTED,
      "'architectures' does not hold %s", self->architecture->hf_class);
}

static gboolean
check_supported (Config *self, const RunnelHyperparameters *hp)
{
  const char *activation;
  gboolean bias;

  if (!runnel_json_get_string_or_null (&self->in, self->in.root, "hidden_act",
          &activation) ||
      !runnel_json_get_boolean_or (&self->in, self->in.root, "attention_bias",
          FALSE, &bias))
    return FALSE;
  if (activation != NULL && strcmp (activation, "silu") != 0 &&
      strcmp (activation, "swish") != 0)
    return fail (self, RUNNEL_ERROR_UNSUPPORTED,
        "'hidden_act' is '%s'; only silu is supported", activation);
  /* Qwen2 has its biases whatever this key says. */
  if (bias &&
      !runnel_architecture_needs (self->architecture, hp, RUNNEL_PART_Q_BIAS))
    return refuse (self, "attention_bias");
  for (guint i = 0; i < G_N_ELEMENTS (neutral_keys); i++) {
    const RunnelJsonNode *node = runnel_json_find (self->in.root,
        neutral_keys[i].key);

    if (node != NULL && !is_neutral (node, neutral_keys[i].neutral))
      return refuse (self, neutral_keys[i].key);
  }
  return check_class (self) &&
      (self->architecture->is_draft || check_sliding_window (self, hp));
}

/* --- rope --- */

static gboolean
check_rope_keys (Config *self, const RunnelJsonNode *rope)
{
  static const char *const known[] = { "rope_theta", "rope_type", "type",
    "factor", "original_max_position_embeddings", "low_freq_factor",
    "high_freq_factor", "beta_fast", "beta_slow", "attention_factor",
    "finetuned", NULL };

  for (gsize i = 0; i < runnel_json_node_size (rope); i++) {
    const char *key = runnel_json_node_key (rope, i, NULL);
    const RunnelJsonNode *node = runnel_json_node_value (rope, i);

    if (g_strv_contains (known, key) ||
        runnel_json_node_kind (node) == RUNNEL_JSON_NULL)
      continue;
    if ((strcmp (key, "partial_rotary_factor") == 0 &&
        runnel_json_is_number (node) &&
            runnel_json_node_double (node) == 1) ||
        (strcmp (key, "truncate") == 0 && runnel_json_node_boolean (node)))
      continue;
    return fail (self, RUNNEL_ERROR_UNSUPPORTED,
        "rope parameter '%s' is not supported", key);
  }
  return TRUE;
}

static gboolean
read_rope_type (Config *self, const RunnelJsonNode *rope,
    RunnelRopeScaling *ret)
{
  static const struct { const char *name; RunnelRopeScaling scaling; }
  types[] = {
    { "default", RUNNEL_ROPE_SCALING_NONE },
    { "linear", RUNNEL_ROPE_SCALING_LINEAR },
    { "yarn", RUNNEL_ROPE_SCALING_YARN },
    { "llama3", RUNNEL_ROPE_SCALING_LLAMA3 },
  };
  const char *name;

  if (!runnel_json_get_string_or_null (&self->in, rope,
          runnel_json_find (rope, "rope_type") != NULL ? "rope_type" : "type",
              &name))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (types); i++) {
    if (name == NULL || strcmp (name, types[i].name) == 0) {
      *ret = types[i].scaling;
      return TRUE;
    }
  }
  return fail (self, RUNNEL_ERROR_UNSUPPORTED, "rope type '%s' is not "
      "supported (default, linear, yarn and llama3 are)", name);
}

/* One of the two spellings, into the rope fields of @hp. */
static gboolean
read_rope (Config *self, const char *key, RunnelHyperparameters *hp)
{
  const RunnelJsonNode *rope = runnel_json_find (self->in.root, key);

  if (rope == NULL)
    return TRUE;
  if (runnel_json_node_kind (rope) != RUNNEL_JSON_OBJECT)
    return fail (self, RUNNEL_ERROR_MALFORMED, "'%s' is no object", key);
  if (!check_rope_keys (self, rope) ||
      !read_rope_type (self, rope, &hp->rope_scaling) ||
      !runnel_json_get_double_or (&self->in, rope, "rope_theta", hp->rope_base,
          &hp->rope_base))
    return FALSE;
  if (hp->rope_scaling == RUNNEL_ROPE_SCALING_NONE)
    return TRUE;
  if (!runnel_json_get_double_or (&self->in, rope, "factor", 0,
          &hp->rope_factor))
    return FALSE;
  if (hp->rope_scaling == RUNNEL_ROPE_SCALING_LINEAR)
    return TRUE;
  if (!runnel_json_get_uint_or (&self->in, rope,
          "original_max_position_embeddings", RUNNEL_MAX_CONTEXT,
          hp->context_length, &hp->rope_original_context))
    return FALSE;
  if (hp->rope_scaling == RUNNEL_ROPE_SCALING_LLAMA3)
    return runnel_json_get_double_or (&self->in, rope, "low_freq_factor", 0,
            &hp->rope_low_freq_factor) &&
        runnel_json_get_double_or (&self->in, rope, "high_freq_factor", 0,
            &hp->rope_high_freq_factor);
  return runnel_json_get_double_or (&self->in, rope, "beta_fast", 0,
          &hp->rope_beta_fast) &&
      runnel_json_get_double_or (&self->in, rope, "beta_slow", 0,
          &hp->rope_beta_slow) &&
      runnel_json_get_double_or (&self->in, rope, "attention_factor", 0,
          &hp->rope_attention_factor);
}

/* Files that carry both spellings must mean the same by them. */
static gboolean
read_both_ropes (Config *self, RunnelHyperparameters *hp)
{
  RunnelHyperparameters old;

  if (!runnel_json_get_double_or (&self->in, self->in.root, "rope_theta",
          10000, &hp->rope_base))
    return FALSE;
  old = *hp;
  if (!read_rope (self, "rope_scaling", &old))
    return FALSE;
  if (runnel_json_find (self->in.root, "rope_parameters") == NULL) {
    *hp = old;
    return TRUE;
  }
  if (!read_rope (self, "rope_parameters", hp))
    return FALSE;
  if (runnel_json_find (self->in.root, "rope_theta") != NULL &&
      old.rope_base != hp->rope_base)
    return fail (self, RUNNEL_ERROR_MISMATCH,
        "'rope_theta' is %g, but 'rope_parameters' says %g", old.rope_base,
        hp->rope_base);
  if (runnel_json_find (self->in.root, "rope_scaling") != NULL &&
      (old.rope_scaling != hp->rope_scaling ||
          old.rope_factor != hp->rope_factor ||
          old.rope_original_context != hp->rope_original_context))
    return fail (self, RUNNEL_ERROR_MISMATCH,
        "'rope_scaling' and 'rope_parameters' differ");
  return TRUE;
}

/* --- the configuration --- */

static gboolean
read_sizes (Config *self, RunnelHyperparameters *hp)
{
  guint head_dim;

  if (!runnel_json_get_uint (&self->in, "num_hidden_layers", RUNNEL_MAX_LAYERS,
          &hp->n_layers) ||
      !runnel_json_get_uint (&self->in, "hidden_size", RUNNEL_MAX_EMBD,
          &hp->n_embd) ||
      !runnel_json_get_uint (&self->in, "intermediate_size", RUNNEL_MAX_FF,
          &hp->n_ff) ||
      !runnel_json_get_uint (&self->in, "num_attention_heads", RUNNEL_MAX_HEADS,
          &hp->n_heads) ||
      !runnel_json_get_uint_or (&self->in, self->in.root,
          "num_key_value_heads", RUNNEL_MAX_HEADS, hp->n_heads,
          &hp->n_kv_heads) ||
      !runnel_json_get_uint (&self->in, "vocab_size", RUNNEL_MAX_VOCAB,
          &hp->n_vocab) ||
      !runnel_json_get_uint (&self->in, "max_position_embeddings",
          RUNNEL_MAX_CONTEXT, &hp->context_length))
    return FALSE;
  if (runnel_json_find (self->in.root, "head_dim") == NULL &&
      hp->n_embd % hp->n_heads != 0)
    return fail (self, RUNNEL_ERROR_MISMATCH, "'head_dim' is missing, and a "
        "'hidden_size' of %u is no multiple of %u heads", hp->n_embd,
        hp->n_heads);
  head_dim = self->architecture->hf_head_dim;
  if (head_dim == 0)
    head_dim = MAX (hp->n_embd / hp->n_heads, 1);
  if (!runnel_json_get_uint_or (&self->in, self->in.root, "head_dim",
          RUNNEL_MAX_HEAD_DIM, head_dim, &hp->head_dim))
    return FALSE;
  hp->rope_dimensions = hp->head_dim;
  hp->rope_style = RUNNEL_ROPE_HALVES;
  return TRUE;
}

static gboolean
read_config (Config *self, RunnelHyperparameters *hp)
{
  const char *type;

  if (runnel_json_node_kind (self->in.root) != RUNNEL_JSON_OBJECT)
    return fail (self, RUNNEL_ERROR_MALFORMED, "is no object");
  if (!runnel_json_get_string_or_null (&self->in, self->in.root, "model_type",
          &type))
    return FALSE;
  if (type == NULL)
    return fail (self, RUNNEL_ERROR_MALFORMED, "'model_type' is missing");
  /* The published drafts have the layers of a Qwen3. */
  if (runnel_checkpoint_is_draft_config (self->in.root)) {
    if (strcmp (type, "qwen3") != 0)
      return fail (self, RUNNEL_ERROR_UNSUPPORTED, "a draft with 'model_type' "
          "%s is not supported (qwen3 is)", type);
    self->architecture = &runnel_draft_architecture;
  } else {
    self->architecture = runnel_architecture_find (type,
        runnel_json_name (self->in.json), self->in.error);
  }
  if (self->architecture == NULL)
    return FALSE;
  g_strlcpy (hp->architecture, self->architecture->name,
      sizeof hp->architecture);
  return read_sizes (self, hp) &&
      runnel_json_get_double_or (&self->in, self->in.root, "rms_norm_eps", 1e-6,
          &hp->norm_epsilon) &&
      runnel_json_get_boolean_or (&self->in, self->in.root,
          "tie_word_embeddings", FALSE, &hp->tied) &&
      read_both_ropes (self, hp) &&
      check_supported (self, hp);
}

/* --- tensors --- */

/* Buffers old files hold though they follow from the configuration, and the
 * output matrix beside a tied embedding: transformers ignores both. */
static gboolean
is_ignored (const char *name, const RunnelHyperparameters *hp)
{
  return g_str_has_suffix (name, ".rotary_emb.inv_freq") ||
      (hp->tied && strcmp (name, "lm_head.weight") == 0);
}

static gboolean
add_tensors (RunnelCheckpoint *self, GError **error)
{
  const gboolean is_draft = self->hyperparameters.draft.block_size > 0;
  const char *unusable = runnel_safetensors_find_unusable (self->safetensors,
      is_draft ? "layers." : "model.layers.");

  if (unusable != NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: tensor '%s' %s", self->path, unusable,
        runnel_safetensors_unusable (self->safetensors, unusable));
    return FALSE;
  }
  for (gsize i = 0; i < runnel_safetensors_n_tensors (self->safetensors);
      i++) {
    const RunnelTensor *tensor =
        runnel_safetensors_tensor (self->safetensors, i);
    g_autofree char *name = NULL;
    RunnelPart part;
    guint layer;

    if (is_ignored (tensor->name, &self->hyperparameters))
      continue;
    if (!(is_draft ? runnel_part_find_hf_draft :
            runnel_part_find_hf) (tensor->name, &part, &layer)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
          "%s: tensor '%s' is not supported in architecture '%s'",
          runnel_mapping_name (tensor->mapping), tensor->name,
          self->hyperparameters.architecture);
      return FALSE;
    }
    name = runnel_part_dup_name (part, layer);
    runnel_checkpoint_add_tensor (self, tensor, name);
  }
  return TRUE;
}

gboolean
runnel_checkpoint_read_hugging_face (RunnelCheckpoint *self,
    RunnelLoadMode mode, RunnelMapping **config, GError **error)
{
  g_autofree char *path = g_build_filename (self->folder, "config.json", NULL);
  g_autoptr (RunnelMapping) bytes =
      runnel_mapping_read (path, RUNNEL_JSON_MAX_TEXT, error);
  g_autoptr (RunnelJson) json = NULL;
  Config reader = { { NULL } };

  if (bytes == NULL)
    return FALSE;
  json = runnel_json_parse ((const char *) runnel_mapping_data (bytes),
      runnel_mapping_size (bytes), path, error);
  if (json == NULL)
    return FALSE;
  reader.in.json = json;
  reader.in.root = runnel_json_root (json);
  reader.in.error = error;
  if (!read_config (&reader, &self->hyperparameters) ||
      !runnel_checkpoint_check_hyperparameters (self, error) ||
      (reader.architecture->is_draft &&
          !runnel_checkpoint_read_config_draft (self, &reader.in)))
    return FALSE;
  self->safetensors = runnel_safetensors_open (self->path, mode, error);
  if (self->safetensors == NULL || !add_tensors (self, error) ||
      !runnel_checkpoint_check_tensors (self, reader.architecture, error))
    return FALSE;
  *config = g_steal_pointer (&bytes);
  return TRUE;
}
