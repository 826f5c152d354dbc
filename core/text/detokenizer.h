/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "tokenizer.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_DETOKENIZER (runnel_detokenizer_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelDetokenizer, runnel_detokenizer, RUNNEL, DETOKENIZER, GObject)

/**
 * RunnelDetokenizer:
 *
 * Token ids to text, token by token, whole UTF-8 characters only. Bytes that
 * cannot become valid UTF-8 give one U+FFFD per maximal ill-formed part
 * (Unicode 15, section 3.9, "substitution of maximal subparts"). Not safe to
 * use from two threads at once.
 *
 * Since: 0.1
 */
RUNNEL_API RunnelDetokenizer *runnel_detokenizer_new (RunnelTokenizer *tokenizer,
                                                      gboolean render_special);
RUNNEL_API char *runnel_detokenizer_push (RunnelDetokenizer *self,
                                          gint32 token, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
RUNNEL_API gboolean runnel_detokenizer_push_to (RunnelDetokenizer *self,
                                                gint32 token, GString *out,
                                                GError **error);
RUNNEL_API char *runnel_detokenizer_flush (RunnelDetokenizer *self,
                                           gboolean keep_incomplete)
    G_GNUC_WARN_UNUSED_RESULT;
RUNNEL_API gboolean
runnel_detokenizer_get_incomplete (RunnelDetokenizer *self);
RUNNEL_API void runnel_detokenizer_reset (RunnelDetokenizer *self);

G_END_DECLS
