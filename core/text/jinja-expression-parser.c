/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-parser.h"

#include "jinja-builtins.h"
#include "jinja-text.h"

/* Recursive descent in the order of Jinja2's grammar, so that precedence is
 * its precedence: conditional, or, and, not, comparisons, + -, ~, * / // %,
 * **, signs, postfix, filters and tests. */

static JinjaExpression *
expression_new (JinjaParser *self, JinjaExpressionKind kind)
{
  JinjaExpression *expression = jinja_new (self->run, JinjaExpression);

  expression->kind = kind;
  expression->line = self->token->line;
  return expression;
}

void
jinja_expression_list_append (JinjaParser *self, JinjaExpressionList *list,
                              JinjaExpression *item)
{
  /* Grows at the powers of two. */
  if ((list->n_items & (list->n_items - 1)) == 0)
    list->items = jinja_grow (
        self->run, list->items, list->n_items * sizeof (JinjaExpression *),
        MAX (list->n_items * 2, 1) * sizeof (JinjaExpression *));
  list->items[list->n_items++] = item;
}

static JinjaExpression *
constant (JinjaParser *self, JinjaValue value)
{
  JinjaExpression *expression = expression_new (self, JINJA_EXPR_CONSTANT);

  expression->constant = value;
  return expression;
}

static JinjaExpression *
binary (JinjaParser *self, JinjaExpressionKind kind, JinjaExpression *left,
        JinjaExpression *right)
{
  JinjaExpression *expression = expression_new (self, kind);

  expression->line = left->line;
  expression->binary.left = left;
  expression->binary.right = right;
  return expression;
}

static JinjaExpression *parse_primary (JinjaParser *self);
static JinjaExpression *parse_postfix (JinjaParser *self,
                                       JinjaExpression *value);

/* Literals and names */

static JinjaExpression *
parse_name (JinjaParser *self)
{
  const JinjaValue *name = &self->token->value;
  JinjaExpression *expression;

  if (jinja_string_is (name, "true") || jinja_string_is (name, "True"))
    expression = constant (self, jinja_boolean (TRUE));
  else if (jinja_string_is (name, "false") || jinja_string_is (name, "False"))
    expression = constant (self, jinja_boolean (FALSE));
  else if (jinja_string_is (name, "none") || jinja_string_is (name, "None"))
    expression = constant (self, jinja_none ());
  else
    {
      expression = expression_new (self, JINJA_EXPR_NAME);
      expression->name = jinja_intern (self, *name);
      jinja_note_name (self, name);
    }
  self->token++;
  return expression;
}

/* Strings that follow each other are one. */
static JinjaExpression *
parse_string (JinjaParser *self)
{
  JinjaExpression *expression = constant (self, self->token->value);
  JinjaText *text;

  self->token++;
  if (!jinja_token_is (self, JINJA_TOKEN_STRING))
    return expression;
  text = jinja_text_new (self->run, 0);
  jinja_text_append_string (self->run, text, &expression->constant);
  while (jinja_token_is (self, JINJA_TOKEN_STRING))
    jinja_text_append_string (self->run, text, &(self->token++)->value);
  text->capacity = 0;
  expression->constant = jinja_text_string (text);
  return expression;
}

static JinjaExpression *
parse_list (JinjaParser *self)
{
  JinjaExpression *expression = expression_new (self, JINJA_EXPR_LIST);

  jinja_expect (self, JINJA_TOKEN_LEFT_BRACKET);
  while (!jinja_token_is (self, JINJA_TOKEN_RIGHT_BRACKET))
    {
      if (expression->list.n_items > 0)
        jinja_expect (self, JINJA_TOKEN_COMMA);
      if (jinja_token_is (self, JINJA_TOKEN_RIGHT_BRACKET))
        break;
      jinja_expression_list_append (self, &expression->list,
                                    jinja_parse_expression (self, TRUE));
    }
  jinja_expect (self, JINJA_TOKEN_RIGHT_BRACKET);
  return expression;
}

static JinjaExpression *
parse_dict (JinjaParser *self)
{
  JinjaExpression *expression = expression_new (self, JINJA_EXPR_DICT);

  jinja_expect (self, JINJA_TOKEN_LEFT_BRACE);
  while (!jinja_token_is (self, JINJA_TOKEN_RIGHT_BRACE))
    {
      if (expression->list.n_items > 0)
        jinja_expect (self, JINJA_TOKEN_COMMA);
      if (jinja_token_is (self, JINJA_TOKEN_RIGHT_BRACE))
        break;
      jinja_expression_list_append (self, &expression->list,
                                    jinja_parse_expression (self, TRUE));
      jinja_expect (self, JINJA_TOKEN_COLON);
      jinja_expression_list_append (self, &expression->list,
                                    jinja_parse_expression (self, TRUE));
    }
  jinja_expect (self, JINJA_TOKEN_RIGHT_BRACE);
  return expression;
}

