/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Models of one layer are written as GGUF and as Hugging Face folders, each
 * time with one thing changed.
 */
#include <math.h>
#include <string.h>
#include <glib/gstdio.h>

#include "error.h"
#include "formats/checkpoint.h"

/* Sizes of the models: heads of 4, so queries are 16 wide and keys 8. */
#define EMBD 12
#define FF 20
#define QUERY 16
#define KEY 8
#define HEAD 4
#define VOCAB 5

typedef struct {
  const char *gguf, *hf;
  guint columns, rows;      /* 0 rows: a vector */
  const char *only;         /* in these architectures */
} Tensor;

static const Tensor tensors[] = {
  { "token_embd.weight", "model.embed_tokens.weight", EMBD, VOCAB },
  { "output_norm.weight", "model.norm.weight", EMBD, 0 },
  { "output.weight", "lm_head.weight", EMBD, VOCAB, "qwen2" },
  { "blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight", EMBD },
  { "blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight", EMBD,
    QUERY },
  { "blk.0.attn_k.weight", "model.layers.0.self_attn.k_proj.weight", EMBD,
    KEY },
  { "blk.0.attn_v.weight", "model.layers.0.self_attn.v_proj.weight", EMBD,
    KEY },
  { "blk.0.attn_output.weight", "model.layers.0.self_attn.o_proj.weight",
    QUERY, EMBD },
  { "blk.0.attn_q.bias", "model.layers.0.self_attn.q_proj.bias", QUERY, 0,
    "qwen2" },
  { "blk.0.attn_k.bias", "model.layers.0.self_attn.k_proj.bias", KEY, 0,
    "qwen2" },
  { "blk.0.attn_v.bias", "model.layers.0.self_attn.v_proj.bias", KEY, 0,
    "qwen2" },
  { "blk.0.attn_q_norm.weight", "model.layers.0.self_attn.q_norm.weight",
    HEAD, 0, "qwen3" },
  { "blk.0.attn_k_norm.weight", "model.layers.0.self_attn.k_norm.weight",
    HEAD, 0, "qwen3" },
  { "blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight",
    EMBD },
  { "blk.0.ffn_gate.weight", "model.layers.0.mlp.gate_proj.weight", EMBD, FF },
  { "blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj.weight", EMBD, FF },
  { "blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight", FF, EMBD },
};

/* One change of a good model; what it must lead to. */
typedef struct {
  const char *architecture;
  const char *omit;         /* a key or tensor */
  const char *key;          /* replaced or added; GGUF without its prefix */
  char kind;                /* GGUF: u uint32, f float, s string, b bool, a */
  double number;
  const char *text;         /* a string; for JSON the whole value */
  const char *tensor;       /* replaced or added */
  guint columns, rows;
  float value;              /* of its elements */
  RunnelTensorType type;    /* of its elements: 0 is F32 */
  RunnelError code;
  const char *message;      /* NULL: it is good */
} Case;

typedef struct {
  char *folder, *path;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  fixture->folder = g_dir_make_tmp (NULL, NULL);
  fixture->path = g_build_filename (fixture->folder, "model.gguf", NULL);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GDir) dir = g_dir_open (fixture->folder, 0, NULL);
  const char *name;

  while ((name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (fixture->folder, name, NULL);

    g_remove (path);
  }
  g_rmdir (fixture->folder);
  g_free (fixture->path);
  g_free (fixture->folder);
}

static GBytes *
make_values (gsize n, float value)
{
  float *values = g_new (float, n);

  for (gsize i = 0; i < n; i++)
    values[i] = value;
  return g_bytes_new_take (values, n * sizeof *values);
}

static gboolean
has_tensor (const Case *changed, const Tensor *tensor, gboolean hf)
{
  const char *name = hf ? tensor->hf : tensor->gguf;

  return (tensor->only == NULL ||
      strcmp (tensor->only, changed->architecture) == 0) &&
      g_strcmp0 (changed->omit, name) != 0 &&
      g_strcmp0 (changed->tensor, name) != 0;
}

/* --- GGUF --- */

static void
put_key (RunnelGgufWriter *writer, const Case *changed, const char *key,
    char kind, double number, const char *text)
{
  static const char *const tokens[] = { "a", "b", "c", "d", "e", "f" };
  const gint32 two[] = { 1, 2 };
  g_autofree char *full = strchr (key, ':') != NULL ? g_strdup (key + 1) :
      g_strdup_printf ("%s.%s", changed->architecture, key);

  if (kind == 'u')
    runnel_gguf_writer_add_uint32 (writer, full, number);
  else if (kind == 'f')
    runnel_gguf_writer_add_float32 (writer, full, number);
  else if (kind == 'b')
    runnel_gguf_writer_add_boolean (writer, full, number != 0);
  else if (kind == 's')
    runnel_gguf_writer_add_string (writer, full, text, -1);
  else if (strcmp (full, "tokenizer.ggml.tokens") == 0)
    runnel_gguf_writer_add_strings (writer, full, tokens, NULL, number);
  else
    runnel_gguf_writer_add_int32s (writer, full, two, 2);
}

