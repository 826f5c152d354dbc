/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-parser.h"

/*
 * Which names a body hides.
 *
 * Jinja2 compiles a template to a Python function whose local variables are
 * the names that a scope sets; one that is set without having been read
 * before is a fresh variable from the start of its scope, so that what has
 * the same name outside is not seen by inner scopes either, even before the
 * assignment. A name that is read first, or set on some ways through an if
 * only, starts with the value from outside. This follows the analysis of
 * Jinja2's idtracking.py, scope by scope.
 */
typedef enum {
  UNKNOWN,
  RESOLVED,  /* read first: from the variables of the render */
  ALIAS,     /* set first, and known outside, or read first from there */
  UNDEFINED, /* set first, and known nowhere else: hidden */
  PARAMETER,
} Load;

typedef struct _Symbols {
  const struct _Symbols *parent;
  guint8 *loads;  /* Load, by symbol */
  guint8 *stores; /* by symbol */
} Symbols;

typedef struct {
  JinjaRun *run;
  guint n_symbols;
  guint loop;
} Analysis;

static void visit_expression (Analysis *self, Symbols *symbols,
                              const JinjaExpression *expression);
static void visit_body (Analysis *self, Symbols *symbols,
                        const JinjaBody *body);

static Symbols
symbols_new (Analysis *self, const Symbols *parent)
{
  return (Symbols) { .parent = parent,
                     .loads = jinja_alloc (self->run, self->n_symbols),
                     .stores = jinja_alloc (self->run, self->n_symbols) };
}

static gboolean
is_known (const Symbols *symbols, guint symbol)
{
  for (; symbols != NULL; symbols = symbols->parent)
    if (symbols->loads[symbol] != UNKNOWN)
      return TRUE;
  return FALSE;
}

static void
load (Symbols *symbols, guint symbol)
{
  if (!is_known (symbols, symbol))
    symbols->loads[symbol] = RESOLVED;
}

static void
store (Symbols *symbols, guint symbol)
{
  symbols->stores[symbol] = TRUE;
  if (symbols->loads[symbol] == UNKNOWN)
    symbols->loads[symbol] =
        is_known (symbols->parent, symbol) ? ALIAS : UNDEFINED;
}

static void
declare (Symbols *symbols, guint symbol)
{
  symbols->stores[symbol] = TRUE;
  symbols->loads[symbol] = PARAMETER;
}

/* Expressions */

static void
visit_list (Analysis *self, Symbols *symbols, const JinjaExpressionList *list)
{
  for (guint i = 0; i < list->n_items; i++)
    visit_expression (self, symbols, list->items[i]);
}

static void
visit_arguments (Analysis *self, Symbols *symbols,
                 const JinjaCallArguments *arguments)
{
  visit_list (self, symbols, &arguments->positional);
  visit_list (self, symbols, &arguments->keywords);
  visit_expression (self, symbols, arguments->star);
  visit_expression (self, symbols, arguments->star_star);
}

static void
visit_expression (Analysis *self, Symbols *symbols,
                  const JinjaExpression *expression)
{
  if (expression == NULL)
    return;
  jinja_enter (self->run);
  self->run->line = expression->line;
  switch ((JinjaExpressionKind) expression->kind)
    {
    case JINJA_EXPR_CONSTANT:
      break;
    case JINJA_EXPR_NAME:
      load (symbols, expression->name.symbol);
      break;
    case JINJA_EXPR_LIST:
    case JINJA_EXPR_TUPLE:
    case JINJA_EXPR_DICT:
    case JINJA_EXPR_CONCAT:
      visit_list (self, symbols, &expression->list);
      break;
    case JINJA_EXPR_NOT:
    case JINJA_EXPR_NEGATIVE:
    case JINJA_EXPR_POSITIVE:
      visit_expression (self, symbols, expression->operand);
      break;
    case JINJA_EXPR_AND:
    case JINJA_EXPR_OR:
    case JINJA_EXPR_ARITHMETIC:
      visit_expression (self, symbols, expression->binary.left);
      visit_expression (self, symbols, expression->binary.right);
      break;
    case JINJA_EXPR_COMPARE:
      visit_list (self, symbols, &expression->compare.operands);
      break;
    case JINJA_EXPR_CONDITIONAL:
      visit_expression (self, symbols, expression->conditional.test);
      visit_expression (self, symbols, expression->conditional.yes);
      visit_expression (self, symbols, expression->conditional.no);
      break;
    case JINJA_EXPR_ATTRIBUTE:
      visit_expression (self, symbols, expression->attribute.object);
      break;
    case JINJA_EXPR_ITEM:
      visit_expression (self, symbols, expression->item.object);
      visit_expression (self, symbols, expression->item.index);
      break;
    case JINJA_EXPR_SLICE:
      visit_expression (self, symbols, expression->slice.object);
      visit_expression (self, symbols, expression->slice.start);
      visit_expression (self, symbols, expression->slice.stop);
      visit_expression (self, symbols, expression->slice.step);
      break;
    case JINJA_EXPR_CALL:
      visit_expression (self, symbols, expression->call.callee);
      visit_arguments (self, symbols, expression->call.arguments);
      break;
    case JINJA_EXPR_FILTER:
    case JINJA_EXPR_TEST:
      visit_expression (self, symbols, expression->apply.value);
      visit_arguments (self, symbols, expression->apply.arguments);
      break;
    }
  jinja_leave (self->run);
}

