/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "tokenizer.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_CHAT_TEMPLATE (runnel_chat_template_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelChatTemplate, runnel_chat_template, RUNNEL,
                      CHAT_TEMPLATE, GObject)

/**
 * RunnelChatTemplate:
 *
 * A parsed Jinja chat template, rendered as the transformers library sets
 * Jinja2 up (sandbox, trim_blocks, lstrip_blocks, loop controls, its own
 * tojson, raise_exception, strftime_now, generation blocks). Immutable and
 * safe to use from several threads.
 *
 * Templates are untrusted: they reach no file and no object outside of their
 * variables, and depth, memory, text and work of a render are limited, with
 * room that grows with the size of template and variables.
 *
 * Since: 0.1
 */

#define RUNNEL_TYPE_RENDERED_TEXT (runnel_rendered_text_get_type ())

/**
 * RunnelRenderedText:
 *
 * The text a chat template gave, with the byte ranges that came from the
 * template itself rather than from data. Only there may a tokenizer see
 * control tokens. Immutable; a copy is a reference.
 *
 * Since: 0.1
 */
typedef struct _RunnelRenderedText RunnelRenderedText;
RUNNEL_API GType runnel_rendered_text_get_type (void);
RUNNEL_API RunnelRenderedText *
runnel_rendered_text_copy (const RunnelRenderedText *self);
RUNNEL_API void runnel_rendered_text_free (RunnelRenderedText *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelRenderedText, runnel_rendered_text_free)
RUNNEL_API const char *
runnel_rendered_text_get_text (const RunnelRenderedText *self, gsize *length);
RUNNEL_API const RunnelTextSpan *
runnel_rendered_text_get_spans (const RunnelRenderedText *self,
                                gsize *n_spans);

RUNNEL_API RunnelChatTemplate *runnel_chat_template_new (const char *source,
                                                         gssize length,
                                                         const char *name,
                                                         GError **error);
RUNNEL_API RunnelRenderedText *
runnel_chat_template_render (RunnelChatTemplate *self, const char *variables,
                             gssize length, GDateTime *now, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
