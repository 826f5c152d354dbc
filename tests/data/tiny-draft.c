/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tiny-draft.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "model/architecture.h"

#define N_LAYERS 2
#define CONTEXT_LENGTH 512
#define NORM_EPSILON 1e-5

static const char *const folder_files[] = { "config.json",
  "model.safetensors" };

static RunnelHyperparameters
get_hyperparameters (const TinyDraft *draft)
{
  RunnelHyperparameters hp = {
    .n_layers = N_LAYERS, .n_embd = draft->n_embd, .n_ff = 96, .n_heads = 4,
    .n_kv_heads = 2, .head_dim = 16, .n_vocab = draft->n_vocab,
    .rope_dimensions = 16, .tied = TRUE,
    .draft = { .block_size = draft->block_size, .n_taps = 1,
      .window = draft->window },
  };

  if (draft->version == 2) {
    hp.draft.conv_taps = 2;
    hp.draft.conv_group = 16;
    hp.draft.selector_rank = 8;
    hp.draft.selector_top_k = 6;
  }
  return hp;
}

/* ---- Weights ------------------------------------------------------------- */

typedef struct {
  char *name;
  RunnelPart part;
  guint layer;
  guint64 dims[2];
  GBytes *bytes;             /* floats */
} Weight;

static void
clear_weight (gpointer data)
{
  Weight *weight = data;

  g_free (weight->name);
  g_bytes_unref (weight->bytes);
}

static void
add_weight (GArray *weights, const RunnelHyperparameters *hp, RunnelPart part,
            guint layer, GRand *rand)
{
  Weight weight = { runnel_part_dup_name (part, layer), part, layer };
  gsize n;
  float *values;

  runnel_part_get_dims (part, hp, weight.dims);
  n = weight.dims[0] * weight.dims[1];
  values = g_new (float, n);
  for (gsize i = 0; i < n; i++)
    values[i] = (runnel_part_is_vector (part) ? 1 : 0)
        + g_rand_double_range (rand, -0.3, 0.3);
  weight.bytes = g_bytes_new_take (values, n * sizeof *values);
  g_array_append_val (weights, weight);
}

/* The same ones for the same draft, whatever the format. */
static GArray *
make_weights (const TinyDraft *draft, const RunnelHyperparameters *hp)
{
  GArray *weights = g_array_new (FALSE, FALSE, sizeof (Weight));
  g_autoptr (GRand) rand = g_rand_new_with_seed (draft->seed);

  g_array_set_clear_func (weights, clear_weight);
  for (guint part = 0; part < RUNNEL_N_PARTS; part++)
    for (guint layer = 0; layer < (part < RUNNEL_N_LAYER_PARTS ? N_LAYERS : 1)
        && runnel_architecture_needs (&runnel_draft_architecture, hp, part);
        layer++)
      add_weight (weights, hp, part, layer, rand);
  return weights;
}

/* ---- GGUF ---------------------------------------------------------------- */

static void
add_tokens (RunnelGgufWriter *writer, const TinyDraft *draft)
{
  g_autoptr (GPtrArray) tokens = g_ptr_array_new_with_free_func (g_free);

  if (draft->tokenizer == NULL) {
    for (guint i = 0; i < draft->n_vocab; i++)
      g_ptr_array_add (tokens, g_strdup_printf ("t%u", i));
    runnel_gguf_writer_add_strings (writer, "tokenizer.ggml.tokens",
        (const char *const *) tokens->pdata, NULL, tokens->len);
    return;
  }
  for (gsize i = 0; i < runnel_gguf_n_keys (draft->tokenizer); i++) {
    const char *key = runnel_gguf_key (draft->tokenizer, i);
    RunnelGgufType type;
    gsize size;
    const guint8 *value;

    if (!g_str_has_prefix (key, "tokenizer.")
        || (draft->pretokenizer != NULL
            && g_str_equal (key, "tokenizer.ggml.pre")))
      continue;
    value = runnel_gguf_raw_value (draft->tokenizer, key, &type, &size);
    runnel_gguf_writer_add_raw (writer, key, type, value, size);
  }
  if (draft->pretokenizer != NULL)
    runnel_gguf_writer_add_string (writer, "tokenizer.ggml.pre",
        draft->pretokenizer, -1);
}

