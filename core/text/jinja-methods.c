/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-builtins.h"

#include <math.h>

#include "jinja-case.h"
#include "jinja-escape.h"
#include "jinja-format.h"
#include "jinja-operators.h"
#include "jinja-string.h"
#include "jinja-text.h"

/* The methods of strings, lists, dicts and floats. */
#define METHOD(name)                                                          \
  static JinjaValue name (JinjaRun *run, const JinjaValue *self,              \
                          const JinjaValue *a)

METHOD (str_upper) { return jinja_change_case (run, self, JINJA_CASE_UPPER); }
METHOD (str_lower) { return jinja_change_case (run, self, JINJA_CASE_LOWER); }
METHOD (str_title) { return jinja_change_case (run, self, JINJA_CASE_TITLE); }

METHOD (str_capitalize)
{
  return jinja_change_case (run, self, JINJA_CASE_CAPITALIZED);
}

METHOD (str_swapcase)
{
  return jinja_change_case (run, self, JINJA_CASE_SWAPPED);
}

METHOD (str_casefold)
{
  return jinja_change_case (run, self, JINJA_CASE_FOLDED);
}

METHOD (str_strip)
{
  return jinja_string_strip (run, self, &a[0], JINJA_STRIP_BOTH);
}

METHOD (str_lstrip)
{
  return jinja_string_strip (run, self, &a[0], JINJA_STRIP_LEFT);
}

METHOD (str_rstrip)
{
  return jinja_string_strip (run, self, &a[0], JINJA_STRIP_RIGHT);
}

METHOD (str_split)
{
  return jinja_string_split (run, self, &a[0],
                             jinja_integer_or (run, &a[1], -1), FALSE);
}

METHOD (str_rsplit)
{
  return jinja_string_split (run, self, &a[0],
                             jinja_integer_or (run, &a[1], -1), TRUE);
}

METHOD (str_splitlines)
{
  return jinja_string_lines (run, self, jinja_boolean_or (run, &a[0], FALSE));
}

METHOD (str_replace)
{
  JinjaValue replacement = *jinja_check_string (run, &a[1]);

  jinja_check_string (run, &a[0]);
  if (self->markup)
    replacement = jinja_escape (run, &replacement);
  return jinja_string_replace (run, self, &a[0], &replacement,
                               jinja_integer_or (run, &a[2], -1));
}

METHOD (str_join) { return jinja_string_join (run, self, &a[0], FALSE); }

/* A substring by characters [a[0], a[1]); FALSE when the start is behind the
 * end. @start gets its first byte. */
static gboolean
substring (JinjaRun *run, const JinjaValue *self, const JinjaValue *a,
           JinjaValue *piece, gsize *start)
{
  gint64 count = (gint64) jinja_string_count (self);
  gint64 from = jinja_is_absent (&a[0]) ? 0 : jinja_index (run, &a[0]);
  gint64 to = jinja_is_absent (&a[1]) ? count : jinja_index (run, &a[1]);
  gsize stop;

  jinja_step (run, self->length / 64);
  if (from < 0)
    from = MAX (from + count, 0);
  if (to < 0)
    to = MAX (to + count, 0);
  to = MIN (to, count);
  if (from > to)
    return FALSE;
  *start = jinja_string_offset (self, (gsize) from);
  stop = jinja_string_offset (self, (gsize) to);
  *piece = jinja_string_sub (self, *start, stop - *start);
  return TRUE;
}

static gboolean
has_affix (const JinjaValue *string, const JinjaValue *affix, gboolean suffix)
{
  if (affix->length > string->length)
    return FALSE;
  return memcmp (jinja_string_bytes (string)
                     + (suffix ? string->length - affix->length : 0),
                 jinja_string_bytes (affix), affix->length)
         == 0;
}

