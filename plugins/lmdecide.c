/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/**
 * SECTION:element-lmdecide
 * @title: lmdecide
 * @see_also: lmprefill, lmgate
 *
 * Answers typed questions about a state: a state in, a line of JSON out, with
 * a probability for each option. The state does not change; behind a tee a
 * reply is made from the same one.
 *
 * The questions come from the request (its override `questions`), or else
 * from the first of these properties that is set: `questions` (JSON),
 * `location` (a file of JSON), `instructions` with `options`. JSON questions
 * and answers are described in docs/decisions.md.
 *
 * Where lmchat wrote the beginning of a reply, the question takes its place,
 * as a turn of the user.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q lmprompt text="My card has not come yet." ! lmchat \
 *     ! lmtokenize model=$MODEL ! lmprefill \
 *     ! lmdecide instructions="What is it about?" \
 *       options="<delivery,payment,fraud>" ! fdsink
 * ]|
 */

#include <string.h>

#include <gstrunnel.h>
#include "elements.h"

#include "lmdecideparams.h"
#include "lmengine.h"
#include "lmongoing.h"

GST_DEBUG_CATEGORY_STATIC (lm_decide_debug);
#define GST_CAT_DEFAULT lm_decide_debug

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_STATE_ANYWHERE));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_JSON));

enum {
  PROP_ENGINE = GST_LM_DECIDE_N_PARAMS,
  N_PROPS = PROP_ENGINE + GST_LM_ENGINE_N_PROPERTIES,
                                /* the others are of the base class */
};

struct _GstLmDecide {
  GstLmFilter parent;

  /* object lock */
  GstLmDecideParams *params;
  GstLmEngineChoice choice;
  GstLmOngoing ongoing;

  /* streaming thread */
  RunnelDecider *decider;       /* of the last engine, or NULL */
};

G_DECLARE_FINAL_TYPE (GstLmDecide, gst_lm_decide, GST, LM_DECIDE, GstLmFilter)
G_DEFINE_FINAL_TYPE_WITH_CODE (GstLmDecide, gst_lm_decide, GST_TYPE_LM_FILTER,
    G_IMPLEMENT_INTERFACE (GST_TYPE_PRESET, NULL)
    GST_DEBUG_CATEGORY_INIT (lm_decide_debug, "lmdecide", 0,
        "Runnel state to decisions"))
GST_ELEMENT_REGISTER_DEFINE (lmdecide, "lmdecide", GST_RANK_NONE,
    gst_lm_decide_get_type ())

static gboolean
ensure_decider (GstLmDecide *self, RunnelSequence *state,
                const GstLmDecideParams *params, GError **error)
{
  RunnelEngine *engine = runnel_sequence_get_engine (state);

  if (self->decider && runnel_decider_get_engine (self->decider) == engine)
    return TRUE;
  g_clear_object (&self->decider);
  self->decider = runnel_decider_new (engine,
      gst_lm_decide_params_get_head (params), error);
  return self->decider != NULL;
}

/* The parameters of one request. */
static GstLmDecideParams *
get_params (GstLmDecide *self, const GstLmRequestMeta *meta, GError **error)
{
  GstLmDecideParams *params;

  GST_OBJECT_LOCK (self);
  params = gst_lm_decide_params_copy (self->params);
  GST_OBJECT_UNLOCK (self);
  if (gst_lm_decide_params_override (params, GST_ELEMENT (self), meta, error))
    return params;
  gst_lm_decide_params_free (params);
  return NULL;
}

static RunnelDecisions *
decide (GstLmDecide *self, GstBuffer *buffer, RunnelSequence *state,
        GCancellable *cancellable, GError **error)
{
  const GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (buffer);
  g_autoptr (GstLmDecideParams) params = get_params (self, meta, error);
  g_autoptr (GPtrArray) questions = NULL;
  g_autoptr (RunnelSequence) moved = NULL;
  GstLmEngineChoice choice;

  if (!params)
    return NULL;
  GST_OBJECT_LOCK (self);
  choice = self->choice;
  GST_OBJECT_UNLOCK (self);
  moved = gst_lm_engine_choice_move (&choice, g_object_ref (state), NULL,
      cancellable, error);
  if (!moved || !ensure_decider (self, moved, params, error))
    return NULL;
  questions = gst_lm_decide_params_get_questions (params, error);
  if (!questions)
    return NULL;
  gst_lm_decide_params_apply (params, self->decider);
  return runnel_decider_decide (self->decider, moved, meta->generation_prompt,
      questions, cancellable, error);
}

