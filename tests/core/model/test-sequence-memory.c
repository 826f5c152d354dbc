/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What sequences take of an engine's memory: limits, warnings of the system,
 * and what the prefix cache keeps and saves. Work is judged by counters.
 */
#include <string.h>

#include "error.h"
#include "sequence-fixture.h"

/* What counts beside keys and values. */
static guint64
get_other (SequenceFixture *f)
{
  RunnelEngineStats stats = get_stats (f);

  return stats.weight_bytes + stats.scratch_bytes;
}

static void
test_max_memory (SequenceFixture *f, gconstpointer data)
{
  guint64 page = runnel_page_pool_page_bytes (
      runnel_engine_get_pool (f->engine));
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 64);
  g_autoptr (RunnelSequence) cached = new_sequence (f, 0, 32);
  g_autoptr (GError) error = NULL;

  runnel_engine_cache_sequence (f->engine, cached);
  g_clear_object (&cached);
  g_assert_cmpuint (get_stats (f).kv_bytes, ==, 3 * page);
  runnel_engine_set_max_memory (f->engine, get_other (f) + 3 * page);
  /* The cache gives way first. */
  runnel_sequence_prefill (a, f->tokens, 20, 0, FALSE, NULL, NULL, NULL, NULL,
      &error);
  g_assert_no_error (error);
  g_assert_cmpuint (get_stats (f).cache_bytes, ==, 0);
  g_assert_false (runnel_sequence_prefill (a, f->tokens, 30, 0, FALSE, NULL,
      NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY);
  g_assert_nonnull (strstr (error->message, "max-memory"));
  g_assert_cmpuint (runnel_sequence_get_length (a), ==, 84);
  g_assert_cmpuint (get_stats (f).kv_bytes, ==, 3 * page);
  /* What is left of the last page can still be used. */
  g_clear_error (&error);
  runnel_sequence_prefill (a, f->tokens, 12, 0, FALSE, NULL, NULL, NULL, NULL,
      &error);
  g_assert_no_error (error);
}

/* Weights and scratch count: a batch whose rows need more scratch than is left
 * is refused, though its keys and values have room. */
static void
test_scratch_counts (SequenceFixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 8);
  g_autoptr (GError) error = NULL;
  guint64 other = get_other (f), kv = get_stats (f).kv_bytes;

  g_assert_cmpuint (get_stats (f).weight_bytes, >, 0);
  g_assert_cmpuint (get_stats (f).scratch_bytes, >, 0);
  runnel_engine_set_max_memory (f->engine, other + kv + 1000);
  g_assert_false (runnel_sequence_prefill (a, f->tokens, 20, 20, FALSE, NULL,
      NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY);
  g_assert_nonnull (strstr (error->message, "max-memory"));
  g_assert_cmpuint (get_other (f), ==, other);
  g_clear_error (&error);
  /* In small chunks it goes. */
  runnel_sequence_prefill (a, f->tokens, 20, 8, FALSE, NULL, NULL, NULL, NULL,
      &error);
  g_assert_no_error (error);
  g_assert_cmpuint (get_other (f), ==, other);
}

/* ---- Low memory ---------------------------------------------------------- */

/* Stands in for the system's monitor. */
#define TEST_TYPE_MONITOR (test_monitor_get_type ())
G_DECLARE_FINAL_TYPE (TestMonitor, test_monitor, TEST, MONITOR, GObject)

struct _TestMonitor {
  GObject parent_instance;
};

static gboolean
test_monitor_init_sync (GInitable *initable, GCancellable *cancellable,
                        GError **error)
{
  return TRUE;
}

static void
test_monitor_initable_init (GInitableIface *iface)
{
  iface->init = test_monitor_init_sync;
}

static void
test_monitor_monitor_init (GMemoryMonitorInterface *iface)
{
}

G_DEFINE_TYPE_WITH_CODE (TestMonitor, test_monitor, G_TYPE_OBJECT,
    G_IMPLEMENT_INTERFACE (G_TYPE_INITABLE, test_monitor_initable_init)
    G_IMPLEMENT_INTERFACE (G_TYPE_MEMORY_MONITOR, test_monitor_monitor_init))

static void
test_monitor_class_init (TestMonitorClass *klass)
{
}

static void
test_monitor_init (TestMonitor *self)
{
}

static void
test_low_memory (SequenceFixture *f, gconstpointer data)
{
  g_autoptr (GMemoryMonitor) first = g_object_new (TEST_TYPE_MONITOR, NULL);
  g_autoptr (GMemoryMonitor) second = g_object_new (TEST_TYPE_MONITOR, NULL);
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 70);
  guint64 scratch;

  runnel_engine_follow_memory_monitor (f->engine, first);
  runnel_engine_follow_memory_monitor (f->engine, second);
  runnel_engine_follow_memory_monitor (f->engine, second);
  runnel_engine_cache_sequence (f->engine, a);
  g_signal_emit_by_name (first, "low-memory-warning",
      G_MEMORY_MONITOR_WARNING_LEVEL_CRITICAL);
  g_assert_cmpuint (get_stats (f).cache_bytes, >, 0);
  scratch = get_stats (f).scratch_bytes;
  g_signal_emit_by_name (second, "low-memory-warning",
      G_MEMORY_MONITOR_WARNING_LEVEL_LOW);
  g_assert_cmpuint (get_stats (f).cache_bytes, ==, 0);
  g_assert_cmpuint (get_stats (f).scratch_bytes, ==, scratch);
  g_signal_emit_by_name (second, "low-memory-warning",
      G_MEMORY_MONITOR_WARNING_LEVEL_MEDIUM);
  g_assert_cmpuint (get_stats (f).scratch_bytes, <, scratch);
  /* The states in use go on. */
  {
    g_autoptr (RunnelSequence) cold = new_sequence (f, 0, 70);

    assert_same_next (f, a, cold);
  }
}

