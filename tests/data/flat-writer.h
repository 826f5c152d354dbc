/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Writes FlatBuffers from front to back: a table first, what it refers to
 * behind it.
 */
#pragma once

#include <glib.h>

typedef struct {
  guint id;
  char kind;                 /* b byte, i int32, f float, o offset */
  double value;
  gsize slot;                /* written for 'o': see flat_point */
} FlatField;

/* Room for the offset of the root. */
GByteArray *flat_new (void);
/* Writes a table, points @slot at it, and fills in the slots of its fields. */
void flat_table (GByteArray *out, gsize slot, FlatField *fields, gsize n);
/* These point @slot at what they write. */
void flat_string (GByteArray *out, gsize slot, const char *text);
void flat_int32s (GByteArray *out, gsize slot, const gint32 *values, gsize n);
void flat_int64s (GByteArray *out, gsize slot, const gint64 *values, gsize n);
void flat_floats (GByteArray *out, gsize slot, const float *values, gsize n);
/* A vector of @n tables yet to be written; the slot of the first. */
gsize flat_tables (GByteArray *out, gsize slot, gsize n);
