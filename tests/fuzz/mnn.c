/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * One file of an MNN package whose others are good, by the input's first
 * byte: the graph, the weights, llm_config.json, the tokenizer. What opens is
 * read through.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <glib/gstdio.h>

#include "formats/checkpoint.h"
#include "text/tokenizer-mtok.h"
#include "tiny-mnn.h"
#include "tiny-model.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

#define N_MODELS 2

static const char *const names[] = {
  "llm.mnn", "llm.mnn.weight", "llm_config.json", "tokenizer.mtok",
};

/* One model has all of it in place, the other is fused, with an embedding of
 * its own and a tokenizer of lines. */
static struct {
  char *folder;
  char *paths[G_N_ELEMENTS (names)];
  GBytes *files[G_N_ELEMENTS (names)];
} packages[N_MODELS];

static void
remove_packages (void)
{
  for (guint m = 0; m < N_MODELS; m++)
    tiny_mnn_remove (packages[m].folder);
}

static void
make_packages (void)
{
  if (packages[0].folder != NULL)
    return;
  for (guint m = 0; m < N_MODELS; m++) {
    TinyModel model = TINY_MODEL_DEFAULT;
    TinyMnn how = { .fused = m == 1, .float_scales = m == 1, .list = m == 0,
      .text = m == 1 };
    g_autofree char *gguf = NULL;

    model.architecture = m == 0 ? "qwen3" : "qwen2";
    model.type = m == 0 ? RUNNEL_TENSOR_INT4_32_CENTRED
        : RUNNEL_TENSOR_INT8_32;
    model.tied = m == 0;
    model.n_layers = 1;
    gguf = tiny_model_write (&model);
    packages[m].folder = tiny_mnn_write (gguf, gguf, &how);
    g_remove (gguf);
    for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
      char *content;
      gsize size;

      packages[m].paths[i] = g_build_filename (packages[m].folder,
          i == 3 && how.text ? "tokenizer.txt" : names[i], NULL);
      g_assert_true (g_file_get_contents (packages[m].paths[i], &content,
          &size, NULL));
      packages[m].files[i] = g_bytes_new_take (content, size);
    }
  }
  atexit (remove_packages);
}

static void
read_through (const char *folder, RunnelLoadMode mode)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelCheckpoint) checkpoint
      = runnel_checkpoint_open (folder, mode, &error);

  g_assert_true ((checkpoint == NULL) == (error != NULL));
  for (gsize i = 0; checkpoint != NULL
      && i < runnel_checkpoint_n_tensors (checkpoint); i++) {
    const RunnelTensor *tensor = runnel_checkpoint_nth_tensor (checkpoint, i);
    g_autofree float *values = g_new (float, tensor->dims[0]);

    for (guint64 row = 0; row < runnel_tensor_n_rows (tensor); row++)
      runnel_tensor_type_dequantize_row (tensor->type,
          runnel_tensor_data (tensor), tensor->dims[0], row, values);
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  guint which, m;
  gsize good;
  const char *whole;

  make_packages ();
  if (size == 0)
    return 0;
  which = data[0] % G_N_ELEMENTS (names);
  m = data[0] / G_N_ELEMENTS (names) % N_MODELS;
  if (which == 3) {
    g_autoptr (GBytes) bytes = g_bytes_new (data + 1, size - 1);
    g_autoptr (RunnelMapping) mapping
        = runnel_mapping_new_from_bytes (bytes, "fuzz");
    RunnelMtokContext context = { .architecture = "qwen2" };
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelTokenizer) tokenizer
        = runnel_tokenizer_new_from_mtok (mapping, &context, &error);

    g_assert_true ((tokenizer == NULL) == (error != NULL));
    return 0;
  }
  g_assert_true (g_file_set_contents_full (packages[m].paths[which],
      (const char *) data + 1, size - 1, G_FILE_SET_CONTENTS_NONE, 0600,
      NULL));
  read_through (packages[m].folder, data[0] / 8 % 2);
  whole = g_bytes_get_data (packages[m].files[which], &good);
  g_assert_true (g_file_set_contents_full (packages[m].paths[which], whole,
      good, G_FILE_SET_CONTENTS_NONE, 0600, NULL));
  return 0;
}

const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  static const char ranks[] = "\003430 1\n1 1 0\n4 4\n5\nYQ==\nYg==\nYWI=\n"
      "YWJhYg==\nPHxlbmR8Pg==\n";
  static GByteArray *seed;
  guint m = i / G_N_ELEMENTS (names), which = i % G_N_ELEMENTS (names);
  guint8 first = which + G_N_ELEMENTS (names) * m;

  make_packages ();
  if (i == N_MODELS * G_N_ELEMENTS (names)) {
    *size = strlen (ranks);
    return (const uint8_t *) ranks;
  }
  if (m >= N_MODELS)
    return NULL;
  if (seed == NULL)
    seed = g_byte_array_new ();
  g_byte_array_set_size (seed, 0);
  g_byte_array_append (seed, &first, 1);
  g_byte_array_append (seed, g_bytes_get_data (packages[m].files[which], NULL),
      g_bytes_get_size (packages[m].files[which]));
  *size = seed->len;
  return seed->data;
}
