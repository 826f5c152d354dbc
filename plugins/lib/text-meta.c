/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "text-meta.h"

/**
 * gst_lm_text_meta_api_get_type:
 *
 * The API of the meta of a text.
 *
 * Returns: the type of the API
 *
 * Since: 0.1
 */
GType
gst_lm_text_meta_api_get_type (void)
{
  static gsize type = 0;
  static const gchar *tags[] = { NULL };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       gst_meta_api_type_register ("GstLmTextMetaAPI", tags));
  return type;
}

static gboolean
text_meta_init (GstMeta *meta, gpointer params, GstBuffer *buffer)
{
  GstLmTextMeta *self = (GstLmTextMeta *) meta;

  self->spans = NULL;
  self->n_spans = 0;
  return TRUE;
}

static void
text_meta_free (GstMeta *meta, GstBuffer *buffer)
{
  GstLmTextMeta *self = (GstLmTextMeta *) meta;

  g_clear_pointer (&self->spans, g_free);
}

/* A copy of a part of the buffer keeps what lies in that part. */
static void
add_spans_of_region (GstBuffer *dest, const GstLmTextMeta *from, gsize offset,
                     gsize size)
{
  g_autofree RunnelTextSpan *spans = g_new (RunnelTextSpan, from->n_spans + 1);
  gsize n = 0;

  for (gsize i = 0; i < from->n_spans; i++)
    {
      gsize start = MAX (from->spans[i].start, offset);
      gsize end = MIN (from->spans[i].start + from->spans[i].length,
                       offset + size);

      if (start < end)
        spans[n++] = (RunnelTextSpan) { start - offset, end - start };
    }
  gst_lm_buffer_add_text_meta (dest, spans, n);
}

static gboolean
text_meta_transform (GstBuffer *dest, GstMeta *meta, GstBuffer *buffer,
                     GQuark type, gpointer data)
{
  GstLmTextMeta *self = (GstLmTextMeta *) meta;
  GstMetaTransformCopy *copy = data;

  if (!GST_META_TRANSFORM_IS_COPY (type))
    return FALSE;
  if (gst_lm_buffer_get_text_meta (dest) != NULL)
    return TRUE;
  if (copy != NULL && copy->region)
    add_spans_of_region (dest, self, copy->offset,
                         copy->size == (gsize) -1
                             ? gst_buffer_get_size (buffer) - copy->offset
                             : copy->size);
  else
    gst_lm_buffer_add_text_meta (dest, self->spans, self->n_spans);
  return TRUE;
}

/**
 * gst_lm_text_meta_get_info:
 *
 * How the meta of a text is made and copied.
 *
 * Returns: (transfer none): the registered implementation
 *
 * Since: 0.1
 */
const GstMetaInfo *
gst_lm_text_meta_get_info (void)
{
  static const GstMetaInfo *info = NULL;

  if (g_once_init_enter ((GstMetaInfo **) &info))
    g_once_init_leave ((GstMetaInfo **) &info,
                       (GstMetaInfo *) gst_meta_register (
                           GST_LM_TEXT_META_API_TYPE, "GstLmTextMeta",
                           sizeof (GstLmTextMeta), text_meta_init,
                           text_meta_free, text_meta_transform));
  return info;
}

/**
 * gst_lm_buffer_add_text_meta:
 * @buffer: a writable buffer of text without the meta
 * @spans: (nullable) (array length=n_spans): byte ranges, ascending; copied
 * @n_spans: entries of @spans
 *
 * Says which bytes of a text came from a chat template. No spans at all means
 * that none did.
 *
 * Returns: (transfer none): the meta
 *
 * Since: 0.1
 */
GstLmTextMeta *
gst_lm_buffer_add_text_meta (GstBuffer *buffer, const RunnelTextSpan *spans,
                             gsize n_spans)
{
  GstLmTextMeta *self;

  g_return_val_if_fail (gst_buffer_is_writable (buffer), NULL);
  g_return_val_if_fail (gst_lm_buffer_get_text_meta (buffer) == NULL, NULL);

  self = (GstLmTextMeta *) gst_buffer_add_meta (buffer, GST_LM_TEXT_META_INFO,
                                                NULL);
  self->spans = g_memdup2 (spans, n_spans * sizeof *spans);
  self->n_spans = n_spans;
  return self;
}

/**
 * gst_lm_buffer_get_text_meta:
 * @buffer: a buffer
 *
 * Which bytes of a text came from a chat template.
 *
 * Returns: (transfer none) (nullable): the meta
 *
 * Since: 0.1
 */
GstLmTextMeta *
gst_lm_buffer_get_text_meta (GstBuffer *buffer)
{
  return (GstLmTextMeta *) gst_buffer_get_meta (buffer,
                                                GST_LM_TEXT_META_API_TYPE);
}
