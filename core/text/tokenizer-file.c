/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tokenizer-private.h"
#include "tokenizer-mtok.h"

#include <string.h>

#include "../error.h"

#define MAX_TEMPLATE ((gsize) 1 << 24)   /* bytes of chat_template.jinja */

/* An optional file of a folder: NULL without an error when it is not there. */
static gboolean
load_if_there (const char *folder, const char *name, RunnelJson **ret,
               GError **error)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);

  if (!g_file_test (path, G_FILE_TEST_EXISTS))
    return TRUE;
  *ret = runnel_json_load (path, error);
  return *ret != NULL;
}

static gboolean
load_template (const char *folder, char **ret, GError **error)
{
  g_autofree char *path = g_build_filename (folder, "chat_template.jinja",
                                            NULL);
  g_autoptr (RunnelMapping) mapping = NULL;

  if (!g_file_test (path, G_FILE_TEST_EXISTS))
    return TRUE;
  mapping = runnel_mapping_read (path, MAX_TEMPLATE, error);
  if (mapping == NULL)
    return FALSE;
  if (memchr (runnel_mapping_data (mapping), '\0',
              runnel_mapping_size (mapping)) != NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                 "%s: holds a NUL character", path);
    return FALSE;
  }
  *ret = g_strndup ((const char *) runnel_mapping_data (mapping),
                    runnel_mapping_size (mapping));
  return TRUE;
}

/* @json: the tokenizer.json, or NULL to load it from @folder. */
static RunnelTokenizer *
new_from_folder (RunnelJson *json, const char *folder, guint n_vocab,
                 GError **error)
{
  g_autofree char *path = g_build_filename (folder, "tokenizer.json", NULL);
  g_autofree char *chat_template = NULL;
  g_autoptr (RunnelJson) tokenizer = NULL;
  g_autoptr (RunnelJson) config = NULL;
  g_autoptr (RunnelJson) generation = NULL;
  RunnelTokenizerFiles files = { NULL };

  tokenizer = json != NULL ? runnel_json_ref (json)
                           : runnel_json_load (path, error);
  if (tokenizer == NULL
      || !load_if_there (folder, "tokenizer_config.json", &config, error)
      || !load_if_there (folder, "generation_config.json", &generation, error)
      || !load_template (folder, &chat_template, error))
    return NULL;
  files.tokenizer = tokenizer;
  files.config = config;
  files.generation = generation;
  files.chat_template = chat_template;
  files.n_vocab = n_vocab;
  return runnel_tokenizer_new_from_files (&files, error);
}

RunnelTokenizer *
runnel_tokenizer_new_from_folder (const char *folder, guint n_vocab,
                                  GError **error)
{
  return new_from_folder (NULL, folder, n_vocab, error);
}

static RunnelTokenizer *
new_from_mnn (const RunnelMnnPackage *package, const char *architecture,
              guint n_vocab, GError **error)
{
  RunnelMtokContext context = {
    architecture, runnel_mnn_package_jinja (package, "chat_template"),
    runnel_mnn_package_jinja (package, "bos"),
    runnel_mnn_package_jinja (package, "eos"), n_vocab,
  };
  g_autoptr (RunnelMapping) file = runnel_mapping_open (
      runnel_mnn_package_tokenizer_path (package), RUNNEL_LOAD_MODE_MAP, error);

  return file != NULL ? runnel_tokenizer_new_from_mtok (file, &context, error)
                      : NULL;
}

gboolean
runnel_tokenizer_is_in_checkpoint (RunnelCheckpoint *from)
{
  const RunnelGguf *gguf = runnel_checkpoint_gguf (from);
  const char *folder = runnel_checkpoint_folder (from);
  g_autofree char *path = NULL;

  if (gguf != NULL)
    return runnel_gguf_has (gguf, "tokenizer.ggml.model");
  if (folder == NULL)
    return TRUE;
  path = g_build_filename (folder, "tokenizer.json", NULL);
  return g_file_test (path, G_FILE_TEST_EXISTS);
}

/* A GGUF file has a row for every id, and no other rows; a folder may leave
 * the last ids of the model without a token. */
