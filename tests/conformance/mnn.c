/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Packages that MNN's exporter wrote, DIR/mnn-tiny/FOLDER, against the models
 * they were made of (DIR/tiny/MODEL): hyperparameters; codes, scales and
 * decoded matrices by their SHA-256, those with rounded scales by their rows
 * to 1e-3; logits to rms 0.12 and max 0.9, and those of the package that is
 * made of them bit for bit; tokens of the texts of DIR/tokenizer/qwen3.jsonl.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <glib/gstdio.h>

#include "formats/checkpoint.h"
#include "formats/converter.h"
#include "formats/json.h"
#include "logits.h"
#include "model/architecture.h"
#include "text/tokenizer-mtok.h"

static guint passed, failed, not_run;

static void
report (const char *folder, const char *what, gboolean ok)
{
  printf ("  %-36s %s: %s\n", folder, what, ok ? "ok" : "FAILED");
  *(ok ? &passed : &failed) += 1;
}

static void
skip (const char *folder, const char *what)
{
  printf ("  %-36s not run: %s\n", folder, what);
  not_run++;
}

/* --- weights --- */

/* One row's codes as the package has them, and its scales in its order. */
static void
hash_row (const RunnelTensor *tensor, RunnelTileForm form, guint64 row,
          GChecksum *codes, GChecksum *scales)
{
  const guint8 *p = runnel_tensor_data (tensor)
      + row / RUNNEL_TILE_ROWS * runnel_tile_bytes (form, tensor->dims[0]);
  guint r = row % RUNNEL_TILE_ROWS;

  for (guint64 c = 0; c < tensor->dims[0]; c += RUNNEL_TILE_COLUMNS) {
    guint8 unpacked[RUNNEL_TILE_COLUMNS];

    if (c % (guint) form.group == 0) {
      if (form.offset)
        g_checksum_update (scales, p + 2 * RUNNEL_TILE_ROWS + 2 * r, 2);
      g_checksum_update (scales, p + 2 * r, 2);
      p += runnel_tile_head_bytes (form);
    }
    for (guint i = 0; i < RUNNEL_TILE_COLUMNS; i++)
      unpacked[i] = form.bits == 8
          ? p[32 * (i / 4) + 4 * r + i % 4] ^ 0x80
          : p[32 * (i % 16 / 4) + 4 * r + i % 4] >> i / 16 * 4 & 15;
    g_checksum_update (codes, unpacked, sizeof unpacked);
    p += runnel_tile_code_bytes (form);
  }
}

static gboolean
is_sum (GChecksum *sum, const RunnelJsonNode *linear, const char *key)
{
  const RunnelJsonNode *node = runnel_json_node_member (linear, key);

  return node != NULL && strcmp (g_checksum_get_string (sum),
      runnel_json_node_string (node, NULL)) == 0;
}

static gboolean
check_linear (const RunnelTensor *tensor, const RunnelJsonNode *linear,
              gboolean exact)
{
  g_autoptr (GChecksum) codes = g_checksum_new (G_CHECKSUM_SHA256);
  g_autoptr (GChecksum) scales = g_checksum_new (G_CHECKSUM_SHA256);
  g_autoptr (GChecksum) floats = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree float *values = NULL;
  RunnelTileForm form;

  if (tensor == NULL || !runnel_blocks_tile_form (tensor->type, &form))
    return FALSE;
  values = g_new (float, tensor->dims[0]);
  for (guint64 row = 0; row < tensor->dims[1]; row++) {
    hash_row (tensor, form, row, codes, scales);
    runnel_tensor_type_dequantize_row (tensor->type,
        runnel_tensor_data (tensor), tensor->dims[0], row, values);
    g_checksum_update (floats, (const guchar *) values, 4 * tensor->dims[0]);
  }
  return is_sum (codes, linear, "sha256_codes_u8")
      && (!exact || (is_sum (scales, linear, "sha256_alpha")
                     && is_sum (floats, linear, "sha256_float32")));
}

