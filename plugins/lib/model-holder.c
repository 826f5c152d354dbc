/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "model-holder.h"

#include "request.h"

GST_DEBUG_CATEGORY_STATIC (model_holder_debug);
#define GST_CAT_DEFAULT model_holder_debug

/* Far from the ids of elements' own properties. */
enum {
  PROP_MODEL = 0x100,
  PROP_LOAD_MODE,
  PROP_VERIFY,
  PROP_BACKEND,
  PROP_THREADS,
  PROP_PREFILL_THREADS,
  PROP_KERNELS,
  PROP_KV_TYPE,
};

#define DEFAULT_LOAD_MODE RUNNEL_LOAD_MODE_AUTO
#define DEFAULT_BACKEND GST_LM_BACKEND_AUTO
#define DEFAULT_KERNELS GST_LM_KERNELS_AUTO
#define DEFAULT_KV_TYPE RUNNEL_KV_TYPE_F16

typedef enum {
  LOAD_NONE,
  LOAD_RUNNING,
  LOAD_DONE,
  LOAD_FAILED,
} LoadState;

struct _GstLmModelHolder {
  GObject parent_instance;

  GstElement *element; /* owns us */
  GstLmModelParts parts;
  GstLmModelLoadFunc load; /* in the place of what @parts says, or NULL */
  gpointer load_data;

  GMutex lock;
  GCond cond; /* state, flushing */

  /* Properties; under lock */
  gchar *path;
  RunnelLoadMode load_mode;
  gboolean verify;
  GstLmBackend backend;
  guint threads;
  guint prefill_threads;
  GstLmKernels kernels;
  RunnelKvType kv_type;
  guint64 max_memory;

  /* Under lock */
  RunnelModel *own_model; /* of path; NULL below READY */
  gboolean changed;       /* properties are newer than own_model */
  gboolean flushing;
  LoadState state;
  RunnelModel *model; /* which is loading, loaded or failed */
  RunnelTokenizer *tokenizer;
  RunnelEngine *engine;
  GCancellable *cancellable;

  /* Under the element's state lock, or in the streaming thread while no
   * state change runs load code: there is one loader at a time */
  GThread *thread;

  /* Streaming thread */
  RunnelModel *checked_model; /* its vocabulary agrees with the own one */
};

G_DEFINE_FINAL_TYPE (GstLmModelHolder, gst_lm_model_holder, G_TYPE_OBJECT)

typedef struct {
  GstLmModelHolder *holder; /* joins the thread before it goes */
  RunnelModel *model;
  GCancellable *cancellable;
  GstLmModelParts parts;
  gboolean verify;
  GstLmBackend backend;
  guint threads;
  guint prefill_threads;
  GstLmKernels kernels;
  RunnelKvType kv_type;
  guint64 max_memory;
  gint percent; /* last posted */
} LoadJob;

static void
load_job_free (LoadJob *job)
{
  g_object_unref (job->model);
  g_object_unref (job->cancellable);
  g_free (job);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LoadJob, load_job_free)

static const gchar *
enum_nick (GType type, gint value)
{
  GEnumClass *klass = g_type_class_ref (type);
  GEnumValue *entry = g_enum_get_value (klass, value);

  g_type_class_unref (klass); /* static types stay */
  return entry != NULL ? entry->value_nick : "?";
}

static void
post_progress (LoadJob *job, GstProgressType type, const gchar *text)
{
  GstElement *element = job->holder->element;

  gst_element_post_message (
      element,
      gst_message_new_progress (GST_OBJECT (element), type, "load", text));
}

static void
on_progress (double fraction, gpointer user_data)
{
  LoadJob *job = user_data;
  gint percent = (gint) (CLAMP (fraction, 0.0, 1.0) * 100.0);
  g_autofree gchar *text = NULL;

  if (percent < job->percent + 5)
    return;
  job->percent = percent;
  text = g_strdup_printf ("Loading %s: %d %%",
                          runnel_model_get_name (job->model), percent);
  post_progress (job, GST_PROGRESS_TYPE_CONTINUE, text);
}

