/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "generation.h"

#include <string.h>

#include "../error.h"
#include "../model/batch.h"
#include "../text/detokenizer.h"
#include "generation-drafts.h"
#include "reply-stream.h"
#include "sampler-private.h"

/**
 * RunnelGeneration:
 *
 * The loop: draft, forward, sample, check stops. Registered with the engine's
 * scheduler from its first step until it ends, so that concurrent generations
 * run in lock-step. To be used by one thread at a time.
 *
 * A drawn token is forwarded by the step after it, so that the last token of a
 * reply costs nothing unless somebody asks for the sequence. Where a drafter
 * of the sequence guesses what follows it, the guesses are forwarded with it,
 * and the step goes on as long as what is drawn is what was guessed.
 *
 * Since: 0.1
 */
struct _RunnelGeneration {
  GObject parent;
  RunnelGenerationParams *params;
  RunnelSequence *sequence;
  RunnelTokenizer *tokenizer;
  RunnelDetokenizer *detokenizer;
  RunnelSampler *sampler;
  RunnelReplyStream *stream;
  RunnelParticipant *participant; /* from the first forward to the end */

  RunnelGenerationDrafts drafts;

  guint n_vocab;
  float *logits;  /* [max_rows][n_vocab] */
  guint max_rows; /* grows with the first guesses */
  guint32 *mask;  /* a bit per id that the tokenizer knows; NULL: all */
  GString *piece; /* scratch: text of one token */

  guint n_prompt;
  guint start;    /* length of the sequence before the first draw */
  guint n_tokens; /* drawn */
  gint32 pending; /* drawn and not forwarded; -1: none */
  guint n_ahead;  /* guesses forwarded and not drawn, at the sequence's end */
  gint cancelled; /* atomic: set by any thread */
  RunnelFinishReason reason;
};

G_DEFINE_FINAL_TYPE (RunnelGeneration, runnel_generation, G_TYPE_OBJECT)

/* Bindings can make an object without its constructor: nothing is in it. */
#define IS_MADE(self) (RUNNEL_IS_GENERATION (self) && (self)->stream != NULL)

GType
runnel_finish_reason_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_FINISH_REASON_NONE, "RUNNEL_FINISH_REASON_NONE", "none" },
    { RUNNEL_FINISH_REASON_STOP, "RUNNEL_FINISH_REASON_STOP", "stop" },
    { RUNNEL_FINISH_REASON_LENGTH, "RUNNEL_FINISH_REASON_LENGTH", "length" },
    { RUNNEL_FINISH_REASON_CANCELLED, "RUNNEL_FINISH_REASON_CANCELLED",
      "cancelled" },
    { RUNNEL_FINISH_REASON_ERROR, "RUNNEL_FINISH_REASON_ERROR", "error" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       g_enum_register_static ("RunnelFinishReason", values));
  return type;
}

/* Rows of the output matrix that pad the vocabulary have no text: they are
 * never drawn. */
static guint32 *
make_mask (guint n_vocab, guint n_known)
{
  guint32 *mask;

  if (n_known >= n_vocab)
    return NULL;
  mask = g_new0 (guint32, (n_vocab + 31) / 32);
  for (guint i = 0; i < n_known; i++)
    mask[i / 32] |= 1u << i % 32;
  return mask;
}

static gboolean
check_sequence (RunnelSequence *sequence, const RunnelGenerationParams *params,
                GError **error)
{
  const guint length = runnel_sequence_get_length (sequence);
  const guint context = runnel_sequence_get_context_length (sequence);
  const guint quarter = (context + 3) / 4;

  if (length == 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "generation: the sequence is empty, it needs at least one "
                 "token");
    return FALSE;
  }
  if (params->prompt_length > (gint64) length) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "generation: prompt_length is %d, the sequence has %u tokens",
                 params->prompt_length, length);
    return FALSE;
  }
  if (params->overflow_policy == RUNNEL_OVERFLOW_POLICY_SHIFT &&
      (quarter >= context || params->n_keep >= context - quarter)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "generation: n_keep is %u, it must be below %u, three "
                 "quarters of the context of %u tokens",
                 params->n_keep, context - quarter, context);
    return FALSE;
  }
  return TRUE;
}

