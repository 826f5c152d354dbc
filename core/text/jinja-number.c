/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-number.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "jinja-text.h"

/* Big integers */

static JinjaBig *
big_new (JinjaRun *run, gsize n_limbs)
{
  JinjaBig *big;

  if (n_limbs > JINJA_MAX_DIGITS / JINJA_LIMB_DIGITS + 2)
    jinja_raise (run, "an integer has more than %u digits", JINJA_MAX_DIGITS);
  jinja_step (run, n_limbs);
  big = jinja_alloc (run, sizeof (JinjaBig) + n_limbs * sizeof (guint32));
  big->n_limbs = (guint32) n_limbs;
  return big;
}

static const JinjaBig *
to_big (JinjaRun *run, const JinjaValue *value)
{
  gint64 integer;
  guint64 magnitude;
  JinjaBig *big;

  if (value->kind == JINJA_BIG)
    return value->big;
  integer = value->kind == JINJA_BOOLEAN ? value->boolean : value->integer;
  magnitude = integer < 0 ? -(guint64) integer : (guint64) integer;
  big = big_new (run, 3);
  big->negative = integer < 0;
  big->n_limbs = 0;
  for (; magnitude > 0; magnitude /= JINJA_LIMB)
    big->limbs[big->n_limbs++] = (guint32) (magnitude % JINJA_LIMB);
  return big;
}

/* As an integer of 64 bits where it fits. */
static JinjaValue
from_big (JinjaBig *big)
{
  guint64 magnitude = 0;
  guint64 limit;

  while (big->n_limbs > 0 && big->limbs[big->n_limbs - 1] == 0)
    big->n_limbs--;
  limit = (guint64) G_MAXINT64 + (big->negative ? 1 : 0);
  for (guint32 i = big->n_limbs; i-- > 0;)
    {
      if (magnitude > (limit - big->limbs[i]) / JINJA_LIMB)
        return (JinjaValue) { .kind = JINJA_BIG, .big = big };
      magnitude = magnitude * JINJA_LIMB + big->limbs[i];
    }
  return jinja_integer (big->negative ? (gint64) - magnitude
                                      : (gint64) magnitude);
}

static int
compare_magnitudes (const JinjaBig *a, const JinjaBig *b)
{
  if (a->n_limbs != b->n_limbs)
    return a->n_limbs < b->n_limbs ? -1 : 1;
  for (guint32 i = a->n_limbs; i-- > 0;)
    if (a->limbs[i] != b->limbs[i])
      return a->limbs[i] < b->limbs[i] ? -1 : 1;
  return 0;
}

static JinjaBig *
add_magnitudes (JinjaRun *run, const JinjaBig *a, const JinjaBig *b)
{
  guint32 n = MAX (a->n_limbs, b->n_limbs);
  JinjaBig *sum = big_new (run, (gsize) n + 1);
  guint32 carry = 0;

  for (guint32 i = 0; i <= n; i++)
    {
      carry += (i < a->n_limbs ? a->limbs[i] : 0);
      carry += (i < b->n_limbs ? b->limbs[i] : 0);
      sum->limbs[i] = carry % JINJA_LIMB;
      carry /= JINJA_LIMB;
    }
  return sum;
}

/* @a must not be smaller than @b. */
static JinjaBig *
subtract_magnitudes (JinjaRun *run, const JinjaBig *a, const JinjaBig *b)
{
  JinjaBig *difference = big_new (run, a->n_limbs);
  gint64 borrow = 0;

  for (guint32 i = 0; i < a->n_limbs; i++)
    {
      gint64 limb = (gint64) a->limbs[i] - borrow
                    - (i < b->n_limbs ? b->limbs[i] : 0);

      borrow = limb < 0;
      difference->limbs[i] = (guint32) (limb + borrow * JINJA_LIMB);
    }
  return difference;
}

static JinjaBig *
add_signed (JinjaRun *run, const JinjaBig *a, gboolean a_negative,
            const JinjaBig *b, gboolean b_negative)
{
  JinjaBig *result;

  if (a_negative == b_negative)
    {
      result = add_magnitudes (run, a, b);
      result->negative = a_negative;
    }
  else if (compare_magnitudes (a, b) >= 0)
    {
      result = subtract_magnitudes (run, a, b);
      result->negative = a_negative;
    }
  else
    {
      result = subtract_magnitudes (run, b, a);
      result->negative = b_negative;
    }
  return result;
}

