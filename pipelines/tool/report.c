/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <runnel.h>

#include "verb.h"

static GMutex progress_mutex;
static gboolean progress_is_shown;   /* under progress_mutex */

char *
report_make_plain (const char *text)
{
  char *plain = g_strchomp (g_strdup (text));

  for (char *at = plain; *at != '\0'; at++)
    if (g_ascii_iscntrl (*at))
      *at = ' ';
  return plain;
}

static void
print_line (const char *kind, const char *text, const char *hint)
{
  g_autofree char *line = report_make_plain (text);

  report_progress_end ();
  fprintf (stderr, "%s: %s%s%s\n", g_get_prgname (), kind, line, hint);
}

int
report_error (const GError *error)
{
  g_autofree char *hint = NULL;

  if (g_error_matches (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED)) {
    report_progress_end ();
    return EXIT_INTERRUPTED;
  }
  if (error->domain != G_OPTION_ERROR) {
    print_line ("", error->message, "");
    return EXIT_FAILED;
  }
  hint = g_strdup_printf ("; see '%s --help'", g_get_prgname ());
  print_line ("", error->message, hint);
  return EXIT_USAGE;
}

void
report_warning (const char *text)
{
  print_line ("warning: ", text, "");
}

void
report_set_usage (GError **error, const char *format, ...)
{
  va_list arguments;

  va_start (arguments, format);
  g_propagate_error (error, g_error_new_valist (G_OPTION_ERROR,
          G_OPTION_ERROR_FAILED, format, arguments));
  va_end (arguments);
}

int
report_flush_output (void)
{
  static int error_number;   /* atomic */

  errno = 0;
  if (fflush (stdout) != 0 || ferror (stdout))
    g_atomic_int_compare_and_exchange (&error_number, 0, errno ? errno : EIO);
  return g_atomic_int_get (&error_number);
}

void
report_progress (const char *text)
{
  g_autofree char *plain = report_make_plain (text);

  if (!isatty (STDERR_FILENO))
    return;
  g_mutex_lock (&progress_mutex);
  fprintf (stderr, "\r\033[K%s", plain);
  fflush (stderr);
  progress_is_shown = TRUE;
  g_mutex_unlock (&progress_mutex);
}

void
report_progress_end (void)
{
  g_mutex_lock (&progress_mutex);
  if (progress_is_shown)
    fprintf (stderr, "\r\033[K");
  progress_is_shown = FALSE;
  g_mutex_unlock (&progress_mutex);
}

void
report_progress_fraction (double fraction, gpointer what)
{
  g_autofree char *text = g_strdup_printf ("%s: %d %%", (const char *) what,
      (int) (fraction * 100));

  report_progress (text);
}