/* "model.layers.0.mlp.up_proj.weight[0]" and "embedding[5]". */
static gboolean
check_row (RunnelCheckpoint *checkpoint, const char *name,
           const RunnelJsonNode *row, double tolerance)
{
  const char *bracket = strchr (name, '[');
  g_autofree char *hf = g_strndup (name, bracket - name);
  g_autofree char *gguf = NULL;
  g_autofree float *values = NULL;
  const RunnelTensor *tensor;
  RunnelPart part = RUNNEL_PART_EMBEDDING;
  guint layer = 0;
  double largest = 0;

  if (strcmp (hf, "embedding") != 0
      && !runnel_part_find_hf (hf, &part, &layer))
    return FALSE;
  gguf = runnel_part_dup_name (part, layer);
  tensor = runnel_checkpoint_tensor (checkpoint, gguf);
  if (tensor == NULL || tensor->dims[0] != runnel_json_node_size (row))
    return FALSE;
  values = g_new (float, tensor->dims[0]);
  runnel_tensor_type_dequantize_row (tensor->type,
      runnel_tensor_data (tensor), tensor->dims[0],
      g_ascii_strtoull (bracket + 1, NULL, 10), values);
  for (gsize i = 0; i < tensor->dims[0]; i++)
    largest = MAX (largest, fabs (values[i]));
  for (gsize i = 0; i < tensor->dims[0]; i++)
    if (!(fabs (runnel_json_node_double (runnel_json_node_item (row, i))
                - values[i]) <= tolerance * largest))
      return FALSE;
  return TRUE;
}

static void
check_weights (const char *folder, RunnelCheckpoint *checkpoint,
               const RunnelJsonNode *reference)
{
  const RunnelJsonNode *linears = runnel_json_node_member (reference,
      "linears");
  const RunnelJsonNode *rows = runnel_json_node_member (reference, "rows");
  gboolean exact = strcmp (runnel_json_node_string (
      runnel_json_node_member (reference, "alpha"), NULL), "float16") == 0;
  gboolean tied
      = runnel_checkpoint_hyperparameters (checkpoint)->tied;
  gboolean ok = TRUE;

  for (gsize i = 0; i < runnel_json_node_size (linears); i++) {
    g_autofree char *name = NULL;
    RunnelPart part;
    guint layer;

    if (!runnel_part_find_hf (runnel_json_node_key (linears, i, NULL), &part,
            &layer)) {
      ok = FALSE;
      continue;
    }
    if (tied && part == RUNNEL_PART_OUTPUT)
      part = RUNNEL_PART_EMBEDDING;
    name = runnel_part_dup_name (part, layer);
    ok &= check_linear (runnel_checkpoint_tensor (checkpoint, name),
        runnel_json_node_value (linears, i), exact);
  }
  report (folder, exact ? "codes, scales and matrices, bit for bit" : "codes",
      ok);
  ok = TRUE;
  for (gsize i = 0; i < runnel_json_node_size (rows); i++)
    ok &= check_row (checkpoint, runnel_json_node_key (rows, i, NULL),
        runnel_json_node_value (rows, i), exact ? 1e-6 : 1e-3);
  report (folder, "rows", ok);
}

/* --- against the model it was made of --- */

static void
check_hyperparameters (const char *folder, RunnelCheckpoint *checkpoint,
                       const char *hf)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelCheckpoint) source = runnel_checkpoint_open (hf,
      RUNNEL_LOAD_MODE_MAP, &error);
  const RunnelHyperparameters *a, *b;

  if (source == NULL) {
    skip (folder, error->message);
    return;
  }
  a = runnel_checkpoint_hyperparameters (checkpoint);
  b = runnel_checkpoint_hyperparameters (source);
  report (folder, "hyperparameters",
      strcmp (a->architecture, b->architecture) == 0
      && a->n_layers == b->n_layers && a->n_embd == b->n_embd
      && a->n_ff == b->n_ff && a->n_heads == b->n_heads
      && a->n_kv_heads == b->n_kv_heads && a->head_dim == b->head_dim
      && a->n_vocab == b->n_vocab && a->context_length == b->context_length
      && fabs (a->norm_epsilon / b->norm_epsilon - 1) < 1e-6
      && a->rope_base == b->rope_base
      && a->rope_dimensions == b->rope_dimensions
      && a->rope_style == b->rope_style
      && a->rope_scaling == b->rope_scaling && a->tied == b->tied);
}