RunnelTokenizer *
runnel_tokenizer_new_from_checkpoint (RunnelCheckpoint *from, GError **error)
{
  guint n_vocab = runnel_checkpoint_hyperparameters (from)->n_vocab;
  const RunnelGguf *gguf = runnel_checkpoint_gguf (from);
  const RunnelMnnPackage *mnn = runnel_checkpoint_mnn (from);
  g_autoptr (RunnelTokenizer) self = NULL;

  if (mnn != NULL)
    return new_from_mnn (mnn,
                         runnel_checkpoint_hyperparameters (from)->architecture,
                         n_vocab, error);
  if (gguf == NULL)
    return runnel_tokenizer_new_from_folder (runnel_checkpoint_folder (from),
                                             n_vocab, error);
  self = runnel_tokenizer_new_from_gguf (gguf, error);
  if (self == NULL)
    return NULL;
  if (runnel_tokenizer_get_n_tokens (self) != n_vocab) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
                 "%s: the tokenizer has %u tokens, but token_embd.weight has "
                 "%u rows", runnel_checkpoint_path (from),
                 runnel_tokenizer_get_n_tokens (self), n_vocab);
    return NULL;
  }
  return g_steal_pointer (&self);
}

static RunnelTokenizer *
new_from_mapping (RunnelMapping *mapping, const char *path, GError **error)
{
  const char *text = (const char *) runnel_mapping_data (mapping);
  gsize size = runnel_mapping_size (mapping);
  g_autofree char *name = g_path_get_basename (path);
  g_autofree char *folder = g_path_get_dirname (path);
  g_autoptr (RunnelJson) json = NULL;
  RunnelTokenizerFiles files = { NULL };

  if (size >= 4 && memcmp (text, "GGUF", 4) == 0) {
    g_autoptr (RunnelGguf) gguf = runnel_gguf_new (mapping, error);

    return gguf != NULL ? runnel_tokenizer_new_from_gguf (gguf, error) : NULL;
  }
  if (runnel_tokenizer_is_mtok ((const guint8 *) text, size))
    return runnel_tokenizer_new_from_mtok (mapping,
                                           &(RunnelMtokContext) { NULL },
                                           error);
  if (!g_str_has_suffix (name, ".json")) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
                 "%s: is neither a GGUF file, nor a .json file, nor a "
                 "tokenizer of MNN's", path);
    return NULL;
  }
  json = runnel_json_parse (text, size, path, error);
  if (json == NULL)
    return NULL;
  /* Under its own name the file belongs to the others of its folder. */
  if (strcmp (name, "tokenizer.json") == 0)
    return new_from_folder (json, folder, 0, error);
  files.tokenizer = json;
  return runnel_tokenizer_new_from_files (&files, error);
}

/**
 * runnel_tokenizer_new_from_file:
 * @path: (type filename): a GGUF file, a tokenizer.json, a tokenizer.mtok, a
 *   Hugging Face folder, or an MNN package's folder; of a .safetensors file
 *   the folder it lies in
 * @error: return location
 *
 * Reads a tokenizer. Beside a file named `tokenizer.json` and in a folder,
 * `tokenizer_config.json`, `generation_config.json` and `chat_template.jinja`
 * are read as well if they are there; a JSON file of another name stands
 * alone.
 *
 * Fails with %RUNNEL_ERROR_UNSUPPORTED when the tokenizer is not byte-level
 * BPE with one of the known pre-tokenizers, and with %RUNNEL_ERROR_MALFORMED
 * and others when a file is broken.
 *
 * Returns: (transfer full): a tokenizer
 *
 * Since: 0.1
 */
RunnelTokenizer *
runnel_tokenizer_new_from_file (const char *path, GError **error)
{
  g_autoptr (RunnelMapping) mapping = NULL;

  g_return_val_if_fail (path != NULL, NULL);

  if (runnel_mnn_package_is_at (path)) {
    g_autoptr (RunnelCheckpoint) package =
        runnel_checkpoint_open (path, RUNNEL_LOAD_MODE_MAP, error);

    return package != NULL
        ? runnel_tokenizer_new_from_checkpoint (package, error) : NULL;
  }
  if (g_file_test (path, G_FILE_TEST_IS_DIR))
    return runnel_tokenizer_new_from_folder (path, 0, error);
  if (g_str_has_suffix (path, ".safetensors")) {
    g_autofree char *folder = g_path_get_dirname (path);

    return runnel_tokenizer_new_from_folder (folder, 0, error);
  }
  mapping = runnel_mapping_open (path, RUNNEL_LOAD_MODE_MAP, error);
  return mapping != NULL ? new_from_mapping (mapping, path, error) : NULL;
}
