/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "../error.h"
#include "tokenizer-mtok.h"

G_BEGIN_DECLS

typedef struct {
  const RunnelMtokContext *context;
  const char *name;
  const guint8 *at, *end;      /* what is left of the file */
  GError **error;
  gboolean failed;
  guint n_special, n_stop, n_prefix;
  guint32 *special;            /* then the stop ids, then the prefix */
  GArray *texts;               /* of RunnelTokenText, by id */
  RunnelTokenizerParts *parts;
} MtokReader;

/* The first failure is the one that is reported. */
void mtok_fail (MtokReader *self, RunnelError code, const char *what);

/* For @n tokens, how many the file has at most. */
void mtok_make_room (MtokReader *self, gsize n);
void mtok_set_token (MtokReader *self, guint32 id, const char *text,
                     gsize length, RunnelTokenType type);
void mtok_add_token (MtokReader *self, guint32 id, const char *text,
                     gsize length, RunnelTokenType type);
/* Of the tokens; FALSE after a failure. */
gboolean mtok_make_vocabulary (MtokReader *self);
void mtok_make_bpe (MtokReader *self, gsize n_merges);

/* A token before each text. */
void mtok_set_bos (MtokReader *self, gint32 token);
/* The tokens that begin and end a text, those of the first lines too. */
void mtok_set_ends (MtokReader *self, const char *bos, gsize bos_length,
                    const char *eos, gsize eos_length);

/* Kind 4, behind the first lines. */
void mtok_read_stages (MtokReader *self);

G_END_DECLS
