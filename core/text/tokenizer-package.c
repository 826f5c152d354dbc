/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The tokenizer of a package: whatever file it came from, as the bytes of its
 * tokens and the ids of its merges, which takes half the room of GGUF's texts
 * and need not be decoded. docs/package.md describes the keys.
 */
#include "tokenizer-private.h"

#include <string.h>

#include "../error-private.h"

#define KEY(name) "runnel.tokenizer." name
#define MAX_STOP_TOKENS 1024

#define GGML_KEY(name) "tokenizer.ggml." name

/* ---- Writing --------------------------------------------------------- */

static gboolean
write_pieces (const RunnelVocabulary *vocabulary, RunnelGgufWriter *writer,
              GError **error)
{
  guint n = runnel_vocabulary_size (vocabulary);
  g_autoptr (GByteArray) pieces = g_byte_array_new ();
  g_autofree guint16 *lengths = g_new (guint16, n);
  g_autofree guint8 *types = g_new (guint8, n);

  for (guint token = 0; token < n; token++) {
    gsize length;
    const guint8 *piece = runnel_vocabulary_piece (vocabulary, token, &length);

    if (length > G_MAXUINT16) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
                   "token %u has %" G_GSIZE_FORMAT " bytes; a package holds "
                   "tokens of at most %u", token, length, G_MAXUINT16);
      return FALSE;
    }
    g_byte_array_append (pieces, piece, length);
    lengths[token] = length;
    types[token] = runnel_vocabulary_type (vocabulary, token)
        | (runnel_vocabulary_is_findable (vocabulary, token)
               ? RUNNEL_TOKEN_FINDABLE : 0);
  }
  runnel_gguf_writer_add_uint8s (writer, KEY ("pieces"), pieces->data,
                                 pieces->len);
  runnel_gguf_writer_add_uint16s (writer, KEY ("lengths"), lengths, n);
  runnel_gguf_writer_add_uint8s (writer, KEY ("types"), types, n);
  return TRUE;
}

static void
write_added (const RunnelAddedTokens *added, RunnelGgufWriter *writer,
             const char *tokens_key, const char *texts_key)
{
  gsize n = runnel_added_tokens_size (added);
  g_autofree guint32 *tokens = g_new (guint32, n);
  g_autofree const char **texts = g_new (const char *, n);
  g_autofree gsize *lengths = g_new (gsize, n);

  for (gsize i = 0; i < n; i++) {
    const guint8 *bytes;

    tokens[i] = runnel_added_tokens_nth (added, i, &bytes, &lengths[i]);
    texts[i] = (const char *) bytes;
  }
  runnel_gguf_writer_add_uint32s (writer, tokens_key, tokens, n);
  runnel_gguf_writer_add_strings (writer, texts_key, texts, lengths, n);
}

static void
write_id (RunnelGgufWriter *writer, const char *key, gint32 token)
{
  if (token >= 0)
    runnel_gguf_writer_add_uint32 (writer, key, token);
}

gboolean
runnel_tokenizer_write_package (RunnelTokenizer *self,
                                RunnelGgufWriter *writer, GError **error)
{
  const RunnelTokenizerParts *parts = runnel_tokenizer_get_parts (self);
  const guint32 *merges;
  gsize n_merges;

  runnel_gguf_writer_add_string (writer, GGML_KEY ("model"), "gpt2", -1);
  runnel_gguf_writer_add_string (writer, GGML_KEY ("pre"),
                                 runnel_pretokenizer_name (parts->pre), -1);
  if (!write_pieces (parts->vocabulary, writer, error))
    return FALSE;
  merges = runnel_bpe_merges (parts->bpe, &n_merges);
  runnel_gguf_writer_add_uint32s (writer, KEY ("merges"), merges,
                                  2 * n_merges);
  runnel_gguf_writer_add_boolean (writer, KEY ("whole_words"),
                                  runnel_bpe_get_whole_words (parts->bpe));
  write_id (writer, KEY ("unknown_token_id"),
            runnel_bpe_get_unknown (parts->bpe));
  write_added (parts->added, writer, KEY ("added"), KEY ("added_texts"));
  write_added (parts->added_normalized, writer, KEY ("normalized"),
               KEY ("normalized_texts"));
  write_id (writer, GGML_KEY ("bos_token_id"), parts->bos);
  write_id (writer, GGML_KEY ("eos_token_id"), parts->eos);
  runnel_gguf_writer_add_boolean (writer, GGML_KEY ("add_bos_token"),
                                  parts->add_bos);
  runnel_gguf_writer_add_uint32s (writer, KEY ("stop_tokens"),
                                  (const guint32 *) parts->stop_tokens->data,
                                  parts->stop_tokens->len);
  if (parts->chat_template != NULL)
    runnel_gguf_writer_add_string (writer, "tokenizer.chat_template",
                                   parts->chat_template, -1);
  return TRUE;
}

