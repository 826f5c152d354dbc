/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/**
 * SECTION:element-lmdetokenize
 * @title: lmdetokenize
 * @see_also: lmdecode, lmtokenize
 *
 * Turns token ids into text, as they come: whole characters only, and no
 * further than generation allows, so that a stop string that ends inside a
 * token is cut off exactly. The last buffer of a reply is marked and carries
 * its finish reason, even when it has no text.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q lmprompt text="Hello there." ! lmtokenize model=$MODEL \
 *     ! lmdetokenize ! fdsink
 * ]|
 */
#include <gstrunnel.h>
#include "elements.h"

GST_DEBUG_CATEGORY_STATIC (lmdetokenize_debug);
#define GST_CAT_DEFAULT lmdetokenize_debug

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TOKENS));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TEXT));

enum { PROP_0, PROP_RENDER_SPECIAL, PROP_KEEP_INCOMPLETE };

#define DEFAULT_RENDER_SPECIAL FALSE
#define DEFAULT_KEEP_INCOMPLETE TRUE

/* Text of a request whose last buffer has not come yet. */
typedef struct {
  RunnelTokenizer *tokenizer;
  RunnelDetokenizer *detokenizer;
  gboolean keep_incomplete;
  GString *text;     /* not shown yet */
  GArray *marks;     /* Mark: where control tokens stand in text */
  guint64 shown;     /* bytes before text, without those of control tokens */
} Reply;

/* Generation counts the text without control tokens. */
typedef struct {
  gsize start;
  gsize length;
} Mark;

struct _GstLmDetokenize {
  GstLmFilter parent_instance;

  gboolean render_special;  /* under the object lock */
  gboolean keep_incomplete; /* under the object lock */
  GHashTable *replies;      /* id → Reply; streaming thread */
};

G_DECLARE_FINAL_TYPE (GstLmDetokenize, gst_lm_detokenize, GST, LM_DETOKENIZE,
                      GstLmFilter)
G_DEFINE_FINAL_TYPE (GstLmDetokenize, gst_lm_detokenize, GST_TYPE_LM_FILTER)
GST_ELEMENT_REGISTER_DEFINE (lmdetokenize, "lmdetokenize", GST_RANK_NONE,
                             gst_lm_detokenize_get_type ())

static void
reply_free (gpointer data)
{
  Reply *reply = data;

  g_object_unref (reply->tokenizer);
  g_object_unref (reply->detokenizer);
  g_string_free (reply->text, TRUE);
  g_array_unref (reply->marks);
  g_free (reply);
}

static gboolean
get_flag (GstLmDetokenize *self, GstLmRequestMeta *meta, const gchar *name,
          gboolean *ret_value, GError **error)
{
  g_auto (GValue) value = G_VALUE_INIT;

  if (!gst_lm_request_meta_get_parameter (meta, G_OBJECT (self), name, &value,
                                          error))
    return FALSE;
  *ret_value = g_value_get_boolean (&value);
  return TRUE;
}

static Reply *
reply_new (GstLmDetokenize *self, GstLmRequestMeta *meta,
           RunnelTokenizer *tokenizer, GError **error)
{
  gboolean render_special, keep_incomplete;
  Reply *reply;

  if (!get_flag (self, meta, "render-special", &render_special, error) ||
      !get_flag (self, meta, "keep-incomplete", &keep_incomplete, error))
    return NULL;
  reply = g_new0 (Reply, 1);
  reply->tokenizer = g_object_ref (tokenizer);
  reply->detokenizer = runnel_detokenizer_new (tokenizer, render_special);
  reply->keep_incomplete = keep_incomplete;
  reply->text = g_string_new (NULL);
  reply->marks = g_array_new (FALSE, FALSE, sizeof (Mark));
  return reply;
}

static Reply *
find_reply (GstLmDetokenize *self, GstLmRequestMeta *meta, GError **error)
{
  RunnelTokenizer *tokenizer = gst_lm_model_holder_get_tokenizer (
      gst_lm_filter_get_model_holder (GST_LM_FILTER (self)));
  Reply *reply = g_hash_table_lookup (self->replies, &meta->id);

  if (reply == NULL)
    {
      reply = reply_new (self, meta, tokenizer, error);
      if (reply != NULL)
        g_hash_table_insert (self->replies,
                             g_memdup2 (&meta->id, sizeof meta->id), reply);
    }
  return reply;
}

