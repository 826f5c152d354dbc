/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "json-private.h"

#include <math.h>
#include <string.h>

#include "../error.h"
#include "mapping.h"

typedef struct {
  gsize base;          /* its first child on the stack */
  gboolean object;
} Frame;

typedef struct {
  RunnelJson *doc;
  const guint8 *start, *at, *end;
  char *text;              /* next free byte of doc->text */
  RunnelJsonNode *stack;   /* the children of all open containers */
  gsize n_stack, stack_room;
  guint depth;
  Frame frames[RUNNEL_JSON_MAX_DEPTH];
  GError **error;
} Parser;

/* --- errors --- */

static void G_GNUC_PRINTF (4, 5)
set_failure (Parser *self, RunnelError code, const guint8 *at,
    const char *format, ...)
{
  g_autofree char *what = NULL;
  guint line = 1, column = 1;
  va_list args;

  for (const guint8 *p = self->start; p < at; p++) {
    if (*p == '\n') {
      line++;
      column = 1;
    } else if ((*p & 0xc0) != 0x80) {
      column++;
    }
  }
  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (self->error, RUNNEL_ERROR, code, "%s: line %u, column %u: %s",
      self->doc->name, line, column, what);
}

/* FALSE in sight of the compiler, which then sees what is initialised. */
#define fail(...) (set_failure (__VA_ARGS__), FALSE)

static void
set_expected (Parser *self, const char *expected)
{
  if (self->at >= self->end)
    set_failure (self, RUNNEL_ERROR_TRUNCATED, self->at,
        "the text ends where %s is expected", expected);
  else if (*self->at > 0x20 && *self->at < 0x7f)
    set_failure (self, RUNNEL_ERROR_MALFORMED, self->at,
        "'%c' where %s is expected", *self->at, expected);
  else
    set_failure (self, RUNNEL_ERROR_MALFORMED, self->at,
        "byte 0x%02x where %s is expected", *self->at, expected);
}

#define fail_expected(...) (set_expected (__VA_ARGS__), FALSE)

/* --- scalars --- */

static void
skip_blanks (Parser *self)
{
  while (self->at < self->end && (*self->at == ' ' || *self->at == '\n' ||
          *self->at == '\r' || *self->at == '\t'))
    self->at++;
}

static RunnelJsonNode *
push (Parser *self, RunnelJsonKind kind)
{
  RunnelJsonNode *node;

  if (self->n_stack == self->stack_room) {
    self->stack_room = MAX (64, self->stack_room * 2);
    self->stack = g_renew (RunnelJsonNode, self->stack, self->stack_room);
  }
  node = &self->stack[self->n_stack++];
  node->kind = kind;
  node->size = 0;
  node->text = NULL;
  return node;
}

/* Bytes of the well-formed UTF-8 sequence at @p (Unicode 15, table 3-7), or
 * 0: no overlong forms, no surrogates, nothing above U+10FFFF. */
static guint
utf8_sequence (const guint8 *p, const guint8 *end)
{
  gsize left = end - p;
  guint8 low = 0x80, high = 0xbf;
  guint n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

  if (n == 1)
    return 1;
  if (p[0] < 0xc2 || p[0] > 0xf4 || left < n)
    return 0;
  if (p[0] == 0xe0)
    low = 0xa0;
  else if (p[0] == 0xed)
    high = 0x9f;
  else if (p[0] == 0xf0)
    low = 0x90;
  else if (p[0] == 0xf4)
    high = 0x8f;
  if (p[1] < low || p[1] > high)
    return 0;
  for (guint i = 2; i < n; i++)
    if ((p[i] & 0xc0) != 0x80)
      return 0;
  return n;
}

static gboolean
parse_hex4 (Parser *self, gunichar *ret)
{
  gunichar value = 0;

  for (guint i = 0; i < 4; i++, self->at++) {
    int digit = self->at < self->end ? g_ascii_xdigit_value (*self->at) : -1;

    if (digit < 0)
      return fail_expected (self, "a hexadecimal digit");
    value = value << 4 | digit;
  }
  *ret = value;
  return TRUE;
}

/* After "\u". A pair of surrogates is one character; half a pair is none. */
static gboolean
parse_unicode_escape (Parser *self)
{
  const guint8 *escape = self->at - 2;
  gunichar c, low;

  if (!parse_hex4 (self, &c))
    return FALSE;
  if (c >= 0xd800 && c <= 0xdfff) {
    if (c >= 0xdc00 || self->end - self->at < 2 || self->at[0] != '\\' ||
        self->at[1] != 'u')
      return fail (self, RUNNEL_ERROR_MALFORMED, escape,
          "half of a surrogate pair (\\u%04x)", c);
    self->at += 2;
    if (!parse_hex4 (self, &low))
      return FALSE;
    if (low < 0xdc00 || low > 0xdfff)
      return fail (self, RUNNEL_ERROR_MALFORMED, escape,
          "half of a surrogate pair (\\u%04x)", c);
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  }
  self->text += g_unichar_to_utf8 (c, self->text);
  return TRUE;
}

