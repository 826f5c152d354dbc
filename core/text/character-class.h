/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

/* What the pre-tokenizers' regular expressions and NFC ask of a character.
 * The tables are not GLib's: the ids of a text must not change with the
 * Unicode version of the system. */

G_BEGIN_DECLS

typedef enum {
  RUNNEL_CHARACTER_LETTER = 1 << 0,   /* \p{L} */
  RUNNEL_CHARACTER_NUMBER = 1 << 1,   /* \p{N} */
  RUNNEL_CHARACTER_SPACE = 1 << 2,    /* \s, which is White_Space */
  RUNNEL_CHARACTER_NEWLINE = 1 << 3,  /* \r and \n, besides SPACE */
  RUNNEL_CHARACTER_DIGIT = 1 << 4,    /* what the Digits splitter isolates */
  RUNNEL_CHARACTER_INERT = 1 << 5,    /* a starter that NFC never touches */
  RUNNEL_CHARACTER_DECOMPOSES = 1 << 6, /* what NFD takes apart */
} RunnelCharacterClass;

typedef struct {
  guint32 first;
  guint32 last;
} RunnelCharacterRange;

extern const RunnelCharacterRange runnel_letter_ranges[];
extern const gsize runnel_letter_ranges_length;
extern const RunnelCharacterRange runnel_number_ranges[];
extern const gsize runnel_number_ranges_length;
extern const RunnelCharacterRange runnel_space_ranges[];
extern const gsize runnel_space_ranges_length;
extern const RunnelCharacterRange runnel_extra_digit_ranges[];
extern const gsize runnel_extra_digit_ranges_length;
extern const RunnelCharacterRange runnel_decomposing_ranges[];
extern const gsize runnel_decomposing_ranges_length;
extern const RunnelCharacterRange runnel_inert_ranges[];
extern const gsize runnel_inert_ranges_length;

/* The classes of the characters below U+10000, one byte each; the first call
 * builds the table. */
const guint8 *runnel_character_classes (void);

/* The classes of a character from U+10000 on. */
guint8 runnel_character_class_beyond (gunichar c);

/* Decodes one character of valid UTF-8. */
static inline gunichar
runnel_character_decode (const guint8 *p, guint *length)
{
  if (p[0] < 0x80) {
    *length = 1;
    return p[0];
  }
  if (p[0] < 0xe0) {
    *length = 2;
    return (gunichar) (p[0] & 0x1f) << 6 | (p[1] & 0x3f);
  }
  if (p[0] < 0xf0) {
    *length = 3;
    return (gunichar) (p[0] & 0x0f) << 12 | (gunichar) (p[1] & 0x3f) << 6
        | (p[2] & 0x3f);
  }
  *length = 4;
  return (gunichar) (p[0] & 0x07) << 18 | (gunichar) (p[1] & 0x3f) << 12
      | (gunichar) (p[2] & 0x3f) << 6 | (p[3] & 0x3f);
}

static inline guint8
runnel_character_class (const guint8 *classes, gunichar c)
{
  return c < 0x10000 ? classes[c] : runnel_character_class_beyond (c);
}

/* The class of the character at @p, which must not be the end of the text. */
static inline guint8
runnel_character_class_at (const guint8 *classes, const guint8 *p,
                           guint *length)
{
  gunichar c;

  if (G_LIKELY (p[0] < 0x80)) {
    *length = 1;
    return classes[p[0]];
  }
  c = runnel_character_decode (p, length);
  return runnel_character_class (classes, c);
}

G_END_DECLS