static JinjaValue
check_affix (JinjaRun *run, const JinjaValue *self, const JinjaValue *a,
             gboolean suffix)
{
  JinjaValue piece;
  gsize start;
  gboolean inside = substring (run, self, &a[1], &piece, &start);

  if (a[0].kind == JINJA_TUPLE)
    {
      for (guint32 i = 0; i < a[0].length; i++)
        {
          const JinjaValue *affix =
              jinja_check_string (run, &a[0].items->values[i]);

          if (inside && has_affix (&piece, affix, suffix))
            return jinja_boolean (TRUE);
        }
      return jinja_boolean (FALSE);
    }
  jinja_check_string (run, &a[0]);
  return jinja_boolean (inside && has_affix (&piece, &a[0], suffix));
}

METHOD (str_startswith) { return check_affix (run, self, a, FALSE); }
METHOD (str_endswith) { return check_affix (run, self, a, TRUE); }

METHOD (str_removeprefix)
{
  jinja_check_string (run, &a[0]);
  if (!has_affix (self, &a[0], FALSE))
    return *self;
  return jinja_string_sub (self, a[0].length, self->length - a[0].length);
}

METHOD (str_removesuffix)
{
  jinja_check_string (run, &a[0]);
  if (!has_affix (self, &a[0], TRUE))
    return *self;
  return jinja_string_sub (self, 0, self->length - a[0].length);
}

static gssize
rfind_bytes (JinjaRun *run, const JinjaValue *string, const JinjaValue *needle)
{
  gssize last = -1;
  gssize at = 0;

  if (needle->length == 0)
    return string->length;
  while ((at = jinja_string_find (run, string, (gsize) at, needle)) >= 0)
    {
      jinja_step (run, 1);
      last = at++;
    }
  return last;
}

/* The character where a[0] is found, or -1. */
static gint64
find_character (JinjaRun *run, const JinjaValue *self, const JinjaValue *a,
                gboolean last)
{
  JinjaValue piece;
  JinjaValue before;
  gsize start;
  gssize found;

  jinja_check_string (run, &a[0]);
  if (!substring (run, self, &a[1], &piece, &start))
    return -1;
  found = last ? rfind_bytes (run, &piece, &a[0])
               : jinja_string_find (run, &piece, 0, &a[0]);
  if (found < 0)
    return -1;
  before = jinja_string_sub (self, 0, start + (gsize) found);
  return (gint64) jinja_string_count (&before);
}

METHOD (str_find)
{
  return jinja_integer (find_character (run, self, a, FALSE));
}

METHOD (str_rfind)
{
  return jinja_integer (find_character (run, self, a, TRUE));
}

static JinjaValue
index_or_raise (JinjaRun *run, gint64 index)
{
  if (index < 0)
    jinja_raise (run, "substring not found");
  return jinja_integer (index);
}

METHOD (str_index)
{
  return index_or_raise (run, find_character (run, self, a, FALSE));
}

METHOD (str_rindex)
{
  return index_or_raise (run, find_character (run, self, a, TRUE));
}

METHOD (str_count)
{
  JinjaValue piece;
  gsize start;
  gsize at = 0;
  gssize found;
  gint64 count = 0;

  jinja_check_string (run, &a[0]);
  if (!substring (run, self, &a[1], &piece, &start))
    return jinja_integer (0);
  if (a[0].length == 0)
    return jinja_integer ((gint64) jinja_string_count (&piece) + 1);
  while ((found = jinja_string_find (run, &piece, at, &a[0])) >= 0)
    {
      jinja_step (run, 1);
      count++;
      at = (gsize) found + a[0].length;
    }
  return jinja_integer (count);
}

static JinjaValue
partition (JinjaRun *run, const JinjaValue *self, const JinjaValue *separator,
           gboolean last)
{
  JinjaValue parts = jinja_list_new (run, JINJA_TUPLE, 3);
  gssize found;
  gsize behind;
  JinjaValue empty = jinja_string_sub (self, 0, 0);

  jinja_check_string (run, separator);
  if (separator->length == 0)
    jinja_raise (run, "empty separator");
  found = last ? rfind_bytes (run, self, separator)
               : jinja_string_find (run, self, 0, separator);
  if (found < 0)
    {
      jinja_list_append (run, &parts, last ? empty : *self);
      jinja_list_append (run, &parts, empty);
      jinja_list_append (run, &parts, last ? *self : empty);
      return parts;
    }
  behind = (gsize) found + separator->length;
  jinja_list_append (run, &parts, jinja_string_sub (self, 0, (gsize) found));
  jinja_list_append (run, &parts, jinja_string_sub (self, (gsize) found,
                                                    separator->length));
  jinja_list_append (run, &parts, jinja_string_sub (self, behind,
                                                    self->length - behind));
  return parts;
}

