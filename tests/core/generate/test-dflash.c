/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * DFlash drafts of random weights beside tiny models: replies are those of
 * plain decoding for every block size, and a draft state goes where its
 * sequence goes.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "error.h"
#include "generate/dflash-drafter.h"
#include "generate/generation.h"
#include "model/engine-private.h"
#include "tiny-draft.h"
#include "tiny-model.h"

#define SEED 20261201
#define N_PROMPT 37
#define N_REPLY 24

static RunnelEngine *
make_engine (const char *architecture, guint n_layers)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autofree char *path = NULL;
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (GError) error = NULL;
  RunnelEngine *engine;

  tiny.architecture = architecture;
  tiny.n_layers = n_layers;
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

static RunnelModel *
make_draft (RunnelEngine *engine, guint version, guint block, guint tap)
{
  RunnelModel *target = runnel_engine_get_model (engine);
  const TinyDraft tiny = { version, block, runnel_model_get_n_embd (target),
    runnel_model_get_n_vocab (target), tap, SEED };
  g_autofree char *path = tiny_draft_write (&tiny);
  g_autoptr (GError) error = NULL;
  RunnelModel *draft
      = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);

  g_assert_no_error (error);
  g_unlink (path);
  return draft;
}

static RunnelDrafter *
make_drafter (RunnelEngine *engine, guint version, guint block)
{
  g_autoptr (RunnelModel) draft = make_draft (engine, version, block, 1);
  g_autoptr (GError) error = NULL;
  RunnelDrafter *drafter = runnel_dflash_drafter_new (draft, &error);

  g_assert_no_error (error);
  return drafter;
}

static RunnelSequence *
prefill (RunnelEngine *engine, RunnelDrafter *drafter, guint chunk,
         gboolean use_cache, gsize *cached)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (SEED);
  g_autoptr (GError) error = NULL;
  RunnelSequence *sequence = runnel_sequence_new (engine, 0, &error);
  gint32 tokens[N_PROMPT];

  for (guint i = 0; i < N_PROMPT; i++)
    tokens[i] = g_rand_int_range (rand, TINY_FIRST_BYTE, TINY_FIRST_PIECE);
  if (drafter != NULL)
    runnel_sequence_attach (sequence, drafter, &error);
  g_assert_no_error (error);
  runnel_sequence_prefill (sequence, tokens, N_PROMPT, chunk, use_cache, NULL,
      NULL, NULL, cached, &error);
  g_assert_no_error (error);
  return sequence;
}

/* The reply and the logits behind it; @sequence is taken. */
static GBytes *
generate (RunnelSequence *sequence, double temperature, guint64 *proposed)
{
  g_autoptr (RunnelGenerationParams) params = runnel_generation_params_new ();
  g_autoptr (RunnelGeneration) generation = NULL;
  g_autoptr (GByteArray) all = g_byte_array_new ();
  g_autoptr (GError) error = NULL;
  RunnelGenerationStep step = { 0 };
  RunnelDraftStats stats;
  guint n_vocab = runnel_model_get_n_vocab (runnel_engine_get_model (
          runnel_sequence_get_engine (sequence)));
  g_autofree float *logits = g_new (float, n_vocab);

  params->max_tokens = N_REPLY;
  params->ignore_eos = TRUE;
  params->sampler->temperature = temperature;
  params->sampler->seed = SEED;
  params->adaptive_drafts = FALSE;
  generation = runnel_generation_new (sequence, params, &error);
  g_assert_no_error (error);
  while (!step.finished) {
    runnel_generation_next (generation, &step, &error);
    g_assert_no_error (error);
    g_byte_array_append (all, (const guint8 *) step.tokens,
        step.n_tokens * sizeof *step.tokens);
  }
  g_assert_cmpuint (all->len, ==, N_REPLY * sizeof (gint32));
  runnel_sequence_compute_logits (runnel_generation_get_sequence (generation),
      logits, n_vocab, &error);
  g_assert_no_error (error);
  g_byte_array_append (all, (const guint8 *) logits,
      n_vocab * sizeof *logits);
  runnel_generation_get_draft_stats (generation, &stats);
  if (proposed != NULL)
    *proposed = stats.proposed;
  return g_byte_array_free_to_bytes (g_steal_pointer (&all));
}

