/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "generation.h"

#include <string.h>

#include "../error.h"

GType
runnel_overflow_policy_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_OVERFLOW_POLICY_ERROR, "RUNNEL_OVERFLOW_POLICY_ERROR", "error" },
    { RUNNEL_OVERFLOW_POLICY_TRUNCATE, "RUNNEL_OVERFLOW_POLICY_TRUNCATE",
      "truncate" },
    { RUNNEL_OVERFLOW_POLICY_SHIFT, "RUNNEL_OVERFLOW_POLICY_SHIFT", "shift" },
    { RUNNEL_OVERFLOW_POLICY_STOP, "RUNNEL_OVERFLOW_POLICY_STOP", "stop" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (
      &type, g_enum_register_static ("RunnelOverflowPolicy", values));
  return type;
}

GType
runnel_prompt_fit_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_PROMPT_FIT_WHOLE, "RUNNEL_PROMPT_FIT_WHOLE", "whole" },
    { RUNNEL_PROMPT_FIT_CUT, "RUNNEL_PROMPT_FIT_CUT", "cut" },
    { RUNNEL_PROMPT_FIT_NOTHING, "RUNNEL_PROMPT_FIT_NOTHING", "nothing" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       g_enum_register_static ("RunnelPromptFit", values));
  return type;
}

/**
 * runnel_overflow_policy_fit_prompt:
 * @policy: a policy
 * @n_keep: tokens at the beginning that a cut keeps
 * @context_length: tokens that fit
 * @tokens: (array length=n_tokens): the prompt
 * @n_tokens: its length
 * @ret_fit: (out): what goes in
 * @ret_tokens: (out) (transfer full) (nullable) (array length=ret_n_tokens):
 *   the tokens that go in instead of the prompt, or %NULL when it was not cut
 * @ret_n_tokens: (out): how many
 * @error: return location
 *
 * The one place that applies a policy to a prompt. A prompt that fits goes in
 * whole. Of one that does not, truncate and shift keep the first @n_keep
 * tokens and the end, and leave at least a quarter of the context for the
 * reply. What they drop is whole quarters, so that a conversation that grows
 * turn by turn keeps its beginning for several turns, and the prefix cache
 * finds it: only every few turns have to read everything again.
 *
 * Returns: %TRUE, or %FALSE with %RUNNEL_ERROR_CONTEXT_OVERFLOW, whose message
 *   has n_prompt and n_ctx, or %RUNNEL_ERROR_INVALID_ARGUMENT when @n_keep
 *   does not leave room for anything else
 *
 * Since: 0.1
 */
gboolean
runnel_overflow_policy_fit_prompt (RunnelOverflowPolicy policy, guint n_keep,
                                   guint context_length, const gint32 *tokens,
                                   gsize n_tokens, RunnelPromptFit *ret_fit,
                                   gint32 **ret_tokens, gsize *ret_n_tokens,
                                   GError **error)
{
  const guint room = context_length - (context_length + 3) / 4;
  gsize n_cut, n_dropped, step;
  gint32 *cut;

  g_return_val_if_fail (tokens != NULL || n_tokens == 0, FALSE);
  g_return_val_if_fail (ret_fit && ret_tokens && ret_n_tokens, FALSE);
  if (n_tokens <= context_length || policy == RUNNEL_OVERFLOW_POLICY_STOP) {
    *ret_fit = n_tokens <= context_length ? RUNNEL_PROMPT_FIT_WHOLE
                                          : RUNNEL_PROMPT_FIT_NOTHING;
    *ret_tokens = NULL;
    *ret_n_tokens = 0;
    return TRUE;
  }
  if (policy == RUNNEL_OVERFLOW_POLICY_ERROR) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CONTEXT_OVERFLOW,
                 "prompt: n_prompt is %" G_GSIZE_FORMAT
                 " tokens, n_ctx is %u; shorten the prompt, raise the context "
                 "length, or choose another overflow policy",
                 n_tokens, context_length);
    return FALSE;
  }
  if (room == 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "prompt: n_ctx is %u, which leaves no room for a part of the "
                 "prompt; raise the context length to 2 or more",
                 context_length);
    return FALSE;
  }
  if (n_keep >= room) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                 "prompt: n_keep is %u, it must be below %u, three quarters "
                 "of the context of %u tokens",
                 n_keep, room, context_length);
    return FALSE;
  }
  step = MIN (MAX (context_length / 4, 1), room - n_keep);
  n_dropped = (n_tokens - room + step - 1) / step * step;
  n_cut = n_tokens - n_dropped;
  cut = g_new (gint32, n_cut);
  memcpy (cut, tokens, n_keep * sizeof *cut);
  memcpy (cut + n_keep, tokens + n_keep + n_dropped,
      (n_cut - n_keep) * sizeof *cut);
  *ret_fit = RUNNEL_PROMPT_FIT_CUT;
  *ret_tokens = cut;
  *ret_n_tokens = n_cut;
  return TRUE;
}
