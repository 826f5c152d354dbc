/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/**
 * SECTION:element-lmgate
 * @title: lmgate
 * @see_also: lmdecide, lmdecode
 *
 * Lets a reply be made, or answers with a fixed text, by a decision: a state
 * comes to the pad `sink`, the decision about it, from lmdecide, to the pad
 * `decision`; they are paired by their request. When the options of `pass`
 * are together at least as probable as `threshold`, the state leaves by
 * `src`, for lmdecode; else `text` leaves by the pad `text`, as the whole
 * reply. The branch that is not used gets a gap. A funnel joins the two.
 *
 * The two inputs come from a tee, each behind a queue.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q lmprompt text="Where is my card?" ! lmchat \
 *     ! lmtokenize model=$MODEL ! lmprefill ! tee name=t \
 *     t. ! queue ! gate.sink \
 *     t. ! queue ! lmdecide question-type=yesno \
 *       instructions="Is this about a bank?" ! gate.decision \
 *     lmgate name=gate text="I only know banks." \
 *     gate.src ! lmdecode max-tokens=20 ! lmdetokenize ! funnel name=f \
 *     gate.text ! f. \
 *     f. ! fdsink
 * ]|
 */

#include <string.h>

#include <gstrunnel.h>
#include "elements.h"

GST_DEBUG_CATEGORY_STATIC (lm_gate_debug);
#define GST_CAT_DEFAULT lm_gate_debug

/* Decisions that may wait for their states. */
#define MAX_WAITING 64
#define DEFAULT_THRESHOLD 0.5

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_STATE_ANYWHERE));
static GstStaticPadTemplate decision_template =
    GST_STATIC_PAD_TEMPLATE ("decision", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_LM_CAPS_JSON));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_STATE_ANYWHERE));
static GstStaticPadTemplate text_template = GST_STATIC_PAD_TEMPLATE ("text",
    GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TEXT));

enum {
  PROP_PASS = 1,
  PROP_THRESHOLD,
  PROP_TEXT,
  PROP_QUESTION,
  PROP_ERROR_POLICY,
};

struct _GstLmGate {
  GstElement parent;

  GstPad *sink, *decision, *src, *text_pad;

  /* object lock */
  char **pass;
  double threshold;
  char *text;
  char *question;
  GstLmErrorPolicy error_policy;

  GMutex lock;
  GCond cond;                /* what is under the lock */
  GQueue decisions;          /* GstBuffer, that wait for their states */
  gboolean flushing;
  gboolean decisions_ended;  /* EOS */

  /* streaming thread of the states */
  gboolean text_begun;       /* its stream-start, caps and segment are sent */
};

G_DECLARE_FINAL_TYPE (GstLmGate, gst_lm_gate, GST, LM_GATE, GstElement)
G_DEFINE_FINAL_TYPE_WITH_CODE (GstLmGate, gst_lm_gate, GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (lm_gate_debug, "lmgate", 0,
        "Runnel gate of replies"))
GST_ELEMENT_REGISTER_DEFINE (lmgate, "lmgate", GST_RANK_NONE,
    gst_lm_gate_get_type ())

/* ---- Pairing ------------------------------------------------------------- */

static guint64
get_id (GstBuffer *buffer)
{
  const GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (buffer);

  return meta ? meta->id : 0;
}

static GstBuffer *
take_decision_unlocked (GstLmGate *self, guint64 id)
{
  for (GList *l = self->decisions.head; l; l = l->next) {
    GstBuffer *buffer = l->data;

    if (get_id (buffer) == id) {
      g_queue_delete_link (&self->decisions, l);
      g_cond_broadcast (&self->cond);
      return buffer;
    }
  }
  return NULL;
}

/* Waits for the decision about a request; NULL when flushing, or when none
 * will come. */
static GstBuffer *
wait_for_decision (GstLmGate *self, guint64 id, GstFlowReturn *ret)
{
  GstBuffer *decision;

  g_mutex_lock (&self->lock);
  while (!(decision = take_decision_unlocked (self, id)) && !self->flushing
      && !self->decisions_ended)
    g_cond_wait (&self->cond, &self->lock);
  *ret = self->flushing ? GST_FLOW_FLUSHING : GST_FLOW_OK;
  g_mutex_unlock (&self->lock);
  return decision;
}

