/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "jinja-json.h"

#include <math.h>

#include "jinja-number.h"
#include "jinja-operators.h"
#include "jinja-text.h"

/* Writing */

typedef struct {
  JinjaRun *run;
  JinjaText *text;
  const JinjaJsonStyle *style;
  guint level;
} Writer;

static void write_value (Writer *self, const JinjaValue *value);

/* The escape of a character, or FALSE when it stands for itself. */
static gboolean
escape_character (gunichar c, gboolean ensure_ascii, char escape[16])
{
  static const char names[] = "\"\\\b\f\n\r\t";
  static const char letters[] = "\"\\bfnrt";
  const char *named = c > 0 && c < 0x80 ? strchr (names, (int) c) : NULL;

  if (named != NULL)
    g_snprintf (escape, 16, "\\%c", letters[named - names]);
  else if (c < 0x20 || (ensure_ascii && c > 0x7E && c < 0x10000))
    {
      if (c == 0x7F)
        return FALSE;
      g_snprintf (escape, 16, "\\u%04x", c);
    }
  else if (ensure_ascii && c >= 0x10000)
    g_snprintf (escape, 16, "\\u%04x\\u%04x", 0xD7C0 + (c >> 10),
                0xDC00 + (c & 0x3FF));
  else
    return FALSE;
  return TRUE;
}

static void
write_string (Writer *self, const JinjaValue *string)
{
  const char *bytes = jinja_string_bytes (string);
  gsize plain = 0;
  gsize offset = 0;

  jinja_step (self->run, string->length / 8);
  jinja_text_append_c (self->run, self->text, "\"");
  while (offset < string->length)
    {
      gsize size = jinja_utf8_size (bytes[offset]);
      char escape[16];

      if (escape_character (jinja_string_char (string, offset),
                            self->style->ensure_ascii, escape))
        {
          jinja_text_append_sub (self->run, self->text, string, plain,
                                 offset - plain);
          jinja_text_append (self->run, self->text, escape, strlen (escape),
                             jinja_string_origin (string, offset, NULL));
          plain = offset + size;
        }
      offset += size;
    }
  jinja_text_append_sub (self->run, self->text, string, plain,
                         string->length - plain);
  jinja_text_append_c (self->run, self->text, "\"");
}

static void
write_float (Writer *self, double number)
{
  if (isnan (number))
    jinja_text_append_c (self->run, self->text, "NaN");
  else if (isinf (number))
    jinja_text_append_c (self->run, self->text,
                         number < 0 ? "-Infinity" : "Infinity");
  else
    jinja_text_append_c (self->run, self->text,
                         jinja_float_repr (self->run, number));
}

static void
write_break (Writer *self)
{
  if (self->style->indent.kind == JINJA_MISSING)
    return;
  jinja_text_append_c (self->run, self->text, "\n");
  for (guint i = 0; i < self->level; i++)
    jinja_text_append_string (self->run, self->text, &self->style->indent);
}

static void
write_item_separator (Writer *self)
{
  if (self->style->item_separator.kind == JINJA_STRING)
    jinja_text_append_string (self->run, self->text,
                              &self->style->item_separator);
  else
    jinja_text_append_c (
        self->run, self->text,
        self->style->indent.kind == JINJA_MISSING ? ", " : ",");
}

static void
write_list (Writer *self, const JinjaValue *list)
{
  if (list->length == 0)
    {
      jinja_text_append_c (self->run, self->text, "[]");
      return;
    }
  jinja_text_append_c (self->run, self->text, "[");
  self->level++;
  for (guint32 i = 0; i < list->length; i++)
    {
      if (i > 0)
        write_item_separator (self);
      write_break (self);
      write_value (self, &list->items->values[i]);
    }
  self->level--;
  write_break (self);
  jinja_text_append_c (self->run, self->text, "]");
}

/* Keys may also be numbers, booleans and None: they become strings. */
static void
write_key (Writer *self, const JinjaValue *key)
{
  if (key->kind == JINJA_STRING)
    {
      write_string (self, key);
      return;
    }
  if (!jinja_is_number (key) && key->kind != JINJA_NONE)
    jinja_raise (self->run,
                 "keys must be str, int, float, bool or None, not %s",
                 jinja_type_name (key));
  jinja_text_append_c (self->run, self->text, "\"");
  write_value (self, key);
  jinja_text_append_c (self->run, self->text, "\"");
}

static const JinjaEntry *
sorted_entries (Writer *self, const JinjaDict *dict)
{
  JinjaRun *run = self->run;
  JinjaValue *places = jinja_new_n (run, JinjaValue, dict->n_entries);
  JinjaValue *keys = jinja_new_n (run, JinjaValue, dict->n_entries);
  JinjaEntry *sorted = jinja_new_n (run, JinjaEntry, dict->n_entries);

  for (guint32 i = 0; i < dict->n_entries; i++)
    {
      places[i] = jinja_integer (i);
      keys[i] = dict->entries[i].key;
    }
  jinja_sort (run, places, keys, dict->n_entries, FALSE);
  for (guint32 i = 0; i < dict->n_entries; i++)
    sorted[i] = dict->entries[places[i].integer];
  return sorted;
}