static JinjaBig *
multiply_big (JinjaRun *run, const JinjaBig *a, const JinjaBig *b)
{
  JinjaBig *product = big_new (run, (gsize) a->n_limbs + b->n_limbs);

  jinja_step (run, (gsize) a->n_limbs * b->n_limbs / 16);
  for (guint32 i = 0; i < a->n_limbs; i++)
    {
      guint64 carry = 0;

      for (guint32 k = 0; k < b->n_limbs || carry > 0; k++)
        {
          carry += product->limbs[i + k];
          if (k < b->n_limbs)
            carry += (guint64) a->limbs[i] * b->limbs[k];
          product->limbs[i + k] = (guint32) (carry % JINJA_LIMB);
          carry /= JINJA_LIMB;
        }
    }
  product->negative = a->negative != b->negative;
  return product;
}

/* remainder -= divisor * digit, for remainder < divisor * 10^9; returns the
 * digit. The digit is found by bisection: 30 products of few limbs. */
static guint32
divide_step (JinjaRun *run, JinjaBig **remainder, const JinjaBig *divisor)
{
  guint32 low = 0;
  guint32 high = JINJA_LIMB;
  JinjaBig *digit = big_new (run, 1);

  while (high - low > 1)
    {
      JinjaBig *product;

      digit->limbs[0] = low + (high - low) / 2;
      product = multiply_big (run, divisor, digit);
      from_big (product);
      if (compare_magnitudes (product, *remainder) <= 0)
        low = digit->limbs[0];
      else
        high = digit->limbs[0];
    }
  digit->limbs[0] = low;
  if (low > 0)
    {
      JinjaBig *product = multiply_big (run, divisor, digit);

      from_big (product);
      *remainder = subtract_magnitudes (run, *remainder, product);
      from_big (*remainder);
    }
  return low;
}

/* Floor division of signed integers, @b not zero. */
static void
divide_big (JinjaRun *run, const JinjaBig *a, const JinjaBig *b,
            JinjaBig **quotient, JinjaBig **remainder)
{
  JinjaBig *divisor = big_new (run, b->n_limbs);
  JinjaBig *rest = big_new (run, 0);

  memcpy (divisor->limbs, b->limbs, b->n_limbs * sizeof (guint32));
  *quotient = big_new (run, a->n_limbs);
  for (guint32 i = a->n_limbs; i-- > 0;)
    {
      JinjaBig *next = big_new (run, (gsize) rest->n_limbs + 1);

      memcpy (next->limbs + 1, rest->limbs, rest->n_limbs * sizeof (guint32));
      next->limbs[0] = a->limbs[i];
      from_big (next);
      rest = next;
      (*quotient)->limbs[i] = divide_step (run, &rest, divisor);
    }
  (*quotient)->negative = a->negative != b->negative;
  from_big (*quotient);
  rest->negative = a->negative;
  if (rest->n_limbs > 0 && a->negative != b->negative)
    {
      JinjaBig *one = big_new (run, 1);

      one->limbs[0] = 1;
      rest = add_signed (run, rest, rest->negative, b, b->negative);
      *quotient = add_signed (run, *quotient, TRUE, one, TRUE);
    }
  *remainder = rest;
}

/* Reading */

JinjaValue
jinja_integer_from_base (JinjaRun *run, const char *digits, gsize length,
                         guint base)
{
  JinjaValue factor = jinja_integer (base);
  JinjaValue value = jinja_integer (0);

  for (gsize i = 0; i < length; i++)
    {
      JinjaValue digit = jinja_integer (
          g_ascii_isdigit (digits[i]) ? digits[i] - '0'
                                      : g_ascii_tolower (digits[i]) - 'a' + 10);

      value = jinja_calculate (run, JINJA_MULTIPLY, &value, &factor);
      value = jinja_calculate (run, JINJA_ADD, &value, &digit);
    }
  return value;
}