static GstFlowReturn
push_decisions (GstLmDecide *self, GstBuffer *request,
                const RunnelDecisions *decisions, guint n_prompt)
{
  char *json = runnel_decisions_to_json (decisions);
  GstBuffer *buffer = gst_buffer_new_wrapped (json, strlen (json));
  GstLmRequestMeta *meta = gst_lm_buffer_copy_request_meta (buffer, request);

  gst_buffer_copy_into (buffer, request, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_MARKER);
  gst_lm_request_meta_set_model (meta, NULL);
  meta->is_reply = TRUE;
  meta->finish_reason = RUNNEL_FINISH_REASON_STOP;
  meta->prompt_tokens = n_prompt;
  return gst_lm_filter_push (GST_LM_FILTER (self), buffer);
}

static GstFlowReturn
push_cancelled (GstLmDecide *self, GstBuffer *request)
{
  GstBuffer *ended = gst_lm_buffer_new_ended (request);
  GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (ended);

  gst_lm_request_meta_set_model (meta, NULL);
  meta->is_reply = TRUE;
  meta->finish_reason = RUNNEL_FINISH_REASON_CANCELLED;
  return gst_lm_filter_push (GST_LM_FILTER (self), ended);
}

static GstFlowReturn
answer (GstLmDecide *self, GstBuffer *buffer, GCancellable *cancellable)
{
  GstLmFilter *filter = GST_LM_FILTER (self);
  RunnelSequence *state = gst_lm_buffer_peek_state (buffer);
  g_autoptr (RunnelDecisions) decisions = NULL;
  g_autoptr (GError) error = NULL;

  if (!state) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("A buffer of %s holds no state.", GST_LM_CAPS_STATE), (NULL));
    return GST_FLOW_ERROR;
  }
  decisions = decide (self, buffer, state, cancellable, &error);
  if (gst_lm_filter_is_flushing (filter))
    return GST_FLOW_FLUSHING;
  if (g_cancellable_is_cancelled (cancellable))
    return push_cancelled (self, buffer);
  if (!decisions)
    return gst_lm_filter_fail (filter, gst_buffer_ref (buffer), error);
  return push_decisions (self, buffer, decisions,
      runnel_sequence_get_length (state));
}

static GstFlowReturn
gst_lm_decide_process (GstLmFilter *filter, GstBuffer *buffer)
{
  GstLmDecide *self = GST_LM_DECIDE (filter);
  g_autoptr (GstBuffer) request = buffer;
  guint64 id = gst_lm_buffer_get_request_meta (request)->id;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  GstFlowReturn ret;

  gst_lm_ongoing_begin (&self->ongoing, GST_ELEMENT (self), id, cancellable);

  /* After the cancellable is there, so that no flush falls in between. */
  if (gst_lm_filter_is_flushing (filter))
    ret = GST_FLOW_FLUSHING;
  else
    ret = answer (self, request, cancellable);
  gst_lm_ongoing_end (&self->ongoing, GST_ELEMENT (self));
  return ret;
}

static void
gst_lm_decide_unlock (GstLmFilter *filter)
{
  GstLmDecide *self = GST_LM_DECIDE (filter);

  gst_lm_ongoing_cancel (&self->ongoing, GST_ELEMENT (self), 0);
}

static gboolean
gst_lm_decide_src_event (GstLmFilter *filter, GstEvent *event)
{
  GstLmDecide *self = GST_LM_DECIDE (filter);
  guint64 id;

  if (gst_lm_event_parse_cancel (event, &id))
    gst_lm_ongoing_cancel (&self->ongoing, GST_ELEMENT (self), id);
  return GST_LM_FILTER_CLASS (gst_lm_decide_parent_class)->src_event (filter,
      event);
}

