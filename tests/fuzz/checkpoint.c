/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What a file says of the model: a GGUF file, or, when the input does not
 * begin with 'G', a config.json beside good tensors. Sizes that are accepted
 * must be those of the tensors.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <glib/gstdio.h>

#include "formats/checkpoint.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

static const struct { const char *gguf, *hf; guint columns, rows; }
tensors[] = {
  { "token_embd.weight", "model.embed_tokens.weight", 8, 3 },
  { "output_norm.weight", "model.norm.weight", 8, 1 },
  { "blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight", 8, 1 },
  { "blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight", 8, 8 },
  { "blk.0.attn_k.weight", "model.layers.0.self_attn.k_proj.weight", 8, 4 },
  { "blk.0.attn_v.weight", "model.layers.0.self_attn.v_proj.weight", 8, 4 },
  { "blk.0.attn_output.weight", "model.layers.0.self_attn.o_proj.weight", 8,
    8 },
  { "blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight",
    8, 1 },
  { "blk.0.ffn_gate.weight", "model.layers.0.mlp.gate_proj.weight", 8, 6 },
  { "blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj.weight", 8, 6 },
  { "blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight", 6, 8 },
};

static const char *const configs[] = {
  "{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"hidden_size\":8,"
  "\"intermediate_size\":6,\"num_attention_heads\":2,\"head_dim\":4,"
  "\"num_key_value_heads\":1,\"vocab_size\":3,\"rms_norm_eps\":1e-5,"
  "\"max_position_embeddings\":64,\"tie_word_embeddings\":true,"
  "\"rope_theta\":1e4,\"hidden_act\":\"silu\",\"sliding_window\":null,"
  "\"layer_types\":[\"full_attention\"],\"rope_scaling\":{\"type\":"
  "\"linear\",\"factor\":2.0}}",
  "{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"hidden_size\":8,"
  "\"intermediate_size\":6,\"num_attention_heads\":2,\"vocab_size\":3,"
  "\"num_key_value_heads\":1,\"max_position_embeddings\":64,"
  "\"tie_word_embeddings\":true,\"architectures\":[\"LlamaForCausalLM\"],"
  "\"rope_parameters\":{\"rope_type\":\"llama3\",\"rope_theta\":500000,"
  "\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
  "\"original_max_position_embeddings\":32}}",
};

static char *folder, *gguf_path, *config_path, *safetensors_path;

static void
remove_files (void)
{
  g_remove (gguf_path);
  g_remove (config_path);
  g_remove (safetensors_path);
  g_rmdir (folder);
}

static void
write_gguf (void)
{
  static const char *const tokens[] = { "a", "b", "c" };
  static const struct { const char *key; guint32 value; } sizes[] = {
    { "llama.block_count", 1 }, { "llama.context_length", 64 },
    { "llama.embedding_length", 8 }, { "llama.feed_forward_length", 6 },
    { "llama.attention.head_count", 2 }, { "llama.vocab_size", 3 },
    { "llama.attention.head_count_kv", 1 },
    { "llama.attention.key_length", 4 }, { "llama.rope.dimension_count", 4 },
    { "llama.rope.scaling.original_context_length", 32 },
  };
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();

  runnel_gguf_writer_add_string (writer, "general.architecture", "llama", -1);
  for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++)
    runnel_gguf_writer_add_uint32 (writer, sizes[i].key, sizes[i].value);
  runnel_gguf_writer_add_float32 (writer,
      "llama.attention.layer_norm_rms_epsilon", 1e-5f);
  runnel_gguf_writer_add_float32 (writer, "llama.rope.freq_base", 1e4f);
  runnel_gguf_writer_add_float32 (writer, "llama.rope.scaling.factor", 2);
  runnel_gguf_writer_add_string (writer, "llama.rope.scaling.type", "yarn",
      -1);
  runnel_gguf_writer_add_strings (writer, "tokenizer.ggml.tokens", tokens,
      NULL, 3);
  for (gsize i = 0; i < G_N_ELEMENTS (tensors); i++) {
    const guint64 dims[] = { tensors[i].columns, tensors[i].rows };
    gsize n = 4 * dims[0] * dims[1];
    g_autoptr (GBytes) data = g_bytes_new_take (g_malloc0 (n), n);

    runnel_gguf_writer_add_tensor (writer, tensors[i].gguf, RUNNEL_TENSOR_F32,
        dims, tensors[i].rows > 1 ? 2 : 1, data);
  }
  g_assert_true (runnel_gguf_writer_save (writer, gguf_path, NULL));
}

