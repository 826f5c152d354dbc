/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "byte-level.h"

#define ALPHABET_END 0x144

static guint16 bytes_of[ALPHABET_END];   /* 1 + byte; 0: not in the alphabet */
static guint16 characters_of[0x100];

static gboolean
stands_for_itself (guint byte)
{
  return (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
}

static void
fill_alphabet (void)
{
  static gsize ready = 0;

  if (g_once_init_enter (&ready)) {
    guint next = 0x100;

    for (guint byte = 0; byte < 0x100; byte++) {
      characters_of[byte] = stands_for_itself (byte) ? byte : next++;
      bytes_of[characters_of[byte]] = 1 + byte;
    }
    g_once_init_leave (&ready, 1);
  }
}

gboolean
runnel_byte_level_decode (const char *text, gsize length, guint8 *out,
                          gsize *ret_length)
{
  const guint8 *p = (const guint8 *) text, *end = p + length;
  gsize n = 0;

  fill_alphabet ();
  while (p < end) {
    guint c = *p++;

    if (c >= 0x80) {
      /* The whole alphabet fits two bytes of UTF-8. */
      if (c < 0xc2 || c > 0xc5 || p == end || (*p & 0xc0) != 0x80)
        return FALSE;
      c = (c & 0x1f) << 6 | (*p++ & 0x3f);
    }
    if (c >= ALPHABET_END || bytes_of[c] == 0)
      return FALSE;
    out[n++] = bytes_of[c] - 1;
  }
  *ret_length = n;
  return TRUE;
}

gunichar
runnel_byte_level_character (guint8 byte)
{
  fill_alphabet ();
  return characters_of[byte];
}
