/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The hyperparameters of a GGUF checkpoint. Keys and their defaults are those
 * of the GGUF specification and of llama.cpp, which writes such files.
 */
#include "checkpoint-private.h"

#include <string.h>

#include "../error.h"
#include "package.h"

typedef struct {
  RunnelGguf *gguf;
  const char *architecture;
  gboolean is_draft;
  char key[128];
  GError **error;
} Reader;

/* "llama" and "block_count" make "llama.block_count". */
static const char *
join_key (Reader *self, const char *suffix)
{
  g_snprintf (self->key, sizeof self->key, "%s.%s", self->architecture, suffix);
  return self->key;
}

static gboolean
get_uint (Reader *self, const char *suffix, guint64 max, guint *ret)
{
  const char *key = join_key (self, suffix);
  guint64 value;

  if (runnel_gguf_has (self->gguf, key) &&
      runnel_gguf_type (self->gguf, key) == RUNNEL_GGUF_ARRAY) {
    g_set_error (self->error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: key '%s' has a value for each layer, which is not supported",
        runnel_gguf_name (self->gguf), key);
    return FALSE;
  }
  if (!runnel_gguf_get_uint (self->gguf, key, 1, max, &value, self->error))
    return FALSE;
  *ret = value;
  return TRUE;
}

static gboolean
get_uint_or (Reader *self, const char *suffix, guint64 max, guint fallback,
    guint *ret)
{
  *ret = fallback;
  return !runnel_gguf_has (self->gguf, join_key (self, suffix)) ||
      get_uint (self, suffix, max, ret);
}

static gboolean
get_double_or (Reader *self, const char *suffix, double fallback, double *ret)
{
  return runnel_gguf_get_double_or (self->gguf, join_key (self, suffix),
      fallback, ret, self->error);
}

/* --- keys that change the result --- */

/* Keys under the architecture's prefix that are read, or say nothing about
 * the computation. */
static const char *const read_keys[] = {
  "block_count", "embedding_length", "feed_forward_length", "context_length",
  "attention.head_count", "attention.head_count_kv", "attention.key_length",
  "attention.value_length", "attention.layer_norm_rms_epsilon",
  "rope.freq_base", "rope.dimension_count", "rope.scaling.type",
  "rope.scaling.factor", "rope.scale_linear",
  "rope.scaling.original_context_length", "rope.scaling.yarn_beta_fast",
  "rope.scaling.yarn_beta_slow", "vocab_size", "attention.sliding_window",
  "attention.causal", "rope.scaling.finetuned", "tensor_data_layout",
  "pooling_type",
};

/* Further ones are refused unless they have a value that changes nothing. */
static const struct { const char *suffix; double neutral, also; }
neutral_keys[] = {
  { "attn_logit_softcapping", 0, 0 },
  { "final_logit_softcapping", 0, 0 },
  { "attention.clamp_kqv", 0, 0 },
  { "attention.max_alibi_bias", 0, 0 },
  { "attention.scale", 0, 0 },
  { "embedding_scale", 0, 1 },
  { "residual_scale", 0, 1 },
  { "logit_scale", 0, 1 },
  { "expert_count", 0, 0 },
  { "expert_used_count", 0, 0 },
  { "expert_shared_count", 0, 0 },
  { "nextn_predict_layers", 0, 0 },
  { "rope.scaling.attn_factor", 1, 1 },
  { "rope.scaling.yarn_attn_factor", 1, 1 },
  { "rope.scaling.yarn_ext_factor", 1, 1 },
  { "rope.scaling.yarn_log_multiplier", 0, 0 },
};

static gboolean
refuse_key (Reader *self, const char *key)
{
  g_set_error (self->error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
      "%s: key '%s' asks for something that is not supported in architecture "
      "'%s'", runnel_gguf_name (self->gguf), key, self->architecture);
  return FALSE;
}

static gboolean
check_key (Reader *self, const char *key, const char *suffix)
{
  double value;

  for (guint i = 0; i < G_N_ELEMENTS (read_keys); i++)
    if (strcmp (read_keys[i], suffix) == 0)
      return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (neutral_keys); i++)
    if (strcmp (neutral_keys[i].suffix, suffix) == 0 &&
        runnel_gguf_get_double (self->gguf, key, &value, NULL) &&
        (value == neutral_keys[i].neutral || value == neutral_keys[i].also))
      return TRUE;
  /* A decision head may lie beside the model; decision-head.c reads it. */
  if ((self->is_draft && runnel_checkpoint_is_gguf_draft_key (suffix)) ||
      g_str_has_prefix (suffix, "decision."))
    return TRUE;
  return refuse_key (self, key);
}

