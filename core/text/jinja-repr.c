/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-repr.h"

#include "jinja-loop.h"
#include "jinja-macro.h"
#include "jinja-number.h"
#include "jinja-text.h"

/* str.isprintable () of one character */
static gboolean
is_printable (gunichar c)
{
  switch (g_unichar_type (c))
    {
    case G_UNICODE_CONTROL:
    case G_UNICODE_FORMAT:
    case G_UNICODE_SURROGATE:
    case G_UNICODE_PRIVATE_USE:
    case G_UNICODE_UNASSIGNED:
    case G_UNICODE_LINE_SEPARATOR:
    case G_UNICODE_PARAGRAPH_SEPARATOR:
      return FALSE;
    case G_UNICODE_SPACE_SEPARATOR:
      return c == ' ';
    default:
      return TRUE;
    }
}

/* The escape of a character, or FALSE when it stands for itself. */
static gboolean
escape_character (gunichar c, char quote, char escape[12])
{
  if (c == '\\' || c == (guchar) quote)
    g_snprintf (escape, 12, "\\%c", (char) c);
  else if (c == '\n')
    g_strlcpy (escape, "\\n", 12);
  else if (c == '\r')
    g_strlcpy (escape, "\\r", 12);
  else if (c == '\t')
    g_strlcpy (escape, "\\t", 12);
  else if (is_printable (c))
    return FALSE;
  else if (c < 0x100)
    g_snprintf (escape, 12, "\\x%02x", c);
  else if (c < 0x10000)
    g_snprintf (escape, 12, "\\u%04x", c);
  else
    g_snprintf (escape, 12, "\\U%08x", c);
  return TRUE;
}

static void
append_string_repr (JinjaRun *run, JinjaText *text, const JinjaValue *string)
{
  const char *bytes = jinja_string_bytes (string);
  gboolean single = memchr (bytes, '\'', string->length) != NULL;
  gboolean twofold = memchr (bytes, '"', string->length) != NULL;
  char quote = single && !twofold ? '"' : '\'';
  gsize plain = 0;
  gsize offset = 0;

  if (string->markup)
    jinja_text_append_c (run, text, "Markup(");
  jinja_text_append (run, text, &quote, 1, JINJA_DATA);
  jinja_step (run, string->length / 8);
  while (offset < string->length)
    {
      gsize size = jinja_utf8_size (bytes[offset]);
      char escape[12];

      if (escape_character (jinja_string_char (string, offset), quote, escape))
        {
          jinja_text_append_sub (run, text, string, plain, offset - plain);
          jinja_text_append (run, text, escape, strlen (escape),
                             jinja_string_origin (string, offset, NULL));
          plain = offset + size;
        }
      offset += size;
    }
  jinja_text_append_sub (run, text, string, plain, string->length - plain);
  jinja_text_append (run, text, &quote, 1, JINJA_DATA);
  if (string->markup)
    jinja_text_append_c (run, text, ")");
}

static void
append_items (JinjaRun *run, JinjaText *text, const JinjaValue *list)
{
  for (guint32 i = 0; i < list->length; i++)
    {
      if (i > 0)
        jinja_text_append_c (run, text, ", ");
      jinja_append_repr (run, text, &list->items->values[i]);
    }
}

static void
append_dict (JinjaRun *run, JinjaText *text, const JinjaDict *dict)
{
  jinja_text_append_c (run, text, "{");
  for (guint32 i = 0; i < dict->n_entries; i++)
    {
      if (i > 0)
        jinja_text_append_c (run, text, ", ");
      jinja_append_repr (run, text, &dict->entries[i].key);
      jinja_text_append_c (run, text, ": ");
      jinja_append_repr (run, text, &dict->entries[i].value);
    }
  jinja_text_append_c (run, text, "}");
}

