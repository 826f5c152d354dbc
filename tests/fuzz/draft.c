/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What a file says of a DFlash draft: the header of a GGUF file before good
 * weights, when the input begins with 'G', or else a config.json beside good
 * tensors, those of version 1 if it begins with a blank. A draft that is
 * accepted guesses a block for a tiny model, or is refused by that.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <glib/gstdio.h>

#include "model/dflash.h"
#include "model/engine-private.h"
#include "model/model-private.h"
#include "tiny-draft.h"
#include "tiny-model.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

#define N_VERSIONS 2

static RunnelEngine *target;
static char *gguf_path;
static char *folders[N_VERSIONS];
static GByteArray *seeds[2 * N_VERSIONS];
static GBytes *weights;        /* what follows the header in the file */

static void
remove_files (void)
{
  g_remove (gguf_path);
  for (guint i = 0; i < N_VERSIONS; i++)
    tiny_draft_delete (folders[i]);
  for (guint i = 0; i < G_N_ELEMENTS (seeds); i++)
    g_byte_array_unref (seeds[i]);
  g_bytes_unref (weights);
  g_object_unref (target);
}

static void
make_target (void)
{
  const TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autofree char *path = tiny_model_write (&tiny);
  g_autoptr (RunnelModel) model = runnel_model_open (path,
      RUNNEL_LOAD_MODE_READ, NULL);
  g_autoptr (RunnelBackend) backend = runnel_backend_get ("cpu", 1, NULL,
      NULL);

  g_remove (path);
  target = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, NULL);
  g_assert_nonnull (target);
}

/* The seed is its header; the weights of the last one serve for all. */
static void
add_gguf (const TinyDraft *draft, GByteArray *seed)
{
  g_autofree char *path = tiny_draft_write (draft);
  g_autoptr (RunnelGguf) gguf = runnel_gguf_open (path, RUNNEL_LOAD_MODE_READ,
      NULL);
  const RunnelMapping *mapping = runnel_gguf_mapping (gguf);
  const gsize header = runnel_gguf_data_offset (gguf);
  const guint8 *data = runnel_mapping_data (mapping);

  g_byte_array_append (seed, data, header);
  g_clear_pointer (&weights, g_bytes_unref);
  weights = g_bytes_new (data + header,
      runnel_mapping_size (mapping) - header);
  g_remove (path);
}

static void
add_folder (const TinyDraft *draft, guint i, GByteArray *seed)
{
  g_autofree char *path = NULL;
  g_autofree char *config = NULL;
  gsize size;

  folders[i] = tiny_draft_write_folder (draft);
  path = g_build_filename (folders[i], "config.json", NULL);
  g_assert_true (g_file_get_contents (path, &config, &size, NULL));
  if (i == 0)
    g_byte_array_append (seed, (const guint8 *) " ", 1);
  g_byte_array_append (seed, (const guint8 *) config, size);
}

static void
make_files (void)
{
  TinyDraft draft = { .block_size = 4, .tap = 1, .seed = 1, .window = 9 };

  if (target != NULL)
    return;
  make_target ();
  draft.n_embd = runnel_engine_get_shape (target)->n_embd;
  draft.n_vocab = runnel_engine_get_shape (target)->n_vocab;
  for (guint i = 0; i < N_VERSIONS; i++) {
    draft.version = i + 1;
    seeds[i] = g_byte_array_new ();
    seeds[N_VERSIONS + i] = g_byte_array_new ();
    add_gguf (&draft, seeds[i]);
    add_folder (&draft, i, seeds[N_VERSIONS + i]);
  }
  gguf_path = g_build_filename (folders[0], "draft.gguf", NULL);
  atexit (remove_files);
}

static void
guess (RunnelModel *draft)
{
  const RunnelDraftHyperparameters *hp = &runnel_checkpoint_hyperparameters (
      runnel_model_get_checkpoint (draft))->draft;
  const guint n_embd = runnel_model_get_n_embd (draft);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelDflash) dflash = runnel_dflash_new (draft, target, &error);
  g_autofree float *taps = g_new0 (float, hp->n_taps * n_embd);
  const gint32 token = 1;
  RunnelHistory context;
  RunnelDflashBlock block;

  g_assert_true ((dflash == NULL) == (error != NULL));
  if (dflash == NULL)
    return;
  runnel_dflash_init_context (dflash, &context);
  runnel_dflash_block_init (&block, dflash);
  if (runnel_dflash_commit (dflash, &context, &token, 1, taps, NULL)
      && runnel_dflash_guess (dflash, &context, token, hp->block_size - 1,
          &block, NULL, 0, NULL, NULL))
    for (guint i = 0; i < (hp->block_size - 1) * block.n_candidates; i++)
      g_assert_cmpuint (block.candidates[i], <,
          runnel_model_get_n_vocab (draft));
  runnel_dflash_block_clear (&block);
  runnel_history_clear (&context);
}

static void
check_numbers (RunnelModel *model)
{
  const RunnelHyperparameters *hp = runnel_checkpoint_hyperparameters (
      runnel_model_get_checkpoint (model));

  g_assert_cmpuint (hp->draft.block_size, <=, 16);
  g_assert_cmpint (hp->draft.mask_token, >=, 0);
  g_assert_cmpuint (hp->draft.mask_token, <, hp->n_vocab);
  g_assert_cmpuint (hp->draft.n_taps, >, 0);
  g_assert_cmpuint (hp->draft.n_taps, <=, RUNNEL_MAX_TAPS);
  g_assert_cmpuint (hp->draft.selector_top_k, <=, hp->n_vocab);
  if (hp->draft.conv_taps > 0)
    g_assert_cmpuint (hp->n_embd % hp->draft.conv_group, ==, 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  const gboolean gguf = size > 0 && data[0] == 'G';
  const char *folder;
  g_autofree char *path = NULL;
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (GError) error = NULL;
  FILE *file;

  make_files ();
  folder = folders[size > 0 && data[0] == ' ' ? 0 : 1];
  path = gguf ? g_strdup (gguf_path)
      : g_build_filename (folder, "config.json", NULL);
  /* A new file each time: file systems write a truncated one to the disk. */
  g_remove (path);
  file = g_fopen (path, "wb");
  g_assert_nonnull (file);
  g_assert_cmpuint (fwrite (data, 1, size, file), ==, size);
  if (gguf)
    fwrite (g_bytes_get_data (weights, NULL), 1, g_bytes_get_size (weights),
        file);
  fclose (file);
  model = runnel_model_open (gguf ? path : folder, RUNNEL_LOAD_MODE_READ,
      &error);
  g_assert_true ((model == NULL) == (error != NULL));
  if (model == NULL || runnel_checkpoint_hyperparameters (
          runnel_model_get_checkpoint (model))->draft.block_size == 0)
    return 0;
  check_numbers (model);
  guess (model);
  return 0;
}

const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  make_files ();
  if (i >= G_N_ELEMENTS (seeds))
    return NULL;
  *size = seeds[i]->len;
  return seeds[i]->data;
}
