/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "flatbuffer.h"

#include <string.h>

#include "../error.h"

#define OFFSET 4          /* bytes of an offset */
#define FIELDS_HEADER 4   /* sizes of the table of fields and of the table */

void
runnel_flatbuffer_init (RunnelFlatbuffer *self, const guint8 *data, gsize size,
    const char *name)
{
  *self = (RunnelFlatbuffer) { data, size, name, NULL };
}

void
runnel_flatbuffer_clear (RunnelFlatbuffer *self)
{
  g_clear_error (&self->error);
}

void
runnel_flatbuffer_fail (RunnelFlatbuffer *self, const char *format, ...)
{
  g_autofree char *what = NULL;
  va_list args;

  if (self->error != NULL)
    return;
  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (&self->error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED, "%s: %s",
      self->name, what);
}

gboolean
runnel_flatbuffer_check (RunnelFlatbuffer *self, GError **error)
{
  if (self->error == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&self->error));
  return FALSE;
}

/* --- numbers; @at has been checked --- */

static guint16
get_uint16 (const RunnelFlatbuffer *self, gsize at)
{
  guint16 value;

  memcpy (&value, self->data + at, sizeof value);
  return GUINT16_FROM_LE (value);
}

static guint32
get_uint32 (const RunnelFlatbuffer *self, gsize at)
{
  guint32 value;

  memcpy (&value, self->data + at, sizeof value);
  return GUINT32_FROM_LE (value);
}

static float
get_float (const RunnelFlatbuffer *self, gsize at)
{
  guint32 bits = get_uint32 (self, at);
  float value;

  memcpy (&value, &bits, sizeof value);
  return value;
}

static gboolean
has (const RunnelFlatbuffer *self, gsize at, gsize bytes)
{
  return at <= self->size && bytes <= self->size - at;
}

/* --- tables --- */

/* Where the offset at @at leads; 0, which no offset leads to, on a fault. */
static gsize
follow (RunnelFlatbuffer *self, gsize at)
{
  guint32 offset;

  if (self->error != NULL)
    return 0;
  offset = get_uint32 (self, at);
  if (offset >= OFFSET && has (self, at, offset) &&
      has (self, at + offset, OFFSET))
    return at + offset;
  runnel_flatbuffer_fail (self, "the offset at byte %" G_GSIZE_FORMAT
      " leads out of the file's %" G_GSIZE_FORMAT " bytes", at, self->size);
  return 0;
}

/* The table at @at, which has room for an offset. */
static RunnelFlatTable
open_table (RunnelFlatbuffer *self, gsize at, guint depth)
{
  RunnelFlatTable table = { self, at, 0, 0, 0, depth };
  gint64 fields = (gint64) at - (gint32) get_uint32 (self, at);

  if (depth >= RUNNEL_FLATBUFFER_MAX_DEPTH) {
    runnel_flatbuffer_fail (self, "tables are nested deeper than %d",
        RUNNEL_FLATBUFFER_MAX_DEPTH);
    return (RunnelFlatTable) { NULL };
  }
  if (fields >= 0 && has (self, fields, FIELDS_HEADER)) {
    table.fields = fields;
    table.fields_size = get_uint16 (self, fields);
    table.size = get_uint16 (self, fields + 2);
    if (table.fields_size >= FIELDS_HEADER && table.fields_size % 2 == 0 &&
        has (self, fields, table.fields_size) && table.size >= OFFSET &&
        has (self, at, table.size))
      return table;
  }
  runnel_flatbuffer_fail (self, "the table at byte %" G_GSIZE_FORMAT
      " does not lie inside the file's %" G_GSIZE_FORMAT " bytes", at,
      self->size);
  return (RunnelFlatTable) { NULL };
}

RunnelFlatTable
runnel_flatbuffer_root (RunnelFlatbuffer *self)
{
  gsize at;

  if (!has (self, 0, OFFSET)) {
    runnel_flatbuffer_fail (self, "has %" G_GSIZE_FORMAT " bytes; a "
        "FlatBuffers file has more", self->size);
    return (RunnelFlatTable) { NULL };
  }
  at = follow (self, 0);
  return at > 0 ? open_table (self, at, 0) : (RunnelFlatTable) { NULL };
}

