/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Placeholder until the interpreter lands: the templates room replaces this
 * whole file.
 */
#include "chat-template.h"

#include "../error.h"

struct _RunnelRenderedText { int unused; };
struct _RunnelChatTemplate { GObject parent_instance; };

G_DEFINE_BOXED_TYPE (RunnelRenderedText, runnel_rendered_text,
    runnel_rendered_text_copy, runnel_rendered_text_free)
G_DEFINE_FINAL_TYPE (RunnelChatTemplate, runnel_chat_template, G_TYPE_OBJECT)

static void
runnel_chat_template_init (RunnelChatTemplate *self)
{
}

static void
runnel_chat_template_class_init (RunnelChatTemplateClass *klass)
{
}

RunnelRenderedText *
runnel_rendered_text_copy (const RunnelRenderedText *self)
{
  return NULL;
}

void
runnel_rendered_text_free (RunnelRenderedText *self)
{
}

const char *
runnel_rendered_text_get_text (const RunnelRenderedText *self, gsize *length)
{
  return NULL;
}

const RunnelTextSpan *
runnel_rendered_text_get_spans (const RunnelRenderedText *self, gsize *n)
{
  return NULL;
}

RunnelChatTemplate *
runnel_chat_template_new (const char *source, gssize length, const char *name,
                          GError **error)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
      "chat templates have not landed yet");
  return NULL;
}

RunnelRenderedText *
runnel_chat_template_render (RunnelChatTemplate *self, const char *variables,
                             gssize length, GDateTime *now, GError **error)
{
  return NULL;
}