static void
put_gguf_tensor (RunnelGgufWriter *writer, const char *name, guint columns,
    guint rows, float value, RunnelTensorType type)
{
  const guint64 dims[] = { columns, rows };
  gsize n = (gsize) columns * MAX (rows, 1);
  const RunnelTensorTypeInfo *info = runnel_tensor_type_info (type);
  g_autoptr (GBytes) floats = make_values (n, value);
  g_autoptr (GBytes) bytes = g_bytes_new_from_bytes (floats, 0,
      n / info->block_elements * info->block_bytes);

  runnel_gguf_writer_add_tensor (writer, name, type, dims, rows > 0 ? 2 : 1,
      bytes);
}

/* Keys that begin with ':' stand for themselves. */
static void
write_gguf (Fixture *fixture, const Case *changed)
{
  const struct { const char *key; char kind; double number; } keys[] = {
    { ":general.architecture", 's', 0 }, { "block_count", 'u', 1 },
    { "context_length", 'u', 64 }, { "embedding_length", 'u', EMBD },
    { "feed_forward_length", 'u', FF }, { "attention.head_count", 'u', 4 },
    { "attention.head_count_kv", 'u', 2 },
    { "attention.key_length", 'u', HEAD },
    { "attention.layer_norm_rms_epsilon", 'f', 0.5 },
    { "rope.freq_base", 'f', 5000 }, { ":tokenizer.ggml.tokens", 'a', VOCAB },
  };
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autoptr (GError) error = NULL;

  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    if (g_strcmp0 (keys[i].key, changed->omit) != 0 &&
        g_strcmp0 (keys[i].key, changed->key) != 0)
      put_key (writer, changed, keys[i].key, keys[i].kind, keys[i].number,
          changed->architecture);
  if (changed->key != NULL)
    put_key (writer, changed, changed->key, changed->kind, changed->number,
        changed->text);
  for (gsize i = 0; i < G_N_ELEMENTS (tensors); i++)
    if (has_tensor (changed, &tensors[i], FALSE))
      put_gguf_tensor (writer, tensors[i].gguf, tensors[i].columns,
          tensors[i].rows, i, RUNNEL_TENSOR_F32);
  if (changed->tensor != NULL)
    put_gguf_tensor (writer, changed->tensor, changed->columns, changed->rows,
        changed->value, changed->type);
  runnel_gguf_writer_save (writer, fixture->path, &error);
  g_assert_no_error (error);
}

static RunnelCheckpoint *
open_gguf (Fixture *fixture, const Case *changed, GError **error)
{
  write_gguf (fixture, changed);
  return runnel_checkpoint_open (fixture->path, RUNNEL_LOAD_MODE_MAP, error);
}

static void
test_gguf (Fixture *fixture, gconstpointer unused)
{
  static const char *const architectures[] = { "llama", "qwen2", "qwen3" };

  for (guint i = 0; i < 3; i++) {
    const Case good = { architectures[i] };
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelCheckpoint) checkpoint = open_gguf (fixture, &good,
        &error);
    const RunnelHyperparameters *hp;

    g_assert_no_error (error);
    hp = runnel_checkpoint_hyperparameters (checkpoint);
    g_assert_cmpstr (hp->architecture, ==, architectures[i]);
    g_assert_cmpuint (hp->n_layers, ==, 1);
    g_assert_cmpuint (hp->n_embd, ==, EMBD);
    g_assert_cmpuint (hp->n_ff, ==, FF);
    g_assert_cmpuint (hp->n_heads, ==, 4);
    g_assert_cmpuint (hp->n_kv_heads, ==, 2);
    g_assert_cmpuint (hp->head_dim, ==, HEAD);
    g_assert_cmpuint (hp->n_vocab, ==, VOCAB);
    g_assert_cmpuint (hp->context_length, ==, 64);
    g_assert_cmpfloat (hp->norm_epsilon, ==, 0.5);
    g_assert_cmpfloat (hp->rope_base, ==, 5000);
    g_assert_cmpuint (hp->rope_dimensions, ==, HEAD);
    g_assert_cmpint (hp->rope_style, ==, i == 0 ? RUNNEL_ROPE_PAIRS :
        RUNNEL_ROPE_HALVES);
    g_assert_cmpint (hp->rope_scaling, ==, RUNNEL_ROPE_SCALING_NONE);
    g_assert_cmpint (hp->tied, ==, i != 1);
    g_assert_nonnull (runnel_checkpoint_gguf (checkpoint));
    g_assert_null (runnel_checkpoint_folder (checkpoint));
    g_assert_cmpstr (runnel_checkpoint_path (checkpoint), ==, fixture->path);
    g_assert_cmpfloat (*(const float *) runnel_tensor_data (
            runnel_checkpoint_tensor (checkpoint, "output_norm.weight")), ==,
        1);
    g_assert_null (runnel_checkpoint_tensor (checkpoint, "no.weight"));
    g_assert_cmpuint (runnel_checkpoint_n_tensors (checkpoint), ==,
        i == 0 ? 11 : i == 1 ? 15 : 13);
  }
}

