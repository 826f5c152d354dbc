/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* What only a process of its own can show: `runnel run` as a child. */
#pragma once

#include "verb.h"

G_BEGIN_DECLS

typedef struct {
  double first_byte;      /* seconds from exec to the first byte of a reply;
                             to its end when it is empty */
  guint64 peak_bytes;     /* of resident memory */
  guint prompt_tokens, completion_tokens;   /* with @json */
} ChildRun;

/* Runs the pipeline 'complete' on @prompt with the same model and engine
 * options. The parent has to be small still: the system counts what a child
 * shares with it before exec as the child's. */
gboolean bench_child_run (const Options *options, const char *prompt,
                          guint max_tokens, gboolean json, ChildRun *ret,
                          GError **error);

G_END_DECLS
