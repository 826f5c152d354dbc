/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A package holds the same model as its source, in its own layout.
 */
#include <string.h>

#include "formats/gguf.h"
#include "formats/package.h"
#include "formats/verify.h"
#include "package-fixture.h"
#include "same-model.h"

static guint
lookup_uint (GVariant *report, const char *key)
{
  guint value = G_MAXUINT;

  g_assert_true (g_variant_lookup (report, key, "u", &value));
  return value;
}

/* ---- The same model -------------------------------------------------- */

typedef struct {
  RunnelTensorType type;
  const char *packed;
  guint n_embd;
} LosslessCase;

/* Of every type: the same logits, bit for bit. */
static void
test_lossless (gconstpointer data)
{
  static const char *const architectures[] = { "llama", "qwen2", "qwen3" };
  const LosslessCase *c = data;
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GVariant) report = NULL;
  g_autoptr (GError) error = NULL;
  PackageFixture f;

  model.type = c->type;
  model.n_embd = c->n_embd;
  model.tied = c->type % 2 == 0;
  model.architecture = architectures[c->type % 3];
  package_set_up (&f, &model);
  report = package_convert (&f, c->packed[0] == 'B' || c->packed[0] == 'F'
      ? RUNNEL_PACKAGE_TYPE_SOURCE : RUNNEL_PACKAGE_TYPE_AUTO, 0);
  package_assert_type (report, "blk.1.ffn_down.weight", c->packed, TRUE);
  package_assert_type (report, "output_norm.weight", "F32", TRUE);
  g_assert_cmpuint (lookup_uint (report, "n_lossless"), ==,
      lookup_uint (report, "n_tensors"));
  assert_same_model (f.package, f.source);
  runnel_verify_file (f.package, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  package_tear_down (&f);
}

static const LosslessCase lossless_cases[] = {
  { RUNNEL_TENSOR_Q4_0, "INT4_32", 64 },
  { RUNNEL_TENSOR_Q4_1, "INT4_32_OFFSET", 64 },
  { RUNNEL_TENSOR_Q5_0, "INT8_32", 64 },
  { RUNNEL_TENSOR_Q5_1, "INT8_32_OFFSET", 64 },
  { RUNNEL_TENSOR_Q8_0, "INT8_32", 64 },
  { RUNNEL_TENSOR_Q2_K, "Q2_K", 256 },
  { RUNNEL_TENSOR_Q3_K, "Q3_K", 256 },
  { RUNNEL_TENSOR_Q4_K, "Q4_K", 256 },
  { RUNNEL_TENSOR_Q5_K, "Q5_K", 256 },
  { RUNNEL_TENSOR_Q6_K, "Q6_K", 256 },
  { RUNNEL_TENSOR_F32, "F32", 64 },
  { RUNNEL_TENSOR_F16, "F16", 64 },
  { RUNNEL_TENSOR_BF16, "BF16", 64 },
  { RUNNEL_TENSOR_INT4_32, "INT4_32", 64 },
  { RUNNEL_TENSOR_INT4_64, "INT4_64", 64 },
  { RUNNEL_TENSOR_INT4_32_OFFSET, "INT4_32_OFFSET", 64 },
  { RUNNEL_TENSOR_INT4_64_OFFSET, "INT4_64_OFFSET", 64 },
  { RUNNEL_TENSOR_INT4_32_CENTRED, "INT4_32_CENTRED", 64 },
  { RUNNEL_TENSOR_INT4_64_CENTRED, "INT4_64_CENTRED", 64 },
  { RUNNEL_TENSOR_INT8_32, "INT8_32", 64 },
  { RUNNEL_TENSOR_INT8_64, "INT8_64", 64 },
  { RUNNEL_TENSOR_INT8_32_OFFSET, "INT8_32_OFFSET", 64 },
  { RUNNEL_TENSOR_INT8_64_OFFSET, "INT8_64_OFFSET", 64 },
};

/* Codes of 4 bits fit into 8, and every layout into its own values: what
 * repacking says is what dequantisation says. */
static void
test_wider_codes (void)
{
  static const RunnelTensorType types[] = {
    RUNNEL_TENSOR_Q4_0, RUNNEL_TENSOR_Q4_1, RUNNEL_TENSOR_INT4_64_CENTRED,
  };

  for (gsize i = 0; i < G_N_ELEMENTS (types); i++) {
    TinyModel model = TINY_MODEL_DEFAULT;
    g_autoptr (GVariant) report = NULL;
    PackageFixture f;

    model.type = types[i];
    package_set_up (&f, &model);
    report = package_convert (&f, RUNNEL_PACKAGE_TYPE_INT8, 0);
    package_assert_type (report, "blk.0.attn_q.weight", i == 0 ? "INT8_32"
        : i == 1 ? "INT8_32_OFFSET" : "INT8_64_OFFSET", TRUE);
    assert_same_model (f.package, f.source);
    package_tear_down (&f);
  }
}