#define BAD(error, part) .code = RUNNEL_ERROR_##error, .message = part

static const Case gguf_cases[] = {
  { "llama", .omit = ":general.architecture",
    BAD (MALFORMED, "'general.architecture' is missing") },
  { "mamba", BAD (UNSUPPORTED, "'mamba' is not supported (llama, qwen2, qw") },
  { "llama", .key = ":general.type", .kind = 's', .text = "adapter",
    BAD (UNSUPPORTED, "'general.type' says 'adapter'") },
  { "llama", .key = ":split.count", .kind = 'u', .number = 2,
    BAD (UNSUPPORTED, "one of 2 parts") },
  { "llama", .omit = "block_count",
    BAD (MALFORMED, "'llama.block_count' is missing") },
  { "llama", .omit = "attention.layer_norm_rms_epsilon",
    BAD (MALFORMED, "layer_norm_rms_epsilon' is missing") },
  { "llama", .key = "block_count", .kind = 'u', .number = 513,
    BAD (LIMIT, "'llama.block_count' is 513") },
  { "llama", .key = "block_count", .kind = 'u', .number = 2,
    BAD (MALFORMED, "tensor 'blk.1.attn_norm.weight' is missing") },
  { "llama", .key = "embedding_length", .kind = 'u', .number = 0,
    BAD (LIMIT, "'llama.embedding_length' is 0") },
  { "llama", .key = "attention.head_count_kv", .kind = 'a',
    BAD (UNSUPPORTED, "'llama.attention.head_count_kv' has a value for each") },
  { "llama", .key = "attention.head_count_kv", .kind = 'u', .number = 3,
    BAD (MISMATCH, "4 heads are no multiple of 3") },
  { "llama", .key = "attention.head_count", .kind = 's', .text = "4",
    BAD (MALFORMED, "is of type string") },
  { "llama", .omit = "attention.key_length",
    BAD (MISMATCH, "3 rotated elements of a head of 3") },
  { "llama", .key = "attention.value_length", .kind = 'u', .number = 8,
    BAD (UNSUPPORTED, "'llama.attention.value_length'") },
  { "llama", .key = "attention.layer_norm_rms_epsilon", .kind = 'f',
    .number = NAN, BAD (MISMATCH, "norm epsilon of nan") },
  { "llama", .key = "rope.freq_base", .kind = 'f', .number = 0,
    BAD (MISMATCH, "rope base of 0") },
  { "llama", .key = "rope.freq_base", .kind = 'f', .number = 1e-30,
    BAD (MISMATCH, "rope base of 1e-30") },
  { "llama", .key = "rope.scale_linear", .kind = 'f', .number = 1e-6,
    BAD (MISMATCH, "rope scaling factor of 1e-06; it must be at least 0.001") },
  { "llama", .key = "rope.dimension_count", .kind = 'u', .number = 3,
    BAD (MISMATCH, "3 rotated elements") },
  { "llama", .key = "rope.dimension_count", .kind = 'u', .number = 6,
    BAD (MISMATCH, "6 rotated elements of a head of 4") },
  { "llama", .key = "rope.dimension_count", .kind = 'u', .number = 2 },
  { "llama", .key = "rope.scaling.type", .kind = 's', .text = "longrope",
    BAD (UNSUPPORTED, "rope scaling 'longrope'") },
  { "llama", .key = "rope.scaling.type", .kind = 's', .text = "none" },
  { "llama", .key = "rope.scaling.type", .kind = 's', .text = "yarn",
    BAD (MISMATCH, "scaling factor of 0") },
  { "llama", .key = "rope.scaling.yarn_log_multiplier", .kind = 'f',
    .number = 0.1, BAD (UNSUPPORTED, "yarn_log_multiplier'") },
  { "llama", .key = "attention.sliding_window", .kind = 'u', .number = 32,
    BAD (UNSUPPORTED, "'llama.attention.sliding_window'") },
  { "llama", .key = "attention.sliding_window", .kind = 'u', .number = 64 },
  { "llama", .key = "attention.causal", .kind = 'b', .number = 0,
    BAD (UNSUPPORTED, "'llama.attention.causal'") },
  { "llama", .key = "attention.causal", .kind = 'b', .number = 1 },
  { "llama", .key = "final_logit_softcapping", .kind = 'f', .number = 30,
    BAD (UNSUPPORTED, "'llama.final_logit_softcapping'") },
  { "llama", .key = "final_logit_softcapping", .kind = 'f', .number = 0 },
  { "llama", .key = "expert_count", .kind = 'u', .number = 8,
    BAD (UNSUPPORTED, "'llama.expert_count'") },
  { "llama", .key = "logit_scale", .kind = 'f', .number = 0.5,
    BAD (UNSUPPORTED, "'llama.logit_scale'") },
  { "llama", .key = "logit_scale", .kind = 'f', .number = 1 },
  { "llama", .key = "something_new", .kind = 'u', .number = 1,
    BAD (UNSUPPORTED, "'llama.something_new'") },
  { "llama", .key = ":other.something_new", .kind = 'u', .number = 1 },
  { "llama", .key = ":tokenizer.ggml.tokens", .kind = 'a', .number = 6,
    BAD (MISMATCH, "'token_embd.weight' has 5 rows of 12") },
  { "llama", .key = "vocab_size", .kind = 'u', .number = 6,
    BAD (MISMATCH, "'llama.vocab_size' is 6, but there are 5") },
  { "llama", .omit = ":tokenizer.ggml.tokens" },
  { "llama", .omit = "token_embd.weight",
    BAD (MALFORMED, "'token_embd.weight' is missing") },
  { "qwen2", .omit = "blk.0.attn_k.bias",
    BAD (MALFORMED, "'blk.0.attn_k.bias' is missing") },
  { "llama", .tensor = "blk.0.attn_q.bias", .columns = QUERY,
    BAD (UNSUPPORTED, "'blk.0.attn_q.bias' is not supported in architecture "
        "'llama'") },
  { "llama", .tensor = "blk.0.ffn_up.bias", .columns = FF,
    BAD (UNSUPPORTED, "'blk.0.ffn_up.bias'") },
  { "llama", .tensor = "blk.00.attn_norm.weight", .columns = EMBD,
    BAD (UNSUPPORTED, "'blk.00.attn_norm.weight'") },
  { "llama", .tensor = "blk.1.attn_norm.weight", .columns = EMBD,
    BAD (MISMATCH, "'blk.1.attn_norm.weight' belongs to no layer") },
  { "llama", .tensor = "blk.99999999999.attn_norm.weight", .columns = EMBD,
    BAD (UNSUPPORTED, "'blk.99999999999.attn_norm.weight'") },
  { "llama", .tensor = "blk.0.attn_norm.weight", .columns = EMBD + 1,
    BAD (MISMATCH, "'blk.0.attn_norm.weight' has 1 rows of 13") },
  { "llama", .tensor = "output.weight", .columns = EMBD, .rows = VOCAB },
  { "llama", .tensor = "output.weight", .columns = EMBD, .rows = VOCAB + 1,
    BAD (MISMATCH, "'output.weight' has 6 rows") },
  { "llama", .tensor = "rope_freqs.weight", .columns = HEAD / 2, .value = 2 },
  { "llama", .tensor = "rope_freqs.weight", .columns = HEAD / 2, .value = 0,
    BAD (MALFORMED, "'rope_freqs.weight': factor 0 is 0") },
  { "llama", .tensor = "rope_freqs.weight", .columns = HEAD / 2, .value = 2,
    .type = RUNNEL_TENSOR_F16, BAD (UNSUPPORTED, "is of type F16; F32 is") },
  { "llama", .tensor = "rope_factors_long.weight", .columns = HEAD / 2,
    BAD (UNSUPPORTED, "'rope_factors_long.weight'") },
};

