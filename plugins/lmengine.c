/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "lmengine.h"

static const char *
get_nick (GType type, gint value)
{
  g_autoptr (GEnumClass) klass = g_type_class_ref (type);

  return g_enum_get_value (klass, value)->value_nick;
}

/* The engine of the choice, or that of the state. */
static RunnelEngine *
get_engine (const GstLmEngineChoice *self, RunnelSequence *sequence,
            GCancellable *cancellable, GError **error)
{
  RunnelEngine *engine = runnel_sequence_get_engine (sequence);
  RunnelBackend *current = runnel_engine_get_backend (engine);
  g_autoptr (RunnelBackend) backend = NULL;

  if (self->backend == GST_LM_BACKEND_AUTO
      && self->kernels == GST_LM_KERNELS_AUTO && self->threads == 0)
    return g_object_ref (engine);
  backend = runnel_backend_get_with_threads (
      self->backend == GST_LM_BACKEND_AUTO ? runnel_backend_get_name (current)
      : get_nick (GST_TYPE_LM_BACKEND, self->backend),
      self->threads ? self->threads : runnel_backend_get_n_threads (current),
      runnel_backend_get_n_prefill_threads (current),
      self->kernels == GST_LM_KERNELS_AUTO ?
      runnel_backend_get_kernels (current)
      : get_nick (GST_TYPE_LM_KERNELS, self->kernels), error);
  if (!backend)
    return NULL;
  return runnel_engine_get (runnel_engine_get_model (engine), backend,
      runnel_engine_get_kv_type (engine), NULL, NULL, cancellable, error);
}

RunnelSequence *
gst_lm_engine_choice_move (const GstLmEngineChoice *self,
                           RunnelSequence *taken, const GPtrArray *drafters,
                           GCancellable *cancellable, GError **error)
{
  g_autoptr (RunnelSequence) sequence = taken;
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (GBytes) image = NULL;

  engine = get_engine (self, sequence, cancellable, error);
  if (!engine)
    return NULL;
  if (engine == runnel_sequence_get_engine (sequence))
    return g_steal_pointer (&sequence);
  image = runnel_sequence_serialize (sequence, error);
  g_clear_object (&sequence);
  if (image)
    sequence = runnel_sequence_deserialize (engine, image, "state", error);
  for (guint i = 0; sequence && drafters && i < drafters->len; i++)
    if (!runnel_sequence_attach (sequence, g_ptr_array_index (drafters, i),
            error))
      return NULL;
  return g_steal_pointer (&sequence);
}

void
gst_lm_engine_choice_install (GObjectClass *klass, guint first_id)
{
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS
      | GST_PARAM_MUTABLE_PLAYING;

  g_object_class_install_property (klass, first_id + GST_LM_ENGINE_BACKEND,
      g_param_spec_enum ("backend", "Backend",
          "Who computes (auto: who made the state); a state of another "
          "backend is copied", GST_TYPE_LM_BACKEND, GST_LM_BACKEND_AUTO,
          flags));
  g_object_class_install_property (klass, first_id + GST_LM_ENGINE_THREADS,
      g_param_spec_uint ("threads", "Threads",
          "Threads to compute with (0: as the state was made)", 0,
          GST_LM_MAX_THREADS, 0, flags));
  g_object_class_install_property (klass, first_id + GST_LM_ENGINE_KERNELS,
      g_param_spec_enum ("kernels", "Kernels",
          "Level of the processor's kernels (auto: as the state was made)",
          GST_TYPE_LM_KERNELS, GST_LM_KERNELS_AUTO, flags));
}

void
gst_lm_engine_choice_set (GstLmEngineChoice *self, guint property,
                          const GValue *value)
{
  switch (property) {
    case GST_LM_ENGINE_BACKEND:
      self->backend = g_value_get_enum (value);
      break;
    case GST_LM_ENGINE_THREADS:
      self->threads = g_value_get_uint (value);
      break;
    default:
      self->kernels = g_value_get_enum (value);
  }
}

void
gst_lm_engine_choice_get (const GstLmEngineChoice *self, guint property,
                          GValue *value)
{
  switch (property) {
    case GST_LM_ENGINE_BACKEND:
      g_value_set_enum (value, self->backend);
      break;
    case GST_LM_ENGINE_THREADS:
      g_value_set_uint (value, self->threads);
      break;
    default:
      g_value_set_enum (value, self->kernels);
  }
}
