/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "json-output.h"
#include "pipeline-file.h"
#include "property-values.h"
#include "report.h"
#include "session.h"
#include "verb.h"

#define DEFAULT_PIPELINE "reply"

static gboolean show_list, show_speed;
static char *prompt_path;

static const GOptionEntry entries[] = {
  { "file", 'f', 0, G_OPTION_ARG_FILENAME, &prompt_path,
    "Read the prompt from this file (-: standard input)", "FILE" },
  { "list", 0, 0, G_OPTION_ARG_NONE, &show_list,
    "List the presets there are", NULL },
  { "speed", 0, 0, G_OPTION_ARG_NONE, &show_speed,
    "Tell on stderr what was used and how fast it was", NULL },
  G_OPTION_ENTRY_NULL
};

static int
list_pipelines (void)
{
  g_auto (GStrv) names = pipeline_file_list ();

  for (guint i = 0; names[i] != NULL; i++) {
    g_autoptr (PipelineFile) file = pipeline_file_load (names[i], NULL);

    if (file != NULL)
      printf ("%-14s %s\n", file->name, file->description);
  }
  return EXIT_OK;
}

/* One argument is the prompt, unless it names a preset and the prompt may
 * come from elsewhere. */
static void
sort_arguments (const Options *options, const char **pipeline,
                const char **prompt)
{
  *pipeline = DEFAULT_PIPELINE;
  *prompt = NULL;
  if (options->n_arguments == 2) {
    *pipeline = options->arguments[0];
    *prompt = options->arguments[1];
  } else if (options->n_arguments == 1) {
    const char *argument = options->arguments[0];

    if (pipeline_file_exists (argument))
      *pipeline = argument;
    else
      *prompt = argument;
  }
}

static char *
read_prompt (GError **error)
{
  g_autofree char *text = NULL;
  gsize length;

  if (prompt_path == NULL && isatty (STDIN_FILENO)) {
    report_set_usage (error, "no prompt: give one as an argument, by -f FILE, "
        "or on standard input");
    return NULL;
  }
  text = input_read_file (prompt_path ? prompt_path : "-", &length, error);
  if (text == NULL)
    return NULL;
  /* The line end of a file is not part of what is said. */
  if (length > 0 && text[length - 1] == '\n')
    text[--length] = '\0';
  return input_check_text (text, length, "the prompt", error)
      ? g_steal_pointer (&text) : NULL;
}

static char *
get_prompt (const char *argument, GError **error)
{
  if (argument != NULL && prompt_path != NULL) {
    report_set_usage (error, "two prompts: '%s' and that of -f %s", argument,
        prompt_path);
    return NULL;
  }
  if (argument == NULL)
    return read_prompt (error);
  return input_check_text (argument, strlen (argument), "the prompt", error)
      ? g_strdup (argument) : NULL;
}

static const char *
finish_reason_name (RunnelFinishReason reason)
{
  g_autoptr (GEnumClass) klass = g_type_class_ref (RUNNEL_TYPE_FINISH_REASON);

  return g_enum_get_value (klass, reason)->value_nick;
}

/* The mean of accepted guesses over the passes that verified some. */
static double
get_accepted_length (const RunnelDraftStats *drafts)
{
  return drafts->blocks > 0 ? (double) drafts->accepted / drafts->blocks : 0;
}

static void
add_drafts (JsonOutput *json, const RunnelDraftStats *drafts)
{
  json_begin_object (json, "drafts");
  json_add_uint (json, "blocks", drafts->blocks);
  json_add_uint (json, "proposed_tokens", drafts->proposed);
  json_add_uint (json, "accepted_tokens", drafts->accepted);
  json_add_double (json, "mean_accepted", get_accepted_length (drafts));
  json_add_double (json, "draft_seconds", drafts->draft_time / 1e9);
  json_add_double (json, "verify_seconds", drafts->verify_time / 1e9);
  json_end_object (json);
}

