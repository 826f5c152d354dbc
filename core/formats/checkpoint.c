/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "checkpoint-private.h"

#include <math.h>
#include <string.h>

#include "../error-private.h"

#define SAMPLE 4096   /* bytes hashed at each end of a tensor */

/* --- what every format must satisfy --- */

#define fail(self, error, ...) \
  (runnel_set_error_about (error, RUNNEL_ERROR_MISMATCH, (self)->path, \
      __VA_ARGS__), FALSE)

static gboolean
check_rope (RunnelCheckpoint *self, GError **error)
{
  const RunnelHyperparameters *hp = &self->hyperparameters;

  if (hp->rope_dimensions < 2 || hp->rope_dimensions % 2 != 0 ||
      hp->rope_dimensions > hp->head_dim)
    return fail (self, error, "%u rotated elements of a head of %u; an even "
        "number from 2 to the size of a head is needed", hp->rope_dimensions,
        hp->head_dim);
  if (!isfinite (hp->rope_base) || hp->rope_base <= 1)
    return fail (self, error, "a rope base of %g; it must be above 1",
        hp->rope_base);
  if (hp->rope_scaling == RUNNEL_ROPE_SCALING_NONE)
    return TRUE;
  if (!isfinite (hp->rope_factor) || hp->rope_factor < RUNNEL_MIN_ROPE_FACTOR)
    return fail (self, error, "a rope scaling factor of %g; it must be at "
        "least %g", hp->rope_factor, RUNNEL_MIN_ROPE_FACTOR);
  if (hp->rope_scaling == RUNNEL_ROPE_SCALING_LINEAR)
    return TRUE;
  if (hp->rope_original_context == 0)
    return fail (self, error, "rope scaling without the original context "
        "length");
  if (hp->rope_scaling == RUNNEL_ROPE_SCALING_LLAMA3 &&
      !(isfinite (hp->rope_high_freq_factor) && hp->rope_low_freq_factor > 0 &&
          hp->rope_high_freq_factor > hp->rope_low_freq_factor))
    return fail (self, error, "rope frequency factors from %g to %g; they "
        "must be above 0 and rise", hp->rope_low_freq_factor,
        hp->rope_high_freq_factor);
  if (!isfinite (hp->rope_attention_factor) || hp->rope_attention_factor < 0 ||
      !isfinite (hp->rope_beta_fast) || hp->rope_beta_fast < 0 ||
      !isfinite (hp->rope_beta_slow) || hp->rope_beta_slow < 0)
    return fail (self, error, "a yarn parameter that is negative or not "
        "finite");
  return TRUE;
}

gboolean
runnel_checkpoint_check_hyperparameters (RunnelCheckpoint *self,
    GError **error)
{
  const RunnelHyperparameters *hp = &self->hyperparameters;

  if (hp->n_heads % hp->n_kv_heads != 0)
    return fail (self, error, "%u heads are no multiple of %u key/value heads",
        hp->n_heads, hp->n_kv_heads);
  if (!isfinite (hp->norm_epsilon) || hp->norm_epsilon < 0 ||
      hp->norm_epsilon >= 1)
    return fail (self, error, "a norm epsilon of %g; it must lie between 0 "
        "and 1", hp->norm_epsilon);
  return check_rope (self, error);
}

void
runnel_checkpoint_add_tensor (RunnelCheckpoint *self,
    const RunnelTensor *tensor, const char *name)
{
  RunnelTensor added = *tensor;
  RunnelPart part;
  guint layer;

  if (added.n_dims == 3 && runnel_part_find (name, &part, &layer) &&
      (part == RUNNEL_PART_ATTN_CONV_BASE ||
          part == RUNNEL_PART_FFN_CONV_BASE)) {
    added.dims[1] *= added.dims[2];
    added.dims[2] = 1;
    added.n_dims = 2;
  }

  added.name = g_string_chunk_insert (self->names, name);
  g_array_append_val (self->tensors, added);
  g_hash_table_insert (self->by_name, (char *) added.name,
      GSIZE_TO_POINTER (self->tensors->len));
}

/* --- content id --- */

static void
hash_part (GChecksum *hash, const guint8 *data, gsize size)
{
  guint64 length = GUINT64_TO_LE ((guint64) size);

  g_checksum_update (hash, (const guchar *) &length, sizeof length);
  g_checksum_update (hash, data, size);
}

/* The graph stands for the header; tensors are sampled where they come from,
 * which makes none of them. */
static void
hash_mnn (RunnelCheckpoint *self, GChecksum *hash)
{
  const RunnelMapping *graph = runnel_mnn_package_graph (self->mnn);

  hash_part (hash, runnel_mapping_data (graph), runnel_mapping_size (graph));
  for (guint i = 0; i < self->tensors->len; i++) {
    const RunnelMnnOrigin *from = runnel_mnn_package_origin (self->mnn, i);
    const guint8 *data = runnel_mapping_data (from->file) + from->at;
    gsize sample = MIN (from->bytes, SAMPLE);

    hash_part (hash, data, sample);
    hash_part (hash, data + from->bytes - sample, sample);
  }
}

