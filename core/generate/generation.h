/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "../api.h"
#include "../model/sequence.h"
#include "sampler.h"

G_BEGIN_DECLS

/**
 * RunnelFinishReason:
 * @RUNNEL_FINISH_REASON_NONE: not finished
 * @RUNNEL_FINISH_REASON_STOP: a stop token or stop string
 * @RUNNEL_FINISH_REASON_LENGTH: max-tokens, or the context is full
 * @RUNNEL_FINISH_REASON_CANCELLED: cancelled; what came stays
 * @RUNNEL_FINISH_REASON_ERROR: failed
 *
 * Why a reply ended.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_FINISH_REASON_NONE,
  RUNNEL_FINISH_REASON_STOP,
  RUNNEL_FINISH_REASON_LENGTH,
  RUNNEL_FINISH_REASON_CANCELLED,
  RUNNEL_FINISH_REASON_ERROR,
} RunnelFinishReason;

#define RUNNEL_TYPE_FINISH_REASON (runnel_finish_reason_get_type ())
RUNNEL_API GType runnel_finish_reason_get_type (void);

/**
 * RunnelOverflowPolicy:
 * @RUNNEL_OVERFLOW_POLICY_ERROR: a prompt over the context is an error; a
 *   reply that fills it ends with reason length
 * @RUNNEL_OVERFLOW_POLICY_TRUNCATE: the prompt loses its middle (after
 *   n-keep), the reply ends with reason length
 * @RUNNEL_OVERFLOW_POLICY_SHIFT: the oldest rows after n-keep are dropped, at
 *   least a quarter of the context at once, and generation goes on
 * @RUNNEL_OVERFLOW_POLICY_STOP: a prompt over the context gives an empty
 *   reply with reason length, as does a full context
 *
 * What happens at the end of the context.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_OVERFLOW_POLICY_ERROR,
  RUNNEL_OVERFLOW_POLICY_TRUNCATE,
  RUNNEL_OVERFLOW_POLICY_SHIFT,
  RUNNEL_OVERFLOW_POLICY_STOP,
} RunnelOverflowPolicy;

#define RUNNEL_TYPE_OVERFLOW_POLICY (runnel_overflow_policy_get_type ())
RUNNEL_API GType runnel_overflow_policy_get_type (void);

/**
 * RunnelPromptFit:
 * @RUNNEL_PROMPT_FIT_WHOLE: the prompt goes in as it is
 * @RUNNEL_PROMPT_FIT_CUT: the returned tokens go in instead
 * @RUNNEL_PROMPT_FIT_NOTHING: no reply, reason length
 *
 * What runnel_overflow_policy_fit_prompt () decided.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_PROMPT_FIT_WHOLE,
  RUNNEL_PROMPT_FIT_CUT,
  RUNNEL_PROMPT_FIT_NOTHING,
} RunnelPromptFit;

#define RUNNEL_TYPE_PROMPT_FIT (runnel_prompt_fit_get_type ())
RUNNEL_API GType runnel_prompt_fit_get_type (void);

RUNNEL_API gboolean
runnel_overflow_policy_fit_prompt (RunnelOverflowPolicy policy, guint n_keep,
                                   guint context_length, const gint32 *tokens,
                                   gsize n_tokens, RunnelPromptFit *ret_fit,
                                   gint32 **ret_tokens, gsize *ret_n_tokens,
                                   GError **error);

/**
 * RUNNEL_MAX_STOPS:
 *
 * The largest number of stop strings.
 *
 * Since: 0.1
 */
#define RUNNEL_MAX_STOPS 16

/**
 * RUNNEL_MAX_TOP_LOGPROBS:
 *
 * The largest number of alternatives reported for a token.
 *
 * Since: 0.1
 */
#define RUNNEL_MAX_TOP_LOGPROBS 64

/**
 * RunnelAcceptance:
 * @RUNNEL_ACCEPTANCE_EQUALITY: a guess is kept if it is the token that would
 *   have been drawn: the reply is the same with and without drafters
 * @RUNNEL_ACCEPTANCE_REJECTION: by rejection sampling: the reply has the same
 *   distribution, but is another one, and with adaptive drafts another one
 *   each time
 *
 * When a drafter's guess is kept.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_ACCEPTANCE_EQUALITY,
  RUNNEL_ACCEPTANCE_REJECTION,
} RunnelAcceptance;

#define RUNNEL_TYPE_ACCEPTANCE (runnel_acceptance_get_type ())
RUNNEL_API GType runnel_acceptance_get_type (void);

/**
 * RunnelDraftChoice:
 * @RUNNEL_DRAFT_CHOICE_FIRST: the first that has a guess, in the order in
 *   which they were attached
 * @RUNNEL_DRAFT_CHOICE_LONGEST: the longest guess; by rejection sampling it
 *   means the same as first
 *
 * Which of several drafters is listened to.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_DRAFT_CHOICE_FIRST,
  RUNNEL_DRAFT_CHOICE_LONGEST,
} RunnelDraftChoice;

#define RUNNEL_TYPE_DRAFT_CHOICE (runnel_draft_choice_get_type ())
RUNNEL_API GType runnel_draft_choice_get_type (void);

#define RUNNEL_TYPE_GENERATION_PARAMS (runnel_generation_params_get_type ())

/**
 * RunnelGenerationParams:
 * @max_tokens: at most this many; -1: until a stop or the context's end
 * @sampler: how tokens are drawn
 * @stops: (nullable) (array zero-terminated=1): stop strings: valid UTF-8, up
 *   to 16, none empty, none longer than 4096 bytes
 * @stop_tokens: (nullable) (array length=n_stop_tokens): besides the model's
 * @n_stop_tokens: entries of @stop_tokens
 * @ignore_eos: do not end at the model's stop tokens
 * @logprobs: report the log-probability of each token; costs a pass over the
 *   vocabulary
 * @n_top_logprobs: top alternatives to report for each token, up to 64; more
 *   than 0 implies @logprobs
 * @overflow_policy: what happens when the context is full
 * @n_keep: tokens at the beginning that a shift keeps
 * @prompt_length: how many tokens of the sequence count as prompt; -1: all
 * @acceptance: when a drafter's guess is kept
 * @draft_choice: which of the sequence's drafters is listened to
 * @max_draft: guesses to verify at once, up to %RUNNEL_MAX_DRAFT; 0: none
 * @adaptive_drafts: verify as many as pay on this machine and text, and none
 *   where drafting is slower
 *
 * How a reply is made. The pointers are owned.
 *
 * Since: 0.1
 */