static void
test_gguf_cases (Fixture *fixture, gconstpointer unused)
{
  for (gsize i = 0; i < G_N_ELEMENTS (gguf_cases); i++) {
    const Case *changed = &gguf_cases[i];
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelCheckpoint) checkpoint = open_gguf (fixture, changed,
        &error);

    g_test_message ("%s", error != NULL ? error->message : "good");
    if (changed->message == NULL) {
      g_assert_no_error (error);
      continue;
    }
    g_assert_null (checkpoint);
    g_assert_error (error, RUNNEL_ERROR, (int) changed->code);
    g_assert_true (g_str_has_prefix (error->message, fixture->path));
    g_assert_nonnull (strstr (error->message, changed->message));
  }
}

static void
test_gguf_rope (Fixture *fixture, gconstpointer unused)
{
  const Case linear = { "qwen3", .key = "rope.scaling.factor", .kind = 'f',
    .number = 4 };
  const Case neutral = { "qwen3", .key = "rope.scale_linear", .kind = 'f',
    .number = 1 };
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelCheckpoint) scaled = open_gguf (fixture, &linear, &error);
  g_autoptr (RunnelCheckpoint) plain = open_gguf (fixture, &neutral, &error);

  g_assert_no_error (error);
  g_assert_cmpint (runnel_checkpoint_hyperparameters (scaled)->rope_scaling,
      ==, RUNNEL_ROPE_SCALING_LINEAR);
  g_assert_cmpfloat (runnel_checkpoint_hyperparameters (scaled)->rope_factor,
      ==, 4);
  g_assert_cmpint (runnel_checkpoint_hyperparameters (plain)->rope_scaling,
      ==, RUNNEL_ROPE_SCALING_NONE);
}

