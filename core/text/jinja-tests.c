/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-builtins.h"

#include "jinja-case.h"
#include "jinja-operators.h"
#include "jinja-repr.h"
#include "jinja-text.h"

/* The tests that a type alone decides. */
#define KIND_TEST(name, condition)                                            \
  static JinjaValue test_##name (JinjaRun *run, const JinjaValue *self,       \
                                 const JinjaValue *a)                         \
  {                                                                           \
    return jinja_boolean (condition);                                         \
  }

KIND_TEST (defined, self->kind != JINJA_UNDEFINED)
KIND_TEST (undefined, self->kind == JINJA_UNDEFINED)
KIND_TEST (none, self->kind == JINJA_NONE)
KIND_TEST (boolean, self->kind == JINJA_BOOLEAN)
KIND_TEST (true, self->kind == JINJA_BOOLEAN && self->boolean)
KIND_TEST (false, self->kind == JINJA_BOOLEAN && !self->boolean)
KIND_TEST (integer, self->kind == JINJA_INTEGER || self->kind == JINJA_BIG)
KIND_TEST (float, self->kind == JINJA_FLOAT)
KIND_TEST (number, jinja_is_number (self))
KIND_TEST (string, self->kind == JINJA_STRING)
KIND_TEST (mapping, self->kind == JINJA_DICT)
KIND_TEST (iterable, jinja_is_iterable (self))
KIND_TEST (escaped, self->kind == JINJA_STRING && self->markup)
KIND_TEST (sequence, self->kind == JINJA_UNDEFINED
                         || self->kind == JINJA_STRING || jinja_is_list (self)
                         || self->kind == JINJA_DICT
                         || self->kind == JINJA_RANGE)
KIND_TEST (callable, self->kind == JINJA_FUNCTION || self->kind == JINJA_MACRO
                         || self->kind == JINJA_LOOP
                         || self->kind == JINJA_JOINER
                         || self->kind == JINJA_UNDEFINED)
KIND_TEST (sameas, jinja_same (self, &a[0]))
KIND_TEST (in, jinja_contains (run, &a[0], self))
KIND_TEST (filter, self->kind == JINJA_STRING
                       && jinja_find_filter (self) != NULL)
KIND_TEST (test, self->kind == JINJA_STRING && jinja_find_test (self) != NULL)
KIND_TEST (eq, jinja_compare (run, JINJA_EQUAL, self, &a[0]))
KIND_TEST (ne, jinja_compare (run, JINJA_NOT_EQUAL, self, &a[0]))
KIND_TEST (lt, jinja_compare (run, JINJA_LESS, self, &a[0]))
KIND_TEST (le, jinja_compare (run, JINJA_LESS_EQUAL, self, &a[0]))
KIND_TEST (gt, jinja_compare (run, JINJA_GREATER, self, &a[0]))
KIND_TEST (ge, jinja_compare (run, JINJA_GREATER_EQUAL, self, &a[0]))

static JinjaValue
has_remainder (JinjaRun *run, const JinjaValue *value, JinjaValue divisor,
               gint64 remainder)
{
  JinjaValue expected = jinja_integer (remainder);
  JinjaValue rest = jinja_operate (run, JINJA_MODULO, value, &divisor);

  return jinja_boolean (jinja_equal (run, &rest, &expected));
}

static JinjaValue
test_odd (JinjaRun *run, const JinjaValue *self, const JinjaValue *a)
{
  return has_remainder (run, self, jinja_integer (2), 1);
}

static JinjaValue
test_even (JinjaRun *run, const JinjaValue *self, const JinjaValue *a)
{
  return has_remainder (run, self, jinja_integer (2), 0);
}

static JinjaValue
test_divisibleby (JinjaRun *run, const JinjaValue *self, const JinjaValue *a)
{
  return has_remainder (run, self, a[0], 0);
}

static JinjaValue
test_lower (JinjaRun *run, const JinjaValue *self, const JinjaValue *a)
{
  JinjaValue string = jinja_str (run, self);

  return jinja_boolean (jinja_is_lower (&string));
}

static JinjaValue
test_upper (JinjaRun *run, const JinjaValue *self, const JinjaValue *a)
{
  JinjaValue string = jinja_str (run, self);

  return jinja_boolean (jinja_is_upper (&string));
}

const JinjaBuiltin jinja_tests[] = {
  { "defined", "", .call = test_defined },
  { "undefined", "", .call = test_undefined },
  { "string", "", .call = test_string },
  { "none", "", .call = test_none },
  { "mapping", "", .call = test_mapping },
  { "iterable", "", .call = test_iterable },
  { "sequence", "", .call = test_sequence },
  { "boolean", "", .call = test_boolean },
  { "true", "", .call = test_true },
  { "false", "", .call = test_false },
  { "integer", "", .call = test_integer },
  { "float", "", .call = test_float },
  { "number", "", .call = test_number },
  { "callable", "", .call = test_callable },
  { "escaped", "", .call = test_escaped },
  { "filter", "", .call = test_filter },
  { "test", "", .call = test_test },
  { "odd", "", .call = test_odd },
  { "even", "", .call = test_even },
  { "divisibleby", "num", 1, .call = test_divisibleby },
  { "lower", "", .call = test_lower },
  { "upper", "", .call = test_upper },
  { "sameas", "other", 1, .call = test_sameas },
  { "in", "seq", 1, .call = test_in },
  { "equalto", "other", 1, .call = test_eq },
  { "==", "other", 1, .call = test_eq },
  { "eq", "other", 1, .call = test_eq },
  { "!=", "other", 1, .call = test_ne },
  { "ne", "other", 1, .call = test_ne },
  { "<", "other", 1, .call = test_lt },
  { "lt", "other", 1, .call = test_lt },
  { "lessthan", "other", 1, .call = test_lt },
  { "<=", "other", 1, .call = test_le },
  { "le", "other", 1, .call = test_le },
  { ">", "other", 1, .call = test_gt },
  { "gt", "other", 1, .call = test_gt },
  { "greaterthan", "other", 1, .call = test_gt },
  { ">=", "other", 1, .call = test_ge },
  { "ge", "other", 1, .call = test_ge },
  { NULL },
};