static RunnelEngine *
load_engine (LoadJob *job, GError **error)
{
  g_autoptr (RunnelBackend) backend = NULL;
  RunnelEngine *engine;
  const gchar *kernels = NULL;

  if (job->kernels != GST_LM_KERNELS_AUTO)
    kernels = enum_nick (GST_TYPE_LM_KERNELS, job->kernels);
  backend = runnel_backend_get_with_threads (
      enum_nick (GST_TYPE_LM_BACKEND, job->backend), job->threads,
      job->prefill_threads, kernels, error);
  if (backend == NULL)
    return NULL;
  engine = runnel_engine_get_within (job->model, backend, job->kv_type,
                                     job->max_memory, on_progress, job,
                                     job->cancellable, error);
  if (engine != NULL)
    {
      g_autoptr (GMemoryMonitor) monitor = g_memory_monitor_dup_default ();

      if (monitor != NULL) /* not every platform has one */
        runnel_engine_follow_memory_monitor (engine, monitor);
    }
  return engine;
}

static void
finish_load (LoadJob *job, LoadState state, RunnelTokenizer *tokenizer,
             RunnelEngine *engine)
{
  GstLmModelHolder *self = job->holder;

  g_mutex_lock (&self->lock);
  self->state = state;
  g_set_object (&self->tokenizer, tokenizer);
  g_set_object (&self->engine, engine);
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);
}

static gpointer
load_thread (gpointer user_data)
{
  g_autoptr (LoadJob) job = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  RunnelTokenizer *tokenizer = NULL;
  const gchar *name = runnel_model_get_name (job->model);
  g_autofree gchar *text = g_strdup_printf ("Loading %s", name);

  post_progress (job, GST_PROGRESS_TYPE_START, text);
  if (job->verify)
    runnel_model_verify (job->model, NULL, NULL, job->cancellable, &error);
  if (error == NULL && job->holder->load != NULL)
    job->holder->load (job->model, on_progress, job, job->cancellable,
                       job->holder->load_data, &error);
  else if (error == NULL)
    tokenizer = runnel_model_get_tokenizer (job->model, &error);
  if (tokenizer != NULL && (job->parts & GST_LM_MODEL_PART_ENGINE) != 0)
    engine = load_engine (job, &error);

  if (error == NULL)
    {
      finish_load (job, LOAD_DONE, tokenizer, engine);
      post_progress (job, GST_PROGRESS_TYPE_COMPLETE, "Loaded");
    }
  else if (g_cancellable_is_cancelled (job->cancellable))
    {
      finish_load (job, LOAD_NONE, NULL, NULL);
      post_progress (job, GST_PROGRESS_TYPE_CANCELED, "Cancelled");
    }
  else
    {
      /* Ours goes out before the one that upstream makes of a flow error. */
      post_progress (job, GST_PROGRESS_TYPE_ERROR, error->message);
      gst_lm_element_post_error (job->holder->element, error);
      finish_load (job, LOAD_FAILED, NULL, NULL);
    }
  return NULL;
}

/* Cancels and joins. Call without the lock. */
static void
stop_load (GstLmModelHolder *self)
{
  GThread *thread;

  g_mutex_lock (&self->lock);
  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  thread = g_steal_pointer (&self->thread);
  g_mutex_unlock (&self->lock);
  if (thread != NULL)
    g_thread_join (thread);
}

/* Call without the lock, and with no loader running. */
static void
start_load (GstLmModelHolder *self, RunnelModel *model)
{
  LoadJob *job = g_new0 (LoadJob, 1);

  g_mutex_lock (&self->lock);
  g_set_object (&self->model, model);
  g_clear_object (&self->tokenizer);
  g_clear_object (&self->engine);
  g_clear_object (&self->cancellable);
  self->cancellable = g_cancellable_new ();
  self->state = LOAD_RUNNING;
  job->holder = self;
  job->model = g_object_ref (model);
  job->cancellable = g_object_ref (self->cancellable);
  job->parts = self->parts;
  job->verify = self->verify;
  job->backend = self->backend;
  job->threads = self->threads;
  job->prefill_threads = self->prefill_threads;
  job->kernels = self->kernels;
  job->kv_type = self->kv_type;
  job->max_memory = self->max_memory;
  self->thread = g_thread_new ("lm-load", load_thread, job);
  g_mutex_unlock (&self->lock);
}