METHOD (str_partition) { return partition (run, self, &a[0], FALSE); }
METHOD (str_rpartition) { return partition (run, self, &a[0], TRUE); }

static JinjaValue
pad (JinjaRun *run, const JinjaValue *self, const JinjaValue *a,
     JinjaStrip sides)
{
  return jinja_string_pad (run, self, jinja_index (run, &a[0]),
                           a[1].kind == JINJA_MISSING ? NULL : &a[1], sides);
}

METHOD (str_ljust) { return pad (run, self, a, JINJA_STRIP_RIGHT); }
METHOD (str_rjust) { return pad (run, self, a, JINJA_STRIP_LEFT); }
METHOD (str_center) { return pad (run, self, a, JINJA_STRIP_BOTH); }

METHOD (str_zfill)
{
  gint64 count = (gint64) jinja_string_count (self);
  gint64 width = jinja_index (run, &a[0]);
  const char *bytes = jinja_string_bytes (self);
  gsize sign = self->length > 0 && (bytes[0] == '-' || bytes[0] == '+');
  JinjaText *text;
  JinjaValue result;

  if (width <= count)
    return *self;
  text = jinja_text_new (run, 0);
  jinja_text_append_sub (run, text, self, 0, sign);
  jinja_text_append_fill (run, text, '0', (gsize) (width - count));
  jinja_text_append_sub (run, text, self, sign, self->length - sign);
  result = jinja_text_string (text);
  result.markup = self->markup;
  return result;
}

METHOD (str_expandtabs)
{
  gint64 size = jinja_integer_or (run, &a[0], 8);
  const char *bytes = jinja_string_bytes (self);
  JinjaText *text = jinja_text_new (run, 0);
  JinjaValue result;
  gint64 column = 0;

  for (gsize i = 0; i < self->length; i += jinja_utf8_size (bytes[i]))
    {
      gsize width = jinja_utf8_size (bytes[i]);

      jinja_step (run, 1);
      if (bytes[i] == '\t')
        {
          gint64 fill = size > 0 ? size - column % size : 0;

          jinja_text_append_fill (run, text, ' ', (gsize) fill);
          column += fill;
          continue;
        }
      column = bytes[i] == '\n' || bytes[i] == '\r' ? 0 : column + 1;
      jinja_text_append_sub (run, text, self, i, width);
    }
  result = jinja_text_string (text);
  result.markup = self->markup;
  return result;
}

static JinjaValue
str_format (JinjaRun *run, const JinjaValue *self,
            const JinjaArguments *arguments)
{
  return jinja_format_braces (run, self, arguments);
}

METHOD (str_format_map)
{
  JinjaArguments arguments = { 0 };
  JinjaKeyword *keywords;

  if (a[0].kind != JINJA_DICT)
    jinja_raise (run, "format_map takes a mapping");
  keywords = jinja_new_n (run, JinjaKeyword, a[0].dict->n_entries);
  for (guint32 i = 0; i < a[0].dict->n_entries; i++)
    if (a[0].dict->entries[i].key.kind == JINJA_STRING)
      keywords[arguments.n_keywords++] =
          (JinjaKeyword) { .name = a[0].dict->entries[i].key,
                           .value = a[0].dict->entries[i].value };
  arguments.keywords = keywords;
  return jinja_format_braces (run, self, &arguments);
}

