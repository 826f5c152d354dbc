/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-escape.h"

#include "jinja-repr.h"
#include "jinja-text.h"

static const char *
entity (char c)
{
  switch (c)
    {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&#34;";
    case '\'':
      return "&#39;";
    default:
      return NULL;
    }
}

JinjaValue
jinja_escape (JinjaRun *run, const JinjaValue *value)
{
  JinjaValue string;
  JinjaText *text;
  gsize plain = 0;

  if (value->kind == JINJA_STRING && value->markup)
    return *value;
  string = jinja_str (run, value);
  text = jinja_text_new (run, MIN (string.length, run->text_limit));
  for (gsize i = 0; i < string.length; i++)
    {
      const char *escape = entity (jinja_string_bytes (&string)[i]);

      if (escape == NULL)
        continue;
      jinja_text_append_sub (run, text, &string, plain, i - plain);
      jinja_text_append (run, text, escape, strlen (escape),
                         jinja_string_origin (&string, i, NULL));
      plain = i + 1;
    }
  jinja_text_append_sub (run, text, &string, plain, string.length - plain);
  string = jinja_text_string (text);
  string.markup = TRUE;
  return string;
}

JinjaValue
jinja_quote_url (JinjaRun *run, const JinjaValue *value, gboolean query)
{
  JinjaValue string = jinja_str (run, value);
  JinjaText *text = jinja_text_new (run, 0);

  jinja_step (run, string.length);
  for (gsize i = 0; i < string.length; i++)
    {
      char c = jinja_string_bytes (&string)[i];
      JinjaOrigin origin = jinja_string_origin (&string, i, NULL);
      char quoted[4];

      if (query && c == ' ')
        g_strlcpy (quoted, "+", sizeof quoted);
      else if (g_ascii_isalnum (c) || strchr ("_.-~", c) != NULL
               || (c == '/' && !query))
        g_snprintf (quoted, sizeof quoted, "%c", c);
      else
        g_snprintf (quoted, sizeof quoted, "%%%02X", (guint8) c);
      if (c == '\0')
        g_strlcpy (quoted, "%00", sizeof quoted);
      jinja_text_append (run, text, quoted, strlen (quoted), origin);
    }
  return jinja_text_string (text);
}