static GstFlowReturn
chain_decision (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstLmGate *self = GST_LM_GATE (parent);
  gboolean flushing;

  g_mutex_lock (&self->lock);
  while (self->decisions.length >= MAX_WAITING && !self->flushing)
    g_cond_wait (&self->cond, &self->lock);
  flushing = self->flushing;
  if (!flushing) {
    g_queue_push_tail (&self->decisions, buffer);
    g_cond_broadcast (&self->cond);
  }
  g_mutex_unlock (&self->lock);
  if (!flushing)
    return GST_FLOW_OK;
  gst_buffer_unref (buffer);
  return GST_FLOW_FLUSHING;
}

/* ---- The branches -------------------------------------------------------- */

/* The text branch has a stream of its own, which begins when it is needed. */
static void
begin_text (GstLmGate *self)
{
  g_autofree char *states = NULL;
  g_autofree char *stream_id = NULL;
  g_autoptr (GstCaps) caps = NULL;
  GstSegment segment;

  if (self->text_begun)
    return;
  self->text_begun = TRUE;
  states = gst_pad_get_stream_id (self->sink);
  stream_id = g_strconcat (states ? states : GST_OBJECT_NAME (self), "/text",
      NULL);
  gst_pad_push_event (self->text_pad, gst_event_new_stream_start (stream_id));
  caps = gst_lm_caps_new_text ();
  gst_pad_push_event (self->text_pad, gst_event_new_caps (caps));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (self->text_pad, gst_event_new_segment (&segment));
}

/* Tells a branch that a request goes by without it. */
static void
push_gap (GstPad *pad, GstBuffer *request)
{
  GstClockTime time = GST_BUFFER_PTS (request);

  gst_pad_push_event (pad,
      gst_event_new_gap (GST_CLOCK_TIME_IS_VALID (time) ? time : 0,
          GST_CLOCK_TIME_NONE));
}

static GstFlowReturn
pass_state (GstLmGate *self, GstBuffer *state)
{
  begin_text (self);
  push_gap (self->text_pad, state);
  return gst_pad_push (self->src, state);
}

static GstFlowReturn
answer (GstLmGate *self, GstBuffer *state)
{
  g_autoptr (GstBuffer) request = state;
  g_autofree char *text = NULL;
  GstBuffer *buffer;
  GstLmRequestMeta *meta;

  GST_OBJECT_LOCK (self);
  text = g_strdup (self->text ? self->text : "");
  GST_OBJECT_UNLOCK (self);
  buffer = *text ? gst_buffer_new_memdup (text, strlen (text))
      : gst_buffer_new ();
  meta = gst_lm_buffer_copy_request_meta (buffer, request);
  gst_lm_request_meta_set_model (meta, NULL);
  meta->is_reply = TRUE;
  meta->finish_reason = RUNNEL_FINISH_REASON_STOP;
  gst_buffer_copy_into (buffer, request, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_MARKER);
  begin_text (self);
  push_gap (self->src, request);
  gst_pad_push_event (self->sink,
      gst_lm_event_new_reply (meta->id, text, meta->finish_reason));
  return gst_pad_push (self->text_pad, buffer);
}

/* ---- Deciding ------------------------------------------------------------ */

static GstFlowReturn
fail (GstLmGate *self, GstBuffer *state, const GError *error)
{
  GstLmErrorPolicy policy;

  GST_OBJECT_LOCK (self);
  policy = self->error_policy;
  GST_OBJECT_UNLOCK (self);
  if (policy == GST_LM_ERROR_POLICY_REPORT) {
    begin_text (self);
    push_gap (self->text_pad, state);
  }
  return gst_lm_request_fail (GST_ELEMENT (self), self->sink, self->src, state,
      policy, error);
}

static gboolean
read_decision (GstLmGate *self, GstBuffer *decision, gboolean *ret_passes,
               GError **error)
{
  static const char *const yes[] = { "yes", NULL };
  g_auto (GStrv) pass = NULL;
  g_autofree char *question = NULL;
  GstMapInfo map;
  double threshold, sum;
  gboolean ok;

  GST_OBJECT_LOCK (self);
  pass = g_strdupv (self->pass);
  question = g_strdup (self->question);
  threshold = self->threshold;
  GST_OBJECT_UNLOCK (self);
  if (!gst_buffer_map (decision, &map, GST_MAP_READ)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "a decision cannot be read");
    return FALSE;
  }
  ok = runnel_decisions_sum_json (map.data ? (const char *) map.data : "",
      map.size, question, pass ? (const char *const *) pass : yes, &sum,
      error);
  gst_buffer_unmap (decision, &map);
  if (ok)
    *ret_passes = sum >= threshold;
  return ok;
}

