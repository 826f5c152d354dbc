/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "text-framer.h"

#include <string.h>
#include <runnel.h>
#include "request-meta.h"
#include "text-meta.h"

struct _GstLmTextFramer {
  GObject parent_instance;

  GByteArray *text;     /* gathered, not yet a request */
  GArray *spans;        /* RunnelTextSpan, in text */
  gboolean has_spans;   /* a part of text had a GstLmTextMeta */
  GstBuffer *first;     /* nullable: the buffer that text begins in */
  gboolean id_used;     /* the id of first went to a request */
  GQueue requests;      /* GstBuffer, to be pulled */
};

G_DEFINE_FINAL_TYPE (GstLmTextFramer, gst_lm_text_framer, G_TYPE_OBJECT)

/**
 * gst_lm_text_framer_new:
 *
 * A framer with nothing in it.
 *
 * Returns: (transfer full): the framer
 *
 * Since: 0.1
 */
GstLmTextFramer *
gst_lm_text_framer_new (void)
{
  return g_object_new (GST_TYPE_LM_TEXT_FRAMER, NULL);
}

static void
set_first (GstLmTextFramer *self, GstBuffer *buffer)
{
  if (self->first != buffer)
    self->id_used = FALSE;
  gst_buffer_replace (&self->first, buffer);
}

static gboolean
append (GstLmTextFramer *self, GstBuffer *buffer, GError **error)
{
  GstLmTextMeta *meta = gst_lm_buffer_get_text_meta (buffer);
  gsize start = self->text->len;
  GstMapInfo map;

  if (gst_buffer_get_size (buffer) > GST_LM_MAX_REQUEST_BYTES - start)
    {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
                   "a request is longer than %d bytes: send it in parts, or "
                   "frame the stream by line", GST_LM_MAX_REQUEST_BYTES);
      return FALSE;
    }
  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
                   "a text buffer cannot be read");
      return FALSE;
    }
  g_byte_array_append (self->text, map.data, map.size);
  gst_buffer_unmap (buffer, &map);
  if (start == 0)
    set_first (self, buffer);
  if (meta == NULL)
    return TRUE;
  self->has_spans = TRUE;
  for (gsize i = 0; i < meta->n_spans; i++)
    {
      RunnelTextSpan span = { meta->spans[i].start + start,
                              meta->spans[i].length };

      g_array_append_val (self->spans, span);
    }
  return TRUE;
}

/* The spans of the first @length bytes become the request's, and those behind
 * the first @end bytes stay, moved down. */
static void
split_spans (GstLmTextFramer *self, GstBuffer *request, gsize length,
             gsize end)
{
  const guint size = sizeof (RunnelTextSpan);
  g_autoptr (GArray) taken = g_array_new (FALSE, FALSE, size);
  g_autoptr (GArray) kept = g_array_new (FALSE, FALSE, size);

  for (guint i = 0; i < self->spans->len; i++)
    {
      RunnelTextSpan span = g_array_index (self->spans, RunnelTextSpan, i);
      gsize span_end = span.start + span.length;
      RunnelTextSpan head = { span.start, MIN (span_end, length) };
      RunnelTextSpan tail = { MAX (span.start, end), span_end };

      if (head.start < head.length)
        {
          head.length -= head.start;
          g_array_append_val (taken, head);
        }
      if (tail.start < tail.length)
        {
          tail.length -= tail.start;
          tail.start -= end;
          g_array_append_val (kept, tail);
        }
    }
  gst_lm_buffer_add_text_meta (request, (RunnelTextSpan *) taken->data,
                               taken->len);
  g_array_set_size (self->spans, 0);
  g_array_append_vals (self->spans, kept->data, kept->len);
}

/* A new request for text out of a reply; else the meta of the buffer that the
 * text begins in, with an id of its own for every request. */
static void
add_request_meta (GstLmTextFramer *self, GstBuffer *request)
{
  GstLmRequestMeta *from = NULL, *meta;

  if (self->first != NULL)
    {
      from = gst_lm_buffer_get_request_meta (self->first);
      GST_BUFFER_PTS (request) = GST_BUFFER_PTS (self->first);
    }
  if (from == NULL || from->is_reply)
    {
      gst_lm_buffer_add_request_meta (request, 0);
      return;
    }
  meta = gst_lm_buffer_copy_request_meta (request, self->first);
  if (self->id_used)
    meta->id = gst_lm_request_id_new ();
  self->id_used = TRUE;
}

/* Makes a request of the first @length bytes and drops the first @end. */
static GstBuffer *
take (GstLmTextFramer *self, gsize length, gsize end)
{
  GstBuffer *request = length == 0
                           ? gst_buffer_new ()
                           : gst_buffer_new_memdup (self->text->data, length);

  add_request_meta (self, request);
  if (self->has_spans)
    split_spans (self, request, length, end);
  if (end > 0)
    g_byte_array_remove_range (self->text, 0, end);
  if (self->text->len == 0)
    self->has_spans = FALSE;
  g_queue_push_tail (&self->requests, request);
  return request;
}

