/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The exactness contract (docs/exactness.md) on two-layer models: the same
 * bits for any thread count, chunk, kernel level, reuse, fork, saved state and
 * neighbour in the batch. The reference is the scalar level with one thread,
 * the whole prompt in one batch.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "backends/cpu/kernels.h"
#include "formats/converter.h"
#include "model/batch.h"
#include "tiny-model.h"

#define MAX_PROMPT 300       /* more than one block of 256 keys */
#define N_REPLY 5
#define SEED 20261201

typedef enum {
  COLD, REUSED, FORKED, TRUNCATED, SAVED, BATCHED, N_WAYS
} Way;

static const char *const way_names[] = {
  "cold", "reused", "forked", "truncated", "saved", "batched",
};

typedef struct {
  RunnelModel *model;
  guint n_vocab;
  guint n;                   /* tokens of the prompt */
  gint32 prompt[MAX_PROMPT];
  gint32 other[MAX_PROMPT];  /* begins like prompt, differs in the last 2/3 */
  float *expected;           /* [N_REPLY][n_vocab] after the prompt and on */
  gint32 reply[N_REPLY];
} Fixture;

static gint32
arg_max (const float *logits, guint n)
{
  guint best = 0;

  for (guint i = 1; i < n; i++)
    if (logits[i] > logits[best])
      best = i;
  return best;
}

static RunnelEngine *
get_engine (RunnelModel *model, guint threads, const char *level,
            RunnelKvType kv_type)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelBackend) backend
      = runnel_backend_get ("cpu", threads, level, &error);
  RunnelEngine *engine;

  g_assert_no_error (error);
  engine = runnel_engine_get (model, backend, kv_type, NULL, NULL, NULL,
      &error);
  g_assert_no_error (error);
  return engine;
}

static void
compute_expected (Fixture *f, const char *level, RunnelKvType kv_type)
{
  g_autoptr (RunnelEngine) engine = get_engine (f->model, 1, level, kv_type);
  g_autoptr (RunnelSequence) sequence = runnel_sequence_new (engine, 0, NULL);
  g_autofree float *logits = g_new (float, f->n * f->n_vocab);
  g_autoptr (GError) error = NULL;

  runnel_sequence_forward (sequence, f->prompt, f->n, logits,
      f->n * f->n_vocab, &error);
  g_assert_no_error (error);
  f->expected = g_new (float, N_REPLY * f->n_vocab);
  memcpy (f->expected, logits + (f->n - 1) * f->n_vocab,
      f->n_vocab * sizeof (float));
  for (guint i = 0; i < N_REPLY; i++) {
    f->reply[i] = arg_max (f->expected + i * f->n_vocab, f->n_vocab);
    if (i + 1 == N_REPLY)
      break;
    runnel_sequence_forward (sequence, &f->reply[i], 1,
        f->expected + (i + 1) * f->n_vocab, f->n_vocab, &error);
    g_assert_no_error (error);
  }
}

static void
init_fixture (Fixture *f, const char *path, guint n)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  g_autoptr (GError) error = NULL;

  f->model = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_assert_no_error (error);
  f->n = n;
  f->n_vocab = runnel_model_get_n_vocab (f->model);
  for (guint i = 0; i < f->n; i++) {
    f->prompt[i] = g_rand_int_range (rand, 0, f->n_vocab);
    f->other[i] = i < n / 3 ? f->prompt[i]
        : (f->prompt[i] + 1) % (gint32) f->n_vocab;
  }
}

static void
clear_fixture (Fixture *f)
{
  g_clear_object (&f->model);
  g_free (f->expected);
}

static void
prefill (RunnelSequence *sequence, const gint32 *tokens, gsize n, guint chunk,
         gboolean use_cache, gsize *cached)
{
  g_autoptr (GError) error = NULL;

  runnel_sequence_prefill (sequence, tokens, n, chunk, use_cache, NULL, NULL,
      NULL, cached, &error);
  g_assert_no_error (error);
}

/* Chunks of the prompt side by side with chunks of another text. */
static void
prefill_batched (Fixture *f, RunnelSequence *sequence, guint chunk)
{
  g_autoptr (RunnelSequence) neighbour = runnel_sequence_new (
      runnel_sequence_get_engine (sequence), 0, NULL);
  g_autoptr (GError) error = NULL;

  for (guint done = 0; done < f->n; done += chunk) {
    guint n = MIN (chunk, f->n - done);
    RunnelBatchItem items[2] = {
      { .sequence = neighbour, .tokens = f->other + done, .n_tokens = n },
      { .sequence = sequence, .tokens = f->prompt + done, .n_tokens = n },
    };

    runnel_engine_forward (runnel_sequence_get_engine (sequence), items, 2,
        NULL, &error);
    g_assert_no_error (error);
  }
}

