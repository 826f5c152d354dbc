/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Where weights live that could be used in the file as they are: there, or as
 * a copy on huge pages. Decode streams all weights once a token, and 2 MiB
 * pages read a third faster than the page cache's.
 */
#pragma once

#include "../formats/checkpoint.h"

G_BEGIN_DECLS

typedef struct {
  gboolean copy;
  gboolean huge_pages;  /* may be used for what memory is taken besides */
  char *reason;   /* for people: "used in the file: ..." */
} RunnelPlacement;

/* @bytes: of the weights that no repacking is needed for. @root: where proc
 * and sys are, "" for the system's own. */
void runnel_placement_decide (RunnelPlacement *self, RunnelLoadMode mode,
                              gboolean shared, guint64 bytes,
                              const char *root);
void runnel_placement_clear (RunnelPlacement *self);

G_END_DECLS
