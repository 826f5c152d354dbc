/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * DFlash drafts of random weights beside tiny models: replies are those of
 * plain decoding for every block size, a draft state goes where its sequence
 * goes, and it does not matter what file the draft is in.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "draft-fixture.h"
#include "error.h"
#include "formats/converter.h"
#include "formats/verify.h"
#include "generate/dflash-drafter.h"
#include "model/dflash.h"
#include "model/model-private.h"
#include "tiny-draft.h"

static TinyDraft
describe_draft (const DraftFixture *f, guint version, guint block)
{
  RunnelModel *target = runnel_engine_get_model (f->engine);
  const TinyDraft tiny = { version, block, runnel_model_get_n_embd (target),
    f->n_vocab, 1, DRAFT_SEED };

  return tiny;
}

/* @path goes. */
static RunnelModel *
open_draft (char *path)
{
  g_autoptr (GError) error = NULL;
  RunnelModel *draft
      = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);

  g_assert_no_error (error);
  tiny_draft_delete (path);
  g_free (path);
  return draft;
}

static RunnelDrafter *
open_drafter (char *path)
{
  g_autoptr (RunnelModel) draft = open_draft (path);
  g_autoptr (GError) error = NULL;
  RunnelDrafter *drafter = runnel_dflash_drafter_new (draft, &error);

  g_assert_no_error (error);
  return drafter;
}

static RunnelDrafter *
make_drafter (const DraftFixture *f, guint version, guint block)
{
  const TinyDraft tiny = describe_draft (f, version, block);

  return open_drafter (tiny_draft_write (&tiny));
}

static void
test_replies (gconstpointer architecture)
{
  g_auto (DraftFixture) f = draft_fixture_make (architecture);

  for (guint t = 0; t < 2; t++) {
    g_autoptr (RunnelGenerationParams) params = draft_fixture_make_params (t);
    g_auto (DraftReply) plain = draft_fixture_generate_plain (&f, params);

    for (guint version = 1; version <= 2; version++)
      for (guint block = 2; block <= 16; block++) {
        g_autoptr (RunnelDrafter) drafter = make_drafter (&f, version, block);
        g_auto (DraftReply) drafted = draft_fixture_generate (&f,
            draft_fixture_prefill (&f, drafter, block, FALSE, NULL), params);

        g_test_message ("version %u, block %u", version, block);
        draft_fixture_assert_same (&f, &plain, &drafted);
        g_assert_cmpuint (drafted.stats.proposed, >, 0);
      }
  }
}

/* ---- States -------------------------------------------------------------- */

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
  g_auto (DraftFixture) f = draft_fixture_make ("qwen3");
  g_autoptr (RunnelDrafter) drafter = make_drafter (&f, 2, 8);
  g_autoptr (RunnelSequence) whole
      = draft_fixture_prefill (&f, drafter, 0, FALSE, NULL);
  g_autoptr (RunnelSequence) parts
      = draft_fixture_prefill (&f, drafter, 3, FALSE, NULL);
  g_autoptr (RunnelSequence) fork = NULL, loaded = NULL;
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

  loaded = draft_fixture_save_and_load (&f, fork, drafter);
  assert_guesses (loaded, &longer);
  runnel_sequence_truncate (fork, DRAFT_N_PROMPT, &error);
  g_assert_no_error (error);
  assert_guesses (fork, &first);
  assert_guesses (whole, &longer);
}

static void
test_prefix_cache (void)
{
  g_auto (DraftFixture) f = draft_fixture_make ("llama");
  g_autoptr (RunnelDrafter) drafter = make_drafter (&f, 2, 8);
  gsize cached = 1;
  g_autoptr (RunnelSequence) cold
      = draft_fixture_prefill (&f, drafter, 0, TRUE, &cached);
  const RunnelProposal guesses = propose (cold);
  g_autoptr (RunnelSequence) warm = NULL;

  g_assert_cmpuint (cached, ==, 0);
  warm = draft_fixture_prefill (&f, drafter, 0, TRUE, &cached);
  g_assert_cmpuint (cached, >, 0);
  assert_guesses (warm, &guesses);
}

/* ---- Windows ------------------------------------------------------------- */

