/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Drafters on real, if tiny, models: whatever they guess, the reply is that of
 * plain decoding, bit for bit, its tokens, its logprobs, and the sequence it
 * leaves behind.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "error.h"
#include "generate/lookup-drafter.h"
#include "model/engine-private.h"
#include "scripted-drafter.h"
#include "generate/generation.h"
#include "tiny-model.h"

#define SEED 20261201
#define N_PROMPT 40
#define N_REPLY 30
#define MAX_REPLY 100
#define N_TOP 64

typedef struct {
  RunnelEngine *engine;
  guint n_vocab;
  gint32 tokens[N_PROMPT + MAX_REPLY];
  guint n_tokens;            /* prompt and plain reply */
} Fixture;

static RunnelEngine *
make_engine (const char *architecture)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autofree char *path = NULL;
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (GError) error = NULL;
  RunnelEngine *engine;

  tiny.architecture = architecture;
  path = tiny_model_write (&tiny);
  model = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_assert_no_error (error);
  g_unlink (path);
  backend = runnel_backend_get ("cpu", 1, NULL, &error);
  engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  return engine;
}

typedef struct {
  GArray *tokens;            /* gint32 */
  GArray *logprobs;          /* float */
  GArray *top;               /* RunnelTokenLogprob */
  RunnelFinishReason reason;
  RunnelDraftStats stats;
  float *logits;             /* after the reply */
} Reply;

static void
reply_clear (Reply *reply)
{
  g_array_unref (reply->tokens);
  g_array_unref (reply->logprobs);
  g_array_unref (reply->top);
  g_free (reply->logits);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Reply, reply_clear)

/* Also the logits after the reply: what its sequence is worth. */
static void
end_reply (const Fixture *f, RunnelGeneration *generation, Reply *reply)
{
  RunnelSequence *sequence = runnel_generation_get_sequence (generation);
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (runnel_generation_get_n_tokens (generation), ==,
      reply->tokens->len);
  g_assert_cmpuint (runnel_sequence_get_length (sequence), ==,
      N_PROMPT + reply->tokens->len);
  reply->reason = runnel_generation_get_finish_reason (generation);
  runnel_generation_get_draft_stats (generation, &reply->stats);
  runnel_sequence_compute_logits (sequence, reply->logits, f->n_vocab, &error);
  g_assert_no_error (error);
}

/* @sequence is taken. */
static Reply
generate (const Fixture *f, RunnelSequence *sequence,
          const RunnelGenerationParams *params)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGeneration) generation
      = runnel_generation_new (sequence, params, &error);
  RunnelGenerationStep step = { 0 };
  Reply reply = {
    g_array_new (FALSE, FALSE, sizeof (gint32)),
    g_array_new (FALSE, FALSE, sizeof (float)),
    g_array_new (FALSE, FALSE, sizeof (RunnelTokenLogprob)),
    .logits = g_new (float, f->n_vocab),
  };

  g_assert_no_error (error);
  while (!step.finished) {
    runnel_generation_next (generation, &step, &error);
    g_assert_no_error (error);
    g_array_append_vals (reply.tokens, step.tokens, step.n_tokens);
    if (params->n_top_logprobs == 0)
      continue;
    g_array_append_vals (reply.logprobs, step.logprobs, step.n_tokens);
    g_array_append_vals (reply.top, step.top, step.n_tokens * N_TOP);
  }
  end_reply (f, generation, &reply);
  return reply;
}

static RunnelSequence *
prefill (const Fixture *f, RunnelDrafter *drafter, guint chunk,
         gboolean use_cache, gsize *cached)
{
  g_autoptr (GError) error = NULL;
  RunnelSequence *sequence = runnel_sequence_new (f->engine, 0, &error);

  g_assert_no_error (error);
  if (drafter != NULL)
    runnel_sequence_attach (sequence, drafter, &error);
  g_assert_no_error (error);
  runnel_sequence_prefill (sequence, f->tokens, N_PROMPT, chunk, use_cache,
      NULL, NULL, NULL, cached, &error);
  g_assert_no_error (error);
  return sequence;
}

static RunnelGenerationParams *
make_params (double temperature)
{
  RunnelGenerationParams *params = runnel_generation_params_new ();

  params->max_tokens = N_REPLY;
  params->ignore_eos = TRUE;
  params->sampler->temperature = temperature;
  params->sampler->seed = SEED;
  params->n_top_logprobs = N_TOP;
  params->adaptive_drafts = FALSE;
  return params;
}

