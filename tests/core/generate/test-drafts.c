/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Drafters on real, if tiny, models: whatever they guess, the reply is that of
 * plain decoding, bit for bit, its tokens, its logprobs, and the sequence it
 * leaves behind.
 */
#include <string.h>

#include "draft-fixture.h"
#include "error.h"
#include "generate/lookup-drafter.h"
#include "scripted-drafter.h"

#define N_DRAFTERS 6

/* One kind of drafter at one block size. */
static void
check_drafter (const DraftFixture *f, const DraftReply *plain,
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
  g_auto (DraftReply) reply = { NULL };

  G_STATIC_ASSERT (N_DRAFTERS == G_N_ELEMENTS (scripts) + 1);
  params->max_draft = block - 1;
  script.tokens = f->tokens;
  script.n_tokens = f->n_tokens;
  script.n_vocab = f->n_vocab;
  drafter = kind < G_N_ELEMENTS (scripts) ? scripted_drafter_new (&script)
      : runnel_lookup_drafter_new (1, 4, block - 1, NULL);
  reply = draft_fixture_generate (f,
      draft_fixture_prefill (f, drafter, 7, FALSE, NULL), params);
  draft_fixture_assert_same (f, plain, &reply);
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
    g_autoptr (RunnelGenerationParams) params
        = draft_fixture_make_params (temperatures[t]);
    g_auto (DraftReply) plain = { NULL };
    g_auto (DraftFixture) f = draft_fixture_make (data);

    if (temperatures[t] > 0) {
      params->sampler->top_k = 0;
      params->sampler->top_p = 1;
      params->sampler->min_p = 0;
      params->sampler->repetition_penalty = 1.1;
      params->sampler->presence_penalty = 0.5;
      params->sampler->frequency_penalty = 0.5;
      params->sampler->penalty_window = 20;
    }
    plain = draft_fixture_generate_plain (&f, params);
    for (guint block = 2; block <= RUNNEL_MAX_DRAFT + 1; block++)
      for (guint kind = 0; kind < N_DRAFTERS; kind++)
        check_drafter (&f, &plain, params, block, kind);
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

static void
test_states (void)
{
  g_autoptr (RunnelGenerationParams) params = draft_fixture_make_params (0);
  g_auto (DraftFixture) f = draft_fixture_make ("llama");
  g_auto (DraftReply) plain = draft_fixture_generate_plain (&f, params);
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

  chunked = draft_fixture_prefill (&f, drafter, 3, FALSE, NULL);
  assert_taps (chunked, taps, n_embd);
  fork = runnel_sequence_fork (chunked);
  generation = runnel_generation_new (g_object_ref (chunked), params, &error);
  g_assert_no_error (error);
  while (!step.finished)
    g_assert_true (runnel_generation_next (generation, &step, NULL));
  assert_taps (runnel_generation_get_sequence (generation), taps, n_embd);
  runnel_sequence_truncate (chunked, 50, &error);
  assert_taps (chunked, taps, n_embd);
  loaded = draft_fixture_save_and_load (&f, chunked, drafter);
  assert_taps (loaded, taps, n_embd);
  assert_taps (fork, taps, n_embd);

  runnel_engine_clear_cache (f.engine);
  g_object_unref (draft_fixture_prefill (&f, NULL, 0, TRUE, NULL));
  cached = draft_fixture_prefill (&f, drafter, 0, TRUE, &n_cached);
  g_assert_cmpuint (n_cached, ==, 0);    /* it lacks the drafter's state */
  assert_taps (cached, taps, n_embd);
  g_clear_object (&cached);
  cached = draft_fixture_prefill (&f, drafter, 0, TRUE, &n_cached);
  g_assert_cmpuint (n_cached, ==, DRAFT_N_PROMPT);
  assert_taps (cached, taps, n_embd);
  g_object_unref (draft_fixture_prefill (&f, NULL, 0, TRUE, &n_cached));
  g_assert_cmpuint (n_cached, ==, DRAFT_N_PROMPT);
}

static void
test_attaching (void)
{
  g_autoptr (RunnelGenerationParams) params = draft_fixture_make_params (0);
  g_auto (DraftFixture) f = draft_fixture_make ("llama");
  g_auto (DraftReply) plain = draft_fixture_generate_plain (&f, params);
  const ScriptedDrafts late = {
    .id = "late", .taps = { 0 }, .n_taps = 1,
  }, foreign = {
    .id = "foreign", .taps = { 2 }, .n_taps = 1,
  };
  g_autoptr (RunnelDrafter) first = scripted_drafter_new (&late);
  g_autoptr (RunnelDrafter) other = scripted_drafter_new (&foreign);
  g_autoptr (RunnelDrafter) lookup
      = runnel_lookup_drafter_new (2, 4, 5, NULL);
  g_autoptr (RunnelSequence) sequence
      = draft_fixture_prefill (&f, NULL, 0, FALSE, NULL);
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
}

/* With two drafters, and both ways to choose. */
static void
test_choice (void)
{
  g_autoptr (RunnelGenerationParams) params = draft_fixture_make_params (0);
  g_auto (DraftFixture) f = draft_fixture_make ("qwen2");
  g_auto (DraftReply) plain = draft_fixture_generate_plain (&f, params);
  const ScriptedDrafts scripts[] = {
    { .id = "short", .tokens = f.tokens, .n_tokens = f.n_tokens,
      .n_vocab = f.n_vocab, .length = 2, .wrong_at = 1 },
    { .id = "long", .tokens = f.tokens, .n_tokens = f.n_tokens,
      .n_vocab = f.n_vocab, .length = 7, .wrong_at = -1 },
  };

  for (guint choice = 0; choice < 2; choice++) {
    RunnelSequence *sequence = runnel_sequence_new (f.engine, 0, NULL);
    g_auto (DraftReply) reply = { NULL };

    for (guint i = 0; i < 2; i++) {
      g_autoptr (RunnelDrafter) drafter = scripted_drafter_new (&scripts[i]);

      g_assert_true (runnel_sequence_attach (sequence, drafter, NULL));
    }
    g_assert_true (runnel_sequence_prefill (sequence, f.tokens,
        DRAFT_N_PROMPT, 0, FALSE, NULL, NULL, NULL, NULL, NULL));
    params->draft_choice = choice;
    reply = draft_fixture_generate (&f, sequence, params);
    draft_fixture_assert_same (&f, &plain, &reply);
    if (choice == RUNNEL_DRAFT_CHOICE_FIRST)
      g_assert_cmpuint (reply.stats.accepted, <=, reply.stats.blocks);
    else
      g_assert_cmpuint (reply.stats.accepted, >=, 6 * reply.stats.blocks - 6);
  }
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
  g_autoptr (GRand) rand = g_rand_new_with_seed (DRAFT_SEED);
  g_autoptr (GError) error = NULL;
  g_auto (DraftFixture) f = { NULL };

  g_assert_nonnull (path);
  model = runnel_model_open (path, RUNNEL_LOAD_MODE_MAP, &error);
  g_assert_no_error (error);
  backend = runnel_backend_get ("cpu", 2, NULL, &error);
  f.engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  f.n_vocab = runnel_model_get_n_vocab (model);
  for (guint i = 0; i < n; i++) {
    g_autoptr (RunnelGenerationParams) params
        = draft_fixture_make_params (i % 2);
    g_auto (DraftReply) plain = { NULL };

    params->max_tokens = DRAFT_MAX_REPLY;
    params->n_top_logprobs = 0;
    params->sampler->seed = i;
    for (guint k = 0; k < DRAFT_N_PROMPT; k++)
      f.tokens[k] = g_rand_int_range (rand, 100, 20000);
    plain = draft_fixture_generate_plain (&f, params);
    check_drafter (&f, &plain, params, 2 + i * 5 % RUNNEL_MAX_DRAFT,
        i % N_DRAFTERS);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_message ("seed %d", DRAFT_SEED);
  g_test_add_data_func ("/drafts/equality/llama", "llama", test_equality);
  g_test_add_data_func ("/drafts/equality/qwen2", "qwen2", test_equality);
  g_test_add_data_func ("/drafts/equality/qwen3", "qwen3", test_equality);
  g_test_add_func ("/drafts/states", test_states);
  g_test_add_func ("/drafts/attaching", test_attaching);
  g_test_add_func ("/drafts/choice", test_choice);
  g_test_add_func ("/default-model/drafts", test_default_model);
  return g_test_run ();
}
