/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Packages of Hugging Face folders, and packages that others made badly.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "error.h"
#include "formats/checkpoint.h"
#include "formats/converter.h"
#include "formats/json.h"
#include "formats/package.h"
#include "model/architecture.h"
#include "model/model.h"
#include "same-model.h"
#include "tiny-model.h"

/* ---- A folder with the weights and the words of a tiny model --------- */

typedef struct {
  char *folder, *package;
  RunnelGguf *gguf;
} Fixture;

static const char *const file_names[] = {
  "config.json", "tokenizer.json", "tokenizer_config.json",
  "generation_config.json", "model.safetensors", "README.md", "model.runnel",
};

static void
write_file (Fixture *f, const char *name, const char *text, gssize length)
{
  g_autofree char *path = g_build_filename (f->folder, name, NULL);
  g_autoptr (GError) error = NULL;

  g_file_set_contents (path, text, length, &error);
  g_assert_no_error (error);
}

static void
write_weights (Fixture *f)
{
  g_autoptr (GString) header = g_string_new ("{");
  g_autoptr (GByteArray) data = g_byte_array_new ();
  g_autoptr (GString) file = g_string_new (NULL);
  guint64 length;

  for (gsize i = 0; i < runnel_gguf_n_tensors (f->gguf); i++) {
    const RunnelTensor *tensor = runnel_gguf_tensor (f->gguf, i);
    g_autofree char *name = NULL;
    RunnelPart part;
    guint layer;

    g_assert_true (runnel_part_find (tensor->name, &part, &layer));
    name = runnel_part_dup_hf_name (part, layer);
    g_string_append_printf (header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[",
        i > 0 ? "," : "", name);
    if (tensor->n_dims == 2)
      g_string_append_printf (header, "%" G_GUINT64_FORMAT ",",
          tensor->dims[1]);
    g_string_append_printf (header, "%" G_GUINT64_FORMAT
        "],\"data_offsets\":[%u,%" G_GSIZE_FORMAT "]}", tensor->dims[0],
        data->len, data->len + tensor->bytes);
    g_byte_array_append (data, runnel_tensor_data (tensor), tensor->bytes);
  }
  g_string_append_c (header, '}');
  while (header->len % 8 != 0)
    g_string_append_c (header, ' ');
  length = GUINT64_TO_LE ((guint64) header->len);
  g_string_append_len (file, (const char *) &length, 8);
  g_string_append_len (file, header->str, header->len);
  g_string_append_len (file, (const char *) data->data, data->len);
  write_file (f, "model.safetensors", file->str, file->len);
}

/* The strings of a GGUF array, as JSON: "text": index, or "text". */
static void
append_strings (GString *out, const RunnelGguf *gguf, const char *key,
                gsize first, gboolean with_index)
{
  RunnelGgufArray array;
  const guint8 *at;

  g_assert_true (runnel_gguf_get_array (gguf, key, RUNNEL_GGUF_STRING, &array,
          NULL));
  at = array.data;
  for (gsize i = 0; i < array.n; i++) {
    const char *text;
    gsize length;

    at = runnel_gguf_next_string (at, &text, &length);
    if (i < first)
      continue;
    g_string_append (out, i > first ? "," : "");
    runnel_json_append_string (out, text, length);
    if (with_index)
      g_string_append_printf (out, ":%" G_GSIZE_FORMAT, i);
  }
}

/* One added token is looked for in the text as it is, one in what is
 * normalised, which GGUF has no way to say. */
static void
write_tokenizer (Fixture *f)
{
  g_autoptr (GString) json = g_string_new ("{\"version\":\"1.0\","
      "\"added_tokens\":["
      "{\"id\":0,\"content\":\"<|endoftext|>\",\"special\":true},"
      "{\"id\":1,\"content\":\"<|im_start|>\",\"special\":true},"
      "{\"id\":2,\"content\":\"<|im_end|>\",\"special\":false,"
      "\"normalized\":true}],"
      "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\","
      "\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
      "\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\"},"
      "\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"vocab\":{");

  append_strings (json, f->gguf, "tokenizer.ggml.tokens", 3, TRUE);
  g_string_append (json, "},\"merges\":[");
  append_strings (json, f->gguf, "tokenizer.ggml.merges", 0, FALSE);
  g_string_append (json, "]}}");
  write_file (f, "tokenizer.json", json->str, json->len);
  write_file (f, "tokenizer_config.json", "{\"eos_token\":\"<|im_end|>\","
      "\"bos_token\":\"<|im_start|>\",\"add_bos_token\":true,"
      "\"chat_template\":\"{{ messages[0].content }}\"}", -1);
  write_file (f, "generation_config.json",
      "{\"temperature\": 0.25, \"eos_token_id\": [2, 0]}", -1);
}

static guint
get_uint (const RunnelGguf *gguf, const char *architecture,
          const char *suffix)
{
  g_autofree char *key = g_strconcat (architecture, ".", suffix, NULL);
  guint64 value;

  g_assert_true (runnel_gguf_get_uint (gguf, key, 0, G_MAXUINT32, &value,
          NULL));
  return value;
}

static void
write_config (Fixture *f, const char *architecture, const char *rope)
{
  const RunnelTensor *embedding
      = runnel_gguf_find_tensor (f->gguf, "token_embd.weight");
  g_autofree char *json = g_strdup_printf ("{\"model_type\":\"%s\","
      "\"num_hidden_layers\":%u,\"hidden_size\":%u,\"intermediate_size\":%u,"
      "\"num_attention_heads\":%u,\"num_key_value_heads\":%u,\"head_dim\":%u,"
      "\"vocab_size\":%u,\"max_position_embeddings\":512,"
      "\"rms_norm_eps\":1e-6,\"tie_word_embeddings\":true,"
      "\"rope_theta\":12345.678%s}", architecture,
      get_uint (f->gguf, architecture, "block_count"),
      get_uint (f->gguf, architecture, "embedding_length"),
      get_uint (f->gguf, architecture, "feed_forward_length"),
      get_uint (f->gguf, architecture, "attention.head_count"),
      get_uint (f->gguf, architecture, "attention.head_count_kv"),
      get_uint (f->gguf, architecture, "attention.key_length"),
      (guint) embedding->dims[1], rope);

  write_file (f, "config.json", json, -1);
}

static void
set_up (Fixture *f, const char *architecture, const char *rope)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autofree char *path = NULL;

  model.architecture = architecture;
  model.type = RUNNEL_TENSOR_F32;
  path = tiny_model_write (&model);
  f->gguf = runnel_gguf_open (path, RUNNEL_LOAD_MODE_READ, NULL);
  g_assert_nonnull (f->gguf);
  g_unlink (path);
  f->folder = g_dir_make_tmp ("runnel-folder-XXXXXX", NULL);
  f->package = g_build_filename (f->folder, "model.runnel", NULL);
  write_weights (f);
  write_tokenizer (f);
  write_config (f, architecture, rope);
  write_file (f, "README.md", "---\nlanguage: en\nlicense: mit\n---\n# Tiny\n",
      -1);
}

