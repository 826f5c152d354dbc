/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The model and the added tokens of Hugging Face's tokenizer.json, with what
 * tokenizer_config.json and generation_config.json say about them.
 */
#include "tokenizer-json.h"

#include <string.h>

#include "../error.h"
#include "character-class.h"
#include "normalizer.h"

/* Ids without a token are kept within reason: each costs memory. */
#define MAX_GAPS 16384

typedef const RunnelJsonNode Node;

#define member runnel_tokenizer_json_member

static gboolean
malformed (GError **error, const RunnelJson *json, const char *what)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED, "%s: %s",
               runnel_json_name (json), what);
  return FALSE;
}

static gboolean
is_kind (Node *node, RunnelJsonKind kind)
{
  return node != NULL && runnel_json_node_kind (node) == kind;
}

static gboolean
is_true (Node *object, const char *key)
{
  Node *node = member (object, key);

  return is_kind (node, RUNNEL_JSON_BOOLEAN) && runnel_json_node_boolean (node);
}

/* Absent, null, false, 0 or "": the ways of these files to say no. */
static gboolean
is_off (Node *object, const char *key)
{
  Node *node = member (object, key);
  gsize length;

  if (node == NULL)
    return TRUE;
  switch (runnel_json_node_kind (node)) {
    case RUNNEL_JSON_NULL:
      return TRUE;
    case RUNNEL_JSON_BOOLEAN:
      return !runnel_json_node_boolean (node);
    case RUNNEL_JSON_INTEGER:
    case RUNNEL_JSON_FLOAT:
      return runnel_json_node_double (node) == 0;
    case RUNNEL_JSON_STRING:
      runnel_json_node_string (node, &length);
      return length == 0;
    case RUNNEL_JSON_ARRAY:
    case RUNNEL_JSON_OBJECT:
      return FALSE;
  }
  return FALSE;
}

/* The model must be BPE as the four families use it. */
static gboolean
check_model (const RunnelJson *json, Node *model, GError **error)
{
  static const char *const unsupported[] = {
    "dropout", "continuing_subword_prefix", "end_of_word_suffix",
    "byte_fallback",
  };
  Node *type = member (model, "type");

  if (!is_kind (model, RUNNEL_JSON_OBJECT))
    return malformed (error, json, "has no \"model\"");
  if (is_kind (type, RUNNEL_JSON_STRING)
      && strcmp (runnel_json_node_string (type, NULL), "BPE") != 0) {
    g_autofree char *excerpt = runnel_tokenizer_json_excerpt (
        runnel_json_node_string (type, NULL));

    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
                 "%s: model.type is \"%s\"; only byte-level BPE is "
                 "supported", runnel_json_name (json), excerpt);
    return FALSE;
  }
  for (guint i = 0; i < G_N_ELEMENTS (unsupported); i++) {
    if (!is_off (model, unsupported[i])) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
                   "%s: model.%s is set, which is not supported",
                   runnel_json_name (json), unsupported[i]);
      return FALSE;
    }
  }
  if (!is_kind (member (model, "vocab"), RUNNEL_JSON_OBJECT)
      || !is_kind (member (model, "merges"), RUNNEL_JSON_ARRAY))
    return malformed (error, json,
                      "model lacks the object \"vocab\" or the array "
                      "\"merges\"");
  return TRUE;
}

static gboolean
raise_max (const RunnelJson *json, Node *node, gint64 *max, GError **error)
{
  gint64 id;

  if (node == NULL || !runnel_json_node_int64 (node, &id) || id < 0
      || id >= RUNNEL_MAX_TOKENS) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                 "%s: a token's id is no integer from 0 to %u",
                 runnel_json_name (json), RUNNEL_MAX_TOKENS - 1);
    return FALSE;
  }
  *max = MAX (*max, id);
  return TRUE;
}

/* One more than the highest id. */
static gboolean
count_ids (const RunnelTokenizerFiles *files, Node *vocab, Node *added,
           gsize *ret, GError **error)
{
  const RunnelJson *json = files->tokenizer;
  gsize n_vocab = runnel_json_node_size (vocab);
  gsize n_added = added != NULL ? runnel_json_node_size (added) : 0;
  gint64 max = -1;

  for (gsize i = 0; i < n_vocab; i++)
    if (!raise_max (json, runnel_json_node_value (vocab, i), &max, error))
      return FALSE;
  for (gsize i = 0; i < n_added; i++)
    if (!raise_max (json, member (runnel_json_node_item (added, i), "id"),
                    &max, error))
      return FALSE;
  if (max >= (gint64) (n_vocab + n_added + MAX_GAPS)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
                 "%s: ids go up to %" G_GINT64_FORMAT " for %" G_GSIZE_FORMAT
                 " tokens; at most %d may be unused", runnel_json_name (json),
                 max, n_vocab + n_added, MAX_GAPS);
    return FALSE;
  }
  *ret = max + 1;
  if (files->n_vocab == 0)
    return TRUE;
  if (*ret > files->n_vocab || files->n_vocab > RUNNEL_MAX_TOKENS) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
                 "%s: has %" G_GSIZE_FORMAT " ids, but the model's vocabulary "
                 "is %u", runnel_json_name (json), *ret, files->n_vocab);
    return FALSE;
  }
  *ret = files->n_vocab;
  return TRUE;
}

