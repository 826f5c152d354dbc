/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "filter.h"

G_BEGIN_DECLS

typedef struct {
  GstPad *pad;          /* borrowed: the source pad */
  GstCaps *caps;        /* as sent; NULL before the first */
  GstEvent *segment;    /* nullable: to be sent behind caps */
  gboolean segment_sent;
  GQueue pending;       /* sticky events that must stand behind caps */
} GstLmFilterOutput;

void gst_lm_filter_output_init (GstLmFilterOutput *self, GstPad *pad);
/* Back to the beginning of a stream. */
void gst_lm_filter_output_clear (GstLmFilterOutput *self);
void gst_lm_filter_output_forget_segment (GstLmFilterOutput *self);
/* Takes @event. */
void gst_lm_filter_output_hold_segment (GstLmFilterOutput *self,
                                        GstEvent *event);
/* Takes @event if it must wait for caps, and then returns TRUE. */
gboolean gst_lm_filter_output_hold_event (GstLmFilterOutput *self,
                                          GstEvent *event);
/* Sends what is still to be sent before data of @caps. */
GstFlowReturn gst_lm_filter_output_prepare (GstLmFilterOutput *self,
                                            GstLmFilter *filter,
                                            GstCaps *caps);

G_END_DECLS
