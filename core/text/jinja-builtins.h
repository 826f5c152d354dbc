/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-value.h"

G_BEGIN_DECLS

/* NULL when there is none of the name. */
const JinjaBuiltin *jinja_find_filter (const JinjaValue *name);
const JinjaBuiltin *jinja_find_test (const JinjaValue *name);
const JinjaBuiltin *jinja_find_global (const JinjaValue *name);
const JinjaBuiltin *jinja_find_method (const JinjaValue *object,
                                       const JinjaValue *name);

JinjaValue jinja_call_builtin (JinjaRun *run, const JinjaBuiltin *builtin,
                               const JinjaValue *self,
                               const JinjaArguments *arguments);

/* Namespaces keep names with an underscore in front to themselves. */
void jinja_check_namespace_name (JinjaRun *run, const JinjaValue *name);

/* Arguments of builtins. */
const JinjaValue *jinja_check_string (JinjaRun *run, const JinjaValue *value);
gint64 jinja_integer_or (JinjaRun *run, const JinjaValue *value,
                         gint64 fallback);
gboolean jinja_boolean_or (JinjaRun *run, const JinjaValue *value,
                           gboolean fallback);

/* The tables, each ending with a NULL name. */
extern const JinjaBuiltin jinja_text_filters[];
extern const JinjaBuiltin jinja_value_filters[];
extern const JinjaBuiltin jinja_sequence_filters[];
extern const JinjaBuiltin jinja_tests[];
extern const JinjaBuiltin jinja_globals[];
extern const JinjaBuiltin jinja_string_methods[];
extern const JinjaBuiltin jinja_string_predicates[];
extern const JinjaBuiltin jinja_list_methods[];
extern const JinjaBuiltin jinja_dict_methods[];
extern const JinjaBuiltin jinja_cycler_methods[];
extern const JinjaBuiltin jinja_number_methods[];

G_END_DECLS
