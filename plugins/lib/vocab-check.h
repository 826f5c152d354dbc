/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Whether the tokens of a stream mean to an element what they meant to who
 * made them.
 */
#pragma once

#include <gst/gst.h>
#include <runnel.h>

G_BEGIN_DECLS

typedef struct {
  gchar *vocab;     /* nullable: that of the tokens, by their caps */
  gboolean refused; /* and a message has said so */
} GstLmVocabCheck;

/* Of the caps that hold from now on. */
void gst_lm_vocab_check_set (GstLmVocabCheck *self, const gchar *vocab);
/* FALSE, with an error message the first time, when they are not
 * @tokenizer's: refused caps are sent again before every buffer. */
gboolean gst_lm_vocab_check (GstLmVocabCheck *self, GstElement *element,
                             RunnelTokenizer *tokenizer);
void gst_lm_vocab_check_clear (GstLmVocabCheck *self);

G_END_DECLS
