/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-builtins.h"

#include "jinja-case.h"
#include "jinja-escape.h"
#include "jinja-format.h"
#include "jinja-operators.h"
#include "jinja-repr.h"
#include "jinja-string.h"
#include "jinja-text.h"

/* The filters on text. */
#define FILTER(name)                                                          \
  static JinjaValue name (JinjaRun *run, const JinjaValue *self,              \
                          const JinjaValue *a)

/* soft_str (): markup stays markup. */
static JinjaValue
soft_string (JinjaRun *run, const JinjaValue *value)
{
  return value->kind == JINJA_STRING ? *value : jinja_str (run, value);
}

static JinjaValue
change_case (JinjaRun *run, const JinjaValue *self, JinjaCase to)
{
  JinjaValue string = soft_string (run, self);

  return jinja_change_case (run, &string, to);
}

FILTER (filter_upper) { return change_case (run, self, JINJA_CASE_UPPER); }
FILTER (filter_lower) { return change_case (run, self, JINJA_CASE_LOWER); }

FILTER (filter_capitalize)
{
  return change_case (run, self, JINJA_CASE_CAPITALIZED);
}

/* The characters that the title filter splits words at, which are fewer than
 * those of str.title (). */
static gboolean
begins_word (gunichar c)
{
  return jinja_is_space (c)
         || (c < 0x80 && strchr ("-({[<", (int) c) != NULL);
}

FILTER (filter_title)
{
  JinjaValue string = soft_string (run, self);
  JinjaText *text = jinja_text_new (run, 0);
  gboolean first = TRUE;
  gboolean was_break = FALSE;
  gsize size;

  for (gsize i = 0; i < string.length; i += size)
    {
      gunichar c = jinja_string_char (&string, i);
      gboolean is_break = c != 0 && begins_word (c);

      jinja_step (run, 1);
      size = jinja_utf8_size (jinja_string_bytes (&string)[i]);
      if (is_break != was_break)
        first = TRUE;
      jinja_append_case (run, text, &string, i, size,
                         first ? JINJA_CASE_UPPER : JINJA_CASE_LOWER);
      first = FALSE;
      was_break = is_break;
    }
  return jinja_text_string (text);
}

FILTER (filter_trim)
{
  JinjaValue string = soft_string (run, self);

  return jinja_string_strip (run, &string, &a[0], JINJA_STRIP_BOTH);
}

FILTER (filter_replace)
{
  JinjaValue string = jinja_str (run, self);
  JinjaValue old = jinja_str (run, &a[0]);
  JinjaValue replacement = jinja_str (run, &a[1]);

  return jinja_string_replace (
      run, &string, &old, &replacement,
      jinja_is_absent (&a[2]) ? -1 : jinja_index (run, &a[2]));
}

FILTER (filter_center)
{
  JinjaValue string = soft_string (run, self);

  return jinja_string_pad (run, &string, jinja_integer_or (run, &a[0], 80),
                           NULL, JINJA_STRIP_BOTH);
}

static JinjaValue
filter_format (JinjaRun *run, const JinjaValue *self,
               const JinjaArguments *arguments)
{
  JinjaValue string = soft_string (run, self);
  JinjaValue values = jinja_list_new (run, JINJA_TUPLE, arguments->n_values);
  JinjaDict *names = jinja_dict_new (run);

  if (arguments->n_values > 0 && arguments->n_keywords > 0)
    jinja_raise (run, "can't handle positional and keyword arguments at the "
                      "same time");
  for (guint i = 0; i < arguments->n_values; i++)
    jinja_list_append (run, &values, arguments->values[i]);
  for (guint i = 0; i < arguments->n_keywords; i++)
    jinja_dict_set (run, names, arguments->keywords[i].name,
                    arguments->keywords[i].value);
  if (arguments->n_keywords > 0)
    values = jinja_dict_value (names);
  return jinja_format_percent (run, &string, &values);
}

static JinjaValue
indentation (JinjaRun *run, const JinjaValue *width)
{
  JinjaText *text;

  if (width->kind == JINJA_STRING)
    return *width;
  text = jinja_text_new (run, 0);
  jinja_text_append_fill (
      run, text, ' ',
      (gsize) CLAMP (jinja_integer_or (run, width, 4), 0,
                     (gint64) run->text_limit));
  return jinja_text_string (text);
}

