/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "error.h"
#include "formats/converter.h"
#include "formats/gguf.h"
#include "formats/package.h"
#include "formats/repack.h"
#include "formats/verify.h"
#include "model/model-private.h"
#include "model/sequence.h"
#include "tiny-model.h"

#define N_TOKENS 40

typedef struct {
  char *folder, *source, *package;
} Fixture;

static void
set_up (Fixture *f, const TinyModel *model)
{
  g_autofree char *made = tiny_model_write (model);
  GError *error = NULL;

  f->folder = g_dir_make_tmp ("runnel-package-XXXXXX", &error);
  g_assert_no_error (error);
  f->source = g_build_filename (f->folder, "source.gguf", NULL);
  f->package = g_build_filename (f->folder, "model.runnel", NULL);
  g_assert_cmpint (g_rename (made, f->source), ==, 0);
}

static guint
count_files (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

static void
tear_down (Fixture *f)
{
  g_unlink (f->source);
  g_unlink (f->package);
  /* Nothing half made is left. */
  g_assert_cmpint (g_rmdir (f->folder), ==, 0);
  g_free (f->folder);
  g_free (f->source);
  g_free (f->package);
}

static GVariant *
convert (Fixture *f, RunnelPackageType type, guint group)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  GError *error = NULL;
  GVariant *report;

  g_object_set (converter, "type", type, "group", group, NULL);
  report = runnel_converter_convert (converter, f->source, f->package, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  return report;
}

/* What the report says of a tensor. */
static void
find_tensor (GVariant *report, const char *wanted, char **ret_type,
             gboolean *ret_lossless, double *ret_error)
{
  g_autoptr (GVariant) tensors
      = g_variant_lookup_value (report, "tensors", NULL);
  GVariantIter iter;
  const char *name, *type;

  g_variant_iter_init (&iter, tensors);
  while (g_variant_iter_next (&iter, "(&ss&sbdtt)", &name, NULL, &type,
          ret_lossless, ret_error, NULL, NULL))
    if (strcmp (name, wanted) == 0) {
      *ret_type = g_strdup (type);
      return;
    }
  g_assert_not_reached ();
}

static void
assert_type (GVariant *report, const char *name, const char *expected,
             gboolean expected_lossless)
{
  g_autofree char *type = NULL;
  gboolean lossless = FALSE;
  double error = -1;

  find_tensor (report, name, &type, &lossless, &error);
  g_assert_cmpstr (type, ==, expected);
  g_assert_cmpint (lossless, ==, expected_lossless);
  if (lossless)
    g_assert_cmpfloat (error, ==, 0);
  else
    g_assert_cmpfloat (error, >, 0);
}

static guint
lookup_uint (GVariant *report, const char *key)
{
  guint value = G_MAXUINT;

  g_assert_true (g_variant_lookup (report, key, "u", &value));
  return value;
}

/* ---- The same model -------------------------------------------------- */

/* Logits after each of some tokens. */
static float *
compute_logits (const char *path, gsize *ret_n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model = runnel_model_open (path,
      RUNNEL_LOAD_MODE_MAP, &error);
  g_autoptr (RunnelBackend) backend
      = runnel_backend_get ("cpu", 1, NULL, NULL);
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (RunnelSequence) sequence = NULL;
  gint32 tokens[N_TOKENS];
  float *logits;
  guint n_vocab;

  g_assert_no_error (error);
  n_vocab = runnel_model_get_n_vocab (model);
  engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  sequence = runnel_sequence_new (engine, 0, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N_TOKENS; i++)
    tokens[i] = (i * 37 + 5) % n_vocab;
  *ret_n = N_TOKENS * n_vocab;
  logits = g_new (float, *ret_n);
  runnel_sequence_forward (sequence, tokens, N_TOKENS, logits, *ret_n,
      &error);
  g_assert_no_error (error);
  return logits;
}

static void
assert_same_model (Fixture *f)
{
  g_autoptr (RunnelTokenizer) tokenizer = runnel_tokenizer_new_from_file (
      f->source, NULL);
  g_autoptr (RunnelTokenizer) packed = NULL;
  g_autoptr (GError) error = NULL;
  gsize n, m;
  g_autofree float *expected = compute_logits (f->source, &n);
  g_autofree float *logits = compute_logits (f->package, &m);
  const gint32 *stops, *packed_stops;
  gsize n_stops, n_packed_stops;

  g_assert_cmpmem (logits, m * sizeof (float), expected, n * sizeof (float));
  packed = runnel_tokenizer_new_from_file (f->package, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (runnel_tokenizer_get_digest (packed), ==,
      runnel_tokenizer_get_digest (tokenizer));
  g_assert_cmpstr (runnel_tokenizer_get_chat_template (packed), ==,
      runnel_tokenizer_get_chat_template (tokenizer));
  g_assert_cmpint (runnel_tokenizer_get_bos (packed), ==,
      runnel_tokenizer_get_bos (tokenizer));
  g_assert_cmpint (runnel_tokenizer_get_eos (packed), ==,
      runnel_tokenizer_get_eos (tokenizer));
  stops = runnel_tokenizer_get_stop_tokens (tokenizer, &n_stops);
  packed_stops = runnel_tokenizer_get_stop_tokens (packed, &n_packed_stops);
  g_assert_cmpmem (packed_stops, n_packed_stops * sizeof *stops, stops,
      n_stops * sizeof *stops);
}

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
  Fixture f;

  model.type = c->type;
  model.n_embd = c->n_embd;
  model.tied = c->type % 2 == 0;
  model.architecture = architectures[c->type % 3];
  set_up (&f, &model);
  report = convert (&f, c->packed[0] == 'B' || c->packed[0] == 'F'
      ? RUNNEL_PACKAGE_TYPE_SOURCE : RUNNEL_PACKAGE_TYPE_AUTO, 0);
  assert_type (report, "blk.1.ffn_down.weight", c->packed, TRUE);
  assert_type (report, "output_norm.weight", "F32", TRUE);
  g_assert_cmpuint (lookup_uint (report, "n_lossless"), ==,
      lookup_uint (report, "n_tensors"));
  assert_same_model (&f);
  runnel_verify_file (f.package, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  tear_down (&f);
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
    Fixture f;

    model.type = types[i];
    set_up (&f, &model);
    report = convert (&f, RUNNEL_PACKAGE_TYPE_INT8, 0);
    assert_type (report, "blk.0.attn_q.weight", i == 0 ? "INT8_32"
        : i == 1 ? "INT8_32_OFFSET" : "INT8_64_OFFSET", TRUE);
    assert_same_model (&f);
    tear_down (&f);
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
  Fixture f;

  model.type = RUNNEL_TENSOR_INT4_64_OFFSET;
  set_up (&f, &model);
  split = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 32);
  assert_type (split, "blk.0.ffn_up.weight", "INT4_32_OFFSET", TRUE);
  assert_same_model (&f);
  g_assert_true (g_file_get_contents (f.package, &contents, &size, NULL));
  g_assert_true (g_file_set_contents (f.source, contents, size, NULL));
  joined = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
  assert_type (joined, "blk.0.ffn_up.weight", "INT4_64_OFFSET", TRUE);
  assert_same_model (&f);
  kept = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 32);
  assert_type (kept, "blk.0.ffn_up.weight", "INT4_32_OFFSET", TRUE);
  tear_down (&f);
}

