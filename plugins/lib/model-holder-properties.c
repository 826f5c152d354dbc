/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* The properties that a GstLmModelHolder gives its element. */
#include "model-holder-private.h"

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
      self->settings.verify = g_value_get_boolean (value);
      break;
    case PROP_BACKEND:
      self->settings.backend = g_value_get_enum (value);
      break;
    case PROP_THREADS:
      self->settings.threads = g_value_get_uint (value);
      break;
    case PROP_PREFILL_THREADS:
      self->settings.prefill_threads = g_value_get_uint (value);
      break;
    case PROP_KERNELS:
      self->settings.kernels = g_value_get_enum (value);
      break;
    case PROP_KV_TYPE:
      self->settings.kv_type = g_value_get_enum (value);
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
      g_value_set_boolean (value, self->settings.verify);
      break;
    case PROP_BACKEND:
      g_value_set_enum (value, self->settings.backend);
      break;
    case PROP_THREADS:
      g_value_set_uint (value, self->settings.threads);
      break;
    case PROP_PREFILL_THREADS:
      g_value_set_uint (value, self->settings.prefill_threads);
      break;
    case PROP_KERNELS:
      g_value_set_enum (value, self->settings.kernels);
      break;
    case PROP_KV_TYPE:
      g_value_set_enum (value, self->settings.kv_type);
      break;
    default:
      known = FALSE;
      break;
    }
  g_mutex_unlock (&self->lock);
  return known;
}

void
gst_lm_model_holder_init_properties (GstLmModelHolder *self)
{
  self->load_mode = DEFAULT_LOAD_MODE;
  self->settings.backend = DEFAULT_BACKEND;
  self->settings.kernels = DEFAULT_KERNELS;
  self->settings.kv_type = DEFAULT_KV_TYPE;
}
