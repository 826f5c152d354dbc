/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Engines: who shares one, and loading by several at a time.
 */
#include <glib/gstdio.h>

#include "error.h"
#include "model/engine.h"
#include "model/sequence.h"
#include "tiny-model.h"

typedef struct {
  RunnelModel *model;
  RunnelBackend *backend;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autofree char *path = tiny_model_write (&tiny);
  g_autoptr (GError) error = NULL;

  f->model = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_assert_no_error (error);
  g_unlink (path);
  f->backend = runnel_backend_get ("cpu", 1, NULL, &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_object_unref (f->backend);
  g_object_unref (f->model);
}

static RunnelEngine *
get_engine (Fixture *f, RunnelKvType kv_type)
{
  g_autoptr (GError) error = NULL;
  RunnelEngine *engine = runnel_engine_get (f->model, f->backend, kv_type,
      NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  return engine;
}

static void
test_shared (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelEngine) a = get_engine (f, RUNNEL_KV_TYPE_F16);
  g_autoptr (RunnelEngine) b = get_engine (f, RUNNEL_KV_TYPE_F16);
  g_autoptr (RunnelEngine) other = get_engine (f, RUNNEL_KV_TYPE_F32);
  RunnelEngine *gone = a;

  g_assert_true (a == b);
  g_assert_true (a != other);
  g_object_add_weak_pointer (G_OBJECT (gone), (gpointer *) &gone);
  g_clear_object (&a);
  g_assert_nonnull (gone);
  g_clear_object (&b);
  g_assert_null (gone);
  a = get_engine (f, RUNNEL_KV_TYPE_F16);
  g_assert_nonnull (a);
}

/* ---- Several who load ---------------------------------------------------- */

typedef struct {
  Fixture *fixture;
  GMutex mutex;              /* guards what follows */
  GCond changed;
  gboolean loading;
  gboolean go_on;
} Load;

/* Holds the load up until it may go on. */
static void
hold_up (double fraction, gpointer data)
{
  Load *load = data;

  g_mutex_lock (&load->mutex);
  load->loading = TRUE;
  g_cond_broadcast (&load->changed);
  while (!load->go_on)
    g_cond_wait (&load->changed, &load->mutex);
  g_mutex_unlock (&load->mutex);
}

static gpointer
load_slowly (gpointer data)
{
  Load *load = data;
  g_autoptr (GError) error = NULL;
  RunnelEngine *engine = runnel_engine_get (load->fixture->model,
      load->fixture->backend, RUNNEL_KV_TYPE_F16, hold_up, load, NULL, &error);

  g_assert_no_error (error);
  return engine;
}

/* Who waits for another's load can give up; who does not gets its result. */
static void
test_cancelled_wait (Fixture *f, gconstpointer data)
{
  Load load = { f };
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (RunnelEngine) first = NULL, second = NULL;
  g_autoptr (GError) error = NULL;
  GThread *thread;

  g_mutex_init (&load.mutex);
  g_cond_init (&load.changed);
  thread = g_thread_new ("load", load_slowly, &load);
  g_mutex_lock (&load.mutex);
  while (!load.loading)
    g_cond_wait (&load.changed, &load.mutex);
  g_mutex_unlock (&load.mutex);

  g_cancellable_cancel (cancellable);
  g_assert_null (runnel_engine_get (f->model, f->backend, RUNNEL_KV_TYPE_F16,
      NULL, NULL, cancellable, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED);

  g_mutex_lock (&load.mutex);
  load.go_on = TRUE;
  g_cond_broadcast (&load.changed);
  g_mutex_unlock (&load.mutex);
  second = get_engine (f, RUNNEL_KV_TYPE_F16);
  first = g_thread_join (thread);
  g_assert_true (first == second);
  g_cond_clear (&load.changed);
  g_mutex_clear (&load.mutex);
}

static void
test_cancelled_load (Fixture *f, gconstpointer data)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (GError) error = NULL;

  g_cancellable_cancel (cancellable);
  g_assert_null (runnel_engine_get (f->model, f->backend, RUNNEL_KV_TYPE_F16,
      NULL, NULL, cancellable, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED);
  engine = get_engine (f, RUNNEL_KV_TYPE_F16);
  g_assert_nonnull (engine);
}

/* Refused before anything is packed; a limit that suffices is none. */
static void
test_within (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_engine_get_within (f->model, f->backend,
      RUNNEL_KV_TYPE_F16, 1000, NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY);
  g_assert_nonnull (strstr (error->message, "max-memory 1000"));
  g_clear_error (&error);
  engine = runnel_engine_get_within (f->model, f->backend, RUNNEL_KV_TYPE_F16,
      1 << 30, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (engine);
}

static void
cancel_now (double fraction, gpointer data)
{
  g_cancellable_cancel (data);
}

static float *
compute_logits (RunnelEngine *engine, guint n_vocab)
{
  static const gint32 tokens[] = { 1, 50, 3, 200, 77 };
  g_autoptr (RunnelSequence) sequence = runnel_sequence_new (engine, 0, NULL);
  g_autoptr (GError) error = NULL;
  float *logits = g_new (float, n_vocab);

  runnel_sequence_prefill (sequence, tokens, G_N_ELEMENTS (tokens), 0, FALSE,
      NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  runnel_sequence_compute_logits (sequence, logits, n_vocab, &error);
  g_assert_no_error (error);
  return logits;
}

/* A load that is cancelled after every tensor, and taken up again, gives the
 * weights of one that is not: pages that were read in and packed are gone. */
static void
test_resumed_load (Fixture *f, gconstpointer data)
{
  guint n_vocab = runnel_model_get_n_vocab (f->model);
  Fixture whole;
  g_autoptr (RunnelEngine) expected = NULL, engine = NULL;
  g_autofree float *x = NULL, *y = NULL;
  guint n_cancelled = 0;

  set_up (&whole, NULL);
  expected = get_engine (&whole, RUNNEL_KV_TYPE_F16);
  while (engine == NULL) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    g_autoptr (GError) error = NULL;

    engine = runnel_engine_get (f->model, f->backend, RUNNEL_KV_TYPE_F16,
        cancel_now, cancellable, cancellable, &error);
    if (engine == NULL) {
      g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED);
      g_assert_cmpuint (++n_cancelled, <, 1000);
    }
  }
  g_assert_cmpuint (n_cancelled, >, 10);
  x = compute_logits (expected, n_vocab);
  y = compute_logits (engine, n_vocab);
  g_assert_cmpmem (x, n_vocab * sizeof (float), y, n_vocab * sizeof (float));
  g_clear_object (&expected);
  tear_down (&whole, NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/engine/shared", Fixture, NULL, set_up, test_shared, tear_down);
  g_test_add ("/engine/within", Fixture, NULL, set_up, test_within, tear_down);
  g_test_add ("/engine/cancelled-wait", Fixture, NULL, set_up,
      test_cancelled_wait, tear_down);
  g_test_add ("/engine/cancelled-load", Fixture, NULL, set_up,
      test_cancelled_load, tear_down);
  g_test_add ("/engine/resumed-load", Fixture, NULL, set_up,
      test_resumed_load, tear_down);
  return g_test_run ();
}