/* Checks an added token and enters it into the table. */
static gboolean
read_added (const RunnelJson *json, Node *node, RunnelTokenText *tokens,
            GError **error)
{
  static const char *const unsupported[] = { "single_word", "lstrip",
                                             "rstrip" };
  Node *content = member (node, "content");
  const char *text;
  gsize length;
  gint64 id;

  if (!is_kind (content, RUNNEL_JSON_STRING))
    return malformed (error, json, "an added token has no \"content\"");
  text = runnel_json_node_string (content, &length);
  for (guint i = 0; i < G_N_ELEMENTS (unsupported); i++) {
    if (is_true (node, unsupported[i])) {
      g_autofree char *excerpt = runnel_tokenizer_json_excerpt (text);

      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
                   "%s: added token \"%s\" has %s, which is not supported",
                   runnel_json_name (json), excerpt, unsupported[i]);
      return FALSE;
    }
  }
  /* count_ids has seen that there is one and that it fits. */
  if (!runnel_json_node_int64 (member (node, "id"), &id))
    return FALSE;
  return runnel_token_text_set (tokens, id, text, length,
                                is_true (node, "special")
                                    ? RUNNEL_TOKEN_CONTROL
                                    : RUNNEL_TOKEN_USER_DEFINED,
                                runnel_json_name (json), error);
}

/* Tokens with "normalized" are searched for in normalised text, so their own
 * text is normalised as well. */
static void
add_matchers (RunnelTokenizerParts *parts, Node *added)
{
  const guint8 *classes = runnel_character_classes ();

  for (gsize i = 0; i < runnel_json_node_size (added); i++) {
    Node *node = runnel_json_node_item (added, i);
    g_autoptr (GString) composed = g_string_new (NULL);
    gsize length;
    gint64 id = -1;
    const char *text = runnel_json_node_string (
        member (node, "content"), &length);

    runnel_json_node_int64 (member (node, "id"), &id);
    if (!is_true (node, "normalized")) {
      runnel_added_tokens_add (parts->added, (const guint8 *) text, length,
                               id);
      continue;
    }
    if (runnel_pretokenizer_wants_nfc (parts->pre))
      runnel_normalize_nfc (classes, text, length, composed);
    else
      g_string_append_len (composed, text, length);
    runnel_added_tokens_add (parts->added_normalized,
                             (const guint8 *) composed->str, composed->len,
                             id);
  }
}

static gboolean
read_vocabulary (RunnelTokenizerParts *parts,
                 const RunnelTokenizerFiles *files, Node *vocab, Node *added,
                 GError **error)
{
  g_autofree RunnelTokenText *tokens = NULL;
  gsize n, n_added = 0;

  if (added != NULL && runnel_json_node_kind (added) != RUNNEL_JSON_NULL) {
    if (runnel_json_node_kind (added) != RUNNEL_JSON_ARRAY)
      return malformed (error, files->tokenizer,
                        "\"added_tokens\" is no array");
    n_added = runnel_json_node_size (added);
  }
  if (!count_ids (files, vocab, n_added > 0 ? added : NULL, &n, error))
    return FALSE;
  tokens = g_new0 (RunnelTokenText, n + 1);
  for (gsize i = 0; i < n; i++)
    tokens[i].type = RUNNEL_TOKEN_UNUSED;
  for (gsize i = 0; i < runnel_json_node_size (vocab); i++) {
    gsize length;
    const char *text = runnel_json_node_key (vocab, i, &length);
    gint64 id = 0;

    runnel_json_node_int64 (runnel_json_node_value (vocab, i), &id);
    if (!runnel_token_text_set (tokens, id, text, length, RUNNEL_TOKEN_NORMAL,
                                runnel_json_name (files->tokenizer), error))
      return FALSE;
  }
  for (gsize i = 0; i < n_added; i++)
    if (!read_added (files->tokenizer, runnel_json_node_item (added, i),
                     tokens, error))
      return FALSE;
  parts->vocabulary =
      runnel_vocabulary_new (tokens, n, runnel_json_name (files->tokenizer),
                             error);
  if (parts->vocabulary == NULL)
    return FALSE;
  if (n_added > 0)
    add_matchers (parts, added);
  return runnel_tokenizer_parts_seal (
      parts, runnel_json_name (files->tokenizer), error);
}

