/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include <runnel.h>

#include "formats/json.h"
#include "input.h"
#include "json-output.h"
#include "loading.h"
#include "report.h"
#include "token-list.h"
#include "verb.h"

static gboolean special, bos, pieces, lines, json_lines;

static const GOptionEntry entries[] = {
  { "special", 's', 0, G_OPTION_ARG_NONE, &special,
    "Let text that looks like a control token be one", NULL },
  { "bos", 0, 0, G_OPTION_ARG_NONE, &bos,
    "Begin with the model's token for the beginning of a text", NULL },
  { "pieces", 'p', 0, G_OPTION_ARG_NONE, &pieces,
    "Show each token's text beside its id, a line each", NULL },
  { "lines", 'l', 0, G_OPTION_ARG_NONE, &lines,
    "Every line of the input is a text of its own", NULL },
  { "json-lines", 0, 0, G_OPTION_ARG_NONE, &json_lines,
    "Every line of the input is JSON: a string, or an object with 'text'; "
    "implies --json", NULL },
  G_OPTION_ENTRY_NULL
};

static gint32 *
encode (RunnelTokenizer *tokenizer, const char *text, gsize length,
        const char *what, gsize *n_tokens, GError **error)
{
  g_autofree gint32 *tokens = runnel_tokenizer_encode (tokenizer, text,
      length, special, n_tokens, error);

  if (tokens == NULL)
    g_prefix_error (error, "%s: ", what);
  if (tokens == NULL || !bos)
    return g_steal_pointer (&tokens);
  if (runnel_tokenizer_get_bos (tokenizer) < 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "the model has no token for the beginning of a text; leave out --bos");
    return NULL;
  }
  return token_list_prepend (g_steal_pointer (&tokens), n_tokens,
      runnel_tokenizer_get_bos (tokenizer));
}

static void
print_json (RunnelTokenizer *tokenizer, const char *text, gsize length,
            const gint32 *tokens, gsize n_tokens)
{
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;

  json_begin_object (&json, NULL);
  json_add_string (&json, "text", text, length);
  json_add_tokens (&json, "ids", tokens, n_tokens);
  if (pieces) {
    json_begin_array (&json, "pieces");
    for (gsize i = 0; i < n_tokens; i++) {
      gsize size;
      const guint8 *piece
          = runnel_tokenizer_get_piece (tokenizer, tokens[i], &size);

      json_add_string (&json, NULL, (const char *) piece, size);
    }
    json_end_array (&json);
  }
  json_end_object (&json);
  json_print (&json);
}

static void
print_pieces (RunnelTokenizer *tokenizer, const gint32 *tokens,
              gsize n_tokens)
{
  for (gsize i = 0; i < n_tokens; i++) {
    g_autoptr (GString) quoted = g_string_new (NULL);
    gsize size;
    const guint8 *piece
        = runnel_tokenizer_get_piece (tokenizer, tokens[i], &size);

    runnel_json_append_string (quoted, (const char *) piece, size);
    printf ("%7d  %s\n", tokens[i], quoted->str);
  }
}

static gboolean
tokenize (RunnelTokenizer *tokenizer, const char *text, gsize length,
          const char *what, gboolean json, GError **error)
{
  gsize n_tokens;
  g_autofree gint32 *tokens
      = encode (tokenizer, text, length, what, &n_tokens, error);

  if (tokens == NULL)
    return FALSE;
  if (json) {
    print_json (tokenizer, text, length, tokens, n_tokens);
  } else if (pieces) {
    print_pieces (tokenizer, tokens, n_tokens);
  } else {
    for (gsize i = 0; i < n_tokens; i++)
      printf (i > 0 ? " %d" : "%d", tokens[i]);
    putchar ('\n');
  }
  return TRUE;
}

static gboolean
tokenize_json (RunnelTokenizer *tokenizer, const char *line, gsize length,
               const char *name, GError **error)
{
  g_autoptr (RunnelJson) json = runnel_json_parse (line, length, name, error);
  const RunnelJsonNode *node;
  const char *text;
  gsize size;

  if (json == NULL)
    return FALSE;
  node = runnel_json_root (json);
  if (runnel_json_node_kind (node) == RUNNEL_JSON_OBJECT)
    node = runnel_json_node_member (node, "text");
  if (node == NULL || runnel_json_node_kind (node) != RUNNEL_JSON_STRING) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s is neither a string nor an object with a string 'text'", name);
    return FALSE;
  }
  text = runnel_json_node_string (node, &size);
  return tokenize (tokenizer, text, size, name, TRUE, error);
}

static gboolean
tokenize_lines (RunnelTokenizer *tokenizer, gboolean json, GError **error)
{
  g_autoptr (GString) line = g_string_new (NULL);
  guint number = 0;

  while (input_read_line (line, error)) {
    g_autofree char *what = g_strdup_printf ("line %u of the input", ++number);

    if (json_lines && line->len == 0)
      continue;
    if (!(json_lines
            ? tokenize_json (tokenizer, line->str, line->len, what, error)
            : tokenize (tokenizer, line->str, line->len, what, json, error)))
      return FALSE;
    if (report_flush_output () != 0)
      break;   /* which ends the command with an error */
  }
  return *error == NULL;
}

static int
run (const Options *options)
{
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (GError) error = NULL;
  RunnelTokenizer *tokenizer;
  g_autofree char *text = NULL;
  gsize length;

  model = loading_open_model (options, &error);
  tokenizer = model ? runnel_model_get_tokenizer (model, &error) : NULL;
  if (tokenizer == NULL)
    return report_error (error);
  if (options->n_arguments > 0) {
    text = g_strdup (options->arguments[0]);
    length = strlen (text);
  } else if (lines || json_lines) {
    if (!tokenize_lines (tokenizer, options->json, &error))
      return report_error (error);
    return EXIT_OK;
  } else {
    text = input_read_all (&length, &error);
  }
  if (text == NULL
      || !tokenize (tokenizer, text, length, options->n_arguments > 0 ? "TEXT"
          : "standard input", options->json, &error))
    return report_error (error);
  return EXIT_OK;
}

const Verb verb_tokenize = {
  .name = "tokenize",
  .parameters = "[TEXT]",
  .summary = "Text to token ids",
  .details = "Without TEXT it reads standard input, all of it as one text.\n"
    "The ids stand on one line, with spaces between them; 'runnel detokenize'\n"
    "turns them into the same text again.",
  .uses = USES_MODEL | USES_JSON,
  .max_arguments = 1,
  .entries = entries,
  .run = run,
};
