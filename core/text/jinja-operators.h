/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-number.h"
#include "jinja-value.h"

G_BEGIN_DECLS

/* What Python's operators do with the values of the template language. They
 * raise where Python raises. */
typedef enum {
  JINJA_EQUAL,
  JINJA_NOT_EQUAL,
  JINJA_LESS,
  JINJA_LESS_EQUAL,
  JINJA_GREATER,
  JINJA_GREATER_EQUAL,
  JINJA_IN,
  JINJA_NOT_IN,
} JinjaComparison;

gboolean jinja_truth (JinjaRun *run, const JinjaValue *value);
gboolean jinja_equal (JinjaRun *run, const JinjaValue *a, const JinjaValue *b);
/* The operator "is". */
gboolean jinja_same (const JinjaValue *a, const JinjaValue *b);
gboolean jinja_compare (JinjaRun *run, JinjaComparison comparison,
                        const JinjaValue *a, const JinjaValue *b);
gboolean jinja_contains (JinjaRun *run, const JinjaValue *container,
                         const JinjaValue *item);
JinjaValue jinja_operate (JinjaRun *run, JinjaArithmetic operation,
                          const JinjaValue *a, const JinjaValue *b);
JinjaValue jinja_slice (JinjaRun *run, const JinjaValue *object,
                        const JinjaValue *start, const JinjaValue *stop,
                        const JinjaValue *step);
/* __index__: raises for anything but an integer; clamped to 64 bits. */
gint64 jinja_index (JinjaRun *run, const JinjaValue *value);

/* A stable sort of @n values by @keys, as sorted () does it; both arrays are
 * reordered. */
void jinja_sort (JinjaRun *run, JinjaValue *values, JinjaValue *keys, gsize n,
                 gboolean reverse);

G_END_DECLS
