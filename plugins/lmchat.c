/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/**
 * SECTION:element-lmchat
 * @title: lmchat
 * @see_also: lmprompt, lmtokenize
 *
 * Turns what a user says, or a list of chat messages, into the text that the
 * model was trained on, by the model's own chat template. The model is the
 * one that the text is going to: that of the lmtokenize behind this element.
 *
 * Input is plain text (one message of the user), or application/json: an
 * array of messages as OpenAI's API has them, or an object with messages,
 * tools and whatever else the template reads.
 *
 * With keep-turns, a prompt waits for the reply to the one before it, and both
 * stand before it in the chat.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q lmprompt text="Name three rivers." \
 *     ! lmchat system="Be brief." ! lmtokenize model=$MODEL ! lmprefill \
 *     ! lmdecode max-tokens=8 ! lmdetokenize ! fdsink
 * ]|
 */
#include <string.h>
#include <gstrunnel.h>
#include "chat-messages.h"
#include "elements.h"
#include "text-file.h"

GST_DEBUG_CATEGORY_STATIC (lmchat_debug);
#define GST_CAT_DEFAULT lmchat_debug

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_LM_CAPS_TEXT "; " GST_LM_CAPS_JSON));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TEXT));

/**
 * GstLmThinking:
 * @GST_LM_THINKING_AUTO: as the template does by itself
 * @GST_LM_THINKING_ON: the model may think before it answers
 * @GST_LM_THINKING_OFF: it answers at once
 *
 * The template's variable enable_thinking.
 *
 * Since: 0.1
 */
typedef enum {
  GST_LM_THINKING_AUTO,
  GST_LM_THINKING_ON,
  GST_LM_THINKING_OFF,
} GstLmThinking;

#define GST_TYPE_LM_THINKING (gst_lm_thinking_get_type ())

static GType
gst_lm_thinking_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GST_LM_THINKING_AUTO, "As the template does by itself", "auto" },
    { GST_LM_THINKING_ON, "The model may think first", "on" },
    { GST_LM_THINKING_OFF, "The model answers at once", "off" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       g_enum_register_static ("GstLmThinking", values));
  return type;
}

enum {
  PROP_0,
  PROP_SYSTEM,
  PROP_TOOLS,
  PROP_TEMPLATE,
  PROP_THINKING,
  PROP_ADD_GENERATION_PROMPT,
  PROP_KEEP_TURNS,
};

#define MAX_FILE_BYTES ((gsize) 16 * 1024 * 1024) /* template, tools */
#define DEFAULT_THINKING GST_LM_THINKING_AUTO
#define DEFAULT_ADD_GENERATION_PROMPT TRUE
#define DEFAULT_KEEP_TURNS FALSE

struct _GstLmChat {
  GstLmFilter parent_instance;

  /* Properties; under the object lock */
  gchar *system;
  gchar *tools_path;
  gchar *template_path;
  GstLmThinking thinking;
  gboolean add_generation_prompt;
  gboolean keep_turns;

  /* Set in NULL→READY */
  RunnelChatTemplate *template; /* nullable: the model's own */
  gchar *tools;                 /* nullable: JSON */

  GMutex lock;
  GCond cond; /* waiting_for, flushing */
  /* Under lock */
  guint64 waiting_for; /* the request whose reply is to come; 0: none */
  GString *turn;       /* the messages of that request */
  GString *history;    /* the messages before it */
};

G_DECLARE_FINAL_TYPE (GstLmChat, gst_lm_chat, GST, LM_CHAT, GstLmFilter)
G_DEFINE_FINAL_TYPE (GstLmChat, gst_lm_chat, GST_TYPE_LM_FILTER)
GST_ELEMENT_REGISTER_DEFINE (lmchat, "lmchat", GST_RANK_NONE,
                             gst_lm_chat_get_type ())

/* One request's values. */
typedef struct {
  gchar *system;
  GstLmThinking thinking;
  gboolean add_generation_prompt;
} ChatParams;

