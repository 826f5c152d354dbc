/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "json.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void
append_control (GString *out, guint8 c)
{
  static const char names[] = "btn\0fr";

  if (c >= '\b' && c <= '\r' && names[c - '\b'] != '\0')
    g_string_append_printf (out, "\\%c", names[c - '\b']);
  else
    g_string_append_printf (out, "\\u%04x", c);
}

void
runnel_json_append_string (GString *out, const char *text, gssize length)
{
  const char *at = text, *end = text + (length < 0 ? strlen (text) : length);

  g_string_append_c (out, '"');
  while (at < end) {
    const char *run = at;

    while (at < end && (guint8) *at >= 0x20 && (guint8) *at < 0x80 &&
        *at != '"' && *at != '\\')
      at++;
    g_string_append_len (out, run, at - run);
    if (at == end)
      break;
    if (*at == '"' || *at == '\\') {
      g_string_append_c (out, '\\');
      g_string_append_c (out, *at++);
    } else if ((guint8) *at < 0x20) {
      append_control (out, *at++);
    } else if ((gint32) g_utf8_get_char_validated (at, end - at) >= 0) {
      const char *next = g_utf8_next_char (at);

      g_string_append_len (out, at, next - at);
      at = next;
    } else {
      /* Pieces of tokens may be half a character; JSON holds only whole. */
      g_string_append (out, "\357\277\275");
      at++;
    }
  }
  g_string_append_c (out, '"');
}

/* The shortest "%.*e" form that reads back as @value. */
static void
shortest_scientific (double value, char *buffer, int size)
{
  /* 15 digits or fewer survive a normal double, so the 15-digit form is the
   * shortest one padded with zeros; subnormals hold fewer. */
  int first = fabs (value) < DBL_MIN ? 0 : 14;

  for (int digits = first; digits <= 16; digits++) {
    char format[8];

    g_snprintf (format, sizeof format, "%%.%de", digits);
    g_ascii_formatd (buffer, size, format, value);
    if (g_ascii_strtod (buffer, NULL) == value)
      return;
  }
}

void
runnel_json_append_double (GString *out, double value)
{
  char buffer[40], digits[20];
  int exponent, n = 0;
  const char *e;

  if (!isfinite (value)) {
    g_string_append (out, "null");
    return;
  }
  shortest_scientific (value, buffer, sizeof buffer);
  e = strchr (buffer, 'e');
  exponent = atoi (e + 1);
  for (const char *p = buffer; p < e; p++)
    if (g_ascii_isdigit (*p))
      digits[n++] = *p;
  while (n > 1 && digits[n - 1] == '0')
    n--;
  if (buffer[0] == '-')
    g_string_append_c (out, '-');
  /* Laid out as Python does: what has a point or exponent stays a float. */
  if (exponent < -4 || exponent >= 16) {
    g_string_append_c (out, digits[0]);
    if (n > 1) {
      g_string_append_c (out, '.');
      g_string_append_len (out, digits + 1, n - 1);
    }
    g_string_append_printf (out, "e%c%02d", exponent < 0 ? '-' : '+',
        abs (exponent));
    return;
  }
  if (exponent < 0) {
    g_string_append (out, "0.");
    for (int i = -1; i > exponent; i--)
      g_string_append_c (out, '0');
    g_string_append_len (out, digits, n);
    return;
  }
  for (int i = 0; i <= exponent || i < n || i == exponent + 1; i++) {
    if (i == exponent + 1)
      g_string_append_c (out, '.');
    g_string_append_c (out, i < n ? digits[i] : '0');
  }
}
