/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "token-list.h"

#include <string.h>

static gboolean
check_token (gint64 token, const char *what, guint n_vocab, GError **error)
{
  if (token >= 0 && token < n_vocab)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
      "%s: %" G_GINT64_FORMAT " is no token of the model, whose ids go from "
      "0 to %u", what, token, n_vocab - 1);
  return FALSE;
}

static const char *
skip_separators (const char *at, const char *end)
{
  while (at < end && *at != '\0'
      && (g_ascii_isspace (*at) || strchr (",[]", *at) != NULL))
    at++;
  return at;
}

gint32 *
token_list_parse (const char *text, gsize length, const char *what,
                  guint n_vocab, gsize *ret_n, GError **error)
{
  g_autoptr (GArray) tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
  const char *end = text + length;
  const char *at = skip_separators (text, end);

  while (at < end) {
    char *after;
    gint64 value = g_ascii_strtoll (at, &after, 10);
    gint32 token = (gint32) value;

    if (after == at || (after < end && skip_separators (after, end) == after)) {
      g_autofree char *part = g_utf8_make_valid (at, MIN (end - at, 20));

      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
          "%s: '%s' is no token id; ids are whole numbers with spaces or "
          "commas between them", what, g_strdelimit (part, "\n\r", ' '));
      return NULL;
    }
    if (!check_token (value, what, n_vocab, error))
      return NULL;
    g_array_append_val (tokens, token);
    at = skip_separators (after, end);
  }
  *ret_n = tokens->len;
  return tokens->len > 0 ? g_array_steal (tokens, NULL) : g_new (gint32, 1);
}

gint32 *
token_list_from_json (const RunnelJsonNode *node, const char *what,
                      guint n_vocab, gsize *ret_n, GError **error)
{
  g_autofree gint32 *tokens = NULL;
  gsize n;

  if (runnel_json_node_kind (node) == RUNNEL_JSON_OBJECT)
    node = runnel_json_node_member (node, "ids");
  if (node == NULL || runnel_json_node_kind (node) != RUNNEL_JSON_ARRAY) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s is neither an array of token ids nor an object with an array "
        "'ids'", what);
    return NULL;
  }
  n = runnel_json_node_size (node);
  tokens = g_new (gint32, MAX (n, 1));
  for (gsize i = 0; i < n; i++) {
    gint64 value = -1;

    runnel_json_node_int64 (runnel_json_node_item (node, i), &value);
    if (!check_token (value, what, n_vocab, error))
      return NULL;
    tokens[i] = (gint32) value;
  }
  *ret_n = n;
  return g_steal_pointer (&tokens);
}

gint32 *
token_list_prepend (gint32 *tokens, gsize *n_tokens, gint32 token)
{
  gint32 *longer = g_new (gint32, *n_tokens + 1);

  longer[0] = token;
  memcpy (longer + 1, tokens, *n_tokens * sizeof *tokens);
  *n_tokens += 1;
  g_free (tokens);
  return longer;
}
