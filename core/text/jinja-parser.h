/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-ast.h"
#include "jinja-lexer.h"

G_BEGIN_DECLS

/* The state of parsing, shared by the statement and the expression parser. */
typedef struct {
  JinjaRun *run;
  const JinjaToken *token; /* the current one */
  JinjaDict *symbols;      /* name: number */
  JinjaValue *names;
  guint n_names;
  guint names_capacity;
  struct _JinjaMacroNesting *nesting; /* the macros around here */
  guint loops; /* break and continue need one */
  guint soft;  /* in a branch: an unknown filter is an error only when run */
} JinjaParser;

JinjaTemplate *jinja_parse (JinjaRun *run, const char *source, gsize length);

/* Of the expression parser. */
JinjaExpression *jinja_parse_expression (JinjaParser *self,
                                         gboolean conditional);
/* Several expressions with commas between them are a tuple. Ends before the
 * names in @end_names ("in"), which may be NULL. */
JinjaExpression *jinja_parse_tuple (JinjaParser *self, gboolean conditional,
                                    const char *end_name);
/* A name, a tuple of names, or an attribute of a namespace. */
JinjaExpression *jinja_parse_target (JinjaParser *self, gboolean tuple,
                                     gboolean attribute, const char *end_name);
/* The filters from the current token on; the first takes @value. @inline_start:
 * the current token is the first filter's name, not a pipe. */
JinjaExpression *jinja_parse_filters (JinjaParser *self,
                                      JinjaExpression *value,
                                      gboolean inline_start);

/* Tokens. */
gboolean jinja_token_is (const JinjaParser *self, JinjaTokenKind kind);
gboolean jinja_token_is_name (const JinjaParser *self, const char *name);
gboolean jinja_skip (JinjaParser *self, JinjaTokenKind kind);
gboolean jinja_skip_name (JinjaParser *self, const char *name);
const JinjaToken *jinja_expect (JinjaParser *self, JinjaTokenKind kind);
void jinja_unexpected (JinjaParser *self) G_GNUC_NORETURN;
JinjaName jinja_intern (JinjaParser *self, JinjaValue name);
void jinja_expression_list_append (JinjaParser *self,
                                   JinjaExpressionList *list,
                                   JinjaExpression *item);
/* A name was read; macros want to know about caller, varargs and kwargs. */
void jinja_note_name (JinjaParser *self, const JinjaValue *name);

/* Fills in the hidden names of every body; see jinja-symbols.c. */
void jinja_resolve_symbols (JinjaRun *run, JinjaTemplate *source);

G_END_DECLS
