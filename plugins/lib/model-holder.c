/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "model-holder-private.h"

#include "request.h"

GST_DEBUG_CATEGORY_STATIC (model_holder_debug);
#define GST_CAT_DEFAULT model_holder_debug

G_DEFINE_FINAL_TYPE (GstLmModelHolder, gst_lm_model_holder, G_TYPE_OBJECT)

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
    gst_lm_model_holder_start_load (self, model);
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
      gst_lm_model_holder_stop_load (self);
      return open_own_model (self);
    }
  if (restart)
    {
      gst_lm_model_holder_stop_load (self);
      gst_lm_model_holder_start_load (self, model);
    }
  return TRUE;
}

static void
close_model (GstLmModelHolder *self)
{
  gst_lm_model_holder_stop_load (self);
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
      gst_lm_model_holder_stop_load (self);
      gst_lm_model_holder_start_load (self, model);
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
  self->settings.max_memory = bytes;
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
  gst_lm_model_holder_init_properties (self);
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
