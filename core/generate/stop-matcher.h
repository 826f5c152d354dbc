/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Stop strings in a stream of bytes. Of several matches the one that ends
 * first counts, and of those that end together the one that starts first.
 * What comes before the match is released, the match and what follows it never
 * is. Bytes are held back only while they are the beginning of a stop string
 * that can still be completed. Works on bytes, so that it does not matter
 * where the stream is cut.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define RUNNEL_STOP_MATCHER_MAX_STOPS 16
#define RUNNEL_STOP_MATCHER_MAX_LENGTH 4096 /* bytes of one stop string */

typedef struct _RunnelStopMatcher RunnelStopMatcher;

/* Whether these can be stop strings: at most 16, none empty, none longer than
 * 4096 bytes. RUNNEL_ERROR_INVALID_ARGUMENT or RUNNEL_ERROR_LIMIT. */
gboolean runnel_stop_matcher_check (const char *const *stops, GError **error);

/* stops: NULL-terminated, may be NULL for none. */
RunnelStopMatcher *runnel_stop_matcher_new (const char *const *stops,
                                            GError **error);
void runnel_stop_matcher_free (RunnelStopMatcher *self);

/* Takes bytes of the stream and appends to @out what can be released now.
 * Returns whether a stop string is complete; from then on nothing is
 * released. Allocates only what @out needs to grow. */
gboolean runnel_stop_matcher_push (RunnelStopMatcher *self, const char *bytes,
                                   gsize n, GString *out);

/* The stream has ended: appends what is held back, unless it stopped. */
void runnel_stop_matcher_flush (RunnelStopMatcher *self, GString *out);

/* How many bytes of the stream were released so far. */
guint64 runnel_stop_matcher_get_released (const RunnelStopMatcher *self);

/* How many bytes are held back. */
gsize runnel_stop_matcher_get_held (const RunnelStopMatcher *self);

/* Which stop string is complete; -1 for none. */
int runnel_stop_matcher_get_matched (const RunnelStopMatcher *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelStopMatcher, runnel_stop_matcher_free)

G_END_DECLS
