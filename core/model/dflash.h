/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A DFlash draft beside its target, on one device (Chen et al., "DFlash: Block
 * Diffusion for Flash Speculative Decoding", 2026, arXiv 2602.06036; the second
 * version as NeMo AutoModel and llama.cpp compute it). It lives on hidden rows
 * of the target: every committed row becomes keys and values in each of its
 * layers, once; one pass over a block, the last token and masks, then guesses
 * the tokens of all its slots. Embedding and output matrix are the target's.
 */
#pragma once

#include "engine.h"
#include "forward.h"
#include "history.h"

G_BEGIN_DECLS

typedef struct _RunnelDflash RunnelDflash;

/* Loads the draft's weights for the target's device. All its memory counts in
 * the target's, and is refused before it is taken. An error when it is for
 * another target, by sizes or by vocabulary. */
RunnelDflash *runnel_dflash_new (RunnelModel *draft, RunnelEngine *target,
                                 GError **error);
RunnelDflash *runnel_dflash_ref (RunnelDflash *self);
void runnel_dflash_unref (RunnelDflash *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelDflash, runnel_dflash_unref)

/* Whether it is for this target. */
gboolean runnel_dflash_is_for (RunnelDflash *self, RunnelEngine *target);

/* A context with no rows; its pages are this object's. */
void runnel_dflash_init_context (RunnelDflash *self, RunnelHistory *context);
/* Appends rows, of @taps [n][n_taps][n_embd]. */
gboolean runnel_dflash_commit (RunnelDflash *self, RunnelHistory *context,
                               const gint32 *tokens, guint n,
                               const float *taps, GError **error);

/* Bytes of a row of the context, and the rows themselves. */
gsize runnel_dflash_row_bytes (const RunnelDflash *self);
void runnel_dflash_save_rows (RunnelDflash *self, const RunnelHistory *context,
                              guint8 *bits);
/* Into an empty context. */
gboolean runnel_dflash_load_rows (RunnelDflash *self, RunnelHistory *context,
                                  const guint8 *bits, guint n, GError **error);

/* What a block gives, of each slot behind the anchor's. */
typedef struct {
  guint n_candidates;
  gint32 *candidates;        /* [slots][n_candidates], likeliest first */
  float *logits;             /* theirs */
  float *gates;              /* [slots][rank] of the path selector, or NULL */
  float *codes;              /* scratch */
} RunnelDflashBlock;

void runnel_dflash_block_init (RunnelDflashBlock *self,
                               const RunnelDflash *dflash);
void runnel_dflash_block_clear (RunnelDflashBlock *self);

/* Guesses @n_guesses tokens behind @anchor, which follows the context's rows;
 * the context is as before. @taps, of the draft's own layers, and all logits,
 * [n_guesses][n_vocab], are for who wants to look; or NULL. */
gboolean runnel_dflash_guess (RunnelDflash *self, const RunnelHistory *context,
                              gint32 anchor, guint n_guesses,
                              RunnelDflashBlock *block, const RunnelTap *taps,
                              guint n_taps, float *logits, GError **error);

/* Scores of the candidates of a slot behind the token that stands before it:
 * [n_candidates]; the logits without a path selector. */
void runnel_dflash_score (const RunnelDflash *self,
                          const RunnelDflashBlock *block, guint slot,
                          gint32 predecessor, float *scores);

G_END_DECLS
