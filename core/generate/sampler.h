/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "../api.h"

G_BEGIN_DECLS

/**
 * RunnelLogitBias:
 * @token: the token id
 * @bias: added to its logit; -inf bans it
 */
typedef struct {
  gint32 token;
  float bias;
} RunnelLogitBias;

#define RUNNEL_TYPE_SAMPLER_PARAMS (runnel_sampler_params_get_type ())

/**
 * RunnelSamplerParams:
 * @temperature: 0 is greedy
 * @top_k: keep this many of the best; 0 is off
 * @top_p: keep the smallest set of the best whose probability reaches this;
 *   1 is off; 0 keeps one
 * @min_p: drop what is less probable than this times the best; 0 is off
 * @repetition_penalty: divides positive and multiplies negative logits of
 *   tokens in prompt or reply; 1 is off
 * @presence_penalty: subtracted once from tokens in the reply
 * @frequency_penalty: subtracted for each occurrence in the reply
 * @penalty_window: how many of the last tokens the penalties look at; 0: all
 * @seed: of the noise
 * @n_biases: entries of @biases
 * @biases: (array length=n_biases): added before everything else
 */
typedef struct {
  double temperature;
  guint top_k;
  double top_p;
  double min_p;
  double repetition_penalty;
  double presence_penalty;
  double frequency_penalty;
  guint penalty_window;
  guint64 seed;
  gsize n_biases;
  RunnelLogitBias *biases;
} RunnelSamplerParams;

RUNNEL_API GType runnel_sampler_params_get_type (void);
RUNNEL_API RunnelSamplerParams *runnel_sampler_params_new (void);
RUNNEL_API RunnelSamplerParams *
runnel_sampler_params_copy (const RunnelSamplerParams *self);
RUNNEL_API void runnel_sampler_params_free (RunnelSamplerParams *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelSamplerParams, runnel_sampler_params_free)
/* The one place that knows the ranges. */
RUNNEL_API gboolean runnel_sampler_params_check (const RunnelSamplerParams *self,
                                                 guint n_vocab, GError **error);

#define RUNNEL_TYPE_SAMPLER (runnel_sampler_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelSampler, runnel_sampler, RUNNEL, SAMPLER, GObject)

/**
 * RunnelTokenLogprob:
 * @token: the id
 * @logprob: natural logarithm of its probability over the full vocabulary, at
 *   temperature 1, before penalties and cuts
 */
typedef struct {
  gint32 token;
  float logprob;
} RunnelTokenLogprob;

/* Draws tokens by Gumbel-max: the arg max over the kept candidates of
 * logit / temperature + noise (seed, position, token). Not safe to use from
 * two threads at once. */
RUNNEL_API RunnelSampler *runnel_sampler_new (const RunnelSamplerParams *params,
                                              guint n_vocab, GError **error);
/* Tells the sampler of tokens that stand before the next draw. */
RUNNEL_API void runnel_sampler_accept_prompt (RunnelSampler *self,
                                              const gint32 *tokens, gsize n);
RUNNEL_API void runnel_sampler_accept (RunnelSampler *self, gint32 token);
/* Takes back the last @n accepted reply tokens. */
RUNNEL_API void runnel_sampler_rewind (RunnelSampler *self, gsize n);
/* @logits: [n_vocab], overwritten (they are the scratch). @position: index of
 * the token to draw in its sequence. @mask: a bit per token that may be drawn,
 * or NULL. @top: room for @n_top best logprobs, or NULL. No allocation. */
RUNNEL_API gboolean runnel_sampler_draw (RunnelSampler *self, float *logits,
                                         guint64 position, const guint32 *mask,
                                         gint32 *ret_token, float *ret_logprob,
                                         RunnelTokenLogprob *top, gsize n_top,
                                         GError **error);

G_END_DECLS