JinjaValue
jinja_integer_from_digits (JinjaRun *run, const char *digits, gsize length)
{
  gboolean negative = length > 0 && digits[0] == '-';
  JinjaBig *big;

  if (length > 0 && (digits[0] == '-' || digits[0] == '+'))
    {
      digits++;
      length--;
    }
  while (length > 1 && digits[0] == '0')
    {
      digits++;
      length--;
    }
  if (length > JINJA_MAX_DIGITS)
    jinja_raise (run, "an integer has more than %u digits", JINJA_MAX_DIGITS);
  big = big_new (run, length / JINJA_LIMB_DIGITS + 1);
  big->negative = negative;
  for (gsize i = 0; i < length; i++)
    {
      gsize limb = (length - 1 - i) / JINJA_LIMB_DIGITS;

      big->limbs[limb] = big->limbs[limb] * 10 + (guint32) (digits[i] - '0');
    }
  return from_big (big);
}

JinjaValue
jinja_integer_from_double (JinjaRun *run, double number)
{
  char buffer[400];

  if (isnan (number))
    jinja_raise (run, "cannot convert float NaN to integer");
  if (isinf (number))
    jinja_raise (run, "cannot convert float infinity to integer");
  if (fabs (number) < 9e18)
    return jinja_integer ((gint64) number);
  g_ascii_formatd (buffer, sizeof buffer, "%.0f", number);
  return jinja_integer_from_digits (run, buffer, strlen (buffer));
}

/* The string without surrounding blanks and with its underscores, which may
 * only stand between digits, removed; NULL when they stand elsewhere. */
static char *
strip_number (JinjaRun *run, const JinjaValue *string, gsize *length)
{
  const char *bytes = jinja_string_bytes (string);
  gsize start = 0;
  gsize stop = string->length;
  char *copy = jinja_alloc (run, (gsize) string->length + 1);

  while (start < stop && jinja_is_space (g_utf8_get_char (bytes + start)))
    start += jinja_utf8_size (bytes[start]);
  while (stop > start)
    {
      const char *last = g_utf8_prev_char (bytes + stop);

      if (!jinja_is_space (g_utf8_get_char (last)))
        break;
      stop = (gsize) (last - bytes);
    }
  *length = 0;
  for (gsize i = start; i < stop; i++)
    {
      if (bytes[i] == '\0')
        return NULL;
      if (bytes[i] != '_')
        copy[(*length)++] = bytes[i];
      else if (i == start || i + 1 == stop || !g_ascii_isalnum (bytes[i - 1])
               || !g_ascii_isalnum (bytes[i + 1]))
        return NULL;
    }
  return copy;
}

/* The base that a 0x, 0o or 0b names, or 0. */
static guint
prefix_base (const char *digits, gsize length)
{
  if (length < 3 || digits[0] != '0')
    return 0;
  switch (g_ascii_tolower (digits[1]))
    {
    case 'x':
      return 16;
    case 'o':
      return 8;
    case 'b':
      return 2;
    default:
      return 0;
    }
}

gboolean
jinja_integer_from_string (JinjaRun *run, const JinjaValue *string, guint base,
                           JinjaValue *ret)
{
  gsize length;
  char *digits = strip_number (run, string, &length);
  gboolean negative;
  guint prefix;

  if (digits == NULL || length == 0)
    return FALSE;
  negative = digits[0] == '-';
  if (digits[0] == '-' || digits[0] == '+')
    {
      digits++;
      length--;
    }
  prefix = prefix_base (digits, length);
  if (prefix != 0 && (base == 0 || base == prefix))
    {
      base = prefix;
      digits += 2;
      length -= 2;
    }
  if (base == 0)
    base = 10;
  if (length == 0)
    return FALSE;
  for (gsize i = 0; i < length; i++)
    {
      int digit = g_ascii_isdigit (digits[i])   ? digits[i] - '0'
                  : g_ascii_isalpha (digits[i]) ? g_ascii_tolower (digits[i])
                                                      - 'a' + 10
                                                : 99;

      if (digit >= (int) base)
        return FALSE;
    }
  *ret = base == 10 ? jinja_integer_from_digits (run, digits, length)
                    : jinja_integer_from_base (run, digits, length, base);
  if (negative)
    *ret = jinja_negate (run, ret);
  return TRUE;
}

