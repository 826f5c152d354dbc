/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "../api.h"

G_BEGIN_DECLS

RUNNEL_API GStrv runnel_random_model_dup_shapes (void);
RUNNEL_API gboolean runnel_random_model_write (const char *shape,
                                               const char *path,
                                               const char *type,
                                               guint64 seed,
                                               GCancellable *cancellable,
                                               GError **error);

G_END_DECLS
