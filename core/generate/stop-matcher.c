/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "stop-matcher.h"

#include <string.h>

#include "../error.h"

/* One stop string as a Knuth-Morris-Pratt automaton ("Fast Pattern Matching in
 * Strings", SIAM J. Comput. 6, 1977). */
typedef struct {
  char *bytes;
  guint16 *fallback; /* [length + 1]: longest proper border of each prefix */
  gsize length;
  gsize state; /* length of the longest prefix that ends the stream */
} Stop;

struct _RunnelStopMatcher {
  guint n_stops;
  int matched;
  guint64 released;
  gsize n_held;
  Stop stops[RUNNEL_STOP_MATCHER_MAX_STOPS];
  char held[RUNNEL_STOP_MATCHER_MAX_LENGTH];
};

static guint16 *
find_borders (const char *bytes, gsize length)
{
  guint16 *border = g_new0 (guint16, length + 1);
  gsize k = 0;

  for (gsize i = 1; i < length; i++) {
    while (k > 0 && bytes[i] != bytes[k])
      k = border[k];
    if (bytes[i] == bytes[k])
      k++;
    border[i + 1] = (guint16) k;
  }
  return border;
}

gboolean
runnel_stop_matcher_check (const char *const *stops, GError **error)
{
  for (guint i = 0; stops && stops[i]; i++) {
    if (i >= RUNNEL_STOP_MATCHER_MAX_STOPS) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
                   "stop: there are %u stop strings, at most %d are allowed",
                   g_strv_length ((char **) stops),
                   RUNNEL_STOP_MATCHER_MAX_STOPS);
      return FALSE;
    }
    if (stops[i][0] == '\0') {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                   "stop: stop string %u is empty, it needs at least one byte",
                   i);
      return FALSE;
    }
    if (strlen (stops[i]) > RUNNEL_STOP_MATCHER_MAX_LENGTH) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
                   "stop: stop string %u has %" G_GSIZE_FORMAT
                   " bytes, at most %d are allowed",
                   i, strlen (stops[i]), RUNNEL_STOP_MATCHER_MAX_LENGTH);
      return FALSE;
    }
  }
  return TRUE;
}

RunnelStopMatcher *
runnel_stop_matcher_new (const char *const *stops, GError **error)
{
  RunnelStopMatcher *self;

  if (!runnel_stop_matcher_check (stops, error))
    return NULL;
  self = g_new0 (RunnelStopMatcher, 1);
  self->matched = -1;
  for (guint i = 0; stops && stops[i]; i++) {
    Stop *stop = &self->stops[self->n_stops++];

    stop->length = strlen (stops[i]);
    stop->bytes = g_strdup (stops[i]);
    stop->fallback = find_borders (stop->bytes, stop->length);
  }
  return self;
}

void
runnel_stop_matcher_free (RunnelStopMatcher *self)
{
  if (self == NULL)
    return;
  for (guint i = 0; i < self->n_stops; i++) {
    g_free (self->stops[i].bytes);
    g_free (self->stops[i].fallback);
  }
  g_free (self);
}

/* Moves every automaton by one byte. Returns the length of the longest live
 * prefix, or of the match. */
static gsize
advance (RunnelStopMatcher *self, char byte)
{
  gsize live = 0, match = 0;

  for (guint i = 0; i < self->n_stops; i++) {
    Stop *stop = &self->stops[i];
    gsize k = stop->state;

    while (k > 0 && byte != stop->bytes[k])
      k = stop->fallback[k];
    if (byte == stop->bytes[k])
      k++;
    stop->state = k;
    live = MAX (live, k);
    if (k == stop->length && k > match) {
      match = k;
      self->matched = (int) i;
    }
  }
  return self->matched >= 0 ? match : live;
}

/* Releases all but the last @keep bytes of what is held followed by
 * @bytes. */
static void
release (RunnelStopMatcher *self, const char *bytes, gsize n, gsize keep,
         GString *out)
{
  const gsize ready = self->n_held + n - keep;
  const gsize from_held = MIN (ready, self->n_held);

  g_string_append_len (out, self->held, from_held);
  g_string_append_len (out, bytes, ready - from_held);
  self->released += ready;
}

gboolean
runnel_stop_matcher_push (RunnelStopMatcher *self, const char *bytes, gsize n,
                          GString *out)
{
  gsize keep = self->n_held, used = 0;

  if (self->matched >= 0)
    return TRUE;
  if (n == 0)
    return FALSE;
  while (used < n && self->matched < 0)
    keep = advance (self, bytes[used++]);
  release (self, bytes, used, keep, out);
  if (self->matched >= 0) {
    self->n_held = 0;
    return TRUE;
  }
  /* A live prefix is shorter than its stop string, so it fits. */
  if (keep <= n) {
    memcpy (self->held, bytes + n - keep, keep);
  } else {
    const gsize old = keep - n;

    memmove (self->held, self->held + self->n_held - old, old);
    memcpy (self->held + old, bytes, n);
  }
  self->n_held = keep;
  return FALSE;
}

void
runnel_stop_matcher_flush (RunnelStopMatcher *self, GString *out)
{
  if (self->matched < 0)
    release (self, NULL, 0, 0, out);
  self->n_held = 0;
  for (guint i = 0; i < self->n_stops; i++)
    self->stops[i].state = 0;
}

guint64
runnel_stop_matcher_get_released (const RunnelStopMatcher *self)
{
  return self->released;
}

gsize
runnel_stop_matcher_get_held (const RunnelStopMatcher *self)
{
  return self->n_held;
}

int
runnel_stop_matcher_get_matched (const RunnelStopMatcher *self)
{
  return self->matched;
}
