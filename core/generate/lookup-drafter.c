/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Prompt lookup: what followed the last time these tokens stood in the prompt
 * or the reply follows again (Saxena, "Prompt Lookup Decoding", 2023).
 *
 * Every position is in one chain, that of the hash of the min-gram that ends
 * there, newest first. Feeding pushes positions onto the chains in order, so
 * that truncating pops them again: two numbers a token, whatever happens.
 */
#include "lookup-drafter.h"

#include <string.h>

#include "../error.h"

#define NO_POSITION G_MAXUINT32
#define MIN_BUCKETS 256
/* Positions of a chain that a proposal looks at. */
#define MAX_TRIES 256
/* A match of so many tokens is a copy. */
#define COPY_LENGTH 4

/**
 * RunnelLookupDrafter:
 *
 * Proposes what followed the longest n-gram, ending at the last token, that
 * stands earlier in the sequence; of several the latest one, or of short ones
 * the first behind what was copied before: who repeats a text goes through it
 * from its beginning to its end. It needs no model and costs next to nothing
 * where nothing matches.
 *
 * Since: 0.1
 */
struct _RunnelLookupDrafter {
  RunnelDrafter parent;
  guint min_ngram, max_ngram, max_draft;
};

G_DEFINE_FINAL_TYPE (RunnelLookupDrafter, runnel_lookup_drafter,
                     RUNNEL_TYPE_DRAFTER)

#define TYPE_LOOKUP_STATE (lookup_state_get_type ())
G_DECLARE_FINAL_TYPE (LookupState, lookup_state, LOOKUP, STATE,
                      RunnelDraftState)

struct _LookupState {
  RunnelDraftState parent;
  guint min_ngram, max_ngram, max_draft;
  GArray *tokens;    /* gint32 */
  GArray *previous;  /* guint32: of each position, the next in its chain */
  guint32 *heads;    /* [n_buckets]: the newest position of a chain */
  guint n_buckets;   /* a power of two */
  guint copied;      /* end of the last match that was a copy; 0: none */
};

G_DEFINE_FINAL_TYPE (LookupState, lookup_state, RUNNEL_TYPE_DRAFT_STATE)

static const gint32 *
get_tokens (const LookupState *self)
{
  return (const gint32 *) self->tokens->data;
}

/* Of the n tokens that end with @last. */
static guint32
hash (const gint32 *last, guint n)
{
  guint32 h = 0;

  for (guint i = 0; i < n; i++)
    h = (h ^ (guint32) last[-(gint) i]) * 0x9E3779B1u;
  return h ^ h >> 15;
}

static guint32 *
get_head (LookupState *self, guint position)
{
  const guint32 h = hash (get_tokens (self) + position, self->min_ngram);

  return &self->heads[h & (self->n_buckets - 1)];
}

/* Puts a position whose tokens are there into its chain. */
static void
push (LookupState *self, guint position)
{
  guint32 *previous =
    &g_array_index (self->previous, guint32, position);

  *previous = NO_POSITION;
  if (position + 1 >= self->min_ngram) {
    guint32 *head = get_head (self, position);

    *previous = *head;
    *head = position;
  }
}

static void
clear_heads (LookupState *self, guint n_buckets)
{
  self->heads = g_renew (guint32, self->heads, n_buckets);
  self->n_buckets = n_buckets;
  memset (self->heads, 0xff, n_buckets * sizeof *self->heads);
}

static gboolean
lookup_state_feed (RunnelDraftState *state, const gint32 *tokens, guint n,
                   const float *taps, GError **error)
{
  LookupState *self = LOOKUP_STATE (state);
  guint first = self->tokens->len;
  const guint length = first + n;
  guint n_buckets = self->n_buckets;

  g_array_append_vals (self->tokens, tokens, n);
  g_array_set_size (self->previous, length);
  while (n_buckets < length)
    n_buckets *= 2;
  if (n_buckets > self->n_buckets) {
    clear_heads (self, n_buckets);
    first = 0;
  }
  for (guint i = first; i < length; i++)
    push (self, i);
  return TRUE;
}

