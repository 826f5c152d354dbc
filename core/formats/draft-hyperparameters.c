/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The hyperparameters of DFlash drafts: in GGUF under the keys that llama.cpp
 * writes, in config.json under those of the published checkpoints. Defaults
 * are those of NeMo AutoModel and llama.cpp.
 */
#include "checkpoint-private.h"

#include <math.h>
#include <string.h>

#include "../error-private.h"

#define MAX_BLOCK 16
#define MAX_CONV_TAPS 8
#define MAX_RANK 4096
#define MAX_TOP_K 64
#define DEFAULT_BLOCK 16
#define DEFAULT_CONV_TAPS 2
#define DEFAULT_CONV_GROUP 16
#define DEFAULT_RANK 256
#define DEFAULT_TOP_K 16

/* GGUF has no key for it. */
#define N_TARGET_LAYERS_KEY "runnel.draft.target_layer_count"

#define fail(error, path, code, ...) \
  (runnel_set_error_about (error, code, path, __VA_ARGS__), FALSE)

/* --- what either format must satisfy --- */

static gboolean
check_taps (RunnelCheckpoint *self, GError **error)
{
  const RunnelDraftHyperparameters *draft = &self->hyperparameters.draft;

  if (draft->n_taps == 0)
    return fail (error, self->path, RUNNEL_ERROR_MALFORMED,
        "the draft names no layers of its target");
  for (guint i = 0; draft->n_target_layers > 0 && i < draft->n_taps; i++)
    if (draft->taps[i] >= draft->n_target_layers)
      return fail (error, self->path, RUNNEL_ERROR_MISMATCH,
          "the draft reads layer %u of a target of %u layers", draft->taps[i],
          draft->n_target_layers);
  return TRUE;
}

static gboolean
check_draft (RunnelCheckpoint *self, GError **error)
{
  const RunnelHyperparameters *hp = &self->hyperparameters;
  const RunnelDraftHyperparameters *draft = &hp->draft;

  if (draft->block_size < 2 || draft->block_size > MAX_BLOCK)
    return fail (error, self->path, RUNNEL_ERROR_LIMIT,
        "a block of %u slots; it must have 2 to %u", draft->block_size,
        MAX_BLOCK);
  if (draft->mask_token < 0 || (guint) draft->mask_token >= hp->n_vocab)
    return fail (error, self->path, RUNNEL_ERROR_MISMATCH,
        "mask token %d is not in the vocabulary of %u", draft->mask_token,
        hp->n_vocab);
  if (draft->conv_taps > 0 && hp->n_embd % draft->conv_group != 0)
    return fail (error, self->path, RUNNEL_ERROR_MISMATCH,
        "a width of %u is no multiple of the %u channels of a convolution's "
        "group", hp->n_embd, draft->conv_group);
  if (draft->selector_top_k > hp->n_vocab
      || draft->selector_rank > hp->n_vocab)
    return fail (error, self->path, RUNNEL_ERROR_MISMATCH,
        "a path selector of rank %u with %u candidates, but a vocabulary of "
        "%u", draft->selector_rank, draft->selector_top_k, hp->n_vocab);
  /* Engines disagree on what a narrower window means inside the block. */
  if (draft->window > 0 && draft->window < draft->block_size)
    return fail (error, self->path, RUNNEL_ERROR_UNSUPPORTED,
        "a sliding window of %u, narrower than the block of %u",
        draft->window, draft->block_size);
  return check_taps (self, error);
}

/* --- GGUF --- */

static const char *const gguf_keys[] = {
  "block_size", "target_layers", "conv_kernel_size", "conv_group_size",
  "selector_rank", "selector_top_k", "attention.sliding_window_pattern",
  "sample_from_anchor",
};

gboolean
runnel_checkpoint_is_gguf_draft_key (const char *suffix)
{
  for (guint i = 0; i < G_N_ELEMENTS (gguf_keys); i++)
    if (strcmp (gguf_keys[i], suffix) == 0)
      return TRUE;
  return FALSE;
}

