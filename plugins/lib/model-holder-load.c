/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* The thread of a GstLmModelHolder that does the slow parts of loading. */
#include "model-holder-private.h"

#include "request.h"

typedef struct {
  GstLmModelHolder *holder; /* joins the thread before it goes */
  RunnelModel *model;
  GCancellable *cancellable;
  GstLmModelParts parts;
  LoadSettings settings;
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
  const LoadSettings *settings = &job->settings;
  g_autoptr (RunnelBackend) backend = NULL;
  RunnelEngine *engine;
  const gchar *kernels = NULL;

  if (settings->kernels != GST_LM_KERNELS_AUTO)
    kernels = enum_nick (GST_TYPE_LM_KERNELS, settings->kernels);
  backend = runnel_backend_get_with_threads (
      enum_nick (GST_TYPE_LM_BACKEND, settings->backend), settings->threads,
      settings->prefill_threads, kernels, error);
  if (backend == NULL)
    return NULL;
  engine = runnel_engine_get_within (job->model, backend, settings->kv_type,
                                     settings->max_memory, on_progress, job,
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
  if (job->settings.verify)
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

void
gst_lm_model_holder_stop_load (GstLmModelHolder *self)
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

void
gst_lm_model_holder_start_load (GstLmModelHolder *self, RunnelModel *model)
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
  job->settings = self->settings;
  self->thread = g_thread_new ("lm-load", load_thread, job);
  g_mutex_unlock (&self->lock);
}
