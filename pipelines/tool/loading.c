/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "loading.h"

#include "report.h"

gboolean
loading_check_model (const Options *options, GError **error)
{
  if (options->model != NULL && *options->model != '\0')
    return TRUE;
  report_set_usage (error, "no model: name one by -m FILE or the environment "
      "variable RUNNEL_MODEL");
  return FALSE;
}

static gboolean
get_load_mode (const Options *options, RunnelLoadMode *ret_mode,
               GError **error)
{
  g_autoptr (GEnumClass) modes = g_type_class_ref (RUNNEL_TYPE_LOAD_MODE);
  const char *nick = options->load_mode != NULL ? options->load_mode : "auto";
  const GEnumValue *value = g_enum_get_value_by_nick (modes, nick);

  if (value == NULL) {
    report_set_usage (error, "--load-mode: '%s' is none of auto, map and "
        "read", nick);
    return FALSE;
  }
  *ret_mode = value->value;
  return TRUE;
}

static gboolean
verify (RunnelModel *model, GError **error)
{
  gboolean good = runnel_model_verify (model, report_progress_fraction,
      "Verifying the model", NULL, error);

  report_progress_end ();
  return good;
}

RunnelModel *
loading_open_model (const Options *options, GError **error)
{
  g_autoptr (RunnelModel) model = NULL;
  RunnelLoadMode mode;

  if (!loading_check_model (options, error)
      || !get_load_mode (options, &mode, error))
    return NULL;
  model = runnel_model_open (options->model, mode, error);
  if (model == NULL || (options->verify && !verify (model, error)))
    return NULL;
  return g_steal_pointer (&model);
}

RunnelBackend *
loading_get_backend (const Options *options, GError **error)
{
  const char *kernels = g_strcmp0 (options->kernels, "auto") == 0 ? NULL
      : options->kernels;

  return runnel_backend_get_with_threads ("auto", options->threads,
      options->prefill_threads, kernels, error);
}

gboolean
loading_get_kv_type (const Options *options, RunnelKvType *ret_type)
{
  g_autoptr (GEnumClass) types = g_type_class_ref (RUNNEL_TYPE_KV_TYPE);
  const GEnumValue *value = g_enum_get_value_by_nick (types,
      options->kv_type != NULL ? options->kv_type : "f16");

  if (value != NULL && ret_type != NULL)
    *ret_type = value->value;
  return value != NULL;
}

RunnelEngine *
loading_get_engine (const Options *options, RunnelModel *model,
                    GError **error)
{
  g_autoptr (RunnelBackend) backend = loading_get_backend (options, error);
  RunnelKvType kv_type = RUNNEL_KV_TYPE_F16;
  RunnelEngine *engine;

  if (backend == NULL)
    return NULL;
  loading_get_kv_type (options, &kv_type);
  engine = runnel_engine_get (model, backend, kv_type,
      report_progress_fraction, "Loading the model", NULL, error);
  report_progress_end ();
  return engine;
}