/* All logits of a block behind a context of noise in which one row is another
 * one; @changed: none if it is the number of rows. */
static GBytes *
guess_behind (RunnelDflash *dflash, const DraftFixture *f, guint changed)
{
  const guint n_embd = runnel_engine_get_shape (f->engine)->n_embd;
  const gsize n = (gsize) DRAFT_N_PROMPT * n_embd, n_logits = 7 * f->n_vocab;
  g_autoptr (GRand) rand = g_rand_new_with_seed (DRAFT_SEED);
  g_autofree float *taps = g_new (float, n);
  float *logits = g_new (float, n_logits);
  RunnelHistory context;
  RunnelDflashBlock block;
  g_autoptr (GError) error = NULL;

  for (gsize i = 0; i < n; i++)
    taps[i] = g_rand_double_range (rand, -1, 1)
        * (i / n_embd == changed ? -1 : 1);
  runnel_dflash_init_context (dflash, &context);
  runnel_dflash_block_init (&block, dflash);
  runnel_dflash_commit (dflash, &context, f->tokens, DRAFT_N_PROMPT, taps,
      &error);
  g_assert_no_error (error);
  runnel_dflash_guess (dflash, &context, f->tokens[0], 7, &block, NULL, 0,
      logits, &error);
  g_assert_no_error (error);
  runnel_dflash_block_clear (&block);
  runnel_history_clear (&context);
  return g_bytes_new_take (logits, n_logits * sizeof *logits);
}

/* A slot sees the rows that lie less than a window before it, itself counted
 * as 0; so the first row that any slot sees is the one that the anchor's
 * does, and the next older one changes nothing. */
static void
test_window (gconstpointer data)
{
  const guint window = GPOINTER_TO_UINT (data);
  g_auto (DraftFixture) f = draft_fixture_make ("llama");
  const guint first_seen = DRAFT_N_PROMPT - window + 1;

  for (guint version = 1; version <= 2; version++) {
    TinyDraft tiny = describe_draft (&f, version, 8);
    g_autoptr (RunnelModel) draft = NULL;
    g_autoptr (RunnelDflash) dflash = NULL;
    g_autoptr (GBytes) plain = NULL, seen = NULL;

    tiny.window = window;
    tiny.all_slide = TRUE;
    draft = open_draft (tiny_draft_write (&tiny));
    dflash = runnel_dflash_new (draft, f.engine, NULL);
    plain = guess_behind (dflash, &f, DRAFT_N_PROMPT);
    seen = guess_behind (dflash, &f, first_seen);
    g_assert_false (g_bytes_equal (plain, seen));
    for (guint row = 0; row < first_seen; row++) {
      g_autoptr (GBytes) unseen = guess_behind (dflash, &f, row);

      g_assert_true (g_bytes_equal (plain, unseen));
    }
  }
}

/* One as wide as context and block is none, and a narrower one is not. */
static void
test_wide_window (void)
{
  static const guint windows[] = { 0, DRAFT_N_PROMPT + 8,
    DRAFT_N_PROMPT - 1 };
  g_auto (DraftFixture) f = draft_fixture_make ("llama");
  GBytes *logits[G_N_ELEMENTS (windows)];

  for (guint i = 0; i < G_N_ELEMENTS (windows); i++) {
    TinyDraft tiny = describe_draft (&f, 2, 8);
    g_autoptr (RunnelModel) draft = NULL;
    g_autoptr (RunnelDflash) dflash = NULL;

    tiny.window = windows[i];
    draft = open_draft (tiny_draft_write (&tiny));
    dflash = runnel_dflash_new (draft, f.engine, NULL);
    logits[i] = guess_behind (dflash, &f, DRAFT_N_PROMPT);
  }
  g_assert_true (g_bytes_equal (logits[0], logits[1]));
  g_assert_false (g_bytes_equal (logits[0], logits[2]));
  for (guint i = 0; i < G_N_ELEMENTS (windows); i++)
    g_clear_pointer (&logits[i], g_bytes_unref);
}

/* ---- Files --------------------------------------------------------------- */