gboolean
jinja_float_from_string (JinjaRun *run, const JinjaValue *string, double *ret)
{
  gsize length;
  char *text = strip_number (run, string, &length);
  char *end;

  /* strtod also reads hexadecimal floats and nan (...), Python does not. */
  if (text == NULL || length == 0 || strpbrk (text, "xX()") != NULL
      || g_ascii_isspace (text[0]))
    return FALSE;
  *ret = g_ascii_strtod (text, &end);
  return *end == '\0' && end != text;
}

/* Calculating */

double
jinja_to_double (JinjaRun *run, const JinjaValue *number)
{
  switch (number->kind)
    {
    case JINJA_BOOLEAN:
      return number->boolean;
    case JINJA_INTEGER:
      return (double) number->integer;
    case JINJA_FLOAT:
      return number->number;
    default:
      return g_ascii_strtod (jinja_integer_digits (run, number), NULL);
    }
}

gboolean
jinja_number_is_zero (const JinjaValue *number)
{
  switch (number->kind)
    {
    case JINJA_BOOLEAN:
      return !number->boolean;
    case JINJA_INTEGER:
      return number->integer == 0;
    case JINJA_FLOAT:
      return number->number == 0;
    default:
      return FALSE;
    }
}

int
jinja_number_compare (JinjaRun *run, const JinjaValue *a, const JinjaValue *b)
{
  const JinjaBig *left;
  const JinjaBig *right;
  int order;

  if (a->kind == JINJA_FLOAT || b->kind == JINJA_FLOAT)
    {
      double x = jinja_to_double (run, a);
      double y = jinja_to_double (run, b);

      return isnan (x) || isnan (y) ? 2 : x < y ? -1 : x > y;
    }
  if (a->kind != JINJA_BIG && b->kind != JINJA_BIG)
    {
      gint64 x = a->kind == JINJA_BOOLEAN ? a->boolean : a->integer;
      gint64 y = b->kind == JINJA_BOOLEAN ? b->boolean : b->integer;

      return x < y ? -1 : x > y;
    }
  left = to_big (run, a);
  right = to_big (run, b);
  if (left->negative != right->negative)
    return left->negative ? -1 : 1;
  order = compare_magnitudes (left, right);
  return left->negative ? -order : order;
}