/* Drafts have a window and no mask; see draft-hyperparameters.c. */
static gboolean
check_mask (Reader *self, const RunnelHyperparameters *hp)
{
  guint64 window;
  gboolean causal;

  if (!runnel_gguf_get_uint_or (self->gguf,
          join_key (self, "attention.sliding_window"), 0, G_MAXUINT64, 0,
          &window, self->error))
    return FALSE;
  if (window != 0 && window < hp->context_length)
    return refuse_key (self, self->key);
  if (!runnel_gguf_get_boolean_or (self->gguf,
          join_key (self, "attention.causal"), TRUE, &causal, self->error))
    return FALSE;
  return causal || refuse_key (self, self->key);
}

static gboolean
check_keys (Reader *self, const RunnelHyperparameters *hp)
{
  gsize prefix = strlen (self->architecture);

  for (gsize i = 0; i < runnel_gguf_n_keys (self->gguf); i++) {
    const char *key = runnel_gguf_key (self->gguf, i);

    if (strncmp (key, self->architecture, prefix) == 0 &&
        key[prefix] == '.' && !check_key (self, key, key + prefix + 1))
      return FALSE;
  }
  return self->is_draft || check_mask (self, hp);
}

/* What kind of file it is: a whole language model? */
static gboolean
check_general (Reader *self)
{
  g_autofree char *type = NULL;
  guint64 n_splits;

  if (!runnel_gguf_dup_string_or_null (self->gguf, "general.type", &type,
          self->error) ||
      !runnel_gguf_get_uint_or (self->gguf, "split.count", 0, G_MAXUINT64, 0,
          &n_splits, self->error))
    return FALSE;
  if (type != NULL && strcmp (type, "model") != 0) {
    g_set_error (self->error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: key 'general.type' says '%s'; only files of type 'model' are "
        "supported", runnel_gguf_name (self->gguf), type);
    return FALSE;
  }
  if (n_splits > 1) {
    g_set_error (self->error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: is one of %" G_GUINT64_FORMAT " parts (key 'split.count'); merge "
        "them with gguf-split first", runnel_gguf_name (self->gguf), n_splits);
    return FALSE;
  }
  return TRUE;
}

/* --- reading --- */

