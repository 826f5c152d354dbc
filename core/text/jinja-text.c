/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-text.h"

JinjaText *
jinja_text_new (JinjaRun *run, gsize reserve)
{
  JinjaText *text = jinja_new (run, JinjaText);

  if (reserve > run->text_limit)
    jinja_raise (run, "a text is longer than %" G_GSIZE_FORMAT
                      " bytes (output limit)", run->text_limit);
  text->capacity = (guint32) MAX (reserve, 16);
  text->bytes = jinja_alloc (run, text->capacity);
  return text;
}

static void
reserve_text (JinjaRun *run, JinjaText *text, gsize more)
{
  gsize needed = text->used + more;
  gsize capacity;

  if (more > run->text_limit || needed > run->text_limit)
    jinja_raise (run, "a text is longer than %" G_GSIZE_FORMAT
                      " bytes (output limit)", run->text_limit);
  if (needed <= text->capacity)
    return;
  capacity = MIN (needed + needed / 2 + 16, run->text_limit);
  text->bytes = jinja_grow (run, text->bytes, text->used, capacity);
  text->capacity = (guint32) capacity;
}

static void
add_stretch (JinjaRun *run, JinjaText *text, JinjaOrigin origin)
{
  if (text->n_stretches > 0
      && text->stretches[text->n_stretches - 1].origin == origin)
    return;
  if (text->n_stretches == text->stretches_capacity)
    {
      guint32 capacity = text->stretches_capacity * 2 + 2;

      text->stretches = jinja_grow (
          run, text->stretches, text->n_stretches * sizeof (JinjaStretch),
          capacity * sizeof (JinjaStretch));
      text->stretches_capacity = capacity;
    }
  text->stretches[text->n_stretches++] =
      (JinjaStretch) { .start = text->used, .origin = origin };
}

void
jinja_text_append (JinjaRun *run, JinjaText *text, const char *bytes,
                   gsize length, JinjaOrigin origin)
{
  if (length == 0)
    return;
  jinja_step (run, length / 64);
  reserve_text (run, text, length);
  add_stretch (run, text, origin);
  memcpy (text->bytes + text->used, bytes, length);
  text->used += (guint32) length;
}

void
jinja_text_append_sub (JinjaRun *run, JinjaText *text,
                       const JinjaValue *string, gsize offset, gsize length)
{
  gsize stop = offset + length;

  while (offset < stop)
    {
      gsize end;
      JinjaOrigin origin = jinja_string_origin (string, offset, &end);

      end = MIN (end, stop);
      jinja_text_append (run, text, jinja_string_bytes (string) + offset,
                         end - offset, origin);
      offset = end;
    }
}

void
jinja_text_append_string (JinjaRun *run, JinjaText *text,
                          const JinjaValue *string)
{
  jinja_text_append_sub (run, text, string, 0, string->length);
}

void
jinja_text_append_c (JinjaRun *run, JinjaText *text, const char *string)
{
  jinja_text_append (run, text, string, strlen (string), JINJA_DATA);
}

void
jinja_text_append_printf (JinjaRun *run, JinjaText *text, const char *format,
                          ...)
{
  char buffer[128];
  va_list args;
  int length;

  va_start (args, format);
  length = g_vsnprintf (buffer, sizeof buffer, format, args);
  va_end (args);
  jinja_text_append (run, text, buffer,
                     (gsize) CLAMP (length, 0, (int) sizeof buffer - 1),
                     JINJA_DATA);
}

void
jinja_text_append_fill (JinjaRun *run, JinjaText *text, char fill, gsize count)
{
  if (count == 0)
    return;
  jinja_step (run, count / 64);
  reserve_text (run, text, count);
  add_stretch (run, text, JINJA_DATA);
  memset (text->bytes + text->used, fill, count);
  text->used += (guint32) count;
}

void
jinja_text_append_unichar (JinjaRun *run, JinjaText *text, gunichar c,
                           JinjaOrigin origin)
{
  char buffer[6];
  int size = g_unichar_to_utf8 (c, buffer);

  jinja_text_append (run, text, buffer, (gsize) size, origin);
}

JinjaValue
jinja_text_string (JinjaText *text)
{
  return (JinjaValue) { .kind = JINJA_STRING,
                        .length = text->used,
                        .text = text };
}

JinjaValue
jinja_string_new (JinjaRun *run, const char *bytes, gsize length,
                  JinjaOrigin origin)
{
  JinjaText *text = jinja_text_new (run, length);

  jinja_text_append (run, text, bytes, length, origin);
  return jinja_text_string (text);
}

