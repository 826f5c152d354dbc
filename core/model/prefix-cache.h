/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The prefix cache: histories of finished prefills and replies, so that a
 * prompt that begins like an earlier one is not computed again. A byte
 * budget counts the pages it alone or with others keeps alive, each once;
 * over it the least recently used histories go. Safe from several threads.
 */
#pragma once

#include "drafts.h"
#include "history.h"

G_BEGIN_DECLS

typedef struct _RunnelPrefixCache RunnelPrefixCache;

RunnelPrefixCache *runnel_prefix_cache_new (RunnelPagePool *pool,
                                            guint n_embd, guint64 budget);
void runnel_prefix_cache_free (RunnelPrefixCache *self);
void runnel_prefix_cache_set_budget (RunnelPrefixCache *self, guint64 bytes);
guint64 runnel_prefix_cache_budget (RunnelPrefixCache *self);
guint64 runnel_prefix_cache_bytes (RunnelPrefixCache *self);

/* Keeps a copy, with the draft states that cannot be made again from tokens. A
 * history that the new one continues is replaced, if the new one has its draft
 * states. Shifted and joined histories are not kept, nor is one that is over
 * the budget alone. */
void runnel_prefix_cache_insert (RunnelPrefixCache *self,
                                 const RunnelHistory *history,
                                 const RunnelDrafts *drafts);
/* Makes @into the longest kept beginning of the tokens that has draft states
 * for all of @drafts that need one, and those the kept ones; returns its
 * length. All tokens only if the hidden row of the last is kept, else at most
 * all but one: its logits are still to be computed. */
guint runnel_prefix_cache_lookup (RunnelPrefixCache *self,
                                  const gint32 *tokens, gsize n_tokens,
                                  RunnelHistory *into, RunnelDrafts *drafts);
/* Drops the least recently used history; FALSE when there is none. */
gboolean runnel_prefix_cache_evict (RunnelPrefixCache *self);
void runnel_prefix_cache_clear (RunnelPrefixCache *self);

G_END_DECLS
