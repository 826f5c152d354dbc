/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What a reply and the sink that feeds it share. The sink works on it from
 * streaming threads, and so touches no reference of the reply or of its
 * tasks: to a language binding each of those may be a call into its own code.
 */
#pragma once

#include "reply.h"
#include "text-sink.h"

G_BEGIN_DECLS

typedef struct _GstLmReplyChannel GstLmReplyChannel;

GstLmReplyChannel *gst_lm_reply_channel_new (guint64 id);
GstLmReplyChannel *gst_lm_reply_channel_ref (GstLmReplyChannel *self);
void gst_lm_reply_channel_unref (GstLmReplyChannel *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstLmReplyChannel, gst_lm_reply_channel_unref)

guint64 gst_lm_reply_channel_get_id (GstLmReplyChannel *self);

/* For the sink. */
gboolean gst_lm_reply_channel_begin (GstLmReplyChannel *self, guint64 id);
void gst_lm_reply_channel_interrupt (GstLmReplyChannel *self);
GstFlowReturn gst_lm_reply_channel_push (GstLmReplyChannel *self,
                                         GstBuffer *buffer, gboolean last,
                                         guint room);
void gst_lm_reply_channel_fail (GstLmReplyChannel *self, const GError *error);

/* Reads what comes through @channel into @sink. */
GstLmReply *gst_lm_reply_new (GstLmTextSink *sink, GstLmReplyChannel *channel);
/* Keeps @owner alive until the reply has been read or is dropped. */
void gst_lm_reply_set_owner (GstLmReply *self, GObject *owner);

/* Forgets a channel whose reply is gone. */
void gst_lm_text_sink_forget (GstLmTextSink *self, GstLmReplyChannel *channel);

G_END_DECLS
