/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "prefix-cache.h"

#include <string.h>

/* More than this many histories are not kept, whatever their size: a lookup
 * compares with each. */
#define MAX_ENTRIES 256

typedef struct {
  RunnelHistory history;
  RunnelDrafts drafts;
  guint64 draft_bytes;
  guint64 used;              /* stamp of the last use */
} Entry;

struct _RunnelPrefixCache {
  GMutex mutex;              /* guards everything below */
  RunnelPagePool *pool;
  guint n_embd;
  guint64 budget;
  guint64 bytes;             /* of the pages in entries, each once, and of
                                draft states */
  guint64 stamp;
  GPtrArray *entries;        /* Entry */
};

static void
free_entry (gpointer data)
{
  Entry *entry = data;

  runnel_history_clear (&entry->history);
  runnel_drafts_clear (&entry->drafts);
  g_free (entry);
}

RunnelPrefixCache *
runnel_prefix_cache_new (RunnelPagePool *pool, guint n_embd, guint64 budget)
{
  RunnelPrefixCache *self = g_new0 (RunnelPrefixCache, 1);

  g_mutex_init (&self->mutex);
  self->pool = pool;
  self->n_embd = n_embd;
  self->budget = budget;
  self->entries = g_ptr_array_new_with_free_func (free_entry);
  return self;
}

/* Counts the pages of an entry in or out of the budget. */
static void
account_unlocked (RunnelPrefixCache *self, const Entry *entry, gint direction)
{
  GArray *segments = entry->history.segments;

  self->bytes += direction * entry->draft_bytes;
  for (guint i = 0; i < segments->len; i++) {
    RunnelPage *page = g_array_index (segments, RunnelSegment, i).page;
    guint32 *references = runnel_page_cache_references (page);
    gsize bytes = runnel_page_pool_page_bytes (self->pool);

    if (direction > 0 && (*references)++ == 0)
      self->bytes += bytes;
    else if (direction < 0 && --(*references) == 0)
      self->bytes -= bytes;
  }
}

static void
remove_unlocked (RunnelPrefixCache *self, guint index)
{
  account_unlocked (self, g_ptr_array_index (self->entries, index), -1);
  g_ptr_array_remove_index_fast (self->entries, index);
}

static gboolean
evict_unlocked (RunnelPrefixCache *self)
{
  guint oldest = 0;

  if (self->entries->len == 0)
    return FALSE;
  for (guint i = 1; i < self->entries->len; i++) {
    const Entry *entry = g_ptr_array_index (self->entries, i);
    const Entry *best = g_ptr_array_index (self->entries, oldest);

    if (entry->used < best->used)
      oldest = i;
  }
  remove_unlocked (self, oldest);
  return TRUE;
}

static void
fit_unlocked (RunnelPrefixCache *self)
{
  while (self->bytes > self->budget || self->entries->len > MAX_ENTRIES)
    if (!evict_unlocked (self))
      return;
}

static guint
common_length (const RunnelHistory *history, const gint32 *tokens, gsize n)
{
  const gint32 *own = runnel_history_tokens (history);
  guint i = 0, end = MIN (runnel_history_length (history), n);

  while (i < end && own[i] == tokens[i])
    i++;
  return i;
}

/* Drops what the history makes needless; TRUE if it is itself needless. */
static gboolean
supersede_unlocked (RunnelPrefixCache *self, const RunnelHistory *history,
                    const RunnelDrafts *drafts)
{
  guint length = runnel_history_length (history);

  for (guint i = self->entries->len; i-- > 0;) {
    Entry *entry = g_ptr_array_index (self->entries, i);
    guint common = common_length (&entry->history,
        runnel_history_tokens (history), length);

    if (common < runnel_history_length (&entry->history))
      continue;
    if (common == length && entry->history.has_hidden
        && runnel_drafts_serve (&entry->drafts, drafts)) {
      entry->used = ++self->stamp;
      return TRUE;
    }
    if (runnel_drafts_serve (drafts, &entry->drafts))
      remove_unlocked (self, i);
  }
  return FALSE;
}

void
runnel_prefix_cache_insert (RunnelPrefixCache *self,
                            const RunnelHistory *history,
                            const RunnelDrafts *drafts)
{
  Entry *entry;

  if (history->shifted || history->joined_length > 0
      || runnel_history_length (history) == 0)
    return;
  g_mutex_lock (&self->mutex);
  /* One that is too large would push all others out and then itself. */
  if (runnel_history_bytes (history) <= self->budget
      && !supersede_unlocked (self, history, drafts)) {
    entry = g_new0 (Entry, 1);
    runnel_history_init (&entry->history, self->pool, self->n_embd);
    runnel_history_copy (&entry->history, history);
    runnel_drafts_copy (&entry->drafts, drafts, TRUE);
    entry->draft_bytes = runnel_drafts_get_bytes (&entry->drafts);
    entry->used = ++self->stamp;
    g_ptr_array_add (self->entries, entry);
    account_unlocked (self, entry, 1);
    fit_unlocked (self);
  }
  g_mutex_unlock (&self->mutex);
}

guint
runnel_prefix_cache_lookup (RunnelPrefixCache *self, const gint32 *tokens,
                            gsize n_tokens, RunnelHistory *into,
                            RunnelDrafts *drafts)
{
  Entry *best = NULL;
  guint best_length = 0;

  g_mutex_lock (&self->mutex);
  for (guint i = 0; i < self->entries->len; i++) {
    Entry *entry = g_ptr_array_index (self->entries, i);
    guint length = common_length (&entry->history, tokens, n_tokens);

    if (!runnel_drafts_serve (&entry->drafts, drafts))
      continue;
    if (length == n_tokens
        && !(runnel_history_length (&entry->history) == length
            && entry->history.has_hidden))
      length--;
    if (length > best_length) {
      best = entry;
      best_length = length;
    }
  }
  if (best != NULL) {
    best->used = ++self->stamp;
    runnel_history_copy (into, &best->history);
    runnel_history_truncate (into, best_length);
    runnel_drafts_adopt (drafts, &best->drafts);
    runnel_drafts_settle (drafts, best_length);
  }
  g_mutex_unlock (&self->mutex);
  return best_length;
}

gboolean
runnel_prefix_cache_evict (RunnelPrefixCache *self)
{
  gboolean evicted;

  g_mutex_lock (&self->mutex);
  evicted = evict_unlocked (self);
  g_mutex_unlock (&self->mutex);
  return evicted;
}

void
runnel_prefix_cache_clear (RunnelPrefixCache *self)
{
  while (runnel_prefix_cache_evict (self))
    ;
}

void
runnel_prefix_cache_set_budget (RunnelPrefixCache *self, guint64 bytes)
{
  g_mutex_lock (&self->mutex);
  self->budget = bytes;
  fit_unlocked (self);
  g_mutex_unlock (&self->mutex);
}

guint64
runnel_prefix_cache_budget (RunnelPrefixCache *self)
{
  guint64 budget;

  g_mutex_lock (&self->mutex);
  budget = self->budget;
  g_mutex_unlock (&self->mutex);
  return budget;
}

guint64
runnel_prefix_cache_bytes (RunnelPrefixCache *self)
{
  guint64 bytes;

  g_mutex_lock (&self->mutex);
  bytes = self->bytes;
  g_mutex_unlock (&self->mutex);
  return bytes;
}

void
runnel_prefix_cache_free (RunnelPrefixCache *self)
{
  if (self == NULL)
    return;
  runnel_prefix_cache_clear (self);
  g_ptr_array_unref (self->entries);
  g_mutex_clear (&self->mutex);
  g_free (self);
}
