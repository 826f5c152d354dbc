/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What the system says of itself in the text files of proc and sys.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The text of a file in a folder, without white space around it; NULL when it
 * cannot be read. */
char *runnel_system_text_read (const char *folder, const char *name);

G_END_DECLS
