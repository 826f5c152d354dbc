/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-evaluate.h"

#include "jinja-attribute.h"
#include "jinja-builtins.h"
#include "jinja-loop.h"
#include "jinja-macro.h"
#include "jinja-repr.h"
#include "jinja-text.h"

/* Scopes */

JinjaScope *
jinja_scope_new (JinjaRun *run, JinjaScope *parent)
{
  JinjaScope *scope = jinja_new (run, JinjaScope);

  scope->parent = parent;
  return scope;
}

void
jinja_scope_set (JinjaRun *run, JinjaScope *scope, guint symbol,
                 JinjaValue value)
{
  for (guint i = 0; i < scope->n_bindings; i++)
    if (scope->bindings[i].symbol == symbol)
      {
        scope->bindings[i].value = value;
        return;
      }
  jinja_step (run, scope->n_bindings / 8);
  if (scope->n_bindings == scope->capacity)
    {
      guint capacity = scope->capacity * 2 + 4;

      scope->bindings = jinja_grow (run, scope->bindings,
                                    scope->n_bindings * sizeof (JinjaBinding),
                                    capacity * sizeof (JinjaBinding));
      scope->capacity = capacity;
    }
  scope->bindings[scope->n_bindings++] =
      (JinjaBinding) { .symbol = symbol, .value = value };
}

static const JinjaValue *
find_binding (const JinjaScope *scope, guint symbol)
{
  for (; scope != NULL; scope = scope->parent)
    for (guint i = 0; i < scope->n_bindings; i++)
      if (scope->bindings[i].symbol == symbol)
        return &scope->bindings[i].value;
  return NULL;
}

JinjaValue
jinja_scope_get (const JinjaScope *scope, guint symbol)
{
  const JinjaValue *value = find_binding (scope, symbol);

  return value != NULL ? *value : jinja_missing ();
}

void
jinja_scope_enter (JinjaRun *run, JinjaScope *scope, const JinjaBody *body)
{
  for (guint i = 0; i < body->n_hidden; i++)
    jinja_scope_set (run, scope, body->hidden[i], jinja_missing ());
}

void
jinja_scope_capture (JinjaScope *scope)
{
  for (; scope != NULL && !scope->captured; scope = scope->parent)
    scope->captured = TRUE;
}

static JinjaValue
look_up (JinjaRun *run, const JinjaScope *scope, const JinjaName *name)
{
  const JinjaValue *value = find_binding (scope, name->symbol);
  const JinjaBuiltin *global;

  jinja_step (run, 1);
  if (value == NULL)
    value = jinja_dict_get (run, run->variables, &name->name);
  if (value == NULL)
    {
      global = jinja_find_global (&name->name);
      if (global != NULL)
        return jinja_bind (run, global, NULL);
    }
  if (value == NULL || value->kind == JINJA_MISSING)
    return jinja_undefined_name (run, name->name);
  return *value;
}

void
jinja_assign (JinjaRun *run, JinjaScope *scope, const JinjaExpression *target,
              JinjaValue value)
{
  JinjaIterator *iterator;
  JinjaValue item;
  guint n = 0;

  if (target->kind == JINJA_EXPR_NAME)
    {
      jinja_scope_set (run, scope, target->name.symbol, value);
      return;
    }
  if (target->kind == JINJA_EXPR_ATTRIBUTE)
    {
      jinja_set_attribute (
          run, jinja_evaluate (run, scope, target->attribute.object),
          target->attribute.name, value);
      return;
    }
  iterator = jinja_iterate (run, &value);
  while (jinja_next (run, iterator, &item))
    {
      if (n == target->list.n_items)
        jinja_raise (run, "too many values to unpack (expected %u)", n);
      jinja_assign (run, scope, target->list.items[n++], item);
    }
  if (n < target->list.n_items)
    jinja_raise (run, "not enough values to unpack (expected %u, got %u)",
                 target->list.n_items, n);
}

/* Calls */

static void
add_star (JinjaRun *run, const JinjaValue *star, JinjaValue *positional)
{
  JinjaIterator *iterator = jinja_iterate (run, star);
  JinjaValue item;

  while (jinja_next (run, iterator, &item))
    jinja_list_append (run, positional, item);
}

