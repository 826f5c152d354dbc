/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-evaluate.h"

#include "jinja-loop.h"
#include "jinja-macro.h"
#include "jinja-repr.h"
#include "jinja-text.h"

static void
print (JinjaRun *run, JinjaScope *scope, const JinjaStatement *statement,
       JinjaText *out)
{
  for (guint i = 0; i < statement->print.n_items; i++)
    {
      JinjaValue value =
          jinja_evaluate (run, scope, statement->print.items[i]);

      jinja_append_str (run, out, &value);
    }
}

static JinjaFlow
execute_if (JinjaRun *run, JinjaScope *scope, const JinjaStatement *statement,
            JinjaText *out)
{
  for (guint i = 0; i < statement->condition.n_branches; i++)
    {
      const JinjaBranch *branch = &statement->condition.branches[i];
      JinjaValue test;

      if (branch->test == NULL)
        return jinja_execute (run, scope, &branch->body, out);
      test = jinja_evaluate (run, scope, branch->test);
      if (jinja_truth (run, &test))
        return jinja_execute (run, scope, &branch->body, out);
    }
  return JINJA_FLOW_NEXT;
}

/* The text of a body in a scope of its own. */
static JinjaValue
capture (JinjaRun *run, JinjaScope *scope, const JinjaBody *body)
{
  JinjaScope *inner = jinja_scope_new (run, scope);
  JinjaText *text = jinja_text_new (run, 0);

  jinja_scope_enter (run, inner, body);
  jinja_execute (run, inner, body, text);
  return jinja_text_string (text);
}

static JinjaFlow
execute_with (JinjaRun *run, JinjaScope *scope,
              const JinjaStatement *statement, JinjaText *out)
{
  JinjaScope *inner = jinja_scope_new (run, scope);
  guint n = statement->block.values.n_items;
  JinjaValue *values = jinja_new_n (run, JinjaValue, n);

  for (guint i = 0; i < n; i++)
    values[i] = jinja_evaluate (run, scope, statement->block.values.items[i]);
  jinja_scope_enter (run, inner, &statement->block.body);
  for (guint i = 0; i < n; i++)
    jinja_assign (run, inner, statement->block.targets.items[i], values[i]);
  return jinja_execute (run, inner, &statement->block.body, out);
}

/* Without a template that extends this one, a block stands for itself; it
 * sees the outermost scope only, unless it is scoped. */
static void
execute_block (JinjaRun *run, JinjaScope *scope,
               const JinjaStatement *statement, JinjaText *out)
{
  JinjaScope *inner =
      jinja_scope_new (run, statement->block.scoped ? scope : run->root);

  jinja_scope_enter (run, inner, &statement->block.body);
  jinja_execute (run, inner, &statement->block.body, out);
}

static void
execute_call (JinjaRun *run, JinjaScope *scope,
              const JinjaStatement *statement, JinjaText *out)
{
  JinjaValue caller = jinja_macro_new (run, scope, statement->call.caller);
  JinjaArguments none = { 0 };
  JinjaValue result;

  if (statement->kind == JINJA_STMT_GENERATION)
    result = jinja_call (run, &caller, &none);
  else
    result = jinja_evaluate_call (run, scope, statement->call.call, &caller);
  jinja_append_str (run, out, &result);
}

static JinjaFlow
execute_statement (JinjaRun *run, JinjaScope *scope,
                   const JinjaStatement *statement, JinjaText *out)
{
  JinjaValue value;

  run->line = statement->line;
  switch ((JinjaStatementKind) statement->kind)
    {
    case JINJA_STMT_TEXT:
      jinja_text_append_string (run, out, &statement->text);
      break;
    case JINJA_STMT_PRINT:
      print (run, scope, statement, out);
      break;
    case JINJA_STMT_IF:
      return execute_if (run, scope, statement, out);
    case JINJA_STMT_FOR:
      value = jinja_evaluate (run, scope, statement->loop.iterable);
      return jinja_run_loop (run, scope, statement, value, 0, out);
    case JINJA_STMT_SET:
      value = jinja_evaluate (run, scope, statement->set.value);
      jinja_assign (run, scope, statement->set.target, value);
      break;
    case JINJA_STMT_SET_BLOCK:
      value = capture (run, scope, &statement->set.body);
      value = jinja_apply_filters (run, scope, statement->set.value, value);
      jinja_assign (run, scope, statement->set.target, value);
      break;
    case JINJA_STMT_MACRO:
      value = jinja_macro_new (run, scope, statement->macro);
      jinja_scope_set (run, scope, statement->macro->name.symbol, value);
      break;
    case JINJA_STMT_CALL:
    case JINJA_STMT_GENERATION:
      execute_call (run, scope, statement, out);
      break;
    case JINJA_STMT_FILTER:
      value = capture (run, scope, &statement->block.body);
      value = jinja_apply_filters (run, scope, statement->block.filter, value);
      jinja_append_str (run, out, &value);
      break;
    case JINJA_STMT_WITH:
      return execute_with (run, scope, statement, out);
    case JINJA_STMT_BLOCK:
      execute_block (run, scope, statement, out);
      break;
    case JINJA_STMT_BREAK:
      return JINJA_FLOW_BREAK;
    case JINJA_STMT_CONTINUE:
      return JINJA_FLOW_CONTINUE;
    case JINJA_STMT_UNSUPPORTED:
      jinja_raise (run,
                   "'" JINJA_STRING_FORMAT "' is not available: a chat "
                   "template has no access to other templates",
                   JINJA_STRING_ARGS (&statement->block.name));
    }
  return JINJA_FLOW_NEXT;
}

JinjaFlow
jinja_execute (JinjaRun *run, JinjaScope *scope, const JinjaBody *body,
               JinjaText *out)
{
  JinjaFlow flow = JINJA_FLOW_NEXT;

  jinja_enter (run);
  for (guint i = 0; i < body->n_statements && flow == JINJA_FLOW_NEXT; i++)
    {
      jinja_step (run, 1);
      flow = execute_statement (run, scope, body->statements[i], out);
    }
  jinja_leave (run);
  return flow;
}
