/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-value.h"

G_BEGIN_DECLS

/* format % argument; a tuple gives several arguments, a dict named ones. */
JinjaValue jinja_format_percent (JinjaRun *run, const JinjaValue *format,
                                 const JinjaValue *argument);
/* format.format (*arguments, **keywords) */
JinjaValue jinja_format_braces (JinjaRun *run, const JinjaValue *format,
                                const JinjaArguments *arguments);

/* How one value is laid out; both kinds of format come down to this. */
typedef struct {
  char fill;
  char align; /* '<', '>', '^', '=', or 0: by type */
  char sign;  /* '+', ' ', or '-' */
  gboolean alternate;
  gboolean zeros; /* a 0 before the width */
  char grouping; /* ',', '_', or 0 */
  gint64 width;
  gint64 precision; /* -1: none */
  char type;        /* conversion, or 0 */
} JinjaLayout;

/* An integer in decimal, hexadecimal, octal or binary. */
void jinja_append_integer (JinjaRun *run, JinjaText *text,
                           const JinjaValue *integer,
                           const JinjaLayout *layout);
/* A float by e, f, g, %, or the shortest form. */
void jinja_append_float (JinjaRun *run, JinjaText *text, double number,
                         const JinjaLayout *layout);
void jinja_append_padded (JinjaRun *run, JinjaText *text,
                          const JinjaValue *string, const JinjaLayout *layout);

G_END_DECLS