/* ---- Reading --------------------------------------------------------- */

static gboolean
get_array (const RunnelGguf *gguf, const char *key, RunnelGgufType element,
           RunnelGgufArray *ret, GError **error)
{
  g_autoptr (GError) wrong = NULL;

  if (runnel_gguf_get_array (gguf, key, element, ret, &wrong))
    return TRUE;
  if (wrong != NULL)
    g_propagate_error (error, g_steal_pointer (&wrong));
  else
    runnel_set_error_about (error, RUNNEL_ERROR_MALFORMED,
                            runnel_gguf_name (gguf), "has no %s", key);
  return FALSE;
}

static gboolean
read_pieces (RunnelTokenizerParts *parts, const RunnelGguf *gguf,
             GError **error)
{
  RunnelGgufArray pieces, lengths, types;
  g_autofree guint16 *sizes = NULL;

  if (!get_array (gguf, KEY ("pieces"), RUNNEL_GGUF_UINT8, &pieces, error)
      || !get_array (gguf, KEY ("lengths"), RUNNEL_GGUF_UINT16, &lengths,
                     error)
      || !get_array (gguf, KEY ("types"), RUNNEL_GGUF_UINT8, &types, error))
    return FALSE;
  if (lengths.n != types.n) {
    runnel_set_error_about (
        error, RUNNEL_ERROR_MALFORMED, runnel_gguf_name (gguf),
        KEY ("lengths") " has %" G_GUINT64_FORMAT " entries, but "
        KEY ("types") " has %" G_GUINT64_FORMAT, lengths.n, types.n);
    return FALSE;
  }
  sizes = g_new (guint16, lengths.n);
  for (guint64 i = 0; i < lengths.n; i++)
    sizes[i] = runnel_load_u16 (lengths.data + 2 * i);
  parts->vocabulary = runnel_vocabulary_new_from_pieces (
      pieces.data, pieces.n, sizes, types.data, types.n,
      runnel_gguf_name (gguf), error);
  return parts->vocabulary != NULL;
}

static guint32
load_u32 (const RunnelGgufArray *array, guint64 i)
{
  guint32 value;

  memcpy (&value, array->data + 4 * i, sizeof value);
  return GUINT32_FROM_LE (value);
}

static gboolean
check_token (const RunnelTokenizerParts *parts, const RunnelGguf *gguf,
             const char *key, guint32 token, GError **error)
{
  guint n = runnel_vocabulary_size (parts->vocabulary);

  if (token < n)
    return TRUE;
  runnel_set_error_about (error, RUNNEL_ERROR_MALFORMED,
                          runnel_gguf_name (gguf),
                          "%s names token %u; there are %u", key, token, n);
  return FALSE;
}

static gboolean
read_merges (RunnelTokenizerParts *parts, const RunnelGguf *gguf,
             GError **error)
{
  RunnelGgufArray merges;
  gboolean whole_words;

  if (!get_array (gguf, KEY ("merges"), RUNNEL_GGUF_UINT32, &merges, error)
      || !runnel_gguf_get_boolean_or (gguf, KEY ("whole_words"), FALSE,
                                      &whole_words, error))
    return FALSE;
  if (merges.n % 2 != 0 || merges.n / 2 > RUNNEL_MAX_TOKENS) {
    runnel_set_error_about (
        error, RUNNEL_ERROR_LIMIT, runnel_gguf_name (gguf),
        KEY ("merges") " has %" G_GUINT64_FORMAT " ids; pairs are expected, "
        "at most %u of them", merges.n, RUNNEL_MAX_TOKENS);
    return FALSE;
  }
  parts->bpe = runnel_bpe_new (parts->vocabulary, merges.n / 2, whole_words);
  for (guint64 i = 0; i < merges.n; i += 2)
    if (!runnel_bpe_add_merge_of (parts->bpe, load_u32 (&merges, i),
                                  load_u32 (&merges, i + 1),
                                  runnel_gguf_name (gguf), error))
      return FALSE;
  return TRUE;
}

