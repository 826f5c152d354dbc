/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "static-options.h"

/* The token that begins every text of the model, or −1. */
static gint32
get_bos (RunnelEngine *engine)
{
  RunnelTokenizer *tokenizer
      = runnel_model_get_tokenizer (runnel_engine_get_model (engine), NULL);

  return tokenizer && runnel_tokenizer_get_add_bos (tokenizer) ?
      runnel_tokenizer_get_bos (tokenizer) : -1;
}

void
runnel_static_options_free (RunnelStaticOptions *self)
{
  if (self == NULL)
    return;
  g_clear_object (&self->sequence);
  g_free (self->hidden);
  g_free (self);
}

RunnelStaticOptions *
runnel_static_options_new (RunnelOptionRows *rows, guint context_length,
                           const RunnelTokenRun *before,
                           const RunnelTokenRun *options, guint n,
                           const RunnelTokenRun *closes, GError **error)
{
  g_autoptr (RunnelStaticOptions) self = g_new0 (RunnelStaticOptions, 1);
  g_autoptr (RunnelSequence) base
      = runnel_sequence_new (rows->engine, context_length, error);
  gsize n_embd
      = runnel_model_get_n_embd (runnel_engine_get_model (rows->engine));
  gint32 bos = get_bos (rows->engine);

  if (base == NULL
      || !runnel_option_rows_append (rows, base, &bos, bos >= 0, error)
      || !runnel_option_rows_append (rows, base, before->tokens, before->n,
             error))
    return NULL;
  self->hidden = g_new (float, n * n_embd);
  self->sequence = runnel_option_rows_join (rows, base, options, n,
      self->hidden, error);
  return self->sequence != NULL
      && runnel_option_rows_append (rows, self->sequence, closes->tokens,
             closes->n, error) ? g_steal_pointer (&self) : NULL;
}

RunnelSequence *
runnel_static_options_read (const RunnelStaticOptions *self,
                            RunnelOptionRows *rows, RunnelSequence *state,
                            GError **error)
{
  g_autoptr (RunnelSequence) sequence = runnel_sequence_fork (self->sequence);
  gsize n;
  const gint32 *tokens = runnel_sequence_get_tokens (state, &n);
  /* The text began before the options. */
  guint skip = n > 0 && tokens[0] == get_bos (rows->engine);

  return runnel_option_rows_append (rows, sequence, tokens + skip, n - skip,
      error) ? g_steal_pointer (&sequence) : NULL;
}