const JinjaBuiltin jinja_string_methods[] = {
  { "split", "sep,maxsplit", .call = str_split },
  { "strip", "chars", .call = str_strip },
  { "lstrip", "chars", .call = str_lstrip },
  { "rstrip", "chars", .call = str_rstrip },
  { "startswith", "prefix,start,end", 1, .call = str_startswith },
  { "endswith", "suffix,start,end", 1, .call = str_endswith },
  { "replace", "old,new,count", 2, .call = str_replace },
  { "upper", "", .call = str_upper },
  { "lower", "", .call = str_lower },
  { "title", "", .call = str_title },
  { "capitalize", "", .call = str_capitalize },
  { "swapcase", "", .call = str_swapcase },
  { "casefold", "", .call = str_casefold },
  { "find", "sub,start,end", 1, .call = str_find },
  { "rfind", "sub,start,end", 1, .call = str_rfind },
  { "index", "sub,start,end", 1, .call = str_index },
  { "rindex", "sub,start,end", 1, .call = str_rindex },
  { "count", "sub,start,end", 1, .call = str_count },
  { "join", "iterable", 1, .call = str_join },
  { "rsplit", "sep,maxsplit", .call = str_rsplit },
  { "splitlines", "keepends", .call = str_splitlines },
  { "partition", "sep", 1, .call = str_partition },
  { "rpartition", "sep", 1, .call = str_rpartition },
  { "removeprefix", "prefix", 1, .call = str_removeprefix },
  { "removesuffix", "suffix", 1, .call = str_removesuffix },
  { "ljust", "width,fillchar", 1, .call = str_ljust },
  { "rjust", "width,fillchar", 1, .call = str_rjust },
  { "center", "width,fillchar", 1, .call = str_center },
  { "zfill", "width", 1, .call = str_zfill },
  { "expandtabs", "tabsize", .call = str_expandtabs },
  { "format", .call_any = str_format },
  { "format_map", "mapping", 1, .call = str_format_map },
  { NULL },
};

/* is... () */

static gboolean
is_decimal (gunichar c)
{
  return g_unichar_type (c) == G_UNICODE_DECIMAL_NUMBER;
}

