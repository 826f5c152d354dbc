/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-format.h"

#include "jinja-attribute.h"
#include "jinja-escape.h"
#include "jinja-number.h"
#include "jinja-operators.h"
#include "jinja-repr.h"
#include "jinja-text.h"

typedef struct {
  JinjaRun *run;
  const JinjaValue *format;
  gsize at; /* byte in format */
  JinjaText *text;
  const JinjaValue *argument;       /* of %: a value, tuple or dict */
  const JinjaArguments *arguments;  /* of format () */
  gsize next;                       /* positional argument */
  guint depth;    /* of fields within format specifications */
} Formatter;

static char
peek (const Formatter *self)
{
  return self->at < self->format->length
             ? jinja_string_bytes (self->format)[self->at]
             : '\0';
}

/* Digits at the current place, or @fallback. */
static gint64
read_integer (Formatter *self, gint64 fallback)
{
  gint64 number = 0;

  if (!g_ascii_isdigit (peek (self)))
    return fallback;
  while (g_ascii_isdigit (peek (self)))
    {
      number = MIN (number * 10 + (peek (self) - '0'), G_MAXINT32);
      self->at++;
    }
  return number;
}

/* % */

static JinjaValue
next_percent_argument (Formatter *self)
{
  const JinjaValue *argument = self->argument;

  if (argument->kind == JINJA_TUPLE)
    {
      if (self->next >= argument->length)
        jinja_raise (self->run, "not enough arguments for format string");
      return argument->items->values[self->next++];
    }
  if (self->next++ > 0)
    jinja_raise (self->run, "not enough arguments for format string");
  return *argument;
}

/* (name) after the %. */
static JinjaValue
named_percent_argument (Formatter *self)
{
  gsize start = ++self->at;
  guint depth = 1;
  JinjaValue name;
  const JinjaValue *value;

  while (self->at < self->format->length && depth > 0)
    {
      depth += peek (self) == '(';
      depth -= peek (self) == ')';
      self->at++;
    }
  if (depth > 0)
    jinja_raise (self->run, "incomplete format key");
  name = jinja_string_sub (self->format, start, self->at - 1 - start);
  if (self->argument->kind != JINJA_DICT)
    jinja_raise (self->run, "format requires a mapping");
  value = jinja_dict_get (self->run, self->argument->dict, &name);
  if (value == NULL)
    jinja_raise (self->run,
                 "the format's key '" JINJA_STRING_FORMAT "' is missing",
                 JINJA_STRING_ARGS (&name));
  return *value;
}

static gint64
star_or_integer (Formatter *self, gint64 fallback)
{
  JinjaValue value;

  if (peek (self) != '*')
    return read_integer (self, fallback);
  self->at++;
  value = next_percent_argument (self);
  return jinja_index (self->run, &value);
}

static void
read_flags (Formatter *self, JinjaLayout *layout)
{
  while (peek (self) != '\0' && strchr ("-+ #0", peek (self)) != NULL)
    {
      switch (peek (self))
        {
        case '-':
          layout->align = '<';
          break;
        case '+':
          layout->sign = '+';
          break;
        case ' ':
          if (layout->sign != '+')
            layout->sign = ' ';
          break;
        case '#':
          layout->alternate = TRUE;
          break;
        default:
          layout->fill = '0';
          break;
        }
      self->at++;
    }
}

static void
append_percent_string (Formatter *self, const JinjaValue *value,
                       const JinjaLayout *layout)
{
  JinjaValue string = *value;
  JinjaLayout padded = *layout;

  if (layout->type == 'c')
    {
      if (jinja_is_integer (value))
        {
          gint64 c = jinja_index (self->run, value);
          JinjaText *text = jinja_text_new (self->run, 8);

          if (c < 0 || c > 0x10FFFF || !g_unichar_validate ((gunichar) c))
            jinja_raise (self->run, "%%c arg not in range(0x110000)");
          jinja_text_append_unichar (self->run, text, (gunichar) c,
                                     JINJA_DATA);
          string = jinja_text_string (text);
        }
      else if (value->kind != JINJA_STRING || jinja_string_count (value) != 1)
        jinja_raise (self->run, "%%c requires int or char");
    }
  else if (layout->type == 's')
    string = self->format->markup ? jinja_escape (self->run, value)
                                  : jinja_str (self->run, value);
  else
    string = jinja_repr (self->run, value);
  padded.fill = ' ';
  padded.align = layout->align == '<' ? '<' : '>';
  jinja_append_padded (self->run, self->text, &string, &padded);
}