static gboolean
get_gguf_uint (RunnelCheckpoint *self, const char *key, guint64 min,
               guint64 max, guint fallback, guint *ret, GError **error)
{
  guint64 value;

  if (!runnel_gguf_get_uint_or (self->gguf, key, min, max, fallback, &value,
          error))
    return FALSE;
  *ret = value;
  return TRUE;
}

/* llama.cpp taps what goes into a layer: its numbers are one higher. */
static gboolean
read_gguf_taps (RunnelCheckpoint *self, GError **error)
{
  RunnelDraftHyperparameters *draft = &self->hyperparameters.draft;
  const char *key = "dflash.target_layers";
  RunnelGgufArray array;

  if (!runnel_gguf_has (self->gguf, key))
    return fail (error, self->path, RUNNEL_ERROR_MALFORMED,
        "key '%s' is missing", key);
  if (!runnel_gguf_get_array (self->gguf, key, RUNNEL_GGUF_UINT32, &array,
          NULL)
      && !runnel_gguf_get_array (self->gguf, key, RUNNEL_GGUF_INT32, &array,
          error))
    return FALSE;
  if (array.n > RUNNEL_MAX_TAPS)
    return fail (error, self->path, RUNNEL_ERROR_LIMIT,
        "key '%s' names %" G_GUINT64_FORMAT " layers; %u are allowed", key,
        array.n, RUNNEL_MAX_TAPS);
  draft->n_taps = array.n;
  for (guint i = 0; i < draft->n_taps; i++) {
    guint32 layer;

    memcpy (&layer, array.data + i * sizeof layer, sizeof layer);
    layer = GUINT32_FROM_LE (layer);
    if (layer < 1 || layer > RUNNEL_MAX_LAYERS)
      return fail (error, self->path, RUNNEL_ERROR_LIMIT,
          "key '%s' holds %d; layers are counted from 1 to %u there", key,
          (gint32) layer, RUNNEL_MAX_LAYERS);
    draft->taps[i] = layer - 1;
  }
  return TRUE;
}

static gboolean
read_gguf_window (RunnelCheckpoint *self, GError **error)
{
  RunnelHyperparameters *hp = &self->hyperparameters;
  const char *key = "dflash.attention.sliding_window_pattern";
  RunnelGgufArray pattern;

  if (!get_gguf_uint (self, "dflash.attention.sliding_window", 0,
          RUNNEL_MAX_CONTEXT, 0, &hp->draft.window, error))
    return FALSE;
  if (hp->draft.window == 0)
    return TRUE;
  if (!runnel_gguf_has (self->gguf, key))
    return fail (error, self->path, RUNNEL_ERROR_MALFORMED,
        "key '%s' is missing beside a sliding window", key);
  if (!runnel_gguf_get_array (self->gguf, key, RUNNEL_GGUF_BOOL, &pattern,
          error))
    return FALSE;
  if (pattern.n != hp->n_layers)
    return fail (error, self->path, RUNNEL_ERROR_MISMATCH,
        "key '%s' has %" G_GUINT64_FORMAT " entries for %u layers", key,
        pattern.n, hp->n_layers);
  for (guint i = 0; i < hp->n_layers; i++)
    hp->draft.sliding[i] = pattern.data[i] != 0;
  return TRUE;
}

static gboolean
check_gguf_flags (RunnelCheckpoint *self, GError **error)
{
  static const char *const keys[] = { "dflash.attention.causal",
    "dflash.sample_from_anchor" };

  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    gboolean set;

    if (!runnel_gguf_get_boolean_or (self->gguf, keys[i], FALSE, &set, error))
      return FALSE;
    if (set)
      return fail (error, self->path, RUNNEL_ERROR_UNSUPPORTED,
          "key '%s' asks for something that is not supported", keys[i]);
  }
  return TRUE;
}