/* ---- Quantised anew -------------------------------------------------- */

static void
test_quantised (void)
{
  static const struct {
    RunnelPackageType type;
    guint group;
    const char *packed;
    double bound;
  } cases[] = {
    { RUNNEL_PACKAGE_TYPE_AUTO, 0, "INT4_64_OFFSET", 0.15 },
    { RUNNEL_PACKAGE_TYPE_INT4, 32, "INT4_32_OFFSET", 0.15 },
    { RUNNEL_PACKAGE_TYPE_INT8, 0, "INT8_64", 0.01 },
    { RUNNEL_PACKAGE_TYPE_F16, 0, "F16", 0.001 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    TinyModel model = TINY_MODEL_DEFAULT;
    g_autoptr (GVariant) report = NULL;
    g_autofree char *type = NULL;
    g_autofree float *logits = NULL;
    gboolean lossless = TRUE;
    double error = 0;
    Fixture f;
    gsize n;

    model.type = RUNNEL_TENSOR_F32;
    set_up (&f, &model);
    report = convert (&f, cases[i].type, cases[i].group);
    assert_type (report, "blk.0.attn_v.weight", cases[i].packed, FALSE);
    find_tensor (report, "blk.0.attn_v.weight", &type, &lossless, &error);
    g_assert_cmpfloat (error, <, cases[i].bound);
    logits = compute_logits (f.package, &n);
    tear_down (&f);
  }
}

static void
test_rules (void)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GVariant) report = NULL;
  TinyModel model = TINY_MODEL_DEFAULT;
  GError *error = NULL;
  Fixture f;

  set_up (&f, &model);
  runnel_converter_keep (converter, "blk.*", RUNNEL_PACKAGE_TYPE_F16);
  runnel_converter_keep (converter, "*ffn*", RUNNEL_PACKAGE_TYPE_SOURCE);
  runnel_converter_keep (converter, "*.attn_?.weight",
      RUNNEL_PACKAGE_TYPE_INT8);
  report = runnel_converter_convert (converter, f.source, f.package, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  assert_type (report, "token_embd.weight", "INT4_32_OFFSET", TRUE);
  assert_type (report, "blk.1.attn_output.weight", "F16", FALSE);
  assert_type (report, "blk.1.ffn_gate.weight", "Q4_1", TRUE);
  assert_type (report, "blk.1.attn_k.weight", "INT8_32_OFFSET", TRUE);
  assert_type (report, "blk.1.ffn_norm.weight", "F32", TRUE);
  tear_down (&f);
}