static void
assert_same (const Fixture *f, const Reply *a, const Reply *b)
{
  g_assert_cmpmem (a->tokens->data, a->tokens->len * sizeof (gint32),
      b->tokens->data, b->tokens->len * sizeof (gint32));
  g_assert_cmpmem (a->logprobs->data, a->logprobs->len * sizeof (float),
      b->logprobs->data, b->logprobs->len * sizeof (float));
  g_assert_cmpmem (a->top->data, a->top->len * sizeof (RunnelTokenLogprob),
      b->top->data, b->top->len * sizeof (RunnelTokenLogprob));
  g_assert_cmpmem (a->logits, f->n_vocab * sizeof (float), b->logits,
      f->n_vocab * sizeof (float));
  g_assert_cmpint (a->reason, ==, b->reason);
}

/* A prompt in which much is said twice, and the plain reply to it. */
static Reply
set_up (Fixture *f, const char *architecture,
        const RunnelGenerationParams *params)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  Reply plain;

  f->engine = make_engine (architecture);
  f->n_vocab = runnel_model_get_n_vocab (runnel_engine_get_model (f->engine));
  for (guint i = 0; i < N_PROMPT; i++)
    f->tokens[i] = i % 16 < 8 && i >= 8 ? f->tokens[i - 8]
        : g_rand_int_range (rand, TINY_FIRST_BYTE, TINY_FIRST_PIECE);
  plain = generate (f, prefill (f, NULL, 0, FALSE, NULL), params);
  memcpy (f->tokens + N_PROMPT, plain.tokens->data,
      plain.tokens->len * sizeof (gint32));
  f->n_tokens = N_PROMPT + plain.tokens->len;
  return plain;
}

#define N_DRAFTERS 6

/* One kind of drafter at one block size. */
static void
check_drafter (const Fixture *f, const Reply *plain,
               const RunnelGenerationParams *base, guint block, guint kind)
{
  g_autoptr (RunnelGenerationParams) params
      = runnel_generation_params_copy (base);
  const ScriptedDrafts scripts[] = {
    { .wrong_at = -1, .length = block - 1 },
    { .wrong_at = (block - 1) / 2, .length = block - 1 },
    { .wrong_at = 0, .length = block - 1 },
    { .wrong_at = -1, .too_long = TRUE },
    { .wrong_at = -1, .length = block - 1, .taps = { 1, 0 }, .n_taps = 2 },
  };

  ScriptedDrafts script = scripts[kind % G_N_ELEMENTS (scripts)];
  g_autoptr (RunnelDrafter) drafter = NULL;
  g_auto (Reply) reply = { NULL };

  G_STATIC_ASSERT (N_DRAFTERS == G_N_ELEMENTS (scripts) + 1);
  params->max_draft = block - 1;
  script.tokens = f->tokens;
  script.n_tokens = f->n_tokens;
  script.n_vocab = f->n_vocab;
  drafter = kind < G_N_ELEMENTS (scripts) ? scripted_drafter_new (&script)
      : runnel_lookup_drafter_new (1, 4, block - 1, NULL);
  reply = generate (f, prefill (f, drafter, 7, FALSE, NULL), params);
  assert_same (f, plain, &reply);
  g_assert_cmpuint (reply.stats.accepted, <=, reply.stats.proposed);
  if (kind == 0)             /* work, not time: each pass gives a whole block */
    g_assert_cmpuint (reply.stats.passes, ==,
        (plain->tokens->len - 1 + block - 1) / block);
  if (kind == 2)
    g_assert_cmpuint (reply.stats.accepted, ==, 0);
}

static void
test_equality (gconstpointer data)
{
  const double temperatures[] = { 0.0, 1.0 };

  for (guint t = 0; t < G_N_ELEMENTS (temperatures); t++) {
    g_autoptr (RunnelGenerationParams) params = make_params (temperatures[t]);
    g_auto (Reply) plain = { NULL };
    Fixture f;

    if (temperatures[t] > 0) {
      params->sampler->top_k = 0;
      params->sampler->top_p = 1;
      params->sampler->min_p = 0;
      params->sampler->repetition_penalty = 1.1;
      params->sampler->presence_penalty = 0.5;
      params->sampler->frequency_penalty = 0.5;
      params->sampler->penalty_window = 20;
    }
    plain = set_up (&f, data, params);
    for (guint block = 2; block <= RUNNEL_MAX_DRAFT + 1; block++)
      for (guint kind = 0; kind < N_DRAFTERS; kind++)
        check_drafter (&f, &plain, params, block, kind);
    g_object_unref (f.engine);
  }
}

/* A state that was fed in chunks, in verified blocks, forked, truncated, found
 * in the prefix cache or loaded holds the rows of one that was fed at once. */
