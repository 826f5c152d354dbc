/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "chat-template.h"

#include "../error.h"
#include "jinja-evaluate.h"
#include "jinja-json.h"
#include "jinja-parser.h"
#include "jinja-text.h"

struct _RunnelRenderedText {
  gatomicrefcount references;
  char *text;
  gsize length;
  RunnelTextSpan *spans;
  gsize n_spans;
};

struct _RunnelChatTemplate {
  GObject parent_instance;

  char *name;
  JinjaArena arena; /* holds the parsed template */
  JinjaTemplate *parsed;
};

G_DEFINE_BOXED_TYPE (RunnelRenderedText, runnel_rendered_text,
                     runnel_rendered_text_copy, runnel_rendered_text_free)
G_DEFINE_FINAL_TYPE (RunnelChatTemplate, runnel_chat_template, G_TYPE_OBJECT)

/* Bindings can make an object without its constructor: nothing is in it. */
#define IS_MADE(self) (RUNNEL_IS_CHAT_TEMPLATE (self) && (self)->parsed != NULL)

/**
 * runnel_rendered_text_copy:
 * @self: a rendered text
 *
 * Takes a reference: the text cannot change.
 *
 * Returns: (transfer full): another reference to @self
 *
 * Since: 0.1
 */
RunnelRenderedText *
runnel_rendered_text_copy (const RunnelRenderedText *self)
{
  RunnelRenderedText *shared = (RunnelRenderedText *) self;

  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&shared->references);
  return shared;
}

/**
 * runnel_rendered_text_free:
 * @self: (transfer full) (nullable): a rendered text
 *
 * Releases a reference.
 *
 * Since: 0.1
 */
void
runnel_rendered_text_free (RunnelRenderedText *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->references))
    return;
  g_free (self->text);
  g_free (self->spans);
  g_free (self);
}

/**
 * runnel_rendered_text_get_text:
 * @self: a rendered text
 * @length: (out) (optional): bytes; the text may hold NUL
 *
 * What the template gave.
 *
 * Returns: (transfer none): the text, in UTF-8, with a NUL behind its end
 *
 * Since: 0.1
 */
const char *
runnel_rendered_text_get_text (const RunnelRenderedText *self, gsize *length)
{
  g_return_val_if_fail (self != NULL, NULL);
  if (length != NULL)
    *length = self->length;
  return self->text;
}

/**
 * runnel_rendered_text_get_spans:
 * @self: a rendered text
 * @n_spans: (out) (optional): how many
 *
 * Where the text came from the template itself, and so may hold control tokens.
 *
 * Returns: (transfer none) (array length=n_spans): the byte ranges that are
 *   text of the template: in order, apart from each other, none empty
 *
 * Since: 0.1
 */
const RunnelTextSpan *
runnel_rendered_text_get_spans (const RunnelRenderedText *self, gsize *n_spans)
{
  g_return_val_if_fail (self != NULL, NULL);
  if (n_spans != NULL)
    *n_spans = self->n_spans;
  return self->spans;
}

static RunnelRenderedText *
rendered_text_new (const JinjaText *text)
{
  RunnelRenderedText *self = g_new0 (RunnelRenderedText, 1);

  g_atomic_ref_count_init (&self->references);
  self->length = text->used;
  self->text = g_malloc (self->length + 1);
  memcpy (self->text, text->bytes, self->length);
  self->text[self->length] = '\0';
  self->spans = g_new (RunnelTextSpan, text->n_stretches + 1);
  for (guint32 i = 0; i < text->n_stretches; i++)
    {
      gsize start = text->stretches[i].start;
      gsize end = i + 1 < text->n_stretches ? text->stretches[i + 1].start
                                            : text->used;

      if (text->stretches[i].origin == JINJA_TEMPLATE)
        self->spans[self->n_spans++] =
            (RunnelTextSpan) { .start = start, .length = end - start };
    }
  return self;
}

static void
runnel_chat_template_finalize (GObject *object)
{
  RunnelChatTemplate *self = RUNNEL_CHAT_TEMPLATE (object);

  jinja_arena_clear (&self->arena);
  g_free (self->name);
  G_OBJECT_CLASS (runnel_chat_template_parent_class)->finalize (object);
}

static void
runnel_chat_template_class_init (RunnelChatTemplateClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = runnel_chat_template_finalize;
}

static void
runnel_chat_template_init (RunnelChatTemplate *self)
{
}

/* The frames that errors return to. Nothing in them is changed between setjmp
 * and the error, so nothing needs to be volatile. */
static JinjaTemplate *
parse_or_fail (JinjaRun *run, const char *source, gsize length)
{
  if (setjmp (run->escape) != 0)
    return NULL;
  return jinja_parse (run, source, length);
}

