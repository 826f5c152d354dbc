/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Generation on real sequences of a two-layer model: seeded replies are the
 * same bits cold, cached, forked, restored and beside a neighbour (C20), and
 * every distance to the context's end under every policy (C22), each row
 * computed once.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "error.h"
#include "generate/generation.h"
#include "model/batch.h"
#include "tiny-model.h"

#define SEED 20261201
#define N_PROMPT 40
#define N_REPLY 24
#define CONTEXT 64

typedef struct {
  RunnelEngine *engine;
  gint32 prompt[128];
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autofree char *path = NULL;
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  g_autoptr (GError) error = NULL;

  tiny.architecture = "qwen3";
  path = tiny_model_write (&tiny);
  model = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_assert_no_error (error);
  g_unlink (path);
  backend = runnel_backend_get ("cpu", 1, NULL, &error);
  f->engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  /* No control tokens: they would end a reply. */
  for (guint i = 0; i < G_N_ELEMENTS (f->prompt); i++)
    f->prompt[i] = g_rand_int_range (rand, TINY_FIRST_BYTE, TINY_FIRST_PIECE);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_clear_object (&f->engine);
}

static RunnelSequence *
prefill (Fixture *f, guint context, guint n, gboolean use_cache,
         gsize *cached)
{
  g_autoptr (GError) error = NULL;
  RunnelSequence *sequence
      = runnel_sequence_new (f->engine, context, &error);

  g_assert_no_error (error);
  runnel_sequence_prefill (sequence, f->prompt, n, 0, use_cache, NULL, NULL,
      NULL, cached, &error);
  g_assert_no_error (error);
  return sequence;
}

/* Sampling with everything on, so that all of it must agree. */
static RunnelGenerationParams *
make_params (guint64 seed)
{
  RunnelGenerationParams *params = runnel_generation_params_new ();

  params->max_tokens = N_REPLY;
  params->ignore_eos = TRUE;
  params->sampler->temperature = 1.2;
  params->sampler->top_k = 0;
  params->sampler->top_p = 0.98;
  params->sampler->min_p = 0;
  params->sampler->repetition_penalty = 1.1;
  params->sampler->presence_penalty = 0.3;
  params->sampler->frequency_penalty = 0.2;
  params->sampler->seed = seed;
  params->logprobs = TRUE;
  params->n_top_logprobs = 3;
  return params;
}

typedef struct {
  GArray *tokens;            /* gint32 */
  GArray *logprobs;          /* float */
  GArray *top;               /* RunnelTokenLogprob */
  RunnelFinishReason reason;
} Reply;

static void
reply_clear (Reply *reply)
{
  g_array_unref (reply->tokens);
  g_array_unref (reply->logprobs);
  g_array_unref (reply->top);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Reply, reply_clear)

/* @sequence is taken. */
static Reply
generate (RunnelSequence *sequence, const RunnelGenerationParams *params)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGeneration) generation
      = runnel_generation_new (sequence, params, &error);
  RunnelGenerationStep step = { 0 };
  Reply reply = {
    g_array_new (FALSE, FALSE, sizeof (gint32)),
    g_array_new (FALSE, FALSE, sizeof (float)),
    g_array_new (FALSE, FALSE, sizeof (RunnelTokenLogprob)),
    RUNNEL_FINISH_REASON_NONE,
  };

  g_assert_no_error (error);
  while (!step.finished) {
    runnel_generation_next (generation, &step, &error);
    g_assert_no_error (error);
    g_array_append_vals (reply.tokens, step.tokens, step.n_tokens);
    if (params->logprobs) {
      g_array_append_vals (reply.logprobs, step.logprobs, step.n_tokens);
      g_array_append_vals (reply.top, step.top,
          step.n_tokens * params->n_top_logprobs);
    }
  }
  g_assert_cmpuint (runnel_generation_get_n_tokens (generation), ==,
      reply.tokens->len);
  reply.reason = runnel_generation_get_finish_reason (generation);
  return reply;
}