static gboolean
open_own_model (GstLmModelHolder *self)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model = NULL;
  g_autofree gchar *path = NULL;
  RunnelLoadMode mode;

  g_mutex_lock (&self->lock);
  path = g_strdup (self->path);
  mode = self->load_mode;
  self->changed = FALSE;
  g_mutex_unlock (&self->lock);

  if (path != NULL)
    {
      model = gst_lm_model_get (path, mode, &error);
      if (model == NULL)
        {
          gst_lm_element_post_error (self->element, error);
          return FALSE;
        }
    }
  g_mutex_lock (&self->lock);
  g_set_object (&self->own_model, model);
  self->state = LOAD_NONE;
  g_mutex_unlock (&self->lock);
  g_clear_object (&self->checked_model);
  if (model != NULL)
    start_load (self, model);
  return TRUE;
}

static gboolean
prepare_ready_to_paused (GstLmModelHolder *self)
{
  gboolean changed, restart;
  g_autoptr (RunnelModel) model = NULL;

  g_mutex_lock (&self->lock);
  self->flushing = FALSE;
  changed = self->changed;
  if (self->state == LOAD_FAILED)
    self->state = LOAD_NONE; /* another try, with its own message */
  restart = self->own_model != NULL && self->state != LOAD_DONE &&
            (self->state == LOAD_NONE ||
             g_cancellable_is_cancelled (self->cancellable));
  if (restart)
    model = g_object_ref (self->own_model);
  g_mutex_unlock (&self->lock);

  if (changed)
    {
      stop_load (self);
      return open_own_model (self);
    }
  if (restart)
    {
      stop_load (self);
      start_load (self, model);
    }
  return TRUE;
}

static void
close_model (GstLmModelHolder *self)
{
  stop_load (self);
  g_mutex_lock (&self->lock);
  self->state = LOAD_NONE;
  g_clear_object (&self->own_model);
  g_clear_object (&self->model);
  g_clear_object (&self->tokenizer);
  g_clear_object (&self->engine);
  g_clear_object (&self->cancellable);
  g_mutex_unlock (&self->lock);
  g_clear_object (&self->checked_model);
}

/**
 * gst_lm_model_holder_prepare_change:
 * @self: the holder
 * @transition: a state change of the element
 *
 * To be called before chaining up: opens the model in NULL→READY, wakes
 * waiters and cancels loading in PAUSED→READY.
 *
 * Returns: %FALSE when the change must fail; the error is posted
 *
 * Since: 0.1
 */
gboolean
gst_lm_model_holder_prepare_change (GstLmModelHolder *self,
                                    GstStateChange transition)
{
  switch (transition)
    {
    case GST_STATE_CHANGE_NULL_TO_READY:
      return open_own_model (self);
    case GST_STATE_CHANGE_READY_TO_PAUSED:
      return prepare_ready_to_paused (self);
    case GST_STATE_CHANGE_PAUSED_TO_READY:
      gst_lm_model_holder_set_flushing (self, TRUE);
      g_mutex_lock (&self->lock);
      if (self->cancellable != NULL)
        g_cancellable_cancel (self->cancellable);
      g_mutex_unlock (&self->lock);
      return TRUE;
    default:
      return TRUE;
    }
}

/**
 * gst_lm_model_holder_finish_change:
 * @self: the holder
 * @transition: a state change of the element
 *
 * To be called after chaining up: lets go of the model in READY→NULL.
 *
 * Since: 0.1
 */
void
gst_lm_model_holder_finish_change (GstLmModelHolder *self,
                                   GstStateChange transition)
{
  if (transition == GST_STATE_CHANGE_READY_TO_NULL)
    close_model (self);
}

/**
 * gst_lm_model_holder_set_flushing:
 * @self: the holder
 * @flushing: whether waiting is forbidden
 *
 * To be called by the element at the start and the end of a flush.
 *
 * Since: 0.1
 */
