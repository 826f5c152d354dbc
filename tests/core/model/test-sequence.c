/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Sequences: forks, joins, shifts, limits, saved states, and what the prefix
 * cache saves. Work is judged by counters.
 */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "model/engine-private.h"
#include "tiny-model.h"

#define SEED 7

typedef struct {
  RunnelModel *model;
  RunnelEngine *engine;
  guint n_vocab;
  gint32 tokens[512];
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
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
tear_down (Fixture *f, gconstpointer data)
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

static RunnelSequence *
new_sequence (Fixture *f, guint context_length, guint n_tokens)
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

static float *
next_logits (Fixture *f, RunnelSequence *sequence)
{
  g_autoptr (GError) error = NULL;
  float *logits = g_new (float, f->n_vocab);

  runnel_sequence_compute_logits (sequence, logits, f->n_vocab, &error);
  g_assert_no_error (error);
  return logits;
}

static void
assert_same_next (Fixture *f, RunnelSequence *a, RunnelSequence *b)
{
  g_autofree float *x = next_logits (f, a);
  g_autofree float *y = next_logits (f, b);

  g_assert_cmpmem (x, f->n_vocab * sizeof (float), y,
      f->n_vocab * sizeof (float));
}

static RunnelEngineStats
get_stats (Fixture *f)
{
  RunnelEngineStats stats;

  runnel_engine_get_stats (f->engine, &stats);
  return stats;
}

static void
test_fork_shares_pages (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 40);
  guint64 before = get_stats (f).kv_bytes;
  g_autoptr (RunnelSequence) b = runnel_sequence_fork (a);
  g_autoptr (RunnelSequence) cold = new_sequence (f, 0, 45);
  g_autoptr (GError) error = NULL;
  guint64 page = runnel_page_pool_page_bytes (
      runnel_engine_get_pool (f->engine));

  g_assert_cmpuint (get_stats (f).kv_bytes, ==, before + 2 * page);
  /* The first to append fills the shared page, the second gets its own. */
  runnel_sequence_prefill (a, f->tokens + 40, 5, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (get_stats (f).kv_bytes, ==, before + 2 * page);
  runnel_sequence_prefill (b, f->tokens + 100, 9, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (get_stats (f).kv_bytes, ==, before + 3 * page);
  assert_same_next (f, a, cold);
  g_assert_cmpuint (runnel_sequence_get_length (b), ==, 49);
}

static void
test_logits_without_forward (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 40);
  guint64 rows = get_stats (f).rows;
  g_autofree float *first = next_logits (f, a);
  g_autofree float *second = NULL;
  g_autoptr (GError) error = NULL;

  /* The hidden row is there: no row is forwarded. */
  g_assert_cmpuint (get_stats (f).rows, ==, rows);
  runnel_sequence_truncate (a, 39, &error);
  g_assert_no_error (error);
  runnel_sequence_prefill (a, f->tokens + 39, 1, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  second = next_logits (f, a);
  g_assert_cmpmem (first, f->n_vocab * 4, second, f->n_vocab * 4);
  /* After truncate the last token is forwarded again. */
  runnel_sequence_truncate (a, 20, &error);
  rows = get_stats (f).rows;
  g_free (g_steal_pointer (&second));
  second = next_logits (f, a);
  g_assert_cmpuint (get_stats (f).rows, ==, rows + 1);
  g_assert_cmpuint (runnel_sequence_get_length (a), ==, 20);
}

static void
test_truncate_errors (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 10);
  g_autoptr (GError) error = NULL;

  g_assert_false (runnel_sequence_truncate (a, 11, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  g_assert_cmpuint (runnel_sequence_get_length (a), ==, 10);
}

static void
test_join (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 30);
  g_autoptr (RunnelSequence) b = runnel_sequence_fork (a);
  RunnelSequence *forks[2] = { a, b };
  g_autoptr (RunnelSequence) joined = NULL, alone = NULL;
  g_autoptr (GError) error = NULL;
  guint64 rows, kv;

  runnel_sequence_prefill (a, f->tokens + 50, 7, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  runnel_sequence_prefill (b, f->tokens + 70, 4, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  rows = get_stats (f).rows;
  kv = get_stats (f).kv_bytes;
  joined = runnel_sequence_join (forks, 2, 30, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (get_stats (f).rows, ==, rows);
  g_assert_cmpuint (get_stats (f).kv_bytes, ==, kv);
  g_assert_cmpuint (runnel_sequence_get_length (joined), ==, 41);
  /* The next token stands behind the longest fork. */
  g_assert_cmpuint (runnel_history_position (
      runnel_sequence_get_history (joined), 41), ==, 37);
  g_assert_false (runnel_sequence_truncate (joined, 40, &error));
  g_clear_error (&error);
  runnel_sequence_prefill (joined, f->tokens, 3, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  /* One fork joined alone is that fork. */
  alone = runnel_sequence_join (forks, 1, 30, &error);
  g_assert_no_error (error);
  runnel_sequence_prefill (alone, f->tokens, 3, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  runnel_sequence_prefill (a, f->tokens, 3, 0, FALSE, NULL, NULL, NULL, NULL,
      &error);
  assert_same_next (f, alone, a);
  g_assert_null (runnel_sequence_join (forks, 2, 31, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
}

/* A joined row sees both forks: swapping which fork comes first must not
 * change what each fork's rows are, and dropping one must change the result. */
static void
test_join_sees_all (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 30);
  g_autoptr (RunnelSequence) b = runnel_sequence_fork (a);
  RunnelSequence *forks[2] = { a, b };
  g_autoptr (RunnelSequence) both = NULL, one = NULL;
  g_autofree float *x = NULL, *y = NULL;
  g_autoptr (GError) error = NULL;

  runnel_sequence_prefill (a, f->tokens + 50, 5, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  runnel_sequence_prefill (b, f->tokens + 70, 5, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  both = runnel_sequence_join (forks, 2, 30, &error);
  one = runnel_sequence_join (forks, 1, 30, &error);
  runnel_sequence_prefill (both, f->tokens, 1, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  runnel_sequence_prefill (one, f->tokens, 1, 0, FALSE, NULL, NULL, NULL, NULL,
      &error);
  g_assert_no_error (error);
  x = next_logits (f, both);
  y = next_logits (f, one);
  g_assert_cmpint (memcmp (x, y, f->n_vocab * sizeof (float)), !=, 0);
}

static void
test_shift (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 128, 100);
  g_autoptr (RunnelSequence) shared = runnel_sequence_fork (a);
  g_autofree float *before = next_logits (f, shared);
  g_autofree float *after = NULL, *again = NULL;
  const gint32 *tokens;
  gsize n;
  g_autoptr (GError) error = NULL;

  runnel_sequence_shift (a, 4, 32, &error);
  g_assert_no_error (error);
  g_assert_true (runnel_sequence_get_shifted (a));
  tokens = runnel_sequence_get_tokens (a, &n);
  g_assert_cmpuint (n, ==, 68);
  g_assert_cmpmem (tokens, 4 * 4, f->tokens, 4 * 4);
  g_assert_cmpmem (tokens + 4, 64 * 4, f->tokens + 36, 64 * 4);
  after = next_logits (f, a);
  /* Shared pages were not touched. */
  again = next_logits (f, shared);
  g_assert_cmpmem (before, f->n_vocab * 4, again, f->n_vocab * 4);
  /* A shifted sequence is not cached. */
  runnel_engine_clear_cache (f->engine);
  runnel_engine_cache_sequence (f->engine, a);
  g_assert_cmpuint (get_stats (f).cache_bytes, ==, 0);
  g_assert_false (runnel_sequence_shift (a, 60, 9, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
}

/* What is between two codes of int8, at most. */
static double
get_code_step (const float *x, gsize n)
{
  float largest = 0;

  for (gsize i = 0; i < n; i++)
    largest = MAX (largest, ABS (x[i]));
  return largest / 127;
}

/* Keys that are turned by a shift are those of the new position: in the first
 * layer a key depends on its token and position alone. */
static void
test_shift_turns_keys (Fixture *f, gconstpointer data)
{
  const RunnelShape *shape = runnel_engine_get_shape (f->engine);
  const RunnelOps *ops = runnel_engine_get_weights (f->engine)->ops;
  RunnelBackend *backend = runnel_engine_get_backend (f->engine);
  gsize n = (gsize) shape->n_kv_heads * shape->head_dim;
  g_autofree float *rows = g_new (float, 4 * n * shape->n_layers);
  float *k = rows, *v = k + n * shape->n_layers;
  float *k2 = v + n * shape->n_layers, *v2 = k2 + n * shape->n_layers;
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 80);
  g_autoptr (RunnelSequence) b = runnel_sequence_new (f->engine, 0, NULL);
  g_autoptr (GError) error = NULL;
  guint32 row;
  RunnelPage *page;

  runnel_sequence_shift (a, 0, 30, &error);
  g_assert_no_error (error);
  runnel_sequence_prefill (b, f->tokens + 30, 50, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 50; i++) {
    page = runnel_history_find (runnel_sequence_get_history (a), i, &row);
    ops->kv_read (backend, shape, runnel_page_data (page), row, k, v);
    page = runnel_history_find (runnel_sequence_get_history (b), i, &row);
    ops->kv_read (backend, shape, runnel_page_data (page), row, k2, v2);
    for (gsize d = 0; d < n; d++) {
      /* Two roundings to half floats or to codes apart; values are the same,
       * but their scale may come out an ulp off. */
      double apart = shape->kv_type == RUNNEL_KV_TYPE_F16
          ? 4e-3 * (1 + ABS (k2[d])) : get_code_step (k2, n) * 2;

      g_assert_cmpfloat_with_epsilon (k[d], k2[d], apart);
      g_assert_cmpfloat (ABS (v[d] - v2[d]), <=,
          shape->kv_type == RUNNEL_KV_TYPE_F16 ? 0 : 1e-6 * ABS (v2[d]));
    }
  }
}

static void
test_context_overflow (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 64, 60);
  g_autoptr (GError) error = NULL;
  guint64 rows = get_stats (f).rows;

  g_assert_false (runnel_sequence_prefill (a, f->tokens, 5, 0, TRUE, NULL,
      NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CONTEXT_OVERFLOW);
  g_assert_nonnull (strstr (error->message, "n_prompt 5"));
  g_assert_nonnull (strstr (error->message, "n_ctx 64"));
  g_assert_cmpuint (get_stats (f).rows, ==, rows);
  g_assert_cmpuint (runnel_sequence_get_length (a), ==, 60);
  g_clear_error (&error);
  g_assert_null (runnel_sequence_new (f->engine, 513, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
}

static void
test_bad_tokens (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 3);
  const gint32 bad[] = { -1, (gint32) f->n_vocab, G_MAXINT32, G_MININT32 };

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_false (runnel_sequence_prefill (a, &bad[i], 1, 0, FALSE, NULL,
        NULL, NULL, NULL, &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
    g_assert_cmpuint (runnel_sequence_get_length (a), ==, 3);
  }
}

/* What counts beside keys and values. */
static guint64
get_other (Fixture *f)
{
  RunnelEngineStats stats = get_stats (f);

  return stats.weight_bytes + stats.scratch_bytes;
}

/* Weights and scratch count: a batch whose rows need more scratch than is left
 * is refused, though its keys and values have room. */
static void
test_scratch_counts (Fixture *f, gconstpointer data)
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
test_low_memory (Fixture *f, gconstpointer data)
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

static void
test_max_memory (Fixture *f, gconstpointer data)
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

static void
test_cache_counts (Fixture *f, gconstpointer data)
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
test_cache_budget (Fixture *f, gconstpointer data)
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
test_cache_too_large (Fixture *f, gconstpointer data)
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
test_logits_without_memory (Fixture *f, gconstpointer data)
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

static void
test_cancel_between_chunks (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = runnel_sequence_new (f->engine, 0, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_cancellable_cancel (cancellable);
  g_assert_false (runnel_sequence_prefill (a, f->tokens, 100, 10, FALSE, NULL,
      NULL, cancellable, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED);
  g_assert_cmpuint (runnel_sequence_get_length (a), ==, 0);
}

/* ---- Saved states -------------------------------------------------------- */

/* Empty arrays, which bindings pass as NULL. */
static void
test_empty_arrays (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 0);
  GError *errors[3] = { NULL };

  g_assert_false (runnel_sequence_forward (a, NULL, 0, NULL, 0, &errors[0]));
  g_assert_false (runnel_sequence_compute_logits (a, NULL, 0, &errors[1]));
  g_assert_null (runnel_sequence_join (NULL, 0, 0, &errors[2]));
  for (guint i = 0; i < G_N_ELEMENTS (errors); i++) {
    g_assert_error (errors[i], RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
    g_error_free (errors[i]);
  }
}

static void
test_save_load (Fixture *f, gconstpointer data)
{
  g_autofree char *folder = g_dir_make_tmp ("runnel-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "state", NULL);
  g_autoptr (RunnelSequence) a = new_sequence (f, 200, 77);
  g_autoptr (RunnelSequence) b = NULL;
  g_autoptr (GError) error = NULL;
  guint64 rows;

  runnel_sequence_save (a, path, &error);
  g_assert_no_error (error);
  rows = get_stats (f).rows;
  b = runnel_sequence_load (f->engine, path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (runnel_sequence_get_context_length (b), ==, 200);
  assert_same_next (f, a, b);
  g_assert_cmpuint (get_stats (f).rows, ==, rows);
  g_unlink (path);
  g_assert_null (runnel_sequence_load (f->engine, path, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_assert_nonnull (strstr (error->message, path));
  g_clear_error (&error);
  g_assert_null (runnel_sequence_load (f->engine, folder, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_assert_nonnull (strstr (error->message, "not a regular file"));
  g_clear_error (&error);
  /* A file with a hole: its size is refused, it is not read. */
  g_assert_true (g_file_set_contents (path, "x", 1, NULL));
  g_assert_cmpint (truncate (path, (off_t) 5 << 30), ==, 0);
  g_assert_null (runnel_sequence_load (f->engine, path, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT);
  g_clear_error (&error);
  g_unlink (path);
  g_assert_false (runnel_sequence_save (a, "/nonexistent/state", &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_clear_error (&error);
  /* A pipe or a device is not replaced. */
  g_assert_cmpint (mkfifo (path, 0600), ==, 0);
  g_assert_false (runnel_sequence_save (a, path, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_unlink (path);
  g_rmdir (folder);
}

static void
expect_refused (Fixture *f, const guint8 *data, gsize size)
{
  g_autoptr (GBytes) image = g_bytes_new (data, size);
  g_autoptr (GError) error = NULL;
  guint64 bytes = get_stats (f).kv_bytes;

  g_assert_null (runnel_sequence_deserialize (f->engine, image, "image",
      &error));
  g_assert_nonnull (error);
  g_assert_true (g_str_has_prefix (error->message, "image: "));
  g_assert_cmpuint (get_stats (f).kv_bytes, ==, bytes);
}

/* Makes the checksum of an altered image right, so that the checks behind it
 * are reached. */
static void
seal (guint8 *data, gsize size)
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  gsize n = 32;

  g_checksum_update (checksum, data, size - 32);
  g_checksum_get_digest (checksum, data + size - 32, &n);
}

static void
test_refused_states (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 5);
  g_autoptr (GBytes) image = runnel_sequence_serialize (a, NULL);
  gsize size;
  const guint8 *good = g_bytes_get_data (image, &size);
  g_autofree guint8 *bad = g_memdup2 (good, size);

  for (gsize n = 0; n < size; n += 1 + n / 7)
    expect_refused (f, good, n);
  for (gsize i = 0; i < size; i += 1 + i / 50) {
    bad[i] ^= 0x10;
    expect_refused (f, bad, size);
    bad[i] ^= 0x10;
  }
  /* Every number of the header altered, with a right checksum. */
  for (gsize i = 16; i < 16 + 40; i += 4) {
    static const guint8 values[][4] = {
      { 0xff, 0xff, 0xff, 0xff }, { 0x77, 0, 0, 0 }, { 0, 0, 0, 0x80 },
    };

    for (guint v = 0; v < G_N_ELEMENTS (values); v++) {
      /* A context length of 0x77 is a good one. */
      if (i == 16 + 8 && v == 1)
        continue;
      memcpy (bad + i, values[v], 4);
      seal (bad, size);
      expect_refused (f, bad, size);
      memcpy (bad + i, good + i, 4);
    }
  }
  bad[60] ^= 1;              /* the content id */
  seal (bad, size);
  expect_refused (f, bad, size);
}

static void
test_foreign_state (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 5);
  g_autoptr (RunnelEngine) other = runnel_engine_get (f->model,
      runnel_engine_get_backend (f->engine), RUNNEL_KV_TYPE_F32, NULL, NULL,
      NULL, NULL);
  g_autoptr (GBytes) image = runnel_sequence_serialize (a, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_sequence_deserialize (other, image, "image", &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH);
  g_assert_nonnull (strstr (error->message, "kv-type"));
}

int
main (int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*run) (Fixture *, gconstpointer);
  } tests[] = {
    { "fork-shares-pages", test_fork_shares_pages },
    { "logits-without-forward", test_logits_without_forward },
    { "truncate-errors", test_truncate_errors },
    { "join", test_join },
    { "join-sees-all", test_join_sees_all },
    { "shift", test_shift },
    { "shift-turns-keys", test_shift_turns_keys },
    { "context-overflow", test_context_overflow },
    { "bad-tokens", test_bad_tokens },
    { "max-memory", test_max_memory },
    { "scratch-counts", test_scratch_counts },
    { "low-memory", test_low_memory },
    { "cache-counts", test_cache_counts },
    { "cache-budget", test_cache_budget },
    { "cache-too-large", test_cache_too_large },
    { "logits-without-memory", test_logits_without_memory },
    { "cancel-between-chunks", test_cancel_between_chunks },
    { "empty-arrays", test_empty_arrays },
    { "save-load", test_save_load },
    { "refused-states", test_refused_states },
    { "foreign-state", test_foreign_state },
  };

  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < 2 * G_N_ELEMENTS (tests); i++) {
    const RunnelKvType kv_type = i % 2 ? RUNNEL_KV_TYPE_INT8
        : RUNNEL_KV_TYPE_F16;
    g_autofree char *path = g_strdup_printf ("/sequence/%s/%s",
        i % 2 ? "int8" : "f16", tests[i / 2].name);

    g_test_add (path, Fixture, GINT_TO_POINTER (kv_type), set_up,
        tests[i / 2].run, tear_down);
  }
  return g_test_run ();
}
