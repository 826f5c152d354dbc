/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/**
 * SECTION:element-lmdecode
 * @title: lmdecode
 * @see_also: lmprefill, lmdetokenize
 *
 * Generates the reply: a state in, tokens out, a buffer for every step as it
 * is made. A step gives one token, or several where a drafter of the state
 * guessed them (see lmlookup); with draft-adaptive it verifies only as many
 * guesses as pay. The last buffer of a reply has the MARKER flag, and its request
 * meta says why the reply ended and what was used; it may hold no token.
 *
 * Properties may change while it plays; a reply keeps the values it began
 * with. A request may bring its own values in its meta's overrides, named as
 * the properties.
 *
 * A reply ends early by flushing (it is thrown away) or by the upstream event
 * `runnel/cancel` with the request's id (what came is kept). When a reply has
 * ended, `runnel/reply` goes upstream with its text.
 *
 * With `stats` an element message `lmdecode-stats` follows every reply, with
 * the fields request (id), finish-reason, prompt-tokens, cached-tokens,
 * completion-tokens, first-token (ns from the state to the first token),
 * duration (ns from the state to the end), and of drafters draft-blocks
 * (passes that verified guesses), proposed-tokens and accepted-tokens (guesses
 * verified and kept), draft-time and verify-time (ns).
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q lmprompt text="Name three rivers of France." ! lmchat \
 *     ! lmtokenize model=$MODEL ! lmprefill \
 *     ! lmdecode max-tokens=60 temperature=0 ! lmdetokenize ! fdsink
 * ]|
 */

#include <gstrunnel.h>
#include "elements.h"

#include "lmcancelled.h"
#include "lmdecodeparams.h"
#include "lmengine.h"

GST_DEBUG_CATEGORY_STATIC (lm_decode_debug);
#define GST_CAT_DEFAULT lm_decode_debug

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_STATE_ANYWHERE));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TOKENS));

enum {
  PROP_ENGINE = GST_LM_DECODE_N_PARAMS,
  PROP_STATS = PROP_ENGINE + GST_LM_ENGINE_N_PROPERTIES,
  N_PROPS,                      /* the others are of the base class */
};

struct _GstLmDecode {
  GstLmFilter parent;

  /* object lock */
  RunnelGenerationParams *params;
  GstStructure *logit_bias; /* as it was set: its fields may be wrong */
  GstLmEngineChoice choice;
  gboolean stats;
  RunnelGeneration *generation; /* of the reply in progress, or NULL */
  GCancellable *cancellable;    /* of moving its state to another engine */
  guint64 request;              /* its id, or 0 */
  gboolean is_cancelled;        /* the request in progress */
  GstLmCancelled cancelled;     /* those to come */
};

G_DECLARE_FINAL_TYPE (GstLmDecode, gst_lm_decode, GST, LM_DECODE, GstLmFilter)
G_DEFINE_FINAL_TYPE_WITH_CODE (GstLmDecode, gst_lm_decode, GST_TYPE_LM_FILTER,
    G_IMPLEMENT_INTERFACE (GST_TYPE_PRESET, NULL)
    GST_DEBUG_CATEGORY_INIT (lm_decode_debug, "lmdecode", 0,
        "Runnel state to tokens"))
GST_ELEMENT_REGISTER_DEFINE (lmdecode, "lmdecode", GST_RANK_NONE,
    gst_lm_decode_get_type ())

/* One reply in the making; on the streaming thread's stack. */
typedef struct {
  GstBuffer *head;              /* empty: the request's meta and time */
  GstLmRequestMeta *meta;       /* that of @head */
  RunnelGeneration *generation;
  GString *text;
  guint n_prompt;
  gint64 started;               /* µs */
  gint64 first_token;           /* µs, or 0 */
} Reply;

static void
reply_clear (Reply *reply)
{
  g_clear_object (&reply->generation);
  g_clear_pointer (&reply->head, gst_buffer_unref);
  if (reply->text)
    g_string_free (reply->text, TRUE);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Reply, reply_clear)