static char *
make_content_id (RunnelCheckpoint *self, RunnelMapping *config)
{
  g_autoptr (GChecksum) hash = g_checksum_new (G_CHECKSUM_SHA256);
  gsize size;

  if (self->gguf != NULL)
    hash_part (hash, runnel_mapping_data (runnel_gguf_mapping (self->gguf)),
        runnel_gguf_header_size (self->gguf));
  if (config != NULL)
    hash_part (hash, runnel_mapping_data (config),
        runnel_mapping_size (config));
  for (gsize i = 0; self->safetensors != NULL &&
      i < runnel_safetensors_n_shards (self->safetensors); i++) {
    const guint8 *header =
        runnel_safetensors_header (self->safetensors, i, &size);

    hash_part (hash, header, size);
  }
  if (self->mnn != NULL)
    hash_mnn (self, hash);
  for (guint i = 0; self->mnn == NULL && i < self->tensors->len; i++) {
    const RunnelTensor *tensor =
        &g_array_index (self->tensors, RunnelTensor, i);
    const guint8 *data = runnel_tensor_data (tensor);
    gsize sample = MIN (tensor->bytes, SAMPLE);

    hash_part (hash, data, sample);
    hash_part (hash, data + tensor->bytes - sample, sample);
  }
  return g_strdup (g_checksum_get_string (hash));
}

/* --- the object --- */

static gboolean
is_hugging_face (const char *path)
{
  return g_file_test (path, G_FILE_TEST_IS_DIR) ||
      g_str_has_suffix (path, ".safetensors") ||
      g_str_has_suffix (path, ".safetensors.index.json");
}

RunnelCheckpoint *
runnel_checkpoint_open (const char *path, RunnelLoadMode mode, GError **error)
{
  g_autoptr (RunnelCheckpoint) self = NULL;
  g_autoptr (RunnelMapping) config = NULL;

  if (*path == '\0') {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "the name of the model file is empty");
    return NULL;
  }
  self = g_new0 (RunnelCheckpoint, 1);
  g_atomic_ref_count_init (&self->ref_count);
  self->path = g_strdup (path);
  self->mode = mode;
  self->names = g_string_chunk_new (4096);
  self->tensors = g_array_new (FALSE, FALSE, sizeof (RunnelTensor));
  self->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  if (runnel_mnn_package_is_at (path)) {
    if (!runnel_checkpoint_read_mnn (self, mode, &config, error))
      return NULL;
  } else if (is_hugging_face (path)) {
    self->folder = g_file_test (path, G_FILE_TEST_IS_DIR) ? g_strdup (path) :
        g_path_get_dirname (path);
    if (!runnel_checkpoint_read_hugging_face (self, mode, &config, error))
      return NULL;
  } else if (!runnel_checkpoint_read_gguf (self, mode, error)) {
    return NULL;
  }
  self->content_id = make_content_id (self, config);
  return g_steal_pointer (&self);
}

RunnelLoadMode
runnel_checkpoint_load_mode (const RunnelCheckpoint *self)
{
  return self->mode;
}

RunnelCheckpoint *
runnel_checkpoint_ref (RunnelCheckpoint *self)
{
  g_atomic_ref_count_inc (&self->ref_count);
  return self;
}

void
runnel_checkpoint_unref (RunnelCheckpoint *self)
{
  if (!g_atomic_ref_count_dec (&self->ref_count))
    return;
  g_clear_pointer (&self->gguf, runnel_gguf_free);
  g_clear_pointer (&self->safetensors, runnel_safetensors_free);
  g_clear_pointer (&self->mnn, runnel_mnn_package_free);
  g_hash_table_unref (self->by_name);
  g_array_unref (self->tensors);
  g_string_chunk_free (self->names);
  g_free (self->content_id);
  g_free (self->folder);
  g_free (self->path);
  g_free (self);
}

const char *
runnel_checkpoint_path (const RunnelCheckpoint *self)
{
  return self->path;
}

const RunnelHyperparameters *
runnel_checkpoint_hyperparameters (const RunnelCheckpoint *self)
{
  return &self->hyperparameters;
}

const RunnelTensor *
runnel_checkpoint_tensor (const RunnelCheckpoint *self, const char *name)
{
  gsize found = GPOINTER_TO_SIZE (g_hash_table_lookup (self->by_name, name));

  return found > 0 ? runnel_checkpoint_nth_tensor (self, found - 1) : NULL;
}

gsize
runnel_checkpoint_n_tensors (const RunnelCheckpoint *self)
{
  return self->tensors->len;
}

const RunnelTensor *
runnel_checkpoint_nth_tensor (const RunnelCheckpoint *self, gsize i)
{
  g_return_val_if_fail (i < self->tensors->len, NULL);
  return &g_array_index (self->tensors, RunnelTensor, i);
}

RunnelGguf *
runnel_checkpoint_gguf (const RunnelCheckpoint *self)
{
  return self->gguf;
}

const char *
runnel_checkpoint_folder (const RunnelCheckpoint *self)
{
  return self->folder;
}

const RunnelMnnPackage *
runnel_checkpoint_mnn (const RunnelCheckpoint *self)
{
  return self->mnn;
}

const RunnelMnnRounding *
runnel_checkpoint_nth_rounding (const RunnelCheckpoint *self, gsize i)
{
  const RunnelMnnOrigin *origin = self->mnn != NULL ?
      runnel_mnn_package_origin (self->mnn, i) : NULL;

  return origin != NULL && origin->rounding.n_rounded > 0 ?
      &origin->rounding : NULL;
}

const char *
runnel_checkpoint_content_id (const RunnelCheckpoint *self)
{
  return self->content_id;
}
