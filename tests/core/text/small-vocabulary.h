/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "text/tokenizer-private.h"

/* A vocabulary made by a test: first the 256 bytes, whose ids are their
 * values, then what the test adds; as GGUF file and as tokenizer.json. */
typedef struct {
  GPtrArray *texts;      /* as files have them */
  GArray *types;         /* gint32, RunnelTokenType */
  GPtrArray *merges;     /* "a b" */
  GHashTable *ids;       /* of a text, 1 + id */
} SmallVocabulary;

SmallVocabulary *small_vocabulary_new (void);
void small_vocabulary_free (SmallVocabulary *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SmallVocabulary, small_vocabulary_free)

/* The byte-level alphabet's text for bytes. */
char *small_vocabulary_spell (const void *bytes, gsize length);
/* A token as it is in the file. */
gint32 small_vocabulary_add (SmallVocabulary *self, const char *text,
                             RunnelTokenType type);
/* A normal token of these bytes without a merge. */
gint32 small_vocabulary_add_bytes (SmallVocabulary *self, const void *bytes,
                                   gsize length);
/* The merge of two tokens given by their bytes; its result is added too. */
gint32 small_vocabulary_merge (SmallVocabulary *self, const char *left,
                               const char *right);
/* Merges a word from left to right. */
gint32 small_vocabulary_add_word (SmallVocabulary *self, const char *word);

/* With the token ids @eos or -1. The file is for the caller to remove. */
char *small_vocabulary_save (const SmallVocabulary *self, const char *pre,
                             gint32 eos);
RunnelTokenizer *small_vocabulary_load (const SmallVocabulary *self,
                                        const char *pre, GError **error);
/* A tokenizer.json; @lists: merges as pairs, not as "a b". */
char *small_vocabulary_to_json (const SmallVocabulary *self, const char *pre,
                                gboolean lists);
RunnelTokenizer *small_vocabulary_load_json (const char *json,
                                             const char *config,
                                             const char *generation,
                                             GError **error);