static void
take_lines (GstLmTextFramer *self, gsize from)
{
  const guint8 *newline;

  while ((newline = self->text->len > from
              ? memchr (self->text->data + from, '\n', self->text->len - from)
              : NULL) != NULL)
    {
      gsize end = newline + 1 - self->text->data;
      gsize length = end - 1;

      if (length > 0 && self->text->data[length - 1] == '\r')
        length--;
      if (length > 0)
        take (self, length, end);
      else
        g_byte_array_remove_range (self->text, 0, end);
      from = 0;
    }
}

/* The last part of a reply: a failed reply is a failed request. */
static void
take_reply (GstLmTextFramer *self, GstLmRequestMeta *last)
{
  GstBuffer *request = take (self, self->text->len, self->text->len);

  if (last->finish_reason == RUNNEL_FINISH_REASON_ERROR)
    gst_lm_request_meta_set_error (gst_lm_buffer_get_request_meta (request),
                                   last->error);
  set_first (self, NULL);
}

static gboolean
push_buffer (GstLmTextFramer *self, GstBuffer *buffer, GError **error)
{
  GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (buffer);
  gsize size = gst_buffer_get_size (buffer);

  if (meta != NULL && meta->is_reply)
    {
      if (!append (self, buffer, error))
        return FALSE;
      if (self->first == NULL)
        set_first (self, buffer);
      if (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER))
        take_reply (self, meta);
      return TRUE;
    }
  if (size > GST_LM_MAX_REQUEST_BYTES)
    {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
                   "a request of %" G_GSIZE_FORMAT " bytes is longer than %d",
                   size, GST_LM_MAX_REQUEST_BYTES);
      return FALSE;
    }
  gst_buffer_ref (buffer);
  gst_lm_buffer_ensure_request_meta (&buffer);
  g_queue_push_tail (&self->requests, buffer);
  return TRUE;
}

/**
 * gst_lm_text_framer_push:
 * @self: the framer
 * @buffer: (transfer full): the next buffer of the stream
 * @framing: where requests end
 * @error: return location for a #GError
 *
 * Adds a buffer. What became complete by it waits for
 * gst_lm_text_framer_pull().
 *
 * Returns: %FALSE with %RUNNEL_ERROR_LIMIT when a request is too long, or
 *   %RUNNEL_ERROR_IO when the buffer cannot be read
 *
 * Since: 0.1
 */
gboolean
gst_lm_text_framer_push (GstLmTextFramer *self, GstBuffer *buffer,
                         GstLmFraming framing, GError **error)
{
  g_autoptr (GstBuffer) owned = buffer;
  gsize before = self->text->len;

  if (framing == GST_LM_FRAMING_BUFFER)
    return push_buffer (self, buffer, error);
  if (!append (self, buffer, error))
    return FALSE;
  if (framing == GST_LM_FRAMING_LINE)
    {
      take_lines (self, before);
      /* What stays behind the last line end came with this buffer. */
      if (self->requests.length > 0)
        set_first (self, buffer);
    }
  return TRUE;
}

/**
 * gst_lm_text_framer_drain:
 * @self: the framer
 *
 * Ends the stream: what was gathered is the last request. A stream without
 * text gives none.
 *
 * Since: 0.1
 */
void
gst_lm_text_framer_drain (GstLmTextFramer *self)
{
  if (self->text->len > 0)
    take (self, self->text->len, self->text->len);
  set_first (self, NULL);
}

/**
 * gst_lm_text_framer_pull:
 * @self: the framer
 *
 * The next complete request.
 *
 * Returns: (transfer full) (nullable): its buffer, or %NULL when there is none
 *
 * Since: 0.1
 */
GstBuffer *
gst_lm_text_framer_pull (GstLmTextFramer *self)
{
  return g_queue_pop_head (&self->requests);
}

/**
 * gst_lm_text_framer_reset:
 * @self: the framer
 *
 * Forgets everything: for flushes.
 *
 * Since: 0.1
 */
void
gst_lm_text_framer_reset (GstLmTextFramer *self)
{
  g_byte_array_set_size (self->text, 0);
  g_array_set_size (self->spans, 0);
  self->has_spans = FALSE;
  set_first (self, NULL);
  g_queue_clear_full (&self->requests, (GDestroyNotify) gst_buffer_unref);
}

static void
gst_lm_text_framer_finalize (GObject *object)
{
  GstLmTextFramer *self = GST_LM_TEXT_FRAMER (object);

  gst_lm_text_framer_reset (self);
  g_byte_array_unref (self->text);
  g_array_unref (self->spans);
  G_OBJECT_CLASS (gst_lm_text_framer_parent_class)->finalize (object);
}

static void
gst_lm_text_framer_class_init (GstLmTextFramerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_lm_text_framer_finalize;
}

static void
gst_lm_text_framer_init (GstLmTextFramer *self)
{
  self->text = g_byte_array_new ();
  self->spans = g_array_new (FALSE, FALSE, sizeof (RunnelTextSpan));
  g_queue_init (&self->requests);
}
