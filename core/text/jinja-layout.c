/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-format.h"

#include <math.h>
#include <stdlib.h>

#include "jinja-number.h"
#include "jinja-text.h"

static void
check_layout (JinjaRun *run, const JinjaLayout *layout)
{
  if (layout->width > (gint64) run->text_limit || layout->precision > 1000)
    jinja_raise (run, "a width or precision is too large");
}

/* Groups the digits before the point, after @zeros more of them. */
static const char *
group_digits (JinjaRun *run, const char *digits, const JinjaLayout *layout,
              gsize zeros)
{
  gboolean by_four =
      layout->type != 0 && strchr ("bxXo", layout->type) != NULL;
  gsize whole =
      strspn (digits, by_four ? "0123456789abcdefABCDEF" : "0123456789");
  gsize group = by_four ? 4 : 3;
  JinjaText *text = jinja_text_new (run, strlen (digits) * 2);

  for (gsize i = 0; i < zeros + whole; i++)
    {
      if (i > 0 && (zeros + whole - i) % group == 0)
        jinja_text_append (run, text, &layout->grouping, 1, JINJA_DATA);
      jinja_text_append (run, text, i < zeros ? "0" : &digits[i - zeros], 1,
                         JINJA_DATA);
    }
  jinja_text_append (run, text, digits + whole, strlen (digits + whole) + 1,
                     JINJA_DATA);
  return text->bytes;
}

/* Zeros that fill a field are grouped, too. */
static const char *
group_and_fill (JinjaRun *run, const char *digits, const JinjaLayout *layout,
                gint64 width)
{
  const char *grouped = group_digits (run, digits, layout, 0);
  gsize zeros = 0;

  if (layout->align != '=' || layout->fill != '0')
    return grouped;
  /* So many at least; the separators take the rest of the room. */
  if (width > (gint64) strlen (grouped))
    zeros = ((gsize) width - strlen (grouped)) * 3 / 4;
  grouped = group_digits (run, digits, layout, zeros);
  while ((gint64) strlen (grouped) < width)
    grouped = group_digits (run, digits, layout, ++zeros);
  return grouped;
}

/* Sign, prefix and digits, padded; numbers go to the right. */
static void
append_number (JinjaRun *run, JinjaText *text, gboolean negative,
               const char *prefix, const char *digits,
               const JinjaLayout *layout)
{
  const char *sign = negative              ? "-"
                     : layout->sign == '+' ? "+"
                     : layout->sign == ' ' ? " "
                                           : "";
  gint64 length = (gint64) (strlen (sign) + strlen (prefix));
  gint64 padding;
  gint64 left;
  char align = layout->align != 0 ? layout->align : '>';

  check_layout (run, layout);
  if (layout->grouping != 0)
    digits = group_and_fill (run, digits, layout, layout->width - length);
  length += (gint64) strlen (digits);
  padding = MAX (layout->width - length, 0);
  left = align == '<' ? 0 : align == '^' ? padding / 2 : padding;
  if (align != '=')
    jinja_text_append_fill (run, text, layout->fill, (gsize) left);
  jinja_text_append_c (run, text, sign);
  jinja_text_append_c (run, text, prefix);
  if (align == '=')
    jinja_text_append_fill (run, text, layout->fill, (gsize) left);
  jinja_text_append_c (run, text, digits);
  jinja_text_append_fill (run, text, layout->fill, (gsize) (padding - left));
}

/* Digits of @magnitude, not negative, in a base below 17. */
static const char *
digits_in_base (JinjaRun *run, JinjaValue magnitude, guint base,
                gboolean upper)
{
  const char *symbols = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  JinjaValue divisor = jinja_integer (base);
  gsize capacity = 72;
  gsize at = capacity - 1;
  char *digits;

  if (magnitude.kind == JINJA_BIG)
    capacity = (gsize) magnitude.big->n_limbs * 30 + 2;
  at = capacity - 1;
  digits = jinja_alloc (run, capacity);
  do
    {
      JinjaValue digit =
          jinja_calculate (run, JINJA_MODULO, &magnitude, &divisor);

      magnitude =
          jinja_calculate (run, JINJA_FLOOR_DIVIDE, &magnitude, &divisor);
      digits[--at] = symbols[digit.integer];
    }
  while (!jinja_number_is_zero (&magnitude));
  return digits + at;
}

