/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "vocabulary.h"

/* Byte pair encoding of one word: of all neighbours, the pair whose merge has
 * the lowest rank is joined, the leftmost first, until none is left. */

G_BEGIN_DECLS

typedef struct _RunnelBpe RunnelBpe;

/* The ids that came out so far. */
typedef struct {
  gint32 *ids;
  gsize n;
  gsize room;
} RunnelTokenList;

static inline void
runnel_token_list_append (RunnelTokenList *self, gint32 token)
{
  if (G_UNLIKELY (self->n == self->room)) {
    self->room = MAX (64, self->room * 2);
    self->ids = g_renew (gint32, self->ids, self->room);
  }
  self->ids[self->n++] = token;
}

/* Working memory of one caller, and the count of merges looked up and of heap
 * entries made: what the work is proportional to. */
typedef struct _RunnelBpeScratch RunnelBpeScratch;

RunnelBpeScratch *runnel_bpe_scratch_new (void);
void runnel_bpe_scratch_free (RunnelBpeScratch *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelBpeScratch, runnel_bpe_scratch_free)
guint64 runnel_bpe_scratch_steps (const RunnelBpeScratch *self);

/* @vocabulary is borrowed and must outlive it. @whole_words: a word that is a
 * token is that token, whatever the merges say ("ignore_merges"). */
RunnelBpe *runnel_bpe_new (const RunnelVocabulary *vocabulary, gsize n_merges,
                           gboolean whole_words);
void runnel_bpe_free (RunnelBpe *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelBpe, runnel_bpe_free)

/* Adds the merge of the next rank; at most as many as were announced. The
 * parts are in the byte-level alphabet. @name is what errors call the file. */
gboolean runnel_bpe_add_merge (RunnelBpe *self, const char *left,
                               gsize left_length, const char *right,
                               gsize right_length, const char *name,
                               GError **error);
/* The same by the ids of the parts. */
gboolean runnel_bpe_add_merge_of (RunnelBpe *self, guint32 left,
                                  guint32 right, const char *name,
                                  GError **error);
/* Bytes that the vocabulary lacks become @token instead of nothing. */
void runnel_bpe_set_unknown (RunnelBpe *self, gint32 token);
gint32 runnel_bpe_get_unknown (const RunnelBpe *self);   /* or -1 */
gboolean runnel_bpe_get_whole_words (const RunnelBpe *self);
gboolean runnel_bpe_has_all_bytes (const RunnelBpe *self);
/* The pairs of ids in the order of their ranks. */
const guint32 *runnel_bpe_merges (const RunnelBpe *self, gsize *ret_n);

/* Appends the ids of a word that is not empty. Safe from several threads, each
 * with its own scratch. */
void runnel_bpe_encode (RunnelBpe *self, const guint8 *word, gsize length,
                        RunnelBpeScratch *scratch, RunnelTokenList *out);

G_END_DECLS
