/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-parser.h"

#include "jinja-text.h"

typedef struct _JinjaMacroNesting {
  JinjaMacroDefinition *macro;
  struct _JinjaMacroNesting *outer;
} MacroNesting;

/* Tokens */

gboolean
jinja_token_is (const JinjaParser *self, JinjaTokenKind kind)
{
  return self->token->kind == kind;
}

gboolean
jinja_token_is_name (const JinjaParser *self, const char *name)
{
  return self->token->kind == JINJA_TOKEN_NAME
         && jinja_string_is (&self->token->value, name);
}

gboolean
jinja_skip (JinjaParser *self, JinjaTokenKind kind)
{
  if (!jinja_token_is (self, kind))
    return FALSE;
  self->token++;
  return TRUE;
}

gboolean
jinja_skip_name (JinjaParser *self, const char *name)
{
  if (!jinja_token_is_name (self, name))
    return FALSE;
  self->token++;
  return TRUE;
}

void
jinja_unexpected (JinjaParser *self)
{
  self->run->line = self->token->line;
  if (self->token->kind == JINJA_TOKEN_NAME)
    jinja_raise (self->run, "unexpected '" JINJA_STRING_FORMAT "'",
                 JINJA_STRING_ARGS (&self->token->value));
  jinja_raise (self->run, "unexpected %s",
               jinja_token_name (self->token->kind));
}

const JinjaToken *
jinja_expect (JinjaParser *self, JinjaTokenKind kind)
{
  self->run->line = self->token->line;
  if (self->token->kind != kind)
    {
      if (self->token->kind == JINJA_TOKEN_NAME)
        jinja_raise (self->run,
                     "expected %s, found '" JINJA_STRING_FORMAT "'",
                     jinja_token_name (kind),
                     JINJA_STRING_ARGS (&self->token->value));
      jinja_raise (self->run, "expected %s, found %s", jinja_token_name (kind),
                   jinja_token_name (self->token->kind));
    }
  return self->token++;
}

static void
expect_name (JinjaParser *self, const char *name)
{
  if (!jinja_skip_name (self, name))
    {
      self->run->line = self->token->line;
      jinja_raise (self->run, "expected '%s'", name);
    }
}

/* Names */

JinjaName
jinja_intern (JinjaParser *self, JinjaValue name)
{
  const JinjaValue *known = jinja_dict_get (self->run, self->symbols, &name);

  if (known != NULL)
    return (JinjaName) { .name = name, .symbol = (guint) known->integer };
  if (self->n_names == self->names_capacity)
    {
      guint capacity = self->names_capacity * 2 + 32;

      self->names =
          jinja_grow (self->run, self->names, self->n_names * sizeof name,
                      capacity * sizeof name);
      self->names_capacity = capacity;
    }
  jinja_dict_set (self->run, self->symbols, name,
                  jinja_integer (self->n_names));
  self->names[self->n_names] = name;
  return (JinjaName) { .name = name, .symbol = self->n_names++ };
}

void
jinja_note_name (JinjaParser *self, const JinjaValue *name)
{
  gboolean caller = jinja_string_is (name, "caller");
  gboolean varargs = jinja_string_is (name, "varargs");
  gboolean kwargs = jinja_string_is (name, "kwargs");

  if (!caller && !varargs && !kwargs)
    return;
  for (MacroNesting *at = self->nesting; at != NULL; at = at->outer)
    {
      at->macro->uses_caller |= caller;
      at->macro->uses_varargs |= varargs;
      at->macro->uses_kwargs |= kwargs;
    }
}

/* Statements */

static void parse_body (JinjaParser *self, JinjaBody *body,
                        const char *const *end_names);

static JinjaStatement *
statement_new (JinjaParser *self, JinjaStatementKind kind)
{
  JinjaStatement *statement = jinja_new (self->run, JinjaStatement);

  statement->kind = kind;
  statement->line = self->token->line;
  return statement;
}

static void
body_append (JinjaParser *self, JinjaBody *body, JinjaStatement *statement)
{
  if ((body->n_statements & (body->n_statements - 1)) == 0)
    body->statements = jinja_grow (
        self->run, body->statements,
        body->n_statements * sizeof (JinjaStatement *),
        MAX (body->n_statements * 2, 1) * sizeof (JinjaStatement *));
  body->statements[body->n_statements++] = statement;
}

/* The rest of an opening tag, the body, and the name of the end tag, which is
 * left as the current token. */
static void
parse_until (JinjaParser *self, JinjaBody *body, const char *const *end_names)
{
  jinja_skip (self, JINJA_TOKEN_COLON);
  jinja_expect (self, JINJA_TOKEN_BLOCK_END);
  parse_body (self, body, end_names);
}