/* The id follows the header and both ends of every tensor, not the path. */
static void
test_content_id (Fixture *fixture, gconstpointer unused)
{
  const Case good = { "llama" }, key = { "llama", .key = "vocab_size",
    .kind = 'u', .number = VOCAB };
  const Case tensor = { "llama", .tensor = "output_norm.weight",
    .columns = EMBD, .value = 2 };
  const Case *const cases[] = { &good, &good, &key, &tensor };
  g_autofree char *ids[4] = { NULL };
  g_autofree char *other = g_build_filename (fixture->folder, "b.gguf", NULL);

  for (guint i = 0; i < 4; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelCheckpoint) checkpoint = NULL;

    write_gguf (fixture, cases[i]);
    if (i == 1)
      g_assert_cmpint (g_rename (fixture->path, other), ==, 0);
    checkpoint = runnel_checkpoint_open (i == 1 ? other : fixture->path,
        i == 1 ? RUNNEL_LOAD_MODE_READ : RUNNEL_LOAD_MODE_MAP, &error);
    g_assert_no_error (error);
    ids[i] = g_strdup (runnel_checkpoint_content_id (checkpoint));
    g_assert_cmpuint (strlen (ids[i]), ==, 64);
  }
  g_assert_cmpstr (ids[0], ==, ids[1]);
  g_assert_cmpstr (ids[0], !=, ids[2]);
  g_assert_cmpstr (ids[0], !=, ids[3]);
  for (guint i = 1; i < 4; i++)
    g_free (ids[i]);
}

/* --- Hugging Face --- */

static void
append_hf_tensor (GString *header, GByteArray *data, const char *name,
    guint columns, guint rows, float value, const char *dtype)
{
  gsize n = (gsize) columns * MAX (rows, 1), begin = data->len;
  g_autoptr (GBytes) values = make_values (n, value);

  g_byte_array_append (data, g_bytes_get_data (values, NULL),
      n * sizeof (float));
  g_string_append_printf (header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
      header->len > 1 ? "," : "", name, dtype);
  if (rows > 0)
    g_string_append_printf (header, "%u,", rows);
  g_string_append_printf (header, "%u],\"data_offsets\":[%" G_GSIZE_FORMAT
      ",%u]}", columns, begin, data->len);
}

static void
write_safetensors (Fixture *fixture, const Case *changed)
{
  g_autofree char *path = g_build_filename (fixture->folder,
      "model.safetensors", NULL);
  g_autoptr (GString) header = g_string_new ("{");
  g_autoptr (GByteArray) data = g_byte_array_new ();
  g_autoptr (GString) file = g_string_new (NULL);
  g_autoptr (GError) error = NULL;
  guint64 length;

  for (gsize i = 0; i < G_N_ELEMENTS (tensors); i++)
    if (has_tensor (changed, &tensors[i], TRUE))
      append_hf_tensor (header, data, tensors[i].hf, tensors[i].columns,
          tensors[i].rows, i, "F32");
  if (changed->tensor != NULL)
    append_hf_tensor (header, data, changed->tensor, changed->columns,
        changed->rows, changed->value, changed->type != 0 ? "I32" : "F32");
  g_string_append_c (header, '}');
  while (header->len % 8 != 0)
    g_string_append_c (header, ' ');
  length = GUINT64_TO_LE ((guint64) header->len);
  g_string_append_len (file, (const char *) &length, 8);
  g_string_append_len (file, header->str, header->len);
  g_string_append_len (file, (const char *) data->data, data->len);
  g_file_set_contents (path, file->str, file->len, &error);
  g_assert_no_error (error);
}

