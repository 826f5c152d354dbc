/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* Writes a tiny DFlash 2 draft for a model to the path given, for tests that
 * are scripts. */
#include <glib/gstdio.h>

#include "model/model.h"
#include "tiny-draft.h"

int
main (int argc, char **argv)
{
  TinyDraft draft = { .version = 2, .block_size = 4, .tap = 1, .seed = 1 };
  g_autoptr (RunnelModel) target = NULL;
  g_autofree char *path = NULL;
  g_autofree char *data = NULL;
  gsize size;

  if (argc != 3)
    g_error ("usage: make-draft FILE MODEL");
  target = runnel_model_open (argv[2], RUNNEL_LOAD_MODE_READ, NULL);
  g_assert (target != NULL);
  draft.n_embd = runnel_model_get_n_embd (target);
  draft.n_vocab = runnel_model_get_n_vocab (target);
  path = tiny_draft_write (&draft);
  if (!g_file_get_contents (path, &data, &size, NULL)
      || !g_file_set_contents (argv[1], data, size, NULL))
    g_error ("%s cannot be written", argv[1]);
  return g_unlink (path);
}
