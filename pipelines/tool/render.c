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
#include "verb.h"

static char *template_path, *tools_path, *thinking, *now_text;
static gboolean no_generation_prompt, show_tokens;

static const GOptionEntry entries[] = {
  { "template", 0, 0, G_OPTION_ARG_FILENAME, &template_path,
    "Jinja file instead of the model's own template", "FILE" },
  { "tools", 0, 0, G_OPTION_ARG_FILENAME, &tools_path,
    "JSON file of tools to offer", "FILE" },
  { "thinking", 0, 0, G_OPTION_ARG_STRING, &thinking,
    "The template's enable_thinking (default: unset)", "on|off" },
  { "no-generation-prompt", 0, 0, G_OPTION_ARG_NONE, &no_generation_prompt,
    "Do not end with the beginning of a reply", NULL },
  { "now", 0, 0, G_OPTION_ARG_STRING, &now_text,
    "The time that templates see (default: now)", "ISO-8601" },
  { "tokens", 0, 0, G_OPTION_ARG_NONE, &show_tokens,
    "Write the token ids instead of the text", NULL },
  G_OPTION_ENTRY_NULL
};

static gboolean
append_tools (GString *variables, GError **error)
{
  g_autofree char *text = NULL;
  g_autoptr (RunnelJson) json = NULL;
  gsize length;

  if (tools_path == NULL)
    return TRUE;
  text = input_read_file (tools_path, &length, error);
  json = text ? runnel_json_parse (text, length, tools_path, error) : NULL;
  if (json == NULL)
    return FALSE;
  if (runnel_json_node_kind (runnel_json_root (json)) != RUNNEL_JSON_ARRAY) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: tools are a JSON array", tools_path);
    return FALSE;
  }
  g_string_append (variables, "\"tools\":");
  g_string_append_len (variables, text, length);
  g_string_append_c (variables, ',');
  return TRUE;
}

static gboolean
append_thinking (GString *variables, GError **error)
{
  if (thinking == NULL)
    return TRUE;
  if (strcmp (thinking, "on") != 0 && strcmp (thinking, "off") != 0) {
    report_set_usage (error, "--thinking: '%s' is neither on nor off",
        thinking);
    return FALSE;
  }
  g_string_append_printf (variables, "\"enable_thinking\":%s,",
      strcmp (thinking, "on") == 0 ? "true" : "false");
  return TRUE;
}

static void
append_token (GString *variables, RunnelTokenizer *tokenizer,
              const char *name, gint32 token)
{
  const guint8 *piece;
  gsize size;

  if (token < 0)
    return;
  piece = runnel_tokenizer_get_piece (tokenizer, token, &size);
  g_string_append_printf (variables, "\"%s\":", name);
  runnel_json_append_string (variables, (const char *) piece, size);
  g_string_append_c (variables, ',');
}

/* The messages, or the object that holds them, whose members count before
 * ours: of two equal keys the last one does. The input is valid JSON, so that
 * its text can be put into other JSON. */
static gboolean
append_input (GString *variables, const char *text, gsize length,
              const char *name, GError **error)
{
  g_autoptr (RunnelJson) json
      = runnel_json_parse (text, length, name, error);
  const RunnelJsonNode *root;
  const char *brace;

  if (json == NULL)
    return FALSE;
  root = runnel_json_root (json);
  if (runnel_json_node_kind (root) == RUNNEL_JSON_ARRAY) {
    g_string_append (variables, "\"messages\":");
    g_string_append_len (variables, text, length);
    g_string_append_c (variables, '}');
    return TRUE;
  }
  if (runnel_json_node_kind (root) != RUNNEL_JSON_OBJECT
      || runnel_json_node_member (root, "messages") == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s is neither an array of messages nor an object with 'messages'",
        name);
    return FALSE;
  }
  brace = memchr (text, '{', length);
  g_string_append_len (variables, brace + 1, text + length - (brace + 1));
  return TRUE;
}

static GString *
make_variables (const char *path, RunnelTokenizer *tokenizer, GError **error)
{
  g_autoptr (GString) variables = g_string_new ("{");
  g_autofree char *text = NULL;
  gsize length;

  g_string_append_printf (variables, "\"add_generation_prompt\":%s,",
      no_generation_prompt ? "false" : "true");
  if (!append_thinking (variables, error) || !append_tools (variables, error))
    return NULL;
  if (tokenizer != NULL) {
    append_token (variables, tokenizer, "bos_token",
        runnel_tokenizer_get_bos (tokenizer));
    append_token (variables, tokenizer, "eos_token",
        runnel_tokenizer_get_eos (tokenizer));
  }
  text = input_read_file (path, &length, error);
  if (text == NULL || !append_input (variables, text, length,
          strcmp (path, "-") == 0 ? "standard input" : path, error))
    return NULL;
  return g_steal_pointer (&variables);
}

