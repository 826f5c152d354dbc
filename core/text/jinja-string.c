/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-string.h"

#include "jinja-builtins.h"
#include "jinja-escape.h"
#include "jinja-repr.h"
#include "jinja-text.h"

static gboolean
is_stripped (const JinjaValue *characters, gunichar c)
{
  if (jinja_is_absent (characters))
    return jinja_is_space (c);
  for (gsize i = 0; i < characters->length;
       i += jinja_utf8_size (jinja_string_bytes (characters)[i]))
    if (jinja_string_char (characters, i) == c)
      return TRUE;
  return FALSE;
}

JinjaValue
jinja_string_strip (JinjaRun *run, const JinjaValue *string,
                    const JinjaValue *characters, JinjaStrip side)
{
  const char *bytes = jinja_string_bytes (string);
  gsize start = 0;
  gsize stop = string->length;
  gsize cost = 1;

  if (!jinja_is_absent (characters))
    {
      jinja_check_string (run, characters);
      cost += characters->length / 8;
    }
  while ((side & JINJA_STRIP_LEFT) != 0 && start < stop
         && is_stripped (characters, jinja_string_char (string, start)))
    {
      jinja_step (run, cost);
      start += jinja_utf8_size (bytes[start]);
    }
  while ((side & JINJA_STRIP_RIGHT) != 0 && stop > start)
    {
      const char *last = g_utf8_prev_char (bytes + stop);

      jinja_step (run, cost);
      if (!is_stripped (characters, g_utf8_get_char (last)))
        break;
      stop = (gsize) (last - bytes);
    }
  return jinja_string_sub (string, start, stop - start);
}

static void
append_piece (JinjaRun *run, JinjaValue *list, const JinjaValue *string,
              gsize start, gsize stop)
{
  jinja_list_append (run, list,
                     jinja_string_sub (string, start, stop - start));
}

static void
split_blanks (JinjaRun *run, const JinjaValue *string, gint64 max,
              JinjaValue *list)
{
  const char *bytes = jinja_string_bytes (string);
  gsize at = 0;

  while (TRUE)
    {
      gsize start;

      while (at < string->length
             && jinja_is_space (jinja_string_char (string, at)))
        at += jinja_utf8_size (bytes[at]);
      if (at == string->length)
        return;
      if (max >= 0 && list->length >= max)
        {
          append_piece (run, list, string, at, string->length);
          return;
        }
      start = at;
      while (at < string->length
             && !jinja_is_space (jinja_string_char (string, at)))
        at += jinja_utf8_size (bytes[at]);
      append_piece (run, list, string, start, at);
    }
}

static void
reverse_list (JinjaValue *list)
{
  for (guint32 i = 0; i < list->length / 2; i++)
    {
      JinjaValue item = list->items->values[i];

      list->items->values[i] = list->items->values[list->length - 1 - i];
      list->items->values[list->length - 1 - i] = item;
    }
}

/* The pieces from the right, to be reversed. */
static void
rsplit_blanks (JinjaRun *run, const JinjaValue *string, gint64 max,
               JinjaValue *list)
{
  const char *bytes = jinja_string_bytes (string);
  gsize at = string->length;
  JinjaValue blanks = jinja_missing ();

  while (TRUE)
    {
      JinjaValue rest = jinja_string_sub (string, 0, at);
      gsize stop;

      rest = jinja_string_strip (run, &rest, &blanks, JINJA_STRIP_RIGHT);
      at = rest.length;
      if (at == 0)
        return;
      if (max >= 0 && list->length >= max)
        {
          jinja_list_append (run, list, rest);
          return;
        }
      stop = at;
      while (at > 0)
        {
          const char *last = g_utf8_prev_char (bytes + at);

          if (jinja_is_space (g_utf8_get_char (last)))
            break;
          at = (gsize) (last - bytes);
        }
      append_piece (run, list, string, at, stop);
    }
}

static gssize
find_last (const JinjaValue *string, gsize stop, const JinjaValue *needle)
{
  const char *bytes = jinja_string_bytes (string);

  if (needle->length > stop)
    return -1;
  for (gsize at = stop - needle->length + 1; at-- > 0;)
    if (memcmp (bytes + at, jinja_string_bytes (needle), needle->length) == 0)
      return (gssize) at;
  return -1;
}

static void
split_at (JinjaRun *run, const JinjaValue *string,
          const JinjaValue *separator, gint64 max, JinjaValue *list)
{
  gsize start = 0;

  while (max < 0 || list->length < max)
    {
      gssize found = jinja_string_find (run, string, start, separator);

      if (found < 0)
        break;
      append_piece (run, list, string, start, (gsize) found);
      start = (gsize) found + separator->length;
    }
  append_piece (run, list, string, start, string->length);
}

static void
rsplit_at (JinjaRun *run, const JinjaValue *string,
           const JinjaValue *separator, gint64 max, JinjaValue *list)
{
  gsize stop = string->length;

  jinja_step (run, string->length / 16);
  while (max < 0 || list->length < max)
    {
      gssize found = find_last (string, stop, separator);

      if (found < 0)
        break;
      append_piece (run, list, string, (gsize) found + separator->length,
                    stop);
      stop = (gsize) found;
    }
  append_piece (run, list, string, 0, stop);
}

JinjaValue
jinja_string_split (JinjaRun *run, const JinjaValue *string,
                    const JinjaValue *separator, gint64 max,
                    gboolean from_right)
{
  JinjaValue list = jinja_list_new (run, JINJA_LIST, 4);

  jinja_step (run, string->length / 16);
  if (jinja_is_absent (separator))
    {
      if (from_right)
        rsplit_blanks (run, string, max, &list);
      else
        split_blanks (run, string, max, &list);
    }
  else
    {
      jinja_check_string (run, separator);
      if (separator->length == 0)
        jinja_raise (run, "empty separator");
      if (from_right)
        rsplit_at (run, string, separator, max, &list);
      else
        split_at (run, string, separator, max, &list);
    }
  if (from_right)
    reverse_list (&list);
  return list;
}

