/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The keys of a package: hyperparameters, tokenizer, sampling defaults, where
 * it comes from and under what licence.
 */
#include "checkpoint-private.h"
#include "converter-private.h"

#include <string.h>

#include "../error-private.h"
#include "../text/tokenizer-private.h"

/* What a folder's files say beside the weights. */
static const char *const folder_files[] = {
  "config.json", "generation_config.json", "tokenizer.json",
  "tokenizer_config.json", "chat_template.jinja", "llm_config.json",
};

#define MAX_CARD ((gsize) 1 << 20)   /* bytes of README.md */

static void
add_file (GPtrArray *files, const char *path)
{
  for (guint i = 0; i < files->len; i++)
    if (strcmp (files->pdata[i], path) == 0)
      return;
  g_ptr_array_add (files, g_strdup (path));
}

static const char *
get_folder (RunnelCheckpoint *checkpoint)
{
  const RunnelMnnPackage *mnn = runnel_checkpoint_mnn (checkpoint);

  return mnn != NULL ? runnel_mnn_package_folder (mnn)
      : runnel_checkpoint_folder (checkpoint);
}

static void
add_mnn_files (GPtrArray *files, RunnelCheckpoint *checkpoint)
{
  const RunnelMnnPackage *mnn = runnel_checkpoint_mnn (checkpoint);

  add_file (files, runnel_mapping_name (runnel_mnn_package_graph (mnn)));
  add_file (files, runnel_mnn_package_tokenizer_path (mnn));
  for (gsize i = 0; i < runnel_checkpoint_n_tensors (checkpoint); i++)
    add_file (files, runnel_mapping_name (
            runnel_mnn_package_origin (mnn, i)->file));
}

GPtrArray *
runnel_conversion_list_files (const RunnelConversion *self)
{
  RunnelCheckpoint *checkpoint = self->checkpoint;
  const char *folder = get_folder (checkpoint);
  GPtrArray *files = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; folder != NULL && i < G_N_ELEMENTS (folder_files); i++) {
    g_autofree char *path = g_build_filename (folder, folder_files[i], NULL);

    if (g_file_test (path, G_FILE_TEST_IS_REGULAR))
      add_file (files, path);
  }
  if (runnel_checkpoint_mnn (checkpoint) != NULL)
    add_mnn_files (files, checkpoint);
  for (gsize i = 0; i < runnel_checkpoint_n_tensors (checkpoint); i++) {
    RunnelMapping *mapping
        = runnel_checkpoint_nth_tensor (checkpoint, i)->mapping;

    if (runnel_mapping_is_file (mapping))
      add_file (files, runnel_mapping_name (mapping));
  }
  /* A head is in memory; its file may be gone. */
  if (self->head != NULL && g_file_test (
          runnel_decision_head_get_path (self->head), G_FILE_TEST_IS_REGULAR))
    add_file (files, runnel_decision_head_get_path (self->head));
  return files;
}

/* ---- Where it comes from --------------------------------------------- */

static char *
hash_file (RunnelConversion *self, const char *path)
{
  const gsize part = (gsize) 1 << 22;
  g_autoptr (GChecksum) hash = g_checksum_new (G_CHECKSUM_SHA256);
  g_autoptr (RunnelMapping) mapping
      = runnel_mapping_open (path, RUNNEL_LOAD_MODE_MAP, self->error);
  g_autoptr (RunnelTensorFile) file = NULL;
  gsize size;

  file = mapping != NULL ? runnel_tensor_file_new (mapping, self->error)
      : NULL;
  if (file == NULL)
    return NULL;
  size = runnel_tensor_file_size (file);
  for (gsize at = 0; at < size; at += part)
    if (!runnel_tensor_file_hash (file, at, MIN (part, size - at), hash,
            self->cancellable, self->error) ||
        !runnel_conversion_advance (self, MIN (part, size - at)))
      return NULL;
  return g_strdup (g_checksum_get_string (hash));
}

static const char *
source_format (RunnelCheckpoint *checkpoint)
{
  RunnelGguf *gguf = runnel_checkpoint_gguf (checkpoint);

  if (runnel_checkpoint_mnn (checkpoint) != NULL)
    return "MNN";
  if (gguf == NULL)
    return "Hugging Face";
  return runnel_package_is (gguf) ? "Runnel package" : "GGUF";
}

static gboolean
write_sources (RunnelConversion *self, RunnelGgufWriter *metadata)
{
  g_autoptr (GPtrArray) files = runnel_conversion_list_files (self);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) digests = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < files->len; i++) {
    char *digest = hash_file (self, files->pdata[i]);

    if (digest == NULL)
      return FALSE;
    g_ptr_array_add (digests, digest);
    g_ptr_array_add (names, g_path_get_basename (files->pdata[i]));
  }
  runnel_gguf_writer_add_string (metadata, RUNNEL_PACKAGE_SOURCE_FORMAT,
      source_format (self->checkpoint), -1);
  runnel_gguf_writer_add_strings (metadata, RUNNEL_PACKAGE_SOURCE_FILES,
      (const char *const *) names->pdata, NULL, names->len);
  runnel_gguf_writer_add_strings (metadata, RUNNEL_PACKAGE_SOURCE_SHA256,
      (const char *const *) digests->pdata, NULL, digests->len);
  return TRUE;
}