static void
post_stats (GstLmDecode *self, const Reply *reply,
            const GstLmRequestMeta *usage)
{
  gint64 now = g_get_monotonic_time ();
  gboolean wanted;

  GST_OBJECT_LOCK (self);
  wanted = self->stats;
  GST_OBJECT_UNLOCK (self);
  if (!wanted)
    return;
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("lmdecode-stats",
              "request", G_TYPE_UINT64, reply->meta->id,
              "finish-reason", RUNNEL_TYPE_FINISH_REASON,
              usage->finish_reason,
              "prompt-tokens", G_TYPE_UINT, reply->n_prompt,
              "cached-tokens", G_TYPE_UINT, reply->meta->cached_tokens,
              "completion-tokens", G_TYPE_UINT, usage->completion_tokens,
              "draft-blocks", G_TYPE_UINT, usage->draft_blocks,
              "proposed-tokens", G_TYPE_UINT, usage->proposed_tokens,
              "accepted-tokens", G_TYPE_UINT, usage->accepted_tokens,
              "draft-time", G_TYPE_UINT64, usage->draft_time,
              "verify-time", G_TYPE_UINT64, usage->verify_time,
              "first-token", G_TYPE_UINT64, reply->first_token ?
              (reply->first_token - reply->started) * 1000 :
              GST_CLOCK_TIME_NONE,
              "duration", G_TYPE_UINT64, (now - reply->started) * 1000,
              NULL)));
}

static void
announce_end (GstLmDecode *self, const Reply *reply, RunnelFinishReason reason)
{
  gst_lm_filter_send_upstream (GST_LM_FILTER (self),
      gst_lm_event_new_reply (reply->meta->id, reply->text->str, reason));
}

/* Cancelled before there was a generation. */
static GstFlowReturn
push_cancelled (GstLmDecode *self, const Reply *reply)
{
  GstBuffer *ended = gst_lm_buffer_new_ended (reply->head);
  GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (ended);

  meta->finish_reason = RUNNEL_FINISH_REASON_CANCELLED;
  meta->prompt_tokens = reply->n_prompt;
  announce_end (self, reply, meta->finish_reason);
  post_stats (self, reply, meta);
  return gst_lm_filter_push (GST_LM_FILTER (self), ended);
}

/* What was used, on the last buffer. */
static void
set_usage (GstLmRequestMeta *meta, const Reply *reply)
{
  RunnelDraftStats drafts;

  meta->finish_reason =
      runnel_generation_get_finish_reason (reply->generation);
  meta->prompt_tokens = reply->n_prompt;
  meta->completion_tokens = runnel_generation_get_n_tokens (reply->generation);
  runnel_generation_get_draft_stats (reply->generation, &drafts);
  meta->draft_blocks = drafts.blocks;
  meta->proposed_tokens = drafts.proposed;
  meta->accepted_tokens = drafts.accepted;
  meta->draft_time = drafts.draft_time;
  meta->verify_time = drafts.verify_time;
}

/* A buffer of the reply. The last one tells upstream first: who sees it may
 * count on lmchat knowing the reply. */
static GstFlowReturn
push_step (GstLmDecode *self, const Reply *reply,
           const RunnelGenerationStep *step, guint n_top)
{
  GstBuffer *buffer = gst_lm_buffer_new_tokens (step->tokens, step->n_tokens);
  GstLmRequestMeta *meta =
      gst_lm_buffer_copy_request_meta (buffer, reply->head);

  gst_buffer_copy_into (buffer, reply->head, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_lm_buffer_add_tokens_meta (buffer, step->text_end, step->logprobs,
      step->n_tokens, n_top ? step->top : NULL, step->n_tokens * n_top);
  if (step->finished) {
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_MARKER);
    set_usage (meta, reply);
    announce_end (self, reply, meta->finish_reason);
    post_stats (self, reply, meta);
  }
  return gst_lm_filter_push (GST_LM_FILTER (self), buffer);
}

static gboolean
is_late (const Reply *reply)
{
  return GST_CLOCK_TIME_IS_VALID (reply->meta->deadline)
      && (guint64) g_get_monotonic_time () * 1000 > reply->meta->deadline;
}