static gboolean
read_rope_scaling (Reader *self, RunnelHyperparameters *hp)
{
  g_autofree char *type = NULL;

  if (runnel_package_is (self->gguf))
    return runnel_package_read_rope (self->gguf, hp, self->error);
  if (!get_double_or (self, "rope.scale_linear", 0, &hp->rope_factor) ||
      !get_double_or (self, "rope.scaling.factor", hp->rope_factor,
          &hp->rope_factor) ||
      !runnel_gguf_dup_string_or_null (self->gguf,
          join_key (self, "rope.scaling.type"), &type, self->error))
    return FALSE;
  if ((type == NULL || strcmp (type, "linear") == 0) &&
      (hp->rope_factor == 0 || hp->rope_factor == 1))
    return TRUE;
  if (type == NULL || strcmp (type, "linear") == 0) {
    hp->rope_scaling = RUNNEL_ROPE_SCALING_LINEAR;
    return TRUE;
  }
  if (strcmp (type, "none") == 0)
    return TRUE;
  if (strcmp (type, "yarn") != 0) {
    g_set_error (self->error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: key '%s': rope scaling '%s' is not supported (none, linear and "
        "yarn are)", runnel_gguf_name (self->gguf), self->key, type);
    return FALSE;
  }
  hp->rope_scaling = RUNNEL_ROPE_SCALING_YARN;
  return get_uint_or (self, "rope.scaling.original_context_length",
          RUNNEL_MAX_CONTEXT, hp->context_length,
          &hp->rope_original_context) &&
      get_double_or (self, "rope.scaling.yarn_beta_fast", 0,
          &hp->rope_beta_fast) &&
      get_double_or (self, "rope.scaling.yarn_beta_slow", 0,
          &hp->rope_beta_slow);
}

static gboolean
read_sizes (Reader *self, RunnelHyperparameters *hp)
{
  guint value_length;

  if (!get_uint (self, "block_count", RUNNEL_MAX_LAYERS, &hp->n_layers) ||
      !get_uint (self, "embedding_length", RUNNEL_MAX_EMBD, &hp->n_embd) ||
      !get_uint (self, "feed_forward_length", RUNNEL_MAX_FF, &hp->n_ff) ||
      !get_uint (self, "context_length", RUNNEL_MAX_CONTEXT,
          &hp->context_length) ||
      !get_uint (self, "attention.head_count", RUNNEL_MAX_HEADS,
          &hp->n_heads) ||
      !get_uint_or (self, "attention.head_count_kv", RUNNEL_MAX_HEADS,
          hp->n_heads, &hp->n_kv_heads))
    return FALSE;
  if (!runnel_gguf_has (self->gguf, join_key (self, "attention.key_length")) &&
      hp->n_embd % hp->n_heads != 0) {
    g_set_error (self->error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
        "%s: key '%s' is missing, and an embedding length of %u is no "
        "multiple of %u heads", runnel_gguf_name (self->gguf), self->key,
        hp->n_embd, hp->n_heads);
    return FALSE;
  }
  if (!get_uint_or (self, "attention.key_length", RUNNEL_MAX_HEAD_DIM,
          MAX (hp->n_embd / hp->n_heads, 1), &hp->head_dim) ||
      !get_uint_or (self, "attention.value_length", RUNNEL_MAX_HEAD_DIM,
          hp->head_dim, &value_length))
    return FALSE;
  if (value_length != hp->head_dim)
    return refuse_key (self, self->key);
  return get_uint_or (self, "rope.dimension_count", RUNNEL_MAX_HEAD_DIM,
      hp->head_dim, &hp->rope_dimensions);
}

/* Tokens, the vocabulary's size and the rows of the embedding must agree; the
 * rows are compared with the other shapes. The package of a draft may have the
 * size alone. */
static gboolean
read_vocabulary (Reader *self, RunnelHyperparameters *hp)
{
  const char *tokens_key = "tokenizer.ggml.tokens";
  const RunnelTensor *embedding =
      runnel_gguf_find_tensor (self->gguf, "token_embd.weight");
  RunnelGgufArray tokens;
  guint64 n = embedding != NULL ? embedding->dims[1] : 0;
  guint said;

  if (runnel_gguf_has (self->gguf, tokens_key)) {
    if (!runnel_gguf_get_array (self->gguf, tokens_key, RUNNEL_GGUF_STRING,
            &tokens, self->error))
      return FALSE;
    n = tokens.n;
  }
  if (n == 0 && self->is_draft) {
    if (!get_uint_or (self, "vocab_size", RUNNEL_MAX_VOCAB, 0, &said))
      return FALSE;
    n = said;
  }
  if (n == 0 || n > RUNNEL_MAX_VOCAB) {
    g_set_error (self->error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
        "%s: %" G_GUINT64_FORMAT " tokens (key '%s' or tensor "
        "'token_embd.weight'); 1 to %d are allowed",
        runnel_gguf_name (self->gguf), n, tokens_key, RUNNEL_MAX_VOCAB);
    return FALSE;
  }
  hp->n_vocab = n;
  if (!get_uint_or (self, "vocab_size", RUNNEL_MAX_VOCAB, n, &said))
    return FALSE;
  if (said == n)
    return TRUE;
  g_set_error (self->error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
      "%s: key '%s' is %u, but there are %u tokens",
      runnel_gguf_name (self->gguf), self->key, said, hp->n_vocab);
  return FALSE;
}

static const RunnelArchitecture *
read_architecture (Reader *self, RunnelHyperparameters *hp)
{
  g_autofree char *name = NULL;
  const RunnelArchitecture *found;

  if (!runnel_gguf_dup_string_or_null (self->gguf, "general.architecture",
          &name, self->error))
    return NULL;
  if (name == NULL) {
    g_set_error (self->error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: key 'general.architecture' is missing",
        runnel_gguf_name (self->gguf));
    return NULL;
  }
  found = strcmp (name, runnel_draft_architecture.name) == 0 ?
      &runnel_draft_architecture :
      runnel_architecture_find (name, runnel_gguf_name (self->gguf),
          self->error);
  if (found != NULL) {
    g_strlcpy (hp->architecture, name, sizeof hp->architecture);
    self->architecture = found->name;
    self->is_draft = found->is_draft;
    hp->rope_style = found->gguf_rope;
  }
  return found;
}

gboolean
runnel_checkpoint_read_gguf (RunnelCheckpoint *self, RunnelLoadMode mode,
    GError **error)
{
  RunnelHyperparameters *hp = &self->hyperparameters;
  Reader reader = { NULL };
  const RunnelArchitecture *architecture;

  self->gguf = runnel_gguf_open (self->path, mode, error);
  if (self->gguf == NULL)
    return FALSE;
  reader.gguf = self->gguf;
  reader.error = error;
  if (!check_general (&reader) ||
      !runnel_package_check (self->gguf, error))
    return FALSE;
  architecture = read_architecture (&reader, hp);
  if (architecture == NULL ||
      !read_sizes (&reader, hp) ||
      !check_keys (&reader, hp) ||
      !runnel_gguf_get_double (self->gguf,
          join_key (&reader, "attention.layer_norm_rms_epsilon"),
          &hp->norm_epsilon, error) ||
      !get_double_or (&reader, "rope.freq_base", 10000, &hp->rope_base) ||
      !read_rope_scaling (&reader, hp) ||
      !read_vocabulary (&reader, hp))
    return FALSE;
  hp->tied = runnel_gguf_find_tensor (self->gguf, "output.weight") == NULL;
  if (architecture->is_draft &&
      !runnel_checkpoint_read_gguf_draft (self, error))
    return FALSE;
  for (gsize i = 0; i < runnel_gguf_n_tensors (self->gguf); i++) {
    const RunnelTensor *tensor = runnel_gguf_tensor (self->gguf, i);

    runnel_checkpoint_add_tensor (self, tensor, tensor->name);
  }
  return runnel_checkpoint_check_hyperparameters (self, error) &&
      runnel_checkpoint_check_tensors (self, architecture, error);
}
