/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 *   conformance-tokenizer DIR
 *
 * Compares ids and decoded text with those of the PyPI package `tokenizers`:
 * DIR/tokenizer/NAME.jsonl against DIR/tokenizer/models. A line that is
 * marked "unassigned" or "missing_byte" may differ: it is counted by itself.
 * RUNNEL_DEFAULT_MODEL: a GGUF of SmolLM2 that must give the same ids. Sets
 * of fresh texts are made by fresh-tokenizer-texts.py.
 */
#include <stdio.h>
#include <string.h>

#include <gio/gio.h>

#include "formats/json.h"
#include "text/detokenizer.h"
#include "text/tokenizer-private.h"

typedef struct {
  guint passed, failed, not_run, soft;
} Counts;

static char *
read_gzip (const char *path, gsize *ret_length, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GFileInputStream) packed = g_file_read (file, NULL, error);
  g_autoptr (GConverter) gzip = NULL;
  g_autoptr (GInputStream) stream = NULL;
  g_autoptr (GOutputStream) memory = NULL;

  if (packed == NULL)
    return NULL;
  gzip = G_CONVERTER (
      g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP));
  stream = g_converter_input_stream_new (G_INPUT_STREAM (packed), gzip);
  memory = g_memory_output_stream_new_resizable ();
  if (g_output_stream_splice (memory, stream,
                              G_OUTPUT_STREAM_SPLICE_CLOSE_TARGET, NULL,
                              error) < 0)
    return NULL;
  *ret_length = g_memory_output_stream_get_data_size (
      G_MEMORY_OUTPUT_STREAM (memory));
  return g_memory_output_stream_steal_data (G_MEMORY_OUTPUT_STREAM (memory));
}

/* The end of the array that starts at @at. */
static const char *
skip_array (const char *at)
{
  gboolean in_string = FALSE;
  int depth = 0;

  for (; *at != '\0'; at++) {
    if (in_string && *at == '\\' && at[1] != '\0')
      at++;
    else if (*at == '"')
      in_string = !in_string;
    else if (!in_string && *at == '[')
      depth++;
    else if (!in_string && *at == ']' && --depth == 0)
      return at + 1;
  }
  return at;
}

/* @text with its "added_tokens" replaced by those of the file at @path. */
static char *
replace_added_tokens (const char *text, const char *path, GError **error)
{
  g_autofree char *other = NULL;
  const char *key = "\"added_tokens\":";
  const char *old, *new;
  GString *out;

  if (!g_file_get_contents (path, &other, NULL, error))
    return NULL;
  old = strchr (strstr (text, key), '[');
  new = strchr (strstr (other, key), '[');
  out = g_string_new_len (text, old - text);
  g_string_append_len (out, new, skip_array (new) - new);
  g_string_append (out, skip_array (old));
  return g_string_free (out, FALSE);
}

static RunnelTokenizer *
load_model (const char *folder, const char *name, GError **error)
{
  gboolean qwen25 = strcmp (name, "qwen2.5") == 0;
  g_autofree char *path = g_strdup_printf (
      "%s/models/%s.tokenizer.json.gz", folder, qwen25 ? "qwen3" : name);
  g_autofree char *added = g_strdup_printf (
      "%s/models/qwen2.5.added_tokens.json", folder);
  g_autofree char *packed = NULL, *text = NULL;
  g_autoptr (RunnelJson) json = NULL;
  gsize length;
  RunnelTokenizerFiles files = { NULL };

  packed = read_gzip (path, &length, error);
  if (packed == NULL)
    return NULL;
  text = g_strndup (packed, length);
  if (qwen25) {
    char *replaced = replace_added_tokens (text, added, error);

    if (replaced == NULL)
      return NULL;
    g_free (text);
    text = replaced;
  }
  json = runnel_json_parse (text, strlen (text), path, error);
  if (json == NULL)
    return NULL;
  files.tokenizer = json;
  return runnel_tokenizer_new_from_files (&files, error);
}

static gboolean
same_ids (const RunnelJsonNode *expected, const gint32 *ids, gsize n)
{
  if (n != runnel_json_node_size (expected))
    return FALSE;
  for (gsize i = 0; i < n; i++) {
    gint64 id;

    if (!runnel_json_node_int64 (runnel_json_node_item (expected, i), &id)
        || id != ids[i])
      return FALSE;
  }
  return TRUE;
}

static gboolean
same_text (RunnelTokenizer *tokenizer, const gint32 *ids, gsize n,
           const char *expected, gsize length)
{
  g_autoptr (RunnelDetokenizer) detokenizer =
      runnel_detokenizer_new (tokenizer, TRUE);
  g_autoptr (GString) out = g_string_new (NULL);
  g_autofree char *rest = NULL;

  for (gsize i = 0; i < n; i++)
    if (!runnel_detokenizer_push_to (detokenizer, ids[i], out, NULL))
      return FALSE;
  rest = runnel_detokenizer_flush (detokenizer, TRUE);
  g_string_append (out, rest);
  return out->len == length && memcmp (out->str, expected, length) == 0;
}