static void
assert_taps (RunnelSequence *sequence, const GArray *taps, guint n_embd)
{
  const RunnelDrafts *drafts = runnel_sequence_get_drafts (sequence);
  const GArray *own;
  gsize n;
  const gint32 *tokens = runnel_sequence_get_tokens (sequence, &n);
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (runnel_drafts_count (drafts), ==, 1);
  runnel_draft_state_catch_up (runnel_drafts_get (drafts, 0), tokens, n,
      &error);
  g_assert_no_error (error);
  own = scripted_state_get_taps (runnel_drafts_get (drafts, 0));
  g_assert_cmpuint (own->len, ==, n * 2 * n_embd);
  g_assert_cmpuint (own->len, <=, taps->len);
  g_assert_cmpmem (own->data, own->len * sizeof (float), taps->data,
      own->len * sizeof (float));
}

static RunnelSequence *
save_and_load (RunnelEngine *engine, RunnelSequence *sequence,
               RunnelDrafter *drafter)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) image = runnel_sequence_serialize (sequence, &error);
  RunnelSequence *loaded;

  g_assert_no_error (error);
  loaded = runnel_sequence_deserialize (engine, image, "image", &error);
  g_assert_no_error (error);
  runnel_sequence_attach (loaded, drafter, &error);
  g_assert_no_error (error);
  return loaded;
}