static RunnelSequence *
make_prompt (Fixture *f, RunnelEngine *engine, guint chunk, Way way)
{
  RunnelSequence *sequence = runnel_sequence_new (engine, 0, NULL);
  g_autoptr (RunnelSequence) first = NULL;
  g_autoptr (GBytes) image = NULL;
  g_autoptr (GError) error = NULL;
  gsize cached = 0;

  switch (way) {
    case COLD:
      prefill (sequence, f->prompt, f->n, chunk, FALSE, NULL);
      break;
    case REUSED:
      runnel_engine_clear_cache (engine);
      first = runnel_sequence_new (engine, 0, NULL);
      prefill (first, f->other, f->n, chunk, TRUE, NULL);
      prefill (sequence, f->prompt, f->n, chunk, TRUE, &cached);
      g_assert_cmpuint (cached, ==, f->n / 3);
      break;
    case FORKED:
      prefill (sequence, f->prompt, f->n / 2, chunk, FALSE, NULL);
      first = g_steal_pointer (&sequence);
      sequence = runnel_sequence_fork (first);
      prefill (first, f->other + f->n / 2, f->n / 5, chunk, FALSE, NULL);
      prefill (sequence, f->prompt + f->n / 2, f->n - f->n / 2, chunk, FALSE,
          NULL);
      break;
    case TRUNCATED:
      prefill (sequence, f->other, f->n * 7 / 10, chunk, FALSE, NULL);
      runnel_sequence_truncate (sequence, f->n / 3, &error);
      g_assert_no_error (error);
      prefill (sequence, f->prompt + f->n / 3, f->n - f->n / 3, chunk, FALSE,
          NULL);
      break;
    case SAVED:
      prefill (sequence, f->prompt, f->n * 9 / 10, chunk, FALSE, NULL);
      image = runnel_sequence_serialize (sequence, &error);
      g_assert_no_error (error);
      g_object_unref (sequence);
      sequence = runnel_sequence_deserialize (engine, image, "image", &error);
      g_assert_no_error (error);
      prefill (sequence, f->prompt + f->n * 9 / 10, f->n - f->n * 9 / 10,
          chunk, FALSE, NULL);
      break;
    case BATCHED:
      prefill_batched (f, sequence, chunk);
      break;
    default:
      g_assert_not_reached ();
  }
  return sequence;
}

static void
check (Fixture *f, RunnelEngine *engine, guint chunk, Way way)
{
  g_autoptr (RunnelSequence) sequence = make_prompt (f, engine, chunk, way);
  g_autofree float *logits = g_new (float, f->n_vocab);
  g_autoptr (GError) error = NULL;

  runnel_sequence_compute_logits (sequence, logits, f->n_vocab, &error);
  for (guint i = 0; i < N_REPLY; i++) {
    g_assert_no_error (error);
    if (memcmp (logits, f->expected + i * f->n_vocab,
            f->n_vocab * sizeof (float)) != 0) {
      g_test_message ("logits of step %u differ: %s, %u threads, chunk %u, %s",
          i, runnel_backend_get_kernels (runnel_engine_get_backend (engine)),
          runnel_backend_get_n_threads (runnel_engine_get_backend (engine)),
          chunk, way_names[way]);
      g_test_fail ();
      return;
    }
    if (i + 1 < N_REPLY)
      runnel_sequence_forward (sequence, &f->reply[i], 1, logits, f->n_vocab,
          &error);
  }
}

/* The whole cross product. */
static void
check_product (Fixture *f, RunnelKvType kv_type)
{
  static const guint threads[] = { 1, 2, 4 };
  static const guint chunks[] = { 1, 7, 32, 128 };

  for (const char *const *level = runnel_kernels_names (); *level; level++)
    for (guint t = 0; t < G_N_ELEMENTS (threads); t++) {
      g_autoptr (RunnelEngine) engine
          = get_engine (f->model, threads[t], *level, kv_type);

      for (guint c = 0; c < G_N_ELEMENTS (chunks); c++)
        for (guint way = 0; way < N_WAYS; way++)
          check (f, engine, chunks[c], way);
    }
}

/* One of each: what differs between tensor types is a kernel. */
static void
check_levels (Fixture *f, RunnelKvType kv_type)
{
  for (const char *const *level = runnel_kernels_names (); *level; level++) {
    g_autoptr (RunnelEngine) engine
        = get_engine (f->model, 2, *level, kv_type);

    check (f, engine, 1, COLD);
    check (f, engine, 32, REUSED);
    check (f, engine, 128, BATCHED);
  }
}

typedef struct {
  TinyModel model;
  RunnelKvType kv_type;
  gboolean product;
  gboolean packaged;   /* a package of it has to give what it gives */
} Case;

