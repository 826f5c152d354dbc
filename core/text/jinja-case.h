/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-value.h"

G_BEGIN_DECLS

typedef enum {
  JINJA_CASE_UPPER,
  JINJA_CASE_LOWER,
  JINJA_CASE_SWAPPED,
  JINJA_CASE_FOLDED,
  JINJA_CASE_CAPITALIZED, /* the first character of the string */
  JINJA_CASE_TITLE,       /* the first letter of each word, as str.title () */
} JinjaCase;

/* Every character keeps its origin. */
JinjaValue jinja_change_case (JinjaRun *run, const JinjaValue *string,
                              JinjaCase to);
/* Appends @string[offset, offset + length) in upper or lower case. */
void jinja_append_case (JinjaRun *run, JinjaText *text,
                        const JinjaValue *string, gsize offset, gsize length,
                        JinjaCase to);
gboolean jinja_is_lower (const JinjaValue *string);
gboolean jinja_is_upper (const JinjaValue *string);
gboolean jinja_is_title (const JinjaValue *string);

G_END_DECLS