static gboolean
ends_tuple (const JinjaParser *self, const char *end_name)
{
  return jinja_token_is (self, JINJA_TOKEN_VARIABLE_END)
         || jinja_token_is (self, JINJA_TOKEN_BLOCK_END)
         || jinja_token_is (self, JINJA_TOKEN_RIGHT_PAREN)
         || (end_name != NULL && jinja_token_is_name (self, end_name));
}

typedef enum { EXPRESSIONS, PLAIN_EXPRESSIONS, PRIMARIES } TupleOf;

static JinjaExpression *
parse_tuple (JinjaParser *self, TupleOf of, const char *end_name,
             gboolean parentheses)
{
  JinjaExpression *tuple = expression_new (self, JINJA_EXPR_TUPLE);
  gboolean is_tuple = FALSE;

  while (TRUE)
    {
      if (tuple->list.n_items > 0)
        jinja_expect (self, JINJA_TOKEN_COMMA);
      if (ends_tuple (self, end_name))
        break;
      jinja_expression_list_append (
          self, &tuple->list,
          of == PRIMARIES ? parse_primary (self)
                          : jinja_parse_expression (self, of == EXPRESSIONS));
      if (!jinja_token_is (self, JINJA_TOKEN_COMMA))
        break;
      is_tuple = TRUE;
    }
  if (!is_tuple && tuple->list.n_items > 0)
    return tuple->list.items[0];
  if (!is_tuple && !parentheses)
    jinja_unexpected (self);
  return tuple;
}

JinjaExpression *
jinja_parse_tuple (JinjaParser *self, gboolean conditional,
                   const char *end_name)
{
  return parse_tuple (self, conditional ? EXPRESSIONS : PLAIN_EXPRESSIONS,
                      end_name, FALSE);
}

static void
check_target (JinjaParser *self, const JinjaExpression *target)
{
  if (target->kind == JINJA_EXPR_TUPLE || target->kind == JINJA_EXPR_LIST)
    for (guint i = 0; i < target->list.n_items; i++)
      check_target (self, target->list.items[i]);
  else if (target->kind != JINJA_EXPR_NAME)
    jinja_raise (self->run, "cannot assign to this expression");
}

JinjaExpression *
jinja_parse_target (JinjaParser *self, gboolean tuple, gboolean attribute,
                    const char *end_name)
{
  JinjaExpression *target;

  self->run->line = self->token->line;
  if (attribute && jinja_token_is (self, JINJA_TOKEN_NAME)
      && self->token[1].kind == JINJA_TOKEN_DOT)
    {
      target = expression_new (self, JINJA_EXPR_ATTRIBUTE);
      target->attribute.object = parse_name (self);
      if (target->attribute.object->kind != JINJA_EXPR_NAME)
        jinja_raise (self->run, "cannot assign to a constant");
      jinja_expect (self, JINJA_TOKEN_DOT);
      target->attribute.name = jinja_expect (self, JINJA_TOKEN_NAME)->value;
      return target;
    }
  target = tuple ? parse_tuple (self, PRIMARIES, end_name, FALSE)
                 : parse_primary (self);
  check_target (self, target);
  return target;
}

static JinjaExpression *
parse_primary (JinjaParser *self)
{
  JinjaExpression *expression;

  self->run->line = self->token->line;
  switch (self->token->kind)
    {
    case JINJA_TOKEN_NAME:
      return parse_name (self);
    case JINJA_TOKEN_STRING:
      return parse_string (self);
    case JINJA_TOKEN_INTEGER:
    case JINJA_TOKEN_FLOAT:
      expression = constant (self, self->token->value);
      self->token++;
      return expression;
    case JINJA_TOKEN_LEFT_PAREN:
      self->token++;
      expression = parse_tuple (self, EXPRESSIONS, NULL, TRUE);
      jinja_expect (self, JINJA_TOKEN_RIGHT_PAREN);
      return expression;
    case JINJA_TOKEN_LEFT_BRACKET:
      return parse_list (self);
    case JINJA_TOKEN_LEFT_BRACE:
      return parse_dict (self);
    default:
      jinja_unexpected (self);
    }
}

