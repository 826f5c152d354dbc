/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* How often decisions are right, and whether their probabilities are true, on
 * a labelled set. */
#pragma once

#include <runnel.h>

G_BEGIN_DECLS

/* @path: CSV with a header line, then text,label. @n: so many of them, drawn
 * with @seed; 0: all. Prints what it finds. */
gboolean decide_evaluate (RunnelDecider *decider, const char *path,
                          const char *instructions, guint n, guint64 seed,
                          gboolean as_json, GError **error);

G_END_DECLS
