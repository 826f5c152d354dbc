/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "sampler.h"

#include <math.h>
#include <string.h>

#include "../error.h"
#include "candidates.h"
#include "elementary.h"
#include "sampler-private.h"
#include "token-history.h"

/**
 * RunnelSampler:
 *
 * Draws tokens by Gumbel-max: the arg max over the kept candidates of
 * logit / temperature + noise (seed, position, token). The noise does not
 * depend on how many tokens were drawn before, so that the same position of
 * the same sequence gives the same token however it was reached. Not safe to
 * use from two threads at once.
 *
 * Since: 0.1
 */
struct _RunnelSampler {
  GObject parent;
  RunnelSamplerParams *params;
  guint n_vocab;
  gboolean greedy;
  double min_p_floor;          /* ln min_p; -inf when it is off */
  gsize n_reply;               /* tokens that rewind may take back */
  RunnelTokenHistory *history; /* NULL when no penalty needs it */
  guint64 *keys;               /* [n_vocab] scratch */
  float *raw;                  /* [n_vocab] logits before bias and penalties,
                                  NULL when there are none */
  double *weights;             /* [n_vocab] scratch of draws against a guess;
                                  NULL before the first */
};

/* The softmax of the raw logits, for logprobs. */
typedef struct {
  float max;
  double log_sum; /* of e^(logit - max) */
} Softmax;

G_DEFINE_FINAL_TYPE (RunnelSampler, runnel_sampler, G_TYPE_OBJECT)

/* Bindings can make an object without its constructor: nothing is in it. */
#define IS_MADE(self) (RUNNEL_IS_SAMPLER (self) && (self)->params != NULL)

static gboolean
has_penalties (const RunnelSamplerParams *params)
{
  return params->repetition_penalty != 1.0 || params->presence_penalty != 0.0 ||
         params->frequency_penalty != 0.0;
}

static RunnelSampler *
sampler_new (const RunnelSamplerParams *params, guint n_vocab)
{
  RunnelSampler *self = g_object_new (RUNNEL_TYPE_SAMPLER, NULL);

  self->params = runnel_sampler_params_copy (params);
  self->n_vocab = n_vocab;
  /* Cuts that leave one token leave the one that greedy takes. */
  self->greedy = params->temperature < RUNNEL_SAMPLER_MIN_TEMPERATURE ||
                 params->top_k == 1 || params->top_p == 0.0;
  self->min_p_floor = elementary_log (params->min_p);
  self->keys = g_new (guint64, n_vocab);
  if (has_penalties (params) || params->n_biases > 0)
    self->raw = g_new (float, n_vocab);
  return self;
}

/**
 * runnel_sampler_new:
 * @params: the parameters, copied
 * @n_vocab: number of logits
 * @error: return location
 *
 * Makes a sampler with an empty history.
 *
 * Returns: (transfer full): a new sampler, or %NULL with
 *   %RUNNEL_ERROR_INVALID_ARGUMENT when a parameter is out of its range
 *
 * Since: 0.1
 */
RunnelSampler *
runnel_sampler_new (const RunnelSamplerParams *params, guint n_vocab,
                    GError **error)
{
  RunnelSampler *self;

  g_return_val_if_fail (params != NULL, NULL);
  if (n_vocab == 0 || n_vocab > G_MAXINT32) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "sampler: n_vocab is %u, it must be from 1 to %d", n_vocab,
                 G_MAXINT32);
    return NULL;
  }
  if (!runnel_sampler_params_check (params, n_vocab, error))
    return NULL;
  self = sampler_new (params, n_vocab);
  if (has_penalties (params))
    self->history = runnel_token_history_new (n_vocab, params->penalty_window);
  return self;
}

/**
 * runnel_sampler_fork:
 * @self: a sampler
 *
 * Makes a sampler with the same parameters and history, which from then on
 * goes its own way.
 *
 * Returns: (transfer full): a new sampler
 *
 * Since: 0.1
 */
