/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "bpe.h"

#include <string.h>

#include "../error.h"
#include "byte-level.h"

#define NO_MERGE G_MAXUINT32
#define SHORT_WORD 32

typedef struct {
  guint32 left, right;
  guint32 rank;    /* NO_MERGE: empty */
  guint32 result;
} Merge;

/* Whether a token's own bytes merge back into it; found out at first use. */
enum { UNTRIED, REACHED, NOT_REACHED };

struct _RunnelBpe {
  const RunnelVocabulary *vocabulary;
  gboolean whole_words;
  gint32 byte_tokens[256];   /* -1: the vocabulary lacks the byte */
  gint32 unknown;            /* what then stands there; or -1 */
  guint8 *reached;           /* per token; relaxed atomics */
  gsize n_merges, room;
  guint32 *merges;           /* pairs, by rank */
  guint8 *joined;            /* the bytes of the merge being added */
  gsize joined_room;
  guint last;                /* the result of the merge before */
  guint64 odd;
  guint shift;
  gsize mask;
  Merge *table;
};

typedef struct {
  guint32 id;
  guint32 rank;     /* of the merge with the next symbol */
  guint32 result;
  guint32 previous, next;
} Symbol;

struct _RunnelBpeScratch {
  guint64 steps;
  Symbol *symbols;
  gsize symbols_room;
  guint64 *heap;    /* rank << 32 | position */
  gsize heap_n, heap_room;
};

RunnelBpeScratch *
runnel_bpe_scratch_new (void)
{
  return g_new0 (RunnelBpeScratch, 1);
}

void
runnel_bpe_scratch_free (RunnelBpeScratch *self)
{
  g_free (self->symbols);
  g_free (self->heap);
  g_free (self);
}

guint64
runnel_bpe_scratch_steps (const RunnelBpeScratch *self)
{
  return self->steps;
}

RunnelBpe *
runnel_bpe_new (const RunnelVocabulary *vocabulary, gsize n_merges,
                gboolean whole_words)
{
  RunnelBpe *self = g_new0 (RunnelBpe, 1);
  guint bits = 4;

  while (((gsize) 1 << bits) < n_merges + n_merges / 2)
    bits++;
  self->vocabulary = vocabulary;
  self->whole_words = whole_words;
  self->unknown = -1;
  self->reached = g_malloc0 (runnel_vocabulary_size (vocabulary));
  self->room = n_merges;
  self->merges = g_new (guint32, n_merges * 2);
  self->odd = ((guint64) g_random_int () << 32 | g_random_int ()) | 1;
  self->shift = 64 - bits;
  self->mask = ((gsize) 1 << bits) - 1;
  self->table = g_new (Merge, self->mask + 1);
  for (gsize i = 0; i <= self->mask; i++)
    self->table[i].rank = NO_MERGE;
  for (guint byte = 0; byte < 256; byte++) {
    guint8 as_byte = byte;

    self->byte_tokens[byte] =
        runnel_vocabulary_find (vocabulary, &as_byte, 1);
  }
  return self;
}

void
runnel_bpe_free (RunnelBpe *self)
{
  g_free (self->reached);
  g_free (self->merges);
  g_free (self->joined);
  g_free (self->table);
  g_free (self);
}

void
runnel_bpe_set_unknown (RunnelBpe *self, gint32 token)
{
  self->unknown = token;
  for (guint byte = 0; byte < 256; byte++)
    if (self->byte_tokens[byte] < 0)
      self->byte_tokens[byte] = token;
}

gint32
runnel_bpe_get_unknown (const RunnelBpe *self)
{
  return self->unknown;
}

gboolean
runnel_bpe_get_whole_words (const RunnelBpe *self)
{
  return self->whole_words;
}

gboolean
runnel_bpe_has_all_bytes (const RunnelBpe *self)
{
  for (guint byte = 0; byte < 256; byte++)
    if (self->byte_tokens[byte] < 0)
      return FALSE;
  return TRUE;
}

const guint32 *
runnel_bpe_merges (const RunnelBpe *self, gsize *ret_n)
{
  *ret_n = self->n_merges;
  return self->merges;
}

static inline const Merge *
find_merge (const RunnelBpe *self, guint32 left, guint32 right)
{
  guint64 pair = (guint64) left << 32 | right;
  gsize i;

  pair ^= pair >> 29;
  i = (pair * self->odd) >> self->shift;
  while (self->table[i].rank != NO_MERGE
         && (self->table[i].left != left || self->table[i].right != right))
    i = (i + 1) & self->mask;
  return &self->table[i];
}

static gboolean
refuse_merge (const RunnelBpe *self, const char *name, const char *what,
              GError **error)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
               "%s: merge %" G_GSIZE_FORMAT " %s", name, self->n_merges, what);
  return FALSE;
}

