/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "filter.h"

#include "caps.h"
#include "events.h"
#include "filter-output.h"
#include "filter-private.h"
#include "request-meta.h"
#include "request.h"
#include "text-framer.h"
#include "utf8-check.h"
#include "vocab-check.h"

GST_DEBUG_CATEGORY_STATIC (filter_debug);
#define GST_CAT_DEFAULT filter_debug

/* Far from the ids of derived classes and of the model's properties. */
enum {
  PROP_FRAMING = 0x200,
  PROP_ERROR_POLICY,
};

#define DEFAULT_FRAMING GST_LM_FRAMING_BUFFER
#define DEFAULT_ERROR_POLICY GST_LM_ERROR_POLICY_FAIL

typedef struct {
  GstPad *sinkpad;
  GstPad *srcpad;
  GstLmModelHolder *holder; /* NULL: needs no model */
  GstLmTextFramer *framer;  /* NULL: input is no text */
  gint flushing;            /* atomic */

  /* Under the object lock */
  GstLmFraming framing;
  GstLmErrorPolicy error_policy;

  /* Streaming thread */
  GstLmFilterOutput output;
  GstLmVocabCheck vocab;
} GstLmFilterPrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GstLmFilter, gst_lm_filter,
                                     GST_TYPE_ELEMENT)

#define PRIVATE(self) \
  ((GstLmFilterPrivate *) gst_lm_filter_get_instance_private (self))

/* What must stand before the data of @request (nullable). */
static GstFlowReturn
prepare_stream (GstLmFilter *self, GstBuffer *request)
{
  GstLmFilterClass *klass = GST_LM_FILTER_GET_CLASS (self);
  GstLmFilterOutput *output = &PRIVATE (self)->output;
  g_autoptr (GstCaps) caps = NULL;

  if (request == NULL && output->caps != NULL)
    caps = gst_caps_ref (output->caps);
  else
    caps = klass->get_src_caps (self, request);
  return gst_lm_filter_output_prepare (output, self, caps);
}

static GstFlowReturn
pass_ended (GstLmFilter *self, GstBuffer *request)
{
  GstLmFilterPrivate *priv = PRIVATE (self);

  return gst_lm_pad_push_ended (
      priv->srcpad, request,
      priv->holder != NULL ? gst_lm_model_holder_get_model (priv->holder)
                           : NULL,
      NULL);
}

/* The model of the stream: text carries none, so that whoever makes tokens of
 * it asks who will read them. */
static RunnelModel *
find_stream_model (GstLmFilter *self, GstLmRequestMeta *meta)
{
  GstLmFilterPrivate *priv = PRIVATE (self);
  g_autoptr (RunnelModel) own = NULL;

  if (meta->model != NULL)
    return g_object_ref (meta->model);
  own = gst_lm_model_holder_dup_own_model (priv->holder);
  if (own != NULL || priv->framer == NULL)
    return NULL;
  return gst_lm_pad_query_model (priv->srcpad);
}

static GstFlowReturn
wait_for_model (GstLmFilter *self, GstLmRequestMeta *meta)
{
  GstLmFilterPrivate *priv = PRIVATE (self);
  g_autoptr (RunnelModel) model = NULL;
  GstFlowReturn ret;

  if (priv->holder == NULL)
    return GST_FLOW_OK;
  model = find_stream_model (self, meta);
  ret = gst_lm_model_holder_wait (priv->holder, model);
  if (ret == GST_FLOW_OK &&
      !gst_lm_vocab_check (&priv->vocab, GST_ELEMENT (self),
                           gst_lm_model_holder_get_tokenizer (priv->holder)))
    return GST_FLOW_NOT_NEGOTIATED;
  return ret;
}

/* Takes @buffer. */
static GstFlowReturn
handle_request (GstLmFilter *self, GstBuffer *buffer)
{
  GstLmFilterPrivate *priv = PRIVATE (self);
  GstLmRequestMeta *meta = gst_lm_buffer_ensure_request_meta (&buffer);
  g_autoptr (GstBuffer) request = buffer;
  g_autoptr (GError) error = NULL;
  GstFlowReturn ret;

  if (gst_lm_filter_is_flushing (self))
    return GST_FLOW_FLUSHING;
  ret = wait_for_model (self, meta);
  if (ret == GST_FLOW_OK)
    ret = prepare_stream (self, request);
  if (ret != GST_FLOW_OK)
    return ret;
  if (gst_lm_buffer_has_ended (request))
    return pass_ended (self, request);
  if (priv->framer != NULL && !gst_lm_buffer_check_utf8 (request, &error))
    return gst_lm_filter_fail (self, g_steal_pointer (&request), error);
  return GST_LM_FILTER_GET_CLASS (self)->process (self,
                                                  g_steal_pointer (&request));
}

