/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-value.h"

G_BEGIN_DECLS

/*
 * Numbers as Python has them: integers without bound (floor division, modulo
 * with the sign of the divisor), floats printed with the fewest digits that
 * read back.
 */

/* Decimal limbs, the least significant first; no leading zero limb. */
#define JINJA_LIMB 1000000000u
#define JINJA_LIMB_DIGITS 9
/* Python refuses to print integers of more digits than this. */
#define JINJA_MAX_DIGITS 4300

struct _JinjaBig {
  gboolean negative;
  guint32 n_limbs;
  guint32 limbs[];
};

/* Digits with an optional sign, nothing else; any length up to the limit. */
JinjaValue jinja_integer_from_digits (JinjaRun *run, const char *digits,
                                      gsize length);
/* Digits of a base from 2 to 36, already checked. */
JinjaValue jinja_integer_from_base (JinjaRun *run, const char *digits,
                                    gsize length, guint base);
/* int (float): raises for what is not finite. */
JinjaValue jinja_integer_from_double (JinjaRun *run, double number);
/* int (str, base): FALSE when that would be a ValueError. */
gboolean jinja_integer_from_string (JinjaRun *run, const JinjaValue *string,
                                    guint base, JinjaValue *ret);
/* float (str) */
gboolean jinja_float_from_string (JinjaRun *run, const JinjaValue *string,
                                  double *ret);

double jinja_to_double (JinjaRun *run, const JinjaValue *number);
gboolean jinja_number_is_zero (const JinjaValue *number);
/* -1, 0, 1; 2 when one is NaN. */
int jinja_number_compare (JinjaRun *run, const JinjaValue *a,
                          const JinjaValue *b);

typedef enum {
  JINJA_ADD,
  JINJA_SUBTRACT,
  JINJA_MULTIPLY,
  JINJA_DIVIDE,
  JINJA_FLOOR_DIVIDE,
  JINJA_MODULO,
  JINJA_POWER,
} JinjaArithmetic;

/* Both must be numbers. */
JinjaValue jinja_calculate (JinjaRun *run, JinjaArithmetic operation,
                            const JinjaValue *a, const JinjaValue *b);
JinjaValue jinja_negate (JinjaRun *run, const JinjaValue *a);
JinjaValue jinja_absolute (JinjaRun *run, const JinjaValue *a);

/* Decimal digits, or the repr of a float, in memory of the arena. */
const char *jinja_integer_digits (JinjaRun *run, const JinjaValue *integer);
const char *jinja_float_repr (JinjaRun *run, double number);

G_END_DECLS
