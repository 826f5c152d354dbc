/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gst/gst.h>
#include "reply.h"

G_BEGIN_DECLS

#define GST_TYPE_LM_SESSION (gst_lm_session_get_type ())
GST_LM_API
G_DECLARE_FINAL_TYPE (GstLmSession, gst_lm_session, GST, LM_SESSION, GObject)

/**
 * GstLmSession:
 *
 * A running pipeline around an element that turns prompts into replies, for
 * applications and bindings that think in prompts and replies. Requests are
 * replied to one after the other.
 *
 * A session that is dropped stops its pipeline, without making the caller
 * wait; its replies keep it until they have been read or are dropped too. Safe
 * to use from several threads, a reply from one.
 *
 * Since: 0.1
 */

GST_LM_API GstLmSession *gst_lm_session_new (GstElement *element,
                                             GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
GST_LM_API GstElement *gst_lm_session_get_element (GstLmSession *self);
GST_LM_API GstPipeline *gst_lm_session_get_pipeline (GstLmSession *self);
GST_LM_API GstLmReply *gst_lm_session_send (GstLmSession *self,
                                            GstBuffer *prompt,
                                            gboolean is_messages,
                                            GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
GST_LM_API GstLmReply *
gst_lm_session_send_text (GstLmSession *self, const gchar *prompt,
                          const GstStructure *overrides, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
GST_LM_API GstLmReply *
gst_lm_session_send_messages (GstLmSession *self, const gchar *messages,
                              const GstStructure *overrides, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
GST_LM_API void gst_lm_session_close (GstLmSession *self);

G_END_DECLS