static JinjaText *
render_or_fail (JinjaRun *run, const RunnelJsonNode *variables)
{
  JinjaText *text;

  if (setjmp (run->escape) != 0)
    return NULL;
  run->line = 1;
  run->variables = jinja_from_json (run, variables).dict;
  run->root = jinja_scope_new (run, NULL);
  text = jinja_text_new (run, 256);
  jinja_scope_enter (run, run->root, &run->source->body);
  jinja_execute (run, run->root, &run->source->body, text);
  return text;
}

/**
 * runnel_chat_template_new:
 * @source: the template, in UTF-8
 * @length: bytes of @source, or -1 when a NUL ends it
 * @name: what errors call the template: a model, a file
 * @error: return location for a #RunnelError
 *
 * Parses a template. One that cannot be parsed is an error of the kind
 * %RUNNEL_ERROR_TEMPLATE, "NAME, line N: reason"; no other template is ever
 * used in its place.
 *
 * Returns: (transfer full) (nullable): the template, or %NULL on error
 *
 * Since: 0.1
 */
RunnelChatTemplate *
runnel_chat_template_new (const char *source, gssize length, const char *name,
                          GError **error)
{
  g_autoptr (RunnelChatTemplate) self = NULL;
  JinjaRun run;

  g_return_val_if_fail (source != NULL, NULL);
  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (length < 0)
    length = (gssize) strlen (source);
  if (!g_utf8_validate_len (source, (gsize) length, NULL))
    {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_TEMPLATE,
                   "%s: the template is not valid UTF-8 text", name);
      return NULL;
    }
  self = g_object_new (RUNNEL_TYPE_CHAT_TEMPLATE, NULL);
  self->name = g_strdup (name);
  jinja_run_init (&run, &self->arena, self->name, (gsize) length);
  self->parsed = parse_or_fail (&run, source, (gsize) length);
  if (self->parsed == NULL)
    {
      g_propagate_error (error, run.error);
      return NULL;
    }
  return g_steal_pointer (&self);
}

/**
 * runnel_chat_template_render:
 * @self: a chat template
 * @variables: a JSON object: messages, tools, documents,
 *   add_generation_prompt, bos_token, eos_token, enable_thinking and whatever
 *   else the template shall see, exactly as it sees them
 * @length: bytes of @variables, or -1 when a NUL ends it
 * @now: (nullable): the time that strftime_now tells; %NULL is the local time
 * @error: return location for a #RunnelError
 *
 * Renders the template. Literal text and constants of the template are template
 * text, and so are the strings of @variables whose names end in _token; all
 * else is data, whatever is done with it on the way.
 *
 * What the template refuses by raise_exception is an error of the kind
 * %RUNNEL_ERROR_TEMPLATE whose message is exactly the text that was raised.
 * Every other failure of the template, the limits included, is one of the same
 * kind that begins with "NAME, line N: ". Variables that are no JSON have the
 * error of the JSON reader, other JSON than an object is
 * %RUNNEL_ERROR_INVALID_ARGUMENT.
 *
 * Returns: (transfer full) (nullable): the text, or %NULL on error
 *
 * Since: 0.1
 */
RunnelRenderedText *
runnel_chat_template_render (RunnelChatTemplate *self, const char *variables,
                             gssize length, GDateTime *now, GError **error)
{
  g_autoptr (RunnelJson) json = NULL;
  g_autoptr (GDateTime) local = NULL;
  RunnelRenderedText *rendered = NULL;
  JinjaArena arena = { 0 };
  JinjaText *text;
  JinjaRun run;

  g_return_val_if_fail (IS_MADE (self), NULL);
  g_return_val_if_fail (variables != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (length < 0)
    length = (gssize) strlen (variables);
  json = runnel_json_parse (variables, (gsize) length, "template variables",
                            error);
  if (json == NULL)
    return NULL;
  if (runnel_json_node_kind (runnel_json_root (json)) != RUNNEL_JSON_OBJECT)
    {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                   "%s: the variables of a template must be a JSON object",
                   self->name);
      return NULL;
    }
  local = now != NULL ? g_date_time_ref (now) : g_date_time_new_now_local ();
  jinja_run_init (&run, &arena, self->name,
                  self->parsed->size + (gsize) length);
  run.source = self->parsed;
  run.now = local;
  text = render_or_fail (&run, runnel_json_root (json));
  if (text != NULL)
    rendered = rendered_text_new (text);
  else
    g_propagate_error (error, run.error);
  jinja_arena_clear (&arena);
  return rendered;
}
