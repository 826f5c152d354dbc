/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A reply on its way out: tokens with their text go in, and come out when no
 * stop string can reach back to them. A token comes out when all text up to
 * its end is released; on a stop, that whose beginning alone is before the
 * stop string comes out too, and the rest never does.
 */
#pragma once

#include "generation.h"

G_BEGIN_DECLS

typedef struct _RunnelReplyStream RunnelReplyStream;

RunnelReplyStream *runnel_reply_stream_new (const char *const *stops,
                                            gboolean logprobs, guint n_top,
                                            GError **error);
void runnel_reply_stream_free (RunnelReplyStream *self);

/* Forgets what came out before. */
void runnel_reply_stream_begin_step (RunnelReplyStream *self);

/* @text: what the token adds to the text; @incomplete: the token ends inside a
 * character, whose bytes come with a later one. @top: [n_top]. Returns whether
 * a stop string is complete. */
gboolean runnel_reply_stream_push (RunnelReplyStream *self, gint32 token,
                                   float logprob,
                                   const RunnelTokenLogprob *top,
                                   const char *text, gsize length,
                                   gboolean incomplete);

/* The reply ends here, with @text behind its last token: everything comes out,
 * unless that text completes a stop string, which is returned. */
gboolean runnel_reply_stream_flush (RunnelReplyStream *self, const char *text,
                                    gsize length);

/* What came out since begin_step; all but finished. */
void runnel_reply_stream_get_step (RunnelReplyStream *self,
                                   RunnelGenerationStep *ret_step);

/* How many tokens of the reply, from its beginning, are out with all their
 * text: what belongs into a history. */
gsize runnel_reply_stream_get_n_whole (const RunnelReplyStream *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelReplyStream, runnel_reply_stream_free)

G_END_DECLS
