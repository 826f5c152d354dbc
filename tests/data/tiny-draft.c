/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tiny-draft.h"

#include <glib/gstdio.h>
#include <unistd.h>

#include "formats/gguf.h"
#include "model/architecture.h"

#define N_LAYERS 2

static RunnelHyperparameters
get_hyperparameters (const TinyDraft *draft)
{
  RunnelHyperparameters hp = {
    .n_layers = N_LAYERS, .n_embd = draft->n_embd, .n_ff = 96, .n_heads = 4,
    .n_kv_heads = 2, .head_dim = 16, .n_vocab = draft->n_vocab,
    .rope_dimensions = 16, .tied = TRUE,
    .draft = { .block_size = draft->block_size, .n_taps = 1 },
  };

  if (draft->version == 2) {
    hp.draft.conv_taps = 2;
    hp.draft.conv_group = 16;
    hp.draft.selector_rank = 8;
    hp.draft.selector_top_k = 6;
  }
  return hp;
}

static void
add_keys (RunnelGgufWriter *writer, const TinyDraft *draft,
          const RunnelHyperparameters *hp)
{
  const struct { const char *key; guint value; } numbers[] = {
    { "dflash.block_count", hp->n_layers },
    { "dflash.context_length", 512 },
    { "dflash.embedding_length", hp->n_embd },
    { "dflash.feed_forward_length", hp->n_ff },
    { "dflash.attention.head_count", hp->n_heads },
    { "dflash.attention.head_count_kv", hp->n_kv_heads },
    { "dflash.attention.key_length", hp->head_dim },
    { "dflash.attention.value_length", hp->head_dim },
    { "dflash.block_size", hp->draft.block_size },
    { "dflash.conv_kernel_size", hp->draft.conv_taps },
    { "dflash.conv_group_size", hp->draft.conv_group },
    { "dflash.selector_rank", hp->draft.selector_rank },
    { "dflash.selector_top_k", hp->draft.selector_top_k },
    { "tokenizer.ggml.mask_token_id", draft->n_vocab - 1 },
  };
  const gint32 layer = draft->tap + 1;   /* as llama.cpp counts */
  g_autoptr (GPtrArray) tokens = g_ptr_array_new_with_free_func (g_free);

  runnel_gguf_writer_add_string (writer, "general.architecture", "dflash", -1);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (numbers[i].value > 0)
      runnel_gguf_writer_add_uint32 (writer, numbers[i].key,
          numbers[i].value);
  runnel_gguf_writer_add_float32 (writer,
      "dflash.attention.layer_norm_rms_epsilon", 1e-5f);
  runnel_gguf_writer_add_boolean (writer, "dflash.attention.causal", FALSE);
  runnel_gguf_writer_add_int32s (writer, "dflash.target_layers", &layer, 1);
  for (guint i = 0; i < draft->n_vocab; i++)
    g_ptr_array_add (tokens, g_strdup_printf ("t%u", i));
  runnel_gguf_writer_add_strings (writer, "tokenizer.ggml.tokens",
      (const char *const *) tokens->pdata, NULL, tokens->len);
}

static void
add_part (RunnelGgufWriter *writer, const RunnelHyperparameters *hp,
          RunnelPart part, guint layer, GRand *rand)
{
  g_autofree char *name = runnel_part_dup_name (part, layer);
  g_autoptr (GBytes) bytes = NULL;
  const gboolean vector = runnel_part_is_vector (part);
  guint64 dims[2];
  gsize n;
  float *values;

  runnel_part_get_dims (part, hp, dims);
  n = dims[0] * dims[1];
  values = g_new (float, n);
  for (gsize i = 0; i < n; i++)
    values[i] = (vector ? 1 : 0) + g_rand_double_range (rand, -0.3, 0.3);
  bytes = g_bytes_new_take (values, n * sizeof *values);
  runnel_gguf_writer_add_tensor (writer, name, RUNNEL_TENSOR_F32, dims,
      vector ? 1 : 2, bytes);
}

char *
tiny_draft_write (const TinyDraft *draft)
{
  const RunnelHyperparameters hp = get_hyperparameters (draft);
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autoptr (GRand) rand = g_rand_new_with_seed (draft->seed);
  g_autoptr (GError) error = NULL;
  char *path = NULL;
  int fd = g_file_open_tmp ("runnel-draft-XXXXXX.gguf", &path, &error);

  g_assert_no_error (error);
  close (fd);
  add_keys (writer, draft, &hp);
  for (guint part = 0; part < RUNNEL_N_PARTS; part++)
    for (guint layer = 0; layer < (part < RUNNEL_N_LAYER_PARTS ? N_LAYERS : 1)
        && runnel_architecture_needs (&runnel_draft_architecture, &hp, part);
        layer++)
      add_part (writer, &hp, part, layer, rand);
  runnel_gguf_writer_save (writer, path, &error);
  g_assert_no_error (error);
  return path;
}
