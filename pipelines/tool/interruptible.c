/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "interruptible.h"

#include <signal.h>
#include <glib-unix.h>

typedef struct {
  InterruptibleFunc work;
  gpointer data;
  GCancellable *cancellable;
  GMainLoop *loop;
} Run;

static gboolean
on_signal (gpointer data)
{
  g_cancellable_cancel (((Run *) data)->cancellable);
  return G_SOURCE_CONTINUE;
}

static gboolean
quit (gpointer loop)
{
  g_main_loop_quit (loop);
  return G_SOURCE_REMOVE;
}

static gpointer
work_in_thread (gpointer data)
{
  Run *run = data;

  run->work (run->cancellable, run->data);
  g_idle_add (quit, run->loop);
  return NULL;
}

void
interruptible_run (InterruptibleFunc work, gpointer data)
{
  static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
  guint sources[G_N_ELEMENTS (signals)];
  Run run = { work, data, g_cancellable_new (),
    g_main_loop_new (NULL, FALSE) };
  GThread *thread;

  for (guint i = 0; i < G_N_ELEMENTS (signals); i++)
    sources[i] = g_unix_signal_add (signals[i], on_signal, &run);
  thread = g_thread_new ("work", work_in_thread, &run);
  g_main_loop_run (run.loop);
  g_thread_join (thread);
  for (guint i = 0; i < G_N_ELEMENTS (signals); i++)
    g_source_remove (sources[i]);
  g_main_loop_unref (run.loop);
  g_object_unref (run.cancellable);
}
