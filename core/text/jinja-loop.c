/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-loop.h"

#include "jinja-text.h"

/* The next item that passes the test, which sees the target and the scope
 * around the loop. */
static gboolean
pull (JinjaRun *run, JinjaLoop *loop, JinjaValue *item)
{
  const JinjaStatement *statement = loop->statement;
  JinjaScope *scope = NULL;

  while (jinja_next (run, loop->iterator, item))
    {
      JinjaValue passes;

      if (statement->loop.test == NULL || loop->tested)
        return TRUE;
      if (scope == NULL || scope->captured)
        scope = jinja_scope_new (run, loop->scope);
      scope->n_bindings = 0;
      jinja_assign (run, scope, statement->loop.target, *item);
      passes = jinja_evaluate (run, scope, statement->loop.test);
      if (jinja_truth (run, &passes))
        return TRUE;
    }
  return FALSE;
}

static gboolean
advance (JinjaRun *run, JinjaLoop *loop)
{
  JinjaValue item = loop->after;

  loop->after = jinja_missing ();
  if (item.kind == JINJA_MISSING && !pull (run, loop, &item))
    return FALSE;
  loop->index0++;
  loop->before = loop->current;
  loop->current = item;
  return TRUE;
}

static void
peek (JinjaRun *run, JinjaLoop *loop)
{
  if (loop->after.kind == JINJA_MISSING
      && !pull (run, loop, &loop->after))
    loop->after = jinja_missing ();
}

static gint64
loop_length (JinjaRun *run, JinjaLoop *loop)
{
  JinjaValue rest;
  JinjaValue item;

  if (loop->length >= 0)
    return loop->length;
  if (loop->statement->loop.test == NULL
      && jinja_length (&loop->iterable, &loop->length))
    return loop->length;
  rest = jinja_list_new (run, JINJA_LIST, 0);
  while (pull (run, loop, &item))
    jinja_list_append (run, &rest, item);
  loop->iterator = jinja_iterate (run, &rest);
  loop->tested = TRUE;
  loop->length = rest.length + loop->index0 + 1
                 + (loop->after.kind != JINJA_MISSING);
  return loop->length;
}

JinjaFlow
jinja_run_loop (JinjaRun *run, JinjaScope *scope,
                const JinjaStatement *statement, JinjaValue iterable,
                gint64 depth0, JinjaText *out)
{
  JinjaLoop *loop = jinja_new (run, JinjaLoop);
  JinjaScope *inner = NULL;
  gboolean completed = FALSE;

  loop->statement = statement;
  loop->scope = scope;
  loop->iterable = iterable;
  loop->iterator = jinja_iterate (run, &iterable);
  loop->index0 = -1;
  loop->depth0 = depth0;
  loop->length = -1;
  while (advance (run, loop))
    {
      JinjaFlow flow;

      if (inner == NULL || inner->captured)
        inner = jinja_scope_new (run, scope);
      inner->n_bindings = 0;
      jinja_scope_enter (run, inner, &statement->loop.body);
      jinja_scope_set (run, inner, run->source->loop,
                       (JinjaValue) { .kind = JINJA_LOOP, .loop = loop });
      jinja_assign (run, inner, statement->loop.target, loop->current);
      flow = jinja_execute (run, inner, &statement->loop.body, out);
      if (flow == JINJA_FLOW_BREAK)
        break;
      completed |= flow == JINJA_FLOW_NEXT;
    }
  /* Jinja2 takes note of an iteration at the end of the body, so that one
   * that was left by break or continue does not count. */
  if (completed)
    return JINJA_FLOW_NEXT;
  inner = jinja_scope_new (run, scope);
  jinja_scope_enter (run, inner, &statement->loop.otherwise);
  return jinja_execute (run, inner, &statement->loop.otherwise, out);
}

