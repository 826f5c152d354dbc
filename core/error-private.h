/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "error.h"

G_BEGIN_DECLS

/* "SUBJECT: what is wrong with it": the form of messages about a file. */
void runnel_set_error_about (GError **error, RunnelError code,
                             const char *subject, const char *format, ...)
    G_GNUC_PRINTF (4, 5);

G_END_DECLS
