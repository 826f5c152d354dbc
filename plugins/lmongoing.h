/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* The request that an element is busy with, and how it is stopped. */
#pragma once

#include <gstrunnel.h>

#include "lmcancelled.h"

G_BEGIN_DECLS

/* Guarded by the object lock of its element; all zeros is idle. */
typedef struct {
  GCancellable *cancellable;    /* of the request in progress, or NULL */
  guint64 request;              /* its id, or 0 */
  GstLmCancelled cancelled;     /* those to come */
} GstLmOngoing;

/* @cancellable, to be held by the caller until gst_lm_ongoing_end (), is
 * cancelled at once when the event was there before the request. */
void gst_lm_ongoing_begin (GstLmOngoing *self, GstElement *element,
                           guint64 id, GCancellable *cancellable);
void gst_lm_ongoing_end (GstLmOngoing *self, GstElement *element);
/* Stops the request in progress, if it is @id or @id is 0; remembers an @id
 * that is not here yet. One that has passed is of no concern, and its id will
 * not come again. */
void gst_lm_ongoing_cancel (GstLmOngoing *self, GstElement *element,
                            guint64 id);
/* Nothing is to be cancelled any more. */
void gst_lm_ongoing_forget (GstLmOngoing *self, GstElement *element);

G_END_DECLS
