/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A tiny model and its engine, for the tests of sequences.
 */
#pragma once

#include "model/engine-private.h"

typedef struct {
  RunnelModel *model;
  RunnelEngine *engine;
  guint n_vocab;
  gint32 tokens[512];
} SequenceFixture;

typedef struct {
  const char *name;
  void (*run) (SequenceFixture *f, gconstpointer data);
} SequenceTest;

/* Runs each with keys and values of either type. */
int run_sequence_tests (int argc, char **argv, const SequenceTest *tests,
                        guint n_tests);

/* A sequence of the first @n_tokens tokens. */
RunnelSequence *new_sequence (SequenceFixture *f, guint context_length,
                              guint n_tokens);

/* Of the next token. */
float *next_logits (SequenceFixture *f, RunnelSequence *sequence);
void assert_same_next (SequenceFixture *f, RunnelSequence *a,
                       RunnelSequence *b);

RunnelEngineStats get_stats (SequenceFixture *f);
