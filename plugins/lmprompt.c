/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/**
 * SECTION:element-lmprompt
 * @title: lmprompt
 * @see_also: lmchat, lmtokenize
 *
 * A source of one prompt, for launch strings: its property text, or a file.
 * It gives one buffer, which is one request, and ends.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q lmprompt text="Hello there." ! fdsink
 * ]|
 */
#include <gst/base/gstpushsrc.h>
#include <gstrunnel.h>
#include "elements.h"
#include "text-file.h"

GST_DEBUG_CATEGORY_STATIC (lmprompt_debug);
#define GST_CAT_DEFAULT lmprompt_debug

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TEXT));

enum { PROP_0, PROP_TEXT, PROP_LOCATION };

struct _GstLmPrompt {
  GstPushSrc parent_instance;

  gchar *text;     /* under the object lock */
  gchar *location; /* under the object lock */
  GBytes *prompt;  /* streaming thread: not given yet */
};

G_DECLARE_FINAL_TYPE (GstLmPrompt, gst_lm_prompt, GST, LM_PROMPT, GstPushSrc)
G_DEFINE_FINAL_TYPE (GstLmPrompt, gst_lm_prompt, GST_TYPE_PUSH_SRC)
GST_ELEMENT_REGISTER_DEFINE (lmprompt, "lmprompt", GST_RANK_NONE,
                             gst_lm_prompt_get_type ())

static GBytes *
load_file (const gchar *location, GError **error)
{
  gsize length;
  gchar *text = gst_lm_text_file_read (location, GST_LM_MAX_REQUEST_BYTES,
                                       &length, error);

  return text != NULL ? g_bytes_new_take (text, length) : NULL;
}

static gboolean
gst_lm_prompt_start (GstBaseSrc *base)
{
  GstLmPrompt *self = GST_LM_PROMPT (base);
  g_autofree gchar *text = NULL;
  g_autofree gchar *location = NULL;
  g_autoptr (GError) error = NULL;

  GST_OBJECT_LOCK (self);
  text = g_strdup (self->text);
  location = g_strdup (self->location);
  GST_OBJECT_UNLOCK (self);

  if ((text == NULL) == (location == NULL))
    {
      GST_ELEMENT_ERROR (self, LIBRARY, SETTINGS,
                         ("%s needs a prompt: set one of its properties text "
                          "and location.", GST_OBJECT_NAME (self)),
                         (NULL));
      return FALSE;
    }
  g_clear_pointer (&self->prompt, g_bytes_unref);
  if (text != NULL)
    self->prompt = g_bytes_new (text, strlen (text));
  else
    self->prompt = load_file (location, &error);
  if (self->prompt == NULL)
    {
      GST_ELEMENT_ERROR (self, RESOURCE, OPEN_READ,
                         ("%s", error->message), (NULL));
      return FALSE;
    }
  return TRUE;
}

static gboolean
gst_lm_prompt_stop (GstBaseSrc *base)
{
  g_clear_pointer (&GST_LM_PROMPT (base)->prompt, g_bytes_unref);
  return TRUE;
}

static gboolean
gst_lm_prompt_is_seekable (GstBaseSrc *base)
{
  return FALSE;
}

static GstFlowReturn
gst_lm_prompt_create (GstPushSrc *push_src, GstBuffer **buffer)
{
  GstLmPrompt *self = GST_LM_PROMPT (push_src);
  g_autoptr (GBytes) prompt = g_steal_pointer (&self->prompt);

  if (prompt == NULL)
    return GST_FLOW_EOS;
  *buffer = g_bytes_get_size (prompt) == 0
                ? gst_buffer_new ()
                : gst_buffer_new_wrapped_bytes (prompt);
  gst_lm_buffer_add_request_meta (*buffer, 0);
  return GST_FLOW_OK;
}

static void
gst_lm_prompt_set_property (GObject *object, guint prop_id,
                            const GValue *value, GParamSpec *pspec)
{
  GstLmPrompt *self = GST_LM_PROMPT (object);
  gchar **field;

  switch (prop_id)
    {
    case PROP_TEXT:
      field = &self->text;
      break;
    case PROP_LOCATION:
      field = &self->location;
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
      return;
    }
  GST_OBJECT_LOCK (self);
  g_free (*field);
  *field = g_value_dup_string (value);
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_prompt_get_property (GObject *object, guint prop_id, GValue *value,
                            GParamSpec *pspec)
{
  GstLmPrompt *self = GST_LM_PROMPT (object);

  GST_OBJECT_LOCK (self);
  switch (prop_id)
    {
    case PROP_TEXT:
      g_value_set_string (value, self->text);
      break;
    case PROP_LOCATION:
      g_value_set_string (value, self->location);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
      break;
    }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_prompt_finalize (GObject *object)
{
  GstLmPrompt *self = GST_LM_PROMPT (object);

  g_free (self->text);
  g_free (self->location);
  g_clear_pointer (&self->prompt, g_bytes_unref);
  G_OBJECT_CLASS (gst_lm_prompt_parent_class)->finalize (object);
}

static void
gst_lm_prompt_class_init (GstLmPromptClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSrcClass *base_class = GST_BASE_SRC_CLASS (klass);
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;

  object_class->set_property = gst_lm_prompt_set_property;
  object_class->get_property = gst_lm_prompt_get_property;
  object_class->finalize = gst_lm_prompt_finalize;
  base_class->start = gst_lm_prompt_start;
  base_class->stop = gst_lm_prompt_stop;
  base_class->is_seekable = gst_lm_prompt_is_seekable;
  GST_PUSH_SRC_CLASS (klass)->create = gst_lm_prompt_create;

  g_object_class_install_property (
      object_class, PROP_TEXT,
      g_param_spec_string ("text", "Text", "The prompt", NULL, flags));
  g_object_class_install_property (
      object_class, PROP_LOCATION,
      g_param_spec_string ("location", "Location",
                           "File that holds the prompt, instead of text",
                           NULL, flags));

  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (
      element_class, "Language model prompt", "Source/Text",
      "Gives one prompt, from a property or a file", PACKAGE_AUTHOR);
  GST_DEBUG_CATEGORY_INIT (lmprompt_debug, "lmprompt", 0, "prompt source");
}

static void
gst_lm_prompt_init (GstLmPrompt *self)
{
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_TIME);
}