static gboolean
add_tokens (Reply *reply, const gint32 *tokens, gsize n_tokens, GError **error)
{
  for (gsize i = 0; i < n_tokens; i++)
    {
      gsize before = reply->text->len;

      if (!runnel_detokenizer_push_to (reply->detokenizer, tokens[i],
                                       reply->text, error))
        return FALSE;
      if (reply->text->len > before &&
          runnel_tokenizer_is_control (reply->tokenizer, tokens[i]))
        {
          Mark mark = { before, reply->text->len - before };

          g_array_append_val (reply->marks, mark);
        }
    }
  return TRUE;
}

/* How many bytes of the text may be shown when those without control tokens
 * end at @text_end. */
static gsize
find_end (Reply *reply, guint64 text_end)
{
  guint64 end;

  if (text_end == GST_LM_TEXT_END_NONE)
    return reply->text->len;
  end = text_end > reply->shown ? text_end - reply->shown : 0;
  for (guint i = 0; i < reply->marks->len; i++)
    {
      Mark *mark = &g_array_index (reply->marks, Mark, i);

      if (mark->start <= end)
        end += mark->length;
    }
  end = MIN (end, reply->text->len);
  /* A limit inside a character can only come from somebody else's element. */
  while (end > 0 && end < reply->text->len &&
         ((guchar) reply->text->str[end] & 0xc0) == 0x80)
    end--;
  return end;
}

static GstBuffer *
take_text (Reply *reply, gsize end)
{
  GstBuffer *buffer = end > 0
                          ? gst_buffer_new_memdup (reply->text->str, end)
                          : gst_buffer_new ();
  guint n_gone = 0;

  reply->shown += end;
  for (guint i = 0; i < reply->marks->len; i++)
    {
      Mark *mark = &g_array_index (reply->marks, Mark, i);

      if (mark->start < end)
        {
          reply->shown -= mark->length;
          n_gone++;
        }
      else
        mark->start -= end;
    }
  if (n_gone > 0)
    g_array_remove_range (reply->marks, 0, n_gone);
  g_string_erase (reply->text, 0, end);
  return buffer;
}

static GstBuffer *
make_output (GstBuffer *out, GstBuffer *buffer, gboolean last)
{
  GstLmRequestMeta *meta = gst_lm_buffer_copy_request_meta (out, buffer);

  gst_lm_request_meta_set_model (meta, NULL);
  GST_BUFFER_PTS (out) = GST_BUFFER_PTS (buffer);
  if (last && meta->is_reply)
    GST_BUFFER_FLAG_SET (out, GST_BUFFER_FLAG_MARKER);
  return out;
}

static GstFlowReturn
gst_lm_detokenize_process (GstLmFilter *filter, GstBuffer *buffer)
{
  GstLmDetokenize *self = GST_LM_DETOKENIZE (filter);
  GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (buffer);
  GstLmTokensMeta *limits = gst_lm_buffer_get_tokens_meta (buffer);
  gboolean last = !meta->is_reply ||
                  GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER);
  g_autoptr (GError) error = NULL;
  g_autofree gint32 *tokens = NULL;
  GstBuffer *out = NULL;
  gsize n_tokens, end;
  Reply *reply = find_reply (self, meta, &error);

  if (reply != NULL)
    tokens = gst_lm_buffer_dup_tokens (buffer, &n_tokens, &error);
  if (tokens == NULL || !add_tokens (reply, tokens, n_tokens, &error))
    {
      g_hash_table_remove (self->replies, &meta->id);
      return gst_lm_filter_fail (filter, buffer, error);
    }
  if (last)
    {
      g_autofree gchar *rest = runnel_detokenizer_flush (
          reply->detokenizer, reply->keep_incomplete);

      g_string_append (reply->text, rest);
    }
  end = find_end (reply, limits != NULL ? limits->text_end
                                        : GST_LM_TEXT_END_NONE);
  if (end > 0 || last)
    out = make_output (take_text (reply, end), buffer, last);
  if (last)
    g_hash_table_remove (self->replies, &meta->id);
  gst_buffer_unref (buffer);
  return out != NULL ? gst_lm_filter_push (filter, out) : GST_FLOW_OK;
}

