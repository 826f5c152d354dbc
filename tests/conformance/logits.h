/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Logits of token sequences against stored ones.
 */
#pragma once

#include "model/sequence.h"
#include "npz.h"

typedef struct {
  double max, squares;
  gsize n;
} LogitsDeviation;

/* The logits of @n tokens in a sequence of their own: n * n_vocab floats. */
float *logits_forward (RunnelEngine *engine, const gint32 *ids, gsize n,
                       gsize n_vocab, GError **error);
/* Adds to @deviation what the logits of the sequences ids_1, ids_17 and ids_64
 * differ from those of @reference: arrays logits_N cover all positions,
 * logits_64_at_pos those of pos_64. */
gboolean logits_compare (RunnelEngine *engine, Npz *ids, Npz *reference,
                         gsize n_vocab, LogitsDeviation *deviation,
                         GError **error);