static void
accept_history (RunnelGeneration *self)
{
  gsize n;
  const gint32 *tokens = runnel_sequence_get_tokens (self->sequence, &n);

  runnel_sampler_accept_prompt (self->sampler, tokens, self->n_prompt);
  for (gsize i = self->n_prompt; i < n; i++)
    runnel_sampler_accept (self->sampler, tokens[i]);
}

/**
 * runnel_generation_new:
 * @sequence: (transfer full): the prompt's state; consumed on failure, too
 * @params: the parameters, copied
 * @error: return location
 *
 * Makes a generation that goes on where the sequence ends. Its tokens feed the
 * penalties: the first prompt-length of them as prompt, the others as a reply
 * that had begun.
 *
 * Returns: (transfer full): a new generation, or %NULL with
 *   %RUNNEL_ERROR_INVALID_ARGUMENT or %RUNNEL_ERROR_LIMIT for a bad parameter,
 *   or what keeps the tokenizer from loading
 *
 * Since: 0.1
 */
RunnelGeneration *
runnel_generation_new (RunnelSequence *sequence,
                       const RunnelGenerationParams *params, GError **error)
{
  g_autoptr (RunnelGeneration) self = NULL;
  RunnelModel *model;

  g_return_val_if_fail (RUNNEL_IS_SEQUENCE (sequence), NULL);
  g_return_val_if_fail (params != NULL, NULL);
  self = g_object_new (RUNNEL_TYPE_GENERATION, NULL);
  self->sequence = sequence;
  model = runnel_engine_get_model (runnel_sequence_get_engine (sequence));
  self->n_vocab = runnel_model_get_n_vocab (model);
  if (!runnel_generation_params_check (params, self->n_vocab, error) ||
      !check_sequence (sequence, params, error))
    return NULL;
  self->params = runnel_generation_params_copy (params);
  self->tokenizer = runnel_model_get_tokenizer (model, error);
  if (self->tokenizer == NULL)
    return NULL;
  g_object_ref (self->tokenizer);
  self->detokenizer = runnel_detokenizer_new (self->tokenizer, FALSE);
  self->sampler = runnel_sampler_new (params->sampler, self->n_vocab, error);
  if (self->sampler == NULL)
    return NULL;
  self->stream = runnel_reply_stream_new (
    (const char *const *) params->stops,
    params->logprobs || params->n_top_logprobs > 0, params->n_top_logprobs,
    error);
  if (self->stream == NULL)
    return NULL;
  runnel_generation_drafts_init (&self->drafts, sequence, params);
  self->logits = g_new (float, self->n_vocab);
  self->max_rows = 1;
  self->mask = make_mask (self->n_vocab,
                          runnel_tokenizer_get_n_tokens (self->tokenizer));
  self->start = runnel_sequence_get_length (sequence);
  self->n_prompt =
    params->prompt_length < 0 ? self->start : (guint) params->prompt_length;
  accept_history (self);
  return g_steal_pointer (&self);
}

static void
leave (RunnelGeneration *self)
{
  if (self->participant)
    runnel_engine_leave (runnel_sequence_get_engine (self->sequence),
                         g_steal_pointer (&self->participant));
}

/* Takes the guesses that were not drawn back from the sequence. Truncating to
 * what is there needs no memory and cannot fail. */
static void
drop_guesses (RunnelGeneration *self)
{
  if (self->n_ahead == 0)
    return;
  runnel_sequence_truncate (
    self->sequence,
    runnel_sequence_get_length (self->sequence) - self->n_ahead, NULL);
  self->n_ahead = 0;
}