static void
lookup_state_truncate (RunnelDraftState *state, guint n_rows)
{
  LookupState *self = LOOKUP_STATE (state);

  for (guint i = self->tokens->len; i-- > n_rows;)
    if (i + 1 >= self->min_ngram)
      *get_head (self, i) = g_array_index (self->previous, guint32, i);
  g_array_set_size (self->tokens, n_rows);
  g_array_set_size (self->previous, n_rows);
}

static LookupState *
lookup_state_new (guint min_ngram, guint max_ngram, guint max_draft)
{
  LookupState *self = g_object_new (TYPE_LOOKUP_STATE, NULL);

  self->min_ngram = min_ngram;
  self->max_ngram = max_ngram;
  self->max_draft = max_draft;
  return self;
}

static RunnelDraftState *
lookup_state_fork (RunnelDraftState *state)
{
  const LookupState *self = LOOKUP_STATE (state);
  LookupState *fork =
    lookup_state_new (self->min_ngram, self->max_ngram, self->max_draft);

  g_array_append_vals (fork->tokens, self->tokens->data, self->tokens->len);
  g_array_append_vals (fork->previous, self->previous->data,
                       self->previous->len);
  g_free (fork->heads);
  fork->n_buckets = self->n_buckets;
  fork->copied = self->copied;
  fork->heads =
    g_memdup2 (self->heads, self->n_buckets * sizeof *self->heads);
  return RUNNEL_DRAFT_STATE (fork);
}

/* Tokens before @end, up to @max, that equal those before the end of @tail. */
static guint
match_length (const gint32 *tokens, guint end, const gint32 *tail_end,
              guint max)
{
  guint n = 0;

  while (n < max && n < end && tokens[end - 1 - n] == tail_end[-1 - (gint) n])
    n++;
  return n;
}

/* Whether a match of @n tokens is better than the @best so far, which is a
 * later one. */
static gboolean
is_better (const LookupState *self, guint n, guint end, guint best)
{
  return n > best ||
         (n == best && n < COPY_LENGTH && self->copied > 0 &&
          end > self->copied);
}

/* The end of the longest match of the last tokens of @tail, and its length;
 * a length below min_ngram: none. */
static guint
find_match (LookupState *self, const gint32 *tail, guint n_tail,
            guint *ret_end)
{
  const gint32 *tail_end = tail + n_tail;
  guint best = 0, tries = 0;
  guint32 position;

  if (n_tail < self->min_ngram)
    return 0;
  position = self->heads[hash (tail_end - 1, self->min_ngram) &
                         (self->n_buckets - 1)];
  for (; position != NO_POSITION && tries < MAX_TRIES && best < n_tail;
       tries++) {
    const guint n =
      match_length (get_tokens (self), position + 1, tail_end, n_tail);

    if (is_better (self, n, position + 1, best)) {
      best = n;
      *ret_end = position + 1;
    }
    position = g_array_index (self->previous, guint32, position);
  }
  return best >= self->min_ngram ? best : 0;
}

/* The tokens behind @end; what is behind the last of them is the anchor and
 * then the proposal itself, as in a text that repeats. */
static void
copy_following (LookupState *self, guint end, gint32 anchor, guint n,
                RunnelProposal *proposal)
{
  const guint length = self->tokens->len;

  for (guint i = 0; i < n; i++) {
    const guint at = end + i;

    proposal->tokens[i] = at < length    ? get_tokens (self)[at]
                          : at == length ? anchor
                                         : proposal->tokens[at - length - 1];
  }
  proposal->n_tokens = n;
}

/* Longer matches are right more often: in replies that repeat their prompt
 * those of one token about every second time, those of nine or more 19 times
 * of 20. */
static guint
get_grade (guint length)
{
  return length < 2 ? 0 : length < COPY_LENGTH ? 1 : length < 9 ? 2 : 3;
}

static gboolean
lookup_state_propose (RunnelDraftState *state,
                      const RunnelDraftRequest *request,
                      RunnelProposal *proposal, GError **error)
{
  LookupState *self = LOOKUP_STATE (state);
  gint32 tail[RUNNEL_LOOKUP_MAX_NGRAM];
  const guint n_before = MIN (self->tokens->len, self->max_ngram - 1);
  guint end = 0, length;

  memcpy (tail, get_tokens (self) + (self->tokens->len - n_before),
          n_before * sizeof *tail);
  tail[n_before] = request->anchor;
  length = find_match (self, tail, n_before + 1, &end);
  if (length == 0)
    return TRUE;
  if (length >= COPY_LENGTH)
    self->copied = end;
  copy_following (self, end, request->anchor,
                  MIN (request->max_tokens, self->max_draft), proposal);
  proposal->grade = get_grade (length);
  return TRUE;
}

