/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* What comes in by standard input. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The longest text that is read at once. */
#define INPUT_MAX_BYTES (64 * 1024 * 1024)

/* All of it, with a NUL behind. */
char *input_read_all (gsize *length, GError **error);
/* The next line, without its end. FALSE at the end, and on errors. */
gboolean input_read_line (GString *line, GError **error);
/* Whether @what is a text: UTF-8 without a NUL. */
gboolean input_check_text (const char *text, gsize length, const char *what,
                           GError **error);
/* A file, or standard input when @path is "-". */
char *input_read_file (const char *path, gsize *length, GError **error);

G_END_DECLS