static gboolean
get_params (GstLmChat *self, GstLmRequestMeta *meta, ChatParams *ret_params,
            GError **error)
{
  g_auto (GValue) system = G_VALUE_INIT;
  g_auto (GValue) thinking = G_VALUE_INIT;
  g_auto (GValue) add = G_VALUE_INIT;
  GObject *object = G_OBJECT (self);

  if (!gst_lm_request_meta_get_parameter (meta, object, "system", &system,
                                          error) ||
      !gst_lm_request_meta_get_parameter (meta, object, "thinking", &thinking,
                                          error) ||
      !gst_lm_request_meta_get_parameter (meta, object,
                                          "add-generation-prompt", &add,
                                          error))
    return FALSE;
  ret_params->system = g_value_dup_string (&system);
  ret_params->thinking = g_value_get_enum (&thinking);
  ret_params->add_generation_prompt = g_value_get_boolean (&add);
  return TRUE;
}

static gboolean
get_keep_turns (GstLmChat *self)
{
  gboolean keep_turns;

  GST_OBJECT_LOCK (self);
  keep_turns = self->keep_turns;
  GST_OBJECT_UNLOCK (self);
  return keep_turns;
}

static gboolean
input_is_json (GstLmChat *self)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (
      gst_lm_filter_get_sink_pad (GST_LM_FILTER (self)));

  return caps != NULL &&
         gst_structure_has_name (gst_caps_get_structure (caps, 0),
                                 GST_LM_CAPS_JSON);
}

/* A line end at the end of a file or of a terminal's input is not part of
 * what was said. */
static gsize
trim_line_end (GstLmChat *self, const gchar *text, gsize length)
{
  if (gst_lm_filter_get_framing (GST_LM_FILTER (self)) != GST_LM_FRAMING_STREAM)
    return length;
  if (length > 0 && text[length - 1] == '\n')
    length--;
  if (length > 0 && text[length - 1] == '\r')
    length--;
  return length;
}

static GstLmChatInput *
read_input (GstLmChat *self, GstBuffer *buffer, GError **error)
{
  GstLmChatInput *input;
  GstMapInfo map;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
                   "a text buffer cannot be read");
      return NULL;
    }
  if (input_is_json (self))
    input = gst_lm_chat_input_new_json ((gchar *) map.data, map.size, error);
  else
    input = gst_lm_chat_input_new_text (
        (gchar *) map.data,
        trim_line_end (self, (gchar *) map.data, map.size));
  gst_buffer_unmap (buffer, &map);
  return input;
}

static void
append_token (GString *json, RunnelTokenizer *tokenizer, const gchar *name,
              gint32 token)
{
  const guint8 *piece;
  gsize length;

  piece = token >= 0 ? runnel_tokenizer_get_piece (tokenizer, token, &length)
                     : NULL;
  if (piece == NULL)
    return;
  g_string_append_printf (json, "\"%s\":", name);
  gst_lm_chat_append_string (json, (const gchar *) piece, length);
  g_string_append_c (json, ',');
}

static void
append_chat (GstLmChat *self, GString *json, const ChatParams *params,
             GstLmChatInput *input)
{
  g_autoptr (GString) messages = g_string_new (NULL);

  if (params->system != NULL && !input->has_system)
    gst_lm_chat_append_message (messages, "system", params->system,
                                strlen (params->system));
  g_mutex_lock (&self->lock);
  gst_lm_chat_append_messages (messages, self->history->str,
                               self->history->len);
  g_mutex_unlock (&self->lock);
  gst_lm_chat_append_messages (messages, input->messages->str,
                               input->messages->len);
  g_string_append (json, "\"messages\":[");
  g_string_append_len (json, messages->str, messages->len);
  g_string_append_c (json, ']');
}

/* Of two members of one name the last counts: the request's own come behind
 * the properties, and nothing comes behind the tokenizer's. */
