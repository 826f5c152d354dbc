/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "../api.h"
#include "engine.h"

G_BEGIN_DECLS

/**
 * RUNNEL_MAX_DRAFT:
 *
 * The most tokens that are proposed at once: a block of sixteen rows, its
 * first one being the token before them.
 *
 * Since: 0.1
 */
#define RUNNEL_MAX_DRAFT 15

/**
 * RUNNEL_DRAFT_GRADES:
 *
 * How many grades of confidence proposals have.
 *
 * Since: 0.1
 */
#define RUNNEL_DRAFT_GRADES 4

#define RUNNEL_TYPE_DRAFTER (runnel_drafter_get_type ())
RUNNEL_API
G_DECLARE_DERIVABLE_TYPE (RunnelDrafter, runnel_drafter, RUNNEL, DRAFTER, GObject)

#define RUNNEL_TYPE_DRAFT_STATE (runnel_draft_state_get_type ())
RUNNEL_API
G_DECLARE_DERIVABLE_TYPE (RunnelDraftState, runnel_draft_state, RUNNEL, DRAFT_STATE, GObject)

/**
 * RunnelDraftRequest:
 * @anchor: the last token, which is drawn and not yet forwarded
 * @max_tokens: propose at most this many tokens to follow it, 1 to
 *   %RUNNEL_MAX_DRAFT
 * @position: index, in the sequence, of the first token to propose
 * @seed: of the sampler's noise: who draws proposals draws them with the noise
 *   of (seed, position, token), as the reply is drawn
 * @temperature: of the sampler; 0 is greedy
 *
 * What a drafter is asked for.
 *
 * Since: 0.1
 */
typedef struct {
  gint32 anchor;
  guint max_tokens;
  guint64 position;
  guint64 seed;
  double temperature;
} RunnelDraftRequest;

/**
 * RunnelProposal:
 * @tokens: the guesses
 * @n_tokens: how many there are; 0: none
 * @grade: how sure the drafter is, in its own measure, below
 *   %RUNNEL_DRAFT_GRADES: proposals of a grade are judged together. It must
 *   not depend on noise.
 * @n_candidates: candidates of each guess; 0: the guesses are fixed, drawn
 *   from nothing
 * @candidates: (nullable): [n_tokens][n_candidates]: the tokens a guess was
 *   drawn from, different from each other; of the state, until its next call
 * @probabilities: (nullable): [n_tokens][n_candidates]: with which
 *   probability, each list adding up to 1
 *
 * Tokens that may follow.
 *
 * Since: 0.1
 */
typedef struct {
  gint32 tokens[RUNNEL_MAX_DRAFT];
  guint n_tokens;
  guint grade;
  guint n_candidates;
  const gint32 *candidates;
  const float *probabilities;
} RunnelProposal;

/**
 * RunnelDrafterClass:
 * @parent_class: parent
 * @new_state: the state for an empty sequence of an engine, or %NULL with an
 *   error when the drafter is for another model
 * @load_state: the state that @save gave; an image that does not fit, damaged
 *   or not, is an error. Without it states are fed the tokens anew.
 *
 * What a drafter implements.
 *
 * Since: 0.1
 */
struct _RunnelDrafterClass {
  GObjectClass parent_class;

  RunnelDraftState *(*new_state) (RunnelDrafter *self, RunnelEngine *engine,
                                  GError **error);
  RunnelDraftState *(*load_state) (RunnelDrafter *self, RunnelEngine *engine,
                                   GBytes *image, guint n_rows,
                                   GError **error);

  /*< private >*/
  gpointer padding[8];
};

/**
 * RunnelDraftStateClass:
 * @parent_class: parent
 * @feed: takes the next @n rows of the sequence: their tokens, and of each the
 *   hidden rows behind the drafter's tapped layers, [n][n_taps][n_embd],
 *   or %NULL if it taps none
 * @truncate: forgets all but the first @n_rows rows
 * @fork: a state that goes its own way
 * @propose: fills @proposal, which is empty. All rows before the anchor have
 *   been fed. Nothing of the proposal may stay in the state.
 * @accepted: (nullable): told how the proposal went
 * @get_bytes: (nullable): memory of the state, for the budget of the prefix
 *   cache
 * @save: (nullable): an image for @load_state of the drafter
 *
 * What the state of a drafter implements.
 *
 * Since: 0.1
 */
struct _RunnelDraftStateClass {
  GObjectClass parent_class;

  gboolean (*feed) (RunnelDraftState *self, const gint32 *tokens, guint n,
                    const float *taps, GError **error);
  void (*truncate) (RunnelDraftState *self, guint n_rows);
  RunnelDraftState *(*fork) (RunnelDraftState *self);
  gboolean (*propose) (RunnelDraftState *self,
                       const RunnelDraftRequest *request,
                       RunnelProposal *proposal, GError **error);
  void (*accepted) (RunnelDraftState *self, guint n_proposed,
                    guint n_accepted);
  gsize (*get_bytes) (RunnelDraftState *self);
  GBytes *(*save) (RunnelDraftState *self);

  /*< private >*/
  gpointer padding[8];
};

RUNNEL_API const char *runnel_drafter_get_id (RunnelDrafter *self);
RUNNEL_API const guint *runnel_drafter_get_taps (RunnelDrafter *self,
                                                 guint *n_taps);
RUNNEL_API void runnel_drafter_set_identity (RunnelDrafter *self,
                                             const char *id,
                                             const guint *taps,
                                             guint n_taps);

RUNNEL_API RunnelDrafter *
runnel_draft_state_get_drafter (RunnelDraftState *self);
RUNNEL_API guint runnel_draft_state_get_n_rows (RunnelDraftState *self);

G_END_DECLS
