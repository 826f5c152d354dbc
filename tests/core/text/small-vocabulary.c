/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "small-vocabulary.h"

#include <string.h>

#include <glib/gstdio.h>

char *
small_vocabulary_spell (const void *bytes, gsize length)
{
  GString *out = g_string_new (NULL);
  const guint8 *p = bytes;

  for (gsize i = 0; i < length; i++) {
    guint c = 0x100;

    if ((p[i] > 0x20 && p[i] < 0x7f) || (p[i] > 0xa0 && p[i] != 0xad)) {
      g_string_append_unichar (out, p[i]);
      continue;
    }
    for (guint other = 0; other < p[i]; other++)
      if (!((other > 0x20 && other < 0x7f) || (other > 0xa0 && other != 0xad)))
        c++;
    g_string_append_unichar (out, c);
  }
  return g_string_free (out, FALSE);
}

gint32
small_vocabulary_add (SmallVocabulary *self, const char *text,
                      RunnelTokenType type)
{
  gint32 number = type;

  g_ptr_array_add (self->texts, g_strdup (text));
  g_array_append_val (self->types, number);
  g_hash_table_insert (self->ids, g_strdup (text),
                       GUINT_TO_POINTER (self->texts->len));
  return self->texts->len - 1;
}

gint32
small_vocabulary_add_bytes (SmallVocabulary *self, const void *bytes,
                            gsize length)
{
  g_autofree char *text = small_vocabulary_spell (bytes, length);
  guint known = GPOINTER_TO_UINT (g_hash_table_lookup (self->ids, text));

  return known != 0 ? (gint32) known - 1
                    : small_vocabulary_add (self, text, RUNNEL_TOKEN_NORMAL);
}

SmallVocabulary *
small_vocabulary_new (void)
{
  SmallVocabulary *self = g_new0 (SmallVocabulary, 1);

  self->texts = g_ptr_array_new_with_free_func (g_free);
  self->types = g_array_new (FALSE, FALSE, sizeof (gint32));
  self->merges = g_ptr_array_new_with_free_func (g_free);
  self->ids = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint byte = 0; byte < 256; byte++) {
    guint8 as_byte = byte;

    small_vocabulary_add_bytes (self, &as_byte, 1);
  }
  return self;
}

void
small_vocabulary_free (SmallVocabulary *self)
{
  g_ptr_array_unref (self->texts);
  g_array_unref (self->types);
  g_ptr_array_unref (self->merges);
  g_hash_table_unref (self->ids);
  g_free (self);
}

gint32
small_vocabulary_merge (SmallVocabulary *self, const char *left,
                        const char *right)
{
  g_autofree char *a = small_vocabulary_spell (left, strlen (left));
  g_autofree char *b = small_vocabulary_spell (right, strlen (right));
  g_autofree char *both = g_strconcat (left, right, NULL);

  g_ptr_array_add (self->merges, g_strdup_printf ("%s %s", a, b));
  return small_vocabulary_add_bytes (self, both, strlen (both));
}

gint32
small_vocabulary_add_word (SmallVocabulary *self, const char *word)
{
  gint32 id = -1;

  for (gsize n = 1; word[n] != '\0'; n++) {
    g_autofree char *left = g_strndup (word, n);
    const char right[2] = { word[n], '\0' };

    id = small_vocabulary_merge (self, left, right);
  }
  return id;
}

char *
small_vocabulary_save (const SmallVocabulary *self, const char *pre,
                       gint32 eos)
{
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autofree char *folder = g_dir_make_tmp ("runnel-XXXXXX", NULL);
  g_autoptr (GError) error = NULL;
  char *path = g_build_filename (folder, "vocabulary.gguf", NULL);

  runnel_gguf_writer_add_string (writer, "tokenizer.ggml.model", "gpt2", -1);
  runnel_gguf_writer_add_string (writer, "tokenizer.ggml.pre", pre, -1);
  runnel_gguf_writer_add_strings (writer, "tokenizer.ggml.tokens",
                                  (const char *const *) self->texts->pdata,
                                  NULL, self->texts->len);
  runnel_gguf_writer_add_int32s (writer, "tokenizer.ggml.token_type",
                                 (const gint32 *) self->types->data,
                                 self->types->len);
  runnel_gguf_writer_add_strings (writer, "tokenizer.ggml.merges",
                                  (const char *const *) self->merges->pdata,
                                  NULL, self->merges->len);
  if (eos >= 0)
    runnel_gguf_writer_add_uint32 (writer, "tokenizer.ggml.eos_token_id", eos);
  runnel_gguf_writer_save (writer, path, &error);
  g_assert_no_error (error);
  return path;
}