/* Keys that the package writes itself, or that are about the container. */
static gboolean
is_ours (const char *key, const char *architecture)
{
  static const char *const prefixes[] = { "runnel.", "tokenizer.", "split." };
  static const char *const keys[] = { "general.architecture",
    "general.alignment", "general.file_type",
    "general.quantization_version", NULL };
  gsize length = strlen (architecture);

  for (guint i = 0; i < G_N_ELEMENTS (prefixes); i++)
    if (g_str_has_prefix (key, prefixes[i]))
      return TRUE;
  return g_strv_contains (keys, key) ||
      (strncmp (key, architecture, length) == 0 && key[length] == '.');
}

static void
copy_key (RunnelGgufWriter *metadata, const RunnelGguf *from, const char *key)
{
  RunnelGgufType type;
  gsize size;
  const guint8 *value = runnel_gguf_raw_value (from, key, &type, &size);

  runnel_gguf_writer_add_raw (metadata, key, type, value, size);
}

static void
copy_keys (RunnelGgufWriter *metadata, const RunnelGguf *from,
           const char *architecture)
{
  for (gsize i = 0; i < runnel_gguf_n_keys (from); i++) {
    const char *key = runnel_gguf_key (from, i);

    if (!is_ours (key, architecture))
      copy_key (metadata, from, key);
  }
  if (runnel_gguf_has (from, RUNNEL_PACKAGE_GENERATION_CONFIG))
    copy_key (metadata, from, RUNNEL_PACKAGE_GENERATION_CONFIG);
}

/* ---- What a folder says ---------------------------------------------- */

/* The licence in the lines between "---" that model cards begin with. */
static char *
find_license (const char *card)
{
  g_auto (GStrv) lines = g_strsplit (card, "\n", 200);

  if (lines[0] == NULL || strcmp (g_strstrip (lines[0]), "---") != 0)
    return NULL;
  for (guint i = 1; lines[i] != NULL; i++) {
    if (g_str_has_prefix (lines[i], "---"))
      return NULL;
    if (g_str_has_prefix (lines[i], "license:")) {
      char *name = g_strstrip (lines[i] + strlen ("license:"));

      return *name != '\0' ? g_strdup (name) : NULL;
    }
  }
  return NULL;
}

/* A text file of the folder; NULL when it is not there or no text. */
static char *
read_text (const char *folder, const char *name, gsize limit)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_autoptr (RunnelMapping) file = runnel_mapping_read (path, limit, NULL);
  const char *text;
  gsize size;

  if (file == NULL)
    return NULL;
  text = (const char *) runnel_mapping_data (file);
  size = runnel_mapping_size (file);
  return g_utf8_validate_len (text, size, NULL) ? g_strndup (text, size)
      : NULL;
}

static void
write_folder_keys (RunnelGgufWriter *metadata, const char *folder)
{
  g_autofree char *whole = g_canonicalize_filename (folder, NULL);
  g_autofree char *name = g_path_get_basename (whole);
  g_autofree char *generation = read_text (folder, "generation_config.json",
      RUNNEL_JSON_MAX_TEXT);
  g_autofree char *card = read_text (folder, "README.md", MAX_CARD);
  g_autofree char *license = card != NULL ? find_license (card) : NULL;

  runnel_gguf_writer_add_string (metadata, "general.name", name, -1);
  if (license != NULL)
    runnel_gguf_writer_add_string (metadata, "general.license", license, -1);
  if (generation != NULL)
    runnel_gguf_writer_add_string (metadata, RUNNEL_PACKAGE_GENERATION_CONFIG,
        generation, -1);
}

/* A draft may leave that to its target. */
static gboolean
write_tokenizer (RunnelConversion *self, RunnelGgufWriter *metadata)
{
  const RunnelHyperparameters *hp
      = runnel_checkpoint_hyperparameters (self->checkpoint);
  g_autoptr (RunnelTokenizer) tokenizer = NULL;

  if (hp->draft.block_size > 0 &&
      !runnel_tokenizer_is_in_checkpoint (self->checkpoint))
    return TRUE;
  tokenizer
      = runnel_tokenizer_new_from_checkpoint (self->checkpoint, self->error);
  return tokenizer != NULL &&
      runnel_tokenizer_write_package (tokenizer, metadata, self->error);
}

gboolean
runnel_conversion_write_metadata (RunnelConversion *self,
    RunnelGgufWriter *metadata)
{
  const RunnelHyperparameters *hp
      = runnel_checkpoint_hyperparameters (self->checkpoint);
  RunnelGguf *gguf = runnel_checkpoint_gguf (self->checkpoint);
  g_autoptr (GPtrArray) files = runnel_conversion_list_files (self);

  for (guint i = 0; i < files->len; i++) {
    g_autoptr (RunnelMapping) file = runnel_mapping_open (files->pdata[i],
        RUNNEL_LOAD_MODE_MAP, self->error);

    if (file == NULL)
      return FALSE;
    self->total += runnel_mapping_size (file);
  }
  runnel_package_write_hyperparameters (metadata, hp);
  if (hp->draft.block_size > 0)
    runnel_checkpoint_write_gguf_draft (metadata, hp);
  if (gguf != NULL)
    copy_keys (metadata, gguf, hp->architecture);
  else
    write_folder_keys (metadata, get_folder (self->checkpoint));
  if (self->head != NULL)
    runnel_decision_head_write_keys (self->head, metadata, hp->architecture);
  return write_sources (self, metadata) && write_tokenizer (self, metadata);
}