static GstFlowReturn
handle_framed (GstLmFilter *self)
{
  GstLmFilterPrivate *priv = PRIVATE (self);
  GstFlowReturn ret = GST_FLOW_OK;
  GstBuffer *request;

  while (ret == GST_FLOW_OK &&
         (request = gst_lm_text_framer_pull (priv->framer)) != NULL)
    ret = handle_request (self, request);
  return ret;
}

static GstFlowReturn
gst_lm_filter_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstLmFilter *self = GST_LM_FILTER (parent);
  GstLmFilterPrivate *priv = PRIVATE (self);
  g_autoptr (GError) error = NULL;

  if (priv->framer == NULL)
    return handle_request (self, buffer);
  if (!gst_lm_text_framer_push (priv->framer, buffer,
                                gst_lm_filter_get_framing (self), &error))
    {
      gst_lm_element_post_error (GST_ELEMENT (self), error);
      return GST_FLOW_ERROR;
    }
  return handle_framed (self);
}

/* Whether EOS may go on. */
static gboolean
drain (GstLmFilter *self)
{
  GstLmFilterPrivate *priv = PRIVATE (self);
  GstLmFilterClass *klass = GST_LM_FILTER_GET_CLASS (self);
  GstFlowReturn ret = GST_FLOW_OK;

  if (priv->framer != NULL)
    {
      gst_lm_text_framer_drain (priv->framer);
      ret = handle_framed (self);
    }
  if (ret == GST_FLOW_OK && klass->drain != NULL)
    ret = klass->drain (self);
  return ret != GST_FLOW_FLUSHING;
}

static void
reset (GstLmFilter *self, gboolean hard)
{
  GstLmFilterPrivate *priv = PRIVATE (self);
  GstLmFilterClass *klass = GST_LM_FILTER_GET_CLASS (self);

  gst_lm_filter_output_forget_segment (&priv->output);
  if (priv->framer != NULL)
    gst_lm_text_framer_reset (priv->framer);
  if (hard)
    {
      gst_lm_vocab_check_clear (&priv->vocab);
      gst_lm_filter_output_clear (&priv->output);
    }
  if (klass->reset != NULL)
    klass->reset (self, hard);
}

static void
set_flushing (GstLmFilter *self, gboolean flushing)
{
  GstLmFilterPrivate *priv = PRIVATE (self);
  GstLmFilterClass *klass = GST_LM_FILTER_GET_CLASS (self);

  g_atomic_int_set (&priv->flushing, flushing);
  if (priv->holder != NULL)
    gst_lm_model_holder_set_flushing (priv->holder, flushing);
  if (flushing && klass->unlock != NULL)
    klass->unlock (self);
}

/* Takes @event. Upstream hears of a vocabulary that is not ours by a message
 * and a refusal. */
static gboolean
handle_caps (GstLmFilter *self, GstEvent *event)
{
  GstLmFilterPrivate *priv = PRIVATE (self);
  g_autoptr (GstEvent) owned = event;
  g_autoptr (RunnelTokenizer) tokenizer = NULL;
  GstCaps *caps;

  gst_event_parse_caps (event, &caps);
  GST_DEBUG_OBJECT (self, "input is %" GST_PTR_FORMAT, caps);
  if (priv->holder == NULL)
    return TRUE;
  gst_lm_vocab_check_set (&priv->vocab, gst_lm_caps_get_vocab (caps));
  tokenizer = gst_lm_model_holder_dup_own_tokenizer (priv->holder);
  /* Else it is compared when it is loaded. */
  return tokenizer == NULL ||
         gst_lm_vocab_check (&priv->vocab, GST_ELEMENT (self), tokenizer);
}

