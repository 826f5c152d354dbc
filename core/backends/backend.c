/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "backend.h"

#include "../error.h"
#include "cpu/cpu-backend.h"
#include "ops.h"

G_DEFINE_ABSTRACT_TYPE (RunnelBackend, runnel_backend, G_TYPE_OBJECT)

GType
runnel_kv_type_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_KV_TYPE_F16, "RUNNEL_KV_TYPE_F16", "f16" },
    { RUNNEL_KV_TYPE_F32, "RUNNEL_KV_TYPE_F32", "f32" },
    { RUNNEL_KV_TYPE_INT8, "RUNNEL_KV_TYPE_INT8", "int8" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("RunnelKvType", values));
  return type;
}

static void
runnel_backend_class_init (RunnelBackendClass *klass)
{
}

static void
runnel_backend_init (RunnelBackend *self)
{
}

/**
 * runnel_backend_get:
 * @name: "auto" or "cpu"
 * @n_threads: threads to compute with; 0 chooses by the machine
 * @kernels: (nullable): a kernel level ("scalar", "avx2", ...), or %NULL for
 *   the best
 * @error: return location for a #GError
 *
 * The backend of these properties, shared by all who ask for the same ones.
 *
 * Returns: (transfer full): the backend, or %NULL with
 *   %RUNNEL_ERROR_UNSUPPORTED or %RUNNEL_ERROR_INVALID_ARGUMENT
 *
 * Since: 0.1
 */
RunnelBackend *
runnel_backend_get (const char *name, guint n_threads, const char *kernels,
                    GError **error)
{
  return runnel_backend_get_with_threads (name, n_threads, 0, kernels, error);
}

/**
 * runnel_backend_get_with_threads:
 * @name: "auto" or "cpu"
 * @n_threads: threads for passes of up to 16 rows, which are decoding, drafts
 *   and decisions; 0 chooses by the machine
 * @n_prefill_threads: threads for passes of more rows; 0 is @n_threads, or if
 *   that is 0 too chooses by the machine
 * @kernels: (nullable): a kernel level ("scalar", "avx2", ...), or %NULL for
 *   the best
 * @error: return location for a #GError
 *
 * The backend of these properties, shared by all who ask for the same ones.
 * By the machine means: the physical cores of the fastest clusters, as far as
 * the process's affinity and its container's quota allow, at most 4, and for
 * prefill at most 8.
 *
 * Returns: (transfer full): the backend, or %NULL with
 *   %RUNNEL_ERROR_UNSUPPORTED or %RUNNEL_ERROR_INVALID_ARGUMENT
 *
 * Since: 0.1
 */
RunnelBackend *
runnel_backend_get_with_threads (const char *name, guint n_threads,
                                 guint n_prefill_threads, const char *kernels,
                                 GError **error)
{
  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (g_strcmp0 (name, "auto") == 0 || g_strcmp0 (name, "cpu") == 0)
    return runnel_cpu_backend_get (n_threads, n_prefill_threads, kernels,
        error);
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
      "backend '%s' is not in this build; use 'auto' or 'cpu'", name);
  return NULL;
}

/**
 * runnel_backend_get_name:
 * @self: a backend
 *
 * What kind of backend it is.
 *
 * Returns: "cpu"
 *
 * Since: 0.1
 */
const char *
runnel_backend_get_name (RunnelBackend *self)
{
  g_return_val_if_fail (RUNNEL_IS_BACKEND (self), NULL);
  return RUNNEL_BACKEND_GET_CLASS (self)->name;
}

/**
 * runnel_backend_get_kernels:
 * @self: a backend
 *
 * The level of the kernels in use.
 *
 * Returns: a name such as "scalar" or "avx2"
 *
 * Since: 0.1
 */
const char *
runnel_backend_get_kernels (RunnelBackend *self)
{
  g_return_val_if_fail (RUNNEL_IS_BACKEND (self), NULL);
  return RUNNEL_BACKEND_GET_CLASS (self)->get_kernels (self);
}

/**
 * runnel_backend_get_n_threads:
 * @self: a backend
 *
 * The threads it computes with, the caller's included.
 *
 * Returns: at least 1
 *
 * Since: 0.1
 */
guint
runnel_backend_get_n_threads (RunnelBackend *self)
{
  g_return_val_if_fail (RUNNEL_IS_BACKEND (self), 0);
  return RUNNEL_BACKEND_GET_CLASS (self)->get_n_threads (self);
}

/**
 * runnel_backend_get_n_prefill_threads:
 * @self: a backend
 *
 * The threads it computes with when there are more than 16 rows, the caller's
 * included.
 *
 * Returns: at least 1
 *
 * Since: 0.1
 */
guint
runnel_backend_get_n_prefill_threads (RunnelBackend *self)
{
  g_return_val_if_fail (RUNNEL_IS_BACKEND (self), 0);
  return RUNNEL_BACKEND_GET_CLASS (self)->get_n_prefill_threads (self);
}