void
gst_lm_model_holder_set_flushing (GstLmModelHolder *self, gboolean flushing)
{
  g_mutex_lock (&self->lock);
  self->flushing = flushing;
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);
}

static GstFlowReturn
fail_without_model (GstLmModelHolder *self)
{
  g_autoptr (GError) error = g_error_new (
      RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
      "%s has no model, and no element before or after it names one: set "
      "model=FILE on it or on the pipeline's lmtokenize",
      GST_OBJECT_NAME (self->element));

  gst_lm_element_post_error (self->element, error);
  return GST_FLOW_ERROR;
}

/* The stream's ids must mean the same to the element's own model. */
static gboolean
check_vocabulary (GstLmModelHolder *self, RunnelModel *own,
                  RunnelModel *stream)
{
  g_autoptr (GError) error = NULL;
  RunnelTokenizer *ours, *theirs;

  if (stream == NULL || stream == own || stream == self->checked_model)
    return TRUE;
  ours = runnel_model_get_tokenizer (own, &error);
  theirs = ours != NULL ? runnel_model_get_tokenizer (stream, &error) : NULL;
  if (theirs != NULL && g_strcmp0 (runnel_tokenizer_get_digest (ours),
                                   runnel_tokenizer_get_digest (theirs)) != 0)
    error = g_error_new (RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
                         "vocabulary of %s is %s, that of the stream's model "
                         "%s is %s: use models of one vocabulary, or leave "
                         "%s's property model unset",
                         runnel_model_get_name (own),
                         runnel_tokenizer_get_digest (ours),
                         runnel_model_get_name (stream),
                         runnel_tokenizer_get_digest (theirs),
                         GST_OBJECT_NAME (self->element));
  if (error != NULL)
    {
      gst_lm_element_post_error (self->element, error);
      return FALSE;
    }
  g_set_object (&self->checked_model, stream);
  return TRUE;
}

/* Waits until the model is loaded, failed, or nobody may wait. Returns FALSE
 * when it is not even loading. */
static gboolean
wait_loaded (GstLmModelHolder *self, RunnelModel *model, GstFlowReturn *ret)
{
  gboolean known = TRUE;

  g_mutex_lock (&self->lock);
  while (!self->flushing && self->model == model &&
         self->state == LOAD_RUNNING)
    g_cond_wait (&self->cond, &self->lock);
  if (self->flushing)
    *ret = GST_FLOW_FLUSHING;
  else if (self->model != model || self->state == LOAD_NONE)
    known = FALSE;
  else
    *ret = self->state == LOAD_DONE ? GST_FLOW_OK : GST_FLOW_ERROR;
  g_mutex_unlock (&self->lock);
  return known;
}

/**
 * gst_lm_model_holder_wait:
 * @self: the holder
 * @stream_model: (nullable): the model of the buffer at hand, from its
 *   request meta
 *
 * Waits, in the streaming thread, until the element's own model, or without
 * one the stream's, is loaded.
 *
 * Returns: %GST_FLOW_OK; %GST_FLOW_FLUSHING; or %GST_FLOW_ERROR when loading
 *   failed, when there is no model, or when the vocabularies differ; the error
 *   is posted
 *
 * Since: 0.1
 */
GstFlowReturn
gst_lm_model_holder_wait (GstLmModelHolder *self, RunnelModel *stream_model)
{
  g_autoptr (RunnelModel) own = gst_lm_model_holder_dup_own_model (self);
  RunnelModel *model = own != NULL ? own : stream_model;
  GstFlowReturn ret = GST_FLOW_ERROR;

  if (model == NULL)
    return fail_without_model (self);
  while (!wait_loaded (self, model, &ret))
    {
      GST_DEBUG_OBJECT (self->element, "loading the stream's model %s",
                        runnel_model_get_name (model));
      stop_load (self);
      start_load (self, model);
    }
  if (ret == GST_FLOW_OK && own != NULL &&
      !check_vocabulary (self, own, stream_model))
    ret = GST_FLOW_ERROR;
  return ret;
}

