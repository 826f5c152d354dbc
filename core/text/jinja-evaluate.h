/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-ast.h"

G_BEGIN_DECLS

typedef struct {
  guint symbol;
  JinjaValue value;
} JinjaBinding;

/* The names of a template, a loop body, a macro call, a with block. */
typedef struct _JinjaScope {
  struct _JinjaScope *parent;
  JinjaBinding *bindings;
  guint n_bindings;
  guint capacity;
  /* A macro refers to it: it may outlive the iteration it was made for. */
  gboolean captured;
} JinjaScope;

JinjaScope *jinja_scope_new (JinjaRun *run, JinjaScope *parent);
void jinja_scope_set (JinjaRun *run, JinjaScope *scope, guint symbol,
                      JinjaValue value);
/* JINJA_MISSING when no scope has it. */
JinjaValue jinja_scope_get (const JinjaScope *scope, guint symbol);
/* Hides the names that @body sets from what is outside. */
void jinja_scope_enter (JinjaRun *run, JinjaScope *scope,
                        const JinjaBody *body);
void jinja_scope_capture (JinjaScope *scope);

JinjaValue jinja_evaluate (JinjaRun *run, JinjaScope *scope,
                           const JinjaExpression *expression);
/* Filters without a first value get @text. */
JinjaValue jinja_apply_filters (JinjaRun *run, JinjaScope *scope,
                                const JinjaExpression *filter,
                                JinjaValue text);
/* A call block: @caller is passed as the keyword argument of that name. */
JinjaValue jinja_evaluate_call (JinjaRun *run, JinjaScope *scope,
                                const JinjaExpression *call,
                                const JinjaValue *caller);
JinjaValue jinja_call (JinjaRun *run, const JinjaValue *callee,
                       const JinjaArguments *arguments);
void jinja_assign (JinjaRun *run, JinjaScope *scope,
                   const JinjaExpression *target, JinjaValue value);

typedef enum {
  JINJA_FLOW_NEXT,
  JINJA_FLOW_BREAK,
  JINJA_FLOW_CONTINUE,
} JinjaFlow;

JinjaFlow jinja_execute (JinjaRun *run, JinjaScope *scope,
                         const JinjaBody *body, JinjaText *out);

G_END_DECLS