static void
tear_down (Fixture *f)
{
  for (gsize i = 0; i < G_N_ELEMENTS (file_names); i++) {
    g_autofree char *path = g_build_filename (f->folder, file_names[i], NULL);

    g_unlink (path);
  }
  g_assert_cmpint (g_rmdir (f->folder), ==, 0);
  runnel_gguf_free (f->gguf);
  g_free (f->folder);
  g_free (f->package);
}

static GVariant *
convert (Fixture *f, RunnelPackageType type)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  GError *error = NULL;
  GVariant *report;

  g_object_set (converter, "type", type, NULL);
  report = runnel_converter_convert (converter, f->folder, f->package, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  return report;
}

/* ---- The same model -------------------------------------------------- */

static void
test_folder (gconstpointer data)
{
  static const char *const ropes[] = {
    "", ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.1}",
    ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,"
    "\"low_freq_factor\":1.1,\"high_freq_factor\":4.3,"
    "\"original_max_position_embeddings\":128}",
    ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4,"
    "\"attention_factor\":1.07,\"original_max_position_embeddings\":128}",
  };
  const char *architecture = data;

  for (gsize i = 0; i < G_N_ELEMENTS (ropes); i++) {
    g_autoptr (GVariant) report = NULL;
    Fixture f;

    set_up (&f, architecture, ropes[i]);
    report = convert (&f, RUNNEL_PACKAGE_TYPE_SOURCE);
    assert_same_model (f.package, f.folder);
    tear_down (&f);
  }
}