/* The tokenizer of the package and the one of the model give the same tokens;
 * marks that NFC would join are left as they are in both. */
static void
check_tokens (const char *folder, const char *what, const char *path,
              const char *hf, const char *texts, const char *architecture)
{
  g_autofree char *json_path = g_build_filename (hf, "tokenizer.json", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelTokenizer) theirs
      = runnel_tokenizer_new_from_file (json_path, &error);
  RunnelMtokContext context = { .architecture = architecture };
  g_autoptr (RunnelMapping) file = NULL;
  g_autoptr (RunnelTokenizer) ours = NULL;
  g_autofree char *lines = NULL;
  g_auto (GStrv) split = NULL;
  gsize n_equal = 0, n = 0;

  if (theirs != NULL && g_file_get_contents (texts, &lines, NULL, &error))
    file = runnel_mapping_open (path, RUNNEL_LOAD_MODE_MAP, &error);
  if (file == NULL) {
    skip (folder, error->message);
    return;
  }
  ours = runnel_tokenizer_new_from_mtok (file, &context, &error);
  if (ours == NULL) {
    report (folder, error->message, FALSE);
    return;
  }
  split = g_strsplit (lines, "\n", -1);
  for (guint i = 0; split[i] != NULL && split[i][0] != '\0'; i++) {
    g_autoptr (RunnelJson) json = runnel_json_parse (split[i],
        strlen (split[i]), texts, NULL);
    const RunnelJsonNode *node = runnel_json_node_member (
        runnel_json_root (json), "text");
    gsize length, n_ours = 0, n_theirs = 0;
    const char *text = runnel_json_node_string (node, &length);
    g_autofree gint32 *a = runnel_tokenizer_encode (ours, text, length, TRUE,
        &n_ours, NULL);
    g_autofree gint32 *b = runnel_tokenizer_encode (theirs, text, length, TRUE,
        &n_theirs, NULL);

    n++;
    n_equal += n_ours == n_theirs
        && (n_ours == 0 || memcmp (a, b, n_ours * sizeof *a) == 0);
  }
  if (n_equal < n)
    printf ("  %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT " texts differ\n",
        n - n_equal, n);
  report (folder, what, n > 0 && n_equal == n);
}

static RunnelEngine *
open_engine (const char *path, GError **error)
{
  g_autoptr (RunnelModel) model
      = runnel_model_open (path, RUNNEL_LOAD_MODE_MAP, error);
  g_autoptr (RunnelBackend) backend = model != NULL
      ? runnel_backend_get ("cpu", 2, NULL, error) : NULL;

  return backend != NULL ? runnel_engine_get (model, backend,
      RUNNEL_KV_TYPE_F16, NULL, NULL, NULL, error) : NULL;
}

/* The same bits from the folder and from the package made of it. */
static gboolean
is_same_converted (RunnelEngine *engine, const char *path, Npz *ids,
                   gsize n_vocab, GError **error)
{
  g_autofree char *package = g_build_filename (g_get_tmp_dir (),
      "runnel-conformance-mnn.gguf", NULL);
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GVariant) report = runnel_converter_convert (converter, path,
      package, NULL, NULL, NULL, error);
  g_autoptr (RunnelEngine) converted
      = report != NULL ? open_engine (package, error) : NULL;
  g_autofree gint32 *tokens = npz_dup_ints (npz_find (ids, "ids_64"));
  g_autofree float *ours = logits_forward (engine, tokens, 64, n_vocab, error);
  g_autofree float *theirs = converted != NULL && ours != NULL
      ? logits_forward (converted, tokens, 64, n_vocab, error) : NULL;

  g_remove (package);
  return theirs != NULL && memcmp (ours, theirs, 64 * n_vocab * 4) == 0;
}