static void
visit_target (Symbols *symbols, const JinjaExpression *target,
              gboolean parameter)
{
  if (target->kind == JINJA_EXPR_NAME)
    {
      if (parameter)
        declare (symbols, target->name.symbol);
      else
        store (symbols, target->name.symbol);
    }
  else if (target->kind == JINJA_EXPR_ATTRIBUTE)
    load (symbols, target->attribute.object->name.symbol);
  else
    for (guint i = 0; i < target->list.n_items; i++)
      visit_target (symbols, target->list.items[i], parameter);
}

/* Statements, within one scope */

/* Each branch starts from what was known before the if. What only some
 * branches set comes from outside otherwise. */
static void
visit_if (Analysis *self, Symbols *symbols, const JinjaStatement *statement)
{
  guint n = statement->condition.n_branches;
  gboolean otherwise = statement->condition.branches[n - 1].test == NULL;
  guint *counts = jinja_new_n (self->run, guint, self->n_symbols);
  Symbols before = symbols_new (self, symbols->parent);

  visit_expression (self, symbols, statement->condition.branches[0].test);
  memcpy (before.loads, symbols->loads, self->n_symbols);
  memcpy (before.stores, symbols->stores, self->n_symbols);
  for (guint i = 0; i < n; i++)
    {
      const JinjaBranch *branch = &statement->condition.branches[i];
      Symbols own = symbols_new (self, symbols->parent);

      memcpy (own.loads, before.loads, self->n_symbols);
      memcpy (own.stores, before.stores, self->n_symbols);
      if (i > 0)
        visit_expression (self, &own, branch->test);
      visit_body (self, &own, &branch->body);
      jinja_step (self->run, self->n_symbols / 4);
      for (guint s = 0; s < self->n_symbols; s++)
        {
          if (own.loads[s] != UNKNOWN && own.loads[s] != before.loads[s])
            symbols->loads[s] = own.loads[s];
          counts[s] += own.stores[s] && !before.stores[s];
          symbols->stores[s] |= own.stores[s];
        }
    }
  for (guint s = 0; s < self->n_symbols; s++)
    if (counts[s] > 0 && (counts[s] < n || !otherwise))
      symbols->loads[s] = is_known (symbols->parent, s) ? ALIAS : RESOLVED;
}

static void
visit_statement (Analysis *self, Symbols *symbols,
                 const JinjaStatement *statement)
{
  switch ((JinjaStatementKind) statement->kind)
    {
    case JINJA_STMT_PRINT:
      visit_list (self, symbols, &statement->print);
      break;
    case JINJA_STMT_IF:
      visit_if (self, symbols, statement);
      break;
    case JINJA_STMT_FOR:
      visit_expression (self, symbols, statement->loop.iterable);
      break;
    case JINJA_STMT_SET:
      visit_expression (self, symbols, statement->set.value);
      visit_target (symbols, statement->set.target, FALSE);
      break;
    case JINJA_STMT_SET_BLOCK:
      visit_target (symbols, statement->set.target, FALSE);
      break;
    case JINJA_STMT_MACRO:
      store (symbols, statement->macro->name.symbol);
      break;
    case JINJA_STMT_CALL:
      visit_expression (self, symbols, statement->call.call);
      break;
    case JINJA_STMT_FILTER:
      visit_expression (self, symbols, statement->block.filter);
      break;
    case JINJA_STMT_WITH:
      visit_list (self, symbols, &statement->block.values);
      break;
    default:
      break;
    }
}

