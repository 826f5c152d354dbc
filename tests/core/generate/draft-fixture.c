/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "draft-fixture.h"

#include <glib/gstdio.h>
#include <string.h>

#define N_TOP 64

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

DraftFixture
draft_fixture_make (const char *architecture)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (DRAFT_SEED);
  DraftFixture f = { make_engine (architecture), 0, { 0 }, DRAFT_N_PROMPT };

  f.n_vocab = runnel_model_get_n_vocab (runnel_engine_get_model (f.engine));
  for (guint i = 0; i < DRAFT_N_PROMPT; i++)
    f.tokens[i] = i % 16 < 8 && i >= 8 ? f.tokens[i - 8]
        : g_rand_int_range (rand, TINY_FIRST_BYTE, TINY_FIRST_PIECE);
  return f;
}

void
draft_fixture_clear (DraftFixture *f)
{
  g_clear_object (&f->engine);
}

void
draft_reply_clear (DraftReply *reply)
{
  g_array_unref (reply->tokens);
  g_array_unref (reply->logprobs);
  g_array_unref (reply->top);
  g_free (reply->logits);
}

RunnelGenerationParams *
draft_fixture_make_params (double temperature)
{
  RunnelGenerationParams *params = runnel_generation_params_new ();

  params->max_tokens = DRAFT_N_REPLY;
  params->ignore_eos = TRUE;
  params->sampler->temperature = temperature;
  params->sampler->seed = DRAFT_SEED;
  params->n_top_logprobs = N_TOP;
  params->adaptive_drafts = FALSE;
  return params;
}

RunnelSequence *
draft_fixture_prefill (const DraftFixture *f, RunnelDrafter *drafter,
                       guint chunk, gboolean use_cache, gsize *cached)
{
  g_autoptr (GError) error = NULL;
  RunnelSequence *sequence = runnel_sequence_new (f->engine, 0, &error);

  g_assert_no_error (error);
  if (drafter != NULL)
    runnel_sequence_attach (sequence, drafter, &error);
  g_assert_no_error (error);
  runnel_sequence_prefill (sequence, f->tokens, DRAFT_N_PROMPT, chunk,
      use_cache, NULL, NULL, NULL, cached, &error);
  g_assert_no_error (error);
  return sequence;
}

/* Also the logits after the reply: what its sequence is worth. */
static void
end_reply (const DraftFixture *f, RunnelGeneration *generation,
           DraftReply *reply)
{
  RunnelSequence *sequence = runnel_generation_get_sequence (generation);
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (runnel_generation_get_n_tokens (generation), ==,
      reply->tokens->len);
  g_assert_cmpuint (runnel_sequence_get_length (sequence), ==,
      DRAFT_N_PROMPT + reply->tokens->len);
  reply->reason = runnel_generation_get_finish_reason (generation);
  runnel_generation_get_draft_stats (generation, &reply->stats);
  runnel_sequence_compute_logits (sequence, reply->logits, f->n_vocab, &error);
  g_assert_no_error (error);
}

DraftReply
draft_fixture_generate (const DraftFixture *f, RunnelSequence *sequence,
                        const RunnelGenerationParams *params)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGeneration) generation
      = runnel_generation_new (sequence, params, &error);
  RunnelGenerationStep step = { 0 };
  DraftReply reply = {
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

DraftReply
draft_fixture_generate_plain (DraftFixture *f,
                              const RunnelGenerationParams *params)
{
  DraftReply plain = draft_fixture_generate (f,
      draft_fixture_prefill (f, NULL, 0, FALSE, NULL), params);

  memcpy (f->tokens + DRAFT_N_PROMPT, plain.tokens->data,
      plain.tokens->len * sizeof (gint32));
  f->n_tokens = DRAFT_N_PROMPT + plain.tokens->len;
  return plain;
}

void
draft_fixture_assert_same (const DraftFixture *f, const DraftReply *plain,
                           const DraftReply *other)
{
  g_assert_cmpmem (plain->tokens->data, plain->tokens->len * sizeof (gint32),
      other->tokens->data, other->tokens->len * sizeof (gint32));
  g_assert_cmpmem (plain->logprobs->data,
      plain->logprobs->len * sizeof (float), other->logprobs->data,
      other->logprobs->len * sizeof (float));
  g_assert_cmpmem (plain->top->data,
      plain->top->len * sizeof (RunnelTokenLogprob), other->top->data,
      other->top->len * sizeof (RunnelTokenLogprob));
  g_assert_cmpmem (plain->logits, f->n_vocab * sizeof (float), other->logits,
      f->n_vocab * sizeof (float));
  g_assert_cmpint (plain->reason, ==, other->reason);
  g_assert_cmpuint (other->stats.accepted, <=, other->stats.proposed);
}

RunnelSequence *
draft_fixture_save_and_load (const DraftFixture *f, RunnelSequence *sequence,
                             RunnelDrafter *drafter)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) image = runnel_sequence_serialize (sequence, &error);
  RunnelSequence *loaded;

  g_assert_no_error (error);
  loaded = runnel_sequence_deserialize (f->engine, image, "image", &error);
  g_assert_no_error (error);
  runnel_sequence_attach (loaded, drafter, &error);
  g_assert_no_error (error);
  return loaded;
}