/**
 * gst_lm_model_holder_dup_own_model:
 * @self: the holder
 *
 * The model of the element's own `model` property. May be called from any
 * thread.
 *
 * Returns: (transfer full) (nullable): the model, or %NULL when the property
 *   is unset or the element is below READY
 *
 * Since: 0.1
 */
RunnelModel *
gst_lm_model_holder_dup_own_model (GstLmModelHolder *self)
{
  RunnelModel *model = NULL;

  g_mutex_lock (&self->lock);
  g_set_object (&model, self->own_model);
  g_mutex_unlock (&self->lock);
  return model;
}

/**
 * gst_lm_model_holder_dup_own_tokenizer:
 * @self: the holder
 *
 * The tokenizer of the element's own model. May be called from any thread.
 *
 * Returns: (transfer full) (nullable): the tokenizer, or %NULL while it is not
 *   loaded
 *
 * Since: 0.1
 */
RunnelTokenizer *
gst_lm_model_holder_dup_own_tokenizer (GstLmModelHolder *self)
{
  RunnelTokenizer *tokenizer = NULL;

  g_mutex_lock (&self->lock);
  if (self->own_model != NULL && self->model == self->own_model)
    g_set_object (&tokenizer, self->tokenizer);
  g_mutex_unlock (&self->lock);
  return tokenizer;
}

/**
 * gst_lm_model_holder_set_path:
 * @self: the holder
 * @path: (nullable) (type filename): a model file
 *
 * What the property `model` does, for elements that call it something else.
 *
 * Since: 0.1
 */
void
gst_lm_model_holder_set_path (GstLmModelHolder *self, const gchar *path)
{
  g_mutex_lock (&self->lock);
  g_free (self->path);
  self->path = g_strdup (path);
  self->changed = TRUE;
  g_mutex_unlock (&self->lock);
}

/**
 * gst_lm_model_holder_dup_path:
 * @self: the holder
 *
 * What gst_lm_model_holder_set_path() or the property `model` has set.
 *
 * Returns: (transfer full) (nullable) (type filename): a model file
 *
 * Since: 0.1
 */
gchar *
gst_lm_model_holder_dup_path (GstLmModelHolder *self)
{
  gchar *path;

  g_mutex_lock (&self->lock);
  path = g_strdup (self->path);
  g_mutex_unlock (&self->lock);
  return path;
}

/**
 * gst_lm_model_holder_set_load_func: (skip)
 * @self: the holder, whose element is being made
 * @load: what to do in the thread
 * @user_data: for @load; lives as long as the holder
 *
 * For models that are no whole language models: @load does the slow part, and
 * neither tokenizer nor engine are made.
 *
 * Since: 0.1
 */
void
gst_lm_model_holder_set_load_func (GstLmModelHolder *self,
                                   GstLmModelLoadFunc load, gpointer user_data)
{
  self->load = load;
  self->load_data = user_data;
}

/**
 * gst_lm_model_holder_set_max_memory:
 * @self: the holder
 * @bytes: what an engine may take, weights included; 0 is no limit
 *
 * Limits engines that are loaded from now on: weights over @bytes are refused
 * before memory is taken for them.
 *
 * Since: 0.1
 */
void
gst_lm_model_holder_set_max_memory (GstLmModelHolder *self, guint64 bytes)
{
  g_mutex_lock (&self->lock);
  self->max_memory = bytes;
  g_mutex_unlock (&self->lock);
}

/**
 * gst_lm_model_holder_get_model:
 * @self: the holder
 *
 * The model in use: for the streaming thread, after
 * gst_lm_model_holder_wait() gave %GST_FLOW_OK.
 *
 * Returns: (transfer none) (nullable): the model
 *
 * Since: 0.1
 */
RunnelModel *
gst_lm_model_holder_get_model (GstLmModelHolder *self)
{
  return self->model;
}

/**
 * gst_lm_model_holder_get_tokenizer:
 * @self: the holder
 *
 * The tokenizer in use: for the streaming thread, after
 * gst_lm_model_holder_wait() gave %GST_FLOW_OK.
 *
 * Returns: (transfer none) (nullable): the tokenizer
 *
 * Since: 0.1
 */
