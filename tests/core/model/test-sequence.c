/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Sequences: forks, joins, shifts, and what they refuse. Work is judged by
 * counters.
 */
#include <string.h>

#include "error.h"
#include "sequence-fixture.h"

static void
test_fork_shares_pages (SequenceFixture *f, gconstpointer data)
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
test_logits_without_forward (SequenceFixture *f, gconstpointer data)
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
test_truncate_errors (SequenceFixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 10);
  g_autoptr (GError) error = NULL;

  g_assert_false (runnel_sequence_truncate (a, 11, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  g_assert_cmpuint (runnel_sequence_get_length (a), ==, 10);
}

static void
test_join (SequenceFixture *f, gconstpointer data)
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
test_join_sees_all (SequenceFixture *f, gconstpointer data)
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
test_shift (SequenceFixture *f, gconstpointer data)
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
test_shift_turns_keys (SequenceFixture *f, gconstpointer data)
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
test_context_overflow (SequenceFixture *f, gconstpointer data)
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
test_bad_tokens (SequenceFixture *f, gconstpointer data)
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

static void
test_cancel_between_chunks (SequenceFixture *f, gconstpointer data)
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

/* Empty arrays, which bindings pass as NULL. */
static void
test_empty_arrays (SequenceFixture *f, gconstpointer data)
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

int
main (int argc, char **argv)
{
  static const SequenceTest tests[] = {
    { "fork-shares-pages", test_fork_shares_pages },
    { "logits-without-forward", test_logits_without_forward },
    { "truncate-errors", test_truncate_errors },
    { "join", test_join },
    { "join-sees-all", test_join_sees_all },
    { "shift", test_shift },
    { "shift-turns-keys", test_shift_turns_keys },
    { "context-overflow", test_context_overflow },
    { "bad-tokens", test_bad_tokens },
    { "cancel-between-chunks", test_cancel_between_chunks },
    { "empty-arrays", test_empty_arrays },
  };

  return run_sequence_tests (argc, argv, tests, G_N_ELEMENTS (tests));
}