/* Jinja2 adds a newline, splits into lines and joins them with \n again, so
 * that every kind of line break becomes that. */
FILTER (filter_indent)
{
  JinjaValue indent = indentation (run, &a[0]);
  gboolean first = jinja_boolean_or (run, &a[1], FALSE);
  gboolean blank = jinja_boolean_or (run, &a[2], FALSE);
  JinjaValue newline = jinja_string_new (run, "\n", 1, JINJA_DATA);
  JinjaValue string = *jinja_check_string (run, self);
  JinjaText *text = jinja_text_new (run, 0);
  JinjaValue lines;
  JinjaValue result;

  string = jinja_string_concat (run, &string, &newline);
  lines = jinja_string_lines (run, &string, FALSE);
  if (first)
    jinja_text_append_string (run, text, &indent);
  for (guint32 i = 0; i < lines.length; i++)
    {
      const JinjaValue *line = &lines.items->values[i];

      if (i > 0)
        jinja_text_append_string (run, text, &newline);
      if (i > 0 && (blank || line->length > 0))
        jinja_text_append_string (run, text, &indent);
      jinja_text_append_string (run, text, line);
    }
  result = jinja_text_string (text);
  result.markup = self->markup;
  return result;
}

FILTER (filter_truncate)
{
  gint64 length = jinja_integer_or (run, &a[0], 255);
  JinjaValue end = a[2].kind == JINJA_MISSING ? jinja_string_c (run, "...")
                                              : *jinja_check_string (run,
                                                                     &a[2]);
  gint64 end_count = (gint64) jinja_string_count (&end);
  gint64 leeway = jinja_is_absent (&a[3]) ? 5 : jinja_index (run, &a[3]);
  JinjaValue head;
  JinjaValue space = jinja_string_c (run, " ");
  JinjaValue pieces;
  gint64 count;

  length = MIN (length, G_MAXINT32);
  leeway = MIN (leeway, G_MAXINT32);
  if (length < end_count || leeway < 0)
    jinja_raise (run, "truncate to fewer characters than its end has");
  if (jinja_length (self, &count) && count <= length + leeway)
    return *self;
  jinja_check_string (run, self);
  head = jinja_string_sub (
      self, 0, jinja_string_offset (self, (gsize) (length - end_count)));
  if (!jinja_boolean_or (run, &a[1], FALSE))
    {
      pieces = jinja_string_split (run, &head, &space, 1, TRUE);
      head = pieces.items->values[0];
    }
  return jinja_operate (run, JINJA_ADD, &head, &end);
}

static gboolean
is_word_character (gunichar c)
{
  return c == '_' || g_unichar_isalnum (c)
         || g_unichar_type (c) == G_UNICODE_OTHER_NUMBER
         || g_unichar_type (c) == G_UNICODE_LETTER_NUMBER;
}

FILTER (filter_wordcount)
{
  JinjaValue string = soft_string (run, self);
  gboolean inside = FALSE;
  gint64 count = 0;

  jinja_step (run, string.length / 16);
  for (gsize i = 0; i < string.length;
       i += jinja_utf8_size (jinja_string_bytes (&string)[i]))
    {
      gboolean word = is_word_character (jinja_string_char (&string, i));

      count += word && !inside;
      inside = word;
    }
  return jinja_integer (count);
}

static void
append_parameter (JinjaRun *run, JinjaText *text, const JinjaValue *pair)
{
  JinjaValue list = jinja_to_list (run, pair);
  JinjaValue name;
  JinjaValue value;

  if (list.length != 2)
    jinja_raise (run, "urlencode takes pairs");
  name = jinja_quote_url (run, &list.items->values[0], TRUE);
  value = jinja_quote_url (run, &list.items->values[1], TRUE);
  if (text->used > 0)
    jinja_text_append_c (run, text, "&");
  jinja_text_append_string (run, text, &name);
  jinja_text_append_c (run, text, "=");
  jinja_text_append_string (run, text, &value);
}

