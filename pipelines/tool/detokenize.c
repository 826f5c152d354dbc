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

static gboolean special, lines, json_lines;

static const GOptionEntry entries[] = {
  { "special", 's', 0, G_OPTION_ARG_NONE, &special,
    "Show control tokens by their literal text", NULL },
  { "lines", 'l', 0, G_OPTION_ARG_NONE, &lines,
    "Every line of the input is a text of its own", NULL },
  { "json-lines", 0, 0, G_OPTION_ARG_NONE, &json_lines,
    "Every line of the input is JSON: an array of ids, or an object with "
    "'ids'; implies --json", NULL },
  G_OPTION_ENTRY_NULL
};

typedef struct {
  RunnelTokenizer *tokenizer;
  guint n_tokens;
  gboolean json;
} Detokenize;

static gboolean
print_text (const Detokenize *self, const gint32 *tokens, gsize n_tokens,
            GError **error)
{
  g_autoptr (GBytes) bytes = runnel_tokenizer_decode (self->tokenizer, tokens,
      n_tokens, special, error);
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;
  const char *text;
  gsize size;

  if (bytes == NULL)
    return FALSE;
  text = g_bytes_get_data (bytes, &size);
  if (size == 0)
    text = "";
  if (!self->json) {
    fwrite (text, 1, size, stdout);
    return TRUE;
  }
  json_begin_object (&json, NULL);
  json_add_tokens (&json, "ids", tokens, n_tokens);
  json_add_string (&json, "text", text, size);
  json_end_object (&json);
  json_print (&json);
  return TRUE;
}

static gboolean
detokenize (const Detokenize *self, const char *text, gsize length,
            const char *what, GError **error)
{
  gsize n;
  g_autofree gint32 *tokens = token_list_parse (text, length, what,
      self->n_tokens, &n, error);

  return tokens != NULL && print_text (self, tokens, n, error);
}

static gboolean
detokenize_json (const Detokenize *self, const char *line, gsize length,
                 const char *what, GError **error)
{
  g_autoptr (RunnelJson) json = runnel_json_parse (line, length, what, error);
  g_autofree gint32 *tokens = NULL;
  gsize n;

  if (json == NULL)
    return FALSE;
  tokens = token_list_from_json (runnel_json_root (json), what,
      self->n_tokens, &n, error);
  return tokens != NULL && print_text (self, tokens, n, error);
}

static gboolean
detokenize_lines (const Detokenize *self, GError **error)
{
  g_autoptr (GString) line = g_string_new (NULL);
  guint number = 0;

  while (input_read_line (line, error)) {
    g_autofree char *what = g_strdup_printf ("line %u of the input", ++number);

    if (json_lines && line->len == 0)
      continue;
    if (!(json_lines
            ? detokenize_json (self, line->str, line->len, what, error)
            : detokenize (self, line->str, line->len, what, error)))
      return FALSE;
    if (!self->json)
      putchar ('\n');
    if (report_flush_output () != 0)
      break;   /* which ends the command with an error */
  }
  return *error == NULL;
}

static int
run (const Options *options)
{
  Detokenize self = { .json = options->json || json_lines };
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  gsize length;
  gboolean ok;

  model = loading_open_model (options, &error);
  self.tokenizer = model ? runnel_model_get_tokenizer (model, &error) : NULL;
  if (self.tokenizer == NULL)
    return report_error (error);
  self.n_tokens = runnel_tokenizer_get_n_tokens (self.tokenizer);
  if (options->n_arguments > 0) {
    ok = detokenize (&self, options->arguments[0],
        strlen (options->arguments[0]), "IDS", &error);
  } else if (lines || json_lines) {
    ok = detokenize_lines (&self, &error);
  } else {
    text = input_read_all (&length, &error);
    ok = text != NULL
        && detokenize (&self, text, length, "the input", &error);
  }
  return ok ? EXIT_OK : report_error (error);
}

const Verb verb_detokenize = {
  .name = "detokenize",
  .parameters = "[IDS]",
  .summary = "Token ids to text",
  .details = "IDS are numbers with spaces or commas between them; without "
    "them standard input\nis read. The text is written as it is, with no line "
    "end behind it.",
  .uses = USES_MODEL | USES_JSON,
  .max_arguments = 1,
  .entries = entries,
  .run = run,
};
