/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

/* The alphabet in which byte-level BPE files write bytes: every byte has a
 * printable character. Source: GPT-2's published encoder. Printable ASCII
 * except the blank, and Latin-1 from U+00A1 without the soft hyphen, stand for
 * themselves; the other 68 bytes are U+0100 to U+0143 in ascending order. */

G_BEGIN_DECLS

/* Writes the bytes that @text means, at most @length, to @out and gives their
 * number in @ret_length; FALSE when @text has a character outside the
 * alphabet. */
gboolean runnel_byte_level_decode (const char *text, gsize length, guint8 *out,
                                   gsize *ret_length);

/* The character of a byte. */
gunichar runnel_byte_level_character (guint8 byte);

G_END_DECLS