/* A merge is written "a b" or ["a", "b"]. */
static gboolean
read_merge (RunnelTokenizerParts *parts, const RunnelJson *json, Node *node,
            GError **error)
{
  const char *left, *right;
  gsize left_length, right_length;

  if (is_kind (node, RUNNEL_JSON_STRING)) {
    left = runnel_json_node_string (node, &right_length);
    right = memchr (left, ' ', right_length);
    if (right == NULL)
      return malformed (error, json, "a merge has no blank between two parts");
    left_length = right - left;
    right++;
    right_length -= left_length + 1;
  } else if (is_kind (node, RUNNEL_JSON_ARRAY)
             && runnel_json_node_size (node) == 2
             && is_kind (runnel_json_node_item (node, 0), RUNNEL_JSON_STRING)
             && is_kind (runnel_json_node_item (node, 1),
                         RUNNEL_JSON_STRING)) {
    left = runnel_json_node_string (runnel_json_node_item (node, 0),
                                    &left_length);
    right = runnel_json_node_string (runnel_json_node_item (node, 1),
                                     &right_length);
  } else {
    return malformed (error, json,
                      "a merge is neither \"a b\" nor [\"a\", \"b\"]");
  }
  return runnel_bpe_add_merge (parts->bpe, left, left_length, right,
                               right_length, runnel_json_name (json), error);
}

/* The token that stands for bytes the vocabulary lacks. */
static gboolean
read_unknown (RunnelTokenizerParts *parts, const RunnelJson *json, Node *model,
              GError **error)
{
  Node *node = member (model, "unk_token");
  Node *id;
  gint64 token;

  if (is_off (model, "unk_token") || runnel_bpe_has_all_bytes (parts->bpe))
    return TRUE;
  id = is_kind (node, RUNNEL_JSON_STRING)
      ? member (member (model, "vocab"), runnel_json_node_string (node, NULL))
      : NULL;
  if (id == NULL || !runnel_json_node_int64 (id, &token))
    return malformed (error, json, "model.unk_token is no token");
  if (is_true (model, "fuse_unk")) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
                 "%s: model.fuse_unk is set and bytes are missing, which is "
                 "not supported", runnel_json_name (json));
    return FALSE;
  }
  runnel_bpe_set_unknown (parts->bpe, token);
  return TRUE;
}

static gboolean
read_model (RunnelTokenizerParts *parts, const RunnelTokenizerFiles *files,
            GError **error)
{
  const RunnelJson *json = files->tokenizer;
  Node *root = runnel_json_root (json);
  Node *model = member (root, "model");
  Node *merges;

  if (!check_model (json, model, error)
      || !read_vocabulary (parts, files, member (model, "vocab"),
                           member (root, "added_tokens"), error))
    return FALSE;
  merges = member (model, "merges");
  parts->bpe = runnel_bpe_new (parts->vocabulary,
                               runnel_json_node_size (merges),
                               is_true (model, "ignore_merges"));
  for (gsize i = 0; i < runnel_json_node_size (merges); i++)
    if (!read_merge (parts, json, runnel_json_node_item (merges, i), error))
      return FALSE;
  return read_unknown (parts, json, model, error);
}

/* bos_token and eos_token are a string, or an object with "content". */
static gboolean
read_named (RunnelTokenizerParts *parts, const RunnelJson *config,
            const char *key, gint32 *ret, GError **error)
{
  Node *node = member (runnel_json_root (config), key);
  const char *text;
  gsize length;

  if (is_kind (node, RUNNEL_JSON_OBJECT))
    node = member (node, "content");
  if (node == NULL || runnel_json_node_kind (node) == RUNNEL_JSON_NULL)
    return TRUE;
  if (runnel_json_node_kind (node) != RUNNEL_JSON_STRING) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                 "%s: %s is neither a string nor an object with \"content\"",
                 runnel_json_name (config), key);
    return FALSE;
  }
  text = runnel_json_node_string (node, &length);
  *ret = length > 0 ? runnel_tokenizer_parts_find (parts, text, length) : -1;
  if (*ret < 0) {
    g_autofree char *excerpt = runnel_tokenizer_json_excerpt (text);

    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
                 "%s: %s \"%s\" is no token of tokenizer.json",
                 runnel_json_name (config), key, excerpt);
    return FALSE;
  }
  return TRUE;
}

/* What follows a NUL would be lost without a word. */
static gboolean
take_template (RunnelTokenizerParts *parts, const RunnelJson *config,
               Node *node, GError **error)
{
  gsize length;
  const char *text = runnel_json_node_string (node, &length);

  if (strlen (text) != length)
    return malformed (error, config, "chat_template holds a NUL character");
  parts->chat_template = g_strdup (text);
  return TRUE;
}