static void
write_dict (Writer *self, const JinjaDict *dict)
{
  const JinjaEntry *entries = dict->entries;

  if (dict->n_entries == 0)
    {
      jinja_text_append_c (self->run, self->text, "{}");
      return;
    }
  if (self->style->sort_keys)
    entries = sorted_entries (self, dict);
  jinja_text_append_c (self->run, self->text, "{");
  self->level++;
  for (guint32 i = 0; i < dict->n_entries; i++)
    {
      if (i > 0)
        write_item_separator (self);
      write_break (self);
      write_key (self, &entries[i].key);
      if (self->style->key_separator.kind == JINJA_STRING)
        jinja_text_append_string (self->run, self->text,
                                  &self->style->key_separator);
      else
        jinja_text_append_c (self->run, self->text, ": ");
      write_value (self, &entries[i].value);
    }
  self->level--;
  write_break (self);
  jinja_text_append_c (self->run, self->text, "}");
}

static void
write_value (Writer *self, const JinjaValue *value)
{
  jinja_enter (self->run);
  jinja_step (self->run, 2);
  switch (value->kind)
    {
    case JINJA_NONE:
      jinja_text_append_c (self->run, self->text, "null");
      break;
    case JINJA_BOOLEAN:
      jinja_text_append_c (self->run, self->text,
                           value->boolean ? "true" : "false");
      break;
    case JINJA_INTEGER:
      jinja_text_append_printf (self->run, self->text, "%" G_GINT64_FORMAT,
                                value->integer);
      break;
    case JINJA_BIG:
      jinja_text_append_c (self->run, self->text,
                           jinja_integer_digits (self->run, value));
      break;
    case JINJA_FLOAT:
      write_float (self, value->number);
      break;
    case JINJA_STRING:
      write_string (self, value);
      break;
    case JINJA_LIST:
    case JINJA_TUPLE:
      write_list (self, value);
      break;
    case JINJA_DICT:
      write_dict (self, value->dict);
      break;
    default:
      jinja_raise (self->run, "object of type %s is not JSON serializable",
                   jinja_type_name (value));
    }
  jinja_leave (self->run);
}

JinjaValue
jinja_to_json (JinjaRun *run, const JinjaValue *value,
               const JinjaJsonStyle *style)
{
  Writer writer = { .run = run,
                    .text = jinja_text_new (run, 64),
                    .style = style };

  write_value (&writer, value);
  return jinja_text_string (writer.text);
}

JinjaValue
jinja_string_pad_blanks (JinjaRun *run, gint64 count)
{
  JinjaText *text = jinja_text_new (run, 0);

  jinja_text_append_fill (
      run, text, ' ', (gsize) CLAMP (count, 0, (gint64) run->text_limit));
  return jinja_text_string (text);
}

/* Reading */

static JinjaValue
integer_from_node (JinjaRun *run, const RunnelJsonNode *node)
{
  gint64 integer;
  const char *digits;

  if (runnel_json_node_int64 (node, &integer))
    return jinja_integer (integer);
  digits = runnel_json_node_digits (node);
  return jinja_integer_from_digits (run, digits, strlen (digits));
}

static JinjaValue
string_from_node (JinjaRun *run, const RunnelJsonNode *node,
                  JinjaOrigin origin)
{
  gsize length;
  const char *bytes = runnel_json_node_string (node, &length);

  return jinja_string_borrow (run, bytes, length, origin);
}

#define TOKEN_SUFFIX "_token"

static JinjaValue
object_from_node (JinjaRun *run, const RunnelJsonNode *node,
                  gboolean outermost)
{
  JinjaDict *dict = jinja_dict_new (run);

  for (gsize i = 0; i < runnel_json_node_size (node); i++)
    {
      gsize length;
      const char *key = runnel_json_node_key (node, i, &length);
      const RunnelJsonNode *member = runnel_json_node_value (node, i);
      JinjaValue value;

      if (outermost && length >= strlen (TOKEN_SUFFIX)
          && memcmp (key + length - strlen (TOKEN_SUFFIX), TOKEN_SUFFIX,
                     strlen (TOKEN_SUFFIX))
                 == 0
          && runnel_json_node_kind (member) == RUNNEL_JSON_STRING)
        value = string_from_node (run, member, JINJA_TEMPLATE);
      else
        value = jinja_from_json (run, member);
      jinja_dict_set (run, dict,
                      jinja_string_borrow (run, key, length, JINJA_DATA),
                      value);
    }
  return jinja_dict_value (dict);
}

JinjaValue
jinja_from_json (JinjaRun *run, const RunnelJsonNode *node)
{
  JinjaValue value;
  gsize n;

  jinja_enter (run);
  switch (runnel_json_node_kind (node))
    {
    case RUNNEL_JSON_NULL:
      value = jinja_none ();
      break;
    case RUNNEL_JSON_BOOLEAN:
      value = jinja_boolean (runnel_json_node_boolean (node));
      break;
    case RUNNEL_JSON_INTEGER:
      value = integer_from_node (run, node);
      break;
    case RUNNEL_JSON_FLOAT:
      value = jinja_float (runnel_json_node_double (node));
      break;
    case RUNNEL_JSON_STRING:
      value = string_from_node (run, node, JINJA_DATA);
      break;
    case RUNNEL_JSON_ARRAY:
      n = runnel_json_node_size (node);
      value = jinja_list_new (run, JINJA_LIST, n);
      for (gsize i = 0; i < n; i++)
        jinja_list_append (run, &value,
                           jinja_from_json (run,
                                            runnel_json_node_item (node, i)));
      break;
    default:
      value = object_from_node (run, node, run->depth == 1);
      break;
    }
  jinja_leave (run);
  return value;
}
