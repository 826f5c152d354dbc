/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "sampler.h"

#include <math.h>

#include "../error.h"

G_DEFINE_BOXED_TYPE (RunnelSamplerParams, runnel_sampler_params,
                     runnel_sampler_params_copy, runnel_sampler_params_free)

/**
 * runnel_sampler_params_new:
 *
 * The defaults: temperature 0.8, top-k 40, top-p 0.95, min-p 0.05, no
 * penalties, no biases, seed 0.
 *
 * Returns: (transfer full): new parameters
 *
 * Since: 0.1
 */
RunnelSamplerParams *
runnel_sampler_params_new (void)
{
  RunnelSamplerParams *self = g_new0 (RunnelSamplerParams, 1);

  self->temperature = 0.8;
  self->top_k = 40;
  self->top_p = 0.95;
  self->min_p = 0.05;
  self->repetition_penalty = 1.0;
  return self;
}

/**
 * runnel_sampler_params_copy:
 * @self: parameters
 *
 * Copies the parameters with their biases.
 *
 * Returns: (transfer full): a copy
 *
 * Since: 0.1
 */
RunnelSamplerParams *
runnel_sampler_params_copy (const RunnelSamplerParams *self)
{
  RunnelSamplerParams *copy;

  g_return_val_if_fail (self != NULL, NULL);
  copy = g_new (RunnelSamplerParams, 1);
  *copy = *self;
  copy->biases =
    g_memdup2 (self->biases, self->n_biases * sizeof *self->biases);
  return copy;
}

/**
 * runnel_sampler_params_free:
 * @self: (transfer full) (nullable): parameters
 *
 * Frees the parameters with their biases.
 *
 * Since: 0.1
 */
void
runnel_sampler_params_free (RunnelSamplerParams *self)
{
  if (self == NULL)
    return;
  g_free (self->biases);
  g_free (self);
}

/**
 * runnel_sampler_params_set_biases:
 * @self: parameters
 * @biases: (array length=n_biases) (nullable): the biases, copied
 * @n_biases: how many
 *
 * Replaces the biases.
 *
 * Since: 0.1
 */
void
runnel_sampler_params_set_biases (RunnelSamplerParams *self,
                                  const RunnelLogitBias *biases,
                                  gsize n_biases)
{
  RunnelLogitBias *copy;

  g_return_if_fail (self != NULL);
  g_return_if_fail (biases != NULL || n_biases == 0);
  copy = g_memdup2 (biases, n_biases * sizeof *biases);
  g_free (self->biases);
  self->biases = copy;
  self->n_biases = n_biases;
}

/* The comparison is written so that NaN fails it. */
static gboolean
check_range (const char *field, double value, double low, double high,
             GError **error)
{
  if (value >= low && value <= high)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
               "sampler: %s is %g, it must be from %g to %g", field, value, low,
               high);
  return FALSE;
}

static gboolean
check_biases (const RunnelSamplerParams *self, guint n_vocab, GError **error)
{
  if (self->n_biases > 0 && self->biases == NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "sampler: n_biases is %" G_GSIZE_FORMAT
                 ", but there are no biases",
                 self->n_biases);
    return FALSE;
  }
  for (gsize i = 0; i < self->n_biases; i++) {
    const RunnelLogitBias *b = &self->biases[i];

    if (b->token < 0 || (n_vocab > 0 && (guint) b->token >= n_vocab)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                   "sampler: biases[%" G_GSIZE_FORMAT
                   "] is for token %d, it must be from 0 to %u",
                   i, b->token, n_vocab > 0 ? n_vocab - 1 : G_MAXINT32);
      return FALSE;
    }
    if (!(b->bias < INFINITY)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                   "sampler: biases[%" G_GSIZE_FORMAT
                   "] is %g, it must be a number or -inf",
                   i, b->bias);
      return FALSE;
    }
  }
  return TRUE;
}

/**
 * runnel_sampler_params_check:
 * @self: parameters
 * @n_vocab: size of the vocabulary, or 0 when it is not known yet
 * @error: return location
 *
 * Checks every field against its range; the error names the field, its value
 * and the range. This is the one place that knows the ranges.
 *
 * Returns: whether the parameters can be used; else
 *   %RUNNEL_ERROR_INVALID_ARGUMENT
 *
 * Since: 0.1
 */
gboolean
runnel_sampler_params_check (const RunnelSamplerParams *self, guint n_vocab,
                             GError **error)
{
  const double penalty = RUNNEL_SAMPLER_MAX_PENALTY;

  g_return_val_if_fail (self != NULL, FALSE);
  if (!(self->repetition_penalty > 0.0 &&
        self->repetition_penalty <= penalty)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "sampler: repetition_penalty is %g, it must be above 0 and "
                 "at most %g",
                 self->repetition_penalty, penalty);
    return FALSE;
  }
  return check_range ("temperature", self->temperature, 0.0,
                      RUNNEL_SAMPLER_MAX_TEMPERATURE, error) &&
         check_range ("top_p", self->top_p, 0.0, 1.0, error) &&
         check_range ("min_p", self->min_p, 0.0, 1.0, error) &&
         check_range ("presence_penalty", self->presence_penalty, -penalty,
                      penalty, error) &&
         check_range ("frequency_penalty", self->frequency_penalty, -penalty,
                      penalty, error) &&
         check_biases (self, n_vocab, error);
}
