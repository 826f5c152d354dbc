/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "machine.h"

#include <string.h>
#include <sys/utsname.h>

/* What Linux calls the processor; architectures differ in where. */
static char *
get_processor (void)
{
  static const char *const keys[] = { "model name", "Model", "Hardware",
    "cpu model", "uarch" };
  g_autofree char *text = NULL;
  struct utsname system;

  g_file_get_contents ("/proc/cpuinfo", &text, NULL, NULL);
  for (guint i = 0; text != NULL && i < G_N_ELEMENTS (keys); i++) {
    g_autofree char *start = g_strdup_printf ("\n%s", keys[i]);
    const char *at = strstr (text, start);
    const char *colon = at ? strchr (at + 1, ':') : NULL;

    if (colon != NULL)
      return g_strstrip (g_strndup (colon + 1, strcspn (colon + 1, "\n")));
  }
  return g_strdup (uname (&system) == 0 ? system.machine : "unknown");
}

char *
machine_describe (RunnelBackend *backend)
{
  g_autofree char *processor = get_processor ();

  return g_strdup_printf ("%s, %u cores; %u threads, kernels %s", processor,
      g_get_num_processors (), runnel_backend_get_n_threads (backend),
      runnel_backend_get_kernels (backend));
}

void
machine_add_json (JsonOutput *json, RunnelBackend *backend)
{
  g_autofree char *processor = get_processor ();

  json_begin_object (json, "machine");
  json_add_string (json, "processor", processor, -1);
  json_add_uint (json, "cores", g_get_num_processors ());
  json_add_string (json, "backend", runnel_backend_get_name (backend), -1);
  json_add_uint (json, "threads", runnel_backend_get_n_threads (backend));
  json_add_uint (json, "prefill_threads",
      runnel_backend_get_n_prefill_threads (backend));
  json_add_string (json, "kernels", runnel_backend_get_kernels (backend), -1);
  json_end_object (json);
}
