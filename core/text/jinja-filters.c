/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-builtins.h"

#include <math.h>

#include "jinja-attribute.h"
#include "jinja-escape.h"
#include "jinja-json.h"
#include "jinja-number.h"
#include "jinja-operators.h"
#include "jinja-repr.h"
#include "jinja-text.h"

/* The filters on numbers and on values of any kind. */
#define FILTER(name)                                                          \
  static JinjaValue name (JinjaRun *run, const JinjaValue *self,              \
                          const JinjaValue *a)

FILTER (filter_default)
{
  JinjaValue fallback =
      a[0].kind == JINJA_MISSING ? jinja_string_c (run, "") : a[0];

  if (self->kind == JINJA_UNDEFINED
      || (jinja_boolean_or (run, &a[1], FALSE) && !jinja_truth (run, self)))
    return fallback;
  return *self;
}

FILTER (filter_string)
{
  return self->kind == JINJA_STRING ? *self : jinja_str (run, self);
}

FILTER (filter_safe)
{
  JinjaValue string = jinja_str (run, self);

  string.markup = TRUE;
  return string;
}

FILTER (filter_escape) { return jinja_escape (run, self); }

FILTER (filter_forceescape)
{
  JinjaValue string = jinja_str (run, self);

  return jinja_escape (run, &string);
}

FILTER (filter_tojson)
{
  JinjaJsonStyle style = {
    .ensure_ascii = jinja_boolean_or (run, &a[0], FALSE),
    .sort_keys = jinja_boolean_or (run, &a[3], FALSE),
  };
  JinjaValue separators;

  if (!jinja_is_absent (&a[1]))
    style.indent = a[1].kind == JINJA_STRING
                       ? a[1]
                       : jinja_string_pad_blanks (run,
                                                  jinja_index (run, &a[1]));
  if (!jinja_is_absent (&a[2]))
    {
      separators = jinja_to_list (run, &a[2]);
      if (separators.length != 2)
        jinja_raise (run, "separators must be a pair of strings");
      style.item_separator =
          *jinja_check_string (run, &separators.items->values[0]);
      style.key_separator =
          *jinja_check_string (run, &separators.items->values[1]);
    }
  return jinja_to_json (run, self, &style);
}

FILTER (filter_int)
{
  JinjaValue fallback =
      a[0].kind == JINJA_MISSING ? jinja_integer (0) : a[0];
  JinjaValue integer;
  gint64 base = jinja_integer_or (run, &a[1], 10);
  double number;

  if (self->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, self);
  if (self->kind == JINJA_FLOAT)
    return isfinite (self->number)
               ? jinja_integer_from_double (run, self->number)
               : fallback;
  if (jinja_is_integer (self))
    return self->kind == JINJA_BOOLEAN ? jinja_integer (self->boolean) : *self;
  if (self->kind != JINJA_STRING)
    return fallback;
  if ((base == 0 || (base >= 2 && base <= 36))
      && jinja_integer_from_string (run, self, (guint) base, &integer))
    return integer;
  if (jinja_float_from_string (run, self, &number) && isfinite (number))
    return jinja_integer_from_double (run, number);
  return fallback;
}

FILTER (filter_float)
{
  double number;

  if (self->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, self);
  if (jinja_is_number (self))
    return jinja_float (jinja_to_double (run, self));
  if (self->kind == JINJA_STRING
      && jinja_float_from_string (run, self, &number))
    return jinja_float (number);
  return a[0].kind == JINJA_MISSING ? jinja_float (0) : a[0];
}

FILTER (filter_abs)
{
  if (self->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, self);
  if (!jinja_is_number (self))
    jinja_raise (run, "bad operand type for abs(): '%s'",
                 jinja_type_name (self));
  return jinja_absolute (run, self);
}

/* To a multiple of 10^digits, halves to the even one. */
static JinjaValue
round_integer (JinjaRun *run, const JinjaValue *self, gint64 digits)
{
  JinjaValue zero = jinja_integer (0);
  JinjaValue one = jinja_integer (1);
  JinjaValue two = jinja_integer (2);
  JinjaValue ten = jinja_integer (10);
  JinjaValue power = jinja_integer (MIN (digits, 320));
  JinjaValue value = jinja_absolute (run, self);
  JinjaValue unit = jinja_calculate (run, JINJA_POWER, &ten, &power);
  JinjaValue rest = jinja_calculate (run, JINJA_MODULO, &value, &unit);
  JinjaValue odd;
  int order;

  value = jinja_calculate (run, JINJA_FLOOR_DIVIDE, &value, &unit);
  rest = jinja_calculate (run, JINJA_MULTIPLY, &rest, &two);
  order = jinja_number_compare (run, &rest, &unit);
  odd = jinja_calculate (run, JINJA_MODULO, &value, &two);
  if (order > 0 || (order == 0 && !jinja_number_is_zero (&odd)))
    value = jinja_calculate (run, JINJA_ADD, &value, &one);
  value = jinja_calculate (run, JINJA_MULTIPLY, &value, &unit);
  return jinja_number_compare (run, self, &zero) < 0
             ? jinja_negate (run, &value)
             : value;
}