/* Keyword arguments, those of @more, and the caller of a call block. */
static void
evaluate_keywords (JinjaRun *run, JinjaScope *scope,
                   const JinjaCallArguments *given, const JinjaDict *more,
                   const JinjaValue *caller, JinjaArguments *arguments)
{
  gsize n_more = more != NULL ? more->n_entries : 0;
  gsize n = 0;
  JinjaKeyword *keywords;

  if (given->keywords.n_items + n_more == 0 && caller == NULL)
    return;
  keywords =
      jinja_new_n (run, JinjaKeyword, given->keywords.n_items + n_more + 1);
  for (guint i = 0; i < given->keywords.n_items; i++)
    {
      keywords[n].name = given->names[i];
      keywords[n++].value =
          jinja_evaluate (run, scope, given->keywords.items[i]);
    }
  for (gsize i = 0; i < n_more; i++)
    {
      if (more->entries[i].key.kind != JINJA_STRING)
        jinja_raise (run, "keywords must be strings");
      keywords[n].name = more->entries[i].key;
      keywords[n++].value = more->entries[i].value;
    }
  if (caller != NULL)
    {
      keywords[n].name = jinja_string_c (run, "caller");
      keywords[n++].value = *caller;
    }
  arguments->keywords = keywords;
  arguments->n_keywords = (guint) n;
}

static JinjaArguments
evaluate_arguments (JinjaRun *run, JinjaScope *scope,
                    const JinjaCallArguments *given, const JinjaValue *caller)
{
  JinjaArguments arguments = { 0 };
  JinjaValue positional =
      jinja_list_new (run, JINJA_LIST, given->positional.n_items);
  JinjaValue more;
  const JinjaDict *names = NULL;

  for (guint i = 0; i < given->positional.n_items; i++)
    jinja_list_append (
        run, &positional,
        jinja_evaluate (run, scope, given->positional.items[i]));
  if (given->star != NULL)
    {
      JinjaValue star = jinja_evaluate (run, scope, given->star);

      add_star (run, &star, &positional);
    }
  arguments.values = positional.items->values;
  arguments.n_values = positional.length;
  if (given->star_star != NULL)
    {
      more = jinja_evaluate (run, scope, given->star_star);
      if (more.kind != JINJA_DICT)
        jinja_raise (run, "argument after ** must be a mapping, not %s",
                     jinja_type_name (&more));
      names = more.dict;
    }
  evaluate_keywords (run, scope, given, names, caller, &arguments);
  return arguments;
}

JinjaValue
jinja_call (JinjaRun *run, const JinjaValue *callee,
            const JinjaArguments *arguments)
{
  JinjaValue result;

  jinja_enter (run);
  switch (callee->kind)
    {
    case JINJA_FUNCTION:
      result = jinja_call_builtin (run, callee->function->builtin,
                                   &callee->function->self, arguments);
      break;
    case JINJA_MACRO:
      result = jinja_call_macro (run, callee->macro, arguments);
      break;
    case JINJA_LOOP:
      result = jinja_call_loop (run, callee->loop, arguments);
      break;
    case JINJA_JOINER:
      result = callee->cycler->position++ == 0 ? jinja_string_c (run, "")
                                               : callee->cycler->items;
      break;
    case JINJA_UNDEFINED:
      jinja_raise_undefined (run, callee);
    default:
      jinja_raise (run, "'%s' object is not callable",
                   jinja_type_name (callee));
    }
  jinja_leave (run);
  return result;
}

JinjaValue
jinja_evaluate_call (JinjaRun *run, JinjaScope *scope,
                     const JinjaExpression *call, const JinjaValue *caller)
{
  JinjaValue callee = jinja_evaluate (run, scope, call->call.callee);
  JinjaArguments arguments =
      evaluate_arguments (run, scope, call->call.arguments, caller);

  run->line = call->line;
  return jinja_call (run, &callee, &arguments);
}

/* A filter or test whose value is known. */
static JinjaValue
apply (JinjaRun *run, JinjaScope *scope, const JinjaExpression *expression,
       const JinjaValue *value)
{
  JinjaArguments arguments;

  if (expression->apply.builtin == NULL)
    jinja_raise (run, "no %s named '" JINJA_STRING_FORMAT "'",
                 expression->kind == JINJA_EXPR_FILTER ? "filter" : "test",
                 JINJA_STRING_ARGS (&expression->apply.name));
  arguments =
      evaluate_arguments (run, scope, expression->apply.arguments, NULL);
  run->line = expression->line;
  return jinja_call_builtin (run, expression->apply.builtin, value,
                             &arguments);
}