/* ---- The prefix cache ---------------------------------------------------- */

static void
test_cache_counts (SequenceFixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = runnel_sequence_new (f->engine, 0, NULL);
  g_autoptr (RunnelSequence) b = runnel_sequence_new (f->engine, 0, NULL);
  g_autoptr (RunnelSequence) c = runnel_sequence_new (f->engine, 0, NULL);
  g_autoptr (GError) error = NULL;
  guint64 rows = get_stats (f).rows;
  gsize cached;

  runnel_sequence_prefill (a, f->tokens, 50, 0, TRUE, NULL, NULL, NULL,
      &cached, &error);
  g_assert_cmpuint (cached, ==, 0);
  /* The same prompt: nothing is forwarded, its hidden row is kept. */
  runnel_sequence_prefill (b, f->tokens, 50, 0, TRUE, NULL, NULL, NULL,
      &cached, &error);
  g_assert_cmpuint (cached, ==, 50);
  g_assert_cmpuint (get_stats (f).rows, ==, rows + 50);
  assert_same_next (f, a, b);
  /* A beginning of it: the last token is forwarded again. */
  runnel_sequence_prefill (c, f->tokens, 30, 0, TRUE, NULL, NULL, NULL,
      &cached, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (cached, ==, 29);
  g_assert_cmpuint (get_stats (f).rows, ==, rows + 51);
  g_assert_cmpuint (get_stats (f).cached_rows, ==, 79);
}

static void
test_cache_budget (SequenceFixture *f, gconstpointer data)
{
  guint64 page = runnel_page_pool_page_bytes (
      runnel_engine_get_pool (f->engine));
  g_autoptr (GError) error = NULL;
  gsize cached;

  runnel_engine_set_cache_budget (f->engine, 2 * page);
  for (guint i = 0; i < 4; i++) {
    g_autoptr (RunnelSequence) a = runnel_sequence_new (f->engine, 0, NULL);

    runnel_sequence_prefill (a, f->tokens + i, 32, 0, TRUE, NULL, NULL, NULL,
        &cached, &error);
    g_assert_no_error (error);
    g_assert_cmpuint (get_stats (f).cache_bytes, <=, 2 * page);
  }
  {
    g_autoptr (RunnelSequence) a = runnel_sequence_new (f->engine, 0, NULL);
    g_autoptr (RunnelSequence) b = runnel_sequence_new (f->engine, 0, NULL);

    /* The last is there, the first is gone. */
    runnel_sequence_prefill (a, f->tokens + 3, 32, 0, TRUE, NULL, NULL, NULL,
        &cached, &error);
    g_assert_cmpuint (cached, ==, 32);
    runnel_sequence_prefill (b, f->tokens, 32, 0, TRUE, NULL, NULL, NULL,
        &cached, &error);
    g_assert_cmpuint (cached, ==, 0);
  }
  runnel_engine_set_cache_budget (f->engine, 0);
  g_assert_cmpuint (get_stats (f).cache_bytes, ==, 0);
}

/* A history over the whole budget does not push out what fits. */
static void
test_cache_too_large (SequenceFixture *f, gconstpointer data)
{
  guint64 page = runnel_page_pool_page_bytes (
      runnel_engine_get_pool (f->engine));
  g_autoptr (RunnelSequence) a = runnel_sequence_new (f->engine, 0, NULL);
  g_autoptr (RunnelSequence) b = runnel_sequence_new (f->engine, 0, NULL);
  g_autoptr (RunnelSequence) c = runnel_sequence_new (f->engine, 0, NULL);
  g_autoptr (GError) error = NULL;
  gsize cached;

  runnel_engine_set_cache_budget (f->engine, 2 * page);
  runnel_sequence_prefill (a, f->tokens, 32, 0, TRUE, NULL, NULL, NULL, NULL,
      &error);
  g_assert_no_error (error);
  runnel_sequence_prefill (b, f->tokens + 100, 3 * 32, 0, TRUE, NULL, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  runnel_sequence_prefill (c, f->tokens, 32, 0, TRUE, NULL, NULL, NULL,
      &cached, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (cached, ==, 32);
}

/* Where the last row must be computed again and there is no memory for it, no
 * token is lost. */
static void
test_logits_without_memory (SequenceFixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 40);
  g_autoptr (RunnelSequence) other = runnel_sequence_fork (a);
  g_autoptr (RunnelSequence) cold = new_sequence (f, 0, 39);
  g_autofree float *logits = g_new (float, f->n_vocab);
  g_autoptr (GError) error = NULL;
  guint64 bytes = get_stats (f).kv_bytes;

  runnel_sequence_truncate (a, 39, &error);
  g_assert_no_error (error);
  runnel_engine_set_max_memory (f->engine, get_other (f) + bytes);
  g_assert_false (runnel_sequence_compute_logits (a, logits, f->n_vocab,
      &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY);
  g_assert_cmpuint (runnel_sequence_get_length (a), ==, 39);
  runnel_engine_set_max_memory (f->engine, 0);
  assert_same_next (f, a, cold);
  g_assert_cmpuint (get_stats (f).kv_bytes, ==, bytes);
}

int
main (int argc, char **argv)
{
  static const SequenceTest tests[] = {
    { "max-memory", test_max_memory },
    { "scratch-counts", test_scratch_counts },
    { "low-memory", test_low_memory },
    { "cache-counts", test_cache_counts },
    { "cache-budget", test_cache_budget },
    { "cache-too-large", test_cache_too_large },
    { "logits-without-memory", test_logits_without_memory },
  };

  return run_sequence_tests (argc, argv, tests, G_N_ELEMENTS (tests));
}