/* round (): to the nearest, halves to the even digit, by the exact decimal
 * value of the float. */
static JinjaValue
round_common (JinjaRun *run, const JinjaValue *self, gint64 precision)
{
  char buffer[400];
  char format[16];
  JinjaValue zero = jinja_integer (0);
  double number;
  double scale;

  if (jinja_is_integer (self))
    return precision >= 0 ? jinja_calculate (run, JINJA_ADD, self, &zero)
                          : round_integer (run, self, -precision);
  number = self->number;
  jinja_step (run, 20);
  if (!isfinite (number) || precision > 30)
    return *self;
  if (precision < -310)
    return jinja_float (copysign (0, number));
  if (precision < 0 && number == floor (number))
    {
      JinjaValue whole = jinja_integer_from_double (run, number);

      whole = round_integer (run, &whole, -precision);
      return jinja_float (copysign (jinja_to_double (run, &whole), number));
    }
  if (precision < 0)
    {
      scale = pow (10, (double) -precision);
      return jinja_float (rint (number / scale) * scale);
    }
  g_snprintf (format, sizeof format, "%%.%df", (int) precision);
  g_ascii_formatd (buffer, sizeof buffer, format, number);
  return jinja_float (g_ascii_strtod (buffer, NULL));
}

FILTER (filter_round)
{
  gint64 precision = jinja_integer_or (run, &a[0], 0);
  JinjaValue ten = jinja_integer (10);
  JinjaValue power = jinja_integer (precision);
  JinjaValue whole;

  precision = CLAMP (precision, -G_MAXINT32, G_MAXINT32);
  if (self->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, self);
  if (!jinja_is_number (self))
    jinja_raise (run, "type %s doesn't define __round__ method",
                 jinja_type_name (self));
  if (a[1].kind == JINJA_MISSING || jinja_string_is (&a[1], "common"))
    return round_common (run, self, precision);
  if (!jinja_string_is (&a[1], "ceil") && !jinja_string_is (&a[1], "floor"))
    jinja_raise (run, "method must be common, ceil or floor");
  power = jinja_calculate (run, JINJA_POWER, &ten, &power);
  whole = jinja_calculate (run, JINJA_MULTIPLY, self, &power);
  if (whole.kind == JINJA_FLOAT)
    whole = jinja_integer_from_double (
        run, jinja_string_is (&a[1], "ceil") ? ceil (whole.number)
                                             : floor (whole.number));
  return jinja_calculate (run, JINJA_DIVIDE, &whole, &power);
}

FILTER (filter_attr)
{
  JinjaValue value;

  if (jinja_find_attribute (run, self, jinja_check_string (run, &a[0]),
                            &value))
    return value;
  return jinja_undefined_attribute (run, self, a[0]);
}

FILTER (filter_filesizeformat)
{
  static const char *const prefixes[] = { "k", "M", "G", "T",
                                          "P", "E", "Z", "Y" };
  gboolean binary = jinja_boolean_or (run, &a[0], FALSE);
  double bytes;
  double base = binary ? 1024 : 1000;
  double unit = base * base;
  gsize i = 0;
  char number[64];

  if (self->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, self);
  if (jinja_is_number (self))
    bytes = jinja_to_double (run, self);
  else if (self->kind != JINJA_STRING
           || !jinja_float_from_string (run, self, &bytes))
    jinja_raise (run, "could not convert %s to float", jinja_type_name (self));
  if (bytes == 1)
    return jinja_string_c (run, "1 Byte");
  if (bytes < base)
    return jinja_string_c (run, jinja_printf (run, "%.0f Bytes",
                                              trunc (bytes)));
  for (; i + 1 < G_N_ELEMENTS (prefixes) && bytes >= unit; i++)
    unit *= base;
  g_ascii_formatd (number, sizeof number, "%.1f", base * bytes / unit);
  return jinja_string_c (
      run, jinja_printf (run, "%s %s%sB", number,
                         binary && i == 0 ? "K" : prefixes[i],
                         binary ? "i" : ""));
}

const JinjaBuiltin jinja_value_filters[] = {
  { "default", "default_value,boolean", .call = filter_default },
  { "d", "default_value,boolean", .call = filter_default },
  { "string", "", .call = filter_string },
  { "safe", "", .call = filter_safe },
  { "escape", "", .call = filter_escape },
  { "e", "", .call = filter_escape },
  { "forceescape", "", .call = filter_forceescape },
  { "tojson", "ensure_ascii,indent,separators,sort_keys",
    .call = filter_tojson },
  { "int", "default,base", .call = filter_int },
  { "float", "default", .call = filter_float },
  { "abs", "", .call = filter_abs },
  { "round", "precision,method", .call = filter_round },
  { "attr", "name", 1, .call = filter_attr },
  { "filesizeformat", "binary", .call = filter_filesizeformat },
  { NULL },
};