gboolean
runnel_checkpoint_read_gguf_draft (RunnelCheckpoint *self, GError **error)
{
  RunnelDraftHyperparameters *draft = &self->hyperparameters.draft;
  guint64 mask;

  if (!check_gguf_flags (self, error)
      || !get_gguf_uint (self, "dflash.block_size", 2, MAX_BLOCK,
          DEFAULT_BLOCK, &draft->block_size, error)
      || !runnel_gguf_get_uint (self->gguf, "tokenizer.ggml.mask_token_id", 0,
          G_MAXINT32, &mask, error)
      || !read_gguf_taps (self, error)
      || !get_gguf_uint (self, N_TARGET_LAYERS_KEY, 1, RUNNEL_MAX_LAYERS, 0,
          &draft->n_target_layers, error)
      || !get_gguf_uint (self, "dflash.selector_top_k", 0, MAX_TOP_K, 0,
          &draft->selector_top_k, error))
    return FALSE;
  draft->mask_token = mask;
  if (draft->selector_top_k > 0
      && (!get_gguf_uint (self, "dflash.conv_kernel_size", 1, MAX_CONV_TAPS,
              DEFAULT_CONV_TAPS, &draft->conv_taps, error)
          || !get_gguf_uint (self, "dflash.conv_group_size", 1,
              RUNNEL_MAX_EMBD, DEFAULT_CONV_GROUP, &draft->conv_group, error)
          || !get_gguf_uint (self, "dflash.selector_rank", 1, MAX_RANK,
              DEFAULT_RANK, &draft->selector_rank, error)))
    return FALSE;
  return read_gguf_window (self, error) && check_draft (self, error);
}

static void
write_taps (RunnelGgufWriter *writer, const RunnelDraftHyperparameters *draft)
{
  guint32 layers[RUNNEL_MAX_TAPS];

  for (guint i = 0; i < draft->n_taps; i++)
    layers[i] = draft->taps[i] + 1;
  runnel_gguf_writer_add_uint32s (writer, "dflash.target_layers", layers,
      draft->n_taps);
  if (draft->n_target_layers > 0)
    runnel_gguf_writer_add_uint32 (writer, N_TARGET_LAYERS_KEY,
        draft->n_target_layers);
}

void
runnel_checkpoint_write_gguf_draft (RunnelGgufWriter *writer,
                                    const RunnelHyperparameters *hp)
{
  const RunnelDraftHyperparameters *draft = &hp->draft;
  const struct { const char *key; guint value; } numbers[] = {
    { "dflash.block_size", draft->block_size },
    { "dflash.conv_kernel_size", draft->conv_taps },
    { "dflash.conv_group_size", draft->conv_group },
    { "dflash.selector_rank", draft->selector_rank },
    { "dflash.selector_top_k", draft->selector_top_k },
    { "dflash.attention.sliding_window", draft->window },
  };

  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (numbers[i].value > 0)
      runnel_gguf_writer_add_uint32 (writer, numbers[i].key,
          numbers[i].value);
  runnel_gguf_writer_add_uint32 (writer, "tokenizer.ggml.mask_token_id",
      draft->mask_token);
  runnel_gguf_writer_add_boolean (writer, "dflash.attention.causal", FALSE);
  if (draft->window > 0)
    runnel_gguf_writer_add_booleans (writer,
        "dflash.attention.sliding_window_pattern", draft->sliding,
        hp->n_layers);
  write_taps (writer, draft);
}

/* --- config.json --- */

#define fail_config(in, code, ...) \
  runnel_json_reader_fail (in, code, __VA_ARGS__)

/* Files have these keys in "dflash_config" or, older ones, at the top. */
static const RunnelJsonNode *
find_object (const RunnelJsonReader *in, const char *key)
{
  const RunnelJsonNode *own = runnel_json_find (in->root, "dflash_config");

  return own != NULL && runnel_json_find (own, key) != NULL ? own : in->root;
}

static gboolean
get_config_uint (RunnelJsonReader *in, const char *key, guint max,
                 guint fallback, guint *ret)
{
  return runnel_json_get_uint_or (in, find_object (in, key), key, max,
      fallback, ret);
}

