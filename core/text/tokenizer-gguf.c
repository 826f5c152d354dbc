/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The tokenizer in GGUF metadata. Source: the GGUF specification of the ggml
 * project, "Tokenizer".
 */
#include "tokenizer-private.h"

#include <string.h>

#include "../error.h"

#define KEY(name) "tokenizer.ggml." name

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
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                 "%s: has no %s", runnel_gguf_name (gguf), key);
  return FALSE;
}

static gboolean
check_count (const RunnelGguf *gguf, const char *key, guint64 n,
             guint64 n_tokens, GError **error)
{
  if (n == n_tokens)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
               "%s: %s has %" G_GUINT64_FORMAT " entries for %"
               G_GUINT64_FORMAT " tokens", runnel_gguf_name (gguf), key, n,
               n_tokens);
  return FALSE;
}

static gboolean
check_model (const RunnelGguf *gguf, RunnelPretokenizer *ret_pre,
             GError **error)
{
  const char *text;
  gsize length;

  if (!runnel_gguf_get_string (gguf, KEY ("model"), &text, &length, error))
    return FALSE;
  if (length != 4 || memcmp (text, "gpt2", 4) != 0) {
    g_autofree char *name = g_utf8_make_valid (text, MIN (length, 64));

    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
                 "%s: " KEY ("model") " is \"%s\"; only byte-level BPE "
                 "(\"gpt2\") is supported", runnel_gguf_name (gguf), name);
    return FALSE;
  }
  if (!runnel_gguf_get_string (gguf, KEY ("pre"), &text, &length, error))
    return FALSE;
  if (!runnel_pretokenizer_from_name (text, length, ret_pre)) {
    g_autofree char *name = g_utf8_make_valid (text, MIN (length, 64));

    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
                 "%s: " KEY ("pre") " is \"%s\"; supported are qwen2, smollm, "
                 "gpt-2 and llama-bpe", runnel_gguf_name (gguf), name);
    return FALSE;
  }
  return TRUE;
}

static gboolean
read_types (const RunnelGguf *gguf, RunnelTokenText *tokens, guint64 n,
            GError **error)
{
  RunnelGgufArray types, scores;

  if (!get_array (gguf, KEY ("token_type"), RUNNEL_GGUF_INT32, &types, error)
      || !check_count (gguf, KEY ("token_type"), types.n, n, error))
    return FALSE;
  if (runnel_gguf_has (gguf, KEY ("scores"))
      && (!get_array (gguf, KEY ("scores"), RUNNEL_GGUF_FLOAT32, &scores,
                      error)
          || !check_count (gguf, KEY ("scores"), scores.n, n, error)))
    return FALSE;
  for (guint64 i = 0; i < n; i++) {
    guint32 type;

    memcpy (&type, types.data + 4 * i, 4);
    tokens[i].type = (RunnelTokenType) GUINT32_FROM_LE (type);
  }
  return TRUE;
}

static gboolean
read_tokens (RunnelTokenizerParts *parts, const RunnelGguf *gguf,
             GError **error)
{
  g_autofree RunnelTokenText *tokens = NULL;
  RunnelGgufArray texts;
  const guint8 *at;

  if (!get_array (gguf, KEY ("tokens"), RUNNEL_GGUF_STRING, &texts, error))
    return FALSE;
  if (texts.n > RUNNEL_MAX_TOKENS) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
                 "%s: " KEY ("tokens") " has %" G_GUINT64_FORMAT " entries; "
                 "at most %u are supported", runnel_gguf_name (gguf), texts.n,
                 RUNNEL_MAX_TOKENS);
    return FALSE;
  }
  tokens = g_new0 (RunnelTokenText, texts.n + 1);
  if (!read_types (gguf, tokens, texts.n, error))
    return FALSE;
  at = texts.data;
  for (guint64 i = 0; i < texts.n; i++)
    at = runnel_gguf_next_string (at, &tokens[i].text, &tokens[i].length);
  parts->vocabulary = runnel_vocabulary_new (tokens, texts.n,
                                             runnel_gguf_name (gguf), error);
  if (parts->vocabulary == NULL)
    return FALSE;
  for (guint64 i = 0; i < texts.n; i++)
    if (tokens[i].type == RUNNEL_TOKEN_CONTROL
        || tokens[i].type == RUNNEL_TOKEN_USER_DEFINED)
      runnel_added_tokens_add (parts->added, (const guint8 *) tokens[i].text,
                               tokens[i].length, i);
  return runnel_tokenizer_parts_seal (parts, runnel_gguf_name (gguf), error);
}