/* What a folder says beside its weights. */
static void
test_folder_facts (void)
{
  g_autoptr (GVariant) report = NULL, description = NULL, package = NULL;
  g_autoptr (GVariant) files = NULL;
  g_autoptr (RunnelModel) model = NULL;
  g_autofree char *name = NULL;
  const char *text = NULL;
  Fixture f;

  set_up (&f, "qwen3", "");
  report = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO);
  model = runnel_model_open (f.package, RUNNEL_LOAD_MODE_MAP, NULL);
  name = g_path_get_basename (f.folder);
  g_assert_cmpstr (runnel_model_get_name (model), ==, name);
  description = runnel_model_describe (model);
  package = g_variant_lookup_value (description, "package", NULL);
  g_assert_true (g_variant_lookup (package, "license", "&s", &text));
  g_assert_cmpstr (text, ==, "mit");
  g_assert_true (g_variant_lookup (package, "source_format", "&s", &text));
  g_assert_cmpstr (text, ==, "Hugging Face");
  g_assert_true (g_variant_lookup (package, "generation_config", "&s",
          &text));
  g_assert_nonnull (strstr (text, "\"temperature\": 0.25"));
  files = g_variant_lookup_value (package, "source_files", NULL);
  g_assert_cmpuint (g_variant_n_children (files), ==, 5);
  tear_down (&f);
}

/* ---- Badly made ------------------------------------------------------ */

/* Everything a package needs, with room for one change. */
typedef struct {
  const char *key;           /* left out, or replaced by what follows */
  RunnelGgufType type;       /* of @values */
  guint32 values[3];
  gsize n;                   /* 0: left out */
  RunnelError code;
  const char *says;
} BadCase;

static void
add_changed (RunnelGgufWriter *writer, const BadCase *bad)
{
  g_autofree guint8 *bytes = g_new (guint8, bad->n);
  g_autofree guint16 *shorts = g_new (guint16, bad->n);

  for (gsize i = 0; i < bad->n; i++) {
    bytes[i] = bad->values[i];
    shorts[i] = bad->values[i];
  }
  if (bad->n == 0)
    return;
  if (bad->type == RUNNEL_GGUF_UINT8)
    runnel_gguf_writer_add_uint8s (writer, bad->key, bytes, bad->n);
  else if (bad->type == RUNNEL_GGUF_UINT16)
    runnel_gguf_writer_add_uint16s (writer, bad->key, shorts, bad->n);
  else if (bad->type == RUNNEL_GGUF_UINT32)
    runnel_gguf_writer_add_uint32s (writer, bad->key, bad->values, bad->n);
}

/* The keys of a good package but for one, without its tensors. */
static RunnelGguf *
make_changed (const RunnelGguf *good, const BadCase *bad)
{
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autoptr (GByteArray) header = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (RunnelMapping) mapping = NULL;

  for (gsize i = 0; i < runnel_gguf_n_keys (good); i++) {
    const char *key = runnel_gguf_key (good, i);
    RunnelGgufType type;
    gsize size;
    const guint8 *value = runnel_gguf_raw_value (good, key, &type, &size);

    if (strcmp (key, bad->key) != 0)
      runnel_gguf_writer_add_raw (writer, key, type, value, size);
  }
  add_changed (writer, bad);
  header = runnel_gguf_writer_make_header (writer, NULL, 0);
  bytes = g_bytes_new (header->data, header->len);
  mapping = runnel_mapping_new_from_bytes (bytes, "bad.runnel");
  return runnel_gguf_new (mapping, NULL);
}

