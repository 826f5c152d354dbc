/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A reader of FlatBuffers that trusts nothing: every offset, table of fields
 * and vector is looked at before it is followed. No schema; fields go by their
 * number, as the writer's compiler counted them (a union takes two: its type,
 * then its table).
 *
 * Source: the FlatBuffers project, "FlatBuffer Internals".
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define RUNNEL_FLATBUFFER_MAX_DEPTH 16

/* The first fault is kept, and what is read after it is empty: a caller may
 * look once, after a handful of reads. */
typedef struct {
  const guint8 *data;      /* borrowed */
  gsize size;
  const char *name;        /* of the file, borrowed */
  GError *error;           /* RUNNEL_ERROR_MALFORMED or _LIMIT */
} RunnelFlatbuffer;

/* All zero is an empty table: every field is absent. */
typedef struct {
  RunnelFlatbuffer *buffer;
  gsize at;
  gsize fields;            /* where the table of fields is */
  guint16 fields_size, size;
  guint depth;
} RunnelFlatTable;

typedef struct {
  RunnelFlatbuffer *buffer;
  gsize at;                /* the first element */
  gsize n;                 /* all inside the buffer */
  gsize element;           /* bytes of one */
  guint depth;
} RunnelFlatVector;

void runnel_flatbuffer_init (RunnelFlatbuffer *self, const guint8 *data,
                             gsize size, const char *name);
void runnel_flatbuffer_clear (RunnelFlatbuffer *self);
/* Keeps the message, unless one is kept already: "FILE: what is wrong". */
void runnel_flatbuffer_fail (RunnelFlatbuffer *self, const char *format, ...)
    G_GNUC_PRINTF (2, 3);
/* FALSE with the fault that was kept, which is moved to @error. */
gboolean runnel_flatbuffer_check (RunnelFlatbuffer *self, GError **error);

RunnelFlatTable runnel_flatbuffer_root (RunnelFlatbuffer *self);

gint64 runnel_flat_table_int8 (const RunnelFlatTable *self, guint field,
                               gint64 absent);
gint64 runnel_flat_table_int32 (const RunnelFlatTable *self, guint field,
                                gint64 absent);
float runnel_flat_table_float (const RunnelFlatTable *self, guint field,
                               float absent);
/* Empty when absent. */
RunnelFlatTable runnel_flat_table_table (const RunnelFlatTable *self,
                                         guint field);
/* @element: bytes of one, 4 for tables. Longer than @limit is an error. */
RunnelFlatVector runnel_flat_table_vector (const RunnelFlatTable *self,
                                           guint field, gsize element,
                                           gsize limit);
/* Valid UTF-8 inside the buffer, with a NUL behind it and none within; "" when
 * absent. */
const char *runnel_flat_table_string (const RunnelFlatTable *self,
                                      guint field);

static inline gboolean
runnel_flat_table_is_empty (const RunnelFlatTable *self)
{
  return self->buffer == NULL;
}

/* @i is below the vector's n for these. */
RunnelFlatTable runnel_flat_vector_table (const RunnelFlatVector *self,
                                          gsize i);
gint32 runnel_flat_vector_int32 (const RunnelFlatVector *self, gsize i);
gint64 runnel_flat_vector_int64 (const RunnelFlatVector *self, gsize i);
float runnel_flat_vector_float (const RunnelFlatVector *self, gsize i);

G_END_DECLS
