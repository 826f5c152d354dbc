/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "vocab-check.h"

void
gst_lm_vocab_check_set (GstLmVocabCheck *self, const gchar *vocab)
{
  if (g_strcmp0 (vocab, self->vocab) == 0)
    return;
  gst_lm_vocab_check_clear (self);
  self->vocab = g_strdup (vocab);
}

gboolean
gst_lm_vocab_check (GstLmVocabCheck *self, GstElement *element,
                    RunnelTokenizer *tokenizer)
{
  const gchar *ours = runnel_tokenizer_get_digest (tokenizer);

  if (self->vocab == NULL || g_str_equal (ours, self->vocab))
    return TRUE;
  if (!self->refused)
    GST_ELEMENT_ERROR (element, STREAM, FORMAT,
                       ("%s is of vocabulary %s, but the tokens that come are "
                        "of vocabulary %s: use models of one vocabulary.",
                        GST_OBJECT_NAME (element), ours, self->vocab),
                       (NULL));
  self->refused = TRUE;
  return FALSE;
}

void
gst_lm_vocab_check_clear (GstLmVocabCheck *self)
{
  g_clear_pointer (&self->vocab, g_free);
  self->refused = FALSE;
}