/* Postfix */

static void
parse_argument (JinjaParser *self, JinjaCallArguments *arguments)
{
  JinjaExpression *value;
  JinjaValue name;
  guint n = arguments->keywords.n_items;

  if (jinja_skip (self, JINJA_TOKEN_MULTIPLY))
    {
      if (arguments->star != NULL || arguments->star_star != NULL)
        jinja_unexpected (self);
      arguments->star = jinja_parse_expression (self, TRUE);
      return;
    }
  if (jinja_skip (self, JINJA_TOKEN_POWER))
    {
      if (arguments->star_star != NULL)
        jinja_unexpected (self);
      arguments->star_star = jinja_parse_expression (self, TRUE);
      return;
    }
  if (jinja_token_is (self, JINJA_TOKEN_NAME)
      && self->token[1].kind == JINJA_TOKEN_ASSIGN)
    {
      name = self->token->value;
      self->token += 2;
      value = jinja_parse_expression (self, TRUE);
      if (arguments->star_star != NULL)
        jinja_unexpected (self);
      arguments->names =
          jinja_grow (self->run, arguments->names, n * sizeof (JinjaValue),
                      (n + 1) * sizeof (JinjaValue));
      arguments->names[n] = name;
      jinja_expression_list_append (self, &arguments->keywords, value);
      return;
    }
  if (arguments->star != NULL || arguments->star_star != NULL || n > 0)
    jinja_unexpected (self);
  jinja_expression_list_append (self, &arguments->positional,
                                jinja_parse_expression (self, TRUE));
}

static JinjaCallArguments *
parse_call_arguments (JinjaParser *self)
{
  JinjaCallArguments *arguments = jinja_new (self->run, JinjaCallArguments);
  gboolean comma = FALSE;

  jinja_expect (self, JINJA_TOKEN_LEFT_PAREN);
  while (!jinja_token_is (self, JINJA_TOKEN_RIGHT_PAREN))
    {
      if (comma)
        {
          jinja_expect (self, JINJA_TOKEN_COMMA);
          if (jinja_token_is (self, JINJA_TOKEN_RIGHT_PAREN))
            break;
        }
      parse_argument (self, arguments);
      comma = TRUE;
    }
  jinja_expect (self, JINJA_TOKEN_RIGHT_PAREN);
  return arguments;
}

static JinjaExpression *
parse_call (JinjaParser *self, JinjaExpression *callee)
{
  JinjaExpression *call = expression_new (self, JINJA_EXPR_CALL);

  call->call.callee = callee;
  call->call.arguments = parse_call_arguments (self);
  return call;
}

static gboolean
ends_subscript (const JinjaParser *self)
{
  return jinja_token_is (self, JINJA_TOKEN_RIGHT_BRACKET)
         || jinja_token_is (self, JINJA_TOKEN_COMMA);
}

/* One subscript: an expression, or a slice of @object. */
static JinjaExpression *
parse_subscript (JinjaParser *self, JinjaExpression *object)
{
  JinjaExpression *start = NULL;
  JinjaExpression *slice;

  if (!jinja_token_is (self, JINJA_TOKEN_COLON))
    start = jinja_parse_expression (self, TRUE);
  if (!jinja_skip (self, JINJA_TOKEN_COLON))
    return start;
  slice = expression_new (self, JINJA_EXPR_SLICE);
  slice->slice.object = object;
  slice->slice.start = start;
  if (!jinja_token_is (self, JINJA_TOKEN_COLON) && !ends_subscript (self))
    slice->slice.stop = jinja_parse_expression (self, TRUE);
  if (jinja_skip (self, JINJA_TOKEN_COLON) && !ends_subscript (self))
    slice->slice.step = jinja_parse_expression (self, TRUE);
  return slice;
}