JinjaValue
jinja_apply_filters (JinjaRun *run, JinjaScope *scope,
                     const JinjaExpression *filter, JinjaValue text)
{
  if (filter == NULL)
    return text;
  jinja_enter (run);
  text = jinja_apply_filters (run, scope, filter->apply.value, text);
  text = apply (run, scope, filter, &text);
  jinja_leave (run);
  return text;
}

/* Expressions */

static JinjaValue
evaluate_list (JinjaRun *run, JinjaScope *scope,
               const JinjaExpression *expression)
{
  const JinjaExpressionList *items = &expression->list;
  JinjaValue list =
      jinja_list_new (run,
                      expression->kind == JINJA_EXPR_LIST ? JINJA_LIST
                                                          : JINJA_TUPLE,
                      items->n_items);

  for (guint i = 0; i < items->n_items; i++)
    jinja_list_append (run, &list,
                       jinja_evaluate (run, scope, items->items[i]));
  return list;
}

static JinjaValue
evaluate_dict (JinjaRun *run, JinjaScope *scope,
               const JinjaExpression *expression)
{
  const JinjaExpressionList *items = &expression->list;
  JinjaDict *dict = jinja_dict_new (run);

  for (guint i = 0; i < items->n_items; i += 2)
    {
      JinjaValue key = jinja_evaluate (run, scope, items->items[i]);

      jinja_dict_set (run, dict, key,
                      jinja_evaluate (run, scope, items->items[i + 1]));
    }
  return jinja_dict_value (dict);
}

static JinjaValue
evaluate_concat (JinjaRun *run, JinjaScope *scope,
                 const JinjaExpression *expression)
{
  const JinjaExpressionList *items = &expression->list;
  JinjaValue result = jinja_evaluate (run, scope, items->items[0]);

  result = jinja_str (run, &result);
  for (guint i = 1; i < items->n_items; i++)
    {
      JinjaValue next = jinja_evaluate (run, scope, items->items[i]);

      next = jinja_str (run, &next);
      result = jinja_string_concat (run, &result, &next);
    }
  return result;
}

static JinjaValue
evaluate_logic (JinjaRun *run, JinjaScope *scope,
                const JinjaExpression *expression)
{
  JinjaValue left = jinja_evaluate (run, scope, expression->binary.left);

  if (jinja_truth (run, &left) == (expression->kind == JINJA_EXPR_OR))
    return left;
  return jinja_evaluate (run, scope, expression->binary.right);
}

static JinjaValue
evaluate_sign (JinjaRun *run, JinjaScope *scope,
               const JinjaExpression *expression)
{
  JinjaValue value = jinja_evaluate (run, scope, expression->operand);
  JinjaValue zero = jinja_integer (0);
  gboolean negative = expression->kind == JINJA_EXPR_NEGATIVE;

  run->line = expression->line;
  if (value.kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, &value);
  if (!jinja_is_number (&value))
    jinja_raise (run, "bad operand type for unary %c: '%s'",
                 negative ? '-' : '+', jinja_type_name (&value));
  if (negative)
    return jinja_negate (run, &value);
  return value.kind == JINJA_BOOLEAN
             ? jinja_calculate (run, JINJA_ADD, &value, &zero)
             : value;
}

static JinjaValue
evaluate_compare (JinjaRun *run, JinjaScope *scope,
                  const JinjaExpression *expression)
{
  const JinjaExpressionList *operands = &expression->compare.operands;
  JinjaValue left = jinja_evaluate (run, scope, operands->items[0]);

  for (guint i = 1; i < operands->n_items; i++)
    {
      JinjaValue right = jinja_evaluate (run, scope, operands->items[i]);

      run->line = expression->line;
      if (!jinja_compare (
              run,
              (JinjaComparison) expression->compare.comparisons[i - 1], &left,
              &right))
        return jinja_boolean (FALSE);
      left = right;
    }
  return jinja_boolean (TRUE);
}

static JinjaValue
evaluate_conditional (JinjaRun *run, JinjaScope *scope,
                      const JinjaExpression *expression)
{
  JinjaValue test = jinja_evaluate (run, scope, expression->conditional.test);

  if (jinja_truth (run, &test))
    return jinja_evaluate (run, scope, expression->conditional.yes);
  if (expression->conditional.no != NULL)
    return jinja_evaluate (run, scope, expression->conditional.no);
  return jinja_undefined_message (
      run, "an inline if evaluated to false and has no else");
}

