/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "jinja-value.h"

G_BEGIN_DECLS

/*
 * Strings that know where their bytes come from.
 *
 * A string value is a piece of a JinjaText: bytes that are only ever appended
 * to, with the places where the origin changes. Slices share the text of what
 * they were cut from, so they keep the origin without copying; a
 * concatenation whose left side ends its text appends to it in place, so that
 * building a prompt piece by piece is linear.
 */
typedef struct {
  guint32 start; /* first byte of the stretch */
  JinjaOrigin origin;
} JinjaStretch;

struct _JinjaText {
  char *bytes;
  guint32 used;
  guint32 capacity; /* 0: borrowed bytes, never appended to */
  JinjaStretch *stretches;
  guint32 n_stretches;
  guint32 stretches_capacity;
};

#define JINJA_STRING_FORMAT "%.*s"
#define JINJA_STRING_ARGS(value)                                              \
  (int) MIN ((value)->length, 4000), jinja_string_bytes (value)

static inline const char *
jinja_string_bytes (const JinjaValue *value)
{
  return value->text->bytes + value->offset;
}

/* Bytes of the character that starts with @lead, in valid UTF-8. */
static inline gsize
jinja_utf8_size (char lead)
{
  guint8 byte = (guint8) lead;

  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/* Texts to append to. */
JinjaText *jinja_text_new (JinjaRun *run, gsize reserve);
void jinja_text_append (JinjaRun *run, JinjaText *text, const char *bytes,
                        gsize length, JinjaOrigin origin);
/* A string value, with its origins. */
void jinja_text_append_string (JinjaRun *run, JinjaText *text,
                               const JinjaValue *string);
void jinja_text_append_sub (JinjaRun *run, JinjaText *text,
                            const JinjaValue *string, gsize offset,
                            gsize length);
/* What the engine itself writes: data. */
void jinja_text_append_c (JinjaRun *run, JinjaText *text, const char *string);
void jinja_text_append_printf (JinjaRun *run, JinjaText *text,
                               const char *format, ...) G_GNUC_PRINTF (3, 4);
void jinja_text_append_fill (JinjaRun *run, JinjaText *text, char fill,
                             gsize count);
void jinja_text_append_unichar (JinjaRun *run, JinjaText *text, gunichar c,
                                JinjaOrigin origin);
/* All of @text as a string. */
JinjaValue jinja_text_string (JinjaText *text);

/* Strings. */
JinjaValue jinja_string_new (JinjaRun *run, const char *bytes, gsize length,
                             JinjaOrigin origin);
/* Not copied: @bytes must live as long as the run. */
JinjaValue jinja_string_borrow (JinjaRun *run, const char *bytes, gsize length,
                                JinjaOrigin origin);
JinjaValue jinja_string_c (JinjaRun *run, const char *string);
JinjaValue jinja_string_sub (const JinjaValue *string, gsize offset,
                             gsize length);
JinjaValue jinja_string_concat (JinjaRun *run, const JinjaValue *a,
                                const JinjaValue *b);
gboolean jinja_string_is (const JinjaValue *string, const char *text);
gboolean jinja_string_same (const JinjaValue *a, const JinjaValue *b);
/* Characters. */
gsize jinja_string_count (const JinjaValue *string);
/* Byte offset of character @index, which may be the count. */
gsize jinja_string_offset (const JinjaValue *string, gsize index);
gunichar jinja_string_char (const JinjaValue *string, gsize offset);
/* Where @needle begins at or after byte @from, or -1. */
gssize jinja_string_find (JinjaRun *run, const JinjaValue *string, gsize from,
                          const JinjaValue *needle);
/* The origin of the byte at @offset; @end gets the offset (at most the
 * length) up to which it holds. */
JinjaOrigin jinja_string_origin (const JinjaValue *string, gsize offset,
                                 gsize *end);
/* Template only if every byte is. */
JinjaOrigin jinja_string_common_origin (const JinjaValue *string);

/* str.isspace () of one character. */
gboolean jinja_is_space (gunichar c);

G_END_DECLS