static GString *
make_variables (GstLmChat *self, RunnelTokenizer *tokenizer,
                const ChatParams *params, gboolean add_generation_prompt,
                GstLmChatInput *input)
{
  GString *json = g_string_new ("{");

  g_string_append_printf (json, "\"add_generation_prompt\":%s,",
                          add_generation_prompt ? "true" : "false");
  if (params->thinking != GST_LM_THINKING_AUTO)
    g_string_append_printf (
        json, "\"enable_thinking\":%s,",
        params->thinking == GST_LM_THINKING_ON ? "true" : "false");
  if (self->tools != NULL)
    g_string_append_printf (json, "\"tools\":%s,", self->tools);
  g_string_append_len (json, input->members->str, input->members->len);
  append_token (json, tokenizer, "bos_token",
                runnel_tokenizer_get_bos (tokenizer));
  append_token (json, tokenizer, "eos_token",
                runnel_tokenizer_get_eos (tokenizer));
  append_chat (self, json, params, input);
  g_string_append_c (json, '}');
  return json;
}

/* Where the beginning of the reply stands that the template wrote: behind the
 * messages alone. -1 when it does more than that, or nothing. */
static gint
find_generation_prompt (RunnelChatTemplate *template, const GString *variables,
                        const RunnelRenderedText *rendered)
{
  g_autoptr (RunnelRenderedText) messages = runnel_chat_template_render (
      template, variables->str, variables->len, NULL, NULL);
  const gchar *text, *whole;
  gsize length, whole_length;

  if (messages == NULL)
    return -1;
  text = runnel_rendered_text_get_text (messages, &length);
  whole = runnel_rendered_text_get_text (rendered, &whole_length);
  return length < whole_length && length <= G_MAXINT &&
                 memcmp (text, whole, length) == 0
             ? (gint) length
             : -1;
}

static RunnelRenderedText *
render (GstLmChat *self, RunnelModel *model, GstBuffer *buffer,
        GstLmChatInput *input, gint *ret_generation_prompt, GError **error)
{
  g_autoptr (GString) variables = NULL;
  g_autoptr (GString) messages = NULL;
  g_autoptr (RunnelRenderedText) rendered = NULL;
  g_autofree gchar *system = NULL;
  RunnelChatTemplate *template = self->template;
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, error);
  ChatParams params;

  if (tokenizer == NULL)
    return NULL;
  if (template == NULL)
    template = runnel_model_get_chat_template (model, error);
  if (template == NULL ||
      !get_params (self, gst_lm_buffer_get_request_meta (buffer), &params,
                   error))
    return NULL;
  system = params.system;
  variables = make_variables (self, tokenizer, &params,
                              params.add_generation_prompt, input);
  rendered = runnel_chat_template_render (template, variables->str,
                                          variables->len, NULL, error);
  if (rendered != NULL && params.add_generation_prompt)
    {
      messages = make_variables (self, tokenizer, &params, FALSE, input);
      *ret_generation_prompt =
          find_generation_prompt (template, messages, rendered);
    }
  return g_steal_pointer (&rendered);
}

/* Waits for the reply to the turn before. Returns FALSE when flushing. */
static gboolean
wait_for_reply (GstLmChat *self)
{
  gboolean flushing;

  g_mutex_lock (&self->lock);
  while (self->waiting_for != 0 &&
         !gst_lm_filter_is_flushing (GST_LM_FILTER (self)))
    g_cond_wait (&self->cond, &self->lock);
  flushing = gst_lm_filter_is_flushing (GST_LM_FILTER (self));
  g_mutex_unlock (&self->lock);
  return !flushing;
}

static void
begin_turn (GstLmChat *self, guint64 id, GstLmChatInput *input)
{
  g_mutex_lock (&self->lock);
  self->waiting_for = id;
  g_string_assign (self->turn, "");
  g_string_append_len (self->turn, input->messages->str,
                       input->messages->len);
  g_mutex_unlock (&self->lock);
}

/* A turn that failed leaves nothing behind. */
static void
end_turn (GstLmChat *self, guint64 id, const gchar *reply,
          RunnelFinishReason reason)
{
  g_mutex_lock (&self->lock);
  if (self->waiting_for == id)
    {
      if (reason != RUNNEL_FINISH_REASON_ERROR)
        {
          gst_lm_chat_append_messages (self->history, self->turn->str,
                                       self->turn->len);
          gst_lm_chat_append_message (self->history, "assistant", reply,
                                      strlen (reply));
        }
      self->waiting_for = 0;
      g_cond_broadcast (&self->cond);
    }
  g_mutex_unlock (&self->lock);
}