static GstFlowReturn
generate (GstLmDecode *self, Reply *reply, guint n_top)
{
  GstLmFilter *filter = GST_LM_FILTER (self);
  GstFlowReturn ret = GST_FLOW_OK;
  RunnelGenerationStep step = { 0 };

  while (ret == GST_FLOW_OK && !step.finished) {
    g_autoptr (GError) error = NULL;

    if (is_late (reply))
      runnel_generation_cancel (reply->generation);
    if (!runnel_generation_next (reply->generation, &step, &error)) {
      if (gst_lm_filter_is_flushing (filter))
        return GST_FLOW_FLUSHING;
      return gst_lm_filter_fail (filter, gst_buffer_ref (reply->head), error);
    }
    if (gst_lm_filter_is_flushing (filter))
      return GST_FLOW_FLUSHING;
    if (step.n_tokens > 0 && reply->first_token == 0)
      reply->first_token = g_get_monotonic_time ();
    if (step.text)
      g_string_append (reply->text, step.text);
    if (step.n_tokens > 0 || step.finished)
      ret = push_step (self, reply, &step, n_top);
  }
  /* Nobody wants the rest: the reply is over for those who wait for it. */
  if (!step.finished && ret != GST_FLOW_FLUSHING)
    announce_end (self, reply, RUNNEL_FINISH_REASON_CANCELLED);
  return ret;
}

/* The element's properties, and what the request overrides. */
static RunnelGenerationParams *
copy_params (GstLmDecode *self, const GstLmRequestMeta *meta, GError **error)
{
  g_autoptr (RunnelGenerationParams) params = NULL;
  g_autoptr (GstStructure) bias = NULL;

  GST_OBJECT_LOCK (self);
  params = runnel_generation_params_copy (self->params);
  bias = self->logit_bias ? gst_structure_copy (self->logit_bias) : NULL;
  GST_OBJECT_UNLOCK (self);
  if (!gst_lm_decode_params_set_bias (params, bias, error)
      || !gst_lm_decode_params_override (params, GST_ELEMENT (self), meta,
          error))
    return NULL;
  return g_steal_pointer (&params);
}

/* Makes the generation, unless the request has been cancelled already.
 * @sequence is taken. */
static gboolean
begin_reply (GstLmDecode *self, Reply *reply, RunnelSequence *sequence,
             GCancellable *cancellable, guint *ret_n_top, GError **error)
{
  g_autoptr (RunnelGenerationParams) params = NULL;
  g_autoptr (RunnelGeneration) generation = NULL;
  GstLmEngineChoice choice;
  gboolean is_cancelled;

  params = copy_params (self, reply->meta, error);
  if (!params) {
    g_object_unref (sequence);
    return FALSE;
  }
  GST_OBJECT_LOCK (self);
  choice = self->choice;
  GST_OBJECT_UNLOCK (self);
  sequence = gst_lm_engine_choice_move (&choice, sequence,
      reply->meta->drafters, cancellable, error);
  if (!sequence)
    return FALSE;
  generation = runnel_generation_new (sequence, params, error);
  if (!generation)
    return FALSE;
  GST_OBJECT_LOCK (self);
  self->generation = g_object_ref (generation);
  is_cancelled = self->is_cancelled;
  GST_OBJECT_UNLOCK (self);
  if (is_cancelled)
    runnel_generation_cancel (generation);
  reply->generation = g_steal_pointer (&generation);
  *ret_n_top = params->n_top_logprobs;
  return TRUE;
}

static void
reply_init (Reply *reply, GstBuffer *state)
{
  reply->started = g_get_monotonic_time ();
  reply->text = g_string_new (NULL);
  reply->head = gst_buffer_new ();
  reply->meta = gst_lm_buffer_copy_request_meta (reply->head, state);
  reply->meta->is_reply = TRUE;
  gst_buffer_copy_into (reply->head, state, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
}

/* The state inside @buffer (taken), or NULL with an error posted. An own model
 * of the same vocabulary is not enough: keys and values are of one model. */
static RunnelSequence *
take_state (GstLmDecode *self, GstBuffer *buffer)
{
  g_autoptr (RunnelSequence) sequence = gst_lm_state_take (buffer);
  RunnelModel *ours = gst_lm_model_holder_get_model
      (gst_lm_filter_get_model_holder (GST_LM_FILTER (self)));
  RunnelModel *theirs;

  if (!sequence) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("A buffer of %s holds no state.", GST_LM_CAPS_STATE), (NULL));
    return NULL;
  }
  theirs = runnel_engine_get_model (runnel_sequence_get_engine (sequence));
  if (g_str_equal (runnel_model_get_content_id (ours),
          runnel_model_get_content_id (theirs)))
    return g_steal_pointer (&sequence);
  GST_ELEMENT_ERROR (self, STREAM, FORMAT,
      ("%s has model %s, but the state that comes is of model %s: use one "
          "model, or leave the property model unset.", GST_OBJECT_NAME (self),
          runnel_model_get_name (ours), runnel_model_get_name (theirs)),
      ("content ids %s and %s", runnel_model_get_content_id (ours),
          runnel_model_get_content_id (theirs)));
  return NULL;
}

