/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Models of noise: the same numbers in every type, a vocabulary that works,
 * and replies that do not get stuck.
 */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "formats/checkpoint.h"
#include "runnel.h"

#define SHAPE "50m-28"
#define N_VOCAB 65536

static char *folder;
static char *reference_path;    /* q4_1, seed 1 */

static char *
write_model (const char *type, guint64 seed)
{
  g_autofree char *name = g_strdup_printf ("%s-%" G_GUINT64_FORMAT ".gguf",
      type ? type : "default", seed);
  char *path = g_build_filename (folder, name, NULL);
  g_autoptr (GError) error = NULL;

  runnel_random_model_write (SHAPE, path, type, seed, NULL, &error);
  g_assert_no_error (error);
  return path;
}

static RunnelModel *
open_model (const char *path)
{
  g_autoptr (GError) error = NULL;
  RunnelModel *model = runnel_model_open (path, RUNNEL_LOAD_MODE_MAP, &error);

  g_assert_no_error (error);
  return model;
}

static void
test_deterministic (void)
{
  g_autofree char *again_path = write_model (NULL, 1);
  g_autofree char *other_path = write_model ("q4_0", 7);
  g_autofree char *like_other_path = write_model ("q4_0", 8);
  g_autoptr (RunnelModel) model = open_model (reference_path);
  g_autoptr (RunnelModel) again = open_model (again_path);
  g_autoptr (RunnelModel) other = open_model (other_path);
  g_autoptr (RunnelModel) like_other = open_model (like_other_path);

  g_assert_cmpstr (runnel_model_get_content_id (model), ==,
      runnel_model_get_content_id (again));
  g_assert_cmpstr (runnel_model_get_content_id (other), !=,
      runnel_model_get_content_id (like_other));
  g_assert_cmpstr (runnel_model_get_name (other), ==,
      SHAPE " (random noise, seed 7)");
  g_unlink (again_path);
  g_unlink (other_path);
  g_unlink (like_other_path);
}

static float *
read_row (const RunnelCheckpoint *checkpoint, const char *name, gsize row)
{
  const RunnelTensor *tensor = runnel_checkpoint_tensor (checkpoint, name);
  float *values = g_new (float, tensor->dims[0]);

  runnel_tensor_type_dequantize_row (tensor->type,
      runnel_tensor_data (tensor), tensor->dims[0], row, values);
  return values;
}

static void
test_types (void)
{
  static const char *const types[] = { "q4_0", "q8_0", "f16", "int4", "int8" };
  static const char *const names[] = { "token_embd.weight",
      "blk.0.attn_q.weight", "blk.27.ffn_down.weight" };
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelCheckpoint) reference
      = runnel_checkpoint_open (reference_path, RUNNEL_LOAD_MODE_MAP, &error);

  g_assert_no_error (error);
  for (guint t = 0; t < G_N_ELEMENTS (types); t++) {
    g_autofree char *other = write_model (types[t], 1);
    g_autoptr (RunnelCheckpoint) checkpoint
        = runnel_checkpoint_open (other, RUNNEL_LOAD_MODE_MAP, &error);

    g_assert_no_error (error);
    if (g_str_has_prefix (types[t], "int"))
      g_assert_cmpstr (runnel_tensor_type_info (runnel_checkpoint_tensor (
                  checkpoint, names[0])->type)->name, ==,
          t == 3 ? "INT4_64_OFFSET" : "INT8_64");
    for (guint i = 0; i < G_N_ELEMENTS (names); i++)
      for (gsize row = 0; row < 256; row += 51) {
        g_autofree float *values = read_row (reference, names[i], row);
        g_autofree float *same = read_row (checkpoint, names[i], row);
        const gsize size = sizeof (float)
            * runnel_checkpoint_tensor (reference, names[i])->dims[0];

        g_assert_cmpmem (values, size, same, size);
      }
    g_unlink (other);
  }
}

