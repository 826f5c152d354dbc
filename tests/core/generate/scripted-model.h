/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A model that says what a test wrote down. It stands in for engine, sequence,
 * model and tokenizer, so that the loop can be tried by the ten thousand, and
 * checks what the loop must not do: overfill the context, forward rows in
 * vain, leave without having joined.
 */
#pragma once

#include "generate/generation.h"

G_BEGIN_DECLS

typedef struct {
  const char *const *pieces; /* [n_pieces]: texts of the tokens */
  guint n_pieces;
  guint n_vocab; /* logits; may be more than n_pieces */
  gint32 stop_token; /* a control token; -1: none */
  const gint32 *replies; /* what comes at a position, counted from the end of
                            the prompt; over and over again */
  guint n_replies;
  guint fail_at; /* forward fails from this row on; 0: never */
  gboolean flat; /* all logits of known tokens are equal, padding is better */
  gboolean bad;  /* all logits are NaN */

  /* What was done. */
  guint rows;   /* forwarded */
  guint passes; /* that forwarded them */
  guint shifts;
  guint joined; /* participants now */
  guint n_cached;
  gint32 *cached; /* the tokens given to the prefix cache last */
} ScriptedModel;

/* The sequence of a prompt of so many tokens; the model outlives it. */
RunnelSequence *scripted_sequence_new (ScriptedModel *model, guint context,
                                       const gint32 *tokens, guint n_tokens,
                                       guint n_prompt);
void scripted_model_clear (ScriptedModel *model);

G_END_DECLS