/* A string, or a list of {name, template} of which "default" is taken. */
static gboolean
read_template (RunnelTokenizerParts *parts, const RunnelJson *config,
               GError **error)
{
  Node *node = member (runnel_json_root (config), "chat_template");

  if (node == NULL || runnel_json_node_kind (node) == RUNNEL_JSON_NULL)
    return TRUE;
  if (runnel_json_node_kind (node) == RUNNEL_JSON_STRING)
    return take_template (parts, config, node, error);
  if (runnel_json_node_kind (node) != RUNNEL_JSON_ARRAY)
    return malformed (error, config,
                      "chat_template is neither a string nor a list");
  for (gsize i = 0; i < runnel_json_node_size (node); i++) {
    Node *item = runnel_json_node_item (node, i);
    Node *name = member (item, "name");
    Node *template = member (item, "template");

    if (is_kind (name, RUNNEL_JSON_STRING)
        && is_kind (template, RUNNEL_JSON_STRING)
        && strcmp (runnel_json_node_string (name, NULL), "default") == 0)
      return take_template (parts, config, template, error);
  }
  return malformed (error, config, "chat_template has none named \"default\"");
}

static gboolean
read_config (RunnelTokenizerParts *parts, const RunnelJson *config,
             GError **error)
{
  Node *root = runnel_json_root (config);
  Node *add_bos = member (root, "add_bos_token");
  gint32 bos = -1;

  if (!is_kind (root, RUNNEL_JSON_OBJECT))
    return malformed (error, config, "is no object");
  if (!is_off (root, "add_prefix_space") || !is_off (root, "add_eos_token")) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
                 "%s: add_prefix_space or add_eos_token is set, which is not "
                 "supported", runnel_json_name (config));
    return FALSE;
  }
  if (!read_named (parts, config, "bos_token", &bos, error)
      || !read_named (parts, config, "eos_token", &parts->eos, error))
    return FALSE;
  if (bos >= 0 && parts->bos >= 0 && bos != parts->bos) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
                 "%s: bos_token is token %d, but tokenizer.json puts token %d "
                 "before a text", runnel_json_name (config), bos, parts->bos);
    return FALSE;
  }
  if (bos >= 0)
    parts->bos = bos;
  if (is_kind (add_bos, RUNNEL_JSON_BOOLEAN))
    parts->add_bos = runnel_json_node_boolean (add_bos) && parts->bos >= 0;
  runnel_tokenizer_parts_add_stop (parts, parts->eos);
  return parts->chat_template != NULL || read_template (parts, config, error);
}

static gboolean
add_stop (RunnelTokenizerParts *parts, const RunnelJson *generation,
          Node *node, GError **error)
{
  gint64 id;

  if (!runnel_json_node_int64 (node, &id) || id < 0
      || id >= runnel_vocabulary_size (parts->vocabulary)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                 "%s: eos_token_id is not below the vocabulary's %u tokens",
                 runnel_json_name (generation),
                 runnel_vocabulary_size (parts->vocabulary));
    return FALSE;
  }
  runnel_tokenizer_parts_add_stop (parts, id);
  return TRUE;
}

static gboolean
read_generation (RunnelTokenizerParts *parts, const RunnelJson *generation,
                 GError **error)
{
  Node *root = runnel_json_root (generation);
  Node *node = member (root, "eos_token_id");

  if (!is_kind (root, RUNNEL_JSON_OBJECT))
    return malformed (error, generation, "is no object");
  if (node == NULL || runnel_json_node_kind (node) == RUNNEL_JSON_NULL)
    return TRUE;
  if (runnel_json_node_kind (node) == RUNNEL_JSON_ARRAY) {
    for (gsize i = 0; i < runnel_json_node_size (node); i++)
      if (!add_stop (parts, generation, runnel_json_node_item (node, i),
                     error))
        return FALSE;
  } else if (!add_stop (parts, generation, node, error)) {
    return FALSE;
  }
  if (parts->eos < 0 && parts->stop_tokens->len > 0)
    parts->eos = g_array_index (parts->stop_tokens, gint32, 0);
  return TRUE;
}

RunnelTokenizer *
runnel_tokenizer_new_from_files (const RunnelTokenizerFiles *files,
                                 GError **error)
{
  g_autoptr (RunnelTokenizerParts) parts = runnel_tokenizer_parts_new ();

  parts->chat_template = g_strdup (files->chat_template);
  if (!runnel_tokenizer_json_pretokenizer (files->tokenizer, &parts->pre,
                                           error)
      || !read_model (parts, files, error)
      || !runnel_tokenizer_json_postprocessor (files->tokenizer, parts, error)
      || (files->config != NULL && !read_config (parts, files->config, error))
      || (files->generation != NULL
          && !read_generation (parts, files->generation, error)))
    return NULL;
  return runnel_tokenizer_new_take (g_steal_pointer (&parts));
}