static RunnelCheckpoint *
open_hf (Fixture *fixture, const Case *changed, GError **error)
{
  const struct { const char *key, *value; } keys[] = {
    { "num_hidden_layers", "1" }, { "hidden_size", "12" },
    { "intermediate_size", "20" }, { "num_attention_heads", "4" },
    { "num_key_value_heads", "2" }, { "head_dim", "4" },
    { "vocab_size", "5" }, { "max_position_embeddings", "64" },
    { "rms_norm_eps", "0.5" }, { "rope_theta", "5000" },
    { "hidden_act", "\"silu\"" }, { "tie_word_embeddings",
      strcmp (changed->architecture, "qwen2") == 0 ? "false" : "true" },
    { "attention_bias", "false" }, { "sliding_window", "null" },
    { "torch_dtype", "\"float32\"" },
  };
  g_autofree char *path = g_build_filename (fixture->folder, "config.json",
      NULL);
  g_autoptr (GString) config = g_string_new (NULL);

  g_string_printf (config, "{\"model_type\": \"%s\"", changed->architecture);
  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    if (g_strcmp0 (keys[i].key, changed->omit) != 0 &&
        g_strcmp0 (keys[i].key, changed->key) != 0)
      g_string_append_printf (config, ",\n\"%s\": %s", keys[i].key,
          keys[i].value);
  if (changed->key != NULL)
    g_string_append_printf (config, ",\n\"%s\": %s", changed->key,
        changed->text);
  g_string_append (config, "}\n");
  g_file_set_contents (path, config->str, config->len, NULL);
  write_safetensors (fixture, changed);
  return runnel_checkpoint_open (fixture->folder, RUNNEL_LOAD_MODE_READ,
      error);
}

static void
test_hf (Fixture *fixture, gconstpointer unused)
{
  static const char *const architectures[] = { "llama", "qwen2", "qwen3" };

  for (guint i = 0; i < 3; i++) {
    const Case good = { architectures[i] };
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelCheckpoint) hf = open_hf (fixture, &good, &error);
    g_autoptr (RunnelCheckpoint) gguf = NULL;
    RunnelHyperparameters ours, theirs;

    g_assert_no_error (error);
    gguf = open_gguf (fixture, &good, &error);
    g_assert_no_error (error);
    ours = *runnel_checkpoint_hyperparameters (hf);
    theirs = *runnel_checkpoint_hyperparameters (gguf);
    g_assert_cmpint (ours.rope_style, ==, RUNNEL_ROPE_HALVES);
    theirs.rope_style = RUNNEL_ROPE_HALVES;
    g_assert_cmpmem (&ours, sizeof ours, &theirs, sizeof theirs);
    g_assert_cmpstr (runnel_checkpoint_folder (hf), ==, fixture->folder);
    g_assert_null (runnel_checkpoint_gguf (hf));
    g_assert_cmpuint (runnel_checkpoint_n_tensors (hf), ==,
        runnel_checkpoint_n_tensors (gguf));
    for (gsize t = 0; t < runnel_checkpoint_n_tensors (hf); t++) {
      const RunnelTensor *a = runnel_checkpoint_nth_tensor (hf, t);
      const RunnelTensor *b = runnel_checkpoint_tensor (gguf, a->name);

      g_assert_cmpmem (a->dims, sizeof a->dims, b->dims, sizeof b->dims);
      g_assert_cmpmem (runnel_tensor_data (a), a->bytes,
          runnel_tensor_data (b), b->bytes);
    }
  }
}

#define WITH(k, v) .key = k, .text = v