static RunnelProposal
propose_with (const DraftFixture *f, RunnelDrafter *drafter)
{
  g_autoptr (RunnelSequence) sequence
      = draft_fixture_prefill (f, drafter, 0, FALSE, NULL);

  return propose (sequence);
}

/* Of @source, which stays; its digests agree. */
static char *
write_package (const char *source, RunnelPackageType type)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GVariant) report = NULL;
  g_autoptr (GError) error = NULL;
  char *path = g_strdup_printf ("%s.runnel", source);

  g_object_set (converter, "type", type, NULL);
  report = runnel_converter_convert (converter, source, path, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  g_assert_true (runnel_verify_file (path, NULL, NULL, NULL, &error));
  g_assert_no_error (error);
  return path;
}

/* Numbers and proposals of all packages of @source against those of itself.
 * What is in half floats or codes is another draft, but one of that target. */
static void
check_packages (const DraftFixture *f, char *source,
                const RunnelProposal *expected)
{
  static const RunnelPackageType types[] = { RUNNEL_PACKAGE_TYPE_SOURCE,
    RUNNEL_PACKAGE_TYPE_F16, RUNNEL_PACKAGE_TYPE_INT8,
    RUNNEL_PACKAGE_TYPE_INT4, RUNNEL_PACKAGE_TYPE_AUTO };
  g_autoptr (RunnelModel) original = runnel_model_open (source,
      RUNNEL_LOAD_MODE_READ, NULL);
  const RunnelHyperparameters *hp = runnel_checkpoint_hyperparameters (
      runnel_model_get_checkpoint (original));

  for (guint i = 0; i < G_N_ELEMENTS (types); i++) {
    g_autofree char *path = write_package (source, types[i]);
    g_autofree char *again = write_package (path, RUNNEL_PACKAGE_TYPE_SOURCE);
    g_autoptr (RunnelModel) package = open_draft (g_steal_pointer (&path));
    g_autoptr (RunnelDrafter) drafter
        = runnel_dflash_drafter_new (package, NULL);
    g_autoptr (RunnelDrafter) second
        = open_drafter (g_steal_pointer (&again));
    RunnelHyperparameters own = *runnel_checkpoint_hyperparameters (
        runnel_model_get_checkpoint (package));
    const RunnelProposal first = propose_with (f, drafter);
    const RunnelProposal repeated = propose_with (f, second);

    g_assert_cmpmem (&own, sizeof own, hp, sizeof *hp);
    g_assert_cmpmem (first.tokens, first.n_tokens * sizeof (gint32),
        repeated.tokens, repeated.n_tokens * sizeof (gint32));
    if (types[i] == RUNNEL_PACKAGE_TYPE_SOURCE)
      g_assert_cmpmem (first.tokens, first.n_tokens * sizeof (gint32),
          expected->tokens, expected->n_tokens * sizeof (gint32));
  }
  tiny_draft_delete (source);
  g_free (source);
}

static void
test_files (void)
{
  g_auto (DraftFixture) f = draft_fixture_make ("qwen2");

  for (guint version = 1; version <= 2; version++)
    for (guint window = 0; window <= 12; window += 12) {
      TinyDraft tiny = describe_draft (&f, version, 8);
      g_autoptr (RunnelDrafter) gguf = NULL, folder = NULL;
      RunnelProposal expected, other;

      tiny.window = window;
      gguf = open_drafter (tiny_draft_write (&tiny));
      folder = open_drafter (tiny_draft_write_folder (&tiny));
      expected = propose_with (&f, gguf);
      other = propose_with (&f, folder);
      g_assert_cmpuint (expected.n_tokens, ==, 7);
      g_assert_cmpmem (expected.tokens, 7 * sizeof (gint32), other.tokens,
          other.n_tokens * sizeof (gint32));
      check_packages (&f, tiny_draft_write (&tiny), &expected);
      check_packages (&f, tiny_draft_write_folder (&tiny), &expected);
    }
}

/* ---- What does not belong together --------------------------------------- */

