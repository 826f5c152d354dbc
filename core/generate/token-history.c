/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "token-history.h"

#include <string.h>

RunnelTokenHistory *
runnel_token_history_new (guint n_vocab, gsize window)
{
  RunnelTokenHistory *self = g_new0 (RunnelTokenHistory, 1);

  self->n_vocab = n_vocab;
  self->window = window;
  self->tokens = g_array_new (FALSE, FALSE, sizeof (gint32));
  self->counts = g_new0 (RunnelTokenCount, n_vocab);
  self->distinct = g_new (gint32, n_vocab);
  return self;
}

RunnelTokenHistory *
runnel_token_history_copy (const RunnelTokenHistory *self)
{
  RunnelTokenHistory *copy = g_new (RunnelTokenHistory, 1);

  *copy = *self;
  copy->tokens = g_array_copy (self->tokens);
  copy->counts =
    g_memdup2 (self->counts, self->n_vocab * sizeof *self->counts);
  copy->distinct = g_new (gint32, self->n_vocab);
  memcpy (copy->distinct, self->distinct,
          self->n_distinct * sizeof *self->distinct);
  return copy;
}

void
runnel_token_history_free (RunnelTokenHistory *self)
{
  g_array_unref (self->tokens);
  g_free (self->counts);
  g_free (self->distinct);
  g_free (self);
}

static void
enter (RunnelTokenHistory *self, gsize index)
{
  const gint32 token = g_array_index (self->tokens, gint32, index);
  RunnelTokenCount *count;

  if (token < 0 || (guint) token >= self->n_vocab)
    return;
  count = &self->counts[token];
  if (count->in_window++ == 0) {
    count->slot = self->n_distinct;
    self->distinct[self->n_distinct++] = token;
  }
  if (index >= self->n_prompt)
    count->in_reply++;
}

static void
leave (RunnelTokenHistory *self, gsize index)
{
  const gint32 token = g_array_index (self->tokens, gint32, index);
  RunnelTokenCount *count;

  if (token < 0 || (guint) token >= self->n_vocab)
    return;
  count = &self->counts[token];
  if (index >= self->n_prompt)
    count->in_reply--;
  if (--count->in_window == 0) {
    const gint32 last = self->distinct[--self->n_distinct];

    self->distinct[count->slot] = last;
    self->counts[last].slot = count->slot;
  }
}

void
runnel_token_history_append (RunnelTokenHistory *self, gint32 token)
{
  g_array_append_val (self->tokens, token);
  enter (self, self->tokens->len - 1);
  if (self->window > 0 && self->tokens->len - self->start > self->window)
    leave (self, self->start++);
}

void
runnel_token_history_end_reply (RunnelTokenHistory *self)
{
  for (gsize i = MAX (self->start, self->n_prompt); i < self->tokens->len;
       i++) {
    const gint32 token = g_array_index (self->tokens, gint32, i);

    if (token >= 0 && (guint) token < self->n_vocab)
      self->counts[token].in_reply = 0;
  }
  self->n_prompt = self->tokens->len;
}

gboolean
runnel_token_history_pop (RunnelTokenHistory *self)
{
  if (self->tokens->len == self->n_prompt)
    return FALSE;
  leave (self, self->tokens->len - 1);
  g_array_set_size (self->tokens, self->tokens->len - 1);
  if (self->start > 0)
    enter (self, --self->start);
  return TRUE;
}

void
runnel_token_history_penalise (const RunnelTokenHistory *self,
                               double repetition, double presence,
                               double frequency, float *logits)
{
  for (guint32 i = 0; i < self->n_distinct; i++) {
    const gint32 token = self->distinct[i];
    const guint32 in_reply = self->counts[token].in_reply;
    double logit = logits[token];

    logit = logit > 0 ? logit / repetition : logit * repetition;
    if (in_reply > 0)
      logit -= presence + frequency * in_reply;
    logits[token] = (float) logit;
  }
}
