/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "normalizer.h"

#include <string.h>

#include "character-class.h"

typedef struct {
  gunichar c;
  guint8 order;   /* canonical combining class */
} Mark;

/* Where the first character stands that NFC could touch. */
static const guint8 *
skip_inert (const guint8 *classes, const guint8 *p, const guint8 *end)
{
  guint length;

  while (p < end) {
    if (*p < 0x80)
      length = 1;
    else if (!(runnel_character_class_at (classes, p, &length)
               & RUNNEL_CHARACTER_INERT))
      break;
    p += length;
  }
  return p;
}

gboolean
runnel_is_surely_nfc (const guint8 *classes, const char *text, gsize length)
{
  const guint8 *end = (const guint8 *) text + length;

  return skip_inert (classes, (const guint8 *) text, end) == end;
}

static void
append_decomposed (const guint8 *classes, GArray *marks, gunichar c)
{
  gunichar parts[G_UNICHAR_MAX_DECOMPOSITION_LENGTH] = { c };
  guint8 class = runnel_character_class (classes, c);
  gsize n = 1;

  if (class & RUNNEL_CHARACTER_DECOMPOSES)
    n = g_unichar_fully_decompose (c, FALSE, parts, G_N_ELEMENTS (parts));
  for (gsize i = 0; i < n; i++) {
    Mark mark = { parts[i], 0 };

    /* To GLib a character younger than our tables may be a mark. */
    if (!(class & RUNNEL_CHARACTER_INERT)
        || (class & RUNNEL_CHARACTER_DECOMPOSES))
      mark.order = (guint8) g_unichar_combining_class (parts[i]);
    g_array_append_val (marks, mark);
  }
}

/* A stable counting sort: a run of marks may be as long as the text. */
static void
sort_run (Mark *run, gsize n, GArray *scratch)
{
  gsize starts[256] = { 0 };
  gsize sum = 0;

  g_array_set_size (scratch, n);
  memcpy (scratch->data, run, n * sizeof (Mark));
  for (gsize i = 0; i < n; i++)
    starts[run[i].order]++;
  for (guint order = 0; order < 256; order++) {
    gsize count = starts[order];

    starts[order] = sum;
    sum += count;
  }
  for (gsize i = 0; i < n; i++) {
    const Mark *mark = &g_array_index (scratch, Mark, i);

    run[starts[mark->order]++] = *mark;
  }
}

static void
sort_marks (Mark *marks, gsize n, GArray *scratch)
{
  gsize start = 0;

  while (start < n) {
    gsize end = start;
    gboolean sorted = TRUE;

    while (end < n && marks[end].order != 0) {
      if (end > start && marks[end - 1].order > marks[end].order)
        sorted = FALSE;
      end++;
    }
    if (!sorted)
      sort_run (marks + start, end - start, scratch);
    start = end + 1;
  }
}

/* GLib may know compositions that are younger than our tables. */
static gboolean
join (const guint8 *classes, gunichar first, gunichar second, gunichar *ret)
{
  return g_unichar_compose (first, second, ret)
      && (runnel_character_class (classes, *ret)
          & RUNNEL_CHARACTER_DECOMPOSES);
}

/* Composes in place; returns the new length. A character is blocked from its
 * starter by one between them whose class is 0 or not below its own. */
static gsize
compose (const guint8 *classes, Mark *marks, gsize n)
{
  gsize out = 0, starter = G_MAXSIZE;

  for (gsize i = 0; i < n; i++) {
    Mark mark = marks[i];
    gunichar joined;

    if (starter != G_MAXSIZE
        && (out == starter + 1 || marks[out - 1].order < mark.order)
        && join (classes, marks[starter].c, mark.c, &joined)) {
      marks[starter].c = joined;
      continue;
    }
    if (mark.order == 0)
      starter = out;
    marks[out++] = mark;
  }
  return out;
}

/* An inert character starts afresh, so [@p, @end) can be done by itself. */
static void
normalize_stretch (const guint8 *classes, const guint8 *p, const guint8 *end,
                   GArray *marks, GArray *scratch, GString *out)
{
  gsize n;

  g_array_set_size (marks, 0);
  while (p < end) {
    guint length;

    append_decomposed (classes, marks,
                       runnel_character_decode (p, &length));
    p += length;
  }
  sort_marks ((Mark *) marks->data, marks->len, scratch);
  n = compose (classes, (Mark *) marks->data, marks->len);
  for (gsize i = 0; i < n; i++)
    g_string_append_unichar (out, g_array_index (marks, Mark, i).c);
}

void
runnel_normalize_nfc (const guint8 *classes, const char *text, gsize length,
                      GString *out)
{
  g_autoptr (GArray) marks = g_array_new (FALSE, FALSE, sizeof (Mark));
  g_autoptr (GArray) scratch = g_array_new (FALSE, FALSE, sizeof (Mark));
  const guint8 *done = (const guint8 *) text, *end = done + length;

  while (done < end) {
    const guint8 *active = skip_inert (classes, done, end);
    const guint8 *start = active, *stop = active;
    guint step;

    /* The inert character before may be the first half of a composition. */
    if (active < end && active > done)
      do
        start--;
      while ((*start & 0xc0) == 0x80);
    g_string_append_len (out, (const char *) done, start - done);
    while (stop < end
           && !(runnel_character_class_at (classes, stop, &step)
                & RUNNEL_CHARACTER_INERT))
      stop += step;
    if (start < stop)
      normalize_stretch (classes, start, stop, marks, scratch, out);
    done = stop;
  }
}
