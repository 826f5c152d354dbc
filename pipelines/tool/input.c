/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <runnel.h>

static void
set_too_long (GError **error, const char *what)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
      "%s is longer than %d MiB, the limit of a text", what,
      INPUT_MAX_BYTES / (1024 * 1024));
}

static void
set_unreadable (GError **error, const char *what, int error_number)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO, "%s cannot be read: %s",
      what, g_strerror (error_number));
}

static char *
read_stream (FILE *stream, const char *what, gsize *length, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);
  char block[65536];
  gsize n;

  while ((n = fread (block, 1, sizeof block, stream)) > 0) {
    if (text->len + n > INPUT_MAX_BYTES) {
      set_too_long (error, what);
      return NULL;
    }
    g_string_append_len (text, block, n);
  }
  if (ferror (stream)) {
    set_unreadable (error, what, errno);
    return NULL;
  }
  *length = text->len;
  return g_string_free (g_steal_pointer (&text), FALSE);
}

char *
input_read_all (gsize *length, GError **error)
{
  return read_stream (stdin, "standard input", length, error);
}

gboolean
input_read_line (GString *line, GError **error)
{
  int c;

  g_string_truncate (line, 0);
  while ((c = getc_unlocked (stdin)) != EOF && c != '\n') {
    if (line->len >= INPUT_MAX_BYTES) {
      set_too_long (error, "a line of standard input");
      return FALSE;
    }
    g_string_append_c (line, c);
  }
  if (c == EOF && ferror (stdin)) {
    set_unreadable (error, "standard input", errno);
    return FALSE;
  }
  return c == '\n' || line->len > 0;
}

gboolean
input_check_text (const char *text, gsize length, const char *what,
                  GError **error)
{
  const char *bad;

  if (g_utf8_validate_len (text, length, &bad))
    return TRUE;
  if (*bad == '\0')
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s holds a NUL byte: it is no text", what);
  else
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s is no text in UTF-8", what);
  return FALSE;
}

char *
input_read_file (const char *path, gsize *length, GError **error)
{
  struct stat status;
  FILE *file;
  char *text;

  if (strcmp (path, "-") == 0)
    return input_read_all (length, error);
  file = fopen (path, "rbe");
  if (file == NULL) {
    set_unreadable (error, path, errno);
    return NULL;
  }
  if (fstat (fileno (file), &status) == 0 && S_ISDIR (status.st_mode)) {
    set_unreadable (error, path, EISDIR);
    text = NULL;
  } else {
    text = read_stream (file, path, length, error);
  }
  fclose (file);
  return text;
}
