/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/**
 * SECTION:element-lmtokenize
 * @title: lmtokenize
 * @see_also: lmchat, lmdetokenize, lmprefill
 *
 * Turns text into token ids of a model's vocabulary, and says on each buffer
 * which model that is, so that the elements after it need no model of their
 * own. Text that a chat template made may hold control tokens where the
 * template wrote them; all other text is literal, unless parse-special is
 * set.
 *
 * A prompt without any token is answered at once: with an empty reply.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q lmprompt text="Hello there." ! lmtokenize model=$MODEL \
 *     ! lmdetokenize ! fdsink
 * ]|
 */
#include <gstrunnel.h>
#include "elements.h"

GST_DEBUG_CATEGORY_STATIC (lmtokenize_debug);
#define GST_CAT_DEFAULT lmtokenize_debug

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TEXT));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TOKENS));

enum { PROP_0, PROP_PARSE_SPECIAL };

#define DEFAULT_PARSE_SPECIAL FALSE

struct _GstLmTokenize {
  GstLmFilter parent_instance;

  gboolean parse_special; /* under the object lock */
};

G_DECLARE_FINAL_TYPE (GstLmTokenize, gst_lm_tokenize, GST, LM_TOKENIZE,
                      GstLmFilter)
G_DEFINE_FINAL_TYPE (GstLmTokenize, gst_lm_tokenize, GST_TYPE_LM_FILTER)
GST_ELEMENT_REGISTER_DEFINE (lmtokenize, "lmtokenize", GST_RANK_NONE,
                             gst_lm_tokenize_get_type ())

static gboolean
get_parse_special (GstLmTokenize *self, GstBuffer *buffer,
                   gboolean *ret_value, GError **error)
{
  g_auto (GValue) value = G_VALUE_INIT;

  if (!gst_lm_request_meta_get_parameter (
          gst_lm_buffer_get_request_meta (buffer), G_OBJECT (self),
          "parse-special", &value, error))
    return FALSE;
  *ret_value = g_value_get_boolean (&value);
  return TRUE;
}

static gint32 *
encode (RunnelTokenizer *tokenizer, GstBuffer *buffer, gboolean parse_special,
        gsize *n_tokens, GError **error)
{
  GstLmTextMeta *meta = gst_lm_buffer_get_text_meta (buffer);
  GstMapInfo map = GST_MAP_INFO_INIT;
  gint32 *tokens;

  if (gst_buffer_get_size (buffer) == 0)
    return runnel_tokenizer_encode (tokenizer, "", 0, FALSE, n_tokens, error);
  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
                   "a text buffer cannot be read");
      return NULL;
    }
  if (meta != NULL)
    tokens = runnel_tokenizer_encode_spans (
        tokenizer, (const char *) map.data, map.size, meta->spans,
        meta->n_spans, n_tokens, error);
  else
    tokens = runnel_tokenizer_encode (tokenizer, (const char *) map.data,
                                      map.size, parse_special, n_tokens, error);
  gst_buffer_unmap (buffer, &map);
  return tokens;
}

/* A chat template writes the beginning of the text itself. */
static gint32 *
prepend_bos (RunnelTokenizer *tokenizer, GstBuffer *buffer, gint32 *tokens,
             gsize *n_tokens)
{
  gint32 bos = runnel_tokenizer_get_bos (tokenizer);
  gint32 *result;

  if (bos < 0 || !runnel_tokenizer_get_add_bos (tokenizer) || *n_tokens == 0 ||
      gst_lm_buffer_get_text_meta (buffer) != NULL || tokens[0] == bos)
    return tokens;
  result = g_new (gint32, *n_tokens + 1);
  result[0] = bos;
  memcpy (result + 1, tokens, *n_tokens * sizeof *tokens);
  *n_tokens += 1;
  g_free (tokens);
  return result;
}

/* The token that begins at @byte of the text, or -1 when none does. */
static gint
find_token (RunnelTokenizer *tokenizer, const gint32 *tokens, gsize n_tokens,
            gint byte)
{
  gsize at = 0, length;

  if (byte < 0)
    return -1;
  for (gsize i = 0; i < n_tokens && at <= (gsize) byte; i++)
    {
      if (at == (gsize) byte)
        return i;
      if (runnel_tokenizer_get_piece (tokenizer, tokens[i], &length) == NULL)
        return -1;
      at += length;
    }
  return -1;
}

/* Nothing to reply to: everybody after us passes the empty reply on. */
static void
end_request (GstLmTokenize *self, GstLmRequestMeta *meta)
{
  meta->finish_reason = RUNNEL_FINISH_REASON_STOP;
  gst_lm_filter_send_upstream (
      GST_LM_FILTER (self),
      gst_lm_event_new_reply (meta->id, "", meta->finish_reason));
}