static void
add_keys (RunnelGgufWriter *writer, const TinyDraft *draft,
          const RunnelHyperparameters *hp)
{
  const struct { const char *key; guint value; } numbers[] = {
    { "dflash.block_count", hp->n_layers },
    { "dflash.context_length", CONTEXT_LENGTH },
    { "dflash.embedding_length", hp->n_embd },
    { "dflash.feed_forward_length", hp->n_ff },
    { "dflash.attention.head_count", hp->n_heads },
    { "dflash.attention.head_count_kv", hp->n_kv_heads },
    { "dflash.attention.key_length", hp->head_dim },
    { "dflash.attention.value_length", hp->head_dim },
    { "dflash.attention.sliding_window", hp->draft.window },
    { "dflash.block_size", hp->draft.block_size },
    { "dflash.conv_kernel_size", hp->draft.conv_taps },
    { "dflash.conv_group_size", hp->draft.conv_group },
    { "dflash.selector_rank", hp->draft.selector_rank },
    { "dflash.selector_top_k", hp->draft.selector_top_k },
    { "tokenizer.ggml.mask_token_id", draft->n_vocab - 1 },
  };
  const gint32 layer = draft->tap + 1;   /* as llama.cpp counts */
  const guint8 sliding[N_LAYERS] = { TRUE, draft->all_slide };

  runnel_gguf_writer_add_string (writer, "general.architecture", "dflash", -1);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (numbers[i].value > 0)
      runnel_gguf_writer_add_uint32 (writer, numbers[i].key,
          numbers[i].value);
  if (draft->window > 0)
    runnel_gguf_writer_add_booleans (writer,
        "dflash.attention.sliding_window_pattern", sliding, N_LAYERS);
  runnel_gguf_writer_add_float64 (writer,
      "dflash.attention.layer_norm_rms_epsilon", NORM_EPSILON);
  runnel_gguf_writer_add_boolean (writer, "dflash.attention.causal", FALSE);
  runnel_gguf_writer_add_int32s (writer, "dflash.target_layers", &layer, 1);
  add_tokens (writer, draft);
}

char *
tiny_draft_write (const TinyDraft *draft)
{
  const RunnelHyperparameters hp = get_hyperparameters (draft);
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autoptr (GArray) weights = make_weights (draft, &hp);
  g_autoptr (GError) error = NULL;
  char *path = NULL;
  int fd = g_file_open_tmp ("runnel-draft-XXXXXX.gguf", &path, &error);

  g_assert_no_error (error);
  close (fd);
  add_keys (writer, draft, &hp);
  for (guint i = 0; i < weights->len; i++) {
    const Weight *weight = &g_array_index (weights, Weight, i);

    runnel_gguf_writer_add_tensor (writer, weight->name, RUNNEL_TENSOR_F32,
        weight->dims, runnel_part_is_vector (weight->part) ? 1 : 2,
        weight->bytes);
  }
  runnel_gguf_writer_save (writer, path, &error);
  g_assert_no_error (error);
  return path;
}

/* ---- Hugging Face -------------------------------------------------------- */