/* What weighs nothing may be lost for what weighs much. */
static void
test_importance (void)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GVariant) report = NULL;
  float importance[64];
  GError *error = NULL;
  Fixture f;

  model.type = RUNNEL_TENSOR_F32;
  set_up (&f, &model);
  for (guint i = 0; i < 64; i++)
    importance[i] = i % 7;
  runnel_converter_set_importance (converter, "blk.0.attn_q.weight",
      importance, 64);
  report = runnel_converter_convert (converter, f.source, f.package, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  assert_type (report, "blk.0.attn_q.weight", "INT4_64_OFFSET", FALSE);
  tear_down (&f);
}

#define N_FEW 8

/* What the first layer's queries lose on a few tokens. */
static double
get_query_error (RunnelModel *source, RunnelModel *package)
{
  RunnelCheckpoint *from = runnel_model_get_checkpoint (source);
  RunnelCheckpoint *to = runnel_model_get_checkpoint (package);
  const RunnelTensor *q = runnel_checkpoint_tensor (from,
      "blk.0.attn_q.weight");
  const RunnelTensor *rounded = runnel_checkpoint_tensor (to,
      "blk.0.attn_q.weight");
  const RunnelTensor *embedding = runnel_checkpoint_tensor (from,
      "token_embd.weight");
  float norm[64];
  double error = 0;

  runnel_tensor_type_dequantize_row (RUNNEL_TENSOR_F32, runnel_tensor_data (
          runnel_checkpoint_tensor (from, "blk.0.attn_norm.weight")), 64, 0,
      norm);
  for (guint token = 0; token < N_FEW; token++)
    for (guint row = 0; row < q->dims[1]; row++) {
      float x[64], exact[64], got[64];
      double miss = 0;

      runnel_tensor_type_dequantize_row (embedding->type,
          runnel_tensor_data (embedding), 64, token, x);
      runnel_tensor_type_dequantize_row (q->type, runnel_tensor_data (q), 64,
          row, exact);
      runnel_tensor_type_dequantize_row (rounded->type,
          runnel_tensor_data (rounded), 64, row, got);
      for (guint c = 0; c < 64; c++)
        miss += norm[c] * x[c] * (got[c] - exact[c]);
      error += miss * miss;
    }
  return error;
}