/* A request whose decision ended early ends so, too. */
static GstFlowReturn
end_like (GstLmGate *self, GstBuffer *state, const GstLmRequestMeta *decision)
{
  g_autoptr (GstBuffer) request = state;
  GstBuffer *ended = gst_lm_buffer_new_ended (request);
  GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (ended);

  meta->finish_reason = decision->finish_reason;
  if (decision->error)
    gst_lm_request_meta_set_error (meta, decision->error);
  gst_pad_push_event (self->sink,
      gst_lm_event_new_reply (meta->id, "", meta->finish_reason));
  return pass_state (self, ended);
}

/* @state is taken. */
static GstFlowReturn
decide (GstLmGate *self, GstBuffer *state, GstBuffer *decision)
{
  const GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (decision);
  g_autoptr (GError) error = NULL;
  gboolean passes;

  if (gst_lm_buffer_has_ended (state))
    return pass_state (self, state);
  if (meta->finish_reason == RUNNEL_FINISH_REASON_ERROR
      || meta->finish_reason == RUNNEL_FINISH_REASON_CANCELLED)
    return end_like (self, state, meta);
  if (!read_decision (self, decision, &passes, &error))
    return fail (self, state, error);
  GST_LOG_OBJECT (self, "request %" G_GUINT64_FORMAT " %s", meta->id,
      passes ? "passes" : "is answered");
  return passes ? pass_state (self, state) : answer (self, state);
}

static GstFlowReturn
chain_state (GstPad *pad, GstObject *parent, GstBuffer *state)
{
  GstLmGate *self = GST_LM_GATE (parent);
  g_autoptr (GstBuffer) decision = NULL;
  g_autoptr (GError) error = NULL;
  GstFlowReturn ret;

  gst_lm_buffer_ensure_request_meta (&state);
  decision = wait_for_decision (self, get_id (state), &ret);
  if (decision)
    return decide (self, state, decision);
  if (ret == GST_FLOW_OK) {
    g_set_error (&error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "no decision came about request %" G_GUINT64_FORMAT ": the pad "
        "decision must be fed from the same tee", get_id (state));
    return fail (self, state, error);
  }
  gst_buffer_unref (state);
  return ret;
}

/* ---- Events -------------------------------------------------------------- */

static void
set_flushing (GstLmGate *self, gboolean flushing)
{
  g_mutex_lock (&self->lock);
  self->flushing = flushing;
  if (flushing)
    g_queue_clear_full (&self->decisions, (GDestroyNotify) gst_buffer_unref);
  else
    self->decisions_ended = FALSE;
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);
}

/* States go on as they came; what concerns both branches goes to both. */
static gboolean
sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstLmGate *self = GST_LM_GATE (parent);

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_FLUSH_START:
      set_flushing (self, TRUE);
      gst_pad_push_event (self->text_pad, gst_event_ref (event));
      break;
    case GST_EVENT_FLUSH_STOP:
      set_flushing (self, FALSE);
      gst_pad_push_event (self->text_pad, gst_event_ref (event));
      self->text_begun = FALSE;
      break;
    case GST_EVENT_GAP:
    case GST_EVENT_EOS:
      begin_text (self);
      gst_pad_push_event (self->text_pad, gst_event_ref (event));
      break;
    default:
      break;
  }
  return gst_pad_push_event (self->src, event);
}

static gboolean
decision_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstLmGate *self = GST_LM_GATE (parent);

  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START)
    set_flushing (self, TRUE);
  else if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP)
    set_flushing (self, FALSE);
  else if (GST_EVENT_TYPE (event) == GST_EVENT_EOS) {
    g_mutex_lock (&self->lock);
    self->decisions_ended = TRUE;
    g_cond_broadcast (&self->cond);
    g_mutex_unlock (&self->lock);
  }
  gst_event_unref (event);
  return TRUE;
}

static GstStateChangeReturn
gst_lm_gate_change_state (GstElement *element, GstStateChange transition)
{
  GstLmGate *self = GST_LM_GATE (element);
  GstStateChangeReturn ret;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED)
    set_flushing (self, FALSE);
  else if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    set_flushing (self, TRUE);
  ret = GST_ELEMENT_CLASS (gst_lm_gate_parent_class)->change_state (element,
      transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    self->text_begun = FALSE;
  return ret;
}

/* ---- Properties ---------------------------------------------------------- */

static void
set_pass (GstLmGate *self, const GValue *array)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  for (guint i = 0; i < gst_value_array_get_size (array); i++) {
    const char *option =
        g_value_get_string (gst_value_array_get_value (array, i));

    g_strv_builder_add (builder, option ? option : "");
  }
  g_strfreev (self->pass);
  self->pass = g_strv_builder_end (builder);
}