static gboolean
sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstLmFilter *self = GST_LM_FILTER (parent);
  GstLmFilterPrivate *priv = PRIVATE (self);

  switch (GST_EVENT_TYPE (event))
    {
    case GST_EVENT_FLUSH_START:
      set_flushing (self, TRUE);
      break;
    case GST_EVENT_FLUSH_STOP:
      reset (self, FALSE);
      set_flushing (self, FALSE);
      break;
    case GST_EVENT_CAPS:
      return handle_caps (self, event);
    case GST_EVENT_SEGMENT:
      gst_lm_filter_output_hold_segment (&priv->output, event);
      return TRUE;
    case GST_EVENT_GAP:
      if (prepare_stream (self, NULL) != GST_FLOW_OK)
        {
          gst_event_unref (event);
          return FALSE;
        }
      break;
    case GST_EVENT_EOS:
      if (!drain (self))
        {
          gst_event_unref (event);
          return FALSE;
        }
      break;
    case GST_EVENT_STREAM_START:
      break;
    default:
      if (gst_lm_filter_output_hold_event (&priv->output, event))
        return TRUE;
      break;
    }
  return gst_pad_event_default (pad, parent, event);
}

static gboolean
src_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstLmFilter *self = GST_LM_FILTER (parent);

  return GST_LM_FILTER_GET_CLASS (self)->src_event (self, event);
}

static GstStateChangeReturn
gst_lm_filter_change_state (GstElement *element, GstStateChange transition)
{
  GstLmFilter *self = GST_LM_FILTER (element);
  GstLmFilterPrivate *priv = PRIVATE (self);
  GstStateChangeReturn ret;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED)
    set_flushing (self, FALSE);
  else if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    set_flushing (self, TRUE);
  if (priv->holder != NULL &&
      !gst_lm_model_holder_prepare_change (priv->holder, transition))
    return GST_STATE_CHANGE_FAILURE;

  ret = GST_ELEMENT_CLASS (gst_lm_filter_parent_class)
            ->change_state (element, transition);
  if (ret == GST_STATE_CHANGE_FAILURE)
    return ret;

  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    reset (self, TRUE);
  if (priv->holder != NULL)
    gst_lm_model_holder_finish_change (priv->holder, transition);
  return ret;
}

static GstCaps *
gst_lm_filter_get_src_caps (GstLmFilter *self, GstBuffer *request)
{
  return gst_caps_fixate (
      gst_pad_get_pad_template_caps (PRIVATE (self)->srcpad));
}

static gboolean
gst_lm_filter_src_event (GstLmFilter *self, GstEvent *event)
{
  return gst_pad_event_default (PRIVATE (self)->srcpad, GST_OBJECT (self),
                                event);
}

static GstPad *
add_pad (GstLmFilter *self, const gchar *name)
{
  GstElementClass *klass = GST_ELEMENT_GET_CLASS (self);
  GstPad *pad = gst_pad_new_from_template (
      gst_element_class_get_pad_template (klass, name), name);

  gst_pad_set_query_function (pad, gst_lm_filter_query);
  gst_element_add_pad (GST_ELEMENT (self), pad);
  return pad;
}

static void
gst_lm_filter_constructed (GObject *object)
{
  GstLmFilter *self = GST_LM_FILTER (object);
  GstLmFilterPrivate *priv = PRIVATE (self);
  GstLmFilterClass *klass = GST_LM_FILTER_GET_CLASS (self);

  G_OBJECT_CLASS (gst_lm_filter_parent_class)->constructed (object);
  if (klass->model_parts != 0)
    priv->holder = gst_lm_model_holder_new (GST_ELEMENT (self),
                                            klass->model_parts);
  if (klass->frames_text)
    priv->framer = gst_lm_text_framer_new ();
  priv->sinkpad = add_pad (self, "sink");
  priv->srcpad = add_pad (self, "src");
  gst_lm_filter_output_init (&priv->output, priv->srcpad);
  gst_pad_set_chain_function (priv->sinkpad, gst_lm_filter_chain);
  gst_pad_set_event_function (priv->sinkpad, sink_event);
  gst_pad_set_event_function (priv->srcpad, src_event);
  gst_pad_use_fixed_caps (priv->srcpad);
}

