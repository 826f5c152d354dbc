/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-macro.h"

#include "jinja-repr.h"
#include "jinja-text.h"

JinjaValue
jinja_macro_new (JinjaRun *run, JinjaScope *scope,
                 const JinjaMacroDefinition *definition)
{
  JinjaMacro *macro = jinja_new (run, JinjaMacro);

  macro->definition = definition;
  macro->scope = scope;
  jinja_scope_capture (scope);
  return (JinjaValue) { .kind = JINJA_MACRO, .macro = macro };
}

static JinjaValue
macro_name (JinjaRun *run, const JinjaMacroDefinition *definition)
{
  return definition->name.name.kind == JINJA_STRING
             ? definition->name.name
             : jinja_string_c (run, "caller");
}

static const JinjaKeyword *
find_keyword (const JinjaArguments *arguments, const JinjaValue *name,
              gboolean *used)
{
  for (guint i = 0; i < arguments->n_keywords; i++)
    if (!used[i] && jinja_string_same (&arguments->keywords[i].name, name))
      {
        used[i] = TRUE;
        return &arguments->keywords[i];
      }
  return NULL;
}

/* Parameters that were not given are bound as missing first, so that they
 * hide what is outside also while the defaults are evaluated. */
static void
bind_parameters (JinjaRun *run, JinjaScope *scope,
                 const JinjaMacroDefinition *definition,
                 const JinjaArguments *arguments, gboolean *used)
{
  for (guint i = 0; i < definition->n_parameters; i++)
    {
      const JinjaName *parameter = &definition->parameters[i];
      const JinjaKeyword *keyword;
      JinjaValue value = jinja_missing ();

      if (i < arguments->n_values)
        value = arguments->values[i];
      else
        {
          keyword = find_keyword (arguments, &parameter->name, used);
          if (keyword != NULL)
            value = keyword->value;
        }
      jinja_scope_set (run, scope, parameter->symbol, value);
    }
}

static void
evaluate_defaults (JinjaRun *run, JinjaScope *scope,
                   const JinjaMacroDefinition *definition)
{
  for (guint i = 0; i < definition->n_parameters; i++)
    {
      const JinjaName *parameter = &definition->parameters[i];
      JinjaValue value = jinja_scope_get (scope, parameter->symbol);

      if (value.kind != JINJA_MISSING)
        continue;
      if (definition->defaults[i] != NULL)
        value = jinja_evaluate (run, scope, definition->defaults[i]);
      else
        value = jinja_undefined_message (
            run, jinja_printf (
                     run,
                     "parameter '" JINJA_STRING_FORMAT "' was not provided",
                     JINJA_STRING_ARGS (&parameter->name)));
      jinja_scope_set (run, scope, parameter->symbol, value);
    }
}

static void
bind_caller (JinjaRun *run, JinjaScope *scope,
             const JinjaMacroDefinition *definition,
             const JinjaArguments *arguments, gboolean *used)
{
  JinjaValue name = jinja_string_c (run, "caller");
  const JinjaKeyword *keyword;

  if (!definition->uses_caller || definition->explicit_caller)
    return;
  keyword = find_keyword (arguments, &name, used);
  jinja_scope_set (run, scope, run->source->caller,
                   keyword != NULL
                       ? keyword->value
                       : jinja_undefined_message (run, "no caller defined"));
}

/* What no parameter took goes to varargs and kwargs, if the macro uses them. */
static void
bind_rest (JinjaRun *run, JinjaScope *scope,
           const JinjaMacroDefinition *definition,
           const JinjaArguments *arguments, const gboolean *used)
{
  JinjaValue name = macro_name (run, definition);
  JinjaDict *kwargs = jinja_dict_new (run);
  JinjaValue varargs = jinja_list_new (run, JINJA_TUPLE, 0);

  for (guint i = 0; i < arguments->n_keywords; i++)
    {
      if (used[i])
        continue;
      if (!definition->uses_kwargs)
        jinja_raise (run,
                     "macro '" JINJA_STRING_FORMAT
                     "' takes no keyword argument '" JINJA_STRING_FORMAT "'",
                     JINJA_STRING_ARGS (&name),
                     JINJA_STRING_ARGS (&arguments->keywords[i].name));
      jinja_dict_set (run, kwargs, arguments->keywords[i].name,
                      arguments->keywords[i].value);
    }
  if (definition->uses_kwargs)
    jinja_scope_set (run, scope, run->source->kwargs,
                     jinja_dict_value (kwargs));
  if (arguments->n_values > definition->n_parameters
      && !definition->uses_varargs)
    jinja_raise (run,
                 "macro '" JINJA_STRING_FORMAT
                 "' takes not more than %u argument(s)",
                 JINJA_STRING_ARGS (&name), definition->n_parameters);
  if (!definition->uses_varargs)
    return;
  for (guint i = definition->n_parameters; i < arguments->n_values; i++)
    jinja_list_append (run, &varargs, arguments->values[i]);
  jinja_scope_set (run, scope, run->source->varargs, varargs);
}

JinjaValue
jinja_call_macro (JinjaRun *run, const JinjaMacro *macro,
                  const JinjaArguments *arguments)
{
  const JinjaMacroDefinition *definition = macro->definition;
  JinjaScope *scope = jinja_scope_new (run, macro->scope);
  gboolean *used = jinja_new_n (run, gboolean, arguments->n_keywords);
  JinjaText *out = jinja_text_new (run, 0);

  jinja_scope_enter (run, scope, &definition->body);
  bind_parameters (run, scope, definition, arguments, used);
  bind_caller (run, scope, definition, arguments, used);
  bind_rest (run, scope, definition, arguments, used);
  evaluate_defaults (run, scope, definition);
  jinja_execute (run, scope, &definition->body, out);
  return jinja_text_string (out);
}

gboolean
jinja_find_macro_attribute (JinjaRun *run, const JinjaMacro *macro,
                            const JinjaValue *name, JinjaValue *ret)
{
  const JinjaMacroDefinition *definition = macro->definition;

  if (jinja_string_is (name, "name"))
    *ret = definition->name.name.kind == JINJA_STRING ? definition->name.name
                                                      : jinja_none ();
  else if (jinja_string_is (name, "arguments"))
    {
      *ret = jinja_list_new (run, JINJA_TUPLE, definition->n_parameters);
      for (guint i = 0; i < definition->n_parameters; i++)
        jinja_list_append (run, ret, definition->parameters[i].name);
    }
  else if (jinja_string_is (name, "catch_kwargs"))
    *ret = jinja_boolean (definition->uses_kwargs);
  else if (jinja_string_is (name, "catch_varargs"))
    *ret = jinja_boolean (definition->uses_varargs);
  else if (jinja_string_is (name, "caller"))
    *ret = jinja_boolean (definition->uses_caller);
  else
    return FALSE;
  return TRUE;
}

void
jinja_append_macro_repr (JinjaRun *run, JinjaText *text,
                         const JinjaMacro *macro)
{
  const JinjaValue *name = &macro->definition->name.name;

  if (name->kind != JINJA_STRING)
    {
      jinja_text_append_c (run, text, "<Macro anonymous>");
      return;
    }
  jinja_text_append_c (run, text, "<Macro ");
  jinja_append_repr (run, text, name);
  jinja_text_append_c (run, text, ">");
}
