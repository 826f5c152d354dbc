/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gst/gst.h>
#include <runnel.h>
#include "api.h"

G_BEGIN_DECLS

/**
 * GST_LM_EVENT_CANCEL:
 *
 * Name of the upstream event that ends the reply to a request and keeps what
 * came of it.
 */
#define GST_LM_EVENT_CANCEL "runnel/cancel"

/**
 * GST_LM_EVENT_REPLY:
 *
 * Name of the upstream event that tells of a request's end: sent once by
 * whatever ends it; the first for an id counts.
 */
#define GST_LM_EVENT_REPLY "runnel/reply"

/**
 * GST_LM_QUERY_MODEL:
 *
 * Name of the query for the model that text is going to, asked of pads
 * downstream only.
 */
#define GST_LM_QUERY_MODEL "runnel.model"

GST_LM_API GstEvent *gst_lm_event_new_cancel (guint64 id);
GST_LM_API gboolean gst_lm_event_parse_cancel (GstEvent *event, guint64 *ret_id);
GST_LM_API GstEvent *gst_lm_event_new_reply (guint64 id, const gchar *text,
                                             RunnelFinishReason finish_reason);
GST_LM_API gboolean
gst_lm_event_parse_reply (GstEvent *event, guint64 *ret_id,
                          const gchar **ret_text,
                          RunnelFinishReason *ret_finish_reason);

GST_LM_API GstQuery *gst_lm_query_new_model (void);
GST_LM_API gboolean gst_lm_query_is_model (GstQuery *query);
GST_LM_API void gst_lm_query_set_model (GstQuery *query, RunnelModel *model);
GST_LM_API RunnelModel *gst_lm_query_get_model (GstQuery *query);
GST_LM_API RunnelModel *gst_lm_pad_query_model (GstPad *pad);

G_END_DECLS