static gboolean
check_line (RunnelTokenizer *tokenizer, const RunnelJsonNode *line)
{
  const RunnelJsonNode *ids = runnel_json_node_member (line, "ids");
  const RunnelJsonNode *plain = runnel_json_node_member (line, "ids_plain");
  const RunnelJsonNode *decoded = runnel_json_node_member (line, "decoded");
  const RunnelJsonNode *node = runnel_json_node_member (line, "text");
  g_autofree gint32 *got = NULL, *got_plain = NULL;
  gsize length, decoded_length, n, n_plain;
  const char *text = runnel_json_node_string (node, &length);
  const char *back = runnel_json_node_string (decoded ? decoded : node,
                                              &decoded_length);

  got = runnel_tokenizer_encode (tokenizer, text, length, TRUE, &n, NULL);
  got_plain = runnel_tokenizer_encode (tokenizer, text, length, FALSE,
                                       &n_plain, NULL);
  return got != NULL && got_plain != NULL && same_ids (ids, got, n)
      && same_ids (plain ? plain : ids, got_plain, n_plain)
      && same_text (tokenizer, got, n, back, decoded_length);
}

static void
run_set (RunnelTokenizer *tokenizer, const char *label, const char *path,
         Counts *counts)
{
  g_autofree char *lines = NULL;
  g_auto (GStrv) each = NULL;
  guint failed = 0, soft = 0, n = 0;

  if (!g_file_get_contents (path, &lines, NULL, NULL)) {
    printf ("%s: %s is missing\n", label, path);
    counts->not_run++;
    return;
  }
  each = g_strsplit (lines, "\n", -1);
  for (gsize i = 0; each[i] != NULL; i++) {
    g_autoptr (RunnelJson) json = NULL;
    const RunnelJsonNode *line;

    if (each[i][0] == '\0')
      continue;
    json = runnel_json_parse (each[i], strlen (each[i]), path, NULL);
    line = json != NULL ? runnel_json_root (json) : NULL;
    n++;
    if (line != NULL && check_line (tokenizer, line))
      continue;
    if (line != NULL
        && (runnel_json_node_member (line, "unassigned") != NULL
            || runnel_json_node_member (line, "missing_byte") != NULL)) {
      soft++;
      continue;
    }
    failed++;
    printf ("%s: line %" G_GSIZE_FORMAT ": %.200s\n", label, i + 1, each[i]);
  }
  printf ("%s: %u lines, %u differ, %u more that may\n", label, n, failed,
          soft);
  counts->passed += n - failed - soft;
  counts->failed += failed;
  counts->soft += soft;
}

static void
run_model (const char *folder, const char *name, Counts *counts)
{
  g_autofree char *set = g_strdup_printf ("%s/%s.jsonl", folder, name);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelTokenizer) tokenizer = load_model (folder, name, &error);

  if (tokenizer != NULL) {
    run_set (tokenizer, name, set, counts);
    return;
  }
  printf ("%s: %s\n", name, error->message);
  if (error->domain == G_IO_ERROR || error->domain == G_FILE_ERROR)
    counts->not_run++;
  else
    counts->failed++;
}

/* Sets beside the four, such as fresh-tokenizer-texts.py makes. */
static void
run_others (const char *folder, const char *const *known, Counts *counts)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  const char *file;

  while (dir != NULL && (file = g_dir_read_name (dir)) != NULL) {
    g_autofree char *name = NULL;

    if (!g_str_has_suffix (file, ".jsonl"))
      continue;
    name = g_strndup (file, strlen (file) - strlen (".jsonl"));
    if (!g_strv_contains (known, name))
      g_ptr_array_add (names, g_steal_pointer (&name));
  }
  for (guint i = 0; i < names->len; i++)
    run_model (folder, g_ptr_array_index (names, i), counts);
}

static void
run_default_model (const char *folder, Counts *counts)
{
  const char *path = g_getenv ("RUNNEL_DEFAULT_MODEL");
  g_autofree char *set = g_strdup_printf ("%s/smollm2.jsonl", folder);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelTokenizer) tokenizer = NULL;

  if (path == NULL || !g_file_test (path, G_FILE_TEST_EXISTS)) {
    printf ("smollm2.gguf: RUNNEL_DEFAULT_MODEL is not set or not there\n");
    counts->not_run++;
    return;
  }
  tokenizer = runnel_tokenizer_new_from_file (path, &error);
  if (tokenizer == NULL) {
    printf ("smollm2.gguf: %s\n", error->message);
    counts->failed++;
    return;
  }
  run_set (tokenizer, "smollm2.gguf", set, counts);
}

int
main (int argc, char **argv)
{
  static const char *const names[] = { "smollm2", "qwen3", "qwen3-trim65536",
                                       "qwen2.5", NULL };
  g_autofree char *folder = NULL;
  Counts counts = { 0 };

  if (argc != 2) {
    fprintf (stderr, "usage: %s DIR\n", argv[0]);
    return 2;
  }
  folder = g_build_filename (argv[1], "tokenizer", NULL);
  for (guint i = 0; names[i] != NULL; i++)
    run_model (folder, names[i], &counts);
  run_others (folder, names, &counts);
  run_default_model (folder, &counts);
  printf ("%u lines differ where Unicode versions or missing bytes may\n",
          counts.soft);
  printf ("conformance tokenizer: %u passed, %u failed, %u not run\n",
          counts.passed, counts.failed, counts.not_run);
  return counts.failed > 0 ? 1 : 0;
}
