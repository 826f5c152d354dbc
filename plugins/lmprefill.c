/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/**
 * SECTION:element-lmprefill
 * @title: lmprefill
 * @see_also: lmtokenize, lmdecode
 *
 * Reads a prompt: tokens in, a state out (the prompt's keys and values). The
 * longest beginning of the prompt that is in the prefix cache is not computed
 * again; the rest is computed in chunks, and between chunks other requests get
 * their turn.
 *
 * A tee behind lmprefill shares the state: the prompt is computed once. Each
 * branch needs a queue, so that the branches run side by side.
 *
 * A prompt that is being read is stopped by flushing, or by the upstream event
 * `runnel/cancel` with its request id; where the state is shared by several
 * branches the event stops only the branch that it came from.
 *
 * Drafters that lmlookup and its like attached to the request follow the state
 * from its first token on; a beginning in the prefix cache serves if it holds
 * what they need.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q lmprompt text="Name a river." ! lmchat \
 *     ! lmtokenize model=$MODEL ! lmprefill ! tee name=t \
 *     t. ! queue ! lmdecode seed=1 ! lmdetokenize ! fdsink \
 *     t. ! queue ! lmdecode seed=2 ! lmdetokenize ! fdsink fd=2
 * ]|
 */

#include <gstrunnel.h>
#include "elements.h"

#include "lmbranches.h"
#include "lmongoing.h"

GST_DEBUG_CATEGORY_STATIC (lm_prefill_debug);
#define GST_CAT_DEFAULT lm_prefill_debug

#define DEFAULT_CHUNK 128
#define DEFAULT_CACHE_BUDGET (64 * 1024 * 1024)

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_TOKENS));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_LM_CAPS_STATE_ANYWHERE));

enum {
  PROP_CONTEXT_LENGTH = 1,
  PROP_MAX_MEMORY,
  PROP_CACHE_BUDGET,
  PROP_CHUNK,
  PROP_OVERFLOW_POLICY,
  PROP_N_KEEP,
  PROP_USE_CACHE,
  N_PROPS,                      /* the others are of the base class */
};

/* What holds for one request. */
typedef struct {
  guint context_length;
  guint chunk;
  RunnelOverflowPolicy overflow_policy;
  guint n_keep;
  gboolean use_cache;
} Settings;

struct _GstLmPrefill {
  GstLmFilter parent;

  /* object lock */
  Settings settings;
  guint64 max_memory;
  guint64 cache_budget;
  gboolean memory_is_set;       /* else the engine keeps its own */
  gboolean budget_is_set;
  GstLmOngoing ongoing;

  /* streaming thread */
  gboolean checked_branches;
};

G_DECLARE_FINAL_TYPE (GstLmPrefill, gst_lm_prefill, GST, LM_PREFILL, GstLmFilter)
G_DEFINE_FINAL_TYPE_WITH_CODE (GstLmPrefill, gst_lm_prefill, GST_TYPE_LM_FILTER,
    G_IMPLEMENT_INTERFACE (GST_TYPE_PRESET, NULL)
    GST_DEBUG_CATEGORY_INIT (lm_prefill_debug, "lmprefill", 0,
        "Runnel tokens to state"))
GST_ELEMENT_REGISTER_DEFINE (lmprefill, "lmprefill", GST_RANK_NONE,
    gst_lm_prefill_get_type ())

/* A branch without a queue decodes in our thread, while the others wait. */
static void
check_branches (GstLmPrefill *self)
{
  g_autoptr (GstPad) branch = NULL;

  if (self->checked_branches)
    return;
  self->checked_branches = TRUE;
  branch = gst_lm_pad_find_unqueued_branch
      (gst_lm_filter_get_src_pad (GST_LM_FILTER (self)));
  if (branch)
    GST_ELEMENT_WARNING (self, CORE, THREAD,
        ("The branch at %s:%s has no queue: its reply is made before the "
            "other branches begin. Put a queue behind it.",
            GST_DEBUG_PAD_NAME (branch)), (NULL));
}

/* One parameter of the request, or the property's value. */
static gboolean
get_parameter (GstLmPrefill *self, const GstLmRequestMeta *meta,
               const char *name, GValue *value, GError **error)
{
  return gst_lm_request_meta_get_parameter (meta, G_OBJECT (self), name, value,
      error);
}