static void
get_pass (GstLmGate *self, GValue *array)
{
  for (guint i = 0; self->pass && self->pass[i]; i++) {
    GValue option = G_VALUE_INIT;

    g_value_init (&option, G_TYPE_STRING);
    g_value_set_string (&option, self->pass[i]);
    gst_value_array_append_and_take_value (array, &option);
  }
}

static void
gst_lm_gate_set_property (GObject *object, guint id, const GValue *value,
                          GParamSpec *pspec)
{
  GstLmGate *self = GST_LM_GATE (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_PASS:
      set_pass (self, value);
      break;
    case PROP_THRESHOLD:
      self->threshold = g_value_get_double (value);
      break;
    case PROP_TEXT:
      g_free (self->text);
      self->text = g_value_dup_string (value);
      break;
    case PROP_QUESTION:
      g_free (self->question);
      self->question = g_value_dup_string (value);
      break;
    case PROP_ERROR_POLICY:
      self->error_policy = g_value_get_enum (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_gate_get_property (GObject *object, guint id, GValue *value,
                          GParamSpec *pspec)
{
  GstLmGate *self = GST_LM_GATE (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_PASS:
      get_pass (self, value);
      break;
    case PROP_THRESHOLD:
      g_value_set_double (value, self->threshold);
      break;
    case PROP_TEXT:
      g_value_set_string (value, self->text);
      break;
    case PROP_QUESTION:
      g_value_set_string (value, self->question);
      break;
    case PROP_ERROR_POLICY:
      g_value_set_enum (value, self->error_policy);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_gate_finalize (GObject *object)
{
  GstLmGate *self = GST_LM_GATE (object);

  g_strfreev (self->pass);
  g_free (self->text);
  g_free (self->question);
  g_queue_clear_full (&self->decisions, (GDestroyNotify) gst_buffer_unref);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->cond);
  G_OBJECT_CLASS (gst_lm_gate_parent_class)->finalize (object);
}

static void
install_properties (GObjectClass *klass)
{
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS
      | GST_PARAM_MUTABLE_PLAYING;

  g_object_class_install_property (klass, PROP_PASS,
      gst_param_spec_array ("pass", "Pass",
          "The options with which a reply is made (default: yes)",
          g_param_spec_string ("option", "Option", "An option", NULL,
              G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS), flags));
  g_object_class_install_property (klass, PROP_THRESHOLD,
      g_param_spec_double ("threshold", "Threshold",
          "How probable they must be together", 0, 1, DEFAULT_THRESHOLD,
          flags));
  g_object_class_install_property (klass, PROP_TEXT,
      g_param_spec_string ("text", "Text", "The reply to all else", NULL,
          flags));
  g_object_class_install_property (klass, PROP_QUESTION,
      g_param_spec_string ("question", "Question",
          "The id of the question that decides (default: the first)", NULL,
          flags));
  g_object_class_install_property (klass, PROP_ERROR_POLICY,
      g_param_spec_enum ("error-policy", "Error policy",
          "What becomes of a request that fails here",
          GST_TYPE_LM_ERROR_POLICY, GST_LM_ERROR_POLICY_FAIL, flags));
}

static void
gst_lm_gate_class_init (GstLmGateClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->set_property = gst_lm_gate_set_property;
  object_class->get_property = gst_lm_gate_get_property;
  object_class->finalize = gst_lm_gate_finalize;
  element_class->change_state = gst_lm_gate_change_state;
  install_properties (object_class);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class,
      &decision_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_add_static_pad_template (element_class, &text_template);
  gst_element_class_set_static_metadata (element_class,
      "Language model gate", "Filter/Text",
      "Lets a reply be made, or answers with a fixed text, by a decision",
      "The Runnel developers");
}

static GstPad *
add_pad (GstLmGate *self, GstStaticPadTemplate *template)
{
  GstPad *pad = gst_pad_new_from_static_template (template,
      template->name_template);

  gst_element_add_pad (GST_ELEMENT (self), pad);
  return pad;
}

static void
gst_lm_gate_init (GstLmGate *self)
{
  self->threshold = DEFAULT_THRESHOLD;
  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
  g_queue_init (&self->decisions);
  self->sink = add_pad (self, &sink_template);
  self->decision = add_pad (self, &decision_template);
  self->src = add_pad (self, &src_template);
  self->text_pad = add_pad (self, &text_template);
  gst_pad_set_chain_function (self->sink, chain_state);
  gst_pad_set_event_function (self->sink, sink_event);
  gst_pad_set_chain_function (self->decision, chain_decision);
  gst_pad_set_event_function (self->decision, decision_event);
  gst_pad_use_fixed_caps (self->text_pad);
}
