/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tokens-meta.h"

/**
 * gst_lm_tokens_meta_api_get_type:
 *
 * The API of the meta of tokens.
 *
 * Returns: the type of the API
 *
 * Since: 0.1
 */
GType
gst_lm_tokens_meta_api_get_type (void)
{
  static gsize type = 0;
  static const gchar *tags[] = { NULL };

  if (g_once_init_enter (&type))
    g_once_init_leave (
        &type, gst_meta_api_type_register ("GstLmTokensMetaAPI", tags));
  return type;
}

static gboolean
tokens_meta_init (GstMeta *meta, gpointer params, GstBuffer *buffer)
{
  GstLmTokensMeta *self = (GstLmTokensMeta *) meta;

  self->text_end = GST_LM_TEXT_END_NONE;
  self->logprobs = NULL;
  self->n_logprobs = 0;
  self->top = NULL;
  self->n_top = 0;
  return TRUE;
}

static void
tokens_meta_free (GstMeta *meta, GstBuffer *buffer)
{
  GstLmTokensMeta *self = (GstLmTokensMeta *) meta;

  g_clear_pointer (&self->logprobs, g_free);
  g_clear_pointer (&self->top, g_free);
}

/* What is said about all tokens is not true of a part of them. */
static gboolean
tokens_meta_transform (GstBuffer *dest, GstMeta *meta, GstBuffer *buffer,
                       GQuark type, gpointer data)
{
  GstLmTokensMeta *self = (GstLmTokensMeta *) meta;
  GstMetaTransformCopy *copy = data;

  if (!GST_META_TRANSFORM_IS_COPY (type) || (copy != NULL && copy->region))
    return FALSE;
  if (gst_lm_buffer_get_tokens_meta (dest) == NULL)
    gst_lm_buffer_add_tokens_meta (dest, self->text_end, self->logprobs,
                                   self->n_logprobs, self->top, self->n_top);
  return TRUE;
}

/**
 * gst_lm_tokens_meta_get_info:
 *
 * How the meta of tokens is made and copied.
 *
 * Returns: (transfer none): the registered implementation
 *
 * Since: 0.1
 */
const GstMetaInfo *
gst_lm_tokens_meta_get_info (void)
{
  static const GstMetaInfo *info = NULL;

  if (g_once_init_enter ((GstMetaInfo **) &info))
    g_once_init_leave ((GstMetaInfo **) &info,
                       (GstMetaInfo *) gst_meta_register (
                           GST_LM_TOKENS_META_API_TYPE, "GstLmTokensMeta",
                           sizeof (GstLmTokensMeta), tokens_meta_init,
                           tokens_meta_free, tokens_meta_transform));
  return info;
}

/**
 * gst_lm_buffer_add_tokens_meta:
 * @buffer: a writable buffer of tokens without the meta
 * @text_end: bytes of the reply's text that may be shown after this buffer,
 *   or %GST_LM_TEXT_END_NONE
 * @logprobs: (nullable) (array length=n_logprobs): of each token; copied
 * @n_logprobs: entries of @logprobs
 * @top: (nullable) (array length=n_top): alternatives; copied
 * @n_top: entries of @top
 *
 * Says what generation knows about the tokens of a buffer.
 *
 * Returns: (transfer none): the meta
 *
 * Since: 0.1
 */
GstLmTokensMeta *
gst_lm_buffer_add_tokens_meta (GstBuffer *buffer, guint64 text_end,
                               const gfloat *logprobs, gsize n_logprobs,
                               const RunnelTokenLogprob *top, gsize n_top)
{
  GstLmTokensMeta *self;

  g_return_val_if_fail (gst_buffer_is_writable (buffer), NULL);
  g_return_val_if_fail (gst_lm_buffer_get_tokens_meta (buffer) == NULL, NULL);

  self = (GstLmTokensMeta *) gst_buffer_add_meta (
      buffer, GST_LM_TOKENS_META_INFO, NULL);
  self->text_end = text_end;
  self->logprobs = g_memdup2 (logprobs, n_logprobs * sizeof *logprobs);
  self->n_logprobs = n_logprobs;
  self->top = g_memdup2 (top, n_top * sizeof *top);
  self->n_top = n_top;
  return self;
}

/**
 * gst_lm_buffer_get_tokens_meta:
 * @buffer: a buffer
 *
 * What generation said about the tokens of a buffer.
 *
 * Returns: (transfer none) (nullable): the meta
 *
 * Since: 0.1
 */
GstLmTokensMeta *
gst_lm_buffer_get_tokens_meta (GstBuffer *buffer)
{
  return (GstLmTokensMeta *) gst_buffer_get_meta (
      buffer, GST_LM_TOKENS_META_API_TYPE);
}

/**
 * gst_lm_buffer_new_tokens:
 * @tokens: (nullable) (array length=n_tokens): token ids; copied
 * @n_tokens: entries of @tokens; may be 0
 *
 * A buffer of token ids.
 *
 * Returns: (transfer full): the buffer
 *
 * Since: 0.1
 */
GstBuffer *
gst_lm_buffer_new_tokens (const gint32 *tokens, gsize n_tokens)
{
  if (n_tokens == 0)
    return gst_buffer_new ();
  return gst_buffer_new_memdup (tokens, n_tokens * sizeof *tokens);
}

/**
 * gst_lm_buffer_dup_tokens:
 * @buffer: a buffer of token ids
 * @n_tokens: (out): entries of the result
 * @error: return location for a #GError
 *
 * The token ids of a buffer.
 *
 * Returns: (transfer full) (array length=n_tokens) (nullable): the ids, or
 *   %NULL with %RUNNEL_ERROR_MALFORMED when the buffer does not hold whole
 *   ids, or %RUNNEL_ERROR_IO when it cannot be read
 *
 * Since: 0.1
 */
gint32 *
gst_lm_buffer_dup_tokens (GstBuffer *buffer, gsize *n_tokens, GError **error)
{
  gsize size = gst_buffer_get_size (buffer);
  g_autofree gint32 *tokens = NULL;

  if (size % sizeof *tokens != 0)
    {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                   "a tokens buffer of %" G_GSIZE_FORMAT " bytes does not "
                   "hold whole 4-byte ids", size);
      return NULL;
    }
  /* One more, so that no tokens are not NULL. */
  tokens = g_try_malloc (size + sizeof *tokens);
  if (tokens == NULL || gst_buffer_extract (buffer, 0, tokens, size) != size)
    {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
                   "a tokens buffer of %" G_GSIZE_FORMAT " bytes cannot be "
                   "read", size);
      return NULL;
    }
  *n_tokens = size / sizeof *tokens;
  return g_steal_pointer (&tokens);
}