typedef struct {
  gint max_tokens;
  RunnelSamplerParams *sampler;
  char **stops;
  gint32 *stop_tokens;
  gsize n_stop_tokens;
  gboolean ignore_eos;
  gboolean logprobs;
  guint n_top_logprobs;
  RunnelOverflowPolicy overflow_policy;
  guint n_keep;
  gint prompt_length;
  RunnelAcceptance acceptance;
  RunnelDraftChoice draft_choice;
  guint max_draft;
  gboolean adaptive_drafts;
} RunnelGenerationParams;

RUNNEL_API GType runnel_generation_params_get_type (void);
RUNNEL_API RunnelGenerationParams *runnel_generation_params_new (void);
RUNNEL_API RunnelGenerationParams *
runnel_generation_params_copy (const RunnelGenerationParams *self);
RUNNEL_API void runnel_generation_params_free (RunnelGenerationParams *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelGenerationParams, runnel_generation_params_free)
RUNNEL_API void
runnel_generation_params_set_sampler (RunnelGenerationParams *self,
                                      const RunnelSamplerParams *sampler);
RUNNEL_API void
runnel_generation_params_set_stops (RunnelGenerationParams *self,
                                    const char *const *stops);
RUNNEL_API void
runnel_generation_params_set_stop_tokens (RunnelGenerationParams *self,
                                          const gint32 *tokens,
                                          gsize n_tokens);
RUNNEL_API gboolean
runnel_generation_params_check (const RunnelGenerationParams *self,
                                guint n_vocab, GError **error);

#define RUNNEL_TYPE_GENERATION (runnel_generation_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelGeneration, runnel_generation, RUNNEL, GENERATION, GObject)

/**
 * RunnelGenerationStep:
 * @tokens: (array length=n_tokens): tokens released by this step, borrowed
 *   until the next one; those whose text a stop string holds back come later
 * @n_tokens: entries of @tokens; may be 0
 * @logprobs: (nullable) (array length=n_tokens): natural logarithm of each
 *   token's probability; %NULL when they were not asked for
 * @top: (nullable) (array): n_tokens × n_top_logprobs alternatives, best first
 * @text: the reply's text released by this step, valid UTF-8, borrowed until
 *   the next one
 * @text_length: bytes of @text
 * @text_end: bytes of the reply's text released so far; a token may be
 *   released whose last bytes are not
 * @finished: whether the reply has ended
 *
 * What came out of one step.
 *
 * Since: 0.1
 */
typedef struct {
  const gint32 *tokens;
  gsize n_tokens;
  const float *logprobs;
  const RunnelTokenLogprob *top;
  const char *text;
  gsize text_length;
  guint64 text_end;
  gboolean finished;
} RunnelGenerationStep;

/**
 * RunnelDraftStats:
 * @passes: forward passes of the reply
 * @blocks: those of them that verified guesses
 * @proposed: guesses verified
 * @accepted: guesses kept; by @blocks: the mean accepted length
 * @draft_time: ns in drafters
 * @verify_time: ns in passes that verified guesses
 *
 * What drafting did for a reply.
 *
 * Since: 0.1
 */
typedef struct {
  guint passes;
  guint blocks;
  guint proposed;
  guint accepted;
  guint64 draft_time;
  guint64 verify_time;
} RunnelDraftStats;

RUNNEL_API RunnelGeneration *
runnel_generation_new (RunnelSequence *sequence,
                       const RunnelGenerationParams *params, GError **error);
RUNNEL_API gboolean runnel_generation_next (RunnelGeneration *self,
                                            RunnelGenerationStep *ret_step,
                                            GError **error);
RUNNEL_API void runnel_generation_cancel (RunnelGeneration *self);
RUNNEL_API RunnelFinishReason
runnel_generation_get_finish_reason (RunnelGeneration *self);
RUNNEL_API guint runnel_generation_get_n_prompt_tokens (RunnelGeneration *self);
RUNNEL_API guint runnel_generation_get_n_tokens (RunnelGeneration *self);
RUNNEL_API void
runnel_generation_get_draft_stats (RunnelGeneration *self,
                                   RunnelDraftStats *ret_stats);
RUNNEL_API RunnelSequence *runnel_generation_get_sequence (RunnelGeneration *self);

G_END_DECLS
