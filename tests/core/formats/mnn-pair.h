/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A tiny model as GGUF file and as the MNN package that is made of it.
 */
#pragma once

#include "tiny-mnn.h"
#include "tiny-model.h"

typedef struct {
  char *gguf, *folder;
} MnnPair;

/* A model whose rows blocks of 64 divide. */
TinyModel mnn_pair_describe (const char *architecture, RunnelTensorType type,
                             gboolean tied);
MnnPair mnn_pair_write (const TinyModel *model, const TinyMnn *how);
void mnn_pair_clear (MnnPair *self);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MnnPair, mnn_pair_clear)