static void
append_percent_number (Formatter *self, const JinjaValue *value,
                       JinjaLayout *layout)
{
  JinjaValue number = *value;
  gboolean whole = strchr ("diu", layout->type) != NULL;

  if (value->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (self->run, value);
  if (!jinja_is_number (value))
    jinja_raise (self->run, "%%%c format: a number is required, not %s",
                 layout->type, jinja_type_name (value));
  if (layout->fill == '0' && layout->align == 0)
    layout->align = '=';
  if (layout->align == '<')
    layout->fill = ' ';
  if (strchr ("eEfFgG", layout->type) != NULL)
    {
      jinja_append_float (self->run, self->text,
                          jinja_to_double (self->run, value), layout);
      return;
    }
  if (value->kind == JINJA_FLOAT)
    {
      if (!whole)
        jinja_raise (self->run, "%%%c format: an integer is required, not "
                                "float", layout->type);
      number = jinja_integer_from_double (self->run, value->number);
    }
  jinja_append_integer (self->run, self->text, &number, layout);
}

static void
percent_conversion (Formatter *self)
{
  JinjaLayout layout = { .fill = ' ', .precision = -1 };
  JinjaValue value = jinja_missing ();

  if (peek (self) == '%')
    {
      jinja_text_append_sub (self->run, self->text, self->format, self->at++,
                             1);
      return;
    }
  if (peek (self) == '(')
    value = named_percent_argument (self);
  read_flags (self, &layout);
  layout.width = star_or_integer (self, 0);
  if (layout.width < 0)
    {
      layout.align = '<';
      layout.width = layout.width == G_MININT64 ? G_MAXINT64 : -layout.width;
    }
  if (peek (self) == '.')
    {
      self->at++;
      layout.precision = star_or_integer (self, 0);
      layout.precision = MAX (layout.precision, 0);
    }
  while (peek (self) != '\0' && strchr ("hlL", peek (self)) != NULL)
    self->at++;
  layout.type = peek (self);
  if (layout.type == '\0')
    jinja_raise (self->run, "incomplete format");
  self->at++;
  if (value.kind == JINJA_MISSING)
    value = next_percent_argument (self);
  if (layout.type == '%')
    {
      jinja_text_append_sub (self->run, self->text, self->format, self->at - 1,
                             1);
      return;
    }
  if (strchr ("sracdiuxXoeEfFgG", layout.type) == NULL)
    jinja_raise (self->run, "unsupported format character");
  if (strchr ("srac", layout.type) != NULL)
    append_percent_string (self, &value, &layout);
  else
    append_percent_number (self, &value, &layout);
}

/* A mapping may be used in part or not at all. By their subscript operator
 * these count as one. */
static gboolean
is_mapping (const JinjaValue *argument)
{
  return argument->kind == JINJA_DICT || argument->kind == JINJA_LIST
         || argument->kind == JINJA_RANGE || argument->kind == JINJA_UNDEFINED;
}

JinjaValue
jinja_format_percent (JinjaRun *run, const JinjaValue *format,
                      const JinjaValue *argument)
{
  Formatter self = { .run = run,
                     .format = format,
                     .argument = argument,
                     .text = jinja_text_new (run, format->length) };
  JinjaValue result;

  while (self.at < format->length)
    {
      const char *bytes = jinja_string_bytes (format);
      const char *percent =
          memchr (bytes + self.at, '%', format->length - self.at);
      gsize stop = percent != NULL ? (gsize) (percent - bytes)
                                   : format->length;

      jinja_step (run, 1);
      jinja_text_append_sub (run, self.text, format, self.at, stop - self.at);
      self.at = stop + 1;
      if (percent != NULL)
        percent_conversion (&self);
    }
  if (argument->kind == JINJA_TUPLE ? self.next < argument->length
                                    : self.next == 0 && !is_mapping (argument))
    jinja_raise (run, "not all arguments converted during string formatting");
  result = jinja_text_string (self.text);
  result.markup = format->markup;
  return result;
}

/* format () */

static JinjaValue
field_by_name (Formatter *self, const JinjaValue *name)
{
  const JinjaArguments *arguments = self->arguments;

  if (name->length == 0 || g_ascii_isdigit (jinja_string_bytes (name)[0]))
    {
      gsize index = self->next;

      if (name->length == 0)
        self->next++;
      else
        index = (gsize) g_ascii_strtoull (
            jinja_printf (self->run, JINJA_STRING_FORMAT,
                          JINJA_STRING_ARGS (name)),
            NULL, 10);
      if (index >= arguments->n_values)
        jinja_raise (self->run, "replacement index %" G_GSIZE_FORMAT
                                " out of range", index);
      return arguments->values[index];
    }
  for (guint i = 0; i < arguments->n_keywords; i++)
    if (jinja_string_same (&arguments->keywords[i].name, name))
      return arguments->keywords[i].value;
  jinja_raise (self->run,
               "the format's field '" JINJA_STRING_FORMAT "' is missing",
               JINJA_STRING_ARGS (name));
}

/* Up to one of @ends. */
static JinjaValue
read_until (Formatter *self, const char *ends)
{
  gsize start = self->at;

  while (peek (self) != '\0' && strchr (ends, peek (self)) == NULL)
    self->at++;
  return jinja_string_sub (self->format, start, self->at - start);
}

static JinjaValue
read_field (Formatter *self)
{
  JinjaValue name = read_until (self, ".[!:}{");
  JinjaValue value = field_by_name (self, &name);

  while (peek (self) == '.' || peek (self) == '[')
    {
      gboolean attribute = peek (self) == '.';
      JinjaValue key;

      self->at++;
      key = read_until (self, attribute ? ".[!:}" : "]");
      if (key.length == 0)
        jinja_raise (self->run, "empty attribute in format string");
      if (attribute)
        {
          value = jinja_get_attribute (self->run, &value, &key);
          continue;
        }
      if (peek (self) != ']')
        jinja_raise (self->run, "missing ']' in format string");
      self->at++;
      if (g_ascii_isdigit (jinja_string_bytes (&key)[0]))
        jinja_integer_from_string (self->run, &key, 10, &key);
      value = jinja_get_item (self->run, &value, &key);
    }
  return value;
}

static gboolean
is_align (char c)
{
  return c != '\0' && strchr ("<>^=", c) != NULL;
}

/* [[fill]align][sign][#][0][width][grouping][.precision][type] */
static JinjaLayout
parse_layout (JinjaRun *run, const JinjaValue *specification)
{
  Formatter self = { .run = run, .format = specification };
  JinjaLayout layout = { .fill = ' ', .precision = -1 };
  const char *bytes = jinja_string_bytes (specification);
  gboolean filled = specification->length > 1 && is_align (bytes[1]);

  if (filled)
    {
      layout.fill = bytes[0];
      layout.align = bytes[1];
      self.at = 2;
    }
  else if (is_align (peek (&self)))
    layout.align = bytes[self.at++];
  if ((guint8) layout.fill >= 0x80)
    jinja_raise (run, "only ASCII can fill a formatted field");
  if (peek (&self) != '\0' && strchr ("+- ", peek (&self)) != NULL)
    layout.sign = bytes[self.at++];
  if (peek (&self) == '#')
    {
      layout.alternate = TRUE;
      self.at++;
    }
  if (peek (&self) == '0')
    {
      if (!filled)
        layout.fill = '0';
      layout.zeros = TRUE;
      self.at++;
    }
  layout.width = read_integer (&self, 0);
  if (peek (&self) == ',' || peek (&self) == '_')
    layout.grouping = bytes[self.at++];
  if (peek (&self) == '.')
    {
      self.at++;
      layout.precision = read_integer (&self, -1);
      if (layout.precision < 0)
        jinja_raise (run, "format specifier misses its precision");
    }
  if (self.at < specification->length)
    layout.type = bytes[self.at++];
  if (self.at < specification->length)
    jinja_raise (run, "invalid format specifier");
  return layout;
}

static void
append_formatted (Formatter *self, const JinjaValue *value,
                  const JinjaValue *specification)
{
  JinjaLayout layout = parse_layout (self->run, specification);
  JinjaValue string;

  if (specification->length == 0)
    {
      string = self->format->markup ? jinja_escape (self->run, value)
                                    : jinja_str (self->run, value);
      jinja_text_append_string (self->run, self->text, &string);
      return;
    }
  if (jinja_is_number (value))
    {
      gboolean as_float =
          value->kind == JINJA_FLOAT
          || (layout.type != 0 && strchr ("eEfFgG%", layout.type) != NULL);

      if (layout.type == 'c' && !as_float)
        {
          append_percent_string (self, value, &layout);
          return;
        }
      if (layout.zeros && layout.align == 0)
        layout.align = '=';
      if (layout.type != 0
          && strchr (as_float ? "eEfFgGn%" : "bdnoxX", layout.type) == NULL)
        jinja_raise (self->run, "unknown format code '%c' for object of type "
                                "'%s'", layout.type, jinja_type_name (value));
      if (layout.grouping != 0 && layout.type != 0
          && (layout.type == 'n'
              || (layout.grouping == ',' && !as_float && layout.type != 'd')))
        jinja_raise (self->run, "cannot specify '%c' with '%c'",
                     layout.grouping, layout.type);
      if (as_float)
        jinja_append_float (self->run, self->text,
                            jinja_to_double (self->run, value), &layout);
      else if (layout.precision >= 0)
        jinja_raise (self->run,
                     "precision not allowed in integer format specifier");
      else
        jinja_append_integer (self->run, self->text, value, &layout);
      return;
    }
  if (value->kind != JINJA_STRING)
    jinja_raise (self->run, "unsupported format string passed to "
                            "%s.__format__", jinja_type_name (value));
  if ((layout.type != 0 && layout.type != 's') || layout.align == '='
      || layout.sign != 0)
    jinja_raise (self->run, "invalid format specifier for a string");
  string = self->format->markup ? jinja_escape (self->run, value) : *value;
  jinja_append_padded (self->run, self->text, &string, &layout);
}

static void append_braces (Formatter *self, char end);

/* A replacement field, behind its opening brace. */
static void
append_field (Formatter *self)
{
  JinjaValue value = read_field (self);
  JinjaValue specification = jinja_string_sub (self->format, 0, 0);
  JinjaText *text = self->text;
  char conversion = '\0';

  if (peek (self) == '!')
    {
      self->at++;
      conversion = peek (self);
      self->at += conversion != '\0';
      if (conversion == 's')
        value = jinja_str (self->run, &value);
      else if (conversion == 'r' || conversion == 'a')
        value = jinja_repr (self->run, &value);
      else
        jinja_raise (self->run, "unknown conversion specifier");
    }
  if (peek (self) == ':')
    {
      self->at++;
      if (++self->depth > 2)
        jinja_raise (self->run, "max string recursion exceeded");
      self->text = jinja_text_new (self->run, 0);
      append_braces (self, '}');
      specification = jinja_text_string (self->text);
      self->text = text;
      self->depth--;
    }
  if (peek (self) != '}')
    jinja_raise (self->run, "expected '}' before end of string");
  self->at++;
  append_formatted (self, &value, &specification);
}

static void
append_braces (Formatter *self, char end)
{
  while (self->at < self->format->length
         && (end == '\0' || peek (self) != end))
    {
      gsize start = self->at;
      char c;

      jinja_step (self->run, 1);
      while (self->at < self->format->length && peek (self) != '{'
             && peek (self) != '}')
        self->at++;
      jinja_text_append_sub (self->run, self->text, self->format, start,
                             self->at - start);
      c = peek (self);
      if (self->at == self->format->length || (end != '\0' && c == end))
        return;
      self->at++;
      if (peek (self) == c && self->at < self->format->length)
        {
          jinja_text_append_sub (self->run, self->text, self->format,
                                 self->at++, 1);
          continue;
        }
      if (c == '}')
        jinja_raise (self->run, "single '}' encountered in format string");
      append_field (self);
    }
}

JinjaValue
jinja_format_braces (JinjaRun *run, const JinjaValue *format,
                     const JinjaArguments *arguments)
{
  Formatter self = { .run = run,
                     .format = format,
                     .arguments = arguments,
                     .text = jinja_text_new (run, 0) };
  JinjaValue result;

  append_braces (&self, '\0');
  result = jinja_text_string (self.text);
  result.markup = format->markup;
  return result;
}