/* Whether one of the classes has @text in its name. */
static gboolean
has_class (const RunnelJsonNode *root, const char *text)
{
  const RunnelJsonNode *classes = runnel_json_find (root, "architectures");

  if (classes == NULL || runnel_json_node_kind (classes) != RUNNEL_JSON_ARRAY)
    return FALSE;
  for (gsize i = 0; i < runnel_json_node_size (classes); i++) {
    const RunnelJsonNode *name = runnel_json_node_item (classes, i);

    if (runnel_json_node_kind (name) == RUNNEL_JSON_STRING
        && strstr (runnel_json_node_string (name, NULL), text) != NULL)
      return TRUE;
  }
  return FALSE;
}

gboolean
runnel_checkpoint_is_draft_config (const RunnelJsonNode *root)
{
  return has_class (root, "DFlash");
}

/* Version 2 by its class, or by what only it has. */
static gboolean
is_version_2 (const RunnelJsonReader *in)
{
  const char *key = "selector_top_k";

  return has_class (in->root, "DFlash2")
      || runnel_json_find (find_object (in, key), key) != NULL;
}

/* From the second layer to the last but two, evenly; one in the middle. */
static void
choose_taps (RunnelHyperparameters *hp)
{
  RunnelDraftHyperparameters *draft = &hp->draft;
  const guint n = draft->n_target_layers;

  draft->n_taps = MIN (hp->n_layers, RUNNEL_MAX_TAPS);
  if (draft->n_taps == 1)
    draft->taps[0] = n / 2;
  for (guint i = 0; draft->n_taps > 1 && i < draft->n_taps; i++)
    draft->taps[i]
        = rint (1 + (double) i * ((double) n - 4) / (draft->n_taps - 1));
}

static gboolean
read_config_taps (RunnelJsonReader *in, RunnelHyperparameters *hp)
{
  RunnelDraftHyperparameters *draft = &hp->draft;
  const char *key = "target_layer_ids";
  const RunnelJsonNode *layers
      = runnel_json_find (find_object (in, key), key);

  if (!runnel_json_get_uint_or (in, in->root, "num_target_layers",
          RUNNEL_MAX_LAYERS, 0, &draft->n_target_layers))
    return FALSE;
  if (layers == NULL && draft->n_target_layers < 4)
    return fail_config (in, RUNNEL_ERROR_MALFORMED,
        "'target_layer_ids' is missing");
  if (layers == NULL) {
    choose_taps (hp);
    return TRUE;
  }
  if (runnel_json_node_kind (layers) != RUNNEL_JSON_ARRAY
      || runnel_json_node_size (layers) > RUNNEL_MAX_TAPS)
    return fail_config (in, RUNNEL_ERROR_LIMIT,
        "'%s' is no array of at most %u layers", key, RUNNEL_MAX_TAPS);
  draft->n_taps = runnel_json_node_size (layers);
  for (guint i = 0; i < draft->n_taps; i++) {
    gint64 layer;

    if (!runnel_json_node_int64 (runnel_json_node_item (layers, i), &layer)
        || layer < 0 || layer >= RUNNEL_MAX_LAYERS)
      return fail_config (in, RUNNEL_ERROR_MALFORMED,
          "'%s' holds something that is no layer from 0 to %u", key,
          RUNNEL_MAX_LAYERS - 1);
    draft->taps[i] = layer;
  }
  return TRUE;
}

