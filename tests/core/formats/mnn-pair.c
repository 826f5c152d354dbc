/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "mnn-pair.h"

#include <glib/gstdio.h>

TinyModel
mnn_pair_describe (const char *architecture, RunnelTensorType type,
                   gboolean tied)
{
  TinyModel model = TINY_MODEL_DEFAULT;

  model.architecture = architecture;
  model.type = type;
  model.tied = tied;
  model.n_embd = 128;
  model.seed = g_test_rand_int ();
  return model;
}

MnnPair
mnn_pair_write (const TinyModel *model, const TinyMnn *how)
{
  MnnPair pair = { tiny_model_write (model), NULL };

  pair.folder = tiny_mnn_write (pair.gguf, pair.gguf, how);
  return pair;
}

void
mnn_pair_clear (MnnPair *self)
{
  g_remove (self->gguf);
  tiny_mnn_remove (self->folder);
  g_free (self->gguf);
  g_free (self->folder);
}