static GstFlowReturn
fail_without_model (GstLmChat *self)
{
  GST_ELEMENT_ERROR (self, LIBRARY, SETTINGS,
                     ("%s knows no model: nothing after it names one. Set "
                      "model=FILE on the lmtokenize behind it, or on the "
                      "lmgenerate that holds it.",
                      GST_OBJECT_NAME (self)),
                     (NULL));
  return GST_FLOW_ERROR;
}

/* An empty text would be an empty reply, which says nothing of the cause. */
static gboolean
check_rendered (GstLmChat *self, RunnelRenderedText *rendered, GError **error)
{
  gsize length;

  runnel_rendered_text_get_text (rendered, &length);
  if (length > 0)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_TEMPLATE,
               "%s makes no text of these messages",
               self->template != NULL ? "the file of the property template"
                                      : "the model's chat template");
  return FALSE;
}

static GstBuffer *
make_output (GstBuffer *buffer, RunnelRenderedText *rendered,
             gint generation_prompt)
{
  const RunnelTextSpan *spans;
  gsize length, n_spans;
  const gchar *text = runnel_rendered_text_get_text (rendered, &length);
  GstBuffer *out =
      length > 0 ? gst_buffer_new_memdup (text, length) : gst_buffer_new ();

  spans = runnel_rendered_text_get_spans (rendered, &n_spans);
  gst_lm_buffer_add_text_meta (out, spans, n_spans);
  gst_lm_buffer_copy_request_meta (out, buffer)->generation_prompt =
      generation_prompt;
  GST_BUFFER_PTS (out) = GST_BUFFER_PTS (buffer);
  return out;
}

static GstFlowReturn
gst_lm_chat_process (GstLmFilter *filter, GstBuffer *buffer)
{
  GstLmChat *self = GST_LM_CHAT (filter);
  g_autoptr (RunnelModel) model =
      gst_lm_pad_query_model (gst_lm_filter_get_src_pad (filter));
  g_autoptr (GstLmChatInput) input = NULL;
  g_autoptr (RunnelRenderedText) rendered = NULL;
  g_autoptr (GstBuffer) request = buffer;
  g_autoptr (GError) error = NULL;
  gboolean keep_turns = get_keep_turns (self);
  gint generation_prompt = -1;

  if (model == NULL)
    return fail_without_model (self);
  if (keep_turns && !wait_for_reply (self))
    return GST_FLOW_FLUSHING;
  input = read_input (self, request, &error);
  if (input != NULL)
    rendered = render (self, model, request, input, &generation_prompt,
                       &error);
  if (rendered == NULL || !check_rendered (self, rendered, &error))
    return gst_lm_filter_fail (filter, g_steal_pointer (&request), error);
  if (keep_turns)
    begin_turn (self, gst_lm_buffer_get_request_meta (request)->id, input);
  return gst_lm_filter_push (
      filter, make_output (request, rendered, generation_prompt));
}

static GstCaps *
gst_lm_chat_get_src_caps (GstLmFilter *filter, GstBuffer *request)
{
  return gst_lm_caps_new_text ();
}

static gboolean
gst_lm_chat_src_event (GstLmFilter *filter, GstEvent *event)
{
  RunnelFinishReason reason;
  const gchar *text;
  guint64 id;

  if (gst_lm_event_parse_reply (event, &id, &text, &reason))
    end_turn (GST_LM_CHAT (filter), id, text, reason);
  return GST_LM_FILTER_CLASS (gst_lm_chat_parent_class)
      ->src_event (filter, event);
}

static void
gst_lm_chat_unlock (GstLmFilter *filter)
{
  GstLmChat *self = GST_LM_CHAT (filter);

  g_mutex_lock (&self->lock);
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);
}

/* A flush throws away the turn that has no reply yet, and keeps the chat. */
static void
gst_lm_chat_reset (GstLmFilter *filter, gboolean hard)
{
  GstLmChat *self = GST_LM_CHAT (filter);

  g_mutex_lock (&self->lock);
  self->waiting_for = 0;
  g_string_truncate (self->turn, 0);
  if (hard)
    g_string_truncate (self->history, 0);
  g_mutex_unlock (&self->lock);
}

