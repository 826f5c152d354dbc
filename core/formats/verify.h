/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "../api.h"
#include "../progress.h"

G_BEGIN_DECLS

RUNNEL_API gboolean runnel_verify_file (const char *path,
                                        RunnelProgressFunc progress,
                                        gpointer user_data,
                                        GCancellable *cancellable,
                                        GError **error);

G_END_DECLS
