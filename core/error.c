/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "error-private.h"

G_DEFINE_QUARK (runnel-error-quark, runnel_error)

GType
runnel_error_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_ERROR_IO, "RUNNEL_ERROR_IO", "io" },
    { RUNNEL_ERROR_TRUNCATED, "RUNNEL_ERROR_TRUNCATED", "truncated" },
    { RUNNEL_ERROR_MALFORMED, "RUNNEL_ERROR_MALFORMED", "malformed" },
    { RUNNEL_ERROR_UNSUPPORTED, "RUNNEL_ERROR_UNSUPPORTED", "unsupported" },
    { RUNNEL_ERROR_LIMIT, "RUNNEL_ERROR_LIMIT", "limit" },
    { RUNNEL_ERROR_MISMATCH, "RUNNEL_ERROR_MISMATCH", "mismatch" },
    { RUNNEL_ERROR_CORRUPT, "RUNNEL_ERROR_CORRUPT", "corrupt" },
    { RUNNEL_ERROR_INVALID_ARGUMENT, "RUNNEL_ERROR_INVALID_ARGUMENT",
      "invalid-argument" },
    { RUNNEL_ERROR_TEMPLATE, "RUNNEL_ERROR_TEMPLATE", "template" },
    { RUNNEL_ERROR_CONTEXT_OVERFLOW, "RUNNEL_ERROR_CONTEXT_OVERFLOW",
      "context-overflow" },
    { RUNNEL_ERROR_NOT_ENOUGH_MEMORY, "RUNNEL_ERROR_NOT_ENOUGH_MEMORY",
      "not-enough-memory" },
    { RUNNEL_ERROR_BAD_LOGITS, "RUNNEL_ERROR_BAD_LOGITS", "bad-logits" },
    { RUNNEL_ERROR_NO_VALID_TOKEN, "RUNNEL_ERROR_NO_VALID_TOKEN",
      "no-valid-token" },
    { RUNNEL_ERROR_CANCELLED, "RUNNEL_ERROR_CANCELLED", "cancelled" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("RunnelError", values));
  return type;
}

void
runnel_set_error_about (GError **error, RunnelError code, const char *subject,
                        const char *format, ...)
{
  g_autofree char *what = NULL;
  va_list args;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, RUNNEL_ERROR, code, "%s: %s", subject, what);
}
