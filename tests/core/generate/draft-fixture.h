/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A tiny model, a prompt, and replies to it with and without drafters: what
 * the tests of drafters compare.
 */
#pragma once

#include "generate/generation.h"
#include "model/engine-private.h"
#include "tiny-model.h"

#define DRAFT_SEED 20261201
#define DRAFT_N_PROMPT 40
#define DRAFT_N_REPLY 30
#define DRAFT_MAX_REPLY 100

typedef struct {
  RunnelEngine *engine;
  guint n_vocab;
  gint32 tokens[DRAFT_N_PROMPT + DRAFT_MAX_REPLY];
  guint n_tokens;            /* prompt and plain reply */
} DraftFixture;

typedef struct {
  GArray *tokens;            /* gint32 */
  GArray *logprobs;          /* float */
  GArray *top;               /* RunnelTokenLogprob */
  RunnelFinishReason reason;
  RunnelDraftStats stats;
  float *logits;             /* after the reply */
} DraftReply;

void draft_reply_clear (DraftReply *reply);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (DraftReply, draft_reply_clear)

/* A tiny model of the architecture, and a prompt in which much is said
 * twice. */
DraftFixture draft_fixture_make (const char *architecture);
void draft_fixture_clear (DraftFixture *f);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (DraftFixture, draft_fixture_clear)

/* Blocks of fixed length, all that is worth comparing reported. */
RunnelGenerationParams *draft_fixture_make_params (double temperature);
/* A sequence that holds the prompt. */
RunnelSequence *draft_fixture_prefill (const DraftFixture *f,
                                       RunnelDrafter *drafter, guint chunk,
                                       gboolean use_cache, gsize *cached);
/* @sequence is taken. */
DraftReply draft_fixture_generate (const DraftFixture *f,
                                   RunnelSequence *sequence,
                                   const RunnelGenerationParams *params);
/* The reply without a drafter, which goes behind the prompt in @f. */
DraftReply draft_fixture_generate_plain (DraftFixture *f,
                                         const RunnelGenerationParams *params);
/* Bit for bit; the plain one, and another. */
void draft_fixture_assert_same (const DraftFixture *f, const DraftReply *plain,
                                const DraftReply *other);

/* The sequence by way of its image, with the drafter attached again. */
RunnelSequence *draft_fixture_save_and_load (const DraftFixture *f,
                                             RunnelSequence *sequence,
                                             RunnelDrafter *drafter);