/* Groups of 64 are two of 32; two equal ones of 32 are one of 64. */
static void
test_joined_groups (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GVariant) split = NULL, joined = NULL, kept = NULL;
  g_autofree char *contents = NULL;
  gsize size;
  PackageFixture f;

  model.type = RUNNEL_TENSOR_INT4_64_OFFSET;
  package_set_up (&f, &model);
  split = package_convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 32);
  package_assert_type (split, "blk.0.ffn_up.weight", "INT4_32_OFFSET", TRUE);
  assert_same_model (f.package, f.source);
  g_assert_true (g_file_get_contents (f.package, &contents, &size, NULL));
  g_assert_true (g_file_set_contents (f.source, contents, size, NULL));
  joined = package_convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
  package_assert_type (joined, "blk.0.ffn_up.weight", "INT4_64_OFFSET", TRUE);
  assert_same_model (f.package, f.source);
  kept = package_convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 32);
  package_assert_type (kept, "blk.0.ffn_up.weight", "INT4_32_OFFSET", TRUE);
  package_tear_down (&f);
}

/* ---- What the file says ---------------------------------------------- */

static void
test_layout (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GVariant) report = NULL;
  g_autoptr (RunnelGguf) gguf = NULL;
  g_autoptr (GVariant) description = NULL, files = NULL;
  g_autofree char *contents = NULL, *digest = NULL;
  const char *file, *said;
  gsize size;
  PackageFixture f;

  package_set_up (&f, &model);
  report = package_convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
  gguf = runnel_gguf_open (f.package, RUNNEL_LOAD_MODE_MAP, NULL);
  g_assert_true (runnel_package_is (gguf));
  g_assert_cmpuint (runnel_gguf_data_offset (gguf) % 16384, ==, 0);
  g_assert_cmpuint (runnel_gguf_header_size (gguf), ==,
      runnel_gguf_data_offset (gguf));
  for (gsize i = 0; i < runnel_gguf_n_tensors (gguf); i++)
    g_assert_cmpuint (runnel_gguf_tensor (gguf, i)->offset % 64, ==, 0);
  g_assert_true (g_file_get_contents (f.source, &contents, &size, NULL));
  digest = g_compute_checksum_for_data (G_CHECKSUM_SHA256,
      (const guchar *) contents, size);
  description = g_variant_ref_sink (runnel_package_describe (gguf));
  files = g_variant_lookup_value (description, "source_files", NULL);
  g_assert_cmpuint (g_variant_n_children (files), ==, 1);
  g_variant_get_child (files, 0, "(&s&s)", &file, &said);
  g_assert_cmpstr (file, ==, "source.gguf");
  g_assert_cmpstr (said, ==, digest);
  package_tear_down (&f);
}

static void
copy_file (RunnelGgufWriter *writer, const RunnelGguf *from)
{
  for (gsize i = 0; i < runnel_gguf_n_keys (from); i++) {
    const char *key = runnel_gguf_key (from, i);
    RunnelGgufType type;
    gsize size;
    const guint8 *value = runnel_gguf_raw_value (from, key, &type, &size);

    runnel_gguf_writer_add_raw (writer, key, type, value, size);
  }
  for (gsize i = 0; i < runnel_gguf_n_tensors (from); i++) {
    const RunnelTensor *tensor = runnel_gguf_tensor (from, i);
    g_autoptr (GBytes) bytes = g_bytes_new (runnel_tensor_data (tensor),
        tensor->bytes);

    runnel_gguf_writer_add_tensor (writer, tensor->name, tensor->type,
        tensor->dims, tensor->n_dims, bytes);
  }
}

/* An output matrix that is the embedding once more is stored once. */
static void
test_tied (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (RunnelGguf) gguf = NULL, package = NULL;
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autoptr (GVariant) report = NULL;
  g_autoptr (GBytes) bytes = NULL;
  const RunnelTensor *embedding;
  gboolean said = FALSE;
  PackageFixture f;

  package_set_up (&f, &model);
  gguf = runnel_gguf_open (f.source, RUNNEL_LOAD_MODE_READ, NULL);
  embedding = runnel_gguf_find_tensor (gguf, "token_embd.weight");
  copy_file (writer, gguf);
  bytes = g_bytes_new (runnel_tensor_data (embedding), embedding->bytes);
  runnel_gguf_writer_add_tensor (writer, "output.weight", embedding->type,
      embedding->dims, embedding->n_dims, bytes);
  g_assert_true (runnel_gguf_writer_save (writer, f.source, NULL));
  report = package_convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
  g_variant_lookup (report, "output_was_embedding", "b", &said);
  g_assert_true (said);
  package = runnel_gguf_open (f.package, RUNNEL_LOAD_MODE_MAP, NULL);
  g_assert_null (runnel_gguf_find_tensor (package, "output.weight"));
  assert_same_model (f.package, f.source);
  package_tear_down (&f);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (lossless_cases); i++) {
    g_autofree char *path = g_strdup_printf ("/package/lossless/%s",
        runnel_tensor_type_info (lossless_cases[i].type)->name);

    g_test_add_data_func (path, &lossless_cases[i], test_lossless);
  }
  g_test_add_func ("/package/wider-codes", test_wider_codes);
  g_test_add_func ("/package/joined-groups", test_joined_groups);
  g_test_add_func ("/package/layout", test_layout);
  g_test_add_func ("/package/tied", test_tied);
  return g_test_run ();
}