static gboolean
load_template (GstLmChat *self, const gchar *path, GError **error)
{
  g_autofree gchar *source = NULL;
  gsize length;

  source = gst_lm_text_file_read (path, MAX_FILE_BYTES, &length, error);
  if (source == NULL)
    return FALSE;
  self->template = runnel_chat_template_new (source, length, path, error);
  return self->template != NULL;
}

static gboolean
load_tools (GstLmChat *self, const gchar *path, GError **error)
{
  g_autofree gchar *json = NULL;
  gsize length;

  json = gst_lm_text_file_read (path, MAX_FILE_BYTES, &length, error);
  if (json == NULL ||
      !gst_lm_chat_check_array (json, length, path, error))
    return FALSE;
  self->tools = g_steal_pointer (&json);
  return TRUE;
}

static void
forget_files (GstLmChat *self)
{
  g_clear_object (&self->template);
  g_clear_pointer (&self->tools, g_free);
}

/* Elements after us have opened theirs already; there may be none yet. */
static gboolean
check_model (GstLmChat *self, GError **error)
{
  g_autoptr (RunnelModel) model = gst_lm_pad_query_model (
      gst_lm_filter_get_src_pad (GST_LM_FILTER (self)));

  return model == NULL || self->template != NULL ||
         runnel_model_get_chat_template (model, error) != NULL;
}

static gboolean
open_files (GstLmChat *self)
{
  g_autofree gchar *template_path = NULL;
  g_autofree gchar *tools_path = NULL;
  g_autoptr (GError) error = NULL;

  GST_OBJECT_LOCK (self);
  template_path = g_strdup (self->template_path);
  tools_path = g_strdup (self->tools_path);
  GST_OBJECT_UNLOCK (self);

  forget_files (self);
  if ((template_path != NULL &&
       !load_template (self, template_path, &error)) ||
      (tools_path != NULL && !load_tools (self, tools_path, &error)) ||
      !check_model (self, &error))
    {
      gst_lm_element_post_error (GST_ELEMENT (self), error);
      return FALSE;
    }
  return TRUE;
}

static GstStateChangeReturn
gst_lm_chat_change_state (GstElement *element, GstStateChange transition)
{
  GstLmChat *self = GST_LM_CHAT (element);
  GstStateChangeReturn ret;

  if (transition == GST_STATE_CHANGE_NULL_TO_READY && !open_files (self))
    return GST_STATE_CHANGE_FAILURE;
  ret = GST_ELEMENT_CLASS (gst_lm_chat_parent_class)
            ->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_READY_TO_NULL)
    forget_files (self);
  return ret;
}

static void
set_string (gchar **field, const GValue *value)
{
  g_free (*field);
  *field = g_value_dup_string (value);
}