static void
test_bad_tokenizers (void)
{
#define T(key) "runnel.tokenizer." key
#define V(...) { __VA_ARGS__ }, sizeof ((guint32[]) { __VA_ARGS__ }) / 4
  static const BadCase cases[] = {
    { T ("lengths"), 0, { 0 }, 0, RUNNEL_ERROR_MALFORMED,
      "has no runnel.tokenizer.lengths" },
    { T ("lengths"), RUNNEL_GGUF_UINT16, V (1, 2), RUNNEL_ERROR_MALFORMED,
      "has 2 entries, but runnel.tokenizer.types has 276" },
    { T ("types"), RUNNEL_GGUF_UINT8, V (1), RUNNEL_ERROR_MALFORMED,
      "runnel.tokenizer.types has 1" },
    { T ("types"), RUNNEL_GGUF_UINT32, V (1), RUNNEL_ERROR_MALFORMED,
      "elements of type" },
    { T ("pieces"), RUNNEL_GGUF_UINT8, V (65), RUNNEL_ERROR_MALFORMED,
      "but there are 1 bytes" },
    { T ("merges"), 0, { 0 }, 0, RUNNEL_ERROR_MALFORMED, "has no" },
    { T ("merges"), RUNNEL_GGUF_UINT32, V (70, 71, 72), RUNNEL_ERROR_LIMIT,
      "pairs are expected" },
    { T ("merges"), RUNNEL_GGUF_UINT32, V (70, 276), RUNNEL_ERROR_MALFORMED,
      "merge 0 has a part or a result that is no token" },
    { T ("merges"), RUNNEL_GGUF_UINT32, V (1, 70), RUNNEL_ERROR_MALFORMED,
      "merge 0 has a part or a result that is no token" },
    { T ("merges"), RUNNEL_GGUF_UINT32, V (70, 70), RUNNEL_ERROR_MALFORMED,
      "merge 0 has a part or a result that is no token" },
    { T ("added"), RUNNEL_GGUF_UINT32, V (0, 276), RUNNEL_ERROR_MALFORMED,
      "names token 276; there are 276" },
    { T ("added"), RUNNEL_GGUF_UINT32, V (1), RUNNEL_ERROR_MALFORMED,
      "has 1 entries, but" },
    { T ("stop_tokens"), RUNNEL_GGUF_UINT32, V (300), RUNNEL_ERROR_MALFORMED,
      "names token 300" },
    { "tokenizer.ggml.pre", 0, { 0 }, 0, RUNNEL_ERROR_MALFORMED, "missing" },
  };
  g_autoptr (GVariant) report = NULL;
  g_autoptr (RunnelGguf) good = NULL;
  Fixture f;

  set_up (&f, "llama", "");
  report = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO);
  good = runnel_gguf_open (f.package, RUNNEL_LOAD_MODE_READ, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (RunnelGguf) gguf = make_changed (good, &cases[i]);
    g_autofree char *path = g_build_filename (f.folder, "bad.runnel", NULL);
    g_autoptr (GError) error = NULL;

    g_assert_nonnull (gguf);
    g_assert_true (g_file_set_contents (path, (const char *)
            runnel_mapping_data (runnel_gguf_mapping (gguf)),
            runnel_mapping_size (runnel_gguf_mapping (gguf)), NULL));
    g_assert_null (runnel_tokenizer_new_from_file (path, &error));
    g_test_message ("%s", error->message);
    g_assert_nonnull (strstr (error->message, cases[i].says));
    g_assert_error (error, RUNNEL_ERROR, (int) cases[i].code);
    g_unlink (path);
  }
  tear_down (&f);
}

static void
expect_refused (Fixture *f, GByteArray *file, RunnelError code,
                const char *says)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (g_file_set_contents (f->package, (const char *) file->data,
          file->len, NULL));
  g_assert_null (runnel_checkpoint_open (f->package, RUNNEL_LOAD_MODE_READ,
          &error));
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, says));
  g_assert_error (error, RUNNEL_ERROR, (int) code);
}

/* Where the description of a tensor says its type; sizes stand before it, its
 * offset after it. */
static gsize
find_description (GByteArray *file, const char *name)
{
  const guint8 *at = memmem (file->data, file->len, name, strlen (name));

  g_assert_nonnull (at);
  return at - file->data + strlen (name);
}

static void
put_u64 (GByteArray *file, gsize at, guint64 value)
{
  value = GUINT64_TO_LE (value);
  memcpy (file->data + at, &value, sizeof value);
}