static gboolean
read_merges (RunnelTokenizerParts *parts, const RunnelGguf *gguf,
             GError **error)
{
  RunnelGgufArray merges;
  const guint8 *at;

  if (!get_array (gguf, KEY ("merges"), RUNNEL_GGUF_STRING, &merges, error))
    return FALSE;
  if (merges.n > RUNNEL_MAX_TOKENS) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
                 "%s: " KEY ("merges") " has %" G_GUINT64_FORMAT " entries; "
                 "at most %u are supported", runnel_gguf_name (gguf), merges.n,
                 RUNNEL_MAX_TOKENS);
    return FALSE;
  }
  /* Llama 3's tokenizer.json says ignore_merges, for which GGUF has no key. */
  parts->bpe = runnel_bpe_new (parts->vocabulary, merges.n,
                               parts->pre == RUNNEL_PRETOKENIZER_LLAMA_BPE);
  at = merges.data;
  for (guint64 i = 0; i < merges.n; i++) {
    const char *text, *blank;
    gsize length, left;

    at = runnel_gguf_next_string (at, &text, &length);
    blank = memchr (text, ' ', length);
    if (blank == NULL) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                   "%s: merge %" G_GUINT64_FORMAT " has no blank between two "
                   "parts", runnel_gguf_name (gguf), i);
      return FALSE;
    }
    left = blank - text;
    if (!runnel_bpe_add_merge (parts->bpe, text, left, blank + 1,
                               length - left - 1, runnel_gguf_name (gguf),
                               error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_special (RunnelTokenizerParts *parts, const RunnelGguf *gguf,
              GError **error)
{
  const guint32 n = runnel_vocabulary_size (parts->vocabulary);
  gint32 eot, eom;

  if (!runnel_gguf_get_index (gguf, KEY ("bos_token_id"), n,
                              &parts->bos, error)
      || !runnel_gguf_get_index (gguf, KEY ("eos_token_id"), n,
                                 &parts->eos, error)
      || !runnel_gguf_get_index (gguf, KEY ("eot_token_id"), n,
                                 &eot, error)
      || !runnel_gguf_get_index (gguf, KEY ("eom_token_id"), n,
                                 &eom, error))
    return FALSE;
  runnel_tokenizer_parts_add_stop (parts, parts->eos);
  runnel_tokenizer_parts_add_stop (parts, eot);
  runnel_tokenizer_parts_add_stop (parts, eom);
  if (!runnel_gguf_get_boolean_or (
          gguf, KEY ("add_bos_token"),
          parts->pre == RUNNEL_PRETOKENIZER_LLAMA_BPE, &parts->add_bos, error))
    return FALSE;
  if (parts->bos < 0)
    parts->add_bos = FALSE;
  return runnel_gguf_dup_string_or_null (gguf, "tokenizer.chat_template",
                                         &parts->chat_template, error);
}

RunnelTokenizer *
runnel_tokenizer_new_from_gguf (const RunnelGguf *gguf, GError **error)
{
  g_autoptr (RunnelTokenizerParts) parts = NULL;

  if (runnel_tokenizer_is_in_package (gguf))
    return runnel_tokenizer_new_from_package (gguf, error);
  parts = runnel_tokenizer_parts_new ();
  if (!check_model (gguf, &parts->pre, error)
      || !read_tokens (parts, gguf, error)
      || !read_merges (parts, gguf, error)
      || !read_special (parts, gguf, error))
    return NULL;
  return runnel_tokenizer_new_take (g_steal_pointer (&parts));
}