static RunnelChatTemplate *
get_template (RunnelModel *model, GError **error)
{
  g_autofree char *source = NULL;
  RunnelChatTemplate *template;
  gsize length;

  if (template_path == NULL) {
    template = runnel_model_get_chat_template (model, error);
    return template ? g_object_ref (template) : NULL;
  }
  source = input_read_file (template_path, &length, error);
  return source ? runnel_chat_template_new (source, length, template_path,
      error) : NULL;
}

static gboolean
parse_now (GDateTime **ret_now, GError **error)
{
  g_autoptr (GTimeZone) local = g_time_zone_new_local ();

  if (now_text == NULL)
    return TRUE;
  *ret_now = g_date_time_new_from_iso8601 (now_text, local);
  if (*ret_now != NULL)
    return TRUE;
  report_set_usage (error, "--now: '%s' is no time such as "
      "2026-07-14T12:00:00", now_text);
  return FALSE;
}

static void
add_spans (JsonOutput *json, const RunnelTextSpan *spans, gsize n_spans)
{
  json_begin_array (json, "template_spans");
  for (gsize i = 0; i < n_spans; i++) {
    json_begin_array (json, NULL);
    json_add_uint (json, NULL, spans[i].start);
    json_add_uint (json, NULL, spans[i].length);
    json_end_array (json);
  }
  json_end_array (json);
}

static gboolean
print_rendered (const RunnelRenderedText *rendered,
                RunnelTokenizer *tokenizer, gboolean as_json, GError **error)
{
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;
  g_autofree gint32 *tokens = NULL;
  gsize length, n_spans, n_tokens = 0;
  const char *text = runnel_rendered_text_get_text (rendered, &length);
  const RunnelTextSpan *spans
      = runnel_rendered_text_get_spans (rendered, &n_spans);

  if (show_tokens) {
    tokens = runnel_tokenizer_encode_spans (tokenizer, text, length, spans,
        n_spans, &n_tokens, error);
    if (tokens == NULL)
      return FALSE;
  }
  if (as_json) {
    json_begin_object (&json, NULL);
    json_add_string (&json, "text", text, length);
    add_spans (&json, spans, n_spans);
    if (show_tokens)
      json_add_tokens (&json, "ids", tokens, n_tokens);
    json_end_object (&json);
    json_print (&json);
  } else if (show_tokens) {
    for (gsize i = 0; i < n_tokens; i++)
      printf (i > 0 ? " %d" : "%d", tokens[i]);
    putchar ('\n');
  } else {
    fwrite (text, 1, length, stdout);
  }
  return TRUE;
}

static gboolean
render (const Options *options, GError **error)
{
  const char *path = options->n_arguments > 0 ? options->arguments[0] : "-";
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelChatTemplate) template = NULL;
  g_autoptr (RunnelRenderedText) rendered = NULL;
  g_autoptr (GString) variables = NULL;
  g_autoptr (GDateTime) now = NULL;
  RunnelTokenizer *tokenizer = NULL;

  if (!parse_now (&now, error))
    return FALSE;
  /* A template of its own does without a model, and so without its tokens. */
  if (template_path == NULL || show_tokens || options->model != NULL) {
    model = loading_open_model (options, error);
    tokenizer = model ? runnel_model_get_tokenizer (model, error) : NULL;
    if (tokenizer == NULL)
      return FALSE;
  }
  template = get_template (model, error);
  variables = template ? make_variables (path, tokenizer, error) : NULL;
  if (variables == NULL)
    return FALSE;
  rendered = runnel_chat_template_render (template, variables->str,
      variables->len, now, error);
  return rendered != NULL
      && print_rendered (rendered, tokenizer, options->json, error);
}

static int
run (const Options *options)
{
  g_autoptr (GError) error = NULL;

  return render (options, &error) ? EXIT_OK : report_error (error);
}

const Verb verb_render = {
  .name = "render",
  .parameters = "[MESSAGES]",
  .summary = "Chat messages to the text a model sees",
  .details = "MESSAGES is a file with a JSON array of messages, or with an "
    "object that has\n'messages' and whatever else the template reads; "
    "without it standard input is\nread. With --json the byte ranges of the "
    "text that came from the template go\nwith it: only there are control "
    "tokens seen.",
  .uses = USES_MODEL | USES_JSON,
  .max_arguments = 1,
  .entries = entries,
  .run = run,
};
