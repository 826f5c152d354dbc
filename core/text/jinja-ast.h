/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-number.h"
#include "jinja-operators.h"
#include "jinja-value.h"

G_BEGIN_DECLS

typedef struct _JinjaExpression JinjaExpression;
typedef struct _JinjaStatement JinjaStatement;

/* A name of the template: its number is what scopes are searched by. */
typedef struct {
  JinjaValue name;
  guint symbol;
} JinjaName;

typedef enum {
  JINJA_EXPR_CONSTANT,
  JINJA_EXPR_NAME,
  JINJA_EXPR_LIST,
  JINJA_EXPR_TUPLE,
  JINJA_EXPR_DICT,
  JINJA_EXPR_CONCAT,
  JINJA_EXPR_NOT,
  JINJA_EXPR_AND,
  JINJA_EXPR_OR,
  JINJA_EXPR_NEGATIVE,
  JINJA_EXPR_POSITIVE,
  JINJA_EXPR_ARITHMETIC,
  JINJA_EXPR_COMPARE,
  JINJA_EXPR_CONDITIONAL,
  JINJA_EXPR_ATTRIBUTE,
  JINJA_EXPR_ITEM,
  JINJA_EXPR_SLICE,
  JINJA_EXPR_CALL,
  JINJA_EXPR_FILTER,
  JINJA_EXPR_TEST,
} JinjaExpressionKind;

typedef struct {
  JinjaExpression **items;
  guint n_items;
} JinjaExpressionList;

typedef struct {
  JinjaExpressionList positional;
  JinjaValue *names; /* of the keyword arguments */
  JinjaExpressionList keywords;
  JinjaExpression *star;      /* *args, or NULL */
  JinjaExpression *star_star; /* **kwargs, or NULL */
} JinjaCallArguments;

struct _JinjaExpression {
  guint8 kind;
  guint8 operation; /* JinjaArithmetic */
  guint line;
  union {
    JinjaValue constant;
    JinjaName name;
    JinjaExpressionList list; /* dict: keys and values in turn */
    JinjaExpression *operand;
    struct {
      JinjaExpression *left;
      JinjaExpression *right;
    } binary; /* and, or, arithmetic */
    struct {
      JinjaExpressionList operands; /* one more than comparisons */
      guint8 *comparisons;          /* JinjaComparison */
    } compare;
    struct {
      JinjaExpression *test;
      JinjaExpression *yes;
      JinjaExpression *no; /* or NULL */
    } conditional;
    struct {
      JinjaExpression *object;
      JinjaValue name;
    } attribute;
    struct {
      JinjaExpression *object;
      JinjaExpression *index;
    } item;
    struct {
      JinjaExpression *object;
      JinjaExpression *start; /* each may be NULL */
      JinjaExpression *stop;
      JinjaExpression *step;
    } slice;
    struct {
      JinjaExpression *callee;
      JinjaCallArguments *arguments;
    } call;
    struct {
      /* NULL: the text of the filter or set block around it */
      JinjaExpression *value;
      const JinjaBuiltin *builtin; /* NULL: unknown, an error when reached */
      JinjaValue name;
      JinjaCallArguments *arguments;
    } apply; /* filter, test */
  };
};

typedef struct {
  JinjaStatement **statements;
  guint n_statements;
  /* When the body opens a scope: names that it sets, so that the same names
   * outside of it are hidden from its start. */
  guint *hidden;
  guint n_hidden;
} JinjaBody;

typedef struct {
  JinjaExpression *test; /* NULL: else */
  JinjaBody body;
} JinjaBranch;

typedef struct {
  JinjaName name; /* unset for call blocks */
  JinjaName *parameters;
  JinjaExpression **defaults; /* NULL where there is none */
  guint n_parameters;
  JinjaBody body;
  gboolean explicit_caller; /* caller is among the parameters */
  gboolean uses_caller;
  gboolean uses_varargs;
  gboolean uses_kwargs;
} JinjaMacroDefinition;

typedef enum {
  JINJA_STMT_TEXT,
  JINJA_STMT_PRINT,
  JINJA_STMT_IF,
  JINJA_STMT_FOR,
  JINJA_STMT_SET,
  JINJA_STMT_SET_BLOCK,
  JINJA_STMT_MACRO,
  JINJA_STMT_CALL,
  JINJA_STMT_FILTER,
  JINJA_STMT_WITH,
  JINJA_STMT_BLOCK,
  JINJA_STMT_GENERATION,
  JINJA_STMT_BREAK,
  JINJA_STMT_CONTINUE,
  JINJA_STMT_UNSUPPORTED, /* include and the like: there are no other files */
} JinjaStatementKind;

struct _JinjaStatement {
  guint8 kind;
  guint line;
  union {
    JinjaValue text;
    JinjaExpressionList print;
    struct {
      JinjaBranch *branches;
      guint n_branches;
    } condition;
    struct {
      JinjaExpression *target;
      JinjaExpression *iterable;
      JinjaExpression *test; /* or NULL */
      JinjaBody body;
      JinjaBody otherwise;
      gboolean recursive;
    } loop;
    struct {
      JinjaExpression *target;
      JinjaExpression *value; /* set blocks: a filter, or NULL */
      JinjaBody body;         /* set blocks */
    } set;
    JinjaMacroDefinition *macro;
    struct {
      JinjaExpression *call;
      JinjaMacroDefinition *caller;
    } call;
    struct {
      JinjaExpression *filter; /* filter blocks */
      JinjaExpressionList targets; /* with */
      JinjaExpressionList values;
      JinjaValue name; /* blocks, unsupported */
      gboolean scoped; /* blocks */
      JinjaBody body;
    } block;
  };
};

/* A parsed template. */
typedef struct _JinjaTemplate {
  JinjaBody body;
  const JinjaValue *names; /* by symbol */
  guint n_symbols;
  guint caller; /* symbols the engine itself sets */
  guint varargs;
  guint kwargs;
  guint loop;
  gsize size; /* bytes of source */
} JinjaTemplate;

G_END_DECLS