RunnelTokenizer *
gst_lm_model_holder_get_tokenizer (GstLmModelHolder *self)
{
  return self->tokenizer;
}

/**
 * gst_lm_model_holder_get_engine:
 * @self: the holder
 *
 * The engine in use: for the streaming thread, after
 * gst_lm_model_holder_wait() gave %GST_FLOW_OK.
 *
 * Returns: (transfer none) (nullable): the engine, or %NULL when the holder
 *   was not asked for one
 *
 * Since: 0.1
 */
RunnelEngine *
gst_lm_model_holder_get_engine (GstLmModelHolder *self)
{
  return self->engine;
}

#define READY_FLAGS \
  (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY)

static void
install_engine_properties (GObjectClass *klass)
{
  gst_type_mark_as_plugin_api (GST_TYPE_LM_BACKEND, 0);
  gst_type_mark_as_plugin_api (GST_TYPE_LM_KERNELS, 0);
  gst_type_mark_as_plugin_api (RUNNEL_TYPE_KV_TYPE, 0);

  g_object_class_install_property (
      klass, PROP_BACKEND,
      g_param_spec_enum ("backend", "Backend", "Who computes",
                         GST_TYPE_LM_BACKEND, DEFAULT_BACKEND, READY_FLAGS));
  g_object_class_install_property (
      klass, PROP_THREADS,
      g_param_spec_uint ("threads", "Threads",
                         "Threads to compute with (0 = by the machine)", 0,
                         GST_LM_MAX_THREADS, 0, READY_FLAGS));
  g_object_class_install_property (
      klass, PROP_PREFILL_THREADS,
      g_param_spec_uint ("prefill-threads", "Prefill threads",
                         "Threads for passes of more than 16 rows (0 = as "
                         "threads, or by the machine)",
                         0, GST_LM_MAX_THREADS, 0, READY_FLAGS));
  g_object_class_install_property (
      klass, PROP_KERNELS,
      g_param_spec_enum ("kernels", "Kernels",
                         "Level of the processor's kernels; all give the "
                         "same bits",
                         GST_TYPE_LM_KERNELS, DEFAULT_KERNELS, READY_FLAGS));
  g_object_class_install_property (
      klass, PROP_KV_TYPE,
      g_param_spec_enum ("kv-type", "KV type",
                         "Type of the keys and values in memory",
                         RUNNEL_TYPE_KV_TYPE, DEFAULT_KV_TYPE, READY_FLAGS));
}

/**
 * gst_lm_model_holder_install_properties: (skip)
 * @klass: an element class
 * @parts: what it needs of a model
 *
 * Installs `model`, `load-mode` and `verify`, and for engines `backend`,
 * `threads`, `prefill-threads`, `kernels` and `kv-type`, with ids from 0x100 on.
 *
 * Since: 0.1
 */
void
gst_lm_model_holder_install_properties (GObjectClass *klass,
                                        GstLmModelParts parts)
{
  gst_type_mark_as_plugin_api (RUNNEL_TYPE_LOAD_MODE, 0);
  g_object_class_install_property (
      klass, PROP_MODEL,
      g_param_spec_string ("model", "Model",
                           "Model file (unset = the model of the stream)",
                           NULL, READY_FLAGS));
  g_object_class_install_property (
      klass, PROP_LOAD_MODE,
      g_param_spec_enum ("load-mode", "Load mode",
                         "How the model file comes into memory; only read "
                         "outlives a file that is cut while it is in use",
                         RUNNEL_TYPE_LOAD_MODE, DEFAULT_LOAD_MODE,
                         READY_FLAGS));
  g_object_class_install_property (
      klass, PROP_VERIFY,
      g_param_spec_boolean ("verify", "Verify",
                            "Compare the model with the digests it holds "
                            "while it is loaded; only packages have them",
                            FALSE, READY_FLAGS));
  if ((parts & GST_LM_MODEL_PART_ENGINE) != 0)
    install_engine_properties (klass);
}

/**
 * gst_lm_model_holder_set_property: (skip)
 * @self: the holder
 * @prop_id: a property's id
 * @value: its value
 *
 * Sets one of the installed properties. It is obeyed from the next change to
 * READY or PAUSED on.
 *
 * Returns: %FALSE when @prop_id is another's
 *
 * Since: 0.1
 */
