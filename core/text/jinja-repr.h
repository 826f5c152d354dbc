/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-value.h"

G_BEGIN_DECLS

/* Python's str () and repr (). Strings keep their origins, also inside the
 * repr of a list. */
JinjaValue jinja_str (JinjaRun *run, const JinjaValue *value);
JinjaValue jinja_repr (JinjaRun *run, const JinjaValue *value);
void jinja_append_str (JinjaRun *run, JinjaText *text, const JinjaValue *value);
void jinja_append_repr (JinjaRun *run, JinjaText *text,
                        const JinjaValue *value);

G_END_DECLS