static void
gst_lm_chat_set_property (GObject *object, guint prop_id, const GValue *value,
                          GParamSpec *pspec)
{
  GstLmChat *self = GST_LM_CHAT (object);

  if (prop_id == 0 || prop_id > PROP_KEEP_TURNS)
    {
      G_OBJECT_CLASS (gst_lm_chat_parent_class)
          ->set_property (object, prop_id, value, pspec);
      return;
    }
  GST_OBJECT_LOCK (self);
  switch (prop_id)
    {
    case PROP_SYSTEM:
      set_string (&self->system, value);
      break;
    case PROP_TOOLS:
      set_string (&self->tools_path, value);
      break;
    case PROP_TEMPLATE:
      set_string (&self->template_path, value);
      break;
    case PROP_THINKING:
      self->thinking = g_value_get_enum (value);
      break;
    case PROP_ADD_GENERATION_PROMPT:
      self->add_generation_prompt = g_value_get_boolean (value);
      break;
    case PROP_KEEP_TURNS:
      self->keep_turns = g_value_get_boolean (value);
      break;
    }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_chat_get_property (GObject *object, guint prop_id, GValue *value,
                          GParamSpec *pspec)
{
  GstLmChat *self = GST_LM_CHAT (object);

  if (prop_id == 0 || prop_id > PROP_KEEP_TURNS)
    {
      G_OBJECT_CLASS (gst_lm_chat_parent_class)
          ->get_property (object, prop_id, value, pspec);
      return;
    }
  GST_OBJECT_LOCK (self);
  switch (prop_id)
    {
    case PROP_SYSTEM:
      g_value_set_string (value, self->system);
      break;
    case PROP_TOOLS:
      g_value_set_string (value, self->tools_path);
      break;
    case PROP_TEMPLATE:
      g_value_set_string (value, self->template_path);
      break;
    case PROP_THINKING:
      g_value_set_enum (value, self->thinking);
      break;
    case PROP_ADD_GENERATION_PROMPT:
      g_value_set_boolean (value, self->add_generation_prompt);
      break;
    case PROP_KEEP_TURNS:
      g_value_set_boolean (value, self->keep_turns);
      break;
    }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_chat_finalize (GObject *object)
{
  GstLmChat *self = GST_LM_CHAT (object);

  forget_files (self);
  g_free (self->system);
  g_free (self->tools_path);
  g_free (self->template_path);
  g_string_free (self->turn, TRUE);
  g_string_free (self->history, TRUE);
  g_cond_clear (&self->cond);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gst_lm_chat_parent_class)->finalize (object);
}

static void
install_properties (GObjectClass *klass)
{
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;

  gst_type_mark_as_plugin_api (GST_TYPE_LM_THINKING, 0);
  g_object_class_install_property (
      klass, PROP_SYSTEM,
      g_param_spec_string ("system", "System",
                           "System message, unless the messages have one",
                           NULL, flags | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (
      klass, PROP_TOOLS,
      g_param_spec_string ("tools", "Tools",
                           "File with a JSON array of the tools to offer",
                           NULL, flags | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (
      klass, PROP_TEMPLATE,
      g_param_spec_string ("template", "Template",
                           "File with a Jinja chat template, instead of the "
                           "model's own",
                           NULL, flags | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (
      klass, PROP_THINKING,
      g_param_spec_enum ("thinking", "Thinking",
                         "Whether the model thinks before it answers (where "
                         "its template asks)",
                         GST_TYPE_LM_THINKING, DEFAULT_THINKING,
                         flags | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (
      klass, PROP_ADD_GENERATION_PROMPT,
      g_param_spec_boolean ("add-generation-prompt", "Add generation prompt",
                            "End with the beginning of the reply",
                            DEFAULT_ADD_GENERATION_PROMPT,
                            flags | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (
      klass, PROP_KEEP_TURNS,
      g_param_spec_boolean ("keep-turns", "Keep turns",
                            "Wait for each reply, and let the next prompt "
                            "see all turns before it",
                            DEFAULT_KEEP_TURNS,
                            flags | GST_PARAM_MUTABLE_READY));
}

static void
gst_lm_chat_class_init (GstLmChatClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstLmFilterClass *filter_class = GST_LM_FILTER_CLASS (klass);

  object_class->set_property = gst_lm_chat_set_property;
  object_class->get_property = gst_lm_chat_get_property;
  object_class->finalize = gst_lm_chat_finalize;
  element_class->change_state = gst_lm_chat_change_state;
  filter_class->process = gst_lm_chat_process;
  filter_class->get_src_caps = gst_lm_chat_get_src_caps;
  filter_class->src_event = gst_lm_chat_src_event;
  filter_class->unlock = gst_lm_chat_unlock;
  filter_class->reset = gst_lm_chat_reset;
  gst_lm_filter_class_frame_text (filter_class);
  install_properties (object_class);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (
      element_class, "Language model chat template", "Filter/Text",
      "Turns messages into a model's prompt by its chat template",
      PACKAGE_AUTHOR);
  GST_DEBUG_CATEGORY_INIT (lmchat_debug, "lmchat", 0, "chat template");
}

static void
gst_lm_chat_init (GstLmChat *self)
{
  self->thinking = DEFAULT_THINKING;
  self->add_generation_prompt = DEFAULT_ADD_GENERATION_PROMPT;
  self->keep_turns = DEFAULT_KEEP_TURNS;
  self->turn = g_string_new (NULL);
  self->history = g_string_new (NULL);
  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
}
