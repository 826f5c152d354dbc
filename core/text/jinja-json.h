/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "../formats/json.h"
#include "jinja-value.h"

G_BEGIN_DECLS

/* The options of Python's json.dumps. */
typedef struct {
  gboolean ensure_ascii;
  gboolean sort_keys;
  JinjaValue indent;         /* of one level; missing: all on one line */
  JinjaValue item_separator; /* missing: as json.dumps has it */
  JinjaValue key_separator;
} JinjaJsonStyle;

JinjaValue jinja_to_json (JinjaRun *run, const JinjaValue *value,
                          const JinjaJsonStyle *style);
/* @count blanks */
JinjaValue jinja_string_pad_blanks (JinjaRun *run, gint64 count);

/* The tree of @node as values. Strings are borrowed from the document, which
 * must live as long as the run; all are data, but for the members of the
 * outermost object whose names end in _token. */
JinjaValue jinja_from_json (JinjaRun *run, const RunnelJsonNode *node);

G_END_DECLS