static void
test_replies (gconstpointer architecture)
{
  g_autoptr (RunnelEngine) engine = make_engine (architecture, 2);

  for (guint t = 0; t < 2; t++) {
    g_autoptr (GBytes) plain
        = generate (prefill (engine, NULL, 0, FALSE, NULL), t, NULL);

    for (guint version = 1; version <= 2; version++)
      for (guint block = 2; block <= 16; block++) {
        g_autoptr (RunnelDrafter) drafter
            = make_drafter (engine, version, block);
        guint64 proposed;
        g_autoptr (GBytes) drafted = generate (
            prefill (engine, drafter, block, FALSE, NULL), t, &proposed);

        g_test_message ("version %u, block %u", version, block);
        g_assert_true (g_bytes_equal (plain, drafted));
        g_assert_cmpuint (proposed, >, 0);
      }
  }
}

/* ---- States -------------------------------------------------------------------- */

/* What the draft guesses behind the sequence. */
static RunnelProposal
propose (RunnelSequence *sequence)
{
  RunnelDraftState *state
      = runnel_drafts_get (runnel_sequence_get_drafts (sequence), 0);
  gsize length;
  const gint32 *tokens = runnel_sequence_get_tokens (sequence, &length);
  const RunnelDraftRequest request = { .anchor = TINY_FIRST_BYTE + 65,
    .max_tokens = 7, .position = length + 1 };
  RunnelProposal proposal;
  g_autoptr (GError) error = NULL;

  runnel_draft_state_catch_up (state, tokens, length, &error);
  g_assert_no_error (error);
  runnel_draft_state_propose (state, &request, &proposal, &error);
  g_assert_no_error (error);
  return proposal;
}

static void
assert_guesses (RunnelSequence *sequence, const RunnelProposal *expected)
{
  const RunnelProposal proposal = propose (sequence);

  g_assert_cmpmem (proposal.tokens, proposal.n_tokens * sizeof (gint32),
      expected->tokens, expected->n_tokens * sizeof (gint32));
}

static void
append (RunnelSequence *sequence)
{
  const gint32 more[] = { 50, 51, 52, 53, 54 };
  g_autoptr (GError) error = NULL;

  runnel_sequence_prefill (sequence, more, G_N_ELEMENTS (more), 0, FALSE, NULL,
      NULL, NULL, NULL, &error);
  g_assert_no_error (error);
}

static void
test_states (void)
{
  g_autoptr (RunnelEngine) engine = make_engine ("qwen3", 2);
  g_autoptr (RunnelDrafter) drafter = make_drafter (engine, 2, 8);
  g_autoptr (RunnelSequence) whole = prefill (engine, drafter, 0, FALSE, NULL);
  g_autoptr (RunnelSequence) parts = prefill (engine, drafter, 3, FALSE, NULL);
  g_autoptr (RunnelSequence) fork = NULL, loaded = NULL;
  g_autoptr (GBytes) image = NULL;
  g_autoptr (GError) error = NULL;
  const RunnelProposal first = propose (whole);
  RunnelProposal longer;

  g_assert_cmpuint (first.n_tokens, ==, 7);
  assert_guesses (whole, &first);
  assert_guesses (parts, &first);
  fork = runnel_sequence_fork (whole);
  append (fork);
  longer = propose (fork);
  g_assert_true (memcmp (longer.tokens, first.tokens, 7 * sizeof (gint32)));
  assert_guesses (whole, &first);
  append (whole);
  assert_guesses (whole, &longer);

  image = runnel_sequence_serialize (fork, &error);
  g_assert_no_error (error);
  runnel_sequence_truncate (fork, N_PROMPT, &error);
  g_assert_no_error (error);
  assert_guesses (fork, &first);
  assert_guesses (whole, &longer);
  loaded = runnel_sequence_deserialize (engine, image, "image", &error);
  g_assert_no_error (error);
  runnel_sequence_attach (loaded, drafter, &error);
  g_assert_no_error (error);
  assert_guesses (loaded, &longer);
}