static void
write_safetensors (void)
{
  g_autoptr (GString) file = g_string_new ("12345678{");
  gsize at = 0;
  guint64 length;

  for (gsize i = 0; i < G_N_ELEMENTS (tensors); i++) {
    gsize n = 4 * tensors[i].columns * tensors[i].rows;

    g_string_append_printf (file, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%u",
        i > 0 ? "," : "", tensors[i].hf, tensors[i].rows > 1 ?
        tensors[i].rows : tensors[i].columns);
    if (tensors[i].rows > 1)
      g_string_append_printf (file, ",%u", tensors[i].columns);
    g_string_append_printf (file, "],\"data_offsets\":[%" G_GSIZE_FORMAT ",%"
        G_GSIZE_FORMAT "]}", at, at + n);
    at += n;
  }
  g_string_append_c (file, '}');
  while (file->len % 8 != 0)
    g_string_append_c (file, ' ');
  length = GUINT64_TO_LE ((guint64) file->len - 8);
  memcpy (file->str, &length, 8);
  g_string_set_size (file, file->len + at);
  memset (file->str + file->len - at, 0, at);
  g_assert_true (g_file_set_contents (safetensors_path, file->str, file->len,
          NULL));
}

static void
make_files (void)
{
  if (folder != NULL)
    return;
  folder = g_dir_make_tmp ("runnel-fuzz-XXXXXX", NULL);
  g_assert_nonnull (folder);
  gguf_path = g_build_filename (folder, "model.gguf", NULL);
  config_path = g_build_filename (folder, "config.json", NULL);
  safetensors_path = g_build_filename (folder, "model.safetensors", NULL);
  atexit (remove_files);
  write_gguf ();
  write_safetensors ();
}

static void
check_sizes (RunnelCheckpoint *checkpoint)
{
  const RunnelHyperparameters *hp =
      runnel_checkpoint_hyperparameters (checkpoint);
  const RunnelTensor *query =
      runnel_checkpoint_tensor (checkpoint, "blk.0.attn_q.weight");
  const RunnelTensor *embedding =
      runnel_checkpoint_tensor (checkpoint, "token_embd.weight");

  g_assert_cmpuint (query->dims[0], ==, hp->n_embd);
  g_assert_cmpuint (query->dims[1], ==, hp->n_heads * hp->head_dim);
  g_assert_cmpuint (embedding->dims[1], ==, hp->n_vocab);
  g_assert_cmpuint (hp->n_heads % hp->n_kv_heads, ==, 0);
  g_assert_cmpuint (hp->rope_dimensions, <=, hp->head_dim);
  g_assert_cmpfloat (hp->rope_base, >, 0);
  g_assert_true (hp->rope_scaling == RUNNEL_ROPE_SCALING_NONE ||
      hp->rope_factor > 0);
  g_assert_cmpuint (strlen (runnel_checkpoint_content_id (checkpoint)), ==,
      64);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gboolean gguf = size > 0 && data[0] == 'G';
  g_autoptr (RunnelCheckpoint) checkpoint = NULL;
  g_autoptr (GError) error = NULL;
  FILE *file;

  make_files ();
  /* A new file each time: file systems write a truncated one to the disk. */
  g_remove (gguf ? gguf_path : config_path);
  file = g_fopen (gguf ? gguf_path : config_path, "wb");
  g_assert_nonnull (file);
  g_assert_cmpuint (fwrite (data, 1, size, file), ==, size);
  fclose (file);
  checkpoint = runnel_checkpoint_open (gguf ? gguf_path : folder,
      RUNNEL_LOAD_MODE_READ, &error);
  g_assert_true ((checkpoint == NULL) == (error != NULL));
  if (checkpoint != NULL)
    check_sizes (checkpoint);
  return 0;
}

const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  static char *gguf;
  static gsize gguf_size;

  make_files ();
  if (gguf == NULL)
    g_assert_true (g_file_get_contents (gguf_path, &gguf, &gguf_size, NULL));
  if (i > G_N_ELEMENTS (configs))
    return NULL;
  *size = i == 0 ? gguf_size : strlen (configs[i - 1]);
  return (const uint8_t *) (i == 0 ? gguf : configs[i - 1]);
}