/* Calibrated by them, their outputs lose less than without. */
static void
test_calibration (void)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (RunnelCalibration) calibration = NULL;
  g_autoptr (RunnelModel) source = NULL;
  double errors[2];
  gint32 tokens[250];
  GError *error = NULL;
  Fixture f;

  tiny.type = RUNNEL_TENSOR_F32;
  set_up (&f, &tiny);
  source = runnel_model_open (f.source, RUNNEL_LOAD_MODE_MAP, &error);
  g_assert_no_error (error);
  backend = runnel_backend_get ("cpu", 1, NULL, &error);
  g_assert_no_error (error);
  engine = runnel_engine_get (source, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  calibration = runnel_calibration_new (engine, &error);
  for (guint i = 0; i < G_N_ELEMENTS (tokens); i++)
    tokens[i] = i % N_FEW;
  runnel_calibration_feed (calibration, tokens, G_N_ELEMENTS (tokens), NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GVariant) report = NULL;
    g_autoptr (RunnelModel) package = NULL;

    report = runnel_converter_convert (converter, f.source, f.package, NULL,
        NULL, NULL, &error);
    g_assert_no_error (error);
    assert_type (report, "blk.0.attn_q.weight", "INT4_64_OFFSET", FALSE);
    package = runnel_model_open (f.package, RUNNEL_LOAD_MODE_READ, &error);
    g_assert_no_error (error);
    errors[i] = get_query_error (source, package);
    g_clear_object (&package);
    g_unlink (f.package);
    runnel_converter_set_calibration (converter, calibration);
  }
  g_test_message ("error of queries %g, calibrated %g", errors[0], errors[1]);
  g_assert_cmpfloat (errors[1], <, 0.7 * errors[0]);
  tear_down (&f);
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
  Fixture f;

  set_up (&f, &model);
  report = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
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
  tear_down (&f);
}

/* The digest that is stored is that of the header with zeros in its place. */
static void
test_own_digest (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GVariant) report = NULL;
  g_autoptr (RunnelGguf) gguf = NULL;
  g_autofree char *contents = NULL, *digest = NULL, *said = NULL;
  gsize size;
  Fixture f;

  set_up (&f, &model);
  report = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
  gguf = runnel_gguf_open (f.package, RUNNEL_LOAD_MODE_MAP, NULL);
  g_assert_true (g_file_get_contents (f.package, &contents, &size, NULL));
  said = g_strndup (contents + 57, 64);
  memset (contents + 57, '0', 64);
  digest = g_compute_checksum_for_data (G_CHECKSUM_SHA256,
      (const guchar *) contents, runnel_gguf_data_offset (gguf));
  g_assert_cmpstr (said, ==, digest);
  tear_down (&f);
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
  Fixture f;

  set_up (&f, &model);
  gguf = runnel_gguf_open (f.source, RUNNEL_LOAD_MODE_READ, NULL);
  embedding = runnel_gguf_find_tensor (gguf, "token_embd.weight");
  copy_file (writer, gguf);
  bytes = g_bytes_new (runnel_tensor_data (embedding), embedding->bytes);
  runnel_gguf_writer_add_tensor (writer, "output.weight", embedding->type,
      embedding->dims, embedding->n_dims, bytes);
  g_assert_true (runnel_gguf_writer_save (writer, f.source, NULL));
  report = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
  g_variant_lookup (report, "output_was_embedding", "b", &said);
  g_assert_true (said);
  package = runnel_gguf_open (f.package, RUNNEL_LOAD_MODE_MAP, NULL);
  g_assert_null (runnel_gguf_find_tensor (package, "output.weight"));
  assert_same_model (&f);
  tear_down (&f);
}

/* ---- Nothing half made, nothing of others destroyed ------------------ */

static void
expect_failure (Fixture *f, const char *output, GCancellable *cancellable,
                RunnelError code, const char *message)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_converter_convert (converter, f->source, output, NULL,
          NULL, cancellable, &error));
  g_test_message ("%s", error->message);
  g_assert_error (error, RUNNEL_ERROR, (int) code);
  g_assert_nonnull (strstr (error->message, message));
}

