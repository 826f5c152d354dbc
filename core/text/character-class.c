/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "character-class.h"

static guint8 plane_0[0x10000];

static void
add_class (const RunnelCharacterRange *ranges, gsize n, guint8 bits)
{
  for (gsize i = 0; i < n && ranges[i].first < G_N_ELEMENTS (plane_0); i++) {
    guint32 last = MIN (ranges[i].last, G_N_ELEMENTS (plane_0) - 1);

    for (guint32 c = ranges[i].first; c <= last; c++)
      plane_0[c] |= bits;
  }
}

const guint8 *
runnel_character_classes (void)
{
  static gsize ready = 0;

  if (g_once_init_enter (&ready)) {
    add_class (runnel_letter_ranges, runnel_letter_ranges_length,
               RUNNEL_CHARACTER_LETTER);
    add_class (runnel_number_ranges, runnel_number_ranges_length,
               RUNNEL_CHARACTER_NUMBER | RUNNEL_CHARACTER_DIGIT);
    add_class (runnel_space_ranges, runnel_space_ranges_length,
               RUNNEL_CHARACTER_SPACE);
    add_class (runnel_extra_digit_ranges, runnel_extra_digit_ranges_length,
               RUNNEL_CHARACTER_DIGIT);
    add_class (runnel_decomposing_ranges, runnel_decomposing_ranges_length,
               RUNNEL_CHARACTER_DECOMPOSES);
    add_class (runnel_inert_ranges, runnel_inert_ranges_length,
               RUNNEL_CHARACTER_INERT);
    plane_0['\r'] |= RUNNEL_CHARACTER_NEWLINE;
    plane_0['\n'] |= RUNNEL_CHARACTER_NEWLINE;
    g_once_init_leave (&ready, 1);
  }
  return plane_0;
}

static gboolean
in_ranges (const RunnelCharacterRange *ranges, gsize n, gunichar c)
{
  gsize low = 0;

  while (n > 0) {
    gsize half = n / 2;

    if (ranges[low + half].last < c) {
      low += half + 1;
      n -= half + 1;
    } else if (ranges[low + half].first > c) {
      n = half;
    } else {
      return TRUE;
    }
  }
  return FALSE;
}

guint8
runnel_character_class_beyond (gunichar c)
{
  guint8 bits = 0;

  if (in_ranges (runnel_letter_ranges, runnel_letter_ranges_length, c))
    bits |= RUNNEL_CHARACTER_LETTER;
  else if (in_ranges (runnel_number_ranges, runnel_number_ranges_length, c))
    bits |= RUNNEL_CHARACTER_NUMBER | RUNNEL_CHARACTER_DIGIT;
  else if (in_ranges (runnel_extra_digit_ranges,
                      runnel_extra_digit_ranges_length, c))
    bits |= RUNNEL_CHARACTER_DIGIT;
  if (in_ranges (runnel_inert_ranges, runnel_inert_ranges_length, c))
    bits |= RUNNEL_CHARACTER_INERT;
  if (in_ranges (runnel_decomposing_ranges, runnel_decomposing_ranges_length,
                 c))
    bits |= RUNNEL_CHARACTER_DECOMPOSES;
  return bits;
}