/* From here on the model is the package of the one at @path. */
static void
use_package (Fixture *f, const char *path)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autofree char *package = g_strconcat (path, ".runnel", NULL);
  g_autoptr (GVariant) report = NULL;
  g_autoptr (GError) error = NULL;

  report = runnel_converter_convert (converter, path, package, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  g_object_unref (f->model);
  f->model = runnel_model_open (package, RUNNEL_LOAD_MODE_MAP, &error);
  g_assert_no_error (error);
  g_unlink (package);
}

static void
test_case (gconstpointer data)
{
  const Case *c = data;
  g_autofree char *path = tiny_model_write (&c->model);
  Fixture f = { 0 };

  g_test_message ("seed %d", SEED);
  init_fixture (&f, path, MAX_PROMPT);
  compute_expected (&f, "scalar", c->kv_type);
  if (c->packaged)
    use_package (&f, path);
  g_unlink (path);
  if (c->product)
    check_product (&f, c->kv_type);
  else
    check_levels (&f, c->kv_type);
  clear_fixture (&f);
}

static void
add_case (const char *name, const char *architecture, RunnelTensorType type,
          gboolean tied, RunnelKvType kv_type, gboolean product,
          gboolean packaged)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autofree char *path = g_strdup_printf ("/exactness/%s/%s", name,
      runnel_tensor_type_info (type)->name);
  Case *c = g_new (Case, 1);

  model.architecture = architecture;
  model.type = type;
  model.tied = tied;
  if (runnel_tensor_type_info (type)->block_elements > 32)
    model.n_embd = 256;
  c->model = model;
  c->kv_type = kv_type;
  c->product = product;
  c->packaged = packaged;
  g_test_add_data_func_full (path, c, test_case, g_free);
}

/* The real model: each value of thread count, chunk, level and way at least
 * once, and each pair of the slow level with another value. */
static void
test_default_model (void)
{
  static const struct {
    guint threads;
    const char *level;
    guint chunk;
    Way way;
  } combinations[] = {
    { 1, "scalar", 128, REUSED }, { 2, "scalar", 7, BATCHED },
    { 1, "auto", 7, FORKED }, { 2, "auto", 128, SAVED },
    { 4, "auto", 1, COLD }, { 4, "auto", 32, TRUNCATED },
    { 2, "auto", 32, REUSED }, { 1, "auto", 1, BATCHED },
  };
  const char *path = g_getenv ("RUNNEL_DEFAULT_MODEL");
  Fixture f = { 0 };

  g_assert_nonnull (path);
  init_fixture (&f, path, 24);
  compute_expected (&f, "auto", RUNNEL_KV_TYPE_F16);
  for (guint i = 0; i < G_N_ELEMENTS (combinations); i++) {
    g_autoptr (RunnelEngine) engine = get_engine (f.model,
        combinations[i].threads, combinations[i].level, RUNNEL_KV_TYPE_F16);

    check (&f, engine, combinations[i].chunk, combinations[i].way);
  }
  clear_fixture (&f);
}

int
main (int argc, char **argv)
{
  static const RunnelTensorType types[] = {
    RUNNEL_TENSOR_F32, RUNNEL_TENSOR_F16, RUNNEL_TENSOR_BF16,
    RUNNEL_TENSOR_Q4_0, RUNNEL_TENSOR_Q4_1, RUNNEL_TENSOR_Q5_0,
    RUNNEL_TENSOR_Q5_1, RUNNEL_TENSOR_Q8_0, RUNNEL_TENSOR_Q2_K,
    RUNNEL_TENSOR_Q3_K, RUNNEL_TENSOR_Q4_K, RUNNEL_TENSOR_Q5_K,
    RUNNEL_TENSOR_Q6_K, RUNNEL_TENSOR_INT4_32, RUNNEL_TENSOR_INT4_64_OFFSET,
    RUNNEL_TENSOR_INT4_64_CENTRED, RUNNEL_TENSOR_INT8_64,
    RUNNEL_TENSOR_INT8_32_OFFSET,
  };

  static const RunnelKvType kv_types[] = {
    RUNNEL_KV_TYPE_F16, RUNNEL_KV_TYPE_F32, RUNNEL_KV_TYPE_INT8,
  };

  g_test_init (&argc, &argv, NULL);
  add_case ("product/llama", "llama", RUNNEL_TENSOR_Q4_1, TRUE,
      RUNNEL_KV_TYPE_F16, TRUE, TRUE);
  add_case ("product/qwen2", "qwen2", RUNNEL_TENSOR_Q8_0, FALSE,
      RUNNEL_KV_TYPE_F16, TRUE, FALSE);
  add_case ("product/qwen3", "qwen3", RUNNEL_TENSOR_Q4_0, TRUE,
      RUNNEL_KV_TYPE_INT8, TRUE, FALSE);
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    add_case ("types", i % 2 == 0 ? "qwen3" : "llama", types[i], i % 3 == 0,
        kv_types[i % G_N_ELEMENTS (kv_types)], FALSE, FALSE);
  g_test_add_func ("/default-model", test_default_model);
  return g_test_run ();
}