static void
test_output (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autofree char *before = NULL, *after = NULL, *other = NULL;
  gsize n, m;
  Fixture f;

  set_up (&f, &model);
  other = g_build_filename (f.folder, "other", NULL);
  g_assert_true (g_file_get_contents (f.source, &before, &n, NULL));
  expect_failure (&f, f.source, NULL, RUNNEL_ERROR_INVALID_ARGUMENT,
      "is what the package is made of");
  g_assert_cmpint (link (f.source, other), ==, 0);
  expect_failure (&f, other, NULL, RUNNEL_ERROR_INVALID_ARGUMENT,
      "is what the package is made of");
  g_unlink (other);
  g_assert_cmpint (symlink (f.source, other), ==, 0);
  expect_failure (&f, other, NULL, RUNNEL_ERROR_INVALID_ARGUMENT,
      "is what the package is made of");
  g_unlink (other);
  expect_failure (&f, f.folder, NULL, RUNNEL_ERROR_INVALID_ARGUMENT,
      "is no file that could be replaced");
  expect_failure (&f, "/dev/full", NULL, RUNNEL_ERROR_INVALID_ARGUMENT,
      "is no file that could be replaced");
  expect_failure (&f, "/no/such/folder/model", NULL, RUNNEL_ERROR_IO,
      "/no/such/folder/model: cannot be written");
  g_assert_true (g_file_get_contents (f.source, &after, &m, NULL));
  g_assert_cmpmem (before, n, after, m);
  tear_down (&f);
}

static void
on_progress (double fraction, gpointer user_data)
{
  GCancellable *cancellable = user_data;

  g_assert_cmpfloat (fraction, <=, 1);
  if (fraction > 0.6)
    g_cancellable_cancel (cancellable);
}

/* The package that was there before stays. */
static void
test_cancelled (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GError) error = NULL;
  g_autofree char *contents = NULL;
  gsize size;
  Fixture f;

  set_up (&f, &model);
  g_assert_true (g_file_set_contents (f.package, "before", -1, NULL));
  g_assert_null (runnel_converter_convert (converter, f.source, f.package,
          on_progress, cancellable, cancellable, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED);
  g_assert_true (g_file_get_contents (f.package, &contents, &size, NULL));
  g_assert_cmpmem (contents, size, "before", 6);
  g_assert_cmpuint (count_files (f.folder), ==, 2);
  tear_down (&f);
}

/* Where the disk is full, or as good as. */
static void
test_no_room (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  struct rlimit before, limit;
  Fixture f;

  set_up (&f, &model);
  g_assert_cmpint (getrlimit (RLIMIT_FSIZE, &before), ==, 0);
  limit = before;
  limit.rlim_cur = 30000;
  signal (SIGXFSZ, SIG_IGN);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &limit), ==, 0);
  expect_failure (&f, f.package, NULL, RUNNEL_ERROR_IO, "cannot be written");
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &before), ==, 0);
  g_assert_cmpuint (count_files (f.folder), ==, 1);
  tear_down (&f);
}

static void
on_shortened (double fraction, gpointer user_data)
{
  if (fraction > 0.7)
    g_assert_cmpint (truncate (user_data, 40000), ==, 0);
}

/* A source that shrinks under the conversion is an error and no signal. */
static void
test_source_shrinks (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GError) error = NULL;
  Fixture f;

  set_up (&f, &model);
  g_assert_null (runnel_converter_convert (converter, f.source, f.package,
          on_shortened, f.source, NULL, &error));
  g_test_message ("%s", error->message);
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_TRUNCATED);
  g_assert_cmpuint (count_files (f.folder), ==, 1);
  tear_down (&f);
}

static void
on_converted (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GError) error = NULL;
  GVariant **report = user_data;

  *report = runnel_converter_convert_finish (RUNNEL_CONVERTER (source),
      result, &error);
  g_assert_no_error (error);
}

static void
test_async (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GVariant) report = NULL;
  Fixture f;

  set_up (&f, &model);
  runnel_converter_convert_async (converter, f.source, f.package, NULL,
      on_converted, &report);
  while (report == NULL)
    g_main_context_iteration (NULL, TRUE);
  assert_same_model (&f);
  tear_down (&f);
}

/* ---- Verifying ------------------------------------------------------- */

static void
write_changed (Fixture *f, const char *contents, gsize size, gsize at)
{
  g_autofree char *changed = g_memdup2 (contents, size);

  changed[at] ^= 0x10;
  g_assert_true (g_file_set_contents (f->package, changed, size, NULL));
}