static JinjaExpression *
parse_item (JinjaParser *self, JinjaExpression *object)
{
  JinjaExpression *item = expression_new (self, JINJA_EXPR_ITEM);
  JinjaExpression *index;
  JinjaExpression *tuple = NULL;

  jinja_expect (self, JINJA_TOKEN_LEFT_BRACKET);
  if (jinja_token_is (self, JINJA_TOKEN_RIGHT_BRACKET))
    index = expression_new (self, JINJA_EXPR_TUPLE); /* x[] is x[()] */
  else
    index = parse_subscript (self, object);
  while (!jinja_token_is (self, JINJA_TOKEN_RIGHT_BRACKET))
    {
      jinja_expect (self, JINJA_TOKEN_COMMA);
      if (index->kind == JINJA_EXPR_SLICE)
        jinja_raise (self->run, "a slice cannot be part of a tuple");
      if (tuple == NULL)
        {
          tuple = expression_new (self, JINJA_EXPR_TUPLE);
          jinja_expression_list_append (self, &tuple->list, index);
        }
      index = parse_subscript (self, object);
      if (index->kind == JINJA_EXPR_SLICE)
        jinja_raise (self->run, "a slice cannot be part of a tuple");
      jinja_expression_list_append (self, &tuple->list, index);
    }
  jinja_expect (self, JINJA_TOKEN_RIGHT_BRACKET);
  if (index->kind == JINJA_EXPR_SLICE && index->slice.object == object)
    return index;
  item->item.object = object;
  item->item.index = tuple != NULL ? tuple : index;
  return item;
}

static JinjaExpression *
parse_dot (JinjaParser *self, JinjaExpression *object)
{
  JinjaExpression *expression;

  jinja_expect (self, JINJA_TOKEN_DOT);
  if (jinja_token_is (self, JINJA_TOKEN_NAME))
    {
      expression = expression_new (self, JINJA_EXPR_ATTRIBUTE);
      expression->attribute.object = object;
      expression->attribute.name = self->token->value;
    }
  else if (jinja_token_is (self, JINJA_TOKEN_INTEGER))
    {
      expression = expression_new (self, JINJA_EXPR_ITEM);
      expression->item.object = object;
      expression->item.index = constant (self, self->token->value);
    }
  else
    jinja_raise (self->run, "expected name or number");
  self->token++;
  return expression;
}

static JinjaExpression *
parse_postfix (JinjaParser *self, JinjaExpression *value)
{
  while (TRUE)
    {
      jinja_step (self->run, 1);
      if (jinja_token_is (self, JINJA_TOKEN_DOT))
        value = parse_dot (self, value);
      else if (jinja_token_is (self, JINJA_TOKEN_LEFT_BRACKET))
        value = parse_item (self, value);
      else if (jinja_token_is (self, JINJA_TOKEN_LEFT_PAREN))
        value = parse_call (self, value);
      else
        return value;
    }
}

/* Filters and tests */

/* A name, maybe with dots in it. */
static JinjaValue
parse_dotted_name (JinjaParser *self)
{
  JinjaValue name = jinja_expect (self, JINJA_TOKEN_NAME)->value;

  while (jinja_skip (self, JINJA_TOKEN_DOT))
    {
      JinjaValue dot = jinja_string_c (self->run, ".");

      name = jinja_string_concat (self->run, &name, &dot);
      name = jinja_string_concat (
          self->run, &name, &jinja_expect (self, JINJA_TOKEN_NAME)->value);
    }
  return name;
}

static const JinjaBuiltin *
find_builtin (JinjaParser *self, gboolean filter, const JinjaValue *name)
{
  const JinjaBuiltin *builtin =
      filter ? jinja_find_filter (name) : jinja_find_test (name);

  if (builtin == NULL && self->soft == 0)
    jinja_raise (self->run, "no %s named '" JINJA_STRING_FORMAT "'",
                 filter ? "filter" : "test", JINJA_STRING_ARGS (name));
  return builtin;
}

JinjaExpression *
jinja_parse_filters (JinjaParser *self, JinjaExpression *value,
                     gboolean inline_start)
{
  while (inline_start || jinja_skip (self, JINJA_TOKEN_PIPE))
    {
      JinjaExpression *filter = expression_new (self, JINJA_EXPR_FILTER);

      jinja_step (self->run, 1);
      inline_start = FALSE;
      filter->apply.value = value;
      filter->apply.name = parse_dotted_name (self);
      filter->apply.builtin = find_builtin (self, TRUE, &filter->apply.name);
      filter->apply.arguments =
          jinja_token_is (self, JINJA_TOKEN_LEFT_PAREN)
              ? parse_call_arguments (self)
              : jinja_new (self->run, JinjaCallArguments);
      value = filter;
    }
  return value;
}

/* Whether the token after a test's name begins its argument. */
static gboolean
begins_argument (const JinjaParser *self)
{
  switch (self->token->kind)
    {
    case JINJA_TOKEN_NAME:
      return !jinja_token_is_name (self, "else")
             && !jinja_token_is_name (self, "or")
             && !jinja_token_is_name (self, "and");
    case JINJA_TOKEN_STRING:
    case JINJA_TOKEN_INTEGER:
    case JINJA_TOKEN_FLOAT:
    case JINJA_TOKEN_LEFT_BRACKET:
    case JINJA_TOKEN_LEFT_BRACE:
      return TRUE;
    default:
      return FALSE;
    }
}