static const Case hf_cases[] = {
  { "mistral", BAD (UNSUPPORTED, "architecture 'mistral' is not supported") },
  { "llama", WITH ("architectures", "[\"LlamaForCausalLM\"]") },
  { "llama", WITH ("architectures", "[\"LlamaForSequenceClassification\"]"),
    BAD (UNSUPPORTED, "does not hold LlamaForCausalLM") },
  { "llama", WITH ("architectures", "1"),
    BAD (MALFORMED, "'architectures' is no array") },
  { "llama", .omit = "hidden_size", BAD (MALFORMED, "'hidden_size' is mis") },
  { "llama", WITH ("hidden_size", "12.0"),
    BAD (MALFORMED, "'hidden_size' is no integer") },
  { "llama", WITH ("hidden_size", "-12"),
    BAD (LIMIT, "'hidden_size' is -12; it must lie between 1 and 65536") },
  { "llama", WITH ("hidden_size", "99999999999999999999"),
    BAD (LIMIT, "'hidden_size' is 99999999999999999999") },
  { "llama", WITH ("num_hidden_layers", "513"),
    BAD (LIMIT, "'num_hidden_layers' is 513") },
  { "llama", WITH ("num_key_value_heads", "3"),
    BAD (MISMATCH, "4 heads are no multiple of 3") },
  { "llama", .omit = "head_dim", BAD (MISMATCH, "of a head of 3") },
  { "qwen3", .omit = "head_dim", BAD (MISMATCH, "512") },
  { "llama", WITH ("num_attention_heads", "5"), .omit = "head_dim",
    BAD (MISMATCH, "'head_dim' is missing") },
  { "llama", WITH ("rms_norm_eps", "\"small\""),
    BAD (MALFORMED, "'rms_norm_eps' is no number") },
  { "llama", WITH ("rms_norm_eps", "2"), BAD (MISMATCH, "norm epsilon of 2") },
  { "llama", WITH ("tie_word_embeddings", "1"),
    BAD (MALFORMED, "'tie_word_embeddings' is neither") },
  { "llama", .omit = "tie_word_embeddings",
    BAD (MALFORMED, "tensor 'lm_head.weight' is missing") },
  { "llama", .tensor = "lm_head.weight", .columns = EMBD, .rows = VOCAB },
  { "llama", .tensor = "model.layers.0.self_attn.rotary_emb.inv_freq",
    .columns = HEAD / 2 },
  { "llama", WITH ("vocab_size", "6"),
    BAD (MISMATCH, "rows and tokens of the vocabulary must agree") },
  { "llama", WITH ("hidden_act", "\"gelu\""),
    BAD (UNSUPPORTED, "'hidden_act' is 'gelu'; only silu") },
  { "llama", WITH ("attention_bias", "true"),
    BAD (UNSUPPORTED, "'attention_bias'") },
  { "llama", WITH ("mlp_bias", "true"), BAD (UNSUPPORTED, "'mlp_bias'") },
  { "llama", WITH ("quantization_config", "{\"bits\": 4}"),
    BAD (UNSUPPORTED, "'quantization_config'") },
  { "llama", WITH ("final_logit_softcapping", "30.0"),
    BAD (UNSUPPORTED, "'final_logit_softcapping'") },
  { "llama", WITH ("final_logit_softcapping", "null") },
  { "llama", WITH ("logits_scaling", "8"), BAD (UNSUPPORTED, "'logits_sc") },
  { "llama", WITH ("logits_scaling", "1.0") },
  { "llama", WITH ("partial_rotary_factor", "0.5"),
    BAD (UNSUPPORTED, "'partial_rotary_factor'") },
  { "llama", WITH ("rope_interleaved", "false") },
  { "llama", WITH ("pretraining_tp", "2") },
  { "qwen2", WITH ("sliding_window", "32"),
    BAD (UNSUPPORTED, "'sliding_window'") },
  { "qwen2", WITH ("sliding_window", "32, \"use_sliding_window\": false") },
  { "qwen2", WITH ("sliding_window", "32, \"max_window_layers\": 28") },
  { "qwen2", WITH ("layer_types", "[\"sliding_attention\"]"),
    BAD (UNSUPPORTED, "'layer_types'") },
  { "qwen2", WITH ("layer_types", "[\"full_attention\"]") },
  { "qwen2", WITH ("layer_types", "[]"), BAD (MALFORMED, "'layer_types'") },
  { "llama", .omit = "model.norm.weight",
    BAD (MALFORMED, "'model.norm.weight' is missing") },
  { "qwen2", .omit = "model.layers.0.self_attn.v_proj.bias",
    BAD (MALFORMED, "v_proj.bias' is missing") },
  { "llama", .tensor = "model.norm.weight", .columns = EMBD, .type = 1,
    BAD (UNSUPPORTED, "'model.norm.weight' is of type I32") },
  { "llama", .tensor = "model.position_ids", .columns = 3, .type = 1 },
  { "llama", .tensor = "model.layers.0.mlp.up_proj.bias", .columns = FF,
    BAD (UNSUPPORTED, "'model.layers.0.mlp.up_proj.bias'") },
  { "llama", .tensor = "model.layers.0.self_attn.q_proj.bias",
    .columns = QUERY, BAD (UNSUPPORTED, "self_attn.q_proj.bias'") },
  { "llama", .tensor = "model.layers.0.mlp.up_proj.scale", .columns = 1,
    .type = 1, BAD (UNSUPPORTED, "up_proj.scale' is of type I32") },
  { "llama", .tensor = "model.layers.1.input_layernorm.weight",
    .columns = EMBD, BAD (MISMATCH, "belongs to no layer") },
  { "llama", WITH ("rope_scaling", "{\"type\": \"dynamic\", \"factor\": 2}"),
    BAD (UNSUPPORTED, "rope type 'dynamic'") },
  { "llama", WITH ("rope_scaling", "{\"type\": \"linear\"}"),
    BAD (MISMATCH, "scaling factor of 0") },
  { "llama", WITH ("rope_scaling", "[]"),
    BAD (MALFORMED, "'rope_scaling' is no object") },
  { "llama", WITH ("rope_parameters", "{\"full_attention\": {}}"),
    BAD (UNSUPPORTED, "rope parameter 'full_attention'") },
  { "llama", WITH ("rope_parameters", "{\"mscale\": 0.7}"),
    BAD (UNSUPPORTED, "rope parameter 'mscale'") },
  { "llama", WITH ("rope_parameters", "{\"rope_theta\": 1e4}"),
    BAD (MISMATCH, "'rope_theta' is 5000, but 'rope_parameters' says 10000") },
  { "llama", WITH ("rope_parameters", "{\"rope_theta\": 5000.0, "
        "\"rope_type\": \"linear\", \"factor\": 2}, \"rope_scaling\": "
        "{\"rope_type\": \"linear\", \"factor\": 3}"),
    BAD (MISMATCH, "'rope_scaling' and 'rope_parameters' differ") },
  { "llama", WITH ("rope_scaling", "{\"rope_type\": \"llama3\", \"factor\": 8,"
        "\"low_freq_factor\": 4, \"high_freq_factor\": 1, "
        "\"original_max_position_embeddings\": 16}"),
    BAD (MISMATCH, "rope frequency factors from 4 to 1") },
};