static void
gst_lm_filter_set_property (GObject *object, guint prop_id,
                            const GValue *value, GParamSpec *pspec)
{
  GstLmFilter *self = GST_LM_FILTER (object);
  GstLmFilterPrivate *priv = PRIVATE (self);

  if (prop_id == PROP_FRAMING)
    {
      GST_OBJECT_LOCK (self);
      priv->framing = g_value_get_enum (value);
      GST_OBJECT_UNLOCK (self);
    }
  else if (prop_id == PROP_ERROR_POLICY)
    {
      GST_OBJECT_LOCK (self);
      priv->error_policy = g_value_get_enum (value);
      GST_OBJECT_UNLOCK (self);
    }
  else if (priv->holder == NULL ||
           !gst_lm_model_holder_set_property (priv->holder, prop_id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
}

static void
gst_lm_filter_get_property (GObject *object, guint prop_id, GValue *value,
                            GParamSpec *pspec)
{
  GstLmFilter *self = GST_LM_FILTER (object);
  GstLmFilterPrivate *priv = PRIVATE (self);

  if (prop_id == PROP_FRAMING)
    g_value_set_enum (value, gst_lm_filter_get_framing (self));
  else if (prop_id == PROP_ERROR_POLICY)
    g_value_set_enum (value, gst_lm_filter_get_error_policy (self));
  else if (priv->holder == NULL ||
           !gst_lm_model_holder_get_property (priv->holder, prop_id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
}

static void
gst_lm_filter_finalize (GObject *object)
{
  GstLmFilterPrivate *priv = PRIVATE (GST_LM_FILTER (object));

  g_clear_object (&priv->holder);
  g_clear_object (&priv->framer);
  gst_lm_filter_output_clear (&priv->output);
  gst_lm_vocab_check_clear (&priv->vocab);
  G_OBJECT_CLASS (gst_lm_filter_parent_class)->finalize (object);
}

static void
gst_lm_filter_class_init (GstLmFilterClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructed = gst_lm_filter_constructed;
  object_class->set_property = gst_lm_filter_set_property;
  object_class->get_property = gst_lm_filter_get_property;
  object_class->finalize = gst_lm_filter_finalize;
  GST_ELEMENT_CLASS (klass)->change_state = gst_lm_filter_change_state;
  klass->get_src_caps = gst_lm_filter_get_src_caps;
  klass->src_event = gst_lm_filter_src_event;

  /**
   * GstLmFilter:error-policy:
   *
   * What becomes of a request that fails: an error, or a warning and an empty
   * reply.
   *
   * Since: 0.1
   */
  g_object_class_install_property (
      object_class, PROP_ERROR_POLICY,
      g_param_spec_enum ("error-policy", "Error policy",
                         "What becomes of a request that fails",
                         GST_TYPE_LM_ERROR_POLICY, DEFAULT_ERROR_POLICY,
                         G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                             GST_PARAM_MUTABLE_PLAYING));
  gst_type_mark_as_plugin_api (GST_TYPE_LM_ERROR_POLICY, 0);
  gst_type_mark_as_plugin_api (GST_TYPE_LM_FILTER, 0);
  GST_DEBUG_CATEGORY_INIT (filter_debug, "lmfilter", 0,
                           "request by request elements");
}

static void
gst_lm_filter_init (GstLmFilter *self)
{
  GstLmFilterPrivate *priv = PRIVATE (self);

  priv->framing = DEFAULT_FRAMING;
  priv->error_policy = DEFAULT_ERROR_POLICY;
}

/* GObject does not inherit these two, but wants them for every class that
 * installs properties. */
static void
inherit_accessors (GObjectClass *klass)
{
  if (klass->set_property == NULL)
    klass->set_property = gst_lm_filter_set_property;
  if (klass->get_property == NULL)
    klass->get_property = gst_lm_filter_get_property;
}

/**
 * gst_lm_filter_class_use_model: (skip)
 * @klass: a derived class, in its class_init
 * @parts: what it needs of a model besides the header
 *
 * Gives the class the properties of a model, and its elements one, loaded
 * before they process anything.
 *
 * Since: 0.1
 */
void
gst_lm_filter_class_use_model (GstLmFilterClass *klass, GstLmModelParts parts)
{
  klass->model_parts = parts;
  inherit_accessors (G_OBJECT_CLASS (klass));
  gst_lm_model_holder_install_properties (G_OBJECT_CLASS (klass), parts);
}

/**
 * gst_lm_filter_class_frame_text: (skip)
 * @klass: a derived class, in its class_init
 *
 * Gives the class the property `framing`: its elements take text, gathered
 * into whole requests of valid UTF-8.
 *
 * Since: 0.1
 */
void
gst_lm_filter_class_frame_text (GstLmFilterClass *klass)
{
  klass->frames_text = TRUE;
  inherit_accessors (G_OBJECT_CLASS (klass));
  gst_type_mark_as_plugin_api (GST_TYPE_LM_FRAMING, 0);
  g_object_class_install_property (
      G_OBJECT_CLASS (klass), PROP_FRAMING,
      g_param_spec_enum ("framing", "Framing",
                         "Where a request begins and ends in the input",
                         GST_TYPE_LM_FRAMING, DEFAULT_FRAMING,
                         G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                             GST_PARAM_MUTABLE_READY));
}

/**
 * gst_lm_filter_push:
 * @self: the filter
 * @buffer: (transfer full): a buffer
 *
 * Pushes a buffer downstream.
 *
 * Returns: what the push gave: anything but %GST_FLOW_OK ends the work
 *
 * Since: 0.1
 */
GstFlowReturn
gst_lm_filter_push (GstLmFilter *self, GstBuffer *buffer)
{
  return gst_pad_push (PRIVATE (self)->srcpad, buffer);
}

/**
 * gst_lm_filter_fail:
 * @self: the filter
 * @request: (transfer full): the request, or a buffer of it
 * @error: why it fails
 *
 * Ends a request that fails, by the property `error-policy`: see
 * gst_lm_request_fail().
 *
 * Returns: what process returns then
 *
 * Since: 0.1
 */
GstFlowReturn
gst_lm_filter_fail (GstLmFilter *self, GstBuffer *request, const GError *error)
{
  return gst_lm_request_fail (GST_ELEMENT (self), PRIVATE (self)->sinkpad,
                              PRIVATE (self)->srcpad, request,
                              gst_lm_filter_get_error_policy (self), error);
}

/**
 * gst_lm_filter_send_upstream:
 * @self: the filter
 * @event: (transfer full): an upstream event
 *
 * Sends an event upstream, such as %GST_LM_EVENT_REPLY.
 *
 * Returns: whether somebody took it
 *
 * Since: 0.1
 */
gboolean
gst_lm_filter_send_upstream (GstLmFilter *self, GstEvent *event)
{
  return gst_pad_push_event (PRIVATE (self)->sinkpad, event);
}

/**
 * gst_lm_filter_is_flushing:
 * @self: the filter
 *
 * Whether work must stop and be thrown away. Looked at between steps, from
 * any thread.
 *
 * Returns: %TRUE while the element flushes or stops
 *
 * Since: 0.1
 */
gboolean
gst_lm_filter_is_flushing (GstLmFilter *self)
{
  return g_atomic_int_get (&PRIVATE (self)->flushing);
}

/**
 * gst_lm_filter_get_sink_pad:
 * @self: the filter
 *
 * Where requests come in.
 *
 * Returns: (transfer none): the pad
 *
 * Since: 0.1
 */
GstPad *
gst_lm_filter_get_sink_pad (GstLmFilter *self)
{
  return PRIVATE (self)->sinkpad;
}

/**
 * gst_lm_filter_get_src_pad:
 * @self: the filter
 *
 * Where results go out.
 *
 * Returns: (transfer none): the pad
 *
 * Since: 0.1
 */
GstPad *
gst_lm_filter_get_src_pad (GstLmFilter *self)
{
  return PRIVATE (self)->srcpad;
}

/**
 * gst_lm_filter_get_model_holder:
 * @self: the filter
 *
 * The filter's model.
 *
 * Returns: (transfer none) (nullable): the holder, or %NULL when the class
 *   uses no model
 *
 * Since: 0.1
 */
GstLmModelHolder *
gst_lm_filter_get_model_holder (GstLmFilter *self)
{
  return PRIVATE (self)->holder;
}

/**
 * gst_lm_filter_get_framing:
 * @self: the filter
 *
 * Where requests begin and end.
 *
 * Returns: the property `framing`
 *
 * Since: 0.1
 */
GstLmFraming
gst_lm_filter_get_framing (GstLmFilter *self)
{
  GstLmFraming framing;

  GST_OBJECT_LOCK (self);
  framing = PRIVATE (self)->framing;
  GST_OBJECT_UNLOCK (self);
  return framing;
}

/**
 * gst_lm_filter_get_error_policy:
 * @self: the filter
 *
 * What becomes of requests that fail.
 *
 * Returns: the property `error-policy`
 *
 * Since: 0.1
 */
GstLmErrorPolicy
gst_lm_filter_get_error_policy (GstLmFilter *self)
{
  GstLmErrorPolicy policy;

  GST_OBJECT_LOCK (self);
  policy = PRIVATE (self)->error_policy;
  GST_OBJECT_UNLOCK (self);
  return policy;
}
