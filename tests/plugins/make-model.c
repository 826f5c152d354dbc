/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* Writes the tiny model to the path given, for tests that are scripts. Further
 * arguments are the tokens of the reply it gives to any prompt. */
#include <glib/gstdio.h>

#include "tiny-model.h"

int
main (int argc, char **argv)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autofree char *path = NULL;
  g_autofree char *data = NULL;
  gsize size;

  if (argc > 2)
    model.script = (const char *const *) argv + 2;
  path = tiny_model_write (&model);
  if (argc < 2 || !g_file_get_contents (path, &data, &size, NULL)
      || !g_file_set_contents (argv[1], data, size, NULL))
    g_error ("usage: make-model FILE [TOKEN…]");
  return g_unlink (path);
}