JinjaValue
jinja_string_borrow (JinjaRun *run, const char *bytes, gsize length,
                     JinjaOrigin origin)
{
  struct {
    JinjaText text;
    JinjaStretch stretch;
  } *block = jinja_alloc (run, sizeof *block);

  if (length > G_MAXUINT32 / 2)
    jinja_raise (run, "a string of the variables is too long");
  block->stretch.origin = origin;
  block->text = (JinjaText) { .bytes = (char *) bytes,
                              .used = (guint32) length,
                              .stretches = &block->stretch,
                              .n_stretches = 1,
                              .stretches_capacity = 1 };
  return jinja_text_string (&block->text);
}

JinjaValue
jinja_string_c (JinjaRun *run, const char *string)
{
  return jinja_string_borrow (run, string, strlen (string), JINJA_DATA);
}

JinjaValue
jinja_string_sub (const JinjaValue *string, gsize offset, gsize length)
{
  JinjaValue piece = *string;

  piece.offset += (guint32) offset;
  piece.length = (guint32) length;
  return piece;
}

JinjaValue
jinja_string_concat (JinjaRun *run, const JinjaValue *a, const JinjaValue *b)
{
  JinjaText *text = a->text;
  guint32 offset = a->offset;
  JinjaValue result;

  if (b->length == 0)
    return *a;
  if (a->length == 0)
    return *b;
  if (text->capacity == 0 || offset + a->length != text->used)
    {
      gsize total = (gsize) a->length + b->length;

      text = jinja_text_new (run, MIN (total + total / 4, run->text_limit));
      jinja_text_append_string (run, text, a);
      offset = 0;
    }
  jinja_text_append_string (run, text, b);
  result = *a;
  result.text = text;
  result.offset = offset;
  result.length = a->length + b->length;
  return result;
}

gboolean
jinja_string_is (const JinjaValue *string, const char *text)
{
  return string->kind == JINJA_STRING && string->length == strlen (text)
         && memcmp (jinja_string_bytes (string), text, string->length) == 0;
}

gboolean
jinja_string_same (const JinjaValue *a, const JinjaValue *b)
{
  return a->length == b->length
         && memcmp (jinja_string_bytes (a), jinja_string_bytes (b), a->length)
                == 0;
}

gsize
jinja_string_count (const JinjaValue *string)
{
  const char *bytes = jinja_string_bytes (string);
  gsize count = 0;

  for (guint32 i = 0; i < string->length; i++)
    count += ((guint8) bytes[i] & 0xC0) != 0x80;
  return count;
}

gsize
jinja_string_offset (const JinjaValue *string, gsize index)
{
  const char *bytes = jinja_string_bytes (string);
  gsize offset = 0;

  while (index-- > 0 && offset < string->length)
    offset += jinja_utf8_size (bytes[offset]);
  return MIN (offset, string->length);
}

gunichar
jinja_string_char (const JinjaValue *string, gsize offset)
{
  return g_utf8_get_char (jinja_string_bytes (string) + offset);
}

gssize
jinja_string_find (JinjaRun *run, const JinjaValue *string, gsize from,
                   const JinjaValue *needle)
{
  const char *bytes = jinja_string_bytes (string);
  const char *found;

  if (from > string->length)
    return -1;
  jinja_step (run, (string->length - from) / 64);
  found = memmem (bytes + from, string->length - from,
                  jinja_string_bytes (needle), needle->length);
  return found != NULL ? found - bytes : -1;
}

JinjaOrigin
jinja_string_origin (const JinjaValue *string, gsize offset, gsize *end)
{
  const JinjaText *text = string->text;
  gsize place = string->offset + offset;
  guint32 low = 0;
  guint32 high = text->n_stretches;

  /* The last stretch that starts at or before @place. */
  while (high - low > 1)
    {
      guint32 middle = low + (high - low) / 2;

      if (text->stretches[middle].start <= place)
        low = middle;
      else
        high = middle;
    }
  if (end != NULL)
    *end = high < text->n_stretches
               ? MIN (text->stretches[high].start - string->offset,
                      string->length)
               : string->length;
  return text->n_stretches > 0 ? text->stretches[low].origin : JINJA_DATA;
}

JinjaOrigin
jinja_string_common_origin (const JinjaValue *string)
{
  gsize offset = 0;

  if (string->length == 0)
    return JINJA_DATA;
  while (offset < string->length)
    if (jinja_string_origin (string, offset, &offset) == JINJA_DATA)
      return JINJA_DATA;
  return JINJA_TEMPLATE;
}

/* Unicode's White_Space, and the four separators that Python adds. */
gboolean
jinja_is_space (gunichar c)
{
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85
         || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A)
         || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F
         || c == 0x3000;
}