static void
test_states (void)
{
  g_autoptr (RunnelGenerationParams) params = make_params (0);
  Fixture f;
  g_auto (Reply) plain = set_up (&f, "llama", params);
  const guint n_embd = runnel_engine_get_shape (f.engine)->n_embd;
  const ScriptedDrafts script = {
    .tokens = f.tokens, .n_tokens = f.n_tokens, .n_vocab = f.n_vocab,
    .length = 6, .wrong_at = 3, .taps = { 0, 1 }, .n_taps = 2,
  };
  g_autoptr (RunnelDrafter) drafter = scripted_drafter_new (&script);
  g_autoptr (RunnelSequence) whole
      = runnel_sequence_new (f.engine, 0, NULL), chunked = NULL, fork = NULL,
      loaded = NULL, cached = NULL;
  g_autoptr (RunnelGeneration) generation = NULL;
  g_autoptr (GArray) taps = NULL;
  RunnelGenerationStep step = { 0 };
  RunnelDraftState *state;
  g_autoptr (GError) error = NULL;
  gsize n_cached;

  runnel_sequence_attach (whole, drafter, &error);
  g_assert_no_error (error);
  runnel_sequence_prefill (whole, f.tokens, f.n_tokens, 0, FALSE, NULL, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  state = runnel_drafts_get (runnel_sequence_get_drafts (whole), 0);
  taps = g_array_copy ((GArray *) scripted_state_get_taps (state));
  /* The last layer's is the hidden row of the last token. */
  g_assert_cmpmem ((float *) taps->data + taps->len - n_embd,
      n_embd * sizeof (float),
      runnel_sequence_get_history (whole)->hidden, n_embd * sizeof (float));
  assert_taps (whole, taps, n_embd);

  chunked = prefill (&f, drafter, 3, FALSE, NULL);
  assert_taps (chunked, taps, n_embd);
  fork = runnel_sequence_fork (chunked);
  generation = runnel_generation_new (g_object_ref (chunked), params, &error);
  g_assert_no_error (error);
  while (!step.finished)
    g_assert_true (runnel_generation_next (generation, &step, NULL));
  assert_taps (runnel_generation_get_sequence (generation), taps, n_embd);
  runnel_sequence_truncate (chunked, 50, &error);
  assert_taps (chunked, taps, n_embd);
  loaded = save_and_load (f.engine, chunked, drafter);
  assert_taps (loaded, taps, n_embd);
  assert_taps (fork, taps, n_embd);

  runnel_engine_clear_cache (f.engine);
  g_object_unref (prefill (&f, NULL, 0, TRUE, NULL));
  cached = prefill (&f, drafter, 0, TRUE, &n_cached);
  g_assert_cmpuint (n_cached, ==, 0);    /* it lacks the drafter's state */
  assert_taps (cached, taps, n_embd);
  g_clear_object (&cached);
  cached = prefill (&f, drafter, 0, TRUE, &n_cached);
  g_assert_cmpuint (n_cached, ==, N_PROMPT);
  assert_taps (cached, taps, n_embd);
  g_object_unref (prefill (&f, NULL, 0, TRUE, &n_cached));
  g_assert_cmpuint (n_cached, ==, N_PROMPT);
  g_object_unref (f.engine);
}

static void
test_attaching (void)
{
  g_autoptr (RunnelGenerationParams) params = make_params (0);
  Fixture f;
  g_auto (Reply) plain = set_up (&f, "llama", params);
  const ScriptedDrafts late = {
    .id = "late", .taps = { 0 }, .n_taps = 1,
  }, foreign = {
    .id = "foreign", .taps = { 2 }, .n_taps = 1,
  };
  g_autoptr (RunnelDrafter) first = scripted_drafter_new (&late);
  g_autoptr (RunnelDrafter) other = scripted_drafter_new (&foreign);
  g_autoptr (RunnelDrafter) lookup
      = runnel_lookup_drafter_new (2, 4, 5, NULL);
  g_autoptr (RunnelSequence) sequence = prefill (&f, NULL, 0, FALSE, NULL);
  g_autoptr (RunnelSequence) empty
      = runnel_sequence_new (f.engine, 0, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (runnel_sequence_attach (sequence, first, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  g_clear_error (&error);
  g_assert_false (runnel_sequence_attach (empty, other, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH);
  g_clear_error (&error);
  g_assert_true (runnel_sequence_attach (sequence, lookup, &error));
  g_assert_true (runnel_sequence_attach (sequence, lookup, &error));
  g_assert_cmpuint (runnel_drafts_count (runnel_sequence_get_drafts (
          sequence)), ==, 1);
  g_object_unref (f.engine);
}

/* With two drafters, and both ways to choose. */
static void
test_choice (void)
{
  g_autoptr (RunnelGenerationParams) params = make_params (0);
  Fixture f;
  g_auto (Reply) plain = set_up (&f, "qwen2", params);
  const ScriptedDrafts scripts[] = {
    { .id = "short", .tokens = f.tokens, .n_tokens = f.n_tokens,
      .n_vocab = f.n_vocab, .length = 2, .wrong_at = 1 },
    { .id = "long", .tokens = f.tokens, .n_tokens = f.n_tokens,
      .n_vocab = f.n_vocab, .length = 7, .wrong_at = -1 },
  };

  for (guint choice = 0; choice < 2; choice++) {
    RunnelSequence *sequence = runnel_sequence_new (f.engine, 0, NULL);
    g_auto (Reply) reply = { NULL };

    for (guint i = 0; i < 2; i++) {
      g_autoptr (RunnelDrafter) drafter = scripted_drafter_new (&scripts[i]);

      g_assert_true (runnel_sequence_attach (sequence, drafter, NULL));
    }
    g_assert_true (runnel_sequence_prefill (sequence, f.tokens, N_PROMPT, 0,
        FALSE, NULL, NULL, NULL, NULL, NULL));
    params->draft_choice = choice;
    reply = generate (&f, sequence, params);
    assert_same (&f, &plain, &reply);
    if (choice == RUNNEL_DRAFT_CHOICE_FIRST)
      g_assert_cmpuint (reply.stats.accepted, <=, reply.stats.blocks);
    else
      g_assert_cmpuint (reply.stats.accepted, >=, 6 * reply.stats.blocks - 6);
  }
  g_object_unref (f.engine);
}

/* The real model: a hundred tokens after each of ten beginnings (two hundred
 * in the long tests), spread over drafters, blocks and temperatures. */
static void
test_default_model (void)
{
  const guint n = g_getenv ("RUNNEL_TEST_LONG") != NULL ? 200 : 10;
  const char *path = g_getenv ("RUNNEL_DEFAULT_MODEL");
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  g_autoptr (GError) error = NULL;
  Fixture f = { NULL };

  g_assert_nonnull (path);
  model = runnel_model_open (path, RUNNEL_LOAD_MODE_MAP, &error);
  g_assert_no_error (error);
  backend = runnel_backend_get ("cpu", 2, NULL, &error);
  f.engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  f.n_vocab = runnel_model_get_n_vocab (model);
  for (guint i = 0; i < n; i++) {
    g_autoptr (RunnelGenerationParams) params = make_params (i % 2);
    g_auto (Reply) plain = { NULL };

    params->max_tokens = MAX_REPLY;
    params->n_top_logprobs = 0;
    params->sampler->seed = i;
    for (guint k = 0; k < N_PROMPT; k++)
      f.tokens[k] = g_rand_int_range (rand, 100, 20000);
    plain = generate (&f, prefill (&f, NULL, 0, FALSE, NULL), params);
    f.n_tokens = N_PROMPT + plain.tokens->len;
    memcpy (f.tokens + N_PROMPT, plain.tokens->data,
        plain.tokens->len * sizeof (gint32));
    check_drafter (&f, &plain, params, 2 + i * 5 % RUNNEL_MAX_DRAFT,
        i % N_DRAFTERS);
  }
  g_object_unref (f.engine);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_message ("seed %d", SEED);
  g_test_add_data_func ("/drafts/equality/llama", "llama", test_equality);
  g_test_add_data_func ("/drafts/equality/qwen2", "qwen2", test_equality);
  g_test_add_data_func ("/drafts/equality/qwen3", "qwen3", test_equality);
  g_test_add_func ("/drafts/states", test_states);
  g_test_add_func ("/drafts/attaching", test_attaching);
  g_test_add_func ("/drafts/choice", test_choice);
  g_test_add_func ("/default-model/drafts", test_default_model);
  return g_test_run ();
}
