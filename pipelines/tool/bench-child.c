/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "bench-child.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <runnel.h>

#include "formats/json.h"

static char **
make_arguments (const Options *options, const char *prompt, guint max_tokens,
                gboolean json)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_autofree char *threads
      = g_strdup_printf ("--threads=%d", options->threads);
  g_autofree char *prefill_threads
      = g_strdup_printf ("--prefill-threads=%d", options->prefill_threads);
  g_autofree char *length = g_strdup_printf ("--max-tokens=%u", max_tokens);
  g_autofree char *kernels = g_strdup_printf ("--kernels=%s",
      options->kernels ? options->kernels : "auto");
  g_autofree char *kv_type = g_strdup_printf ("--kv-type=%s",
      options->kv_type ? options->kv_type : "f16");
  g_autofree char *load_mode = g_strdup_printf ("--load-mode=%s",
      options->load_mode ? options->load_mode : "auto");

  g_strv_builder_add_many (builder, "/proc/self/exe", "run", "-m",
      options->model, "--temperature=0", "--ignore-eos=true", threads,
      prefill_threads, length, kernels, kv_type, load_mode, NULL);
  if (json)
    g_strv_builder_add (builder, "--json");
  g_strv_builder_add_many (builder, "--", "complete", prompt, NULL);
  return g_strv_builder_end (builder);
}

/* All that comes; *ret_first is when the first of it came, or the end. */
static char *
read_output (int fd, gint64 *ret_first)
{
  g_autoptr (GString) text = g_string_new (NULL);
  char block[4096];
  gssize n;

  *ret_first = 0;
  do {
    do
      n = read (fd, block, sizeof block);
    while (n < 0 && errno == EINTR);
    if (*ret_first == 0)
      *ret_first = g_get_monotonic_time ();
    if (n > 0)
      g_string_append_len (text, block, n);
  } while (n > 0);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static void
read_usage (const char *text, ChildRun *ret)
{
  g_autoptr (RunnelJson) json = runnel_json_parse (text, strlen (text),
      "the output of runnel run", NULL);
  const RunnelJsonNode *reply = NULL;

  if (json != NULL)
    reply = runnel_json_node_member (runnel_json_root (json), "replies");
  if (reply == NULL || runnel_json_node_size (reply) == 0)
    return;
  reply = runnel_json_node_item (reply, 0);
  ret->prompt_tokens = runnel_json_node_double (
      runnel_json_node_member (reply, "prompt_tokens"));
  ret->completion_tokens = runnel_json_node_double (
      runnel_json_node_member (reply, "completion_tokens"));
}

gboolean
bench_child_run (const Options *options, const char *prompt,
                 guint max_tokens, gboolean json, ChildRun *ret,
                 GError **error)
{
  g_auto (GStrv) arguments
      = make_arguments (options, prompt, max_tokens, json);
  g_autofree char *self = g_file_read_link ("/proc/self/exe", error);
  g_autofree char *output = NULL;
  struct rusage usage;
  gint64 started, first;
  int fd, status;
  GPid pid;

  if (self == NULL)
    return FALSE;
  g_free (arguments[0]);
  arguments[0] = g_steal_pointer (&self);
  started = g_get_monotonic_time ();
  if (!g_spawn_async_with_pipes (NULL, arguments, NULL,
          G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid, NULL, &fd, NULL,
          error))
    return FALSE;
  output = read_output (fd, &first);
  close (fd);
  while (wait4 (pid, &status, 0, &usage) < 0 && errno == EINTR)
    ;
  g_spawn_close_pid (pid);
  if (!WIFEXITED (status) || WEXITSTATUS (status) != 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "'runnel run', started to measure it, failed");
    return FALSE;
  }
  memset (ret, 0, sizeof *ret);
  ret->first_byte = (first - started) / 1e6;
  ret->peak_bytes = (guint64) usage.ru_maxrss * 1024;
  if (json)
    read_usage (output, ret);
  return TRUE;
}