FILTER (filter_urlencode)
{
  JinjaText *text = jinja_text_new (run, 0);
  JinjaIterator *iterator;
  JinjaValue item;

  if (self->kind == JINJA_STRING || !jinja_is_iterable (self))
    return jinja_quote_url (run, self, FALSE);
  if (self->kind == JINJA_DICT)
    {
      for (guint32 i = 0; i < self->dict->n_entries; i++)
        {
          const JinjaEntry *entry = &self->dict->entries[i];

          item = jinja_pair (run, entry->key, entry->value);
          append_parameter (run, text, &item);
        }
      return jinja_text_string (text);
    }
  iterator = jinja_iterate (run, self);
  while (jinja_next (run, iterator, &item))
    append_parameter (run, text, &item);
  return jinja_text_string (text);
}

/* ' key="value"' of each member that is neither None nor undefined. */
FILTER (filter_xmlattr)
{
  JinjaText *text = jinja_text_new (run, 0);
  gboolean space = jinja_boolean_or (run, &a[0], TRUE);

  if (self->kind == JINJA_UNDEFINED)
    jinja_raise_undefined (run, self);
  if (self->kind != JINJA_DICT)
    jinja_raise (run, "'%s' object has no attribute 'items'",
                 jinja_type_name (self));
  for (guint32 i = 0; i < self->dict->n_entries; i++)
    {
      const JinjaEntry *entry = &self->dict->entries[i];
      JinjaValue key;
      JinjaValue value;

      if (entry->value.kind == JINJA_NONE
          || entry->value.kind == JINJA_UNDEFINED)
        continue;
      jinja_check_string (run, &entry->key);
      for (guint32 k = 0; k < entry->key.length; k++)
        if (memchr (" \t\n\r\f\v/>=", jinja_string_bytes (&entry->key)[k], 9))
          jinja_raise (run, "invalid character in attribute name");
      key = jinja_escape (run, &entry->key);
      value = jinja_escape (run, &entry->value);
      if (space)
        jinja_text_append_c (run, text, " ");
      space = TRUE;
      jinja_text_append_string (run, text, &key);
      jinja_text_append_c (run, text, "=\"");
      jinja_text_append_string (run, text, &value);
      jinja_text_append_c (run, text, "\"");
    }
  return jinja_text_string (text);
}

/* Tags go, runs of blanks become one. */
FILTER (filter_striptags)
{
  JinjaValue string = jinja_str (run, self);
  JinjaValue opening = jinja_string_c (run, "<");
  JinjaValue blanks = jinja_missing ();
  JinjaValue space = jinja_string_c (run, " ");
  JinjaText *text = jinja_text_new (run, 0);
  JinjaValue words;
  gsize at = 0;
  gssize start;

  while ((start = jinja_string_find (run, &string, at, &opening)) >= 0)
    {
      JinjaValue rest = jinja_string_sub (&string, (gsize) start,
                                          string.length - (gsize) start);
      gboolean comment = rest.length >= 4
                         && memcmp (jinja_string_bytes (&rest), "<!--", 4) == 0;
      JinjaValue closing = jinja_string_c (run, comment ? "-->" : ">");
      gssize stop = jinja_string_find (run, &rest, comment ? 4 : 0, &closing);

      jinja_step (run, 1);
      if (stop < 0)
        break;
      jinja_text_append_sub (run, text, &string, at, (gsize) start - at);
      at = (gsize) start + (gsize) stop + closing.length;
    }
  jinja_text_append_sub (run, text, &string, at, string.length - at);
  string = jinja_text_string (text);
  words = jinja_string_split (run, &string, &blanks, -1, FALSE);
  return jinja_string_join (run, &space, &words, TRUE);
}

const JinjaBuiltin jinja_text_filters[] = {
  { "trim", "chars", .call = filter_trim },
  { "upper", "", .call = filter_upper },
  { "lower", "", .call = filter_lower },
  { "title", "", .call = filter_title },
  { "capitalize", "", .call = filter_capitalize },
  { "replace", "old,new,count", 2, .call = filter_replace },
  { "indent", "width,first,blank", .call = filter_indent },
  { "format", .call_any = filter_format },
  { "truncate", "length,killwords,end,leeway", .call = filter_truncate },
  { "wordcount", "", .call = filter_wordcount },
  { "center", "width", .call = filter_center },
  { "urlencode", "", .call = filter_urlencode },
  { "striptags", "", .call = filter_striptags },
  { "xmlattr", "autospace", .call = filter_xmlattr },
  { NULL },
};
