/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

/* Unicode normalisation form C (UAX #15) as the `tokenizers` package has it,
 * with the characters of Unicode 9; linear in the length of the text. (GLib's
 * own is of the system's version, sorts marks by exchange, and stops at NUL.)
 */

G_BEGIN_DECLS

/* Whether the first look already shows that NFC changes nothing. FALSE means
 * only that runnel_normalize_nfc has to be asked. */
gboolean runnel_is_surely_nfc (const guint8 *classes, const char *text,
                               gsize length);

/* Appends the NFC of valid UTF-8 to @out. */
void runnel_normalize_nfc (const guint8 *classes, const char *text,
                           gsize length, GString *out);

G_END_DECLS