static GstFlowReturn
make_reply (GstLmDecode *self, GstBuffer *state, GCancellable *cancellable)
{
  GstLmFilter *filter = GST_LM_FILTER (self);
  g_auto (Reply) reply = { NULL };
  g_autoptr (RunnelSequence) sequence = NULL;
  g_autoptr (GError) error = NULL;
  guint n_top = 0;

  reply_init (&reply, state);
  sequence = take_state (self, state);
  if (!sequence)
    return GST_FLOW_ERROR;
  reply.n_prompt = runnel_sequence_get_length (sequence);
  /* After the cancellable is there, so that no flush falls in between. */
  if (gst_lm_filter_is_flushing (filter))
    return GST_FLOW_FLUSHING;
  if (begin_reply (self, &reply, g_steal_pointer (&sequence), cancellable,
          &n_top, &error))
    return generate (self, &reply, n_top);
  if (gst_lm_filter_is_flushing (filter))
    return GST_FLOW_FLUSHING;
  if (g_cancellable_is_cancelled (cancellable))
    return push_cancelled (self, &reply);
  return gst_lm_filter_fail (filter, gst_buffer_ref (reply.head), error);
}

static GstFlowReturn
gst_lm_decode_process (GstLmFilter *filter, GstBuffer *state)
{
  GstLmDecode *self = GST_LM_DECODE (filter);
  guint64 id = gst_lm_buffer_get_request_meta (state)->id;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (RunnelGeneration) generation = NULL;
  GstFlowReturn ret;

  GST_OBJECT_LOCK (self);
  self->cancellable = cancellable;
  self->request = id;
  self->is_cancelled = gst_lm_cancelled_remove (&self->cancelled, id);
  GST_OBJECT_UNLOCK (self);

  ret = make_reply (self, state, cancellable);

  GST_OBJECT_LOCK (self);
  generation = g_steal_pointer (&self->generation);
  self->cancellable = NULL;
  self->request = 0;
  GST_OBJECT_UNLOCK (self);
  return ret;
}

/* Ends the reply in progress, if it is that to @id or @id is 0; remembers an
 * @id that is not here yet. */
static void
cancel (GstLmDecode *self, guint64 id)
{
  g_autoptr (RunnelGeneration) generation = NULL;
  g_autoptr (GCancellable) cancellable = NULL;

  GST_OBJECT_LOCK (self);
  if (self->cancellable && (id == 0 || self->request == id)) {
    self->is_cancelled = TRUE;
    cancellable = g_object_ref (self->cancellable);
    if (self->generation)
      generation = g_object_ref (self->generation);
  } else if (id != 0) {
    gst_lm_cancelled_add (&self->cancelled, id);
  }
  GST_OBJECT_UNLOCK (self);
  if (cancellable)
    g_cancellable_cancel (cancellable);
  if (generation)
    runnel_generation_cancel (generation);
}

static void
gst_lm_decode_unlock (GstLmFilter *filter)
{
  cancel (GST_LM_DECODE (filter), 0);
}

static gboolean
gst_lm_decode_src_event (GstLmFilter *filter, GstEvent *event)
{
  guint64 id;

  /* Elements upstream that work for this branch alone obey, too. */
  if (gst_lm_event_parse_cancel (event, &id))
    cancel (GST_LM_DECODE (filter), id);
  return GST_LM_FILTER_CLASS (gst_lm_decode_parent_class)->src_event (filter,
      event);
}

static void
gst_lm_decode_reset (GstLmFilter *filter, gboolean hard)
{
  GstLmDecode *self = GST_LM_DECODE (filter);

  GST_OBJECT_LOCK (self);
  memset (&self->cancelled, 0, sizeof self->cancelled);
  GST_OBJECT_UNLOCK (self);
}

