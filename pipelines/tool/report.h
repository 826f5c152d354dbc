/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* What is told on stderr: errors, warnings, and progress on a terminal. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* One line on stderr. Returns the exit code: G_OPTION_ERROR is wrong usage,
 * RUNNEL_ERROR_CANCELLED an interruption, all else a failure. */
int report_error (const GError *error);
void report_warning (const char *text);
/* Sets a usage error; @format is what was wrong and how to do better. */
void report_set_usage (GError **error, const char *format, ...)
    G_GNUC_PRINTF (2, 3);

/* A copy without control characters, which a model's file or its template may
 * hold, and which a terminal would obey. */
char *report_make_plain (const char *text);

/* Flushes standard output. Returns 0, or the error number of the first write
 * to it that failed. From any thread. */
int report_flush_output (void);

/* A line that the next one replaces; nothing unless stderr is a terminal.
 * From any thread. */
void report_progress (const char *text);
void report_progress_end (void);
/* A RunnelProgressFunc; @what is a string. */
void report_progress_fraction (double fraction, gpointer what);

G_END_DECLS
