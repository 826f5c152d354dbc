/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Tokenizers of MNN packages: the same as in the GGUF file, or refused.
 */
#include <string.h>

#include "text/tokenizer-mtok.h"
#include "mnn-pair.h"
#include "same-model.h"

static void
assert_encodes_alike (RunnelTokenizer *a, RunnelTokenizer *b)
{
  static const char *const texts[] = {
    "", "the user and the cat", "<|im_start|>user\nthe<|im_end|>",
    "\xf0\x9f\x90\x88 \xc3\xa4 123  4\n\n", "<unk> <|im_", "ininin",
  };

  for (guint i = 0; i < 2 * G_N_ELEMENTS (texts); i++) {
    gsize n = 0, m = 0;
    g_autofree gint32 *x = runnel_tokenizer_encode (a, texts[i / 2], -1, i % 2,
        &n, NULL);
    g_autofree gint32 *y = runnel_tokenizer_encode (b, texts[i / 2], -1, i % 2,
        &m, NULL);

    g_assert_cmpmem (x, n * sizeof *x, y, m * sizeof *y);
  }
}

static void
test_tokenizers (void)
{
  TinyModel model = mnn_pair_describe ("qwen3",
      RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);

  for (guint text = 0; text < 2; text++) {
    TinyMnn how = { .text = text };
    g_auto (MnnPair) pair = mnn_pair_write (&model, &how);
    g_autoptr (RunnelTokenizer) theirs = load_tokenizer (pair.gguf);
    g_autoptr (RunnelTokenizer) ours = load_tokenizer (pair.folder);
    const gint32 *stops;
    gsize n;

    g_assert_cmpuint (runnel_tokenizer_get_n_tokens (ours), ==,
        runnel_tokenizer_get_n_tokens (theirs));
    g_assert_cmpint (runnel_tokenizer_get_eos (ours), ==, TINY_IM_END);
    stops = runnel_tokenizer_get_stop_tokens (ours, &n);
    g_assert_cmpuint (n, ==, 1);
    g_assert_cmpint (stops[0], ==, TINY_IM_END);
    g_assert_false (runnel_tokenizer_get_add_bos (ours));
    g_assert_true (runnel_tokenizer_is_control (ours, TINY_IM_START));
    g_assert_cmpstr (runnel_tokenizer_get_chat_template (ours), ==,
        runnel_tokenizer_get_chat_template (theirs));
    /* The older form leaves the cutting of words to the architecture. */
    g_assert_cmpstr (runnel_tokenizer_get_pre (ours), ==,
        text ? "qwen2" : "smollm");
    if (!text) {
      g_assert_cmpstr (runnel_tokenizer_get_digest (ours), ==,
          runnel_tokenizer_get_digest (theirs));
      assert_encodes_alike (ours, theirs);
    }
  }
}

/* The vocabulary of @file by ranks: no merges, the control tokens last, since
 * an id is a rank. */
static RunnelTokenizer *
load_ranks (const char *const *pieces, const char *special)
{
  g_autoptr (GString) file = g_string_new (NULL);
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (RunnelMapping) mapping = NULL;
  g_autoptr (GError) error = NULL;
  RunnelMtokContext context = { .architecture = "qwen2" };
  RunnelTokenizer *tokenizer;
  guint n = 256 + g_strv_length ((char **) pieces);

  g_string_append_printf (file, "430 1\n1 1 0\n%u %u\n%u\n", n, n, n + 1);
  for (guint i = 0; i < n + 1; i++) {
    guint8 byte = i;
    const char *piece = i < 256 ? NULL : i < n ? pieces[i - 256] : special;
    g_autofree char *base64 = piece == NULL ? g_base64_encode (&byte, 1)
        : g_base64_encode ((const guint8 *) piece, strlen (piece));

    g_string_append_printf (file, "%s\n", base64);
  }
  bytes = g_bytes_new (file->str, file->len);
  mapping = runnel_mapping_new_from_bytes (bytes, "ranks");
  tokenizer = runnel_tokenizer_new_from_mtok (mapping, &context, &error);
  g_assert_no_error (error);
  return tokenizer;
}

/* "abcd" is "ab" and "cd" although "bc" is a token: it ranks behind "ab".
 * "xyz" cannot be reached, since neither "xy" nor "yz" is a token. */