static void
test_hf_cases (Fixture *fixture, gconstpointer unused)
{
  for (gsize i = 0; i < G_N_ELEMENTS (hf_cases); i++) {
    const Case *changed = &hf_cases[i];
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelCheckpoint) checkpoint = open_hf (fixture, changed,
        &error);

    g_test_message ("%s", error != NULL ? error->message : "good");
    if (changed->message == NULL) {
      g_assert_no_error (error);
      continue;
    }
    g_assert_null (checkpoint);
    g_assert_error (error, RUNNEL_ERROR, (int) changed->code);
    g_assert_true (g_str_has_prefix (error->message, fixture->folder));
    g_assert_nonnull (strstr (error->message, changed->message));
  }
}

/* Both spellings of each scaling. */
static void
test_hf_rope (Fixture *fixture, gconstpointer unused)
{
  static const struct { Case model; RunnelRopeScaling scaling; } cases[] = {
    { { "qwen3", WITH ("rope_scaling", "{\"type\": \"linear\", "
          "\"factor\": 4.0}") }, RUNNEL_ROPE_SCALING_LINEAR },
    { { "qwen3", WITH ("rope_parameters", "{\"rope_type\": \"yarn\", "
          "\"factor\": 4.0, \"rope_theta\": 5000}") },
      RUNNEL_ROPE_SCALING_YARN },
    { { "llama", WITH ("rope_parameters", "{\"rope_type\": \"llama3\", "
          "\"factor\": 4.0, \"rope_theta\": 5000, \"low_freq_factor\": 1, "
          "\"original_max_position_embeddings\": 64, "
          "\"high_freq_factor\": 4}") }, RUNNEL_ROPE_SCALING_LLAMA3 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelCheckpoint) checkpoint = open_hf (fixture,
        &cases[i].model, &error);
    const RunnelHyperparameters *hp;

    g_assert_no_error (error);
    hp = runnel_checkpoint_hyperparameters (checkpoint);
    g_assert_cmpint (hp->rope_scaling, ==, cases[i].scaling);
    g_assert_cmpfloat (hp->rope_factor, ==, 4);
    g_assert_cmpfloat (hp->rope_base, ==, 5000);
    g_assert_cmpuint (hp->rope_original_context, ==, i == 0 ? 0 : 64);
    g_assert_cmpfloat (hp->rope_high_freq_factor, ==, i == 2 ? 4 : 0);
  }
}

static void
test_no_model (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *file = g_build_filename (fixture->folder,
      "model.safetensors", NULL);
  const char *const paths[] = { fixture->folder, fixture->path, file };

  for (guint i = 0; i < 3; i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (runnel_checkpoint_open (paths[i], RUNNEL_LOAD_MODE_MAP,
            &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  }
}

int
main (int argc, char **argv)
{
  static const struct {
    const char *path;
    void (*run) (Fixture *fixture, gconstpointer unused);
  } tests[] = {
    { "/checkpoint/gguf", test_gguf },
    { "/checkpoint/gguf-cases", test_gguf_cases },
    { "/checkpoint/gguf-rope", test_gguf_rope },
    { "/checkpoint/content-id", test_content_id },
    { "/checkpoint/hugging-face", test_hf },
    { "/checkpoint/hugging-face-cases", test_hf_cases },
    { "/checkpoint/hugging-face-rope", test_hf_rope },
    { "/checkpoint/no-model", test_no_model },
  };

  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (tests); i++)
    g_test_add (tests[i].path, Fixture, NULL, set_up, tests[i].run,
        tear_down);
  return g_test_run ();
}