static guint8 *
get_room (RunnelBpe *self, gsize room)
{
  if (room > self->joined_room) {
    self->joined = g_realloc (self->joined, room);
    self->joined_room = room;
  }
  return self->joined;
}

/* The merge of the next rank; @n bytes of both parts lie joined. */
static gboolean
enter_merge (RunnelBpe *self, gint32 left, gint32 right, gsize n,
             const char *name, GError **error)
{
  /* Vocabularies are numbered as they were trained: merge by merge. */
  gint32 result = runnel_vocabulary_find_near (
      self->vocabulary, self->last + 1, self->joined, n);
  Merge *merge;

  if (left < 0 || right < 0 || result < 0)
    return refuse_merge (self, name, "has a part or a result that is no token",
                         error);
  merge = (Merge *) find_merge (self, left, right);
  merge->left = left;
  merge->right = right;
  merge->rank = self->n_merges;   /* of equal pairs the last one counts */
  merge->result = result;
  self->last = result;
  self->merges[self->n_merges * 2] = left;
  self->merges[self->n_merges * 2 + 1] = right;
  self->n_merges++;
  return TRUE;
}

gboolean
runnel_bpe_add_merge (RunnelBpe *self, const char *left, gsize left_length,
                      const char *right, gsize right_length, const char *name,
                      GError **error)
{
  guint8 *joined;
  gsize n, m, room;

  g_assert (self->n_merges < self->room);
  if (left_length == 0 || right_length == 0)
    return refuse_merge (self, name, "has an empty part", error);
  if (!g_size_checked_add (&room, left_length, right_length))
    return refuse_merge (self, name, "is too long", error);
  joined = get_room (self, room);
  if (!runnel_byte_level_decode (left, left_length, joined, &n)
      || !runnel_byte_level_decode (right, right_length, joined + n, &m))
    return refuse_merge (self, name, "has a part or a result that is no token",
                         error);
  return enter_merge (
      self, runnel_vocabulary_find (self->vocabulary, joined, n),
      runnel_vocabulary_find (self->vocabulary, joined + n, m), n + m, name,
      error);
}

gboolean
runnel_bpe_add_merge_of (RunnelBpe *self, guint32 left, guint32 right,
                         const char *name, GError **error)
{
  guint size = runnel_vocabulary_size (self->vocabulary);
  const guint8 *first, *second;
  guint8 *joined;
  gsize n, m;

  g_assert (self->n_merges < self->room);
  if (left >= size || right >= size
      || !runnel_vocabulary_is_findable (self->vocabulary, left)
      || !runnel_vocabulary_is_findable (self->vocabulary, right))
    return refuse_merge (self, name, "has a part or a result that is no token",
                         error);
  first = runnel_vocabulary_piece (self->vocabulary, left, &n);
  second = runnel_vocabulary_piece (self->vocabulary, right, &m);
  joined = get_room (self, n + m);
  memcpy (joined, first, n);
  memcpy (joined + n, second, m);
  return enter_merge (self, left, right, n + m, name, error);
}

/* For the few symbols of an ordinary word, looking at all pairs each time is
 * faster than keeping a heap. */
static void
merge_short (const RunnelBpe *self, guint32 *ids, gsize n,
             RunnelBpeScratch *scratch, RunnelTokenList *out)
{
  guint32 ranks[SHORT_WORD], results[SHORT_WORD];

  for (gsize i = 0; i + 1 < n; i++) {
    const Merge *merge = find_merge (self, ids[i], ids[i + 1]);

    ranks[i] = merge->rank;
    results[i] = merge->result;
  }
  scratch->steps += n;
  while (n > 1) {
    gsize best = 0;

    for (gsize i = 1; i + 1 < n; i++)
      if (ranks[i] < ranks[best])
        best = i;
    if (ranks[best] == NO_MERGE)
      break;
    ids[best] = results[best];
    n--;
    for (gsize i = best + 1; i < n; i++) {
      ids[i] = ids[i + 1];
      ranks[i - 1] = ranks[i];
      results[i - 1] = results[i];
    }
    for (gsize i = best > 0 ? best - 1 : 0; i <= best && i + 1 < n; i++) {
      const Merge *merge = find_merge (self, ids[i], ids[i + 1]);

      ranks[i] = merge->rank;
      results[i] = merge->result;
      scratch->steps++;
    }
  }
  for (gsize i = 0; i < n; i++)
    runnel_token_list_append (out, ids[i]);
}

