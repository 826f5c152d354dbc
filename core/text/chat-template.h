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
G_DECLARE_FINAL_TYPE (RunnelChatTemplate, runnel_chat_template, RUNNEL, CHAT_TEMPLATE, GObject)

/**
 * RunnelChatTemplate:
 *
 * A parsed Jinja chat template, rendered as the transformers library sets
 * Jinja2 up (sandbox, trim_blocks, lstrip_blocks, loop controls, its own
 * tojson, raise_exception, strftime_now, generation blocks). Immutable and
 * safe to use from several threads.
 */

#define RUNNEL_TYPE_RENDERED_TEXT (runnel_rendered_text_get_type ())

/**
 * RunnelRenderedText:
 *
 * The text a chat template gave, with the byte ranges that came from the
 * template itself rather than from data. Only there may a tokenizer see
 * control tokens.
 */
typedef struct _RunnelRenderedText RunnelRenderedText;
RUNNEL_API GType runnel_rendered_text_get_type (void);
RUNNEL_API RunnelRenderedText *runnel_rendered_text_copy (const RunnelRenderedText *self);
RUNNEL_API void runnel_rendered_text_free (RunnelRenderedText *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelRenderedText, runnel_rendered_text_free)
RUNNEL_API const char *runnel_rendered_text_get_text (const RunnelRenderedText *self,
                                                      gsize *length);
RUNNEL_API const RunnelTextSpan *
runnel_rendered_text_get_spans (const RunnelRenderedText *self, gsize *n_spans);

/* @name is what errors call it. A template that cannot be parsed is an error
 * with line and reason; no other template is used in its place. */
RUNNEL_API RunnelChatTemplate *runnel_chat_template_new (const char *source,
                                                         gssize length,
                                                         const char *name,
                                                         GError **error);
/* @variables: a JSON object with messages, tools, documents,
 * add_generation_prompt, bos_token, eos_token, enable_thinking, ... exactly
 * as the template sees them. @now: for strftime_now; NULL is the local time.
 * Strings of @variables named bos_token and eos_token and friends count as
 * template text; all other strings are data. */
RUNNEL_API RunnelRenderedText *
runnel_chat_template_render (RunnelChatTemplate *self, const char *variables,
                             gssize length, GDateTime *now, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