static void
visit_body (Analysis *self, Symbols *symbols, const JinjaBody *body)
{
  jinja_enter (self->run);
  for (guint i = 0; i < body->n_statements; i++)
    {
      self->run->line = body->statements[i]->line;
      visit_statement (self, symbols, body->statements[i]);
    }
  jinja_leave (self->run);
}

/* Scopes */

static void analyse_scopes (Analysis *self, const Symbols *symbols,
                            const JinjaBody *body);

static void
note_hidden (Analysis *self, const Symbols *symbols, JinjaBody *body)
{
  guint n = 0;

  for (guint s = 0; s < self->n_symbols; s++)
    n += symbols->loads[s] == UNDEFINED;
  body->hidden = jinja_new_n (self->run, guint, n);
  for (guint s = 0; s < self->n_symbols; s++)
    if (symbols->loads[s] == UNDEFINED)
      body->hidden[body->n_hidden++] = s;
}

/* A body in the scope @symbols, which may have parameters already. */
static void
analyse_scope (Analysis *self, Symbols *symbols, JinjaBody *body)
{
  jinja_enter (self->run);
  jinja_step (self->run, self->n_symbols / 4);
  visit_body (self, symbols, body);
  note_hidden (self, symbols, body);
  analyse_scopes (self, symbols, body);
  jinja_leave (self->run);
}

static void
analyse_macro (Analysis *self, const Symbols *outer,
               JinjaMacroDefinition *macro)
{
  Symbols symbols = symbols_new (self, outer);

  for (guint i = 0; i < macro->n_parameters; i++)
    declare (&symbols, macro->parameters[i].symbol);
  for (guint i = 0; i < macro->n_parameters; i++)
    visit_expression (self, &symbols, macro->defaults[i]);
  analyse_scope (self, &symbols, &macro->body);
}

static void
analyse_loop (Analysis *self, const Symbols *outer, JinjaStatement *statement)
{
  Symbols symbols = symbols_new (self, outer);
  Symbols otherwise = symbols_new (self, outer);

  declare (&symbols, self->loop);
  visit_target (&symbols, statement->loop.target, TRUE);
  analyse_scope (self, &symbols, &statement->loop.body);
  analyse_scope (self, &otherwise, &statement->loop.otherwise);
}

static void
analyse_statement (Analysis *self, const Symbols *outer,
                   JinjaStatement *statement)
{
  Symbols symbols;

  switch ((JinjaStatementKind) statement->kind)
    {
    case JINJA_STMT_IF:
      for (guint i = 0; i < statement->condition.n_branches; i++)
        analyse_scopes (self, outer, &statement->condition.branches[i].body);
      break;
    case JINJA_STMT_FOR:
      analyse_loop (self, outer, statement);
      break;
    case JINJA_STMT_SET_BLOCK:
      symbols = symbols_new (self, outer);
      analyse_scope (self, &symbols, &statement->set.body);
      break;
    case JINJA_STMT_MACRO:
      analyse_macro (self, outer, statement->macro);
      break;
    case JINJA_STMT_CALL:
    case JINJA_STMT_GENERATION:
      analyse_macro (self, outer, statement->call.caller);
      break;
    case JINJA_STMT_FILTER:
      symbols = symbols_new (self, outer);
      analyse_scope (self, &symbols, &statement->block.body);
      break;
    case JINJA_STMT_WITH:
      symbols = symbols_new (self, outer);
      for (guint i = 0; i < statement->block.targets.n_items; i++)
        visit_target (&symbols, statement->block.targets.items[i], TRUE);
      analyse_scope (self, &symbols, &statement->block.body);
      break;
    case JINJA_STMT_BLOCK:
      symbols = symbols_new (self, statement->block.scoped ? outer : NULL);
      analyse_scope (self, &symbols, &statement->block.body);
      break;
    default:
      break;
    }
}

static void
analyse_scopes (Analysis *self, const Symbols *symbols, const JinjaBody *body)
{
  jinja_enter (self->run);
  for (guint i = 0; i < body->n_statements; i++)
    analyse_statement (self, symbols, body->statements[i]);
  jinja_leave (self->run);
}

void
jinja_resolve_symbols (JinjaRun *run, JinjaTemplate *source)
{
  Analysis self = { .run = run,
                    .n_symbols = source->n_symbols,
                    .loop = source->loop };
  Symbols symbols = symbols_new (&self, NULL);

  run->max_depth = JINJA_MAX_DEPTH;
  analyse_scope (&self, &symbols, &source->body);
}