static void
gst_lm_decide_reset (GstLmFilter *filter, gboolean hard)
{
  GstLmDecide *self = GST_LM_DECIDE (filter);

  gst_lm_ongoing_forget (&self->ongoing, GST_ELEMENT (self));
  if (hard)
    g_clear_object (&self->decider);
}

/* Bad questions fail here and not at the first request. */
static gboolean
check_params (GstLmDecide *self)
{
  g_autoptr (GError) error = NULL;
  gboolean ok;

  GST_OBJECT_LOCK (self);
  ok = gst_lm_decide_params_load (self->params, &error);
  GST_OBJECT_UNLOCK (self);
  if (!ok)
    gst_lm_element_post_error (GST_ELEMENT (self), error);
  return ok;
}

static GstStateChangeReturn
gst_lm_decide_change_state (GstElement *element, GstStateChange transition)
{
  GstLmDecide *self = GST_LM_DECIDE (element);

  if (transition == GST_STATE_CHANGE_NULL_TO_READY && !check_params (self))
    return GST_STATE_CHANGE_FAILURE;
  return GST_ELEMENT_CLASS (gst_lm_decide_parent_class)->change_state (element,
      transition);
}

static void
gst_lm_decide_set_property (GObject *object, guint id, const GValue *value,
                            GParamSpec *pspec)
{
  GstLmDecide *self = GST_LM_DECIDE (object);

  if (id >= N_PROPS) {
    G_OBJECT_CLASS (gst_lm_decide_parent_class)->set_property (object, id,
        value, pspec);
    return;
  }
  GST_OBJECT_LOCK (self);
  if (id >= PROP_ENGINE)
    gst_lm_engine_choice_set (&self->choice, id - PROP_ENGINE, value);
  else
    gst_lm_decide_params_set (self->params, id, value);
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_decide_get_property (GObject *object, guint id, GValue *value,
                            GParamSpec *pspec)
{
  GstLmDecide *self = GST_LM_DECIDE (object);

  if (id >= N_PROPS) {
    G_OBJECT_CLASS (gst_lm_decide_parent_class)->get_property (object, id,
        value, pspec);
    return;
  }
  GST_OBJECT_LOCK (self);
  if (id >= PROP_ENGINE)
    gst_lm_engine_choice_get (&self->choice, id - PROP_ENGINE, value);
  else
    gst_lm_decide_params_get (self->params, id, value);
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_decide_finalize (GObject *object)
{
  GstLmDecide *self = GST_LM_DECIDE (object);

  gst_lm_decide_params_free (self->params);
  g_clear_object (&self->decider);
  G_OBJECT_CLASS (gst_lm_decide_parent_class)->finalize (object);
}

static void
gst_lm_decide_class_init (GstLmDecideClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstLmFilterClass *filter_class = GST_LM_FILTER_CLASS (klass);

  object_class->set_property = gst_lm_decide_set_property;
  object_class->get_property = gst_lm_decide_get_property;
  object_class->finalize = gst_lm_decide_finalize;
  element_class->change_state = gst_lm_decide_change_state;
  filter_class->process = gst_lm_decide_process;
  filter_class->reset = gst_lm_decide_reset;
  filter_class->unlock = gst_lm_decide_unlock;
  filter_class->src_event = gst_lm_decide_src_event;

  gst_lm_decide_params_install (object_class);
  gst_lm_engine_choice_install (object_class, PROP_ENGINE);
  gst_lm_filter_class_use_model (filter_class, GST_LM_MODEL_PART_TOKENIZER);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class,
      "Language model decisions", "Filter/Text",
      "Answers typed questions about a state with probabilities",
      "The Runnel developers");
}

static void
gst_lm_decide_init (GstLmDecide *self)
{
  self->params = gst_lm_decide_params_new ();
}