/* Takes what never came out back from the sequence. */
static void
drop_tail (RunnelGeneration *self)
{
  const gsize whole = runnel_reply_stream_get_n_whole (self->stream);
  const guint length = runnel_sequence_get_length (self->sequence);
  gsize drop = self->n_tokens - whole;

  if (drop > 0 && self->pending >= 0) {
    self->pending = -1;
    drop--;
  }
  /* A shift forgets the oldest tokens, never these, but for a context of a few
   * tokens. */
  if (drop > 0)
    runnel_sequence_truncate (self->sequence,
                              length - (guint) MIN (drop, length - 1), NULL);
}

/* Ends the reply, letting out what is held unless it stopped at a string. */
static void
finish (RunnelGeneration *self, RunnelFinishReason reason, gboolean stopped)
{
  leave (self);
  self->reason = reason;
  if (!stopped) {
    g_autofree char *rest = runnel_detokenizer_flush (self->detokenizer, TRUE);

    if (runnel_reply_stream_flush (self->stream, rest, strlen (rest)))
      self->reason = RUNNEL_FINISH_REASON_STOP;
  }
  drop_guesses (self);
  drop_tail (self);
  if (!runnel_sequence_get_shifted (self->sequence))
    runnel_engine_cache_sequence (runnel_sequence_get_engine (self->sequence),
                                  self->sequence);
}

/* Whether the limits allow another token. */
static gboolean
has_room (RunnelGeneration *self)
{
  const guint used = runnel_sequence_get_length (self->sequence) -
                     self->n_ahead + (self->pending >= 0);

  if (self->params->max_tokens >= 0 &&
      self->n_tokens >= (guint) self->params->max_tokens)
    return FALSE;
  return self->params->overflow_policy == RUNNEL_OVERFLOW_POLICY_SHIFT ||
         used < runnel_sequence_get_context_length (self->sequence);
}

/* Half of what is not kept, but at least a quarter of the context: a shift
 * rotates all keys that stay, so it should be rare. */
static gboolean
shift (RunnelGeneration *self, GError **error)
{
  const guint n_keep = self->params->n_keep;
  const guint length = runnel_sequence_get_length (self->sequence);
  const guint quarter =
    (runnel_sequence_get_context_length (self->sequence) + 3) / 4;

  return runnel_sequence_shift (self->sequence, n_keep,
                                MAX (quarter, (length - n_keep) / 2), error);
}

/* Forwards the pending token and @n_guesses behind it; the logits are those
 * after each of them. */
static gboolean
forward_rows (RunnelGeneration *self, guint n_guesses, gboolean want_logits,
              GError **error)
{
  RunnelEngine *engine = runnel_sequence_get_engine (self->sequence);
  gint32 tokens[1 + RUNNEL_MAX_DRAFT] = { self->pending };
  RunnelBatchItem item = {
    .sequence = self->sequence,
    .tokens = tokens,
    .n_tokens = 1 + n_guesses,
    .logits = want_logits ? self->logits : NULL,
    .n_logits = want_logits ? 1 + n_guesses : 0,
  };

  memcpy (tokens + 1, self->drafts.proposal.tokens,
          n_guesses * sizeof *tokens);
  if (!runnel_engine_forward (engine, &item, 1, self->participant, error))
    return FALSE;
  self->pending = -1;
  self->n_ahead = n_guesses;
  return TRUE;
}

/* Forwards the pending token, in a full context after a shift. */
static gboolean
forward_pending (RunnelGeneration *self, gboolean want_logits, GError **error)
{
  if (runnel_sequence_get_length (self->sequence) >=
        runnel_sequence_get_context_length (self->sequence) &&
      !shift (self, error))
    return FALSE;
  return forward_rows (self, 0, want_logits, error);
}

/* Guesses for which there is room, in the context and among the tokens that
 * are still wanted. */