static void
assert_same (const Reply *a, const Reply *b)
{
  g_assert_cmpint (a->reason, ==, b->reason);
  g_assert_cmpmem (a->tokens->data, a->tokens->len * sizeof (gint32),
      b->tokens->data, b->tokens->len * sizeof (gint32));
  g_assert_cmpmem (a->logprobs->data, a->logprobs->len * sizeof (float),
      b->logprobs->data, b->logprobs->len * sizeof (float));
  g_assert_cmpmem (a->top->data, a->top->len * sizeof (RunnelTokenLogprob),
      b->top->data, b->top->len * sizeof (RunnelTokenLogprob));
}

static void
test_same_reply (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelGenerationParams) params = make_params (5);
  g_autoptr (RunnelGenerationParams) other = make_params (6);
  g_autoptr (RunnelSequence) state = prefill (f, 0, N_PROMPT, TRUE, NULL);
  g_autoptr (GBytes) image = runnel_sequence_serialize (state, NULL);
  g_auto (Reply) cold = generate (prefill (f, 0, N_PROMPT, FALSE, NULL),
      params);
  g_auto (Reply) forked = generate (runnel_sequence_fork (state), params);
  g_auto (Reply) different = generate (runnel_sequence_fork (state), other);
  g_auto (Reply) restored = generate (runnel_sequence_deserialize (f->engine,
      image, "image", NULL), params);
  gsize cached = 0;
  RunnelSequence *again = prefill (f, 0, N_PROMPT, TRUE, &cached);
  g_auto (Reply) reused = generate (again, params);

  g_assert_cmpuint (cached, >=, N_PROMPT - 1);
  g_assert_cmpuint (cold.tokens->len, ==, N_REPLY);
  assert_same (&cold, &forked);
  assert_same (&cold, &restored);
  assert_same (&cold, &reused);
  g_assert_cmpint (memcmp (cold.tokens->data, different.tokens->data,
      N_REPLY * sizeof (gint32)), !=, 0);
}

typedef struct {
  RunnelSequence *sequence;
  RunnelGenerationParams *params;
  Reply reply;
} Neighbour;

static gpointer
run_neighbour (gpointer data)
{
  Neighbour *neighbour = data;

  neighbour->reply = generate (neighbour->sequence, neighbour->params);
  return NULL;
}

static void
test_neighbours (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) state = prefill (f, 0, N_PROMPT, FALSE, NULL);
  Neighbour together[3];
  GThread *threads[3];

  for (guint i = 0; i < 3; i++) {
    together[i].sequence = runnel_sequence_fork (state);
    together[i].params = make_params (i);
    threads[i] = g_thread_new ("neighbour", run_neighbour, &together[i]);
  }
  for (guint i = 0; i < 3; i++)
    g_thread_join (threads[i]);
  for (guint i = 0; i < 3; i++) {
    g_auto (Reply) alone = generate (runnel_sequence_fork (state),
        together[i].params);

    assert_same (&alone, &together[i].reply);
    reply_clear (&together[i].reply);
    runnel_generation_params_free (together[i].params);
  }
}

/* The logprobs of a whole vocabulary sum to one. */
static void
test_logprobs (Fixture *f, gconstpointer data)
{
  g_autoptr (RunnelGenerationParams) params = make_params (1);
  g_auto (Reply) reply = { NULL };

  params->n_top_logprobs = RUNNEL_MAX_TOP_LOGPROBS;
  reply = generate (prefill (f, 0, N_PROMPT, FALSE, NULL), params);
  for (guint i = 0; i < reply.tokens->len; i++) {
    const RunnelTokenLogprob *top
        = &g_array_index (reply.top, RunnelTokenLogprob,
            i * RUNNEL_MAX_TOP_LOGPROBS);
    gint32 token = g_array_index (reply.tokens, gint32, i);
    float logprob = g_array_index (reply.logprobs, float, i);

    g_assert_cmpfloat (logprob, <=, top[0].logprob);
    for (guint k = 0; k < RUNNEL_MAX_TOP_LOGPROBS; k++) {
      g_assert_cmpfloat (top[k].logprob, <=, 0);
      if (k > 0)
        g_assert_cmpfloat (top[k].logprob, <=, top[k - 1].logprob);
      if (top[k].token == token)
        g_assert_cmpfloat (top[k].logprob, ==, logprob);
    }
  }
}