RunnelSampler *
runnel_sampler_fork (RunnelSampler *self)
{
  RunnelSampler *fork;

  g_return_val_if_fail (IS_MADE (self), NULL);
  fork = sampler_new (self->params, self->n_vocab);
  fork->n_reply = self->n_reply;
  if (self->history)
    fork->history = runnel_token_history_copy (self->history);
  return fork;
}

/**
 * runnel_sampler_accept_prompt:
 * @self: a sampler
 * @tokens: (array length=n): token ids
 * @n: how many
 *
 * Tells the sampler of tokens that stand before the next draw and are not part
 * of the reply: the repetition penalty counts them, the others do not. What
 * was accepted before counts as prompt from then on, too.
 *
 * Since: 0.1
 */
void
runnel_sampler_accept_prompt (RunnelSampler *self, const gint32 *tokens,
                              gsize n)
{
  g_return_if_fail (IS_MADE (self));
  g_return_if_fail (tokens != NULL || n == 0);
  self->n_reply = 0;
  if (self->history == NULL)
    return;
  runnel_token_history_end_reply (self->history);
  for (gsize i = 0; i < n; i++)
    runnel_token_history_append (self->history, tokens[i]);
  runnel_token_history_end_reply (self->history);
}

/**
 * runnel_sampler_accept:
 * @self: a sampler
 * @token: a token id
 *
 * Tells the sampler that the reply goes on with @token.
 *
 * Since: 0.1
 */
void
runnel_sampler_accept (RunnelSampler *self, gint32 token)
{
  g_return_if_fail (IS_MADE (self));
  self->n_reply++;
  if (self->history)
    runnel_token_history_append (self->history, token);
}

/**
 * runnel_sampler_rewind:
 * @self: a sampler
 * @n: how many tokens, at most as many as the reply has
 *
 * Takes back the last @n accepted tokens of the reply.
 *
 * Since: 0.1
 */
void
runnel_sampler_rewind (RunnelSampler *self, gsize n)
{
  g_return_if_fail (IS_MADE (self));
  g_return_if_fail (n <= self->n_reply);
  self->n_reply -= n;
  if (self->history)
    for (gsize i = 0; i < n; i++)
      runnel_token_history_pop (self->history);
}

static float
logprob (const Softmax *softmax, float logit)
{
  /* Written so that two infinities are equal, and not NaN apart. */
  const double distance =
    logit == softmax->max ? 0.0 : (double) logit - softmax->max;

  return (float) (distance - softmax->log_sum);
}

/* The n_top best by the raw logits; where fewer have a probability above 0,
 * the rest is token -1. */
static void
report_top (RunnelSampler *self, const float *logits, const Softmax *softmax,
            RunnelTokenLogprob *top, gsize n_top)
{
  const gsize n = runnel_candidates_top_k (
    logits, self->n_vocab, MIN (n_top, self->n_vocab), self->keys);

  for (gsize i = 0; i < n_top; i++) {
    if (i < n) {
      top[i].token = (gint32) runnel_candidate_token (self->keys[i]);
      top[i].logprob =
        logprob (softmax, runnel_candidate_logit (self->keys[i]));
    } else {
      top[i].token = -1;
      top[i].logprob = -INFINITY;
    }
  }
}

static void
adjust (RunnelSampler *self, float *logits)
{
  const RunnelSamplerParams *p = self->params;

  for (gsize i = 0; i < p->n_biases; i++)
    logits[p->biases[i].token] += p->biases[i].bias;
  if (self->history)
    runnel_token_history_penalise (self->history, p->repetition_penalty,
                                   p->presence_penalty, p->frequency_penalty,
                                   logits);
}

static void
apply_mask (float *logits, guint n_vocab, const guint32 *mask)
{
  for (guint i = 0; i < n_vocab; i += 32) {
    const guint32 word = mask[i / 32];

    if (word == G_MAXUINT32)
      continue;
    for (guint j = 0; j < 32 && j < n_vocab - i; j++)
      if (!(word >> j & 1))
        logits[i + j] = -INFINITY;
  }
}