/* Numeric_Type=Digit: superscripts, subscripts and the circled digits. */
static gboolean
is_digit (gunichar c)
{
  return is_decimal (c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070
         || (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089)
         || (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247C)
         || (c >= 0x2488 && c <= 0x2490) || c == 0x24EA
         || (c >= 0x24F5 && c <= 0x24FD) || c == 0x24FF
         || (c >= 0x2776 && c <= 0x277E) || (c >= 0x2780 && c <= 0x2788)
         || (c >= 0x278A && c <= 0x2792);
}

static gboolean
is_numeric (gunichar c)
{
  GUnicodeType type = g_unichar_type (c);

  return type == G_UNICODE_DECIMAL_NUMBER || type == G_UNICODE_LETTER_NUMBER
         || type == G_UNICODE_OTHER_NUMBER;
}

static gboolean
is_alphanumeric (gunichar c)
{
  return g_unichar_isalpha (c) || is_numeric (c);
}

static gboolean
is_identifier_start (gunichar c)
{
  return c == '_' || g_unichar_isalpha (c);
}

static gboolean
is_identifier_part (gunichar c)
{
  return is_identifier_start (c) || is_decimal (c)
         || (c >= 0x80 && g_unichar_ismark (c));
}

static gboolean
is_alphabetic (gunichar c)
{
  return g_unichar_isalpha (c);
}

static JinjaValue
all_characters (JinjaRun *run, const JinjaValue *self,
                gboolean (*holds) (gunichar c))
{
  jinja_step (run, self->length / 16);
  for (gsize i = 0; i < self->length;
       i += jinja_utf8_size (jinja_string_bytes (self)[i]))
    if (!holds (jinja_string_char (self, i)))
      return jinja_boolean (FALSE);
  return jinja_boolean (self->length > 0);
}

METHOD (str_isalpha) { return all_characters (run, self, is_alphabetic); }
METHOD (str_isdigit) { return all_characters (run, self, is_digit); }
METHOD (str_isdecimal) { return all_characters (run, self, is_decimal); }
METHOD (str_isnumeric) { return all_characters (run, self, is_numeric); }
METHOD (str_isalnum) { return all_characters (run, self, is_alphanumeric); }
METHOD (str_isspace) { return all_characters (run, self, jinja_is_space); }
METHOD (str_islower) { return jinja_boolean (jinja_is_lower (self)); }
METHOD (str_isupper) { return jinja_boolean (jinja_is_upper (self)); }
METHOD (str_istitle) { return jinja_boolean (jinja_is_title (self)); }

METHOD (str_isascii)
{
  for (guint32 i = 0; i < self->length; i++)
    if ((guint8) jinja_string_bytes (self)[i] >= 0x80)
      return jinja_boolean (FALSE);
  return jinja_boolean (TRUE);
}

METHOD (str_isidentifier)
{
  JinjaValue rest;
  gsize first;

  if (self->length == 0 || !is_identifier_start (jinja_string_char (self, 0)))
    return jinja_boolean (FALSE);
  first = jinja_utf8_size (jinja_string_bytes (self)[0]);
  rest = jinja_string_sub (self, first, self->length - first);
  return rest.length == 0 ? jinja_boolean (TRUE)
                          : all_characters (run, &rest, is_identifier_part);
}

const JinjaBuiltin jinja_string_predicates[] = {
  { "isdigit", "", .call = str_isdigit },
  { "isalpha", "", .call = str_isalpha },
  { "isalnum", "", .call = str_isalnum },
  { "isspace", "", .call = str_isspace },
  { "isnumeric", "", .call = str_isnumeric },
  { "isdecimal", "", .call = str_isdecimal },
  { "islower", "", .call = str_islower },
  { "isupper", "", .call = str_isupper },
  { "istitle", "", .call = str_istitle },
  { "isascii", "", .call = str_isascii },
  { "isidentifier", "", .call = str_isidentifier },
  { NULL },
};

/* Lists and tuples */

METHOD (list_count)
{
  JinjaIterator *iterator = jinja_iterate (run, self);
  JinjaValue item;
  gint64 count = 0;

  while (jinja_next (run, iterator, &item))
    count += jinja_equal (run, &item, &a[0]);
  return jinja_integer (count);
}

METHOD (list_index)
{
  gint64 length;
  gint64 from = jinja_integer_or (run, &a[1], 0);
  gint64 to = jinja_integer_or (run, &a[2], G_MAXINT64);
  JinjaIterator *iterator = jinja_iterate (run, self);
  JinjaValue item;

  jinja_length (self, &length);
  from = from < 0 ? MAX (from + length, 0) : from;
  to = to < 0 ? to + length : to;
  for (gint64 i = 0; jinja_next (run, iterator, &item); i++)
    if (i >= from && i < to && jinja_equal (run, &item, &a[0]))
      return jinja_integer (i);
  jinja_raise (run, "the value is not in the %s", jinja_type_name (self));
}

METHOD (list_copy) { return *self; }

const JinjaBuiltin jinja_list_methods[] = {
  { "count", "value", 1, .call = list_count },
  { "index", "value,start,stop", 1, .call = list_index },
  { "copy", "", .call = list_copy },
  { NULL },
};

/* Dicts */

static JinjaValue
view (JinjaRun *run, const JinjaValue *self, JinjaViewOf of)
{
  JinjaView *made = jinja_new (run, JinjaView);

  made->dict = self->dict;
  made->of = of;
  return (JinjaValue) { .kind = JINJA_VIEW, .view = made };
}

METHOD (dict_items) { return view (run, self, JINJA_ITEMS); }
METHOD (dict_keys) { return view (run, self, JINJA_KEYS); }
METHOD (dict_values) { return view (run, self, JINJA_VALUES); }
METHOD (dict_copy) { return *self; }

METHOD (dict_get)
{
  const JinjaValue *value = jinja_dict_get (run, self->dict, &a[0]);

  if (value != NULL)
    return *value;
  return a[1].kind == JINJA_MISSING ? jinja_none () : a[1];
}

const JinjaBuiltin jinja_dict_methods[] = {
  { "items", "", .call = dict_items },
  { "get", "key,default", 1, .call = dict_get },
  { "keys", "", .call = dict_keys },
  { "values", "", .call = dict_values },
  { "copy", "", .call = dict_copy },
  { NULL },
};

/* Numbers */

METHOD (float_is_integer)
{
  return jinja_boolean (isfinite (self->number)
                        && self->number == floor (self->number));
}

const JinjaBuiltin jinja_number_methods[] = {
  { "is_integer", "", .call = float_is_integer },
  { NULL },
};