/* ---- The context's end --------------------------------------------------- */

static guint64
count_rows (Fixture *f)
{
  RunnelEngineStats stats;

  runnel_engine_get_stats (f->engine, &stats);
  return stats.rows;
}

static void
check_distance (Fixture *f, RunnelOverflowPolicy policy, guint n_prompt,
                guint max_tokens)
{
  g_autoptr (RunnelGenerationParams) params = make_params (3);
  g_autoptr (GError) error = NULL;
  g_autofree gint32 *cut = NULL;
  g_autoptr (RunnelSequence) sequence = NULL;
  RunnelPromptFit fit;
  gsize n = n_prompt, n_cut = 0;
  guint64 rows = count_rows (f);
  gboolean fits = runnel_overflow_policy_fit_prompt (policy, 4, CONTEXT,
      f->prompt, n_prompt, &fit, &cut, &n_cut, &error);
  guint expected;

  if (n_prompt > CONTEXT && policy == RUNNEL_OVERFLOW_POLICY_ERROR) {
    g_assert_false (fits);
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CONTEXT_OVERFLOW);
    return;
  }
  g_assert_no_error (error);
  if (fit == RUNNEL_PROMPT_FIT_NOTHING) {
    g_assert_cmpint (policy, ==, RUNNEL_OVERFLOW_POLICY_STOP);
    g_assert_cmpuint (n_prompt, >, CONTEXT);
    return;
  }
  if (fit == RUNNEL_PROMPT_FIT_CUT) {
    g_assert_cmpuint (n_prompt, >, CONTEXT);
    g_assert_cmpuint (n_cut, <=, CONTEXT);
    n = n_cut;
  }
  sequence = runnel_sequence_new (f->engine, CONTEXT, NULL);
  runnel_sequence_prefill (sequence, fit == RUNNEL_PROMPT_FIT_CUT ? cut
      : f->prompt, n, 32, FALSE, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (count_rows (f) - rows, ==, n);
  if (n == 0)
    return;
  params->max_tokens = max_tokens;
  params->overflow_policy = policy;
  params->n_keep = 4;
  params->logprobs = FALSE;
  params->n_top_logprobs = 0;
  rows = count_rows (f);
  {
    g_auto (Reply) reply = generate (g_object_ref (sequence), params);

    expected = policy == RUNNEL_OVERFLOW_POLICY_SHIFT ? max_tokens
        : MIN (max_tokens, CONTEXT - n);
    /* The token that fills the context is drawn; none is drawn behind it. */
    if (policy != RUNNEL_OVERFLOW_POLICY_SHIFT && reply.tokens->len
        == expected + 1)
      expected++;
    g_assert_cmpuint (reply.tokens->len, ==, expected);
    g_assert_cmpint (reply.reason, ==, RUNNEL_FINISH_REASON_LENGTH);
    g_assert_cmpuint (runnel_sequence_get_length (sequence), <=, CONTEXT);
    /* No token is computed twice; a shift takes the last hidden row along
     * with the next token. */
    g_assert_cmpuint (count_rows (f) - rows, <=, max_tokens + 2);
  }
}

static void
test_distances (Fixture *f, gconstpointer data)
{
  /* Every distance is tried on a scripted model (test-generation.c). */
  guint step = g_getenv ("RUNNEL_TEST_LONG") != NULL ? 1 : 5;

  for (guint policy = 0; policy <= RUNNEL_OVERFLOW_POLICY_STOP; policy++)
    for (guint n_prompt = 0; n_prompt <= 70; n_prompt += n_prompt < 60
         ? step : 1)
      for (guint max = n_prompt % step; max <= 70; max += 2 * step)
        check_distance (f, policy, n_prompt, max);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/generation-model/same-reply", Fixture, NULL, set_up,
      test_same_reply, tear_down);
  g_test_add ("/generation-model/neighbours", Fixture, NULL, set_up,
      test_neighbours, tear_down);
  g_test_add ("/generation-model/logprobs", Fixture, NULL, set_up,
      test_logprobs, tear_down);
  g_test_add ("/generation-model/distances", Fixture, NULL, set_up,
      test_distances, tear_down);
  return g_test_run ();
}
