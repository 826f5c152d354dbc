/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include <gst/gst.h>
#include <runnel.h>
#include "api.h"

G_BEGIN_DECLS

#define GST_TYPE_LM_REPLY (gst_lm_reply_get_type ())
GST_LM_API
G_DECLARE_FINAL_TYPE (GstLmReply, gst_lm_reply, GST, LM_REPLY, GObject)

/**
 * GstLmReply:
 *
 * A reply as it arrives, piece by piece, in the thread of who reads it: no
 * code of the reader ever runs on a streaming thread. Either
 * gst_lm_reply_next_async() is called for piece after piece, which calls back
 * in the thread-default main context of its caller, or, in programs with
 * another loop, gst_lm_reply_get_fd() is watched and gst_lm_reply_try_next()
 * called. A reader that stops reading stops generation, after a few pieces.
 *
 * When the last reference to a reply goes that has not ended, its request is
 * cancelled.
 *
 * Since: 0.1
 */

GST_LM_API guint64 gst_lm_reply_get_id (GstLmReply *self);
GST_LM_API void gst_lm_reply_next_async (GstLmReply *self,
                                         GCancellable *cancellable,
                                         GAsyncReadyCallback callback,
                                         gpointer user_data);
GST_LM_API gchar *gst_lm_reply_next_finish (GstLmReply *self,
                                            GAsyncResult *result,
                                            GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
GST_LM_API gboolean gst_lm_reply_try_next (GstLmReply *self, gchar **ret_piece,
                                           GError **error);
GST_LM_API gint gst_lm_reply_get_fd (GstLmReply *self);
GST_LM_API void gst_lm_reply_cancel (GstLmReply *self);
GST_LM_API GstBuffer *gst_lm_reply_dup_last_buffer (GstLmReply *self)
    G_GNUC_WARN_UNUSED_RESULT;
GST_LM_API RunnelFinishReason gst_lm_reply_get_finish_reason (GstLmReply *self);
GST_LM_API guint gst_lm_reply_get_prompt_tokens (GstLmReply *self);
GST_LM_API guint gst_lm_reply_get_completion_tokens (GstLmReply *self);
GST_LM_API guint gst_lm_reply_get_cached_tokens (GstLmReply *self);

G_END_DECLS