/* A body with a scope of its own. It is not soft, even within an if. */
static void
parse_scope (JinjaParser *self, JinjaBody *body, const char *const *end_names)
{
  guint soft = self->soft;

  self->soft = 0;
  parse_until (self, body, end_names);
  self->soft = soft;
}

static void
parse_block_body (JinjaParser *self, JinjaBody *body, const char *end_name)
{
  const char *const end_names[] = { end_name, NULL };

  parse_scope (self, body, end_names);
  self->token++;
}

static JinjaStatement *
parse_if (JinjaParser *self)
{
  static const char *const end_names[] = { "elif", "else", "endif", NULL };
  JinjaStatement *statement = statement_new (self, JINJA_STMT_IF);
  guint n = 0;
  gboolean otherwise = FALSE;

  self->soft++;
  while (!jinja_skip_name (self, "endif"))
    {
      JinjaBranch *branch;

      if (otherwise)
        jinja_unexpected (self);
      otherwise = jinja_token_is_name (self, "else");
      self->token++; /* if, elif, else */
      if ((n & (n - 1)) == 0)
        statement->condition.branches =
            jinja_grow (self->run, statement->condition.branches,
                        n * sizeof (JinjaBranch),
                        MAX (n * 2, 1) * sizeof (JinjaBranch));
      branch = &statement->condition.branches[n++];
      if (!otherwise)
        branch->test = jinja_parse_tuple (self, FALSE, NULL);
      parse_until (self, &branch->body, end_names);
    }
  self->soft--;
  statement->condition.n_branches = n;
  return statement;
}

static JinjaStatement *
parse_for (JinjaParser *self)
{
  static const char *const end_names[] = { "endfor", "else", NULL };
  JinjaStatement *statement = statement_new (self, JINJA_STMT_FOR);

  self->token++;
  statement->loop.target = jinja_parse_target (self, TRUE, FALSE, "in");
  if (statement->loop.target->kind == JINJA_EXPR_NAME
      && jinja_string_is (&statement->loop.target->name.name, "loop"))
    jinja_raise (self->run, "cannot assign to the special variable loop");
  expect_name (self, "in");
  statement->loop.iterable = jinja_parse_tuple (self, FALSE, "recursive");
  if (jinja_skip_name (self, "if"))
    statement->loop.test = jinja_parse_expression (self, TRUE);
  statement->loop.recursive = jinja_skip_name (self, "recursive");
  self->loops++;
  parse_scope (self, &statement->loop.body, end_names);
  self->loops--;
  if (jinja_skip_name (self, "else"))
    parse_block_body (self, &statement->loop.otherwise, "endfor");
  else
    expect_name (self, "endfor");
  return statement;
}

static JinjaStatement *
parse_set (JinjaParser *self)
{
  JinjaStatement *statement = statement_new (self, JINJA_STMT_SET);

  self->token++;
  statement->set.target = jinja_parse_target (self, TRUE, TRUE, NULL);
  if (jinja_skip (self, JINJA_TOKEN_ASSIGN))
    {
      statement->set.value = jinja_parse_tuple (self, TRUE, NULL);
      return statement;
    }
  statement->kind = JINJA_STMT_SET_BLOCK;
  statement->set.value = jinja_parse_filters (self, NULL, FALSE);
  parse_block_body (self, &statement->set.body, "endset");
  return statement;
}

static void
parse_signature (JinjaParser *self, JinjaMacroDefinition *macro)
{
  guint n = 0;

  jinja_expect (self, JINJA_TOKEN_LEFT_PAREN);
  while (!jinja_token_is (self, JINJA_TOKEN_RIGHT_PAREN))
    {
      JinjaExpression *target;

      if (n > 0)
        jinja_expect (self, JINJA_TOKEN_COMMA);
      target = jinja_parse_target (self, FALSE, FALSE, NULL);
      if (target->kind != JINJA_EXPR_NAME)
        jinja_raise (self->run, "a parameter of a macro must be a name");
      macro->parameters = jinja_grow (self->run, macro->parameters,
                                      n * sizeof (JinjaName),
                                      (n + 1) * sizeof (JinjaName));
      macro->defaults = jinja_grow (self->run, macro->defaults,
                                    n * sizeof (JinjaExpression *),
                                    (n + 1) * sizeof (JinjaExpression *));
      macro->parameters[n] = target->name;
      macro->explicit_caller |= jinja_string_is (&target->name.name, "caller");
      if (jinja_skip (self, JINJA_TOKEN_ASSIGN))
        macro->defaults[n] = jinja_parse_expression (self, TRUE);
      else if (n > 0 && macro->defaults[n - 1] != NULL)
        jinja_raise (self->run, "a parameter without a default follows one "
                                "with a default");
      macro->n_parameters = ++n;
    }
  jinja_expect (self, JINJA_TOKEN_RIGHT_PAREN);
}