static void
expect_corrupt (Fixture *f, const char *message)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model = NULL;

  g_assert_false (runnel_verify_file (f->package, NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CORRUPT);
  g_assert_nonnull (strstr (error->message, message));
  g_clear_error (&error);
  model = runnel_model_open (f->package, RUNNEL_LOAD_MODE_READ, NULL);
  if (model == NULL)
    return;
  g_assert_false (runnel_model_verify (model, NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CORRUPT);
}

static void
test_verify (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GVariant) report = NULL;
  g_autoptr (RunnelGguf) gguf = NULL;
  g_autoptr (RunnelModel) loaded = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *contents = NULL, *longer = NULL;
  gsize size, n, gap = 0;
  const guint8 *filler;
  RunnelGgufType type;
  Fixture f;

  model.type = RUNNEL_TENSOR_Q4_0;   /* an odd number of tiles of 288 bytes */
  set_up (&f, &model);
  report = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
  g_assert_true (g_file_get_contents (f.package, &contents, &size, NULL));
  gguf = runnel_gguf_open (f.package, RUNNEL_LOAD_MODE_READ, NULL);
  loaded = runnel_model_open (f.package, RUNNEL_LOAD_MODE_MAP, NULL);
  g_assert_true (runnel_model_verify (loaded, NULL, NULL, NULL, &error));
  g_assert_no_error (error);
  for (gsize i = 0; i < runnel_gguf_n_tensors (gguf); i++) {
    const RunnelTensor *tensor = runnel_gguf_tensor (gguf, i);
    g_autofree char *quoted = g_strdup_printf ("'%s'", tensor->name);

    write_changed (&f, contents, size, tensor->offset);
    expect_corrupt (&f, quoted);
    write_changed (&f, contents, size, tensor->offset + tensor->bytes - 1);
    expect_corrupt (&f, quoted);
    if ((tensor->offset + tensor->bytes) % 64 != 0)
      gap = tensor->offset + tensor->bytes;
  }
  g_assert_cmpuint (gap, >, 0);
  write_changed (&f, contents, size, gap);
  expect_corrupt (&f, "is not 0");
  /* The stored digest, and the filler. */
  write_changed (&f, contents, size, 60);
  expect_corrupt (&f, "the header differs");
  filler = runnel_gguf_raw_value (gguf, RUNNEL_PACKAGE_FILLER, &type, &n);
  write_changed (&f, contents, size, filler
      - runnel_mapping_data (runnel_gguf_mapping (gguf)) + n - 1);
  expect_corrupt (&f, "the header differs");
  longer = g_malloc0 (size + 64);
  memcpy (longer, contents, size);
  g_assert_true (g_file_set_contents (f.package, longer, size + 64, NULL));
  expect_corrupt (&f, "belong to no tensor");
  tear_down (&f);
}

static void
test_verify_others (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GVariant) report = NULL;
  Fixture f;

  set_up (&f, &model);
  g_assert_false (runnel_verify_file (f.source, NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED);
  g_clear_error (&error);
  g_assert_false (runnel_verify_file ("/no/such/file", NULL, NULL, NULL,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_clear_error (&error);
  report = convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
  g_cancellable_cancel (cancellable);
  g_assert_false (runnel_verify_file (f.package, NULL, NULL, cancellable,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED);
  tear_down (&f);
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
  g_test_add_func ("/package/quantised", test_quantised);
  g_test_add_func ("/package/rules", test_rules);
  g_test_add_func ("/package/importance", test_importance);
  g_test_add_func ("/package/calibration", test_calibration);
  g_test_add_func ("/package/layout", test_layout);
  g_test_add_func ("/package/own-digest", test_own_digest);
  g_test_add_func ("/package/tied", test_tied);
  g_test_add_func ("/package/output", test_output);
  g_test_add_func ("/package/cancelled", test_cancelled);
  g_test_add_func ("/package/no-room", test_no_room);
  g_test_add_func ("/package/source-shrinks", test_source_shrinks);
  g_test_add_func ("/package/async", test_async);
  g_test_add_func ("/package/verify", test_verify);
  g_test_add_func ("/package/verify-others", test_verify_others);
  return g_test_run ();
}