static gboolean
get_uint (GstLmPrefill *self, const GstLmRequestMeta *meta, const char *name,
          guint *ret, GError **error)
{
  g_auto (GValue) value = G_VALUE_INIT;

  if (!get_parameter (self, meta, name, &value, error))
    return FALSE;
  *ret = g_value_get_uint (&value);
  return TRUE;
}

static gboolean
get_settings (GstLmPrefill *self, const GstLmRequestMeta *meta,
              Settings *settings, GError **error)
{
  g_auto (GValue) policy = G_VALUE_INIT, use_cache = G_VALUE_INIT;

  if (!get_uint (self, meta, "context-length", &settings->context_length, error)
      || !get_uint (self, meta, "chunk", &settings->chunk, error)
      || !get_uint (self, meta, "n-keep", &settings->n_keep, error)
      || !get_parameter (self, meta, "overflow-policy", &policy, error)
      || !get_parameter (self, meta, "use-cache", &use_cache, error))
    return FALSE;
  settings->overflow_policy = g_value_get_enum (&policy);
  settings->use_cache = g_value_get_boolean (&use_cache);
  return TRUE;
}

static void
apply_limits (GstLmPrefill *self, RunnelEngine *engine)
{
  guint64 max_memory, cache_budget;
  gboolean memory_is_set, budget_is_set;

  GST_OBJECT_LOCK (self);
  max_memory = self->max_memory;
  cache_budget = self->cache_budget;
  memory_is_set = self->memory_is_set;
  budget_is_set = self->budget_is_set;
  GST_OBJECT_UNLOCK (self);
  if (memory_is_set && runnel_engine_get_max_memory (engine) != max_memory)
    runnel_engine_set_max_memory (engine, max_memory);
  if (budget_is_set && runnel_engine_get_cache_budget (engine) != cache_budget)
    runnel_engine_set_cache_budget (engine, cache_budget);
}

static void
post_progress (GstLmPrefill *self, GstProgressType type, const char *text)
{
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_progress (GST_OBJECT (self), type, "prefill", text));
}

static void
on_progress (double fraction, gpointer user_data)
{
  g_autofree char *text =
      g_strdup_printf ("Reading the prompt: %d %%", (int) (fraction * 100));

  post_progress (user_data, GST_PROGRESS_TYPE_CONTINUE, text);
}

/* Ends the request here, without a state: an empty reply. */
static GstFlowReturn
end_request (GstLmPrefill *self, GstBuffer *request, guint n_tokens,
             RunnelFinishReason reason)
{
  GstLmFilter *filter = GST_LM_FILTER (self);
  GstBuffer *ended = gst_lm_buffer_new_ended (request);
  GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (ended);

  meta->finish_reason = reason;
  meta->prompt_tokens = n_tokens;
  gst_lm_filter_send_upstream (filter, gst_lm_event_new_reply (meta->id, "",
          reason));
  return gst_lm_filter_push (filter, ended);
}

