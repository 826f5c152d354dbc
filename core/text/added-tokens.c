/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "added-tokens.h"

#include <string.h>

typedef struct {
  guint8 *bytes;
  gsize length;
  gint32 token;
} Entry;

/* The sorted list is searched like a trie: tokens with a common beginning lie
 * side by side, and each further byte narrows the range. */
struct _RunnelAddedTokens {
  GArray *entries;
  guint32 first[257];   /* where the entries with a first byte start */
};

static void
clear_entry (gpointer data)
{
  g_free (((Entry *) data)->bytes);
}

RunnelAddedTokens *
runnel_added_tokens_new (void)
{
  RunnelAddedTokens *self = g_new0 (RunnelAddedTokens, 1);

  self->entries = g_array_new (FALSE, FALSE, sizeof (Entry));
  g_array_set_clear_func (self->entries, clear_entry);
  return self;
}

void
runnel_added_tokens_free (RunnelAddedTokens *self)
{
  g_array_unref (self->entries);
  g_free (self);
}

void
runnel_added_tokens_add (RunnelAddedTokens *self, const guint8 *bytes,
                         gsize length, gint32 token)
{
  Entry entry = { g_memdup2 (bytes, length), length, token };

  g_assert (length > 0);
  g_array_append_val (self->entries, entry);
}

static gint
compare_bytes (const guint8 *a, gsize a_length, const guint8 *b,
               gsize b_length)
{
  gint order = memcmp (a, b, MIN (a_length, b_length));

  return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
}

static gint
compare_entries (gconstpointer a, gconstpointer b)
{
  const Entry *x = a, *y = b;

  return compare_bytes (x->bytes, x->length, y->bytes, y->length);
}

gboolean
runnel_added_tokens_seal (RunnelAddedTokens *self, gint32 *ret_twice)
{
  const Entry *entries = (const Entry *) self->entries->data;
  guint32 i = 0;

  g_array_sort (self->entries, compare_entries);
  for (guint byte = 0; byte < 256; byte++) {
    self->first[byte] = i;
    while (i < self->entries->len && entries[i].bytes[0] == byte)
      i++;
  }
  self->first[256] = i;
  for (i = 1; i < self->entries->len; i++) {
    if (compare_entries (&entries[i - 1], &entries[i]) == 0) {
      *ret_twice = entries[i].token;
      return FALSE;
    }
  }
  return TRUE;
}

gsize
runnel_added_tokens_size (const RunnelAddedTokens *self)
{
  return self->entries->len;
}

gint32
runnel_added_tokens_nth (const RunnelAddedTokens *self, gsize i,
                         const guint8 **ret_bytes, gsize *ret_length)
{
  const Entry *entry = &g_array_index (self->entries, Entry, i);

  *ret_bytes = entry->bytes;
  *ret_length = entry->length;
  return entry->token;
}

gint32
runnel_added_tokens_lookup (const RunnelAddedTokens *self,
                            const guint8 *bytes, gsize length)
{
  const Entry *entries = (const Entry *) self->entries->data;
  gsize low = 0, high = self->entries->len;

  while (low < high) {
    gsize middle = low + (high - low) / 2;
    gint order = compare_bytes (entries[middle].bytes, entries[middle].length,
                                bytes, length);

    if (order == 0)
      return entries[middle].token;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return -1;
}

/* The first entry in [low, high) whose byte at @depth is not below @byte. All
 * of them are longer than @depth. */
static gsize
lower_bound (const Entry *entries, gsize low, gsize high, gsize depth,
             guint byte)
{
  while (low < high) {
    gsize middle = low + (high - low) / 2;

    if (entries[middle].bytes[depth] < byte)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static const Entry *
longest_at (const RunnelAddedTokens *self, const guint8 *at, gsize length)
{
  const Entry *entries = (const Entry *) self->entries->data, *best = NULL;
  gsize low = self->first[*at], high = self->first[*at + 1];

  for (gsize depth = 1; low < high; depth++) {
    /* An entry that ends here sorts before those that go on. */
    if (entries[low].length == depth)
      best = &entries[low++];
    if (depth == length)
      break;
    low = lower_bound (entries, low, high, depth, at[depth]);
    high = lower_bound (entries, low, high, depth, at[depth] + 1u);
  }
  return best;
}

gint32
runnel_added_tokens_search (const RunnelAddedTokens *self, const guint8 *text,
                            gsize begin, gsize end, gsize *ret_start,
                            gsize *ret_length)
{
  if (self->entries->len == 0)
    return -1;
  for (gsize i = begin; i < end; i++) {
    const Entry *entry;

    if (self->first[text[i]] == self->first[text[i] + 1])
      continue;
    entry = longest_at (self, text + i, end - i);
    if (entry != NULL) {
      *ret_start = i;
      *ret_length = entry->length;
      return entry->token;
    }
  }
  return -1;
}
