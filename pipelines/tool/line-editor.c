/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "line-editor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <glib/gstdio.h>
#include <histedit.h>

#include "input.h"

#define HISTORY_LENGTH 1000

struct _LineEditor {
  char *prompt;
  char *history_path;
  EditLine *edit;       /* NULL: no terminal */
  History *history;
};

static volatile sig_atomic_t interrupted;
static int wake_pipe[2] = { -1, -1 };

static void
on_interrupt (int signal_number)
{
  int saved = errno;

  interrupted = 1;
  if (write (wake_pipe[1], "", 1) < 0)
    errno = saved;           /* full: then the reader wakes anyway */
}

/* The signal may come to another thread, or between two waits: it is seen by
 * the pipe, which the reader waits for beside the terminal. */
static void
catch_interrupt (void)
{
  struct sigaction action = { .sa_handler = on_interrupt };
  char byte;

  if (wake_pipe[0] < 0 && pipe2 (wake_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
    wake_pipe[0] = wake_pipe[1] = -1;
  interrupted = 0;
  while (read (wake_pipe[0], &byte, 1) == 1)
    ;
  sigaction (SIGINT, &action, NULL);
}

static char *
get_prompt (EditLine *edit)
{
  LineEditor *self;

  el_get (edit, EL_CLIENTDATA, &self);
  return self->prompt;
}

/* Of the character that begins with @byte. */
static int
count_bytes (guint8 byte)
{
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

static gboolean
read_byte (EditLine *edit, char *byte)
{
  struct pollfd files[] = {
    { .fd = STDIN_FILENO, .events = POLLIN },
    { .fd = wake_pipe[0], .events = POLLIN },
  };

  while (!interrupted) {
    if (poll (files, G_N_ELEMENTS (files), -1) < 0)
      el_resize (edit);
    else if (!interrupted && files[0].revents != 0)
      return read (STDIN_FILENO, byte, 1) == 1;
  }
  return FALSE;
}

/* libedit's own goes on after a signal. */
static int
read_character (EditLine *edit, wchar_t *character)
{
  char bytes[4];
  gunichar value;
  int n;

  if (!read_byte (edit, &bytes[0]))
    return interrupted ? -1 : 0;
  n = count_bytes ((guint8) bytes[0]);
  for (int i = 1; i < n; i++)
    if (!read_byte (edit, &bytes[i]))
      return interrupted ? -1 : 0;
  value = g_utf8_get_char_validated (bytes, n);
  *character = (gint32) value < 0 ? 0xfffd : (wchar_t) value;
  return 1;
}

static void
load_history (LineEditor *self)
{
  HistEvent event;

  self->history = history_init ();
  history (self->history, &event, H_SETSIZE, HISTORY_LENGTH);
  history (self->history, &event, H_SETUNIQUE, 1);
  if (self->history_path != NULL)
    history (self->history, &event, H_LOAD, self->history_path);
  el_set (self->edit, EL_HIST, history, self->history);
}

LineEditor *
line_editor_new (const char *prompt, const char *history_path)
{
  LineEditor *self = g_new0 (LineEditor, 1);

  self->prompt = g_strdup (prompt);
  self->history_path = g_strdup (history_path);
  if (!isatty (STDIN_FILENO) || !isatty (STDOUT_FILENO))
    return self;
  self->edit = el_init ("runnel", stdin, stdout, stderr);
  if (self->edit == NULL)
    return self;
  el_set (self->edit, EL_CLIENTDATA, self);
  el_set (self->edit, EL_PROMPT, get_prompt);
  el_set (self->edit, EL_EDITOR, "emacs");
  el_set (self->edit, EL_GETCFN, read_character);
  load_history (self);
  return self;
}

/* Only its owner may read what was said. */
static void
save_history (LineEditor *self)
{
  g_autofree char *folder = NULL;
  HistEvent event;

  if (self->history_path == NULL)
    return;
  folder = g_path_get_dirname (self->history_path);
  g_mkdir_with_parents (folder, 0700);
  history (self->history, &event, H_SAVE, self->history_path);
  g_chmod (self->history_path, 0600);
}

void
line_editor_free (LineEditor *self)
{
  if (self->edit != NULL) {
    save_history (self);
    history_end (self->history);
    el_end (self->edit);
  }
  g_free (self->prompt);
  g_free (self->history_path);
  g_free (self);
}

static char *
read_edited (LineEditor *self)
{
  const char *text;
  HistEvent event;
  char *line;
  int n;

  catch_interrupt ();
  text = el_gets (self->edit, &n);
  if (interrupted) {
    el_reset (self->edit);
    putchar ('\n');
    return g_strdup ("");
  }
  if (text == NULL || n <= 0) {
    putchar ('\n');
    return NULL;
  }
  line = g_strchomp (g_strdup (text));
  if (*line != '\0')
    history (self->history, &event, H_ENTER, line);
  return line;
}

char *
line_editor_read (LineEditor *self, GError **error)
{
  g_autoptr (GString) line = NULL;

  if (self->edit != NULL)
    return read_edited (self);
  line = g_string_new (NULL);
  if (!input_read_line (line, error)
      || !input_check_text (line->str, line->len, "the prompt", error))
    return NULL;
  return g_string_free (g_steal_pointer (&line), FALSE);
}
