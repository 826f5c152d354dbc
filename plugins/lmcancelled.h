/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* The ids of requests that a runnel/cancel event named before they came. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* An id that never comes must not stay for ever: the oldest makes room. */
#define GST_LM_CANCELLED_ROOM 64

/* Guarded by its owner's object lock; all zeros is empty. */
typedef struct {
  guint64 ids[GST_LM_CANCELLED_ROOM];
  guint next;
} GstLmCancelled;

static inline void
gst_lm_cancelled_add (GstLmCancelled *self, guint64 id)
{
  self->ids[self->next] = id;
  self->next = (self->next + 1) % GST_LM_CANCELLED_ROOM;
}

/* Whether @id was there; it is not afterwards. */
static inline gboolean
gst_lm_cancelled_remove (GstLmCancelled *self, guint64 id)
{
  gboolean found = FALSE;

  for (guint i = 0; i < GST_LM_CANCELLED_ROOM; i++)
    if (self->ids[i] == id) {
      self->ids[i] = 0;
      found = TRUE;
    }
  return found;
}

G_END_DECLS