static gboolean
read_config_window (RunnelJsonReader *in, RunnelHyperparameters *hp)
{
  const RunnelJsonNode *types = runnel_json_find (in->root, "layer_types");
  gboolean use, any = FALSE;

  if (!runnel_json_get_boolean_or (in, in->root, "use_sliding_window", FALSE,
          &use))
    return FALSE;
  if (!use || types == NULL)
    return TRUE;
  if (runnel_json_node_kind (types) != RUNNEL_JSON_ARRAY
      || runnel_json_node_size (types) != hp->n_layers)
    return fail_config (in, RUNNEL_ERROR_MALFORMED,
        "'layer_types' is no array of one entry for each of %u layers",
        hp->n_layers);
  for (guint i = 0; i < hp->n_layers; i++) {
    const RunnelJsonNode *type = runnel_json_node_item (types, i);
    const char *name = runnel_json_node_kind (type) == RUNNEL_JSON_STRING
        ? runnel_json_node_string (type, NULL) : "";

    hp->draft.sliding[i] = strcmp (name, "sliding_attention") == 0;
    any = any || hp->draft.sliding[i];
    if (!hp->draft.sliding[i] && strcmp (name, "full_attention") != 0)
      return fail_config (in, RUNNEL_ERROR_UNSUPPORTED,
          "'layer_types' has '%s'; full_attention and sliding_attention are "
          "supported", name);
  }
  return !any || runnel_json_get_uint (in, "sliding_window",
      RUNNEL_MAX_CONTEXT, &hp->draft.window);
}

/* Each changes the result, unless it has the value that does not. */
static gboolean
check_config_neutral (RunnelJsonReader *in)
{
  static const struct { const char *key; double neutral; } keys[] = {
    { "input_embedding_scale", 1 },
    { "output_multiplier", 1 },
    { "final_logit_softcapping", 0 },
  };
  static const char *const flags[] = { "is_causal", "shift_label" };

  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    double value;

    if (!runnel_json_get_double_or (in, find_object (in, keys[i].key),
            keys[i].key, keys[i].neutral, &value))
      return FALSE;
    if (value != keys[i].neutral)
      return fail_config (in, RUNNEL_ERROR_UNSUPPORTED,
          "'%s' of %g is not supported in a draft", keys[i].key, value);
  }
  for (guint i = 0; i < G_N_ELEMENTS (flags); i++) {
    gboolean set;

    if (!runnel_json_get_boolean_or (in, find_object (in, flags[i]), flags[i],
            FALSE, &set))
      return FALSE;
    if (set)
      return fail_config (in, RUNNEL_ERROR_UNSUPPORTED,
          "'%s' is not supported in a draft", flags[i]);
  }
  return TRUE;
}

static gboolean
read_config_mask (RunnelJsonReader *in, RunnelDraftHyperparameters *draft)
{
  const char *key = "mask_token_id";
  const RunnelJsonNode *node = runnel_json_find (find_object (in, key), key);
  gint64 mask;

  if (node == NULL || !runnel_json_node_int64 (node, &mask) || mask < 0
      || mask > G_MAXINT32)
    return fail_config (in, RUNNEL_ERROR_MALFORMED, "'%s' is no token", key);
  draft->mask_token = mask;
  return TRUE;
}

gboolean
runnel_checkpoint_read_config_draft (RunnelCheckpoint *self,
                                     RunnelJsonReader *in)
{
  RunnelHyperparameters *hp = &self->hyperparameters;
  RunnelDraftHyperparameters *draft = &hp->draft;

  hp->tied = TRUE;                  /* the output matrix is the target's */
  if (!check_config_neutral (in)
      || !get_config_uint (in, "block_size", MAX_BLOCK, DEFAULT_BLOCK,
          &draft->block_size)
      || !read_config_mask (in, draft) || !read_config_taps (in, hp)
      || !read_config_window (in, hp))
    return FALSE;
  if (is_version_2 (in)
      && (!get_config_uint (in, "conv_kernel_size", MAX_CONV_TAPS,
              DEFAULT_CONV_TAPS, &draft->conv_taps)
          || !get_config_uint (in, "conv_group_size", RUNNEL_MAX_EMBD,
              DEFAULT_CONV_GROUP, &draft->conv_group)
          || !get_config_uint (in, "selector_rank", MAX_RANK, DEFAULT_RANK,
              &draft->selector_rank)
          || !get_config_uint (in, "selector_top_k", MAX_TOP_K, DEFAULT_TOP_K,
              &draft->selector_top_k)))
    return FALSE;
  return check_draft (self, in->error);
}
