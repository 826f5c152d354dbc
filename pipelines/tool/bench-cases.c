/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "bench-cases.h"

BenchCase *
bench_case_new (BenchKind kind, guint n_tokens, guint depth)
{
  BenchCase *self = g_new0 (BenchCase, 1);

  self->kind = kind;
  self->n_tokens = n_tokens;
  self->depth = depth;
  if (kind == BENCH_INFERENCE)
    self->name = g_strdup_printf ("pp%u+tg%u", depth, n_tokens);
  else
    self->name = g_strdup_printf (kind == BENCH_PREFILL ? "pp%u"
        : kind == BENCH_DECODE ? "tg%u" : "tg%u x 2", n_tokens);
  samples_init (&self->speed);
  samples_init (&self->ratio);
  return self;
}

void
bench_case_free (BenchCase *self)
{
  g_clear_object (&self->before);
  samples_clear (&self->speed);
  samples_clear (&self->ratio);
  g_free (self->name);
  g_free (self);
}

/* Any tokens: how fast a model is does not depend on them. */
static gint32 *
draw_tokens (RunnelEngine *engine, guint64 seed, guint n)
{
  guint n_vocab = runnel_model_get_n_vocab (runnel_engine_get_model (engine));
  GRand *rand = g_rand_new_with_seed_array (
      (guint32[]) { (guint32) seed, (guint32) (seed >> 32), n }, 3);
  gint32 *tokens = g_new (gint32, MAX (n, 1));

  for (guint i = 0; i < n; i++)
    tokens[i] = g_rand_int_range (rand, 0, n_vocab);
  g_rand_free (rand);
  return tokens;
}

static gboolean
prefill (RunnelSequence *sequence, RunnelEngine *engine, guint64 seed,
         guint n_tokens, GError **error)
{
  g_autofree gint32 *tokens = draw_tokens (engine, seed, n_tokens);

  return runnel_sequence_prefill (sequence, tokens, n_tokens, 0, FALSE, NULL,
      NULL, NULL, NULL, error);
}

gboolean
bench_case_prepare (BenchCase *self, RunnelEngine *engine,
                    RunnelDrafter *drafter, guint64 seed, GError **error)
{
  /* A reply needs a token to begin with. */
  guint depth = self->kind == BENCH_PREFILL ? self->depth
      : self->kind == BENCH_INFERENCE ? 0 : MAX (self->depth, 1);

  self->before = runnel_sequence_new (engine, 0, error);
  return self->before != NULL
      && (drafter == NULL
          || runnel_sequence_attach (self->before, drafter, error))
      && (depth == 0 || prefill (self->before, engine, seed, depth, error));
}

static gboolean
run_prefill (RunnelSequence *sequence, RunnelEngine *engine, guint64 seed,
             guint n_tokens, GError **error)
{
  gsize n_vocab = runnel_model_get_n_vocab (runnel_engine_get_model (engine));
  g_autofree float *logits = g_new (float, n_vocab);

  return prefill (sequence, engine, seed + 1, n_tokens, error)
      && runnel_sequence_compute_logits (sequence, logits, n_vocab, error);
}

/* The tokens of a reply, with the greedy sampler's part in it. @sequence is
 * taken. */
static gboolean
run_decode (RunnelSequence *sequence, guint n_tokens, GError **error)
{
  g_autoptr (RunnelGenerationParams) params = runnel_generation_params_new ();
  g_autoptr (RunnelGeneration) generation = NULL;
  RunnelGenerationStep step = { 0 };

  params->max_tokens = n_tokens;
  params->ignore_eos = TRUE;
  params->sampler->temperature = 0;
  generation = runnel_generation_new (sequence, params, error);
  while (generation != NULL && !step.finished)
    if (!runnel_generation_next (generation, &step, error))
      return FALSE;
  return generation != NULL;
}

typedef struct {
  RunnelSequence *sequence;   /* taken */
  guint n_tokens;
  GError *error;
} Branch;

static gpointer
run_branch (gpointer data)
{
  Branch *self = data;

  run_decode (self->sequence, self->n_tokens, &self->error);
  return NULL;
}

/* @sequence is taken. */
static gboolean
run_two (RunnelSequence *sequence, guint n_tokens, GError **error)
{
  Branch branch = { runnel_sequence_fork (sequence), n_tokens, NULL };
  GThread *thread = g_thread_new ("branch", run_branch, &branch);
  gboolean ok = run_decode (sequence, n_tokens, error);

  g_thread_join (thread);
  if (branch.error == NULL)
    return ok;
  if (ok)
    g_propagate_error (error, branch.error);
  else
    g_error_free (branch.error);
  return FALSE;
}

static gboolean
time_once (BenchCase *self, RunnelEngine *engine, guint64 seed,
           BenchKind kind, double *ret_seconds, GError **error)
{
  g_autoptr (RunnelSequence) sequence = runnel_sequence_fork (self->before);
  gint64 started = g_get_monotonic_time ();
  gboolean ok;

  switch (kind) {
    case BENCH_PREFILL:
      ok = run_prefill (sequence, engine, seed, self->n_tokens, error);
      break;
    case BENCH_DECODE:
      ok = run_decode (g_steal_pointer (&sequence), self->n_tokens, error);
      break;
    case BENCH_TWO_REPLIES:
      ok = run_two (g_steal_pointer (&sequence), self->n_tokens, error);
      break;
    default:
      ok = prefill (sequence, engine, seed, self->depth, error)
          && run_decode (g_steal_pointer (&sequence), self->n_tokens, error);
  }
  *ret_seconds = (g_get_monotonic_time () - started) / 1e6;
  return ok;
}

gboolean
bench_case_run (BenchCase *self, RunnelEngine *engine, guint64 seed,
                gboolean warm_up, GError **error)
{
  gboolean two = self->kind == BENCH_TWO_REPLIES;
  double seconds, one = 0;

  if (two && !time_once (self, engine, seed, BENCH_DECODE, &one, error))
    return FALSE;
  if (!time_once (self, engine, seed, self->kind, &seconds, error))
    return FALSE;
  if (warm_up)
    return TRUE;
  samples_add (&self->speed, (two ? 2 : 1) * self->n_tokens / seconds);
  if (two)
    samples_add (&self->ratio, seconds / one);
  return TRUE;
}
