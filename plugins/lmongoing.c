/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "lmongoing.h"

#include <string.h>

void
gst_lm_ongoing_begin (GstLmOngoing *self, GstElement *element, guint64 id,
                      GCancellable *cancellable)
{
  GST_OBJECT_LOCK (element);
  self->cancellable = cancellable;
  self->request = id;
  if (gst_lm_cancelled_remove (&self->cancelled, id))
    g_cancellable_cancel (cancellable);
  GST_OBJECT_UNLOCK (element);
}

void
gst_lm_ongoing_end (GstLmOngoing *self, GstElement *element)
{
  GST_OBJECT_LOCK (element);
  self->cancellable = NULL;
  self->request = 0;
  GST_OBJECT_UNLOCK (element);
}

void
gst_lm_ongoing_cancel (GstLmOngoing *self, GstElement *element, guint64 id)
{
  g_autoptr (GCancellable) cancellable = NULL;

  GST_OBJECT_LOCK (element);
  if (self->cancellable && (id == 0 || self->request == id))
    cancellable = g_object_ref (self->cancellable);
  else if (id != 0)
    gst_lm_cancelled_add (&self->cancelled, id);
  GST_OBJECT_UNLOCK (element);
  if (cancellable)
    g_cancellable_cancel (cancellable);
}

void
gst_lm_ongoing_forget (GstLmOngoing *self, GstElement *element)
{
  GST_OBJECT_LOCK (element);
  memset (&self->cancelled, 0, sizeof self->cancelled);
  GST_OBJECT_UNLOCK (element);
}
