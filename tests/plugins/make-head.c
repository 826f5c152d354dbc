/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* Writes a decision head for the tiny model to the path given, for tests that
 * are scripts: of our own form, or of decision2, or one that is not finite. */
#include <glib/gstdio.h>
#include <string.h>

#include "tiny-head.h"

int
main (int argc, char **argv)
{
  TinyHead head = { RUNNEL_DECISION_FORM_ISOLATED };
  g_autofree char *path = NULL;
  g_autofree char *data = NULL;
  gsize size;

  if (argc > 2 && strcmp (argv[2], "decision2") == 0)
    head.form = RUNNEL_DECISION_FORM_DECISION2;
  if (argc > 2 && strcmp (argv[2], "nan") == 0)
    head.not_finite = "query_mlp.weight";
  path = tiny_head_write (&head);
  if (argc < 2 || !g_file_get_contents (path, &data, &size, NULL)
      || !g_file_set_contents (argv[1], data, size, NULL))
    g_error ("usage: make-head FILE [decision2|nan]");
  return g_unlink (path);
}
