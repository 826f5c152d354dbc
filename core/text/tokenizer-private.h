/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "tokenizer.h"
#include "added-tokens.h"
#include "bpe.h"
#include "pretokenizer.h"
#include "vocabulary.h"
#include "../formats/checkpoint.h"

G_BEGIN_DECLS

/* From an opened model: GGUF metadata, or tokenizer.json, tokenizer_config.json
 * and generation_config.json of a Hugging Face folder. */
RunnelTokenizer *runnel_tokenizer_new_from_checkpoint (RunnelCheckpoint *from,
                                                       GError **error);
/* FALSE for a draft that leaves it to its target. */
gboolean runnel_tokenizer_is_in_checkpoint (RunnelCheckpoint *from);
RunnelTokenizer *runnel_tokenizer_new_from_gguf (const RunnelGguf *gguf,
                                                 GError **error);

/* The files of a Hugging Face folder; all but @tokenizer may be NULL.
 * @chat_template is that of chat_template.jinja, which comes before the one
 * in @config. @n_vocab: ids the model has; those that no file names are
 * unused. 0 when there is no model. */
typedef struct {
  RunnelJson *tokenizer;
  RunnelJson *config;
  RunnelJson *generation;
  const char *chat_template;
  guint n_vocab;
} RunnelTokenizerFiles;

RunnelTokenizer *
runnel_tokenizer_new_from_files (const RunnelTokenizerFiles *files,
                                 GError **error);
RunnelTokenizer *runnel_tokenizer_new_from_folder (const char *folder,
                                                   guint n_vocab,
                                                   GError **error);

/* What a tokenizer is made of; what a loader fills in. */
typedef struct {
  RunnelPretokenizer pre;
  RunnelVocabulary *vocabulary;
  RunnelBpe *bpe;
  RunnelAddedTokens *added;             /* looked for in the text as it is, */
  RunnelAddedTokens *added_normalized;  /* and in what that leaves, in NFC */
  gint32 bos, eos;                      /* or -1 */
  gboolean add_bos;
  GArray *stop_tokens;                  /* of gint32 */
  char *chat_template;
} RunnelTokenizerParts;

RunnelTokenizerParts *runnel_tokenizer_parts_new (void);
void runnel_tokenizer_parts_free (RunnelTokenizerParts *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelTokenizerParts,
                               runnel_tokenizer_parts_free)
/* To be called when all added tokens are in, before any is looked for. */
gboolean runnel_tokenizer_parts_seal (RunnelTokenizerParts *self,
                                      const char *name, GError **error);
/* Ignores -1 and what is there already. */
void runnel_tokenizer_parts_add_stop (RunnelTokenizerParts *self,
                                      gint32 token);
/* The token whose literal text or bytes these are, or -1. */
gint32 runnel_tokenizer_parts_find (const RunnelTokenizerParts *self,
                                    const char *text, gsize length);
RunnelTokenizer *runnel_tokenizer_new_take (RunnelTokenizerParts *parts);
const RunnelTokenizerParts *
runnel_tokenizer_get_parts (RunnelTokenizer *self);

/* As a package holds it; see docs/package.md. */
gboolean runnel_tokenizer_write_package (RunnelTokenizer *self,
                                         RunnelGgufWriter *writer,
                                         GError **error);
gboolean runnel_tokenizer_is_in_package (const RunnelGguf *gguf);
RunnelTokenizer *runnel_tokenizer_new_from_package (const RunnelGguf *gguf,
                                                    GError **error);

/* Whether the constructor made it: bindings can make an object without. */
gboolean runnel_tokenizer_is_made (RunnelTokenizer *self);

G_END_DECLS
