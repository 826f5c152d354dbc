/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-case.h"

#include "jinja-text.h"

static gboolean
is_cased (gunichar c)
{
  return g_unichar_isupper (c) || g_unichar_islower (c)
         || g_unichar_istitle (c);
}

/* Unicode's Case_Ignorable, as far as words contain it. */
static gboolean
is_case_ignorable (gunichar c)
{
  switch (g_unichar_type (c))
    {
    case G_UNICODE_NON_SPACING_MARK:
    case G_UNICODE_ENCLOSING_MARK:
    case G_UNICODE_FORMAT:
    case G_UNICODE_MODIFIER_LETTER:
    case G_UNICODE_MODIFIER_SYMBOL:
      return TRUE;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019
             || c == 0x2018 || c == 0x2024 || c == 0x2027;
    }
}

/* Capital sigma has another small form at the end of a word (SpecialCasing's
 * Final_Sigma). */
static gboolean
is_final_sigma (const JinjaValue *string, gsize offset)
{
  const char *bytes = jinja_string_bytes (string);
  const char *at = bytes + offset;
  gboolean letter_before = FALSE;
  gsize next = offset + jinja_utf8_size (bytes[offset]);

  while (at > bytes)
    {
      at = g_utf8_prev_char (at);
      if (is_case_ignorable (g_utf8_get_char (at)))
        continue;
      letter_before = is_cased (g_utf8_get_char (at));
      break;
    }
  if (!letter_before)
    return FALSE;
  for (; next < string->length; next += jinja_utf8_size (bytes[next]))
    if (!is_case_ignorable (jinja_string_char (string, next)))
      return !is_cased (jinja_string_char (string, next));
  return TRUE;
}

/* The upper case of one character, which may be several: ß. */
static void
append_upper (JinjaRun *run, JinjaText *text, gunichar c, JinjaOrigin origin)
{
  char buffer[32] = { 0 };
  char character[7] = { 0 };
  char *upper;

  if (c < 0x80)
    {
      buffer[0] = g_ascii_toupper ((char) c);
      jinja_text_append (run, text, buffer, 1, origin);
      return;
    }
  jinja_step (run, 1);
  g_unichar_to_utf8 (c, character);
  upper = g_utf8_strup (character, -1);
  g_strlcpy (buffer, upper, sizeof buffer);
  g_free (upper); /* before anything that can raise */
  jinja_text_append (run, text, buffer, strlen (buffer), origin);
}

static void
append_lower (JinjaRun *run, JinjaText *text, const JinjaValue *string,
              gsize offset, JinjaOrigin origin)
{
  gunichar c = jinja_string_char (string, offset);

  if (c == 0x130)
    {
      jinja_text_append (run, text, "i\xCC\x87", 3, origin);
      return;
    }
  if (c == 0x3A3)
    c = is_final_sigma (string, offset) ? 0x3C2 : 0x3C3;
  else
    c = g_unichar_tolower (c);
  jinja_text_append_unichar (run, text, c, origin);
}

static void
append_title (JinjaRun *run, JinjaText *text, gunichar c, JinjaOrigin origin)
{
  JinjaText *upper;
  JinjaValue string;
  gsize first;

  if (g_unichar_totitle (c) != c || c < 0x80)
    {
      jinja_text_append_unichar (run, text, g_unichar_totitle (c), origin);
      return;
    }
  /* A ligature: its first letter large, the others small. */
  upper = jinja_text_new (run, 16);
  append_upper (run, upper, c, origin);
  string = jinja_text_string (upper);
  first = jinja_utf8_size (upper->bytes[0]);
  jinja_text_append (run, text, upper->bytes, first, origin);
  for (; first < string.length; first += jinja_utf8_size (upper->bytes[first]))
    append_lower (run, text, &string, first, origin);
}

static void
append_folded (JinjaRun *run, JinjaText *text, const JinjaValue *string,
               gsize offset, JinjaOrigin origin)
{
  char character[7] = { 0 };
  char buffer[32] = { 0 };
  char *folded;

  jinja_step (run, 1);
  g_unichar_to_utf8 (jinja_string_char (string, offset), character);
  folded = g_utf8_casefold (character, -1);
  g_strlcpy (buffer, folded, sizeof buffer);
  g_free (folded); /* before anything that can raise */
  jinja_text_append (run, text, buffer, strlen (buffer), origin);
}

void
jinja_append_case (JinjaRun *run, JinjaText *text, const JinjaValue *string,
                   gsize offset, gsize length, JinjaCase to)
{
  const char *bytes = jinja_string_bytes (string);
  gsize start = offset;
  gsize stop = offset + length;
  gboolean previous_cased = FALSE;

  jinja_step (run, length / 8);
  while (offset < stop)
    {
      gunichar c = jinja_string_char (string, offset);
      JinjaOrigin origin = jinja_string_origin (string, offset, NULL);
      gboolean first = to == JINJA_CASE_CAPITALIZED ? offset == start
                                                    : !previous_cased;

      if (to == JINJA_CASE_UPPER
          || (to == JINJA_CASE_SWAPPED && g_unichar_islower (c)))
        append_upper (run, text, c, origin);
      else if (to == JINJA_CASE_SWAPPED && !g_unichar_isupper (c))
        jinja_text_append_unichar (run, text, c, origin);
      else if (to == JINJA_CASE_FOLDED)
        append_folded (run, text, string, offset, origin);
      else if ((to == JINJA_CASE_CAPITALIZED || to == JINJA_CASE_TITLE)
               && first)
        append_title (run, text, c, origin);
      else
        append_lower (run, text, string, offset, origin);
      previous_cased = is_cased (c);
      offset += jinja_utf8_size (bytes[offset]);
    }
}

JinjaValue
jinja_change_case (JinjaRun *run, const JinjaValue *string, JinjaCase to)
{
  JinjaText *text = jinja_text_new (run, MIN (string->length, run->text_limit));
  JinjaValue result;

  jinja_append_case (run, text, string, 0, string->length, to);
  result = jinja_text_string (text);
  result.markup = string->markup;
  return result;
}

static gboolean
has_case (const JinjaValue *string, gboolean upper)
{
  gboolean seen = FALSE;

  for (gsize i = 0; i < string->length;
       i += jinja_utf8_size (jinja_string_bytes (string)[i]))
    {
      gunichar c = jinja_string_char (string, i);

      if (g_unichar_istitle (c)
          || (upper ? g_unichar_islower (c) : g_unichar_isupper (c)))
        return FALSE;
      seen |= upper ? g_unichar_isupper (c) : g_unichar_islower (c);
    }
  return seen;
}

gboolean
jinja_is_lower (const JinjaValue *string)
{
  return has_case (string, FALSE);
}

gboolean
jinja_is_upper (const JinjaValue *string)
{
  return has_case (string, TRUE);
}

gboolean
jinja_is_title (const JinjaValue *string)
{
  gboolean previous_cased = FALSE;
  gboolean seen = FALSE;

  for (gsize i = 0; i < string->length;
       i += jinja_utf8_size (jinja_string_bytes (string)[i]))
    {
      gunichar c = jinja_string_char (string, i);
      gboolean capital = g_unichar_isupper (c) || g_unichar_istitle (c);

      if (capital ? previous_cased : g_unichar_islower (c) && !previous_cased)
        return FALSE;
      previous_cased = is_cased (c);
      seen |= previous_cased;
    }
  return seen;
}