static void
test_prefix_cache (void)
{
  g_autoptr (RunnelEngine) engine = make_engine ("llama", 2);
  g_autoptr (RunnelDrafter) drafter = make_drafter (engine, 2, 8);
  gsize cached = 1;
  g_autoptr (RunnelSequence) cold = prefill (engine, drafter, 0, TRUE,
      &cached);
  const RunnelProposal guesses = propose (cold);
  g_autoptr (RunnelSequence) warm = NULL;

  g_assert_cmpuint (cached, ==, 0);
  warm = prefill (engine, drafter, 0, TRUE, &cached);
  g_assert_cmpuint (cached, >, 0);
  assert_guesses (warm, &guesses);
}

/* ---- What does not belong together ----------------------------------------------- */

static void
test_other_target (void)
{
  g_autoptr (RunnelEngine) engine = make_engine ("llama", 2);
  RunnelModel *target = runnel_engine_get_model (engine);
  g_autoptr (RunnelModel) deep = make_draft (engine, 2, 8, 5);
  const TinyDraft tiny = { 1, 8, 96, runnel_model_get_n_vocab (target), 1, 1 };
  g_autofree char *path = tiny_draft_write (&tiny);
  g_autoptr (RunnelModel) wide
      = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, NULL);
  RunnelModel *drafts[] = { deep, wide };

  g_unlink (path);
  for (guint i = 0; i < 2; i++) {
    g_autoptr (RunnelDrafter) drafter
        = runnel_dflash_drafter_new (drafts[i], NULL);
    g_autoptr (RunnelSequence) sequence
        = runnel_sequence_new (engine, 0, NULL);
    g_autoptr (GError) error = NULL;

    g_assert_false (runnel_sequence_attach (sequence, drafter, &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH);
    g_assert_nonnull (strstr (error->message, "for another model"));
  }
}

static void
test_no_model (void)
{
  g_autoptr (RunnelEngine) engine = make_engine ("llama", 2);
  g_autoptr (RunnelModel) draft = make_draft (engine, 2, 8, 1);
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_engine_get (draft, runnel_engine_get_backend (engine),
      RUNNEL_KV_TYPE_F16, NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED);
  g_clear_error (&error);
  g_assert_null (runnel_dflash_drafter_new (runnel_engine_get_model (engine),
      &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
}

/* What `runnel inspect` says of a draft. */
static void
test_describe (void)
{
  g_autoptr (RunnelEngine) engine = make_engine ("llama", 2);
  g_autoptr (RunnelModel) draft = make_draft (engine, 2, 6, 1);
  g_autoptr (GVariant) description = runnel_model_describe (draft);
  g_autoptr (GVariant) numbers = g_variant_lookup_value (description, "draft",
      G_VARIANT_TYPE_VARDICT);
  g_autoptr (GVariant) taps = NULL;
  guint block_size, rank, tap;

  g_assert_nonnull (numbers);
  g_assert_true (g_variant_lookup (numbers, "block_size", "u", &block_size));
  g_assert_cmpuint (block_size, ==, 6);
  g_assert_true (g_variant_lookup (numbers, "selector_rank", "u", &rank));
  g_assert_cmpuint (rank, >, 0);
  taps = g_variant_lookup_value (numbers, "taps", G_VARIANT_TYPE ("au"));
  g_assert_cmpuint (g_variant_n_children (taps), ==, 1);
  g_variant_get_child (taps, 0, "u", &tap);
  g_assert_cmpuint (tap, ==, 1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_message ("seed %u", SEED);
  g_test_add_data_func ("/dflash/replies/llama", "llama", test_replies);
  g_test_add_data_func ("/dflash/replies/qwen2", "qwen2", test_replies);
  g_test_add_data_func ("/dflash/replies/qwen3", "qwen3", test_replies);
  g_test_add_func ("/dflash/states", test_states);
  g_test_add_func ("/dflash/prefix-cache", test_prefix_cache);
  g_test_add_func ("/dflash/other-target", test_other_target);
  g_test_add_func ("/dflash/no-model", test_no_model);
  g_test_add_func ("/dflash/describe", test_describe);
  return g_test_run ();
}
