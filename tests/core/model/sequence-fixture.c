/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "sequence-fixture.h"

#include <glib/gstdio.h>

#include "tiny-model.h"

#define SEED 7

static void
set_up (SequenceFixture *f, gconstpointer data)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autofree char *path = tiny_model_write (&tiny);
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  g_autoptr (GError) error = NULL;

  f->model = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_assert_no_error (error);
  g_unlink (path);
  backend = runnel_backend_get ("cpu", 2, NULL, &error);
  g_assert_no_error (error);
  f->engine = runnel_engine_get (f->model, backend, GPOINTER_TO_INT (data),
      NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  f->n_vocab = runnel_model_get_n_vocab (f->model);
  for (guint i = 0; i < G_N_ELEMENTS (f->tokens); i++)
    f->tokens[i] = g_rand_int_range (rand, 0, f->n_vocab);
}

static void
tear_down (SequenceFixture *f, gconstpointer data)
{
  RunnelEngineStats stats;

  /* Nothing keeps pages but the cache. */
  runnel_engine_get_stats (f->engine, &stats);
  g_assert_cmpuint (stats.kv_bytes, ==, stats.cache_bytes);
  runnel_engine_clear_cache (f->engine);
  runnel_engine_get_stats (f->engine, &stats);
  g_assert_cmpuint (stats.kv_bytes, ==, 0);
  g_object_add_weak_pointer (G_OBJECT (f->engine), (gpointer *) &f->engine);
  g_object_unref (f->engine);
  g_assert_null (f->engine);
  g_object_add_weak_pointer (G_OBJECT (f->model), (gpointer *) &f->model);
  g_object_unref (f->model);
  g_assert_null (f->model);
}

RunnelSequence *
new_sequence (SequenceFixture *f, guint context_length, guint n_tokens)
{
  g_autoptr (GError) error = NULL;
  RunnelSequence *sequence = runnel_sequence_new (f->engine, context_length,
      &error);

  g_assert_no_error (error);
  runnel_sequence_prefill (sequence, f->tokens, n_tokens, 0, FALSE, NULL, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  return sequence;
}

float *
next_logits (SequenceFixture *f, RunnelSequence *sequence)
{
  g_autoptr (GError) error = NULL;
  float *logits = g_new (float, f->n_vocab);

  runnel_sequence_compute_logits (sequence, logits, f->n_vocab, &error);
  g_assert_no_error (error);
  return logits;
}

void
assert_same_next (SequenceFixture *f, RunnelSequence *a, RunnelSequence *b)
{
  g_autofree float *x = next_logits (f, a);
  g_autofree float *y = next_logits (f, b);

  g_assert_cmpmem (x, f->n_vocab * sizeof (float), y,
      f->n_vocab * sizeof (float));
}

RunnelEngineStats
get_stats (SequenceFixture *f)
{
  RunnelEngineStats stats;

  runnel_engine_get_stats (f->engine, &stats);
  return stats;
}

int
run_sequence_tests (int argc, char **argv, const SequenceTest *tests,
                    guint n_tests)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < 2 * n_tests; i++) {
    const RunnelKvType kv_type = i % 2 ? RUNNEL_KV_TYPE_INT8
        : RUNNEL_KV_TYPE_F16;
    g_autofree char *path = g_strdup_printf ("/sequence/%s/%s",
        i % 2 ? "int8" : "f16", tests[i / 2].name);

    g_test_add (path, SequenceFixture, GINT_TO_POINTER (kv_type), set_up,
        tests[i / 2].run, tear_down);
  }
  return g_test_run ();
}