/* str.splitlines knows more line ends than \n. */
static gboolean
is_line_break (gunichar c)
{
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85
         || c == 0x2028 || c == 0x2029;
}

/* Where the line that begins at @offset ends, before its line break. */
static gsize
line_end (const JinjaValue *string, gsize offset)
{
  while (offset < string->length
         && !is_line_break (jinja_string_char (string, offset)))
    offset += jinja_utf8_size (jinja_string_bytes (string)[offset]);
  return offset;
}

JinjaValue
jinja_string_lines (JinjaRun *run, const JinjaValue *string,
                    gboolean keep_ends)
{
  const char *bytes = jinja_string_bytes (string);
  JinjaValue list = jinja_list_new (run, JINJA_LIST, 4);
  gsize start = 0;

  jinja_step (run, string->length / 16);
  while (start < string->length)
    {
      gsize stop = line_end (string, start);
      gsize next = stop;

      if (next < string->length)
        next += bytes[next] == '\r' && next + 1 < string->length
                        && bytes[next + 1] == '\n'
                    ? 2
                    : jinja_utf8_size (bytes[next]);
      append_piece (run, &list, string, start, keep_ends ? next : stop);
      start = next;
    }
  return list;
}

/* Between all characters and at both ends. */
static void
replace_nothing (JinjaRun *run, const JinjaValue *string,
                 const JinjaValue *replacement, gint64 max, JinjaText *text)
{
  gsize at = 0;

  for (gint64 n = 0; max < 0 || n < max; n++)
    {
      gsize size;

      jinja_text_append_string (run, text, replacement);
      jinja_step (run, 1);
      if (at == string->length)
        return;
      size = jinja_utf8_size (jinja_string_bytes (string)[at]);
      jinja_text_append_sub (run, text, string, at, size);
      at += size;
    }
  jinja_text_append_sub (run, text, string, at, string->length - at);
}

JinjaValue
jinja_string_replace (JinjaRun *run, const JinjaValue *string,
                      const JinjaValue *old, const JinjaValue *replacement,
                      gint64 max)
{
  JinjaText *text;
  JinjaValue result;
  gssize found = jinja_string_find (run, string, 0, old);
  gsize at = 0;

  if (found < 0 || max == 0)
    return *string;
  text = jinja_text_new (run, MIN (string->length, run->text_limit));
  if (old->length == 0)
    replace_nothing (run, string, replacement, max, text);
  else
    {
      for (gint64 n = 0; found >= 0 && (max < 0 || n < max); n++)
        {
          jinja_step (run, 1);
          jinja_text_append_sub (run, text, string, at, (gsize) found - at);
          jinja_text_append_string (run, text, replacement);
          at = (gsize) found + old->length;
          found = jinja_string_find (run, string, at, old);
        }
      jinja_text_append_sub (run, text, string, at, string->length - at);
    }
  result = jinja_text_string (text);
  result.markup = string->markup;
  return result;
}

JinjaValue
jinja_string_join (JinjaRun *run, const JinjaValue *separator,
                   const JinjaValue *items, gboolean convert)
{
  JinjaIterator *iterator = jinja_iterate (run, items);
  JinjaText *text = jinja_text_new (run, 0);
  JinjaValue item;
  JinjaValue result;
  gsize n = 0;

  while (jinja_next (run, iterator, &item))
    {
      if (n++ > 0)
        jinja_text_append_string (run, text, separator);
      if (separator->markup && !convert)
        item = jinja_escape (run, &item);
      if (convert)
        jinja_append_str (run, text, &item);
      else if (item.kind == JINJA_STRING)
        jinja_text_append_string (run, text, &item);
      else
        jinja_raise (run, "sequence item %" G_GSIZE_FORMAT
                          ": expected str instance, %s found",
                     n - 1, jinja_type_name (&item));
    }
  result = jinja_text_string (text);
  result.markup = separator->markup && !convert;
  return result;
}

JinjaValue
jinja_string_pad (JinjaRun *run, const JinjaValue *string, gint64 width,
                  const JinjaValue *fill, JinjaStrip sides)
{
  gint64 count = (gint64) jinja_string_count (string);
  gint64 padding = MAX (width, count) - count;
  gint64 left;
  JinjaText *text;
  JinjaValue result;

  if (fill != NULL && jinja_string_count (jinja_check_string (run, fill)) != 1)
    jinja_raise (run, "the fill character must be exactly one character long");
  if (padding == 0)
    return *string;
  if (padding > (gint64) run->text_limit)
    jinja_raise (run, "a text is longer than %" G_GSIZE_FORMAT
                      " bytes (output limit)", run->text_limit);
  /* As CPython centers: the odd one goes left where the width is odd. */
  left = sides == JINJA_STRIP_LEFT    ? padding
         : sides == JINJA_STRIP_RIGHT ? 0
                                      : padding / 2 + (padding & width & 1);
  text = jinja_text_new (run, 0);
  for (gint64 i = 0; i < left; i++)
    if (fill == NULL)
      jinja_text_append_fill (run, text, ' ', 1);
    else
      jinja_text_append_string (run, text, fill);
  jinja_text_append_string (run, text, string);
  for (gint64 i = left; i < padding; i++)
    if (fill == NULL)
      jinja_text_append_fill (run, text, ' ', 1);
    else
      jinja_text_append_string (run, text, fill);
  jinja_step (run, (gsize) padding);
  result = jinja_text_string (text);
  result.markup = string->markup;
  return result;
}