static guint
get_guess_room (RunnelGeneration *self)
{
  const guint length = runnel_sequence_get_length (self->sequence);
  const guint context =
    runnel_sequence_get_context_length (self->sequence);
  guint room = RUNNEL_MAX_DRAFT;

  if (length + 1 >= context)
    return 0;
  room = MIN (room, context - length - 1);
  if (self->params->max_tokens >= 0)
    room = MIN (room,
                (guint) self->params->max_tokens - self->n_tokens - 1);
  return room;
}

/* How many guesses go with the pending token. */
static guint
propose (RunnelGeneration *self)
{
  const RunnelDraftRequest request = {
    .anchor = self->pending,
    .max_tokens = get_guess_room (self),
    .position = (guint64) self->start + self->n_tokens,
    .seed = self->params->sampler->seed,
    .temperature = runnel_sampler_get_temperature (self->sampler),
  };
  guint n;

  if (self->drafts.n_drafters == 0 || self->pending < 0)
    return 0;
  n = runnel_generation_drafts_propose (&self->drafts, self->sequence,
                                        &request);
  if (n + 1 > self->max_rows) {
    self->max_rows = n + 1;
    g_free (self->logits);
    self->logits = g_new (float, (gsize) self->max_rows * self->n_vocab);
  }
  return n;
}

/* Rows of guesses may fail where plain decoding would not, for want of memory
 * or for what a token does that is never drawn: then they go. */
static gboolean
compute_logits (RunnelGeneration *self, guint *n_guesses, GError **error)
{
  if (*n_guesses > 0 && forward_rows (self, *n_guesses, TRUE, NULL))
    return TRUE;
  *n_guesses = 0;
  if (self->pending >= 0)
    return forward_pending (self, TRUE, error);
  if (!runnel_sequence_compute_logits (self->sequence, self->logits,
                                       self->n_vocab, error))
    return FALSE;
  self->participant =
    runnel_engine_join (runnel_sequence_get_engine (self->sequence));
  return TRUE;
}

static gboolean
is_stop_token (RunnelGeneration *self, gint32 token)
{
  gsize n;
  const gint32 *stops;

  for (gsize i = 0; i < self->params->n_stop_tokens; i++)
    if (self->params->stop_tokens[i] == token)
      return TRUE;
  if (self->params->ignore_eos)
    return FALSE;
  stops = runnel_tokenizer_get_stop_tokens (self->tokenizer, &n);
  for (gsize i = 0; i < n; i++)
    if (stops[i] == token)
      return TRUE;
  return FALSE;
}

/* What was drawn for a token. */
typedef struct {
  gint32 token;
  float logprob;
  RunnelTokenLogprob top[RUNNEL_MAX_TOP_LOGPROBS];
} Draw;

/* Draws from row @i, for which there are guesses up to @n_guesses. */
static gboolean
draw (RunnelGeneration *self, guint i, guint n_guesses, Draw *drawn,
      GError **error)
{
  const guint n_top = self->params->n_top_logprobs;
  const gboolean logprobs = self->params->logprobs || n_top > 0;
  const guint64 position = (guint64) self->start + self->n_tokens;
  float *logits = self->logits + (gsize) i * self->n_vocab;
  float *logprob = logprobs ? &drawn->logprob : NULL;
  RunnelTokenLogprob *top = n_top > 0 ? drawn->top : NULL;

  if (i < n_guesses &&
      self->params->acceptance == RUNNEL_ACCEPTANCE_REJECTION) {
    const RunnelGuess guess =
      runnel_generation_drafts_get_guess (&self->drafts, i);

    return runnel_sampler_draw_against (self->sampler, logits, position,
                                        self->mask, &guess, &drawn->token,
                                        logprob, top, n_top, error);
  }
  return runnel_sampler_draw (self->sampler, logits, position, self->mask,
                              &drawn->token, logprob, top, n_top, error);
}

/* Hands a drawn token to the stream; it is in the sequence already if it was
 * guessed. */