RunnelTokenizer *
small_vocabulary_load (const SmallVocabulary *self, const char *pre,
                       GError **error)
{
  g_autofree char *path = small_vocabulary_save (self, pre, -1);
  g_autofree char *folder = g_path_get_dirname (path);
  RunnelTokenizer *tokenizer = runnel_tokenizer_new_from_file (path, error);

  g_remove (path);
  g_rmdir (folder);
  return tokenizer;
}

static const char *
stages_of (const char *pre)
{
#define WORDS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"
#define REST "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|" \
  "\\\\s+(?!\\\\S)|\\\\s+"
#define BYTES(regex) "{\"type\":\"ByteLevel\",\"add_prefix_space\":false," \
  "\"trim_offsets\":true,\"use_regex\":" regex "}"
#define SPLIT(pattern) "{\"type\":\"Sequence\",\"pretokenizers\":[" \
  "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" WORDS pattern REST "\"}," \
  "\"behavior\":\"Isolated\",\"invert\":false}," BYTES ("false") "]}"

  if (strcmp (pre, "qwen2") == 0)
    return "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":"
      SPLIT ("\\\\p{N}");
  if (strcmp (pre, "llama-bpe") == 0)
    return "\"normalizer\":null,\"pre_tokenizer\":" SPLIT ("\\\\p{N}{1,3}");
  if (strcmp (pre, "smollm") == 0)
    return "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Sequence\","
      "\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":true},"
      BYTES ("true") "]}";
  return "\"normalizer\":null,\"pre_tokenizer\":" BYTES ("true");
}

static void
append_added (const SmallVocabulary *self, GString *out)
{
  const char *comma = "";

  for (guint i = 0; i < self->texts->len; i++) {
    gint32 type = g_array_index (self->types, gint32, i);

    if (type != RUNNEL_TOKEN_CONTROL && type != RUNNEL_TOKEN_USER_DEFINED)
      continue;
    g_string_append_printf (out, "%s{\"id\":%u,\"content\":", comma, i);
    runnel_json_append_string (out, g_ptr_array_index (self->texts, i), -1);
    g_string_append_printf (
        out, ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
        "\"normalized\":false,\"special\":%s}",
        type == RUNNEL_TOKEN_CONTROL ? "true" : "false");
    comma = ",";
  }
}

static void
append_merge (const char *merge, gboolean lists, GString *out)
{
  g_auto (GStrv) parts = g_strsplit (merge, " ", 2);

  if (!lists) {
    runnel_json_append_string (out, merge, -1);
    return;
  }
  g_string_append_c (out, '[');
  runnel_json_append_string (out, parts[0], -1);
  g_string_append_c (out, ',');
  runnel_json_append_string (out, parts[1], -1);
  g_string_append_c (out, ']');
}

char *
small_vocabulary_to_json (const SmallVocabulary *self, const char *pre,
                          gboolean lists)
{
  GString *out = g_string_new ("{\"version\":\"1.0\",\"added_tokens\":[");
  const char *comma = "";

  append_added (self, out);
  g_string_append_printf (
      out, "],%s,\"post_processor\":null,\"decoder\":" BYTES ("true") ","
      "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
      "\"ignore_merges\":%s,\"vocab\":{", stages_of (pre),
      strcmp (pre, "llama-bpe") == 0 ? "true" : "false");
  for (guint i = 0; i < self->texts->len; i++) {
    if (g_array_index (self->types, gint32, i) != RUNNEL_TOKEN_NORMAL)
      continue;
    g_string_append (out, comma);
    runnel_json_append_string (out, g_ptr_array_index (self->texts, i), -1);
    g_string_append_printf (out, ":%u", i);
    comma = ",";
  }
  g_string_append (out, "},\"merges\":[");
  for (guint i = 0; i < self->merges->len; i++) {
    g_string_append (out, i > 0 ? "," : "");
    append_merge (g_ptr_array_index (self->merges, i), lists, out);
  }
  g_string_append (out, "]}}");
  return g_string_free (out, FALSE);
}

RunnelTokenizer *
small_vocabulary_load_json (const char *json, const char *config,
                            const char *generation, GError **error)
{
  const char *texts[] = { json, config, generation };
  const char *names[] = { "tokenizer.json", "tokenizer_config.json",
                          "generation_config.json" };
  RunnelJson *parsed[3] = { NULL };
  RunnelTokenizer *tokenizer;
  RunnelTokenizerFiles files = { NULL };

  for (guint i = 0; i < 3; i++) {
    g_autoptr (GError) wrong = NULL;

    if (texts[i] == NULL)
      continue;
    parsed[i] = runnel_json_parse (texts[i], strlen (texts[i]), names[i],
                                   &wrong);
    g_assert_no_error (wrong);
  }
  files.tokenizer = parsed[0];
  files.config = parsed[1];
  files.generation = parsed[2];
  tokenizer = runnel_tokenizer_new_from_files (&files, error);
  for (guint i = 0; i < 3; i++)
    g_clear_pointer (&parsed[i], runnel_json_unref);
  return tokenizer;
}
