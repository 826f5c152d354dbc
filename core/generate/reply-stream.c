/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "reply-stream.h"

#include "stop-matcher.h"

typedef struct {
  guint64 end; /* bytes of text up to the end of the token */
  gboolean incomplete;
} Extent;

struct _RunnelReplyStream {
  RunnelStopMatcher *matcher;
  guint n_top;
  guint64 length; /* bytes of text that went in */

  /* Tokens that are not out, preceded by the n_out that came out in this
   * step. */
  GArray *tokens;   /* gint32 */
  GArray *extents;  /* Extent */
  GArray *logprobs; /* float, NULL when not wanted */
  GArray *top;      /* n_top RunnelTokenLogprob for each */
  GString *text;    /* that came out in this step */
  guint n_out;

  gsize n_before;   /* tokens that came out in earlier steps */
  guint64 last_end; /* where the last of them ends */
  gsize n_whole;
};

RunnelReplyStream *
runnel_reply_stream_new (const char *const *stops, gboolean logprobs,
                         guint n_top, GError **error)
{
  RunnelStopMatcher *matcher = runnel_stop_matcher_new (stops, error);
  RunnelReplyStream *self;

  if (matcher == NULL)
    return NULL;
  self = g_new0 (RunnelReplyStream, 1);
  self->matcher = matcher;
  self->n_top = n_top;
  self->tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
  self->extents = g_array_new (FALSE, FALSE, sizeof (Extent));
  if (logprobs)
    self->logprobs = g_array_new (FALSE, FALSE, sizeof (float));
  self->top = g_array_new (FALSE, FALSE, sizeof (RunnelTokenLogprob));
  self->text = g_string_new (NULL);
  return self;
}

void
runnel_reply_stream_free (RunnelReplyStream *self)
{
  if (self == NULL)
    return;
  runnel_stop_matcher_free (self->matcher);
  g_array_unref (self->tokens);
  g_array_unref (self->extents);
  g_clear_pointer (&self->logprobs, g_array_unref);
  g_array_unref (self->top);
  g_string_free (self->text, TRUE);
  g_free (self);
}

void
runnel_reply_stream_begin_step (RunnelReplyStream *self)
{
  if (self->n_out > 0) {
    self->last_end =
      g_array_index (self->extents, Extent, self->n_out - 1).end;
    self->n_before += self->n_out;
    g_array_remove_range (self->tokens, 0, self->n_out);
    g_array_remove_range (self->extents, 0, self->n_out);
    if (self->logprobs)
      g_array_remove_range (self->logprobs, 0, self->n_out);
    if (self->n_top > 0)
      g_array_remove_range (self->top, 0, self->n_out * self->n_top);
    self->n_out = 0;
  }
  g_string_truncate (self->text, 0);
}

/* Lets out the tokens whose text is out. */
static void
advance (RunnelReplyStream *self)
{
  const guint64 released = runnel_stop_matcher_get_released (self->matcher);

  for (; self->n_out < self->tokens->len; self->n_out++) {
    const Extent *e = &g_array_index (self->extents, Extent, self->n_out);

    if (e->end > released)
      break;
    if (!e->incomplete)
      self->n_whole = self->n_before + self->n_out + 1;
  }
}

/* Lets out the token that the stop string cuts, and drops the rest. */
static void
stop (RunnelReplyStream *self)
{
  const guint64 released = runnel_stop_matcher_get_released (self->matcher);
  const guint64 start =
    self->n_out > 0
      ? g_array_index (self->extents, Extent, self->n_out - 1).end
      : self->last_end;

  if (self->n_out < self->tokens->len && start < released)
    self->n_out++;
  g_array_set_size (self->tokens, self->n_out);
  g_array_set_size (self->extents, self->n_out);
  if (self->logprobs)
    g_array_set_size (self->logprobs, self->n_out);
  g_array_set_size (self->top, self->n_out * self->n_top);
}

gboolean
runnel_reply_stream_push (RunnelReplyStream *self, gint32 token, float logprob,
                          const RunnelTokenLogprob *top, const char *text,
                          gsize length, gboolean incomplete)
{
  const Extent extent = { self->length + length, incomplete };
  gboolean stopped;

  self->length += length;
  g_array_append_val (self->tokens, token);
  g_array_append_val (self->extents, extent);
  if (self->logprobs)
    g_array_append_val (self->logprobs, logprob);
  if (self->n_top > 0)
    g_array_append_vals (self->top, top, self->n_top);
  stopped = runnel_stop_matcher_push (self->matcher, text, length, self->text);
  advance (self);
  if (stopped)
    stop (self);
  return stopped;
}

gboolean
runnel_reply_stream_flush (RunnelReplyStream *self, const char *text,
                           gsize length)
{
  self->length += length;
  if (runnel_stop_matcher_push (self->matcher, text, length, self->text)) {
    advance (self);
    stop (self);
    return TRUE;
  }
  runnel_stop_matcher_flush (self->matcher, self->text);
  advance (self);
  self->n_whole = self->n_before + self->n_out;
  return FALSE;
}

void
runnel_reply_stream_get_step (RunnelReplyStream *self,
                              RunnelGenerationStep *ret_step)
{
  *ret_step = (RunnelGenerationStep){
    .tokens = (const gint32 *) self->tokens->data,
    .n_tokens = self->n_out,
    .logprobs = self->logprobs ? (const float *) self->logprobs->data : NULL,
    .top = self->n_top > 0 ? (const RunnelTokenLogprob *) self->top->data
                           : NULL,
    .text = self->text->str,
    .text_length = self->text->len,
    .text_end = runnel_stop_matcher_get_released (self->matcher),
  };
}

gsize
runnel_reply_stream_get_n_whole (const RunnelReplyStream *self)
{
  return self->n_whole;
}
