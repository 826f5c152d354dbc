/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>

/* Token ids and the bytes they stand for. Immutable. */

G_BEGIN_DECLS

#define RUNNEL_MAX_TOKENS (1u << 24)

/* The numbers are those of GGUF's tokenizer.ggml.token_type. */
typedef enum {
  RUNNEL_TOKEN_NORMAL = 1,
  RUNNEL_TOKEN_UNKNOWN = 2,
  RUNNEL_TOKEN_CONTROL = 3,
  RUNNEL_TOKEN_USER_DEFINED = 4,   /* added, but part of the text */
  RUNNEL_TOKEN_UNUSED = 5,
  RUNNEL_TOKEN_BYTE = 6,           /* "<0x41>" */
} RunnelTokenType;

/* A token as a file has it. Normal ones are in the byte-level alphabet. */
typedef struct {
  const char *text;       /* NULL: the file gives this id no token */
  gsize length;
  RunnelTokenType type;
} RunnelTokenText;

/* Enters a token into a table that has room for its id. An added one may
 * repeat the normal one of the same id and text. @name is what errors call the
 * file. */
gboolean runnel_token_text_set (RunnelTokenText *tokens, gsize id,
                                const char *text, gsize length,
                                RunnelTokenType type, const char *name,
                                GError **error);
#define RUNNEL_TOKEN_FINDABLE 0x80

typedef struct _RunnelVocabulary RunnelVocabulary;

/* @name is what errors call the file. */
RunnelVocabulary *runnel_vocabulary_new (const RunnelTokenText *tokens,
                                         gsize n, const char *name,
                                         GError **error);
/* From the bytes of the tokens: @lengths[i] of them each, one after the other
 * in @pieces, @size in all. @types: a RunnelTokenType each, and
 * RUNNEL_TOKEN_FINDABLE where merging may end in the token. */
RunnelVocabulary *
runnel_vocabulary_new_from_pieces (const guint8 *pieces, gsize size,
                                   const guint16 *lengths,
                                   const guint8 *types, gsize n,
                                   const char *name, GError **error);
void runnel_vocabulary_free (RunnelVocabulary *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelVocabulary, runnel_vocabulary_free)

guint runnel_vocabulary_size (const RunnelVocabulary *self);
/* @token must be below the size for these. */
const guint8 *runnel_vocabulary_piece (const RunnelVocabulary *self,
                                       guint token, gsize *length);
RunnelTokenType runnel_vocabulary_type (const RunnelVocabulary *self,
                                        guint token);
/* Whether merging may end in it. */
gboolean runnel_vocabulary_is_findable (const RunnelVocabulary *self,
                                        guint token);
/* The token that merging may end in and whose bytes these are, or -1. */
gint32 runnel_vocabulary_find (const RunnelVocabulary *self,
                               const guint8 *bytes, gsize length);
/* The same, looking first at @guess. */
gint32 runnel_vocabulary_find_near (const RunnelVocabulary *self, guint guess,
                                    const guint8 *bytes, gsize length);

G_END_DECLS