static GstCaps *
gst_lm_decode_get_src_caps (GstLmFilter *filter, GstBuffer *request)
{
  RunnelTokenizer *tokenizer = gst_lm_model_holder_get_tokenizer
      (gst_lm_filter_get_model_holder (filter));

  /* A gap may come before any model does. */
  if (!tokenizer)
    return GST_LM_FILTER_CLASS (gst_lm_decode_parent_class)->get_src_caps
        (filter, request);
  return gst_lm_caps_new_tokens (tokenizer);
}

static void
gst_lm_decode_set_property (GObject *object, guint id, const GValue *value,
                            GParamSpec *pspec)
{
  GstLmDecode *self = GST_LM_DECODE (object);

  if (id >= N_PROPS) {
    G_OBJECT_CLASS (gst_lm_decode_parent_class)->set_property (object, id,
        value, pspec);
    return;
  }
  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_ENGINE + GST_LM_ENGINE_BACKEND:
    case PROP_ENGINE + GST_LM_ENGINE_THREADS:
    case PROP_ENGINE + GST_LM_ENGINE_KERNELS:
      gst_lm_engine_choice_set (&self->choice, id - PROP_ENGINE, value);
      break;
    case PROP_STATS:
      self->stats = g_value_get_boolean (value);
      break;
    case GST_LM_DECODE_PARAM_LOGIT_BIAS:
      g_clear_pointer (&self->logit_bias, gst_structure_free);
      self->logit_bias = g_value_dup_boxed (value);
      break;
    default:
      gst_lm_decode_params_set (self->params, id, value);
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_decode_get_property (GObject *object, guint id, GValue *value,
                            GParamSpec *pspec)
{
  GstLmDecode *self = GST_LM_DECODE (object);

  if (id >= N_PROPS) {
    G_OBJECT_CLASS (gst_lm_decode_parent_class)->get_property (object, id,
        value, pspec);
    return;
  }
  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_ENGINE + GST_LM_ENGINE_BACKEND:
    case PROP_ENGINE + GST_LM_ENGINE_THREADS:
    case PROP_ENGINE + GST_LM_ENGINE_KERNELS:
      gst_lm_engine_choice_get (&self->choice, id - PROP_ENGINE, value);
      break;
    case PROP_STATS:
      g_value_set_boolean (value, self->stats);
      break;
    case GST_LM_DECODE_PARAM_LOGIT_BIAS:
      g_value_set_boxed (value, self->logit_bias);
      break;
    default:
      gst_lm_decode_params_get (self->params, id, value);
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_decode_finalize (GObject *object)
{
  GstLmDecode *self = GST_LM_DECODE (object);

  runnel_generation_params_free (self->params);
  g_clear_pointer (&self->logit_bias, gst_structure_free);
  G_OBJECT_CLASS (gst_lm_decode_parent_class)->finalize (object);
}

static void
install_properties (GObjectClass *klass)
{
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS
      | GST_PARAM_MUTABLE_PLAYING;

  gst_lm_decode_params_install (klass);
  gst_lm_engine_choice_install (klass, PROP_ENGINE);
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boolean ("stats", "Statistics",
          "Post an element message lmdecode-stats after every reply", FALSE,
          flags));
}

static void
gst_lm_decode_class_init (GstLmDecodeClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstLmFilterClass *filter_class = GST_LM_FILTER_CLASS (klass);

  object_class->set_property = gst_lm_decode_set_property;
  object_class->get_property = gst_lm_decode_get_property;
  object_class->finalize = gst_lm_decode_finalize;
  filter_class->get_src_caps = gst_lm_decode_get_src_caps;
  filter_class->process = gst_lm_decode_process;
  filter_class->reset = gst_lm_decode_reset;
  filter_class->unlock = gst_lm_decode_unlock;
  filter_class->src_event = gst_lm_decode_src_event;

  install_properties (object_class);
  gst_lm_filter_class_use_model (filter_class, GST_LM_MODEL_PART_TOKENIZER);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class,
      "Language model decoder", "Codec/Decoder/Text",
      "Generates the tokens of a reply from a state",
      "The Runnel developers");
}

static void
gst_lm_decode_init (GstLmDecode *self)
{
  self->params = runnel_generation_params_new ();
  self->logit_bias = gst_structure_new_empty ("bias");
}
