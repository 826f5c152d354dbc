/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "flat-writer.h"

#include <string.h>

static void
put_uint32 (GByteArray *out, guint32 value)
{
  value = GUINT32_TO_LE (value);
  g_byte_array_append (out, (const guint8 *) &value, sizeof value);
}

static void
put_uint16 (GByteArray *out, guint16 value)
{
  value = GUINT16_TO_LE (value);
  g_byte_array_append (out, (const guint8 *) &value, sizeof value);
}

static void
pad (GByteArray *out, guint to)
{
  static const guint8 zeros[8];

  g_byte_array_append (out, zeros, (to - out->len % to) % to);
}

static void
point (GByteArray *out, gsize slot)
{
  guint32 offset = GUINT32_TO_LE ((guint32) (out->len - slot));

  memcpy (out->data + slot, &offset, sizeof offset);
}

GByteArray *
flat_new (void)
{
  GByteArray *out = g_byte_array_new ();

  put_uint32 (out, 0);
  return out;
}

/* Every field takes four bytes. */
void
flat_table (GByteArray *out, gsize slot, FlatField *fields, gsize n)
{
  guint highest = 0;
  gsize offsets, start;

  for (gsize i = 0; i < n; i++)
    highest = MAX (highest, fields[i].id + 1);
  pad (out, 4);
  offsets = out->len;
  put_uint16 (out, 4 + 2 * highest);
  put_uint16 (out, 4 + 4 * n);
  for (guint i = 0; i < highest; i++)
    put_uint16 (out, 0);
  pad (out, 4);
  point (out, slot);
  start = out->len;
  put_uint32 (out, start - offsets);
  for (gsize i = 0; i < n; i++) {
    guint16 offset = GUINT16_TO_LE ((guint16) (4 + 4 * i));
    guint32 bits = 0;
    float number = fields[i].value;

    memcpy (out->data + offsets + 4 + 2 * fields[i].id, &offset, 2);
    fields[i].slot = out->len;
    if (fields[i].kind == 'f')
      memcpy (&bits, &number, sizeof bits);
    else if (fields[i].kind != 'o')
      bits = (guint32) (gint32) fields[i].value;
    put_uint32 (out, bits);
  }
}

void
flat_string (GByteArray *out, gsize slot, const char *text)
{
  pad (out, 4);
  point (out, slot);
  put_uint32 (out, strlen (text));
  g_byte_array_append (out, (const guint8 *) text, strlen (text) + 1);
}

static void
put_vector (GByteArray *out, gsize slot, const void *values, gsize n,
            gsize element)
{
  pad (out, 4);
  if (element == 8 && out->len % 8 == 0)
    put_uint32 (out, 0);
  point (out, slot);
  put_uint32 (out, n);
  g_byte_array_append (out, values, n * element);
}

void
flat_int32s (GByteArray *out, gsize slot, const gint32 *values, gsize n)
{
  put_vector (out, slot, values, n, sizeof *values);
}

void
flat_int64s (GByteArray *out, gsize slot, const gint64 *values, gsize n)
{
  put_vector (out, slot, values, n, sizeof *values);
}

void
flat_floats (GByteArray *out, gsize slot, const float *values, gsize n)
{
  put_vector (out, slot, values, n, sizeof *values);
}

gsize
flat_tables (GByteArray *out, gsize slot, gsize n)
{
  g_autofree guint32 *offsets = g_new0 (guint32, n + 1);

  put_vector (out, slot, offsets, n, sizeof *offsets);
  return out->len - n * sizeof *offsets;
}
