/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-value.h"

G_BEGIN_DECLS

/* markupsafe.escape: the str () of @value with HTML's characters escaped, as
 * markup; markup itself stays as it is. */
JinjaValue jinja_escape (JinjaRun *run, const JinjaValue *value);
/* urllib.parse.quote of the str () of @value; @query: "/" too, and blanks
 * become "+". */
JinjaValue jinja_quote_url (JinjaRun *run, const JinjaValue *value,
                            gboolean query);

G_END_DECLS