static JinjaExpression *
parse_test (JinjaParser *self, JinjaExpression *value)
{
  JinjaExpression *test = expression_new (self, JINJA_EXPR_TEST);
  JinjaExpression *negated;
  gboolean negate;

  self->token++; /* is */
  negate = jinja_skip_name (self, "not");
  test->apply.value = value;
  test->apply.name = parse_dotted_name (self);
  test->apply.builtin = find_builtin (self, FALSE, &test->apply.name);
  if (jinja_token_is (self, JINJA_TOKEN_LEFT_PAREN))
    test->apply.arguments = parse_call_arguments (self);
  else
    {
      test->apply.arguments = jinja_new (self->run, JinjaCallArguments);
      if (begins_argument (self))
        {
          if (jinja_token_is_name (self, "is"))
            jinja_raise (self->run, "tests cannot be chained with is");
          jinja_expression_list_append (
              self, &test->apply.arguments->positional,
              parse_postfix (self, parse_primary (self)));
        }
    }
  if (!negate)
    return test;
  negated = expression_new (self, JINJA_EXPR_NOT);
  negated->operand = test;
  return negated;
}

static JinjaExpression *
parse_filters_and_tests (JinjaParser *self, JinjaExpression *value)
{
  while (TRUE)
    {
      jinja_step (self->run, 1);
      if (jinja_token_is (self, JINJA_TOKEN_PIPE))
        value = jinja_parse_filters (self, value, FALSE);
      else if (jinja_token_is_name (self, "is"))
        value = parse_test (self, value);
      else if (jinja_token_is (self, JINJA_TOKEN_LEFT_PAREN))
        value = parse_call (self, value);
      else
        return value;
    }
}

/* Operators */

static JinjaExpression *
parse_signed (JinjaParser *self, gboolean filters)
{
  JinjaExpression *expression;

  jinja_enter (self->run);
  if (jinja_token_is (self, JINJA_TOKEN_SUBTRACT)
      || jinja_token_is (self, JINJA_TOKEN_ADD))
    {
      expression =
          expression_new (self, jinja_token_is (self, JINJA_TOKEN_ADD)
                                    ? JINJA_EXPR_POSITIVE
                                    : JINJA_EXPR_NEGATIVE);
      self->token++;
      expression->operand = parse_signed (self, FALSE);
    }
  else
    expression = parse_primary (self);
  expression = parse_postfix (self, expression);
  if (filters)
    expression = parse_filters_and_tests (self, expression);
  jinja_leave (self->run);
  return expression;
}

static JinjaExpression *
arithmetic (JinjaParser *self, JinjaArithmetic operation,
            JinjaExpression *left, JinjaExpression *right)
{
  JinjaExpression *expression =
      binary (self, JINJA_EXPR_ARITHMETIC, left, right);

  expression->operation = operation;
  return expression;
}

static JinjaExpression *
parse_power (JinjaParser *self)
{
  JinjaExpression *left = parse_signed (self, TRUE);

  while (jinja_skip (self, JINJA_TOKEN_POWER))
    left = arithmetic (self, JINJA_POWER, left, parse_signed (self, TRUE));
  return left;
}

static JinjaExpression *
parse_product (JinjaParser *self)
{
  JinjaExpression *left = parse_power (self);

  while (TRUE)
    {
      JinjaArithmetic operation;

      if (jinja_token_is (self, JINJA_TOKEN_MULTIPLY))
        operation = JINJA_MULTIPLY;
      else if (jinja_token_is (self, JINJA_TOKEN_DIVIDE))
        operation = JINJA_DIVIDE;
      else if (jinja_token_is (self, JINJA_TOKEN_FLOOR_DIVIDE))
        operation = JINJA_FLOOR_DIVIDE;
      else if (jinja_token_is (self, JINJA_TOKEN_MODULO))
        operation = JINJA_MODULO;
      else
        return left;
      self->token++;
      left = arithmetic (self, operation, left, parse_power (self));
    }
}

static JinjaExpression *
parse_concat (JinjaParser *self)
{
  JinjaExpression *first = parse_product (self);
  JinjaExpression *concat;

  if (!jinja_token_is (self, JINJA_TOKEN_TILDE))
    return first;
  concat = expression_new (self, JINJA_EXPR_CONCAT);
  jinja_expression_list_append (self, &concat->list, first);
  while (jinja_skip (self, JINJA_TOKEN_TILDE))
    jinja_expression_list_append (self, &concat->list, parse_product (self));
  return concat;
}

