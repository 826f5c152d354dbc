/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-value.h"

G_BEGIN_DECLS

/*
 * object.name and object[key] as the immutable sandbox of Jinja2 gives them:
 * the one looks for an attribute first, the other for an item; what is not
 * there is undefined, what would change the object or reaches into Python is
 * an undefined whose use is an error.
 */
JinjaValue jinja_get_attribute (JinjaRun *run, const JinjaValue *object,
                                const JinjaValue *name);
JinjaValue jinja_get_item (JinjaRun *run, const JinjaValue *object,
                           const JinjaValue *key);
/* The attribute alone; FALSE when there is none. */
gboolean jinja_find_attribute (JinjaRun *run, const JinjaValue *object,
                               const JinjaValue *name, JinjaValue *ret);
/* Only namespaces can be assigned to. */
void jinja_set_attribute (JinjaRun *run, JinjaValue object, JinjaValue name,
                          JinjaValue value);

G_END_DECLS