static JinjaValue
evaluate_optional (JinjaRun *run, JinjaScope *scope,
                   const JinjaExpression *expression)
{
  return expression != NULL ? jinja_evaluate (run, scope, expression)
                            : jinja_missing ();
}

static JinjaValue
evaluate_access (JinjaRun *run, JinjaScope *scope,
                 const JinjaExpression *expression)
{
  JinjaValue object;
  JinjaValue index;
  JinjaValue stop;
  JinjaValue step;

  if (expression->kind == JINJA_EXPR_ATTRIBUTE)
    {
      object = jinja_evaluate (run, scope, expression->attribute.object);
      run->line = expression->line;
      return jinja_get_attribute (run, &object, &expression->attribute.name);
    }
  if (expression->kind == JINJA_EXPR_ITEM)
    {
      object = jinja_evaluate (run, scope, expression->item.object);
      index = jinja_evaluate (run, scope, expression->item.index);
      run->line = expression->line;
      return jinja_get_item (run, &object, &index);
    }
  object = jinja_evaluate (run, scope, expression->slice.object);
  index = evaluate_optional (run, scope, expression->slice.start);
  stop = evaluate_optional (run, scope, expression->slice.stop);
  step = evaluate_optional (run, scope, expression->slice.step);
  run->line = expression->line;
  return jinja_slice (run, &object, &index, &stop, &step);
}

static JinjaValue
evaluate_arithmetic (JinjaRun *run, JinjaScope *scope,
                     const JinjaExpression *expression)
{
  JinjaValue left = jinja_evaluate (run, scope, expression->binary.left);
  JinjaValue right = jinja_evaluate (run, scope, expression->binary.right);

  run->line = expression->line;
  return jinja_operate (run, (JinjaArithmetic) expression->operation, &left,
                        &right);
}

static JinjaValue
evaluate_apply (JinjaRun *run, JinjaScope *scope,
                const JinjaExpression *expression)
{
  JinjaValue value = jinja_evaluate (run, scope, expression->apply.value);

  return apply (run, scope, expression, &value);
}

static JinjaValue
evaluate_not (JinjaRun *run, JinjaScope *scope,
              const JinjaExpression *expression)
{
  JinjaValue value = jinja_evaluate (run, scope, expression->operand);

  return jinja_boolean (!jinja_truth (run, &value));
}

static JinjaValue
evaluate (JinjaRun *run, JinjaScope *scope, const JinjaExpression *expression)
{
  switch ((JinjaExpressionKind) expression->kind)
    {
    case JINJA_EXPR_CONSTANT:
      return expression->constant;
    case JINJA_EXPR_NAME:
      return look_up (run, scope, &expression->name);
    case JINJA_EXPR_LIST:
    case JINJA_EXPR_TUPLE:
      return evaluate_list (run, scope, expression);
    case JINJA_EXPR_DICT:
      return evaluate_dict (run, scope, expression);
    case JINJA_EXPR_CONCAT:
      return evaluate_concat (run, scope, expression);
    case JINJA_EXPR_NOT:
      return evaluate_not (run, scope, expression);
    case JINJA_EXPR_AND:
    case JINJA_EXPR_OR:
      return evaluate_logic (run, scope, expression);
    case JINJA_EXPR_NEGATIVE:
    case JINJA_EXPR_POSITIVE:
      return evaluate_sign (run, scope, expression);
    case JINJA_EXPR_ARITHMETIC:
      return evaluate_arithmetic (run, scope, expression);
    case JINJA_EXPR_COMPARE:
      return evaluate_compare (run, scope, expression);
    case JINJA_EXPR_CONDITIONAL:
      return evaluate_conditional (run, scope, expression);
    case JINJA_EXPR_ATTRIBUTE:
    case JINJA_EXPR_ITEM:
    case JINJA_EXPR_SLICE:
      return evaluate_access (run, scope, expression);
    case JINJA_EXPR_CALL:
      return jinja_evaluate_call (run, scope, expression, NULL);
    case JINJA_EXPR_FILTER:
    case JINJA_EXPR_TEST:
      return evaluate_apply (run, scope, expression);
    }
  g_assert_not_reached ();
}

JinjaValue
jinja_evaluate (JinjaRun *run, JinjaScope *scope,
                const JinjaExpression *expression)
{
  JinjaValue value;

  jinja_enter (run);
  run->line = expression->line;
  value = evaluate (run, scope, expression);
  jinja_leave (run);
  return value;
}