static void
test_vocabulary (void)
{
  static const struct { gint32 id; const char *text; } controls[] = {
    { 65510, "<|endoftext|>" }, { 65511, "<|im_start|>" },
    { 65512, "<|im_end|>" }, { 65524, "<tool_call>" }, { 65534, "<think>" },
    { 65535, "</think>" },
  };
  static const char text[] = "The harbour was quiet for most of the winter; "
      "\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xb8\x96\xe7\x95\x8c, int main (void)\n"
      "    return 0;";
  g_autoptr (RunnelModel) model = open_model (reference_path);
  g_autoptr (GError) error = NULL;
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, &error);
  g_autoptr (RunnelChatTemplate) template = NULL;
  g_autoptr (GBytes) back = NULL;
  g_autofree gint32 *tokens = NULL;
  gsize n, size;

  g_assert_no_error (error);
  g_assert_cmpuint (runnel_tokenizer_get_n_tokens (tokenizer), ==, N_VOCAB);
  for (guint i = 0; i < G_N_ELEMENTS (controls); i++) {
    const guint8 *piece = runnel_tokenizer_get_piece (tokenizer,
        controls[i].id, &size);

    g_assert_cmpmem (piece, size, controls[i].text,
        strlen (controls[i].text));
  }
  g_assert_cmpint (runnel_tokenizer_get_eos (tokenizer), ==, 65512);
  tokens = runnel_tokenizer_encode (tokenizer, text, strlen (text), FALSE,
      &n, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (n, <, strlen (text) / 2);
  back = runnel_tokenizer_decode (tokenizer, tokens, n, FALSE, &error);
  g_assert_no_error (error);
  g_assert_cmpmem (g_bytes_get_data (back, NULL), g_bytes_get_size (back),
      text, strlen (text));
}

static gint32
find_largest (const float *logits)
{
  gint32 largest = 0;

  for (gint32 i = 0; i < N_VOCAB; i++) {
    g_assert_true (isfinite (logits[i]));
    if (logits[i] > logits[largest])
      largest = i;
  }
  return largest;
}

/* Greedy replies wander instead of repeating a token, if only until the same
 * one comes again. */
static void
test_replies (void)
{
  g_autoptr (RunnelModel) model = open_model (reference_path);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelBackend) backend
      = runnel_backend_get ("cpu", 2, NULL, &error);
  g_autoptr (RunnelEngine) engine = runnel_engine_get (model, backend,
      RUNNEL_KV_TYPE_F16, NULL, NULL, NULL, &error);
  g_autoptr (RunnelSequence) sequence
      = runnel_sequence_new (engine, 64, &error);
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  g_autofree float *logits = g_new (float, N_VOCAB);
  gint32 token = 1000;

  g_assert_no_error (error);
  for (guint i = 0; i < 24; i++) {
    runnel_sequence_forward (sequence, &token, 1, logits, N_VOCAB, &error);
    g_assert_no_error (error);
    token = find_largest (logits);
    g_hash_table_add (seen, GINT_TO_POINTER (token));
  }
  g_assert_cmpuint (g_hash_table_size (seen), >, 6);
}

static void
test_errors (void)
{
  g_autofree char *path = g_build_filename (folder, "none.gguf", NULL);
  g_autofree char *nowhere = g_build_filename (folder, "no", "x.gguf", NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_assert_false (runnel_random_model_write ("7b", path, NULL, 1, NULL,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  g_assert_nonnull (strstr (error->message, "pocket-0.3b, 50m-28"));
  g_clear_error (&error);
  g_assert_false (runnel_random_model_write (SHAPE, path, "q3", 1, NULL,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  g_clear_error (&error);
  g_assert_false (runnel_random_model_write (SHAPE, nowhere, NULL, 1, NULL,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_clear_error (&error);
  g_cancellable_cancel (cancellable);
  g_assert_false (runnel_random_model_write (SHAPE, path, NULL, 1, cancellable,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED);
  /* Nothing is left behind: the folder can be removed. */
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  int status;

  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("runnel-random-XXXXXX", &error);
  g_assert_no_error (error);
  reference_path = write_model ("q4_1", 1);
  g_test_add_func ("/random-model/deterministic", test_deterministic);
  g_test_add_func ("/random-model/types", test_types);
  g_test_add_func ("/random-model/vocabulary", test_vocabulary);
  g_test_add_func ("/random-model/replies", test_replies);
  g_test_add_func ("/random-model/errors", test_errors);
  status = g_test_run ();
  g_unlink (reference_path);
  g_free (reference_path);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
  g_free (folder);
  return status;
}
