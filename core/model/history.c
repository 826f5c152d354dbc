/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "history.h"

#include <string.h>

static void
clear_segment (gpointer data)
{
  runnel_page_unref (((RunnelSegment *) data)->page);
}

void
runnel_history_init (RunnelHistory *self, RunnelPagePool *pool, guint n_embd)
{
  memset (self, 0, sizeof *self);
  self->pool = pool;
  self->n_embd = n_embd;
  self->tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
  self->segments = g_array_new (FALSE, FALSE, sizeof (RunnelSegment));
  g_array_set_clear_func (self->segments, clear_segment);
  self->hidden = g_new (float, n_embd);
}

void
runnel_history_clear (RunnelHistory *self)
{
  g_clear_pointer (&self->tokens, g_array_unref);
  g_clear_pointer (&self->segments, g_array_unref);
  g_clear_pointer (&self->hidden, g_free);
}

static RunnelSegment *
segment (const RunnelHistory *self, guint i)
{
  return &g_array_index (self->segments, RunnelSegment, i);
}

static RunnelSegment *
last_segment (const RunnelHistory *self)
{
  guint n = self->segments->len;

  return n > 0 ? segment (self, n - 1) : NULL;
}

static void
add_segment (RunnelHistory *self, RunnelPage *page, guint32 first, guint32 n)
{
  RunnelSegment added = { page, first, n };

  g_array_append_val (self->segments, added);
}

void
runnel_history_copy (RunnelHistory *self, const RunnelHistory *from)
{
  g_array_set_size (self->tokens, 0);
  g_array_set_size (self->segments, 0);
  runnel_history_append (self, from, 0, runnel_history_length (from));
  self->joined_length = from->joined_length;
  self->joined_position = from->joined_position;
  self->shifted = from->shifted;
  self->has_hidden = from->has_hidden;
  if (from->has_hidden)
    memcpy (self->hidden, from->hidden, self->n_embd * sizeof (float));
}

guint
runnel_history_position (const RunnelHistory *self, guint row)
{
  return row - self->joined_length + self->joined_position;
}

guint64
runnel_history_bytes (const RunnelHistory *self)
{
  return (guint64) self->segments->len
      * runnel_page_pool_page_bytes (self->pool);
}

gboolean
runnel_history_reserve (RunnelHistory *self, guint n)
{
  guint page_rows = runnel_page_pool_rows (self->pool);

  while (n > 0) {
    RunnelSegment *last = last_segment (self);
    guint32 end = last != NULL ? last->first + last->n : page_rows;
    guint take = MIN (n, page_rows - end);
    RunnelPage *page;

    if (take > 0 && runnel_page_claim (last->page, end, take)) {
      last->n += take;
    } else {
      page = runnel_page_new (self->pool);
      if (page == NULL) {
        runnel_history_release (self);
        return FALSE;
      }
      take = MIN (n, page_rows);
      runnel_page_claim (page, 0, take);
      add_segment (self, page, 0, take);
    }
    self->reserved += take;
    n -= take;
  }
  return TRUE;
}

void
runnel_history_commit (RunnelHistory *self, const gint32 *tokens)
{
  g_array_append_vals (self->tokens, tokens, self->reserved);
  self->reserved = 0;
}

/* Drops rows from the end of the segments and gives their claims back. */
static void
drop_rows (RunnelHistory *self, guint n)
{
  while (n > 0) {
    RunnelSegment *last = last_segment (self);
    guint drop = MIN (n, last->n);
    guint32 end = last->first + last->n;

    last->n -= drop;
    n -= drop;
    runnel_page_unclaim (last->page, end - drop, end);
    runnel_page_trim (last->page, end - drop);
    if (last->n == 0)
      g_array_set_size (self->segments, self->segments->len - 1);
  }
}

void
runnel_history_release (RunnelHistory *self)
{
  drop_rows (self, self->reserved);
  self->reserved = 0;
}

void
runnel_history_truncate (RunnelHistory *self, guint n)
{
  guint length = runnel_history_length (self);
  guint drop = length - n;

  if (drop == 0)
    return;
  self->has_hidden = FALSE;
  g_array_set_size (self->tokens, n);
  while (drop > 0) {
    RunnelSegment *last = last_segment (self);
    guint take = MIN (drop, last->n);

    last->n -= take;
    drop -= take;
    if (last->n == 0)
      g_array_set_size (self->segments, self->segments->len - 1);
    else
      runnel_page_trim (last->page, last->first + last->n);
  }
}

void
runnel_history_append (RunnelHistory *self, const RunnelHistory *other,
                       guint from, guint to)
{
  guint row = 0;

  g_array_append_vals (self->tokens, runnel_history_tokens (other) + from,
      to - from);
  for (guint i = 0; i < other->segments->len; i++) {
    const RunnelSegment *s = segment (other, i);
    guint begin = MAX (from, row), end = MIN (to, row + s->n);

    if (begin < end)
      add_segment (self, runnel_page_ref (s->page), s->first + (begin - row),
          end - begin);
    row += s->n;
  }
}

RunnelPage *
runnel_history_find (const RunnelHistory *self, guint row,
                     guint32 *ret_page_row)
{
  for (guint i = 0;; i++) {
    const RunnelSegment *s = segment (self, i);

    if (row < s->n) {
      *ret_page_row = s->first + row;
      return s->page;
    }
    row -= s->n;
  }
}