/* Whether every candidate above the floor of min-p is kept. Infinite logits
 * leave the cuts nothing to measure: the draw is among them. */
static gboolean
keeps_all (RunnelSampler *self, float max)
{
  const RunnelSamplerParams *p = self->params;

  return max == INFINITY ||
         ((p->top_k == 0 || p->top_k >= self->n_vocab) && p->top_p >= 1.0);
}

/* What top-k, top-p and min-p keep, into keys; returns how many. Not where
 * all are kept. */
static gsize
cut (RunnelSampler *self, const float *logits, float max)
{
  const RunnelSamplerParams *p = self->params;
  gsize n;

  if (p->top_k > 0 && p->top_k < self->n_vocab) {
    n = runnel_candidates_top_k (logits, self->n_vocab, p->top_k, self->keys);
    if (p->top_p < 1.0)
      n = runnel_candidates_top_p (self->keys, n, p->top_p);
  } else {
    n = runnel_logits_top_p (logits, self->n_vocab, max, p->top_p, self->keys);
  }
  return runnel_candidates_above (self->keys, n, max, self->min_p_floor);
}

static guint32
choose (RunnelSampler *self, const float *logits, float max, guint32 best,
        guint64 position)
{
  const RunnelSamplerParams *p = self->params;
  const RunnelGumbelDraw draw = { p->seed, position, p->temperature };

  if (self->greedy)
    return best;
  if (keeps_all (self, max))
    return runnel_logits_draw (logits, self->n_vocab, max, best,
                               max == INFINITY ? 0.0 : self->min_p_floor,
                               &draw);
  return runnel_candidates_draw (self->keys, cut (self, logits, max), max,
                                 &draw);
}

/* Candidates with a logit above -inf and not below the floor, by id. */
static gsize
keep_all (RunnelSampler *self, const float *logits, float max)
{
  gsize n = 0;

  for (guint i = 0; i < self->n_vocab; i++)
    if (logits[i] > -INFINITY &&
        (logits[i] == max ||
         (max < INFINITY &&
          (double) logits[i] - max >= self->min_p_floor)))
      self->keys[n++] = runnel_candidate_key (logits[i], i);
  return n;
}

static guint32
choose_against (RunnelSampler *self, const float *logits, float max,
                guint32 best, guint64 position, const RunnelGuess *guess)
{
  const RunnelSamplerParams *p = self->params;
  const RunnelGumbelDraw draw = { p->seed, position, p->temperature };
  gsize n;

  if (self->greedy)
    return best;
  if (self->weights == NULL)
    self->weights = g_new (double, self->n_vocab);
  n = keeps_all (self, max) ? keep_all (self, logits, max)
                            : cut (self, logits, max);
  return runnel_rejection_draw (self->keys, n, max, guess, &draw,
                                self->weights);
}

/* Nothing can be chosen: is it the model's fault or that of the mask and the
 * biases? */
static void
set_nothing_left (float raw_max, guint64 position, GError **error)
{
  if (raw_max > -INFINITY)
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NO_VALID_TOKEN,
                 "sampler: mask and biases leave no token to choose at "
                 "position %" G_GUINT64_FORMAT,
                 position);
  else
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_BAD_LOGITS,
                 "sampler: every logit at position %" G_GUINT64_FORMAT
                 " is NaN or -inf",
                 position);
}