static void
check_logits (const char *folder, const char *path, const char *logits,
              const char *hf_logits, gsize n_vocab)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Npz) reference = npz_open (logits, &error);
  g_autoptr (Npz) ids = reference != NULL ? npz_open (hf_logits, &error)
                                          : NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  LogitsDeviation deviation = { 0 };
  double rms;

  if (ids == NULL) {
    skip (folder, error->message);
    return;
  }
  engine = open_engine (path, &error);
  if (engine == NULL || !logits_compare (engine, ids, reference, n_vocab,
          &deviation, &error)) {
    report (folder, error->message, FALSE);
    return;
  }
  rms = sqrt (deviation.squares / deviation.n);
  printf ("  %-36s logits: max %.3g, rms %.3g\n", folder, deviation.max, rms);
  report (folder, "logits", deviation.n > 0 && deviation.max <= 0.9
      && rms <= 0.12);
  report (folder, "logits of the converted package, bit for bit",
      is_same_converted (engine, path, ids, n_vocab, &error));
  if (error != NULL)
    printf ("  %s\n", error->message);
}

static void
check_package (const char *dir, const char *folder)
{
  g_autofree char *path = g_build_filename (dir, "mnn-tiny", folder, NULL);
  g_autofree char *weights = g_build_filename (path, "ref_weights.json", NULL);
  g_autofree char *logits = g_build_filename (path, "ref_logits.npz", NULL);
  g_autofree char *mtok = g_build_filename (path, "tokenizer.mtok", NULL);
  g_autofree char *txt = g_build_filename (path, "tokenizer.txt", NULL);
  g_autofree char *texts = g_build_filename (dir, "tokenizer", "qwen3.jsonl",
      NULL);
  g_autofree char *hf = NULL, *hf_logits = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelJson) reference = NULL;
  g_autoptr (RunnelCheckpoint) checkpoint = NULL;
  const char *model;

  if (!g_file_test (weights, G_FILE_TEST_EXISTS))
    return;
  reference = runnel_json_load (weights, &error);
  if (reference != NULL)
    checkpoint = runnel_checkpoint_open (path, RUNNEL_LOAD_MODE_MAP, &error);
  if (checkpoint == NULL) {
    report (folder, error->message, FALSE);
    return;
  }
  model = runnel_json_node_string (runnel_json_node_member (
      runnel_json_root (reference), "model"), NULL);
  hf = g_build_filename (dir, "tiny", model, "hf", NULL);
  hf_logits = g_build_filename (dir, "tiny", model, "ref", "hf_f32.npz", NULL);
  check_hyperparameters (folder, checkpoint, hf);
  check_weights (folder, checkpoint, runnel_json_root (reference));
  check_tokens (folder, "tokens of tokenizer.mtok", mtok, hf, texts, NULL);
  if (g_file_test (txt, G_FILE_TEST_EXISTS))
    check_tokens (folder, "tokens of tokenizer.txt", txt, hf, texts, "qwen3");
  check_logits (folder, path, logits, hf_logits,
      runnel_checkpoint_hyperparameters (checkpoint)->n_vocab);
}

int
main (int argc, char **argv)
{
  g_autofree char *dir = NULL, *legacy = NULL, *llama = NULL, *texts = NULL;
  g_autoptr (GDir) folders = NULL;
  const char *folder;

  if (argc != 2) {
    fprintf (stderr, "usage: %s DIR\n", argv[0]);
    return 2;
  }
  dir = g_build_filename (argv[1], "mnn-tiny", NULL);
  folders = g_dir_open (dir, 0, NULL);
  if (folders == NULL)
    skip (dir, "no such folder");
  while (folders != NULL && (folder = g_dir_read_name (folders)) != NULL)
    check_package (argv[1], folder);
  legacy = g_build_filename (dir, "legacy-tokenizer",
      "llama-tiny.tokenizer.txt", NULL);
  llama = g_build_filename (argv[1], "tiny", "llama-tiny", "hf", NULL);
  texts = g_build_filename (argv[1], "tokenizer", "smollm2.jsonl", NULL);
  check_tokens ("legacy-tokenizer", "tokens of tokenizer.txt", legacy, llama,
      texts, "llama");
  printf ("conformance mnn: %u passed, %u failed, %u not run\n", passed,
      failed, not_run);
  return failed > 0;
}
