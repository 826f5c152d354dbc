/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-format.h"

#include <math.h>

#include "jinja-number.h"
#include "jinja-text.h"

static void
check_layout (JinjaRun *run, const JinjaLayout *layout)
{
  if (layout->width > (gint64) run->text_limit || layout->precision > 1000)
    jinja_raise (run, "a width or precision is too large");
}

/* Groups the digits before the point by three. */
static const char *
group_digits (JinjaRun *run, const char *digits, char separator)
{
  gsize whole = strspn (digits, "0123456789");
  JinjaText *text = jinja_text_new (run, strlen (digits) * 2);

  for (gsize i = 0; i < whole; i++)
    {
      if (i > 0 && (whole - i) % 3 == 0)
        jinja_text_append (run, text, &separator, 1, JINJA_DATA);
      jinja_text_append (run, text, &digits[i], 1, JINJA_DATA);
    }
  jinja_text_append (run, text, digits + whole, strlen (digits + whole) + 1,
                     JINJA_DATA);
  return text->bytes;
}

/* Sign, prefix and digits, padded; numbers go to the right. */
static void
append_number (JinjaRun *run, JinjaText *text, gboolean negative,
               const char *prefix, const char *digits,
               const JinjaLayout *layout)
{
  const char *sign = negative               ? "-"
                     : layout->sign == '+' ? "+"
                     : layout->sign == ' ' ? " "
                                            : "";
  gint64 length;
  gint64 padding;
  gint64 left;
  char align = layout->align != 0 ? layout->align : '>';

  check_layout (run, layout);
  if (layout->grouping != 0)
    digits = group_digits (run, digits, layout->grouping);
  length = (gint64) (strlen (sign) + strlen (prefix) + strlen (digits));
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
  if (!isfinite (magnitude))
    g_strlcpy (buffer,
               isnan (magnitude) ? (upper ? "NAN" : "nan")
                                 : (upper ? "INF" : "inf"),
               sizeof buffer);
  else if (layout->type == 0 && precision < 0)
    g_strlcpy (buffer, jinja_float_repr (run, magnitude), sizeof buffer);
  else
    {
      char type = percent || layout->type == 'F' ? 'f'
                  : layout->type == 0 || layout->type == 'n'
                      ? 'g'
                      : layout->type;

      g_snprintf (format, sizeof format, "%%%s.%d%c",
                  layout->alternate ? "#" : "",
                  (int) (precision < 0 ? 6 : precision), type);
      g_ascii_formatd (buffer, sizeof buffer, format, magnitude);
      /* Without a type the result still looks like a float. */
      if (layout->type == 0 && strpbrk (buffer, ".e") == NULL)
        g_strlcat (buffer, ".0", sizeof buffer);
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