/* Where a field of @bytes is; 0 when it is absent. */
static gsize
find_field (const RunnelFlatTable *self, guint field, gsize bytes)
{
  gsize slot = FIELDS_HEADER + 2 * (gsize) field;
  guint16 offset;

  if (self->buffer == NULL || self->buffer->error != NULL ||
      slot + 2 > self->fields_size)
    return 0;
  offset = get_uint16 (self->buffer, self->fields + slot);
  if (offset == 0)
    return 0;
  if (offset >= OFFSET && offset + bytes <= self->size)
    return self->at + offset;
  runnel_flatbuffer_fail (self->buffer, "field %u of the table at byte %"
      G_GSIZE_FORMAT " lies outside its %u bytes", field, self->at,
      self->size);
  return 0;
}

gint64
runnel_flat_table_int8 (const RunnelFlatTable *self, guint field,
    gint64 absent)
{
  gsize at = find_field (self, field, 1);

  return at > 0 ? (gint8) self->buffer->data[at] : absent;
}

gint64
runnel_flat_table_int32 (const RunnelFlatTable *self, guint field,
    gint64 absent)
{
  gsize at = find_field (self, field, 4);

  return at > 0 ? (gint32) get_uint32 (self->buffer, at) : absent;
}

float
runnel_flat_table_float (const RunnelFlatTable *self, guint field,
    float absent)
{
  gsize at = find_field (self, field, 4);

  return at > 0 ? get_float (self->buffer, at) : absent;
}

RunnelFlatTable
runnel_flat_table_table (const RunnelFlatTable *self, guint field)
{
  gsize at = find_field (self, field, OFFSET);

  if (at > 0)
    at = follow (self->buffer, at);
  return at > 0 ? open_table (self->buffer, at, self->depth + 1) :
      (RunnelFlatTable) { NULL };
}

RunnelFlatVector
runnel_flat_table_vector (const RunnelFlatTable *self, guint field,
    gsize element, gsize limit)
{
  RunnelFlatVector vector = { self->buffer, 0, 0, element, self->depth };
  gsize at = find_field (self, field, OFFSET);
  guint32 n;

  if (at > 0)
    at = follow (self->buffer, at);
  if (at == 0)
    return vector;
  n = get_uint32 (self->buffer, at);
  if (n > limit && self->buffer->error == NULL)
    g_set_error (&self->buffer->error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
        "%s: the vector at byte %" G_GSIZE_FORMAT " has %u elements; at most %"
        G_GSIZE_FORMAT " are allowed there", self->buffer->name, at, n, limit);
  else if (n > (self->buffer->size - at - OFFSET) / element)
    runnel_flatbuffer_fail (self->buffer, "the vector at byte %" G_GSIZE_FORMAT
        " of %u elements does not lie inside the file's %" G_GSIZE_FORMAT
        " bytes", at, n, self->buffer->size);
  else
    vector.n = n;
  vector.at = at + OFFSET;
  return vector;
}

const char *
runnel_flat_table_string (const RunnelFlatTable *self, guint field)
{
  RunnelFlatVector text = runnel_flat_table_vector (self, field, 1,
      G_MAXUINT32);
  const char *start;

  if (text.at == 0 || self->buffer->error != NULL)
    return "";
  start = (const char *) self->buffer->data + text.at;
  if (has (self->buffer, text.at + text.n, 1) && start[text.n] == '\0' &&
      g_utf8_validate_len (start, text.n, NULL))
    return start;
  runnel_flatbuffer_fail (self->buffer, "the string at byte %" G_GSIZE_FORMAT
      " is no UTF-8 that ends with NUL", text.at);
  return "";
}

/* --- vectors --- */

RunnelFlatTable
runnel_flat_vector_table (const RunnelFlatVector *self, gsize i)
{
  gsize at;

  g_return_val_if_fail (i < self->n, (RunnelFlatTable) { NULL });
  at = follow (self->buffer, self->at + i * OFFSET);
  return at > 0 ? open_table (self->buffer, at, self->depth + 1) :
      (RunnelFlatTable) { NULL };
}

gint32
runnel_flat_vector_int32 (const RunnelFlatVector *self, gsize i)
{
  g_return_val_if_fail (i < self->n, 0);
  return (gint32) get_uint32 (self->buffer, self->at + i * self->element);
}

gint64
runnel_flat_vector_int64 (const RunnelFlatVector *self, gsize i)
{
  gsize at = self->at + i * self->element;

  g_return_val_if_fail (i < self->n, 0);
  return (gint64) (get_uint32 (self->buffer, at) |
      (guint64) get_uint32 (self->buffer, at + 4) << 32);
}

float
runnel_flat_vector_float (const RunnelFlatVector *self, gsize i)
{
  g_return_val_if_fail (i < self->n, 0);
  return get_float (self->buffer, self->at + i * self->element);
}
