/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

/* Finds the tokens that stand beside the merges ("<|im_end|>") in a text: the
 * leftmost, and of those that start there the longest. */

G_BEGIN_DECLS

typedef struct _RunnelAddedTokens RunnelAddedTokens;

RunnelAddedTokens *runnel_added_tokens_new (void);
void runnel_added_tokens_free (RunnelAddedTokens *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelAddedTokens, runnel_added_tokens_free)

/* The bytes are copied. After the last one, runnel_added_tokens_seal; it
 * returns FALSE with the id of a token that was added under another id too. */
void runnel_added_tokens_add (RunnelAddedTokens *self, const guint8 *bytes,
                              gsize length, gint32 token);
gboolean runnel_added_tokens_seal (RunnelAddedTokens *self, gint32 *ret_twice);

gsize runnel_added_tokens_size (const RunnelAddedTokens *self);
/* Number @i of them, in the order of their bytes. */
gint32 runnel_added_tokens_nth (const RunnelAddedTokens *self, gsize i,
                                const guint8 **ret_bytes, gsize *ret_length);
/* The token with exactly these bytes, or -1. */
gint32 runnel_added_tokens_lookup (const RunnelAddedTokens *self,
                                   const guint8 *bytes, gsize length);
/* The first one wholly inside [@begin, @end) of @text, or -1. */
gint32 runnel_added_tokens_search (const RunnelAddedTokens *self,
                                   const guint8 *text, gsize begin, gsize end,
                                   gsize *ret_start, gsize *ret_length);

G_END_DECLS