static void
heap_sift_down (guint64 *heap, gsize n, gsize i)
{
  guint64 entry = heap[i];

  for (;;) {
    gsize child = 2 * i + 1;

    if (child >= n)
      break;
    if (child + 1 < n && heap[child + 1] < heap[child])
      child++;
    if (heap[child] >= entry)
      break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = entry;
}

static void
heap_push (RunnelBpeScratch *scratch, guint64 entry)
{
  gsize i;

  if (scratch->heap_n == scratch->heap_room) {
    scratch->heap_room = MAX (256, scratch->heap_room * 2);
    scratch->heap = g_renew (guint64, scratch->heap, scratch->heap_room);
  }
  i = scratch->heap_n++;
  while (i > 0 && scratch->heap[(i - 1) / 2] > entry) {
    scratch->heap[i] = scratch->heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  scratch->heap[i] = entry;
  scratch->steps++;
}

static guint64
heap_pop (RunnelBpeScratch *scratch)
{
  guint64 top = scratch->heap[0];

  scratch->heap[0] = scratch->heap[--scratch->heap_n];
  heap_sift_down (scratch->heap, scratch->heap_n, 0);
  return top;
}

/* Looks up the merge of a symbol and the one after it. */
static void
pair_up (const RunnelBpe *self, RunnelBpeScratch *scratch, guint32 at)
{
  Symbol *symbol = &scratch->symbols[at];

  symbol->rank = NO_MERGE;
  scratch->steps++;
  if (symbol->next != G_MAXUINT32) {
    const Merge *merge =
        find_merge (self, symbol->id, scratch->symbols[symbol->next].id);

    symbol->rank = merge->rank;
    symbol->result = merge->result;
  }
  if (symbol->rank != NO_MERGE)
    heap_push (scratch, (guint64) symbol->rank << 32 | at);
}

static void
merge_long (const RunnelBpe *self, gsize n, RunnelBpeScratch *scratch,
            RunnelTokenList *out)
{
  Symbol *symbols = scratch->symbols;

  scratch->heap_n = 0;
  for (gsize i = 0; i < n; i++) {
    symbols[i].previous = i > 0 ? i - 1 : G_MAXUINT32;
    symbols[i].next = i + 1 < n ? i + 1 : G_MAXUINT32;
  }
  for (gsize i = 0; i < n; i++)
    pair_up (self, scratch, i);
  while (scratch->heap_n > 0) {
    guint64 entry = heap_pop (scratch);
    guint32 at = (guint32) entry, gone;
    Symbol *symbol = &symbols[at];

    if (symbol->rank != entry >> 32)
      continue;   /* one of the two has been merged since */
    gone = symbol->next;
    symbol->id = symbol->result;
    symbol->next = symbols[gone].next;
    symbols[gone].rank = NO_MERGE;
    if (symbol->next != G_MAXUINT32)
      symbols[symbol->next].previous = at;
    pair_up (self, scratch, at);
    if (symbol->previous != G_MAXUINT32)
      pair_up (self, scratch, symbol->previous);
  }
  for (guint32 at = 0; at != G_MAXUINT32; at = symbols[at].next)
    runnel_token_list_append (out, symbols[at].id);
}

/* A byte without a token is dropped before merging, so that its neighbours
 * may merge across it: what `tokenizers` does without an unknown token. */
static void
merge_bytes (const RunnelBpe *self, const guint8 *word, gsize length,
             RunnelBpeScratch *scratch, RunnelTokenList *out)
{
  gsize n = 0;

  if (length <= SHORT_WORD) {
    guint32 ids[SHORT_WORD];

    for (gsize i = 0; i < length; i++)
      if (self->byte_tokens[word[i]] >= 0)
        ids[n++] = self->byte_tokens[word[i]];
    merge_short (self, ids, n, scratch, out);
    return;
  }
  if (length > scratch->symbols_room) {
    scratch->symbols_room = length;
    scratch->symbols = g_renew (Symbol, scratch->symbols, length);
  }
  for (gsize i = 0; i < length; i++)
    if (self->byte_tokens[word[i]] >= 0)
      scratch->symbols[n++].id = self->byte_tokens[word[i]];
  if (n > 0)
    merge_long (self, n, scratch, out);
}

void
runnel_bpe_encode (RunnelBpe *self, const guint8 *word, gsize length,
                   RunnelBpeScratch *scratch, RunnelTokenList *out)
{
  gint32 whole = runnel_vocabulary_find (self->vocabulary, word, length);
  gsize start = out->n;
  guint8 reached;

  if (whole >= 0
      && (__atomic_load_n (&self->reached[whole], __ATOMIC_RELAXED) == REACHED
          || (self->whole_words
              && runnel_vocabulary_type (self->vocabulary, whole)
                  == RUNNEL_TOKEN_NORMAL))) {
    runnel_token_list_append (out, whole);
    return;
  }
  merge_bytes (self, word, length, scratch, out);
  if (whole < 0)
    return;
  reached = out->n == start + 1 && out->ids[start] == whole
      ? REACHED : NOT_REACHED;
  __atomic_store_n (&self->reached[whole], reached, __ATOMIC_RELAXED);
}