static gboolean
take (RunnelGeneration *self, const Draw *drawn, gboolean guessed,
      GError **error)
{
  const gint32 token = drawn->token;

  if (is_stop_token (self, token)) {
    finish (self, RUNNEL_FINISH_REASON_STOP, FALSE);
    return TRUE;
  }
  g_string_truncate (self->piece, 0);
  if (!runnel_detokenizer_push_to (self->detokenizer, token, self->piece,
                                   error))
    return FALSE;
  runnel_sampler_accept (self->sampler, token);
  if (guessed)
    self->n_ahead--;
  else
    self->pending = token;
  self->n_tokens++;
  if (runnel_reply_stream_push (
        self->stream, token, drawn->logprob, drawn->top, self->piece->str,
        self->piece->len,
        runnel_detokenizer_get_incomplete (self->detokenizer)))
    finish (self, RUNNEL_FINISH_REASON_STOP, TRUE);
  else if (!has_room (self))
    finish (self, RUNNEL_FINISH_REASON_LENGTH, FALSE);
  return TRUE;
}

/* Draws row by row, as long as guesses are right and the reply goes on. */
static gboolean
draw_rows (RunnelGeneration *self, guint n_guesses, guint *ret_accepted,
           GError **error)
{
  guint i = 0;
  gboolean guessed;

  do {
    Draw drawn = { 0 };

    if (!draw (self, i, n_guesses, &drawn, error))
      return FALSE;
    guessed =
      i < n_guesses && drawn.token == self->drafts.proposal.tokens[i];
    if (!take (self, &drawn, guessed, error))
      return FALSE;
    if (guessed)
      i++;
    /* Also here, so that a cancelled reply ends within a token. */
    if (guessed && self->reason == RUNNEL_FINISH_REASON_NONE &&
        g_atomic_int_get (&self->cancelled))
      finish (self, RUNNEL_FINISH_REASON_CANCELLED, FALSE);
  } while (guessed && self->reason == RUNNEL_FINISH_REASON_NONE);
  drop_guesses (self);
  *ret_accepted = i;
  return TRUE;
}

static gboolean
step (RunnelGeneration *self, GError **error)
{
  const guint n_before = self->n_tokens;
  const gboolean forwards = self->pending >= 0;
  guint n_guesses = propose (self), n_accepted;
  const RunnelDraftTimer started = runnel_draft_timer_start ();

  if (!compute_logits (self, &n_guesses, error) ||
      !draw_rows (self, n_guesses, &n_accepted, error))
    return FALSE;
  if (forwards)
    runnel_generation_drafts_note_pass (&self->drafts, n_guesses, n_accepted,
                                        self->n_tokens - n_before, &started);
  return TRUE;
}

/**
 * runnel_generation_next:
 * @self: a generation
 * @ret_step: (out caller-allocates): what came out; its pointers live until
 *   the next call
 * @error: return location
 *
 * One token further, or several where a drafter guessed them. The last step,
 * whose `finished` is %TRUE, releases what was held back and may carry no
 * token; another call repeats it, empty.
 *
 * Returns: %TRUE, or %FALSE with @error and finish reason error when forward
 *   or sampler failed
 *
 * Since: 0.1
 */
gboolean
runnel_generation_next (RunnelGeneration *self, RunnelGenerationStep *ret_step,
                        GError **error)
{
  g_return_val_if_fail (IS_MADE (self), FALSE);
  g_return_val_if_fail (ret_step != NULL, FALSE);

  runnel_reply_stream_begin_step (self->stream);
  if (self->reason == RUNNEL_FINISH_REASON_NONE) {
    if (g_atomic_int_get (&self->cancelled)) {
      finish (self, RUNNEL_FINISH_REASON_CANCELLED, FALSE);
    } else if (!has_room (self)) {
      finish (self, RUNNEL_FINISH_REASON_LENGTH, FALSE);
    } else if (!step (self, error)) {
      drop_guesses (self);
      leave (self);
      self->reason = RUNNEL_FINISH_REASON_ERROR;
      return FALSE;
    }
  }
  runnel_reply_stream_get_step (self->stream, ret_step);
  ret_step->finished = self->reason != RUNNEL_FINISH_REASON_NONE;
  return TRUE;
}

