/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-builtins.h"

#include "jinja-loop.h"
#include "jinja-operators.h"
#include "jinja-text.h"

static const JinjaBuiltin *
find (const JinjaBuiltin *table, const JinjaValue *name)
{
  for (; table != NULL && table->name != NULL; table++)
    if (jinja_string_is (name, table->name))
      return table;
  return NULL;
}

const JinjaBuiltin *
jinja_find_filter (const JinjaValue *name)
{
  const JinjaBuiltin *builtin = find (jinja_sequence_filters, name);

  if (builtin == NULL)
    builtin = find (jinja_text_filters, name);
  return builtin != NULL ? builtin : find (jinja_value_filters, name);
}

const JinjaBuiltin *
jinja_find_test (const JinjaValue *name)
{
  return find (jinja_tests, name);
}

const JinjaBuiltin *
jinja_find_global (const JinjaValue *name)
{
  return find (jinja_globals, name);
}

const JinjaBuiltin *
jinja_find_method (const JinjaValue *object, const JinjaValue *name)
{
  const JinjaBuiltin *builtin;

  switch (object->kind)
    {
    case JINJA_STRING:
      builtin = find (jinja_string_methods, name);
      return builtin != NULL ? builtin : find (jinja_string_predicates, name);
    case JINJA_LIST:
      return find (jinja_list_methods, name);
    case JINJA_TUPLE:
    case JINJA_RANGE:
      return jinja_string_is (name, "copy") ? NULL
                                            : find (jinja_list_methods, name);
    case JINJA_DICT:
      return find (jinja_dict_methods, name);
    case JINJA_LOOP:
      return find (jinja_loop_methods, name);
    case JINJA_CYCLER:
      return find (jinja_cycler_methods, name);
    case JINJA_FLOAT:
      return find (jinja_number_methods, name);
    default:
      return NULL;
    }
}

/* Which parameter has the name, or -1. */
static int
find_parameter (const char *parameters, const JinjaValue *name)
{
  for (int i = 0; *parameters != '\0'; i++)
    {
      gsize length = strcspn (parameters, ",");

      if (length == name->length
          && memcmp (parameters, jinja_string_bytes (name), length) == 0)
        return i;
      parameters += length;
      parameters += *parameters == ',';
    }
  return -1;
}

static guint
count_parameters (const char *parameters)
{
  guint n = *parameters != '\0';

  for (; *parameters != '\0'; parameters++)
    n += *parameters == ',';
  return n;
}

static void
bind_arguments (JinjaRun *run, const JinjaBuiltin *builtin,
                const JinjaArguments *arguments, JinjaValue *bound)
{
  guint n = count_parameters (builtin->parameters);

  if (arguments->n_values > n)
    jinja_raise (run, "%s takes at most %u argument(s) (%u given)",
                 builtin->name, n, arguments->n_values);
  for (guint i = 0; i < arguments->n_values; i++)
    bound[i] = arguments->values[i];
  for (guint i = 0; i < arguments->n_keywords; i++)
    {
      const JinjaKeyword *keyword = &arguments->keywords[i];
      int at = find_parameter (builtin->parameters, &keyword->name);

      if (at < 0)
        jinja_raise (run,
                     "%s got an unexpected keyword argument "
                     "'" JINJA_STRING_FORMAT "'",
                     builtin->name, JINJA_STRING_ARGS (&keyword->name));
      if (bound[at].kind != JINJA_MISSING)
        jinja_raise (run,
                     "%s got multiple values for argument "
                     "'" JINJA_STRING_FORMAT "'",
                     builtin->name, JINJA_STRING_ARGS (&keyword->name));
      bound[at] = keyword->value;
    }
  for (guint i = 0; i < builtin->n_required; i++)
    if (bound[i].kind == JINJA_MISSING)
      jinja_raise (run, "%s misses argument %u", builtin->name, i + 1);
}

JinjaValue
jinja_call_builtin (JinjaRun *run, const JinjaBuiltin *builtin,
                    const JinjaValue *self, const JinjaArguments *arguments)
{
  JinjaValue bound[JINJA_MAX_PARAMETERS] = { 0 };

  if (builtin->call_any != NULL)
    return builtin->call_any (run, self, arguments);
  bind_arguments (run, builtin, arguments, bound);
  return builtin->call (run, self, bound);
}

const JinjaValue *
jinja_check_string (JinjaRun *run, const JinjaValue *value)
{
  if (value->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, value);
  if (value->kind != JINJA_STRING)
    jinja_raise (run, "expected str instance, %s found",
                 jinja_type_name (value));
  return value;
}

gint64
jinja_integer_or (JinjaRun *run, const JinjaValue *value, gint64 fallback)
{
  return value->kind == JINJA_MISSING ? fallback : jinja_index (run, value);
}

gboolean
jinja_boolean_or (JinjaRun *run, const JinjaValue *value, gboolean fallback)
{
  return value->kind == JINJA_MISSING ? fallback : jinja_truth (run, value);
}
