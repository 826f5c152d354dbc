/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* Work that a signal cancels, so that it can tidy up. */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Runs @work in a thread; SIGINT, SIGTERM and SIGHUP cancel what it is
 * given. Returns when it is done. */
typedef void (*InterruptibleFunc) (GCancellable *cancellable, gpointer data);
void interruptible_run (InterruptibleFunc work, gpointer data);

G_END_DECLS