gboolean
gst_lm_model_holder_set_property (GstLmModelHolder *self, guint prop_id,
                                  const GValue *value)
{
  gboolean known = TRUE;

  g_mutex_lock (&self->lock);
  switch (prop_id)
    {
    case PROP_MODEL:
      g_free (self->path);
      self->path = g_value_dup_string (value);
      break;
    case PROP_LOAD_MODE:
      self->load_mode = g_value_get_enum (value);
      break;
    case PROP_VERIFY:
      self->verify = g_value_get_boolean (value);
      break;
    case PROP_BACKEND:
      self->backend = g_value_get_enum (value);
      break;
    case PROP_THREADS:
      self->threads = g_value_get_uint (value);
      break;
    case PROP_PREFILL_THREADS:
      self->prefill_threads = g_value_get_uint (value);
      break;
    case PROP_KERNELS:
      self->kernels = g_value_get_enum (value);
      break;
    case PROP_KV_TYPE:
      self->kv_type = g_value_get_enum (value);
      break;
    default:
      known = FALSE;
      break;
    }
  self->changed |= known;
  g_mutex_unlock (&self->lock);
  return known;
}

/**
 * gst_lm_model_holder_get_property: (skip)
 * @self: the holder
 * @prop_id: a property's id
 * @value: where its value goes
 *
 * Gets one of the installed properties.
 *
 * Returns: %FALSE when @prop_id is another's
 *
 * Since: 0.1
 */
gboolean
gst_lm_model_holder_get_property (GstLmModelHolder *self, guint prop_id,
                                  GValue *value)
{
  gboolean known = TRUE;

  g_mutex_lock (&self->lock);
  switch (prop_id)
    {
    case PROP_MODEL:
      g_value_set_string (value, self->path);
      break;
    case PROP_LOAD_MODE:
      g_value_set_enum (value, self->load_mode);
      break;
    case PROP_VERIFY:
      g_value_set_boolean (value, self->verify);
      break;
    case PROP_BACKEND:
      g_value_set_enum (value, self->backend);
      break;
    case PROP_THREADS:
      g_value_set_uint (value, self->threads);
      break;
    case PROP_PREFILL_THREADS:
      g_value_set_uint (value, self->prefill_threads);
      break;
    case PROP_KERNELS:
      g_value_set_enum (value, self->kernels);
      break;
    case PROP_KV_TYPE:
      g_value_set_enum (value, self->kv_type);
      break;
    default:
      known = FALSE;
      break;
    }
  g_mutex_unlock (&self->lock);
  return known;
}

static void
gst_lm_model_holder_finalize (GObject *object)
{
  GstLmModelHolder *self = GST_LM_MODEL_HOLDER (object);

  close_model (self);
  g_free (self->path);
  g_cond_clear (&self->cond);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gst_lm_model_holder_parent_class)->finalize (object);
}

static void
gst_lm_model_holder_class_init (GstLmModelHolderClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_lm_model_holder_finalize;
  GST_DEBUG_CATEGORY_INIT (model_holder_debug, "lmmodel", 0,
                           "models of elements");
}

static void
gst_lm_model_holder_init (GstLmModelHolder *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
  self->load_mode = DEFAULT_LOAD_MODE;
  self->backend = DEFAULT_BACKEND;
  self->kernels = DEFAULT_KERNELS;
  self->kv_type = DEFAULT_KV_TYPE;
}

/**
 * gst_lm_model_holder_new:
 * @element: the element that owns the holder
 * @parts: what it needs of a model besides the header
 *
 * An element's model, not opened yet.
 *
 * Returns: (transfer full): the holder
 *
 * Since: 0.1
 */
GstLmModelHolder *
gst_lm_model_holder_new (GstElement *element, GstLmModelParts parts)
{
  GstLmModelHolder *self = g_object_new (GST_TYPE_LM_MODEL_HOLDER, NULL);

  self->element = element;
  self->parts = parts;
  return self;
}
