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
 *
 * Makes one token more or less likely.
 *
 * Since: 0.1
 */
typedef struct {
  gint32 token;
  float bias;
} RunnelLogitBias;

#define RUNNEL_TYPE_SAMPLER_PARAMS (runnel_sampler_params_get_type ())

/**
 * RUNNEL_SAMPLER_MAX_TEMPERATURE:
 *
 * The largest temperature; everything is equally likely long before.
 *
 * Since: 0.1
 */
#define RUNNEL_SAMPLER_MAX_TEMPERATURE 1e30

/**
 * RUNNEL_SAMPLER_MIN_TEMPERATURE:
 *
 * Below this a temperature means the same as 0.
 *
 * Since: 0.1
 */
#define RUNNEL_SAMPLER_MIN_TEMPERATURE 1e-6

/**
 * RUNNEL_SAMPLER_MAX_PENALTY:
 *
 * The largest absolute value of a penalty.
 *
 * Since: 0.1
 */
#define RUNNEL_SAMPLER_MAX_PENALTY 100.0

/**
 * RunnelSamplerParams:
 * @temperature: 0 (or anything below 1e-6) is greedy: the most likely token,
 *   the lowest id on ties; up to 1e30
 * @top_k: keep this many of the best; 0, or more than there are, is off
 * @top_p: keep the smallest set of the best whose probability reaches this;
 *   1 is off; 0 keeps one
 * @min_p: drop what is less probable than this times the best; 0 is off; 1
 *   keeps the best and its equals
 * @repetition_penalty: divides positive and multiplies negative logits of
 *   tokens in prompt or reply; above 0, up to 100; 1 is off
 * @presence_penalty: subtracted once from tokens in the reply; -100 to 100
 * @frequency_penalty: subtracted for each occurrence in the reply; -100 to 100
 * @penalty_window: how many of the last tokens the penalties look at; 0: all
 * @seed: of the noise
 * @n_biases: entries of @biases
 * @biases: (array length=n_biases) (nullable): added before everything else
 *
 * How a token is chosen. The order is: biases, penalties, mask, top-k, top-p
 * (on the probabilities of what top-k kept), min-p, temperature, draw. The
 * cuts look at temperature 1, which is what users of llama.cpp are used to: a
 * high temperature then never lets in what the cuts keep out.
 *
 * Since: 0.1
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
RUNNEL_API void
runnel_sampler_params_set_biases (RunnelSamplerParams *self,
                                  const RunnelLogitBias *biases,
                                  gsize n_biases);
RUNNEL_API gboolean runnel_sampler_params_check (const RunnelSamplerParams *self,
                                                 guint n_vocab, GError **error);

#define RUNNEL_TYPE_SAMPLER (runnel_sampler_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelSampler, runnel_sampler, RUNNEL, SAMPLER, GObject)

/**
 * RunnelTokenLogprob:
 * @token: the id
 * @logprob: natural logarithm of its probability over the full vocabulary, at
 *   temperature 1, before biases, penalties and cuts
 *
 * How likely the model itself finds a token.
 *
 * Since: 0.1
 */
typedef struct {
  gint32 token;
  float logprob;
} RunnelTokenLogprob;

RUNNEL_API RunnelSampler *runnel_sampler_new (const RunnelSamplerParams *params,
                                              guint n_vocab, GError **error);
RUNNEL_API RunnelSampler *runnel_sampler_fork (RunnelSampler *self);
RUNNEL_API void runnel_sampler_accept_prompt (RunnelSampler *self,
                                              const gint32 *tokens, gsize n);
RUNNEL_API void runnel_sampler_accept (RunnelSampler *self, gint32 token);
RUNNEL_API void runnel_sampler_rewind (RunnelSampler *self, gsize n);
RUNNEL_API gboolean runnel_sampler_draw (RunnelSampler *self, float *logits,
                                         guint64 position, const guint32 *mask,
                                         gint32 *ret_token, float *ret_logprob,
                                         RunnelTokenLogprob *top, gsize n_top,
                                         GError **error);

G_END_DECLS