/* The body of a macro; loops around it are not its own. */
static void
parse_macro_body (JinjaParser *self, JinjaMacroDefinition *macro,
                  const char *end_name)
{
  MacroNesting nesting = { .macro = macro, .outer = self->nesting };
  guint loops = self->loops;

  macro->uses_caller = FALSE;
  macro->uses_varargs = FALSE;
  macro->uses_kwargs = FALSE;
  self->nesting = &nesting;
  self->loops = 0;
  parse_block_body (self, &macro->body, end_name);
  self->loops = loops;
  self->nesting = nesting.outer;
}

static JinjaStatement *
parse_macro (JinjaParser *self)
{
  JinjaStatement *statement = statement_new (self, JINJA_STMT_MACRO);
  JinjaMacroDefinition *macro = jinja_new (self->run, JinjaMacroDefinition);
  JinjaExpression *target;

  self->token++;
  target = jinja_parse_target (self, FALSE, FALSE, NULL);
  if (target->kind != JINJA_EXPR_NAME)
    jinja_raise (self->run, "the name of a macro must be a name");
  macro->name = target->name;
  statement->macro = macro;
  parse_signature (self, macro);
  parse_macro_body (self, macro, "endmacro");
  return statement;
}

static JinjaStatement *
parse_call_block (JinjaParser *self)
{
  JinjaStatement *statement = statement_new (self, JINJA_STMT_CALL);

  self->token++;
  statement->call.caller = jinja_new (self->run, JinjaMacroDefinition);
  if (jinja_token_is (self, JINJA_TOKEN_LEFT_PAREN))
    parse_signature (self, statement->call.caller);
  statement->call.call = jinja_parse_expression (self, TRUE);
  if (statement->call.call->kind != JINJA_EXPR_CALL)
    jinja_raise (self->run, "expected a call");
  parse_macro_body (self, statement->call.caller, "endcall");
  return statement;
}

static JinjaStatement *
parse_generation (JinjaParser *self)
{
  JinjaStatement *statement = statement_new (self, JINJA_STMT_GENERATION);

  self->token++;
  statement->call.caller = jinja_new (self->run, JinjaMacroDefinition);
  parse_macro_body (self, statement->call.caller, "endgeneration");
  return statement;
}

static JinjaStatement *
parse_filter_block (JinjaParser *self)
{
  JinjaStatement *statement = statement_new (self, JINJA_STMT_FILTER);

  self->token++;
  statement->block.filter = jinja_parse_filters (self, NULL, TRUE);
  parse_block_body (self, &statement->block.body, "endfilter");
  return statement;
}

static JinjaStatement *
parse_with (JinjaParser *self)
{
  JinjaStatement *statement = statement_new (self, JINJA_STMT_WITH);

  self->token++;
  while (!jinja_token_is (self, JINJA_TOKEN_BLOCK_END))
    {
      if (statement->block.targets.n_items > 0)
        jinja_expect (self, JINJA_TOKEN_COMMA);
      jinja_expression_list_append (
          self, &statement->block.targets,
          jinja_parse_target (self, TRUE, FALSE, NULL));
      jinja_expect (self, JINJA_TOKEN_ASSIGN);
      jinja_expression_list_append (self, &statement->block.values,
                                    jinja_parse_expression (self, TRUE));
    }
  parse_block_body (self, &statement->block.body, "endwith");
  return statement;
}

static JinjaStatement *
parse_block (JinjaParser *self)
{
  JinjaStatement *statement = statement_new (self, JINJA_STMT_BLOCK);
  guint loops = self->loops;

  self->token++;
  statement->block.name = jinja_expect (self, JINJA_TOKEN_NAME)->value;
  statement->block.scoped = jinja_skip_name (self, "scoped");
  jinja_skip_name (self, "required");
  self->loops = 0;
  parse_block_body (self, &statement->block.body, "endblock");
  self->loops = loops;
  if (jinja_token_is (self, JINJA_TOKEN_NAME))
    self->token++; /* the name again */
  return statement;
}

static JinjaStatement *
parse_print (JinjaParser *self)
{
  JinjaStatement *statement = statement_new (self, JINJA_STMT_PRINT);

  self->token++;
  while (!jinja_token_is (self, JINJA_TOKEN_BLOCK_END))
    {
      if (statement->print.n_items > 0)
        jinja_expect (self, JINJA_TOKEN_COMMA);
      jinja_expression_list_append (self, &statement->print,
                                    jinja_parse_expression (self, TRUE));
    }
  return statement;
}

static JinjaStatement *
parse_jump (JinjaParser *self, JinjaStatementKind kind)
{
  JinjaStatement *statement = statement_new (self, kind);

  if (self->loops == 0)
    jinja_raise (self->run, "'" JINJA_STRING_FORMAT "' outside of a loop",
                 JINJA_STRING_ARGS (&self->token->value));
  self->token++;
  return statement;
}