static void
test_ranks (void)
{
  static const char *const pieces[] = { "ab", "bc", "cd", "abcd", "xyz",
    "abcdab", NULL };
  static const struct { const char *text; gint32 ids[4]; gsize n; } cases[] = {
    { "abcd", { 259 }, 1 }, { "abc", { 256, 'c' }, 2 }, { "bcd", { 257, 'd' },
      2 }, { "xyz", { 'x', 'y', 'z' }, 3 }, { "abcdab", { 261 }, 1 },
    { "bcab", { 257, 256 }, 2 }, { "a<|end|>", { 'a', 262 }, 2 },
  };
  g_autoptr (RunnelTokenizer) tokenizer = load_ranks (pieces, "<|end|>");

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gsize n;
    g_autofree gint32 *ids = runnel_tokenizer_encode (tokenizer,
        cases[i].text, -1, TRUE, &n, NULL);

    g_assert_cmpmem (ids, 4 * n, cases[i].ids, 4 * cases[i].n);
  }
  g_assert_cmpint (runnel_tokenizer_get_eos (tokenizer), ==, 262);
  g_assert_true (runnel_tokenizer_is_control (tokenizer, 262));
}

/* Cut anywhere and altered anywhere, it opens or says why not. */
static void
test_altered_tokenizer (void)
{
  TinyModel model = mnn_pair_describe ("qwen3",
      RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
  RunnelMtokContext context = { .architecture = "qwen3", .n_vocab = 276 };

  for (guint text = 0; text < 2; text++) {
    TinyMnn how = { .text = text };
    g_auto (MnnPair) pair = mnn_pair_write (&model, &how);
    g_autofree char *path = g_build_filename (pair.folder,
        text ? "tokenizer.txt" : "tokenizer.mtok", NULL);
    g_autofree char *file = NULL;
    gsize size;

    g_assert_true (g_file_get_contents (path, &file, &size, NULL));
    for (guint i = 0; i < 3000; i++) {
      gsize cut = i < 1000 ? i * size / 1000 : size;
      gsize at = g_test_rand_int_range (0, size);
      char before = file[at];
      g_autoptr (GBytes) bytes = NULL;
      g_autoptr (RunnelMapping) mapping = NULL;
      g_autoptr (RunnelTokenizer) tokenizer = NULL;
      g_autoptr (GError) error = NULL;

      if (i >= 1000)
        file[at] = g_test_rand_int ();
      bytes = g_bytes_new (file, cut);
      mapping = runnel_mapping_new_from_bytes (bytes, "tokenizer");
      tokenizer = runnel_tokenizer_new_from_mtok (mapping, &context, &error);
      g_assert_true ((tokenizer == NULL) == (error != NULL));
      /* Only lengths of optional ends may be missing without harm. */
      if (i < 1000 && cut + 4 < size)
        g_assert_null (tokenizer);
      file[at] = before;
    }
  }
}

static void
test_refused_tokenizers (void)
{
  static const struct { const char *text, *message; } cases[] = {
    { "430 0\n0 0 0\n\n", "no byte-level BPE" },
    { "430 2\n0 0 0\n\n", "no byte-level BPE" },
    { "430 1\n0 0 0\n\n9\nYQ==\n", "fewer lines" },
    { "430 1\n0 0 0\n\n2\nYQ==\n\n", "no token of 1 to 256" },
    { "430 x\n", "lacks a number" },
    { "430 3\n1 0 0\n\n", "lacks a number" },
    { "430 3\n5000 0 0\n", "more than 4096" },
    { "430 3\n0 0 0\n\n4000000000 1\n", "fewer lines" },
    { "430 3\n0 1 0\n7\n2 0\na\nb\n", "stop id is out of range" },
    { "430 3\n0 0 0\n\n2 1\na\nb\nab\n", "no blank" },
    { "430 3\n0 0 2\n0 1\n2 0\na\nb\n", "more than one token" },
    { "430 4\n0 0 0\n\n\1", "normaliser" },
    { "430 4\n0 0 0\n\n", "ends before the tokenizer" },
    { "439 4\n", "no tokenizer" },
  };
  RunnelMtokContext context = { .architecture = "qwen2" };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GBytes) bytes = g_bytes_new_static (cases[i].text,
        strlen (cases[i].text));
    g_autoptr (RunnelMapping) mapping
        = runnel_mapping_new_from_bytes (bytes, "tokenizer");
    g_autoptr (GError) error = NULL;

    g_assert_null (runnel_tokenizer_new_from_mtok (mapping, &context, &error));
    g_test_message ("%s", error->message);
    g_assert_nonnull (strstr (error->message, cases[i].message));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/mnn/tokenizers", test_tokenizers);
  g_test_add_func ("/mnn/ranks", test_ranks);
  g_test_add_func ("/mnn/altered-tokenizer", test_altered_tokenizer);
  g_test_add_func ("/mnn/refused-tokenizers", test_refused_tokenizers);
  return g_test_run ();
}