static double
floor_divide_doubles (double x, double y, double *modulo)
{
  double rest = fmod (x, y);
  double quotient = (x - rest) / y;
  double whole;

  if (rest != 0 && (y < 0) != (rest < 0))
    {
      rest += y;
      quotient -= 1;
    }
  else if (rest == 0)
    rest = copysign (0, y);
  *modulo = rest;
  if (quotient == 0)
    return copysign (0, x / y);
  whole = floor (quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

static JinjaValue
calculate_doubles (JinjaRun *run, JinjaArithmetic operation, double x, double y)
{
  double modulo;
  double quotient;

  switch (operation)
    {
    case JINJA_ADD:
      return jinja_float (x + y);
    case JINJA_SUBTRACT:
      return jinja_float (x - y);
    case JINJA_MULTIPLY:
      return jinja_float (x * y);
    case JINJA_DIVIDE:
      return jinja_float (x / y);
    case JINJA_POWER:
      if (x == 0 && y < 0)
        jinja_raise (run, "0.0 cannot be raised to a negative power");
      if (x < 0 && y != floor (y))
        jinja_raise (run, "complex numbers are not supported");
      quotient = pow (x, y);
      if (isinf (quotient) && isfinite (x) && isfinite (y))
        jinja_raise (run, "numerical result out of range");
      return jinja_float (quotient);
    default:
      quotient = floor_divide_doubles (x, y, &modulo);
      return jinja_float (operation == JINJA_MODULO ? modulo : quotient);
    }
}

static JinjaValue
power_integer (JinjaRun *run, const JinjaValue *a, const JinjaValue *b)
{
  JinjaValue result = jinja_integer (1);
  JinjaValue factor = *a;
  gint64 exponent = b->kind == JINJA_BOOLEAN ? b->boolean : b->integer;

  if (b->kind == JINJA_BIG)
    jinja_raise (run, "an exponent is too large");
  if (exponent < 0)
    return calculate_doubles (run, JINJA_POWER, jinja_to_double (run, a),
                              (double) exponent);
  for (; exponent > 0; exponent >>= 1)
    {
      if (exponent & 1)
        result = jinja_calculate (run, JINJA_MULTIPLY, &result, &factor);
      if (exponent > 1)
        factor = jinja_calculate (run, JINJA_MULTIPLY, &factor, &factor);
    }
  return result;
}

static JinjaValue
calculate_big (JinjaRun *run, JinjaArithmetic operation, const JinjaValue *a,
               const JinjaValue *b)
{
  const JinjaBig *x = to_big (run, a);
  const JinjaBig *y = to_big (run, b);
  JinjaBig *quotient;
  JinjaBig *remainder;

  switch (operation)
    {
    case JINJA_ADD:
      return from_big (add_signed (run, x, x->negative, y, y->negative));
    case JINJA_SUBTRACT:
      return from_big (add_signed (run, x, x->negative, y, !y->negative));
    case JINJA_MULTIPLY:
      return from_big (multiply_big (run, x, y));
    default:
      divide_big (run, x, y, &quotient, &remainder);
      return from_big (operation == JINJA_MODULO ? remainder : quotient);
    }
}

static gboolean
calculate_small (JinjaArithmetic operation, gint64 x, gint64 y, gint64 *result)
{
  gint64 rest;

  switch (operation)
    {
    case JINJA_ADD:
      return !__builtin_add_overflow (x, y, result);
    case JINJA_SUBTRACT:
      return !__builtin_sub_overflow (x, y, result);
    case JINJA_MULTIPLY:
      return !__builtin_mul_overflow (x, y, result);
    default:
      if (x == G_MININT64)
        return FALSE; /* its quotient by -1 does not fit */
      rest = x % y;
      *result = x / y;
      if (rest != 0 && (rest < 0) != (y < 0))
        {
          rest += y;
          *result -= 1;
        }
      if (operation == JINJA_MODULO)
        *result = rest;
      return TRUE;
    }
}

/* The quotient of two integers, rounded once. Beyond 2^53 their own rounding
 * to double would show, so the integer quotient is made 62 bits long first;
 * its last bit stands for all that is lost. */
static double
divide_integers (JinjaRun *run, const JinjaValue *a, const JinjaValue *b)
{
  double x = jinja_to_double (run, a);
  double y = jinja_to_double (run, b);
  JinjaValue two = jinja_integer (2);
  JinjaValue shift;
  JinjaValue scale;
  JinjaValue dividend = jinja_absolute (run, a);
  JinjaValue divisor = jinja_absolute (run, b);
  JinjaValue quotient;
  JinjaValue rest;
  double result;

  if ((fabs (x) <= 0x1p53 && fabs (y) <= 0x1p53) || x == 0)
    return x / y;
  if (!isfinite (x) || !isfinite (y))
    jinja_raise (run, "integer division result too large for a float");
  shift = jinja_integer (62 - (ilogb (x) - ilogb (y)));
  scale = jinja_absolute (run, &shift);
  scale = jinja_calculate (run, JINJA_POWER, &two, &scale);
  if (shift.integer > 0)
    dividend = jinja_calculate (run, JINJA_MULTIPLY, &dividend, &scale);
  else
    divisor = jinja_calculate (run, JINJA_MULTIPLY, &divisor, &scale);
  quotient = jinja_calculate (run, JINJA_FLOOR_DIVIDE, &dividend, &divisor);
  rest = jinja_calculate (run, JINJA_MODULO, &dividend, &divisor);
  if (quotient.kind == JINJA_BIG) /* exactly 2^63 */
    return x / y;
  result = ldexp ((double) (quotient.integer | !jinja_number_is_zero (&rest)),
                  (int) -shift.integer);
  return (x < 0) != (y < 0) ? -result : result;
}

JinjaValue
jinja_calculate (JinjaRun *run, JinjaArithmetic operation, const JinjaValue *a,
                 const JinjaValue *b)
{
  gboolean divides = operation == JINJA_DIVIDE
                     || operation == JINJA_FLOOR_DIVIDE
                     || operation == JINJA_MODULO;
  gint64 result;

  jinja_step (run, 1);
  if (divides && jinja_number_is_zero (b))
    jinja_raise (run, "division or modulo by zero");
  if (operation == JINJA_DIVIDE && jinja_is_integer (a)
      && jinja_is_integer (b))
    return jinja_float (divide_integers (run, a, b));
  if (a->kind == JINJA_FLOAT || b->kind == JINJA_FLOAT)
    return calculate_doubles (run, operation, jinja_to_double (run, a),
                              jinja_to_double (run, b));
  if (operation == JINJA_POWER)
    return power_integer (run, a, b);
  if (a->kind != JINJA_BIG && b->kind != JINJA_BIG
      && calculate_small (
          operation, a->kind == JINJA_BOOLEAN ? a->boolean : a->integer,
          b->kind == JINJA_BOOLEAN ? b->boolean : b->integer, &result))
    return jinja_integer (result);
  return calculate_big (run, operation, a, b);
}

JinjaValue
jinja_negate (JinjaRun *run, const JinjaValue *a)
{
  JinjaValue zero = jinja_integer (0);

  if (a->kind == JINJA_FLOAT)
    return jinja_float (-a->number);
  return jinja_calculate (run, JINJA_SUBTRACT, &zero, a);
}

JinjaValue
jinja_absolute (JinjaRun *run, const JinjaValue *a)
{
  JinjaValue zero = jinja_integer (0);

  if (a->kind == JINJA_FLOAT)
    return jinja_float (fabs (a->number));
  if (jinja_number_compare (run, a, &zero) < 0)
    return jinja_negate (run, a);
  return jinja_calculate (run, JINJA_ADD, &zero, a);
}

/* Printing */

const char *
jinja_integer_digits (JinjaRun *run, const JinjaValue *integer)
{
  const JinjaBig *big;
  char *digits;
  char *end;

  if (integer->kind != JINJA_BIG)
    return jinja_printf (run, "%" G_GINT64_FORMAT,
                         integer->kind == JINJA_BOOLEAN
                             ? (gint64) integer->boolean
                             : integer->integer);
  big = integer->big;
  digits = jinja_alloc (run, (gsize) big->n_limbs * JINJA_LIMB_DIGITS + 2);
  end = digits;
  if (big->negative)
    *end++ = '-';
  for (guint32 i = big->n_limbs; i-- > 0;)
    end += g_snprintf (end, JINJA_LIMB_DIGITS + 2,
                       i + 1 == big->n_limbs ? "%u" : "%09u", big->limbs[i]);
  return digits;
}

/* The fewest digits that read back, without a point; the exponent is that of
 * the first one. @number must be finite. */
static int
shortest_digits (double number, char digits[24], int *exponent)
{
  char buffer[40];
  char format[8];
  const char *at;
  int n = 0;

  /* What has up to 15 digits comes back from double with 15; only subnormal
   * numbers know fewer. */
  for (int precision = fabs (number) < DBL_MIN ? 0 : 14; precision <= 16;
       precision++)
    {
      g_snprintf (format, sizeof format, "%%.%de", precision);
      g_ascii_formatd (buffer, sizeof buffer, format, number);
      if (g_ascii_strtod (buffer, NULL) == number)
        break;
    }
  for (at = buffer; *at != 'e'; at++)
    if (g_ascii_isdigit (*at))
      digits[n++] = *at;
  *exponent = atoi (at + 1);
  while (n > 1 && digits[n - 1] == '0')
    n--;
  digits[n] = '\0';
  return n;
}

/* The plain form, or the exponent form for an exponent below -4 or from 16
 * up: as repr () has it (float_repr_style 'short'). */
const char *
jinja_float_repr (JinjaRun *run, double number)
{
  const char *sign = signbit (number) ? "-" : "";
  char digits[24];
  int exponent;
  int n;

  if (isnan (number))
    return "nan";
  if (isinf (number))
    return number < 0 ? "-inf" : "inf";
  jinja_step (run, 30);
  n = shortest_digits (number, digits, &exponent);
  if (exponent < -4 || exponent >= 16)
    return jinja_printf (run, "%s%.1s%s%se%c%02d", sign, digits,
                         n > 1 ? "." : "", digits + 1,
                         exponent < 0 ? '-' : '+', ABS (exponent));
  if (exponent < 0)
    return jinja_printf (run, "%s0.%.*s%s", sign, -exponent - 1, "000",
                         digits);
  if (n > exponent + 1)
    return jinja_printf (run, "%s%.*s.%s", sign, exponent + 1, digits,
                         digits + exponent + 1);
  return jinja_printf (run, "%s%s%.*s.0", sign, digits, exponent + 1 - n,
                       "0000000000000000");
}