static void
print_json (Session *session, const char *pipeline)
{
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;

  json_begin_object (&json, NULL);
  json_add_string (&json, "preset", pipeline, -1);
  json_begin_array (&json, "replies");
  for (guint i = 0; i < session_get_n_replies (session); i++) {
    const Reply *reply = session_get_reply (session, i);

    json_begin_object (&json, NULL);
    json_add_string (&json, "name", reply->name, -1);
    json_add_string (&json, "text", reply->text->str, reply->text->len);
    json_add_string (&json, "finish_reason",
        finish_reason_name (reply->finish_reason), -1);
    json_add_uint (&json, "prompt_tokens", reply->prompt_tokens);
    json_add_uint (&json, "cached_tokens", reply->cached_tokens);
    json_add_uint (&json, "completion_tokens", reply->completion_tokens);
    json_add_double (&json, "first_token_seconds", reply->first == 0 ? 0
        : (reply->first - session_get_started (session)) / 1e6);
    json_add_double (&json, "tokens_per_second", reply_get_speed (reply));
    add_drafts (&json, &reply->drafts);
    json_end_object (&json);
  }
  json_end_array (&json);
  json_end_object (&json);
  json_print (&json);
}

static void
print_speed (Session *session)
{
  for (guint i = 0; i < session_get_n_replies (session); i++) {
    const Reply *reply = session_get_reply (session, i);

    fprintf (stderr, "%s: %u tokens of prompt (%u of them cached), %u of "
        "reply, %.1f tokens/s, first token after %.2f s, %s\n", reply->name,
        reply->prompt_tokens, reply->cached_tokens, reply->completion_tokens,
        reply_get_speed (reply), reply->first == 0 ? 0
        : (reply->first - session_get_started (session)) / 1e6,
        finish_reason_name (reply->finish_reason));
    if (reply->drafts.blocks > 0)
      fprintf (stderr, "%s: %u of %u guesses right, %.2f in each of %u passes, "
          "%.2f s drafting, %.2f s verifying\n", reply->name,
          reply->drafts.accepted, reply->drafts.proposed,
          get_accepted_length (&reply->drafts), reply->drafts.blocks,
          reply->drafts.draft_time / 1e9, reply->drafts.verify_time / 1e9);
  }
}

static int
finish (Session *session, const Options *options, const char *pipeline)
{
  int status = EXIT_OK;

  if (options->json)
    print_json (session, pipeline);
  else if (isatty (STDOUT_FILENO))
    putchar ('\n');
  report_flush_output ();
  if (show_speed)
    print_speed (session);
  for (guint i = 0; i < session_get_n_replies (session); i++)
    if (session_get_reply (session, i)->finish_reason
        == RUNNEL_FINISH_REASON_ERROR)
      status = EXIT_FAILED;
  return session_get_interrupted (session) ? EXIT_INTERRUPTED : status;
}

static gboolean
prepare (Session *session, const char *argument, GError **error)
{
  g_autofree char *text = NULL;

  if (session_check_turns (session, NULL)) {
    report_set_usage (error, "this pipeline is a conversation: use 'runnel "
        "chat'");
    return FALSE;
  }
  if (session_takes_prompt (session)) {
    text = get_prompt (argument, error);
    if (text != NULL)
      session_set_prompt (session, text);
    return text != NULL;
  }
  if (argument == NULL && prompt_path == NULL)
    return TRUE;
  report_set_usage (error, "this pipeline takes no prompt: it has no lmprompt");
  return FALSE;
}

static int
run (const Options *options)
{
  g_autoptr (Session) session = NULL;
  g_autoptr (GError) error = NULL;
  const char *pipeline, *prompt;

  if (show_list)
    return list_pipelines ();
  sort_arguments (options, &pipeline, &prompt);
  session = session_new (pipeline, options, &error);
  if (session == NULL || !prepare (session, prompt, &error))
    return report_error (error);
  session_set_print (session, !options->json);
  if (!session_run (session, &error))
    return report_error (error);
  return finish (session, options, pipeline);
}

const Verb verb_run = {
  .name = "run",
  .parameters = "[PRESET] [PROMPT]",
  .summary = "A reply to a prompt, through a pipeline",
  .details = "PRESET is the name of a pipeline ('runnel run --list') or a "
    "file with a launch\nstring; without it, it is 'reply'. Without PROMPT "
    "the prompt is read from\nstandard input. The reply goes to standard "
    "output, and nothing else does.\n\n"
    "  runnel run \"Name three rivers of France.\" -n 60\n"
    "  runnel run complete \"Once upon a time\" --temperature 0.8 --seed 7\n"
    "  runnel run two-replies \"Name a river.\"",
  .uses = USES_MODEL | USES_ENGINE | USES_SEED | USES_JSON,
  .max_arguments = 2,
  .entries = entries,
  .more_entries = property_value_entries,
  .run = run,
};