static void
assert_other_target (const DraftFixture *f, const TinyDraft *tiny,
                     const char *what)
{
  g_autoptr (RunnelDrafter) drafter = open_drafter (tiny_draft_write (tiny));
  g_autoptr (RunnelSequence) sequence
      = runnel_sequence_new (f->engine, 0, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (runnel_sequence_attach (sequence, drafter, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH);
  g_assert_nonnull (strstr (error->message, what));
  g_assert_nonnull (strstr (error->message, "for another model"));
}

static void
test_other_target (void)
{
  g_auto (DraftFixture) f = draft_fixture_make ("llama");
  TinyDraft tiny = describe_draft (&f, 2, 8);

  tiny.tap = 5;
  assert_other_target (&f, &tiny, "layer 5");
  tiny = describe_draft (&f, 1, 8);
  tiny.n_embd = 96;
  assert_other_target (&f, &tiny, "width 96");
  tiny = describe_draft (&f, 1, 8);
  tiny.n_vocab += 1;
  assert_other_target (&f, &tiny, "tokens");
}

static void
test_vocabulary (void)
{
  g_auto (DraftFixture) f = draft_fixture_make ("llama");
  TinyDraft tiny = describe_draft (&f, 2, 8);
  g_autoptr (RunnelSequence) sequence = NULL;
  g_autoptr (RunnelDrafter) drafter = NULL;
  g_autofree char *source = NULL, *package = NULL;

  tiny.tokenizer = runnel_checkpoint_gguf (runnel_model_get_checkpoint (
          runnel_engine_get_model (f.engine)));
  source = tiny_draft_write (&tiny);
  package = write_package (source, RUNNEL_PACKAGE_TYPE_AUTO);
  drafter = open_drafter (g_steal_pointer (&source));
  sequence = draft_fixture_prefill (&f, drafter, 0, FALSE, NULL);
  g_clear_object (&sequence);
  g_clear_object (&drafter);
  drafter = open_drafter (g_steal_pointer (&package));
  sequence = draft_fixture_prefill (&f, drafter, 0, FALSE, NULL);

  tiny.pretokenizer = "llama-bpe";
  assert_other_target (&f, &tiny, "vocabulary");
}

/* ---- Memory -------------------------------------------------------------- */

static RunnelEngineStats
get_stats (const DraftFixture *f)
{
  RunnelEngineStats stats;

  runnel_engine_get_stats (f->engine, &stats);
  return stats;
}

static guint64
sum (const RunnelEngineStats *stats)
{
  return stats->weight_bytes + stats->scratch_bytes + stats->kv_bytes
      + stats->draft_bytes;
}

static void
test_counted (void)
{
  g_auto (DraftFixture) f = draft_fixture_make ("llama");
  g_autoptr (RunnelDrafter) drafter = make_drafter (&f, 2, 8);
  g_autoptr (RunnelSequence) sequence
      = runnel_sequence_new (f.engine, 0, NULL);
  guint64 before;

  g_assert_cmpuint (get_stats (&f).draft_bytes, ==, 0);
  g_assert_true (runnel_sequence_attach (sequence, drafter, NULL));
  before = get_stats (&f).draft_bytes;
  g_assert_cmpuint (before, >, f.n_vocab * 8 * sizeof (float));
  g_assert_true (runnel_sequence_prefill (sequence, f.tokens, DRAFT_N_PROMPT,
          0, FALSE, NULL, NULL, NULL, NULL, NULL));
  propose (sequence);
  g_assert_cmpuint (get_stats (&f).draft_bytes, >, before);
  g_assert_cmpuint (runnel_sequence_get_kv_bytes (sequence), ==,
      get_stats (&f).kv_bytes + get_stats (&f).draft_bytes - before);
  g_clear_object (&sequence);
  g_assert_cmpuint (get_stats (&f).draft_bytes, ==, before);
  g_clear_object (&drafter);
  g_assert_cmpuint (get_stats (&f).draft_bytes, ==, 0);
}

static void
assert_no_room (const GError *error)
{
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY);
  g_assert_nonnull (strstr (error->message, "runnel-draft-"));
  g_assert_nonnull (strstr (error->message, "max-memory"));
}

static void
test_max_memory (void)
{
  g_auto (DraftFixture) f = draft_fixture_make ("llama");
  g_autoptr (RunnelDrafter) drafter = make_drafter (&f, 2, 8);
  g_autoptr (RunnelSequence) sequence
      = runnel_sequence_new (f.engine, 0, NULL);
  RunnelPagePool *pool = runnel_engine_get_pool (f.engine);
  const guint n_pages = (DRAFT_N_PROMPT - 1) / runnel_page_pool_rows (pool)
      + 1;
  RunnelEngineStats stats = get_stats (&f);
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < 2; i++) {   /* its weights; its rows */
    runnel_engine_set_max_memory (f.engine, sum (&stats) + i * 400000);
    g_assert_false (runnel_sequence_attach (sequence, drafter, &error));
    assert_no_room (error);
    g_clear_error (&error);
    g_assert_cmpuint (get_stats (&f).draft_bytes, ==, 0);
  }
  runnel_engine_set_max_memory (f.engine, 0);
  g_assert_true (runnel_sequence_attach (sequence, drafter, NULL));
  g_object_unref (draft_fixture_prefill (&f, NULL, 0, FALSE, NULL));
  stats = get_stats (&f);           /* with the scratch of the prompt */
  runnel_engine_set_max_memory (f.engine, sum (&stats)
      + n_pages * runnel_page_pool_page_bytes (pool));
  g_assert_false (runnel_sequence_prefill (sequence, f.tokens, DRAFT_N_PROMPT,
          0, FALSE, NULL, NULL, NULL, NULL, &error));
  assert_no_room (error);
}