/* include, import, from, extends: each would read another template. They are
 * an error when reached, as in an environment without a loader. */
static JinjaStatement *
parse_unsupported (JinjaParser *self)
{
  JinjaStatement *statement = statement_new (self, JINJA_STMT_UNSUPPORTED);

  statement->block.name = self->token->value;
  while (!jinja_token_is (self, JINJA_TOKEN_BLOCK_END)
         && !jinja_token_is (self, JINJA_TOKEN_END))
    self->token++;
  return statement;
}

typedef JinjaStatement *(*ParseStatement) (JinjaParser *self);

static ParseStatement
find_statement (const JinjaParser *self)
{
  static const struct {
    const char *name;
    ParseStatement parse;
  } table[] = {
    { "if", parse_if },
    { "for", parse_for },
    { "set", parse_set },
    { "macro", parse_macro },
    { "call", parse_call_block },
    { "generation", parse_generation },
    { "filter", parse_filter_block },
    { "with", parse_with },
    { "block", parse_block },
    { "print", parse_print },
    { "include", parse_unsupported },
    { "import", parse_unsupported },
    { "from", parse_unsupported },
    { "extends", parse_unsupported },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (table); i++)
    if (jinja_token_is_name (self, table[i].name))
      return table[i].parse;
  return NULL;
}

static JinjaStatement *
parse_statement (JinjaParser *self)
{
  ParseStatement parse;

  self->run->line = self->token->line;
  if (!jinja_token_is (self, JINJA_TOKEN_NAME))
    jinja_raise (self->run, "tag name expected");
  if (jinja_token_is_name (self, "break"))
    return parse_jump (self, JINJA_STMT_BREAK);
  if (jinja_token_is_name (self, "continue"))
    return parse_jump (self, JINJA_STMT_CONTINUE);
  parse = find_statement (self);
  if (parse == NULL)
    jinja_raise (self->run,
                 "encountered unknown tag '" JINJA_STRING_FORMAT "'",
                 JINJA_STRING_ARGS (&self->token->value));
  return parse (self);
}

static gboolean
ends_body (const JinjaParser *self, const char *const *end_names)
{
  for (; end_names != NULL && *end_names != NULL; end_names++)
    if (jinja_token_is_name (self, *end_names))
      return TRUE;
  return FALSE;
}

static void
parse_output (JinjaParser *self, JinjaBody *body)
{
  JinjaStatement *statement = statement_new (self, JINJA_STMT_TEXT);

  if (jinja_token_is (self, JINJA_TOKEN_DATA))
    statement->text = (self->token++)->value;
  else
    {
      jinja_expect (self, JINJA_TOKEN_VARIABLE_BEGIN);
      statement->kind = JINJA_STMT_PRINT;
      jinja_expression_list_append (self, &statement->print,
                                    jinja_parse_tuple (self, TRUE, NULL));
      jinja_expect (self, JINJA_TOKEN_VARIABLE_END);
    }
  body_append (self, body, statement);
}

static void
parse_body (JinjaParser *self, JinjaBody *body, const char *const *end_names)
{
  jinja_enter (self->run);
  while (!jinja_token_is (self, JINJA_TOKEN_END))
    {
      jinja_step (self->run, 1);
      if (!jinja_skip (self, JINJA_TOKEN_BLOCK_BEGIN))
        {
          parse_output (self, body);
          continue;
        }
      if (ends_body (self, end_names))
        {
          jinja_leave (self->run);
          return;
        }
      body_append (self, body, parse_statement (self));
      jinja_expect (self, JINJA_TOKEN_BLOCK_END);
    }
  if (end_names != NULL)
    {
      self->run->line = self->token->line;
      jinja_raise (self->run, "unexpected end of template, expected '%s'",
                   end_names[0]);
    }
  jinja_leave (self->run);
}

static guint
intern (JinjaParser *self, const char *name)
{
  return jinja_intern (self, jinja_string_c (self->run, name)).symbol;
}

JinjaTemplate *
jinja_parse (JinjaRun *run, const char *source, gsize length)
{
  JinjaTemplate *template = jinja_new (run, JinjaTemplate);
  JinjaParser parser = { .run = run };

  run->line = 1;
  run->max_depth = JINJA_MAX_PARSE_DEPTH;
  parser.token = jinja_tokenize (run, source, length);
  parser.symbols = jinja_dict_new (run);
  template->caller = intern (&parser, "caller");
  template->varargs = intern (&parser, "varargs");
  template->kwargs = intern (&parser, "kwargs");
  template->loop = intern (&parser, "loop");
  parse_body (&parser, &template->body, NULL);
  template->names = parser.names;
  template->n_symbols = parser.n_names;
  template->size = length;
  jinja_resolve_symbols (run, template);
  return template;
}