static JinjaExpression *
parse_sum (JinjaParser *self)
{
  JinjaExpression *left = parse_concat (self);

  while (TRUE)
    {
      if (jinja_skip (self, JINJA_TOKEN_ADD))
        left = arithmetic (self, JINJA_ADD, left, parse_concat (self));
      else if (jinja_skip (self, JINJA_TOKEN_SUBTRACT))
        left = arithmetic (self, JINJA_SUBTRACT, left, parse_concat (self));
      else
        return left;
    }
}

static gboolean
skip_comparison (JinjaParser *self, JinjaComparison *comparison)
{
  static const JinjaTokenKind tokens[] = {
    [JINJA_EQUAL] = JINJA_TOKEN_EQUAL,
    [JINJA_NOT_EQUAL] = JINJA_TOKEN_NOT_EQUAL,
    [JINJA_LESS] = JINJA_TOKEN_LESS,
    [JINJA_LESS_EQUAL] = JINJA_TOKEN_LESS_EQUAL,
    [JINJA_GREATER] = JINJA_TOKEN_GREATER,
    [JINJA_GREATER_EQUAL] = JINJA_TOKEN_GREATER_EQUAL,
  };

  for (gsize i = 0; i < G_N_ELEMENTS (tokens); i++)
    if (jinja_skip (self, tokens[i]))
      {
        *comparison = (JinjaComparison) i;
        return TRUE;
      }
  if (jinja_skip_name (self, "in"))
    {
      *comparison = JINJA_IN;
      return TRUE;
    }
  if (jinja_token_is_name (self, "not")
      && self->token[1].kind == JINJA_TOKEN_NAME
      && jinja_string_is (&self->token[1].value, "in"))
    {
      self->token += 2;
      *comparison = JINJA_NOT_IN;
      return TRUE;
    }
  return FALSE;
}

static JinjaExpression *
parse_comparison (JinjaParser *self)
{
  JinjaExpression *first = parse_sum (self);
  JinjaExpression *compare = NULL;
  JinjaComparison comparison;

  while (skip_comparison (self, &comparison))
    {
      guint n;

      if (compare == NULL)
        {
          compare = expression_new (self, JINJA_EXPR_COMPARE);
          jinja_expression_list_append (self, &compare->compare.operands,
                                        first);
        }
      n = compare->compare.operands.n_items - 1;
      compare->compare.comparisons =
          jinja_grow (self->run, compare->compare.comparisons, n, n + 1);
      compare->compare.comparisons[n] = comparison;
      jinja_expression_list_append (self, &compare->compare.operands,
                                    parse_sum (self));
    }
  return compare != NULL ? compare : first;
}

static JinjaExpression *
parse_not (JinjaParser *self)
{
  JinjaExpression *expression;

  if (!jinja_token_is_name (self, "not"))
    return parse_comparison (self);
  jinja_enter (self->run);
  expression = expression_new (self, JINJA_EXPR_NOT);
  self->token++;
  expression->operand = parse_not (self);
  jinja_leave (self->run);
  return expression;
}

static JinjaExpression *
parse_and (JinjaParser *self)
{
  JinjaExpression *left = parse_not (self);

  while (jinja_skip_name (self, "and"))
    left = binary (self, JINJA_EXPR_AND, left, parse_not (self));
  return left;
}

static JinjaExpression *
parse_or (JinjaParser *self)
{
  JinjaExpression *left = parse_and (self);

  while (jinja_skip_name (self, "or"))
    left = binary (self, JINJA_EXPR_OR, left, parse_and (self));
  return left;
}

JinjaExpression *
jinja_parse_expression (JinjaParser *self, gboolean conditional)
{
  const JinjaToken *start = self->token;
  JinjaExpression *expression;

  jinja_enter (self->run);
  expression = parse_or (self);
  while (conditional && jinja_skip_name (self, "if"))
    {
      JinjaExpression *choice = expression_new (self, JINJA_EXPR_CONDITIONAL);

      choice->line = start->line;
      choice->conditional.yes = expression;
      self->soft++;
      choice->conditional.test = parse_or (self);
      if (jinja_skip_name (self, "else"))
        choice->conditional.no = jinja_parse_expression (self, TRUE);
      self->soft--;
      expression = choice;
    }
  jinja_leave (self->run);
  return expression;
}