static gboolean
read_added (const RunnelTokenizerParts *parts, RunnelAddedTokens *added,
            const RunnelGguf *gguf, const char *tokens_key,
            const char *texts_key, GError **error)
{
  RunnelGgufArray tokens, texts;
  const guint8 *at;

  if (!get_array (gguf, tokens_key, RUNNEL_GGUF_UINT32, &tokens, error)
      || !get_array (gguf, texts_key, RUNNEL_GGUF_STRING, &texts, error))
    return FALSE;
  at = texts.data;
  for (guint64 i = 0; i < tokens.n && i < texts.n; i++) {
    guint32 token = load_u32 (&tokens, i);
    const char *text;
    gsize length;

    at = runnel_gguf_next_string (at, &text, &length);
    if (!check_token (parts, gguf, tokens_key, token, error))
      return FALSE;
    if (length > 0)
      runnel_added_tokens_add (added, (const guint8 *) text, length, token);
  }
  if (tokens.n == texts.n)
    return TRUE;
  runnel_set_error_about (error, RUNNEL_ERROR_MALFORMED,
                          runnel_gguf_name (gguf), "%s has %" G_GUINT64_FORMAT
                          " entries, but %s has %" G_GUINT64_FORMAT,
                          tokens_key, tokens.n, texts_key, texts.n);
  return FALSE;
}

static gboolean
read_special (RunnelTokenizerParts *parts, const RunnelGguf *gguf,
              GError **error)
{
  const guint32 n = runnel_vocabulary_size (parts->vocabulary);
  RunnelGgufArray stops;
  gint32 unknown;

  if (!runnel_gguf_get_index (gguf, KEY ("unknown_token_id"), n,
                              &unknown, error)
      || !runnel_gguf_get_index (gguf, GGML_KEY ("bos_token_id"), n,
                                 &parts->bos, error)
      || !runnel_gguf_get_index (gguf, GGML_KEY ("eos_token_id"), n,
                                 &parts->eos, error)
      || !runnel_gguf_get_boolean_or (gguf, GGML_KEY ("add_bos_token"), FALSE,
                                      &parts->add_bos, error)
      || !get_array (gguf, KEY ("stop_tokens"), RUNNEL_GGUF_UINT32, &stops,
                     error))
    return FALSE;
  if (unknown >= 0)
    runnel_bpe_set_unknown (parts->bpe, unknown);
  if (parts->bos < 0)
    parts->add_bos = FALSE;
  if (stops.n > MAX_STOP_TOKENS) {
    runnel_set_error_about (error, RUNNEL_ERROR_LIMIT,
                            runnel_gguf_name (gguf), KEY ("stop_tokens")
                            " has %" G_GUINT64_FORMAT " entries; the limit is "
                            "%d", stops.n, MAX_STOP_TOKENS);
    return FALSE;
  }
  for (guint64 i = 0; i < stops.n; i++) {
    guint32 token = load_u32 (&stops, i);

    if (!check_token (parts, gguf, KEY ("stop_tokens"), token, error))
      return FALSE;
    runnel_tokenizer_parts_add_stop (parts, token);
  }
  return runnel_gguf_dup_string_or_null (gguf, "tokenizer.chat_template",
                                         &parts->chat_template, error);
}

gboolean
runnel_tokenizer_is_in_package (const RunnelGguf *gguf)
{
  return runnel_gguf_has (gguf, KEY ("pieces"));
}

RunnelTokenizer *
runnel_tokenizer_new_from_package (const RunnelGguf *gguf, GError **error)
{
  g_autoptr (RunnelTokenizerParts) parts = runnel_tokenizer_parts_new ();
  const char *pre;
  gsize length;

  if (!runnel_gguf_get_string (gguf, GGML_KEY ("pre"), &pre, &length, error))
    return NULL;
  if (!runnel_pretokenizer_from_name (pre, length, &parts->pre)) {
    g_autofree char *name = g_utf8_make_valid (pre, MIN (length, 64));

    runnel_set_error_about (error, RUNNEL_ERROR_UNSUPPORTED,
                            runnel_gguf_name (gguf), GGML_KEY ("pre")
                            " is \"%s\", which is not supported", name);
    return NULL;
  }
  if (!read_pieces (parts, gguf, error) || !read_merges (parts, gguf, error)
      || !read_added (parts, parts->added, gguf, KEY ("added"),
                      KEY ("added_texts"), error)
      || !read_added (parts, parts->added_normalized, gguf,
                      KEY ("normalized"), KEY ("normalized_texts"), error)
      || !runnel_tokenizer_parts_seal (parts, runnel_gguf_name (gguf), error)
      || !read_special (parts, gguf, error))
    return NULL;
  return runnel_tokenizer_new_take (g_steal_pointer (&parts));
}
