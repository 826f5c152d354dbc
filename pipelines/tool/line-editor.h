/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* Lines from a terminal, with editing and history; else as they are. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct _LineEditor LineEditor;

/* @history_path: where lines are kept between sessions; NULL: nowhere. */
LineEditor *line_editor_new (const char *prompt, const char *history_path);
void line_editor_free (LineEditor *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LineEditor, line_editor_free)

/* The next line without its end, or NULL at the end of the input. Ctrl-C
 * gives an empty line. */
char *line_editor_read (LineEditor *self, GError **error);

G_END_DECLS