static gboolean
parse_escape (Parser *self)
{
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const char *found;

  self->at++;
  if (self->at >= self->end)
    return fail_expected (self, "an escape");
  if (*self->at == 'u') {
    self->at++;
    return parse_unicode_escape (self);
  }
  found = *self->at != 0 ? strchr (from, *self->at) : NULL;
  if (found == NULL)
    return fail_expected (self, "an escape (one of \"\\/bfnrtu)");
  *self->text++ = to[found - from];
  self->at++;
  return TRUE;
}

/* At the opening quote; pushes the string. What it writes is never longer
 * than what it reads, the closing quote paying for the NUL. */
static gboolean
parse_string (Parser *self)
{
  const char *text = self->text;
  const guint8 *opened = self->at++;
  RunnelJsonNode *node;

  for (;;) {
    const guint8 *run = self->at;

    while (self->at < self->end && *self->at >= 0x20 && *self->at < 0x80 &&
        *self->at != '"' && *self->at != '\\')
      self->at++;
    memcpy (self->text, run, self->at - run);
    self->text += self->at - run;
    if (self->at >= self->end)
      return fail (self, RUNNEL_ERROR_TRUNCATED, opened,
          "the string that begins here does not end");
    if (*self->at == '"')
      break;
    if (*self->at == '\\') {
      if (!parse_escape (self))
        return FALSE;
    } else if (*self->at < 0x20) {
      return fail (self, RUNNEL_ERROR_MALFORMED, self->at,
          "control character 0x%02x in a string (write \\u%04x)", *self->at,
          *self->at);
    } else {
      guint n = utf8_sequence (self->at, self->end);

      if (n == 0)
        return fail (self, RUNNEL_ERROR_MALFORMED, self->at,
            "byte 0x%02x is not UTF-8", *self->at);
      memcpy (self->text, self->at, n);
      self->text += n;
      self->at += n;
    }
  }
  self->at++;
  node = push (self, RUNNEL_JSON_STRING);
  node->text = text;
  node->size = self->text - text;
  *self->text++ = '\0';
  return TRUE;
}

static gboolean
skip_digits (Parser *self)
{
  const guint8 *first = self->at;

  while (self->at < self->end && g_ascii_isdigit (*self->at))
    self->at++;
  return self->at > first ? TRUE : fail_expected (self, "a digit");
}

/* Digits of an integer are kept; a float becomes a double. */
static gboolean
parse_number (Parser *self)
{
  const guint8 *first = self->at;
  gboolean integer = TRUE;
  gsize length;
  RunnelJsonNode *node;

  if (*self->at == '-')
    self->at++;
  if (self->end - self->at >= 2 && self->at[0] == '0' &&
      g_ascii_isdigit (self->at[1]))
    return fail (self, RUNNEL_ERROR_MALFORMED, self->at,
        "a number with a leading zero");
  if (!skip_digits (self))
    return FALSE;
  if (self->at < self->end && *self->at == '.') {
    integer = FALSE;
    self->at++;
    if (!skip_digits (self))
      return FALSE;
  }
  if (self->at < self->end && (*self->at == 'e' || *self->at == 'E')) {
    integer = FALSE;
    self->at++;
    if (self->at < self->end && (*self->at == '+' || *self->at == '-'))
      self->at++;
    if (!skip_digits (self))
      return FALSE;
  }
  length = self->at - first;
  memcpy (self->text, first, length);
  self->text[length] = '\0';
  node = push (self, integer ? RUNNEL_JSON_INTEGER : RUNNEL_JSON_FLOAT);
  if (integer) {
    node->text = self->text;
    self->text += length + 1;
  } else {
    node->number = g_ascii_strtod (self->text, NULL);
    if (!isfinite (node->number))
      return fail (self, RUNNEL_ERROR_LIMIT, first,
          "a number beyond the range of double precision");
  }
  return TRUE;
}