JinjaValue
jinja_call_loop (JinjaRun *run, JinjaLoop *loop,
                 const JinjaArguments *arguments)
{
  JinjaText *out;

  if (!loop->statement->loop.recursive)
    jinja_raise (run, "the loop must have the 'recursive' marker to be called "
                      "recursively");
  if (arguments->n_values != 1 || arguments->n_keywords != 0)
    jinja_raise (run, "a loop is called with the items of the inner loop");
  out = jinja_text_new (run, 0);
  jinja_run_loop (run, loop->scope, loop->statement, arguments->values[0],
                  loop->depth0 + 1, out);
  return jinja_text_string (out);
}

static JinjaValue
loop_neighbour (JinjaRun *run, JinjaLoop *loop, gboolean next)
{
  if (!next)
    return loop->index0 == 0
               ? jinja_undefined_message (run, "there is no previous item")
               : loop->before;
  peek (run, loop);
  return loop->after.kind == JINJA_MISSING
             ? jinja_undefined_message (run, "there is no next item")
             : loop->after;
}

gboolean
jinja_find_loop_attribute (JinjaRun *run, JinjaLoop *loop,
                           const JinjaValue *name, JinjaValue *ret)
{
  if (jinja_string_is (name, "index"))
    *ret = jinja_integer (loop->index0 + 1);
  else if (jinja_string_is (name, "index0"))
    *ret = jinja_integer (loop->index0);
  else if (jinja_string_is (name, "first"))
    *ret = jinja_boolean (loop->index0 == 0);
  else if (jinja_string_is (name, "last"))
    {
      peek (run, loop);
      *ret = jinja_boolean (loop->after.kind == JINJA_MISSING);
    }
  else if (jinja_string_is (name, "length"))
    *ret = jinja_integer (loop_length (run, loop));
  else if (jinja_string_is (name, "revindex"))
    *ret = jinja_integer (loop_length (run, loop) - loop->index0);
  else if (jinja_string_is (name, "revindex0"))
    *ret = jinja_integer (loop_length (run, loop) - loop->index0 - 1);
  else if (jinja_string_is (name, "depth"))
    *ret = jinja_integer (loop->depth0 + 1);
  else if (jinja_string_is (name, "depth0"))
    *ret = jinja_integer (loop->depth0);
  else if (jinja_string_is (name, "previtem"))
    *ret = loop_neighbour (run, loop, FALSE);
  else if (jinja_string_is (name, "nextitem"))
    *ret = loop_neighbour (run, loop, TRUE);
  else
    return FALSE;
  return TRUE;
}

static JinjaValue
loop_cycle (JinjaRun *run, const JinjaValue *self,
            const JinjaArguments *arguments)
{
  if (arguments->n_values == 0)
    jinja_raise (run, "no items for cycling given");
  return arguments->values[self->loop->index0 % arguments->n_values];
}

static JinjaValue
loop_changed (JinjaRun *run, const JinjaValue *self,
              const JinjaArguments *arguments)
{
  JinjaLoop *loop = self->loop;
  JinjaValue value = jinja_list_new (run, JINJA_TUPLE, arguments->n_values);

  for (guint i = 0; i < arguments->n_values; i++)
    jinja_list_append (run, &value, arguments->values[i]);
  if (loop->last_changed.kind == JINJA_TUPLE
      && jinja_equal (run, &loop->last_changed, &value))
    return jinja_boolean (FALSE);
  loop->last_changed = value;
  return jinja_boolean (TRUE);
}

const JinjaBuiltin jinja_loop_methods[] = {
  { .name = "cycle", .call_any = loop_cycle },
  { .name = "changed", .call_any = loop_changed },
  { .name = NULL },
};

void
jinja_append_loop_repr (JinjaRun *run, JinjaText *text, JinjaLoop *loop)
{
  jinja_text_append_printf (
      run, text, "<LoopContext %" G_GINT64_FORMAT "/%" G_GINT64_FORMAT ">",
      loop->index0 + 1, loop_length (run, loop));
}
