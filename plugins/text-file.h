/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Files that elements read whole when they start: prompts, templates, tools.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Reads a regular file of at most @limit bytes; NULL with an error that names
 * it. Whatever has no end, or does not come at once (a device, a pipe), is
 * refused: a state change must not wait for it. */
char *gst_lm_text_file_read (const char *path, gsize limit, gsize *ret_length,
                             GError **error);

G_END_DECLS
