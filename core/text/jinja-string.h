/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-value.h"

G_BEGIN_DECLS

/* What Python's str methods do, for the methods and the filters of the same
 * kind. Pieces share the text they are cut from. */
typedef enum {
  JINJA_STRIP_LEFT = 1,
  JINJA_STRIP_RIGHT = 2,
  JINJA_STRIP_BOTH = 3,
} JinjaStrip;

/* @characters: absent for white space. */
JinjaValue jinja_string_strip (JinjaRun *run, const JinjaValue *string,
                               const JinjaValue *characters, JinjaStrip side);
/* @separator: absent for white space. @max < 0: no limit. */
JinjaValue jinja_string_split (JinjaRun *run, const JinjaValue *string,
                               const JinjaValue *separator, gint64 max,
                               gboolean from_right);
JinjaValue jinja_string_lines (JinjaRun *run, const JinjaValue *string,
                               gboolean keep_ends);
JinjaValue jinja_string_replace (JinjaRun *run, const JinjaValue *string,
                                 const JinjaValue *old,
                                 const JinjaValue *replacement, gint64 max);
/* The items' str () when @convert, else they must be strings. */
JinjaValue jinja_string_join (JinjaRun *run, const JinjaValue *separator,
                              const JinjaValue *items, gboolean convert);
/* Fills up to @width characters on the given sides. */
JinjaValue jinja_string_pad (JinjaRun *run, const JinjaValue *string,
                             gint64 width, const JinjaValue *fill,
                             JinjaStrip sides);

G_END_DECLS