static GstFlowReturn
gst_lm_tokenize_process (GstLmFilter *filter, GstBuffer *buffer)
{
  GstLmTokenize *self = GST_LM_TOKENIZE (filter);
  GstLmModelHolder *holder = gst_lm_filter_get_model_holder (filter);
  RunnelTokenizer *tokenizer = gst_lm_model_holder_get_tokenizer (holder);
  g_autoptr (GError) error = NULL;
  g_autofree gint32 *tokens = NULL;
  gboolean parse_special = FALSE;
  GstLmRequestMeta *meta;
  GstBuffer *out;
  gsize n_tokens = 0;

  if (get_parse_special (self, buffer, &parse_special, &error))
    tokens = encode (tokenizer, buffer, parse_special, &n_tokens, &error);
  if (error != NULL)
    return gst_lm_filter_fail (filter, buffer, error);
  tokens = prepend_bos (tokenizer, buffer, tokens, &n_tokens);
  GST_LOG_OBJECT (self, "%" G_GSIZE_FORMAT " bytes are %" G_GSIZE_FORMAT
                  " tokens", gst_buffer_get_size (buffer), n_tokens);

  out = gst_lm_buffer_new_tokens (tokens, n_tokens);
  GST_BUFFER_PTS (out) = GST_BUFFER_PTS (buffer);
  meta = gst_lm_buffer_copy_request_meta (out, buffer);
  gst_lm_request_meta_set_model (meta, gst_lm_model_holder_get_model (holder));
  meta->generation_prompt =
      find_token (tokenizer, tokens, n_tokens, meta->generation_prompt);
  gst_buffer_unref (buffer);
  if (n_tokens == 0)
    {
      end_request (self, meta);
      GST_BUFFER_FLAG_SET (out, GST_BUFFER_FLAG_MARKER);
    }
  return gst_lm_filter_push (filter, out);
}

static GstCaps *
gst_lm_tokenize_get_src_caps (GstLmFilter *filter, GstBuffer *request)
{
  GstLmModelHolder *holder = gst_lm_filter_get_model_holder (filter);

  if (request == NULL)
    return gst_caps_new_empty_simple (GST_LM_CAPS_TOKENS);
  return gst_lm_caps_new_tokens (gst_lm_model_holder_get_tokenizer (holder));
}

static void
gst_lm_tokenize_set_property (GObject *object, guint prop_id,
                              const GValue *value, GParamSpec *pspec)
{
  GstLmTokenize *self = GST_LM_TOKENIZE (object);

  if (prop_id != PROP_PARSE_SPECIAL)
    {
      G_OBJECT_CLASS (gst_lm_tokenize_parent_class)
          ->set_property (object, prop_id, value, pspec);
      return;
    }
  GST_OBJECT_LOCK (self);
  self->parse_special = g_value_get_boolean (value);
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_tokenize_get_property (GObject *object, guint prop_id, GValue *value,
                              GParamSpec *pspec)
{
  GstLmTokenize *self = GST_LM_TOKENIZE (object);

  if (prop_id != PROP_PARSE_SPECIAL)
    {
      G_OBJECT_CLASS (gst_lm_tokenize_parent_class)
          ->get_property (object, prop_id, value, pspec);
      return;
    }
  GST_OBJECT_LOCK (self);
  g_value_set_boolean (value, self->parse_special);
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_tokenize_class_init (GstLmTokenizeClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstLmFilterClass *filter_class = GST_LM_FILTER_CLASS (klass);

  object_class->set_property = gst_lm_tokenize_set_property;
  object_class->get_property = gst_lm_tokenize_get_property;
  filter_class->process = gst_lm_tokenize_process;
  filter_class->get_src_caps = gst_lm_tokenize_get_src_caps;
  gst_lm_filter_class_use_model (filter_class, GST_LM_MODEL_PART_TOKENIZER);
  gst_lm_filter_class_frame_text (filter_class);

  g_object_class_install_property (
      object_class, PROP_PARSE_SPECIAL,
      g_param_spec_boolean ("parse-special", "Parse special",
                            "Let text that looks like a control token be one, "
                            "also where no chat template wrote it (only for "
                            "text of your own)",
                            DEFAULT_PARSE_SPECIAL,
                            G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                                GST_PARAM_MUTABLE_PLAYING));

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (
      element_class, "Language model tokenizer", "Filter/Text",
      "Turns text into token ids", PACKAGE_AUTHOR);
  GST_DEBUG_CATEGORY_INIT (lmtokenize_debug, "lmtokenize", 0, "tokenizer");
}

static void
gst_lm_tokenize_init (GstLmTokenize *self)
{
  self->parse_special = DEFAULT_PARSE_SPECIAL;
}