static gboolean
parse_literal (Parser *self)
{
  static const struct { const char *text; RunnelJsonKind kind; guint8 value; }
  literals[] = {
    { "true", RUNNEL_JSON_BOOLEAN, 1 },
    { "false", RUNNEL_JSON_BOOLEAN, 0 },
    { "null", RUNNEL_JSON_NULL, 0 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (literals); i++) {
    gsize n = strlen (literals[i].text);
    gsize left = self->end - self->at;

    if (memcmp (self->at, literals[i].text, MIN (n, left)) != 0)
      continue;
    self->at += MIN (n, left);
    if (left < n)
      break;
    push (self, literals[i].kind)->size = literals[i].value;
    return TRUE;
  }
  return fail_expected (self, "a value");
}

/* --- containers --- */

static gboolean
open_container (Parser *self, gboolean object)
{
  if (self->depth == RUNNEL_JSON_MAX_DEPTH)
    return fail (self, RUNNEL_ERROR_LIMIT, self->at,
        "nested more than %d levels deep", RUNNEL_JSON_MAX_DEPTH);
  self->at++;
  self->frames[self->depth].base = self->n_stack;
  self->frames[self->depth].object = object;
  self->depth++;
  return TRUE;
}

/* Replaces the children on the stack by the container that holds them. */
static void
close_container (Parser *self)
{
  const Frame *frame = &self->frames[--self->depth];
  gsize n = self->n_stack - frame->base;
  const RunnelJsonNode *children = n > 0 ? self->stack + frame->base : NULL;
  RunnelJsonNode node = { 0 };

  self->at++;
  if (frame->object) {
    node.kind = RUNNEL_JSON_OBJECT;
    node.members = runnel_json_make_members (self->doc, children, n / 2,
        &node.size);
  } else {
    RunnelJsonNode *items = runnel_json_alloc (self->doc, n * sizeof *items);

    if (n > 0)
      memcpy (items, children, n * sizeof *items);
    node.kind = RUNNEL_JSON_ARRAY;
    node.size = n;
    node.items = items;
  }
  self->n_stack = frame->base;
  *push (self, node.kind) = node;
}

static gboolean
parse_key (Parser *self)
{
  skip_blanks (self);
  if (self->at >= self->end || *self->at != '"')
    return fail_expected (self, "a key in double quotes");
  if (!parse_string (self))
    return FALSE;
  skip_blanks (self);
  if (self->at >= self->end || *self->at != ':')
    return fail_expected (self, "':'");
  self->at++;
  return TRUE;
}

/* Opens the container at hand; *@closed when it is empty. */
static gboolean
begin_container (Parser *self, gboolean *closed)
{
  gboolean object = *self->at == '{';

  if (!open_container (self, object))
    return FALSE;
  skip_blanks (self);
  *closed = self->at < self->end && *self->at == (object ? '}' : ']');
  if (*closed) {
    close_container (self);
    return TRUE;
  }
  return !object || parse_key (self);
}

/* After a value: closes what ends here. Then either a further value is due,
 * or the outermost one is complete (depth 0). */
static gboolean
finish_value (Parser *self)
{
  while (self->depth > 0) {
    gboolean object = self->frames[self->depth - 1].object;

    skip_blanks (self);
    if (self->at < self->end && *self->at == ',') {
      self->at++;
      return !object || parse_key (self);
    }
    if (self->at >= self->end || *self->at != (object ? '}' : ']'))
      return fail_expected (self, object ? "',' or '}'" : "',' or ']'");
    close_container (self);
  }
  return TRUE;
}

static gboolean
parse_document (Parser *self)
{
  do {
    gboolean complete = TRUE, good;

    skip_blanks (self);
    if (self->at >= self->end)
      return fail_expected (self, "a value");
    switch (*self->at) {
      case '{':
      case '[':
        good = begin_container (self, &complete);
        break;
      case '"':
        good = parse_string (self);
        break;
      case '-': case '0': case '1': case '2': case '3': case '4': case '5':
      case '6': case '7': case '8': case '9':
        good = parse_number (self);
        break;
      default:
        good = parse_literal (self);
    }
    if (!good || (complete && !finish_value (self)))
      return FALSE;
  } while (self->depth > 0);
  skip_blanks (self);
  if (self->at < self->end)
    return fail_expected (self, "the end of the text");
  self->doc->root = self->stack[0];
  return TRUE;
}

RunnelJson *
runnel_json_parse (const char *text, gsize length, const char *name,
    GError **error)
{
  g_autoptr (RunnelJson) doc = NULL;
  Parser parser = { 0 };
  gboolean good;

  if (length > RUNNEL_JSON_MAX_TEXT) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
        "%s: %" G_GSIZE_FORMAT " bytes of JSON are over the limit of %"
        G_GSIZE_FORMAT, name, length, RUNNEL_JSON_MAX_TEXT);
    return NULL;
  }
  doc = g_new0 (RunnelJson, 1);
  g_atomic_ref_count_init (&doc->ref_count);
  doc->name = g_strdup (name);
  doc->chunks = g_ptr_array_new_with_free_func (g_free);
  doc->text = g_malloc (length + 1);
  parser.doc = doc;
  parser.start = parser.at = (const guint8 *) text;
  parser.end = parser.start + length;
  parser.text = doc->text;
  parser.error = error;
  good = parse_document (&parser);
  g_free (parser.stack);
  return good ? g_steal_pointer (&doc) : NULL;
}

RunnelJson *
runnel_json_load (const char *path, GError **error)
{
  g_autoptr (RunnelMapping) mapping =
      runnel_mapping_read (path, RUNNEL_JSON_MAX_TEXT, error);

  if (mapping == NULL)
    return NULL;
  return runnel_json_parse ((const char *) runnel_mapping_data (mapping),
      runnel_mapping_size (mapping), path, error);
}