static char *
make_config (const TinyDraft *draft, const RunnelHyperparameters *hp)
{
  g_autofree char *window = draft->window == 0 ? g_strdup ("")
      : g_strdup_printf ("\"use_sliding_window\": true, "
          "\"sliding_window\": %u, \"layer_types\": [\"sliding_attention\", "
          "\"%s_attention\"], ", draft->window,
          draft->all_slide ? "sliding" : "full");
  g_autofree char *selector = draft->version == 1 ? g_strdup ("")
      : g_strdup_printf (", \"conv_kernel_size\": %u, \"conv_group_size\": %u, "
          "\"selector_rank\": %u, \"selector_top_k\": %u",
          hp->draft.conv_taps, hp->draft.conv_group, hp->draft.selector_rank,
          hp->draft.selector_top_k);

  return g_strdup_printf ("{\"architectures\": [\"DFlash%sDraftModel\"], "
      "\"model_type\": \"qwen3\", \"vocab_size\": %u, \"hidden_size\": %u, "
      "\"intermediate_size\": %u, \"num_hidden_layers\": %u, "
      "\"num_attention_heads\": %u, \"num_key_value_heads\": %u, "
      "\"head_dim\": %u, \"max_position_embeddings\": %u, "
      "\"rms_norm_eps\": %g, \"is_causal\": false, %s\"dflash_config\": "
      "{\"block_size\": %u, \"mask_token_id\": %u, \"target_layer_ids\": [%u]"
      "%s}}", draft->version == 2 ? "2" : "", hp->n_vocab, hp->n_embd,
      hp->n_ff, hp->n_layers, hp->n_heads, hp->n_kv_heads, hp->head_dim,
      CONTEXT_LENGTH, NORM_EPSILON, window, hp->draft.block_size,
      hp->n_vocab - 1, draft->tap, selector);
}

/* Its shape, rows first; base kernels have an axis for the sides. */
static char *
make_shape (const Weight *weight)
{
  if (runnel_part_is_vector (weight->part))
    return g_strdup_printf ("%" G_GUINT64_FORMAT, weight->dims[0]);
  if (runnel_part_is_elementwise (weight->part))
    return g_strdup_printf ("2, %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT,
        weight->dims[1] / 2, weight->dims[0]);
  return g_strdup_printf ("%" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT,
      weight->dims[1], weight->dims[0]);
}

static GByteArray *
make_safetensors (const GArray *weights)
{
  g_autoptr (GString) header = g_string_new ("{");
  GByteArray *file = g_byte_array_new ();
  guint64 length;
  gsize at = 0;

  for (guint i = 0; i < weights->len; i++) {
    const Weight *weight = &g_array_index (weights, Weight, i);
    const gsize size = g_bytes_get_size (weight->bytes);
    g_autofree char *name
        = runnel_part_dup_hf_draft_name (weight->part, weight->layer);
    g_autofree char *shape = make_shape (weight);

    g_string_append_printf (header, "%s\"%s\": {\"dtype\": \"F32\", "
        "\"shape\": [%s], \"data_offsets\": [%" G_GSIZE_FORMAT ", %"
        G_GSIZE_FORMAT "]}", i > 0 ? ", " : "", name, shape, at, at + size);
    at += size;
  }
  g_string_append_c (header, '}');
  while (header->len % 8 != 0)
    g_string_append_c (header, ' ');
  length = GUINT64_TO_LE ((guint64) header->len);
  g_byte_array_append (file, (const guint8 *) &length, sizeof length);
  g_byte_array_append (file, (const guint8 *) header->str, header->len);
  for (guint i = 0; i < weights->len; i++) {
    GBytes *bytes = g_array_index (weights, Weight, i).bytes;

    g_byte_array_append (file, g_bytes_get_data (bytes, NULL),
        g_bytes_get_size (bytes));
  }
  return file;
}

static void
write_file (const char *folder, const char *name, const void *data, gsize size)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_autoptr (GError) error = NULL;

  g_file_set_contents (path, data, size, &error);
  g_assert_no_error (error);
}

char *
tiny_draft_write_folder (const TinyDraft *draft)
{
  const RunnelHyperparameters hp = get_hyperparameters (draft);
  g_autoptr (GArray) weights = make_weights (draft, &hp);
  g_autoptr (GByteArray) file = make_safetensors (weights);
  g_autofree char *config = make_config (draft, &hp);
  g_autoptr (GError) error = NULL;
  char *folder = g_dir_make_tmp ("runnel-draft-XXXXXX", &error);

  g_assert_no_error (error);
  write_file (folder, folder_files[0], config, strlen (config));
  write_file (folder, folder_files[1], file->data, file->len);
  return folder;
}

void
tiny_draft_delete (const char *path)
{
  for (guint i = 0; i < G_N_ELEMENTS (folder_files); i++) {
    g_autofree char *file = g_build_filename (path, folder_files[i], NULL);

    g_unlink (file);
  }
  g_assert_cmpint (g_remove (path), ==, 0);
}
