/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The draft states of a sequence or of an entry of the prefix cache.
 */
#pragma once

#include "draft-state-private.h"

G_BEGIN_DECLS

typedef struct {
  GPtrArray *states;         /* RunnelDraftState, in order of attachment; NULL:
                                none */
  GHashTable *saved;         /* id → GBytes: read from an image and not yet
                                claimed; NULL: none */
  guint saved_length;        /* of the sequence they belong to */
} RunnelDrafts;

void runnel_drafts_clear (RunnelDrafts *self);
guint runnel_drafts_count (const RunnelDrafts *self);
RunnelDraftState *runnel_drafts_get (const RunnelDrafts *self, guint i);
RunnelDraftState *runnel_drafts_find (const RunnelDrafts *self,
                                      const char *id);
void runnel_drafts_add (RunnelDrafts *self, RunnelDraftState *state);

/* Adds forks of @from's states; only of those that cannot be fed anew if
 * @tapping. */
void runnel_drafts_copy (RunnelDrafts *self, const RunnelDrafts *from,
                         gboolean tapping);
/* Whether there is a state for each of @wanted that cannot be fed anew. */
gboolean runnel_drafts_serve (const RunnelDrafts *self,
                              const RunnelDrafts *wanted);
/* Takes forks of @from's states in the place of those of the same drafters. */
void runnel_drafts_adopt (RunnelDrafts *self, const RunnelDrafts *from);

void runnel_drafts_settle (RunnelDrafts *self, guint length);
/* Rows behind @n_keep have moved: states that cannot be fed anew go. */
void runnel_drafts_shift (RunnelDrafts *self, guint n_keep);
gboolean runnel_drafts_catch_up (RunnelDrafts *self, const gint32 *tokens,
                                 guint length, GError **error);
gsize runnel_drafts_get_bytes (const RunnelDrafts *self);

/* The part of a saved state that is the drafts': u32 count, and for each u32
 * bytes of the id, u32 bytes of the image, both. Those that can be fed anew
 * are not there. */
void runnel_drafts_append_image (const RunnelDrafts *self, GByteArray *image);
/* FALSE when @data does not hold exactly that. Copies. */
gboolean runnel_drafts_read_image (RunnelDrafts *self, const guint8 *data,
                                   gsize size, guint length);

G_END_DECLS