/* Whatever draws have in common; @guess: NULL for a plain one. */
static gboolean
draw (RunnelSampler *self, float *logits, guint64 position,
      const guint32 *mask, const RunnelGuess *guess, gint32 *ret_token,
      float *ret_logprob, RunnelTokenLogprob *top, gsize n_top, GError **error)
{
  Softmax softmax = { 0 };
  gsize best = 0;
  float max, raw_max;

  max = raw_max = runnel_logits_max (logits, self->n_vocab, &best);
  if (raw_max == -INFINITY) {
    set_nothing_left (raw_max, position, error);
    return FALSE;
  }
  if (ret_logprob || n_top > 0) {
    softmax.max = raw_max;
    softmax.log_sum = elementary_log (
      runnel_logits_sum_exp (logits, self->n_vocab, raw_max));
    report_top (self, logits, &softmax, top, n_top);
  }
  if (self->raw) {
    if (ret_logprob || n_top > 0)
      memcpy (self->raw, logits, self->n_vocab * sizeof *logits);
    adjust (self, logits);
  }
  if (mask)
    apply_mask (logits, self->n_vocab, mask);
  if (mask || self->raw)
    max = runnel_logits_max (logits, self->n_vocab, &best);
  if (max == -INFINITY) {
    set_nothing_left (raw_max, position, error);
    return FALSE;
  }
  *ret_token = (gint32) (
    guess ? choose_against (self, logits, max, (guint32) best, position, guess)
          : choose (self, logits, max, (guint32) best, position));
  if (ret_logprob)
    *ret_logprob =
      logprob (&softmax, (self->raw ? self->raw : logits)[*ret_token]);
  return TRUE;
}

gboolean
runnel_sampler_draw_against (RunnelSampler *self, float *logits,
                             guint64 position, const guint32 *mask,
                             const RunnelGuess *guess, gint32 *ret_token,
                             float *ret_logprob, RunnelTokenLogprob *top,
                             gsize n_top, GError **error)
{
  return draw (self, logits, position, mask, guess, ret_token, ret_logprob,
               top, n_top, error);
}

double
runnel_sampler_get_temperature (RunnelSampler *self)
{
  return self->greedy ? 0.0 : self->params->temperature;
}

/**
 * runnel_sampler_draw: (skip)
 * @self: a sampler
 * @logits: [n_vocab]: the logits, overwritten
 * @position: index of the token to draw in its sequence
 * @mask: (nullable): a bit per token, the lowest of a word first: the tokens
 *   that may be drawn
 * @ret_token: (out): the token
 * @ret_logprob: (out) (optional): its logprob
 * @top: (nullable): room for the @n_top best logprobs, the best first, by the
 *   raw logits; where fewer tokens have a probability above 0, the rest has
 *   token -1; changed on failure, too
 * @n_top: entries of @top
 * @error: return location
 *
 * Draws a token; accept is the caller's to call. NaN and -inf are never
 * chosen. Logprobs, and the sums behind them, cost a pass over the vocabulary
 * and are computed only when asked for. Takes no memory and no lock. (Not for
 * bindings, which cannot say how long the arrays are.)
 *
 * Returns: %TRUE, or %FALSE with %RUNNEL_ERROR_BAD_LOGITS when no logit is
 *   above -inf, or %RUNNEL_ERROR_NO_VALID_TOKEN when mask and biases leave
 *   none
 *
 * Since: 0.1
 */
gboolean
runnel_sampler_draw (RunnelSampler *self, float *logits, guint64 position,
                     const guint32 *mask, gint32 *ret_token,
                     float *ret_logprob, RunnelTokenLogprob *top, gsize n_top,
                     GError **error)
{
  g_return_val_if_fail (IS_MADE (self), FALSE);
  g_return_val_if_fail (logits != NULL && ret_token != NULL, FALSE);
  g_return_val_if_fail (top != NULL || n_top == 0, FALSE);

  return draw (self, logits, position, mask, NULL, ret_token, ret_logprob, top,
               n_top, error);
}

static void
runnel_sampler_finalize (GObject *object)
{
  RunnelSampler *self = RUNNEL_SAMPLER (object);

  runnel_sampler_params_free (self->params);
  g_clear_pointer (&self->history, runnel_token_history_free);
  g_free (self->keys);
  g_free (self->raw);
  g_free (self->weights);
  G_OBJECT_CLASS (runnel_sampler_parent_class)->finalize (object);
}

static void
runnel_sampler_class_init (RunnelSamplerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_sampler_finalize;
}

static void
runnel_sampler_init (RunnelSampler *self)
{
}
