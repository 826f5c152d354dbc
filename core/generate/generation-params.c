/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "generation.h"

#include "../error.h"
#include "../model/drafter.h"
#include "stop-matcher.h"

G_STATIC_ASSERT (RUNNEL_MAX_STOPS == RUNNEL_STOP_MATCHER_MAX_STOPS);

G_DEFINE_BOXED_TYPE (RunnelGenerationParams, runnel_generation_params,
                     runnel_generation_params_copy,
                     runnel_generation_params_free)

GType
runnel_acceptance_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_ACCEPTANCE_EQUALITY, "RUNNEL_ACCEPTANCE_EQUALITY", "equality" },
    { RUNNEL_ACCEPTANCE_REJECTION, "RUNNEL_ACCEPTANCE_REJECTION",
      "rejection" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       g_enum_register_static ("RunnelAcceptance", values));
  return type;
}

GType
runnel_draft_choice_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_DRAFT_CHOICE_FIRST, "RUNNEL_DRAFT_CHOICE_FIRST", "first" },
    { RUNNEL_DRAFT_CHOICE_LONGEST, "RUNNEL_DRAFT_CHOICE_LONGEST", "longest" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       g_enum_register_static ("RunnelDraftChoice", values));
  return type;
}

/**
 * runnel_generation_params_new:
 *
 * The defaults: no limit of tokens but the context, the default sampler, the
 * model's stop tokens, overflow policy error, the whole sequence is prompt,
 * adaptive drafts of any length, accepted by equality.
 *
 * Returns: (transfer full): new parameters
 *
 * Since: 0.1
 */
RunnelGenerationParams *
runnel_generation_params_new (void)
{
  RunnelGenerationParams *self = g_new0 (RunnelGenerationParams, 1);

  self->max_tokens = -1;
  self->prompt_length = -1;
  self->max_draft = RUNNEL_MAX_DRAFT;
  self->adaptive_drafts = TRUE;
  self->sampler = runnel_sampler_params_new ();
  return self;
}

/**
 * runnel_generation_params_copy:
 * @self: parameters
 *
 * Copies the parameters with all that they own.
 *
 * Returns: (transfer full): a copy
 *
 * Since: 0.1
 */
RunnelGenerationParams *
runnel_generation_params_copy (const RunnelGenerationParams *self)
{
  RunnelGenerationParams *copy;

  g_return_val_if_fail (self != NULL, NULL);
  copy = g_new (RunnelGenerationParams, 1);
  *copy = *self;
  copy->sampler = runnel_sampler_params_copy (self->sampler);
  copy->stops = g_strdupv (self->stops);
  copy->stop_tokens = g_memdup2 (
    self->stop_tokens, self->n_stop_tokens * sizeof *self->stop_tokens);
  return copy;
}

/**
 * runnel_generation_params_free:
 * @self: (transfer full) (nullable): parameters
 *
 * Frees the parameters with all that they own.
 *
 * Since: 0.1
 */
void
runnel_generation_params_free (RunnelGenerationParams *self)
{
  if (self == NULL)
    return;
  runnel_sampler_params_free (self->sampler);
  g_strfreev (self->stops);
  g_free (self->stop_tokens);
  g_free (self);
}

/**
 * runnel_generation_params_set_sampler:
 * @self: parameters
 * @sampler: copied
 *
 * Says how tokens are drawn.
 *
 * Since: 0.1
 */
void
runnel_generation_params_set_sampler (RunnelGenerationParams *self,
                                      const RunnelSamplerParams *sampler)
{
  RunnelSamplerParams *copy;

  g_return_if_fail (self != NULL && sampler != NULL);
  copy = runnel_sampler_params_copy (sampler);
  runnel_sampler_params_free (self->sampler);
  self->sampler = copy;
}

/**
 * runnel_generation_params_set_stops:
 * @self: parameters
 * @stops: (array zero-terminated=1) (nullable): stop strings; copied
 *
 * Says which strings end a reply.
 *
 * Since: 0.1
 */
void
runnel_generation_params_set_stops (RunnelGenerationParams *self,
                                    const char *const *stops)
{
  char **copy;

  g_return_if_fail (self != NULL);
  copy = g_strdupv ((char **) stops);
  g_strfreev (self->stops);
  self->stops = copy;
}

/**
 * runnel_generation_params_set_stop_tokens:
 * @self: parameters
 * @tokens: (array length=n_tokens) (nullable): ids; copied
 * @n_tokens: entries of @tokens
 *
 * Says which tokens end a reply, besides the model's own.
 *
 * Since: 0.1
 */
void
runnel_generation_params_set_stop_tokens (RunnelGenerationParams *self,
                                          const gint32 *tokens,
                                          gsize n_tokens)
{
  gint32 *copy;

  g_return_if_fail (self != NULL && (tokens != NULL || n_tokens == 0));
  copy = g_memdup2 (tokens, n_tokens * sizeof *tokens);
  g_free (self->stop_tokens);
  self->stop_tokens = copy;
  self->n_stop_tokens = n_tokens;
}

static gboolean
check_stops (const RunnelGenerationParams *self, guint n_vocab, GError **error)
{
  if (!runnel_stop_matcher_check ((const char *const *) self->stops, error))
    return FALSE;
  for (guint i = 0; self->stops && self->stops[i]; i++)
    if (!g_utf8_validate (self->stops[i], -1, NULL)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                   "stop: stop string %u is not valid UTF-8", i);
      return FALSE;
    }
  for (gsize i = 0; i < self->n_stop_tokens; i++) {
    const gint32 token = self->stop_tokens[i];

    if (token < 0 || (n_vocab > 0 && (guint) token >= n_vocab)) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                   "generation: stop_tokens[%" G_GSIZE_FORMAT
                   "] is %d, it must be from 0 to %u",
                   i, token, n_vocab > 0 ? n_vocab - 1 : G_MAXINT32);
      return FALSE;
    }
  }
  return TRUE;
}

/**
 * runnel_generation_params_check:
 * @self: parameters
 * @n_vocab: size of the vocabulary, or 0 when it is not known yet
 * @error: return location
 *
 * Checks every field, those of the sampler too; the error names the field, its
 * value and the range.
 *
 * Returns: whether the parameters can be used; else
 *   %RUNNEL_ERROR_INVALID_ARGUMENT or %RUNNEL_ERROR_LIMIT
 *
 * Since: 0.1
 */
gboolean
runnel_generation_params_check (const RunnelGenerationParams *self,
                                guint n_vocab, GError **error)
{
  g_return_val_if_fail (self != NULL && self->sampler != NULL, FALSE);
  if (self->max_tokens < -1) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "generation: max_tokens is %d, it must be -1 (no limit) or "
                 "more",
                 self->max_tokens);
    return FALSE;
  }
  if (self->prompt_length < -1) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "generation: prompt_length is %d, it must be -1 (all) or more",
                 self->prompt_length);
    return FALSE;
  }
  if (self->n_top_logprobs > RUNNEL_MAX_TOP_LOGPROBS) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "generation: n_top_logprobs is %u, it must be from 0 to %d",
                 self->n_top_logprobs, RUNNEL_MAX_TOP_LOGPROBS);
    return FALSE;
  }
  if (self->max_draft > RUNNEL_MAX_DRAFT) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "generation: max_draft is %u, it must be from 0 to %d",
                 self->max_draft, RUNNEL_MAX_DRAFT);
    return FALSE;
  }
  return check_stops (self, n_vocab, error) &&
         runnel_sampler_params_check (self->sampler, n_vocab, error);
}