static void
gst_lm_detokenize_reset (GstLmFilter *filter, gboolean hard)
{
  g_hash_table_remove_all (GST_LM_DETOKENIZE (filter)->replies);
}

static void
gst_lm_detokenize_set_property (GObject *object, guint prop_id,
                                const GValue *value, GParamSpec *pspec)
{
  GstLmDetokenize *self = GST_LM_DETOKENIZE (object);

  switch (prop_id)
    {
    case PROP_RENDER_SPECIAL:
      GST_OBJECT_LOCK (self);
      self->render_special = g_value_get_boolean (value);
      GST_OBJECT_UNLOCK (self);
      break;
    case PROP_KEEP_INCOMPLETE:
      GST_OBJECT_LOCK (self);
      self->keep_incomplete = g_value_get_boolean (value);
      GST_OBJECT_UNLOCK (self);
      break;
    default:
      G_OBJECT_CLASS (gst_lm_detokenize_parent_class)
          ->set_property (object, prop_id, value, pspec);
      break;
    }
}

static void
gst_lm_detokenize_get_property (GObject *object, guint prop_id, GValue *value,
                                GParamSpec *pspec)
{
  GstLmDetokenize *self = GST_LM_DETOKENIZE (object);

  switch (prop_id)
    {
    case PROP_RENDER_SPECIAL:
      GST_OBJECT_LOCK (self);
      g_value_set_boolean (value, self->render_special);
      GST_OBJECT_UNLOCK (self);
      break;
    case PROP_KEEP_INCOMPLETE:
      GST_OBJECT_LOCK (self);
      g_value_set_boolean (value, self->keep_incomplete);
      GST_OBJECT_UNLOCK (self);
      break;
    default:
      G_OBJECT_CLASS (gst_lm_detokenize_parent_class)
          ->get_property (object, prop_id, value, pspec);
      break;
    }
}

static void
gst_lm_detokenize_finalize (GObject *object)
{
  g_hash_table_unref (GST_LM_DETOKENIZE (object)->replies);
  G_OBJECT_CLASS (gst_lm_detokenize_parent_class)->finalize (object);
}

static void
gst_lm_detokenize_class_init (GstLmDetokenizeClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstLmFilterClass *filter_class = GST_LM_FILTER_CLASS (klass);
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  object_class->set_property = gst_lm_detokenize_set_property;
  object_class->get_property = gst_lm_detokenize_get_property;
  object_class->finalize = gst_lm_detokenize_finalize;
  filter_class->process = gst_lm_detokenize_process;
  filter_class->reset = gst_lm_detokenize_reset;
  gst_lm_filter_class_use_model (filter_class, GST_LM_MODEL_PART_TOKENIZER);

  g_object_class_install_property (
      object_class, PROP_RENDER_SPECIAL,
      g_param_spec_boolean ("render-special", "Render special",
                            "Show control tokens by their literal text",
                            DEFAULT_RENDER_SPECIAL, flags));
  g_object_class_install_property (
      object_class, PROP_KEEP_INCOMPLETE,
      g_param_spec_boolean ("keep-incomplete", "Keep incomplete",
                            "Show a character that is unfinished at the end "
                            "as U+FFFD instead of dropping it",
                            DEFAULT_KEEP_INCOMPLETE, flags));

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (
      element_class, "Language model detokenizer", "Filter/Text",
      "Turns token ids into text, whole characters only", PACKAGE_AUTHOR);
  GST_DEBUG_CATEGORY_INIT (lmdetokenize_debug, "lmdetokenize", 0,
                           "detokenizer");
}

static void
gst_lm_detokenize_init (GstLmDetokenize *self)
{
  self->render_special = DEFAULT_RENDER_SPECIAL;
  self->keep_incomplete = DEFAULT_KEEP_INCOMPLETE;
  self->replies = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free,
                                         reply_free);
}
