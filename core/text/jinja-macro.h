/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-evaluate.h"

G_BEGIN_DECLS

/* A macro with the scope it was defined in. */
struct _JinjaMacro {
  const JinjaMacroDefinition *definition;
  JinjaScope *scope;
};

JinjaValue jinja_macro_new (JinjaRun *run, JinjaScope *scope,
                            const JinjaMacroDefinition *definition);
JinjaValue jinja_call_macro (JinjaRun *run, const JinjaMacro *macro,
                             const JinjaArguments *arguments);
gboolean jinja_find_macro_attribute (JinjaRun *run, const JinjaMacro *macro,
                                     const JinjaValue *name, JinjaValue *ret);
void jinja_append_macro_repr (JinjaRun *run, JinjaText *text,
                              const JinjaMacro *macro);

G_END_DECLS