static gsize
lookup_state_get_bytes (RunnelDraftState *state)
{
  const LookupState *self = LOOKUP_STATE (state);

  return ((gsize) self->tokens->len * 2 + self->n_buckets) * sizeof (guint32);
}

static void
lookup_state_finalize (GObject *object)
{
  LookupState *self = LOOKUP_STATE (object);

  g_array_unref (self->tokens);
  g_array_unref (self->previous);
  g_free (self->heads);
  G_OBJECT_CLASS (lookup_state_parent_class)->finalize (object);
}

static void
lookup_state_class_init (LookupStateClass *klass)
{
  RunnelDraftStateClass *state_class = RUNNEL_DRAFT_STATE_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = lookup_state_finalize;
  state_class->feed = lookup_state_feed;
  state_class->truncate = lookup_state_truncate;
  state_class->fork = lookup_state_fork;
  state_class->propose = lookup_state_propose;
  state_class->get_bytes = lookup_state_get_bytes;
}

static void
lookup_state_init (LookupState *self)
{
  self->tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
  self->previous = g_array_new (FALSE, FALSE, sizeof (guint32));
  clear_heads (self, MIN_BUCKETS);
}

/* ---- The drafter --------------------------------------------------------- */

static gboolean
check_range (const char *name, guint value, guint min, guint max,
             GError **error)
{
  if (value >= min && value <= max)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
               "lookup: %s is %u, it must be from %u to %u", name, value, min,
               max);
  return FALSE;
}

/**
 * runnel_lookup_drafter_new:
 * @min_ngram: tokens that must match at least, 1 to 64
 * @max_ngram: tokens that are compared at most, @min_ngram to 64
 * @max_draft: propose at most this many tokens, 1 to %RUNNEL_MAX_DRAFT
 * @error: return location
 *
 * A drafter that looks the last tokens up in prompt and reply.
 *
 * Returns: (transfer full): the drafter, or %NULL with
 *   %RUNNEL_ERROR_INVALID_ARGUMENT for a number out of its range
 *
 * Since: 0.1
 */
RunnelDrafter *
runnel_lookup_drafter_new (guint min_ngram, guint max_ngram, guint max_draft,
                           GError **error)
{
  RunnelLookupDrafter *self;
  g_autofree char *id = NULL;

  if (!check_range ("min_ngram", min_ngram, 1, RUNNEL_LOOKUP_MAX_NGRAM,
                    error) ||
      !check_range ("max_ngram", max_ngram, min_ngram,
                    RUNNEL_LOOKUP_MAX_NGRAM, error) ||
      !check_range ("max_draft", max_draft, 1, RUNNEL_MAX_DRAFT, error))
    return NULL;
  self = g_object_new (RUNNEL_TYPE_LOOKUP_DRAFTER, NULL);
  self->min_ngram = min_ngram;
  self->max_ngram = max_ngram;
  self->max_draft = max_draft;
  id = g_strdup_printf ("lookup:%u:%u:%u", min_ngram, max_ngram, max_draft);
  runnel_drafter_set_identity (RUNNEL_DRAFTER (self), id, NULL, 0);
  return RUNNEL_DRAFTER (self);
}

static RunnelDraftState *
lookup_drafter_new_state (RunnelDrafter *drafter, RunnelEngine *engine,
                          GError **error)
{
  const RunnelLookupDrafter *self = RUNNEL_LOOKUP_DRAFTER (drafter);

  return RUNNEL_DRAFT_STATE (
    lookup_state_new (self->min_ngram, self->max_ngram, self->max_draft));
}

static void
runnel_lookup_drafter_class_init (RunnelLookupDrafterClass *klass)
{
  RUNNEL_DRAFTER_CLASS (klass)->new_state = lookup_drafter_new_state;
}

static void
runnel_lookup_drafter_init (RunnelLookupDrafter *self)
{
}