static void
test_bad_layouts (void)
{
  g_autoptr (GVariant) report = NULL;
  g_autoptr (RunnelGguf) gguf = NULL;
  g_autoptr (GByteArray) file = g_byte_array_new ();
  g_autofree char *contents = NULL;
  gsize size, at, version;
  guint64 offset;
  Fixture f;

  set_up (&f, "llama", "");
  report = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO);
  g_assert_true (g_file_get_contents (f.package, &contents, &size, NULL));
  gguf = runnel_gguf_open (f.package, RUNNEL_LOAD_MODE_READ, NULL);
  g_byte_array_append (file, (const guint8 *) contents, size);
  at = find_description (file, "blk.1.attn_q.weight");
  offset = runnel_gguf_find_tensor (gguf, "blk.1.attn_q.weight")->offset
      - runnel_gguf_data_offset (gguf);

  put_u64 (file, at + 4 + 16 + 4, offset + 32);
  expect_refused (&f, file, RUNNEL_ERROR_MALFORMED, "alignment");
  put_u64 (file, at + 4 + 16 + 4, offset + 64);
  expect_refused (&f, file, RUNNEL_ERROR_MALFORMED, "overlap");
  put_u64 (file, at + 4 + 16 + 4, (guint64) size);
  expect_refused (&f, file, RUNNEL_ERROR_TRUNCATED, "blk.1.attn_q.weight");
  put_u64 (file, at + 4 + 16 + 4, offset);
  put_u64 (file, at + 4, 48);
  expect_refused (&f, file, RUNNEL_ERROR_MALFORMED, "not whole");
  put_u64 (file, at + 4, G_GUINT64_CONSTANT (1) << 62);
  expect_refused (&f, file, RUNNEL_ERROR_LIMIT, "overflow");
  put_u64 (file, at + 4, 32);
  expect_refused (&f, file, RUNNEL_ERROR_MISMATCH, "blk.1.attn_q.weight");
  put_u64 (file, at + 4, 64);
  file->data[at + 4 + 16 + 1] ^= 1;   /* a type of no number */
  expect_refused (&f, file, RUNNEL_ERROR_UNSUPPORTED, "is not supported");
  file->data[at + 4 + 16 + 1] ^= 1;
  version = find_description (file, "runnel.package.version");
  file->data[version + 4] = 2;
  expect_refused (&f, file, RUNNEL_ERROR_UNSUPPORTED, "of version 2");
  file->data[version + 4] = 1;
  g_byte_array_set_size (file, size - 64);
  expect_refused (&f, file, RUNNEL_ERROR_TRUNCATED, "truncated");
  tear_down (&f);
}

/* The data section is where pages begin, whatever the pages' size. */
static void
test_bad_data_section (void)
{
  g_autoptr (GVariant) report = NULL;
  g_autoptr (RunnelGguf) good = NULL;
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autoptr (GError) error = NULL;
  Fixture f;

  set_up (&f, "llama", "");
  report = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO);
  good = runnel_gguf_open (f.package, RUNNEL_LOAD_MODE_READ, NULL);
  for (gsize i = 0; i < runnel_gguf_n_keys (good); i++) {
    const char *key = runnel_gguf_key (good, i);
    RunnelGgufType type;
    gsize size;
    const guint8 *value = runnel_gguf_raw_value (good, key, &type, &size);

    if (strcmp (key, RUNNEL_PACKAGE_FILLER) != 0 &&
        strcmp (key, "general.alignment") != 0)
      runnel_gguf_writer_add_raw (writer, key, type, value, size);
  }
  for (gsize i = 0; i < runnel_gguf_n_tensors (good); i++) {
    const RunnelTensor *tensor = runnel_gguf_tensor (good, i);
    g_autoptr (GBytes) bytes = g_bytes_new (runnel_tensor_data (tensor),
        tensor->bytes);

    runnel_gguf_writer_add_tensor (writer, tensor->name, tensor->type,
        tensor->dims, tensor->n_dims, bytes);
  }
  g_assert_true (runnel_gguf_writer_save (writer, f.package, NULL));
  g_assert_null (runnel_model_open (f.package, RUNNEL_LOAD_MODE_MAP, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED);
  g_assert_nonnull (strstr (error->message, "a multiple of 16384"));
  tear_down (&f);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/package-sources/llama", "llama", test_folder);
  g_test_add_data_func ("/package-sources/qwen2", "qwen2", test_folder);
  g_test_add_data_func ("/package-sources/qwen3", "qwen3", test_folder);
  g_test_add_func ("/package-sources/facts", test_folder_facts);
  g_test_add_func ("/package-sources/bad-tokenizers", test_bad_tokenizers);
  g_test_add_func ("/package-sources/bad-layouts", test_bad_layouts);
  g_test_add_func ("/package-sources/bad-data-section",
      test_bad_data_section);
  return g_test_run ();
}