static void
append_view (JinjaRun *run, JinjaText *text, const JinjaValue *view)
{
  JinjaValue list = jinja_to_list (run, view);

  jinja_text_append_c (run, text, jinja_type_name (view));
  jinja_text_append_c (run, text, "([");
  append_items (run, text, &list);
  jinja_text_append_c (run, text, "])");
}

static void
append_range (JinjaRun *run, JinjaText *text, const JinjaRange *range)
{
  jinja_text_append_printf (
      run, text, "range(%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT,
      range->start, range->stop);
  if (range->step != 1)
    jinja_text_append_printf (run, text, ", %" G_GINT64_FORMAT, range->step);
  jinja_text_append_c (run, text, ")");
}

static void
append_container (JinjaRun *run, JinjaText *text, const JinjaValue *value)
{
  switch (value->kind)
    {
    case JINJA_LIST:
      jinja_text_append_c (run, text, "[");
      append_items (run, text, value);
      jinja_text_append_c (run, text, "]");
      break;
    case JINJA_TUPLE:
      jinja_text_append_c (run, text, "(");
      append_items (run, text, value);
      jinja_text_append_c (run, text, value->length == 1 ? ",)" : ")");
      break;
    case JINJA_DICT:
      append_dict (run, text, value->dict);
      break;
    case JINJA_NAMESPACE:
      jinja_text_append_c (run, text, "<Namespace ");
      append_dict (run, text, value->dict);
      jinja_text_append_c (run, text, ">");
      break;
    default:
      append_view (run, text, value);
      break;
    }
}

void
jinja_append_repr (JinjaRun *run, JinjaText *text, const JinjaValue *value)
{
  jinja_enter (run);
  switch (value->kind)
    {
    case JINJA_UNDEFINED:
      jinja_text_append_c (run, text, "Undefined");
      break;
    case JINJA_NONE:
      jinja_text_append_c (run, text, "None");
      break;
    case JINJA_BOOLEAN:
      jinja_text_append_c (run, text, value->boolean ? "True" : "False");
      break;
    case JINJA_INTEGER:
      jinja_text_append_printf (run, text, "%" G_GINT64_FORMAT,
                                value->integer);
      break;
    case JINJA_BIG:
      jinja_text_append_c (run, text, jinja_integer_digits (run, value));
      break;
    case JINJA_FLOAT:
      jinja_text_append_c (run, text, jinja_float_repr (run, value->number));
      break;
    case JINJA_STRING:
      append_string_repr (run, text, value);
      break;
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
    case JINJA_NAMESPACE:
    case JINJA_VIEW:
      append_container (run, text, value);
      break;
    case JINJA_RANGE:
      append_range (run, text, value->range);
      break;
    case JINJA_MACRO:
      jinja_append_macro_repr (run, text, value->macro);
      break;
    case JINJA_LOOP:
      jinja_append_loop_repr (run, text, value->loop);
      break;
    default:
      /* Python prints an address here. */
      jinja_text_append_printf (run, text, "<%s object>",
                                jinja_type_name (value));
      break;
    }
  jinja_leave (run);
}

void
jinja_append_str (JinjaRun *run, JinjaText *text, const JinjaValue *value)
{
  if (value->kind == JINJA_STRING)
    jinja_text_append_string (run, text, value);
  else if (value->kind != JINJA_UNDEFINED && value->kind != JINJA_MISSING)
    jinja_append_repr (run, text, value);
}

JinjaValue
jinja_str (JinjaRun *run, const JinjaValue *value)
{
  JinjaText *text;
  JinjaValue string;

  if (value->kind == JINJA_STRING)
    {
      string = *value;
      string.markup = FALSE;
      return string;
    }
  text = jinja_text_new (run, 0);
  jinja_append_str (run, text, value);
  return jinja_text_string (text);
}

JinjaValue
jinja_repr (JinjaRun *run, const JinjaValue *value)
{
  JinjaText *text = jinja_text_new (run, 0);

  jinja_append_repr (run, text, value);
  return jinja_text_string (text);
}