/**
 * runnel_generation_cancel:
 * @self: a generation
 *
 * Makes the next step end the reply; what came stays. May be called from any
 * thread.
 *
 * Since: 0.1
 */
void
runnel_generation_cancel (RunnelGeneration *self)
{
  g_return_if_fail (IS_MADE (self));
  g_atomic_int_set (&self->cancelled, TRUE);
}

/**
 * runnel_generation_get_finish_reason:
 * @self: a generation
 *
 * Why the reply ended.
 *
 * Returns: the reason, none while it goes on
 *
 * Since: 0.1
 */
RunnelFinishReason
runnel_generation_get_finish_reason (RunnelGeneration *self)
{
  g_return_val_if_fail (IS_MADE (self),
                        RUNNEL_FINISH_REASON_ERROR);
  return self->reason;
}

/**
 * runnel_generation_get_n_prompt_tokens:
 * @self: a generation
 *
 * Tokens that the reply follows.
 *
 * Returns: a count
 *
 * Since: 0.1
 */
guint
runnel_generation_get_n_prompt_tokens (RunnelGeneration *self)
{
  g_return_val_if_fail (IS_MADE (self), 0);
  return self->n_prompt;
}

/**
 * runnel_generation_get_n_tokens:
 * @self: a generation
 *
 * All tokens drawn, those behind a stop string included, a stop token not.
 *
 * Returns: a count
 *
 * Since: 0.1
 */
guint
runnel_generation_get_n_tokens (RunnelGeneration *self)
{
  g_return_val_if_fail (IS_MADE (self), 0);
  return self->n_tokens;
}

/**
 * runnel_generation_get_draft_stats:
 * @self: a generation
 * @ret_stats: (out caller-allocates): the counters
 *
 * What drafting did so far. All is 0 when the sequence has no drafters.
 *
 * Since: 0.1
 */
void
runnel_generation_get_draft_stats (RunnelGeneration *self,
                                   RunnelDraftStats *ret_stats)
{
  g_return_if_fail (IS_MADE (self));
  g_return_if_fail (ret_stats != NULL);
  *ret_stats = self->drafts.stats;
}

/**
 * runnel_generation_get_sequence:
 * @self: a generation
 *
 * The sequence. After the end of the reply it holds prompt and reply: the
 * tokens whose text came out whole, and neither a stop token nor what a stop
 * string cut off. The last token is forwarded now, if it was not; should that
 * fail, the sequence ends before it. While the reply goes on, the token drawn
 * last is not yet in it.
 *
 * Returns: (transfer none): the sequence
 *
 * Since: 0.1
 */
RunnelSequence *
runnel_generation_get_sequence (RunnelGeneration *self)
{
  g_return_val_if_fail (IS_MADE (self), NULL);
  if (self->reason != RUNNEL_FINISH_REASON_NONE &&
      self->reason != RUNNEL_FINISH_REASON_ERROR && self->pending >= 0 &&
      !forward_pending (self, FALSE, NULL))
    self->pending = -1;
  return self->sequence;
}

static void
runnel_generation_finalize (GObject *object)
{
  RunnelGeneration *self = RUNNEL_GENERATION (object);

  leave (self);
  runnel_generation_drafts_clear (&self->drafts);
  runnel_generation_params_free (self->params);
  g_clear_object (&self->sequence);
  g_clear_object (&self->tokenizer);
  g_clear_object (&self->detokenizer);
  g_clear_object (&self->sampler);
  runnel_reply_stream_free (self->stream);
  g_free (self->logits);
  g_free (self->mask);
  g_string_free (self->piece, TRUE);
  G_OBJECT_CLASS (runnel_generation_parent_class)->finalize (object);
}

static void
runnel_generation_class_init (RunnelGenerationClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_generation_finalize;
}

static void
runnel_generation_init (RunnelGeneration *self)
{
  self->pending = -1;
  self->piece = g_string_new (NULL);
}
