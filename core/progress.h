/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * RunnelProgressFunc:
 * @fraction: 0 to 1
 * @user_data: the caller's
 *
 * Told how far a slow operation has come, from the thread that does it.
 *
 * Since: 0.1
 */
typedef void (*RunnelProgressFunc) (double fraction, gpointer user_data);

G_END_DECLS