static void
test_no_model (void)
{
  g_auto (DraftFixture) f = draft_fixture_make ("llama");
  const TinyDraft tiny = describe_draft (&f, 2, 8);
  g_autoptr (RunnelModel) draft = open_draft (tiny_draft_write (&tiny));
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_engine_get (draft,
          runnel_engine_get_backend (f.engine), RUNNEL_KV_TYPE_F16, NULL, NULL,
          NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED);
  g_clear_error (&error);
  g_assert_null (runnel_dflash_drafter_new (
          runnel_engine_get_model (f.engine), &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
}

/* What `runnel inspect` says of a draft. */
static void
test_describe (void)
{
  g_auto (DraftFixture) f = draft_fixture_make ("llama");
  const TinyDraft tiny = describe_draft (&f, 2, 6);
  g_autoptr (RunnelModel) draft = open_draft (tiny_draft_write (&tiny));
  g_autoptr (GVariant) description = runnel_model_describe (draft);
  g_autoptr (GVariant) numbers = g_variant_lookup_value (description, "draft",
      G_VARIANT_TYPE_VARDICT);
  g_autoptr (GVariant) taps = NULL;
  guint block_size, mask, rank, tap;

  g_assert_nonnull (numbers);
  g_assert_true (g_variant_lookup (numbers, "block_size", "u", &block_size));
  g_assert_cmpuint (block_size, ==, 6);
  g_assert_true (g_variant_lookup (numbers, "mask_token", "u", &mask));
  g_assert_cmpuint (mask, ==, f.n_vocab - 1);
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
  g_test_message ("seed %u", DRAFT_SEED);
  g_test_add_data_func ("/dflash/replies/llama", "llama", test_replies);
  g_test_add_data_func ("/dflash/replies/qwen2", "qwen2", test_replies);
  g_test_add_data_func ("/dflash/replies/qwen3", "qwen3", test_replies);
  g_test_add_func ("/dflash/states", test_states);
  g_test_add_func ("/dflash/prefix-cache", test_prefix_cache);
  g_test_add_data_func ("/dflash/window/8", GUINT_TO_POINTER (8),
      test_window);
  g_test_add_data_func ("/dflash/window/33", GUINT_TO_POINTER (33),
      test_window);
  g_test_add_func ("/dflash/window/wide", test_wide_window);
  g_test_add_func ("/dflash/files", test_files);
  g_test_add_func ("/dflash/other-target", test_other_target);
  g_test_add_func ("/dflash/vocabulary", test_vocabulary);
  g_test_add_func ("/dflash/counted", test_counted);
  g_test_add_func ("/dflash/max-memory", test_max_memory);
  g_test_add_func ("/dflash/no-model", test_no_model);
  g_test_add_func ("/dflash/describe", test_describe);
  return g_test_run ();
}