void
jinja_append_integer (JinjaRun *run, JinjaText *text,
                      const JinjaValue *integer, const JinjaLayout *layout)
{
  JinjaValue zero = jinja_integer (0);
  JinjaValue magnitude = jinja_absolute (run, integer);
  gboolean negative = jinja_number_compare (run, integer, &zero) < 0;
  const char *prefix = "";
  const char *digits;

  switch (layout->type)
    {
    case 'x':
    case 'X':
      prefix = layout->type == 'x' ? "0x" : "0X";
      digits = digits_in_base (run, magnitude, 16, layout->type == 'X');
      break;
    case 'o':
      prefix = "0o";
      digits = digits_in_base (run, magnitude, 8, FALSE);
      break;
    case 'b':
      prefix = "0b";
      digits = digits_in_base (run, magnitude, 2, FALSE);
      break;
    default:
      digits = jinja_integer_digits (run, &magnitude);
      break;
    }
  if (layout->precision > (gint64) strlen (digits))
    {
      check_layout (run, layout);
      digits = jinja_printf (run, "%0*d%s",
                             (int) (layout->precision
                                    - (gint64) strlen (digits)),
                             0, digits);
    }
  append_number (run, text, negative, layout->alternate ? prefix : "", digits,
                 layout);
}

/* Without a type, a precision means significant digits as with g, but the
 * exponent appears one digit earlier, and there always is a point or one. */
static void
format_untyped (double magnitude, gint64 precision, gboolean alternate,
                char *buffer, gsize size)
{
  char format[16];
  char *exponent;
  char *end;

  precision = MAX (precision, 1);
  g_snprintf (format, sizeof format, "%%%s.%de", alternate ? "#" : "",
              (int) precision - 1);
  g_ascii_formatd (buffer, (int) size, format, magnitude);
  exponent = strchr (buffer, 'e');
  if (atoi (exponent + 1) >= precision - 1 || atoi (exponent + 1) < -4)
    {
      end = exponent;
      if (!alternate && strchr (buffer, '.') != NULL)
        {
          while (end[-1] == '0')
            end--;
          if (end[-1] == '.')
            end--;
        }
      memmove (end, exponent, strlen (exponent) + 1);
      return;
    }
  g_snprintf (format, sizeof format, "%%%s.%dg", alternate ? "#" : "",
              (int) precision);
  g_ascii_formatd (buffer, (int) size, format, magnitude);
  if (strchr (buffer, '.') == NULL)
    g_strlcat (buffer, ".0", size);
}

void
jinja_append_float (JinjaRun *run, JinjaText *text, double number,
                    const JinjaLayout *layout)
{
  /* 309 digits, a point, 1000 decimals */
  char buffer[1400];
  char format[16];
  gboolean percent = layout->type == '%';
  gboolean upper = g_ascii_isupper (layout->type);
  double magnitude = fabs (percent ? number * 100 : number);
  gint64 precision = layout->precision;

  check_layout (run, layout);
  jinja_step (run, 40);
  if (!isfinite (magnitude))
    g_strlcpy (buffer,
               isnan (magnitude) ? (upper ? "NAN" : "nan")
                                 : (upper ? "INF" : "inf"),
               sizeof buffer);
  else if (layout->type == 0 && precision < 0)
    g_strlcpy (buffer, jinja_float_repr (run, magnitude), sizeof buffer);
  else if (layout->type == 0)
    format_untyped (magnitude, precision, layout->alternate, buffer,
                    sizeof buffer);
  else
    {
      char type = percent || layout->type == 'F' ? 'f'
                  : layout->type == 'n'          ? 'g'
                                                 : layout->type;

      g_snprintf (format, sizeof format, "%%%s.%d%c",
                  layout->alternate ? "#" : "",
                  (int) (precision < 0 ? 6 : precision), type);
      g_ascii_formatd (buffer, sizeof buffer, format, magnitude);
    }
  if (percent)
    g_strlcat (buffer, "%", sizeof buffer);
  append_number (run, text, signbit (number) && !isnan (number), "", buffer,
                 layout);
}

void
jinja_append_padded (JinjaRun *run, JinjaText *text, const JinjaValue *string,
                     const JinjaLayout *layout)
{
  JinjaValue piece = *string;
  gint64 count = (gint64) jinja_string_count (string);
  gint64 padding;
  gint64 left;

  if (layout->precision >= 0 && layout->precision < count)
    {
      count = layout->precision;
      piece = jinja_string_sub (
          string, 0, jinja_string_offset (string, (gsize) count));
    }
  padding = MAX (layout->width - count, 0);
  if (padding > (gint64) run->text_limit)
    jinja_raise (run, "a width or precision is too large");
  left = layout->align == '>'   ? padding
         : layout->align == '^' ? padding / 2
                                : 0;
  jinja_text_append_fill (run, text, layout->fill, (gsize) left);
  jinja_text_append_string (run, text, &piece);
  jinja_text_append_fill (run, text, layout->fill, (gsize) (padding - left));
}
