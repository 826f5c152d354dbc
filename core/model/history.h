/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A token history and where its keys and values are: what a sequence holds and
 * what the prefix cache keeps.
 */
#pragma once

#include <glib.h>

#include "pages.h"

G_BEGIN_DECLS

/* Rows [first, first + n) of a page. */
typedef struct {
  RunnelPage *page;
  guint32 first;
  guint32 n;
} RunnelSegment;

typedef struct {
  RunnelPagePool *pool;      /* borrowed from the engine */
  GArray *tokens;            /* gint32, one for each committed row */
  GArray *segments;          /* RunnelSegment, in the order of the rows */
  guint reserved;            /* rows at the end that are not committed */

  /* Row i is at position i; behind a join, row joined_length is at position
   * joined_position and so on. */
  guint joined_length;
  guint joined_position;

  float *hidden;             /* last hidden row, valid if has_hidden */
  guint n_embd;
  gboolean has_hidden;
  gboolean shifted;
} RunnelHistory;

void runnel_history_init (RunnelHistory *self, RunnelPagePool *pool,
                          guint n_embd);
void runnel_history_clear (RunnelHistory *self);
/* @self must be initialised; its old content goes. Shares the pages. */
void runnel_history_copy (RunnelHistory *self, const RunnelHistory *from);

static inline guint
runnel_history_length (const RunnelHistory *self)
{
  return self->tokens->len;
}

static inline const gint32 *
runnel_history_tokens (const RunnelHistory *self)
{
  return (const gint32 *) self->tokens->data;
}

/* The position of row @row, committed or to come; not before joined_length,
 * where rows of several forks stand side by side. */
guint runnel_history_position (const RunnelHistory *self, guint row);
guint64 runnel_history_bytes (const RunnelHistory *self);

/* Takes @n rows for an append; FALSE over the memory limit, with nothing
 * taken. Then either commit or release them. */
gboolean runnel_history_reserve (RunnelHistory *self, guint n);
void runnel_history_commit (RunnelHistory *self, const gint32 *tokens);
void runnel_history_release (RunnelHistory *self);

/* Not below joined_length. */
void runnel_history_truncate (RunnelHistory *self, guint n);
/* Appends rows [from, to) of another history, sharing their pages. */
void runnel_history_append (RunnelHistory *self, const RunnelHistory *other,
                            guint from, guint to);
/* Page and row in it of a committed or reserved row. */
RunnelPage *runnel_history_find (const RunnelHistory *self, guint row,
                                 guint32 *ret_page_row);

G_END_DECLS