/* @sequence is taken. */
static GstFlowReturn
push_state (GstLmPrefill *self, GstBuffer *request, RunnelSequence *sequence,
            gsize n_cached)
{
  GstBuffer *buffer = gst_lm_buffer_new_state (sequence);
  GstLmRequestMeta *meta = gst_lm_buffer_copy_request_meta (buffer, request);

  gst_lm_request_meta_set_model (meta,
      runnel_engine_get_model (runnel_sequence_get_engine (sequence)));
  meta->prompt_tokens = runnel_sequence_get_length (sequence);
  meta->cached_tokens = n_cached;
  /* Of a prompt that was cut it is not known any more. */
  if (gst_buffer_get_size (request) != meta->prompt_tokens * sizeof (gint32))
    meta->generation_prompt = -1;
  gst_buffer_copy_into (buffer, request, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  check_branches (self);
  return gst_lm_filter_push (GST_LM_FILTER (self), buffer);
}

static gboolean
prefill (GstLmPrefill *self, RunnelSequence *sequence, const gint32 *tokens,
         gsize n_tokens, const Settings *settings, GCancellable *cancellable,
         gsize *ret_cached, GError **error)
{
  gboolean shows = n_tokens > settings->chunk;
  gboolean ok;

  if (shows)
    post_progress (self, GST_PROGRESS_TYPE_START, "Reading the prompt");
  ok = runnel_sequence_prefill (sequence, tokens, n_tokens, settings->chunk,
      settings->use_cache, shows ? on_progress : NULL, self, cancellable,
      ret_cached, error);
  if (shows && ok)
    post_progress (self, GST_PROGRESS_TYPE_COMPLETE, "The prompt is read");
  else if (shows && g_cancellable_is_cancelled (cancellable))
    post_progress (self, GST_PROGRESS_TYPE_CANCELED, "Cancelled");
  else if (shows)
    post_progress (self, GST_PROGRESS_TYPE_ERROR, "The prompt was not read");
  return ok;
}

/* An empty sequence, with the drafters of the request. */
static RunnelSequence *
new_sequence (RunnelEngine *engine, const GstLmRequestMeta *meta,
              guint context_length, GError **error)
{
  g_autoptr (RunnelSequence) sequence =
      runnel_sequence_new (engine, context_length, error);

  if (!sequence)
    return NULL;
  for (guint i = 0; meta->drafters && i < meta->drafters->len; i++)
    if (!runnel_sequence_attach (sequence,
            g_ptr_array_index (meta->drafters, i), error))
      return NULL;
  return g_steal_pointer (&sequence);
}

/* @tokens fit into the context. */
static GstFlowReturn
process_tokens (GstLmPrefill *self, GstBuffer *request, const gint32 *tokens,
                gsize n_tokens, const Settings *settings,
                GCancellable *cancellable)
{
  GstLmFilter *filter = GST_LM_FILTER (self);
  RunnelEngine *engine =
      gst_lm_model_holder_get_engine (gst_lm_filter_get_model_holder (filter));
  g_autoptr (RunnelSequence) sequence = NULL;
  g_autoptr (GError) error = NULL;
  gsize n_cached = 0;

  apply_limits (self, engine);
  sequence = new_sequence (engine, gst_lm_buffer_get_request_meta (request),
      settings->context_length, &error);
  if (sequence && prefill (self, sequence, tokens, n_tokens, settings,
          cancellable, &n_cached, &error)
      && !g_cancellable_is_cancelled (cancellable))
    return push_state (self, request, g_steal_pointer (&sequence), n_cached);
  if (gst_lm_filter_is_flushing (filter))
    return GST_FLOW_FLUSHING;
  if (g_cancellable_is_cancelled (cancellable))
    return end_request (self, request, n_tokens,
        RUNNEL_FINISH_REASON_CANCELLED);
  return gst_lm_filter_fail (filter, gst_buffer_ref (request), error);
}

static guint
get_context_length (GstLmPrefill *self, const Settings *settings)
{
  GstLmModelHolder *holder =
      gst_lm_filter_get_model_holder (GST_LM_FILTER (self));

  return settings->context_length ? settings->context_length :
      runnel_model_get_context_length (gst_lm_model_holder_get_model (holder));
}

static GstFlowReturn
process_request (GstLmPrefill *self, GstBuffer *request,
                 const GstLmRequestMeta *meta, GCancellable *cancellable)
{
  GstLmFilter *filter = GST_LM_FILTER (self);
  g_autofree gint32 *tokens = NULL, *cut = NULL;
  gsize n_tokens, n_cut;
  RunnelPromptFit fit;
  Settings settings;
  g_autoptr (GError) error = NULL;

  tokens = gst_lm_buffer_dup_tokens (request, &n_tokens, &error);
  if (!tokens || !get_settings (self, meta, &settings, &error)
      || !runnel_overflow_policy_fit_prompt (settings.overflow_policy,
          settings.n_keep, get_context_length (self, &settings), tokens,
          n_tokens, &fit, &cut, &n_cut, &error))
    return gst_lm_filter_fail (filter, gst_buffer_ref (request), error);

  if (n_tokens == 0)
    return end_request (self, request, 0, RUNNEL_FINISH_REASON_STOP);
  if (fit == RUNNEL_PROMPT_FIT_NOTHING)
    return end_request (self, request, n_tokens, RUNNEL_FINISH_REASON_LENGTH);
  if (fit == RUNNEL_PROMPT_FIT_CUT)
    return process_tokens (self, request, cut, n_cut, &settings, cancellable);
  return process_tokens (self, request, tokens, n_tokens, &settings,
      cancellable);
}

static GstFlowReturn
gst_lm_prefill_process (GstLmFilter *filter, GstBuffer *buffer)
{
  GstLmPrefill *self = GST_LM_PREFILL (filter);
  g_autoptr (GstBuffer) request = buffer;
  const GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (request);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  GstFlowReturn ret;

  gst_lm_ongoing_begin (&self->ongoing, GST_ELEMENT (self), meta->id,
      cancellable);

  /* After the cancellable is there, so that no flush falls in between. */
  if (gst_lm_filter_is_flushing (filter))
    ret = GST_FLOW_FLUSHING;
  else
    ret = process_request (self, request, meta, cancellable);
  gst_lm_ongoing_end (&self->ongoing, GST_ELEMENT (self));
  return ret;
}

static void
gst_lm_prefill_unlock (GstLmFilter *filter)
{
  GstLmPrefill *self = GST_LM_PREFILL (filter);

  gst_lm_ongoing_cancel (&self->ongoing, GST_ELEMENT (self), 0);
}

static void
gst_lm_prefill_reset (GstLmFilter *filter, gboolean hard)
{
  GstLmPrefill *self = GST_LM_PREFILL (filter);

  gst_lm_ongoing_forget (&self->ongoing, GST_ELEMENT (self));
  if (hard)
    self->checked_branches = FALSE;
}

static gboolean
gst_lm_prefill_src_event (GstLmFilter *filter, GstEvent *event)
{
  GstLmPrefill *self = GST_LM_PREFILL (filter);
  guint64 id;

  if (gst_lm_event_parse_cancel (event, &id)
      && !gst_lm_pad_forks (gst_lm_filter_get_src_pad (filter)))
    gst_lm_ongoing_cancel (&self->ongoing, GST_ELEMENT (self), id);
  return GST_LM_FILTER_CLASS (gst_lm_prefill_parent_class)->src_event (filter,
      event);
}

static GstCaps *
gst_lm_prefill_get_src_caps (GstLmFilter *filter, GstBuffer *request)
{
  RunnelModel *model =
      gst_lm_model_holder_get_model (gst_lm_filter_get_model_holder (filter));

  /* A gap may come before any model does. */
  if (!model)
    return GST_LM_FILTER_CLASS (gst_lm_prefill_parent_class)->get_src_caps
        (filter, request);
  return gst_lm_caps_new_state (model);
}

static void
gst_lm_prefill_set_property (GObject *object, guint id, const GValue *value,
                             GParamSpec *pspec)
{
  GstLmPrefill *self = GST_LM_PREFILL (object);

  if (id >= N_PROPS) {
    G_OBJECT_CLASS (gst_lm_prefill_parent_class)->set_property (object, id,
        value, pspec);
    return;
  }
  if (id == PROP_MAX_MEMORY)
    gst_lm_model_holder_set_max_memory (gst_lm_filter_get_model_holder (
            GST_LM_FILTER (self)), g_value_get_uint64 (value));
  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_CONTEXT_LENGTH:
      self->settings.context_length = g_value_get_uint (value);
      break;
    case PROP_MAX_MEMORY:
      self->max_memory = g_value_get_uint64 (value);
      self->memory_is_set = TRUE;
      break;
    case PROP_CACHE_BUDGET:
      self->cache_budget = g_value_get_uint64 (value);
      self->budget_is_set = TRUE;
      break;
    case PROP_CHUNK:
      self->settings.chunk = g_value_get_uint (value);
      break;
    case PROP_OVERFLOW_POLICY:
      self->settings.overflow_policy = g_value_get_enum (value);
      break;
    case PROP_N_KEEP:
      self->settings.n_keep = g_value_get_uint (value);
      break;
    case PROP_USE_CACHE:
      self->settings.use_cache = g_value_get_boolean (value);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lm_prefill_get_property (GObject *object, guint id, GValue *value,
                             GParamSpec *pspec)
{
  GstLmPrefill *self = GST_LM_PREFILL (object);

  if (id >= N_PROPS) {
    G_OBJECT_CLASS (gst_lm_prefill_parent_class)->get_property (object, id,
        value, pspec);
    return;
  }
  GST_OBJECT_LOCK (self);
  switch (id) {
    case PROP_CONTEXT_LENGTH:
      g_value_set_uint (value, self->settings.context_length);
      break;
    case PROP_MAX_MEMORY:
      g_value_set_uint64 (value, self->max_memory);
      break;
    case PROP_CACHE_BUDGET:
      g_value_set_uint64 (value, self->cache_budget);
      break;
    case PROP_CHUNK:
      g_value_set_uint (value, self->settings.chunk);
      break;
    case PROP_OVERFLOW_POLICY:
      g_value_set_enum (value, self->settings.overflow_policy);
      break;
    case PROP_N_KEEP:
      g_value_set_uint (value, self->settings.n_keep);
      break;
    case PROP_USE_CACHE:
      g_value_set_boolean (value, self->settings.use_cache);
      break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
install_properties (GObjectClass *klass)
{
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS
      | GST_PARAM_MUTABLE_PLAYING;

  g_object_class_install_property (klass, PROP_CONTEXT_LENGTH,
      g_param_spec_uint ("context-length", "Context length",
          "Tokens that prompt and reply may have together (0: as many as the "
          "model was trained for)", 0, G_MAXINT, 0, flags));
  g_object_class_install_property (klass, PROP_MAX_MEMORY,
      g_param_spec_uint64 ("max-memory", "Max memory",
          "Bytes of weights, scratch, and keys and values of all states and "
          "the prefix cache of this engine, and of its drafts (0: no limit)",
          0, G_MAXUINT64, 0, flags));
  g_object_class_install_property (klass, PROP_CACHE_BUDGET,
      g_param_spec_uint64 ("cache-budget", "Cache budget",
          "Bytes of keys and values that the prefix cache may keep (0: no prefix cache)",
          0, G_MAXUINT64, DEFAULT_CACHE_BUDGET, flags));
  g_object_class_install_property (klass, PROP_CHUNK,
      g_param_spec_uint ("chunk", "Chunk",
          "Tokens that are computed at once, before other requests and "
          "cancellation get their turn", 1, 4096, DEFAULT_CHUNK, flags));
  g_object_class_install_property (klass, PROP_OVERFLOW_POLICY,
      g_param_spec_enum ("overflow-policy", "Overflow policy",
          "What happens to a prompt that is longer than the context: error "
          "fails it, truncate and shift cut out its middle after n-keep, stop "
          "gives an empty reply with finish reason length",
          RUNNEL_TYPE_OVERFLOW_POLICY, RUNNEL_OVERFLOW_POLICY_ERROR, flags));
  g_object_class_install_property (klass, PROP_N_KEEP,
      g_param_spec_uint ("n-keep", "Tokens to keep",
          "Tokens at the beginning that cutting a prompt never drops",
          0, G_MAXINT, 0, flags));
  g_object_class_install_property (klass, PROP_USE_CACHE,
      g_param_spec_boolean ("use-cache", "Use cache",
          "Look for the beginning of the prompt in the prefix cache", TRUE,
          flags));
}

static void
gst_lm_prefill_class_init (GstLmPrefillClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstLmFilterClass *filter_class = GST_LM_FILTER_CLASS (klass);

  object_class->set_property = gst_lm_prefill_set_property;
  object_class->get_property = gst_lm_prefill_get_property;
  filter_class->get_src_caps = gst_lm_prefill_get_src_caps;
  filter_class->process = gst_lm_prefill_process;
  filter_class->reset = gst_lm_prefill_reset;
  filter_class->unlock = gst_lm_prefill_unlock;
  filter_class->src_event = gst_lm_prefill_src_event;

  install_properties (object_class);
  gst_lm_filter_class_use_model (filter_class, GST_LM_MODEL_PART_ENGINE);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class,
      "Language model prefill", "Filter/Text",
      "Reads the tokens of a prompt into a state",
      "The Runnel developers");
}

static void
gst_lm_prefill_init (GstLmPrefill *self)
{
  self->settings.chunk = DEFAULT_CHUNK;
  self->settings.use_cache = TRUE;
  self->cache_budget = DEFAULT_CACHE_BUDGET;
}
