/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* Token ids as people and programs write them. */
#pragma once

#include <runnel.h>

#include "formats/json.h"

G_BEGIN_DECLS

/* "1 2 3", "1,2,3", "[1, 2, 3]". Ids from 0 to @n_vocab − 1; @what is what
 * errors call the text. The list may be empty. */
gint32 *token_list_parse (const char *text, gsize length, const char *what,
                          guint n_vocab, gsize *ret_n, GError **error);
/* An array, or an object with an array 'ids'. */
gint32 *token_list_from_json (const RunnelJsonNode *node, const char *what,
                              guint n_vocab, gsize *ret_n, GError **error);
/* Puts @token before @tokens, which are taken. */
gint32 *token_list_prepend (gint32 *tokens, gsize *n_tokens, gint32 token);

G_END_DECLS
