/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* What is measured inside the process: reading a prompt and making tokens. */
#pragma once

#include <runnel.h>

#include "samples.h"

G_BEGIN_DECLS

typedef enum {
  BENCH_PREFILL,      /* pp: a prompt of n tokens, to the logits behind it */
  BENCH_DECODE,       /* tg: n tokens, one after the other */
  BENCH_TWO_REPLIES,  /* two replies of n tokens behind one prompt, together */
  BENCH_INFERENCE,    /* a prompt of depth tokens and a reply of n */
} BenchKind;

typedef struct {
  char *name;
  BenchKind kind;
  guint n_tokens;
  guint depth;              /* tokens that are there before, or a prompt's */
  RunnelSequence *before;   /* they; NULL when there are none */
  Samples speed;            /* tokens/s, of both replies together */
  Samples ratio;            /* two replies: their time by that of one */
} BenchCase;

BenchCase *bench_case_new (BenchKind kind, guint n_tokens, guint depth);
void bench_case_free (BenchCase *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchCase, bench_case_free)

/* Forwards what is there before. @drafter: who guesses, or NULL. */
gboolean bench_case_prepare (BenchCase *self, RunnelEngine *engine,
                             RunnelDrafter *drafter, guint64 seed,
                             GError **error);
/* Once; adds to the samples unless @warm_up. */
gboolean bench_case_run (BenchCase *self, RunnelEngine *engine, guint64 seed,
                         gboolean warm_up, GError **error);

G_END_DECLS
