/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "line-editor.h"
#include "property-values.h"
#include "report.h"
#include "session.h"
#include "verb.h"

static gboolean show_speed, no_history;

static const GOptionEntry entries[] = {
  { "speed", 0, 0, G_OPTION_ARG_NONE, &show_speed,
    "Tell how fast each reply was also when input is no terminal", NULL },
  { "no-history", 0, 0, G_OPTION_ARG_NONE, &no_history,
    "Neither read nor keep the lines of other sessions", NULL },
  G_OPTION_ENTRY_NULL
};

typedef struct {
  Session *session;
  LineEditor *editor;
  gboolean on_terminal;
} Chat;

static const char help[] =
  "/clear forgets the conversation, /quit or Ctrl-D ends, /help shows this.\n"
  "Ctrl-C stops a reply and keeps what came of it. A line that ends with '\\' "
  "goes on\nin the next one.\n";

/* A prompt: a line, or several. NULL at the end, and on errors. */
static char *
read_prompt (Chat *self, GError **error)
{
  g_autoptr (GString) prompt = g_string_new (NULL);

  for (;;) {
    g_autofree char *line = line_editor_read (self->editor, error);

    if (line == NULL)
      return NULL;
    if (!g_str_has_suffix (line, "\\")) {
      g_string_append (prompt, line);
      break;
    }
    g_string_append_len (prompt, line, strlen (line) - 1);
    g_string_append_c (prompt, '\n');
  }
  return g_string_free (g_steal_pointer (&prompt), FALSE);
}

static void
end_reply (Chat *self)
{
  const Reply *reply = session_get_reply (self->session, 0);

  if (!g_str_has_suffix (reply->text->str, "\n") || reply->text->len == 0)
    putchar ('\n');
  report_flush_output ();
  if (reply->finish_reason == RUNNEL_FINISH_REASON_ERROR)
    report_warning ("this turn failed and is forgotten; /clear begins a new "
        "conversation");
  else if (self->on_terminal || show_speed)
    fprintf (stderr, "(%u tokens, %.1f tokens/s%s)\n",
        reply->completion_tokens, reply_get_speed (reply),
        reply->finish_reason == RUNNEL_FINISH_REASON_CANCELLED ? ", stopped"
        : reply->finish_reason == RUNNEL_FINISH_REASON_LENGTH
        ? ", cut at its limit" : "");
}

/* Whether the line was a command. */
static gboolean
obey (Chat *self, const char *line, gboolean *ret_quit, GError **error)
{
  if (strcmp (line, "/quit") == 0 || strcmp (line, "/exit") == 0)
    *ret_quit = TRUE;
  else if (strcmp (line, "/help") == 0)
    fputs (help, stderr);
  else if (strcmp (line, "/clear") == 0)
    *ret_quit = !session_restart (self->session, error);
  else if (g_regex_match_simple ("^/[a-z]+$", line, 0, 0))
    fprintf (stderr, "There is no command %s. %s", line, help);
  else
    return FALSE;
  return TRUE;
}

static gboolean
converse (Chat *self, GError **error)
{
  gboolean quit = FALSE;

  while (!quit) {
    g_autofree char *prompt = read_prompt (self, error);

    if (prompt == NULL)
      return *error == NULL;
    if (*prompt == '\0' || obey (self, prompt, &quit, error))
      continue;
    if (!session_ask (self->session, prompt, error))
      return FALSE;
    if (!session_get_reply (self->session, 0)->ended) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED,
          "interrupted twice");
      return FALSE;
    }
    end_reply (self);
  }
  return *error == NULL;
}

static char *
get_history_path (void)
{
  return no_history ? NULL : g_build_filename (g_get_user_state_dir (),
      "runnel", "chat-history", NULL);
}

static int
run (const Options *options)
{
  const char *pipeline = options->n_arguments > 0 ? options->arguments[0]
      : "chat";
  g_autofree char *history_path = get_history_path ();
  g_autoptr (Session) session = NULL;
  g_autoptr (LineEditor) editor = NULL;
  g_autoptr (GError) error = NULL;
  Chat self;

  session = session_new (pipeline, options, &error);
  if (session == NULL || !session_check_turns (session, &error)
      || !session_start (session, &error))
    return report_error (error);
  session_set_print (session, TRUE);
  editor = line_editor_new ("> ", history_path);
  self = (Chat) { session, editor, isatty (STDIN_FILENO) };
  if (self.on_terminal)
    fputs (help, stderr);
  return converse (&self, &error) ? EXIT_OK : report_error (error);
}

const Verb verb_chat = {
  .name = "chat",
  .parameters = "[PRESET]",
  .summary = "A conversation",
  .details = "Each line is a prompt and sees all turns before it. Ctrl-C "
    "stops a reply and keeps\nthe session; /help shows the commands. The "
    "lines are kept for the next session\nin the user's state folder.",
  .uses = USES_MODEL | USES_ENGINE | USES_SEED,
  .max_arguments = 1,
  .entries = entries,
  .more_entries = property_value_entries,
  .run = run,
};
