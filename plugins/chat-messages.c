/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "chat-messages.h"

#include <string.h>
#include <runnel.h>

/* A place in a JSON text. It finds where values end, and leaves it to the
 * strict reader to check what they are. */
typedef struct {
  const gchar *start;
  const gchar *at;
  const gchar *end;
  const gchar *name;
} Cursor;

typedef struct {
  const gchar *start;
  gsize length;
} Slice;

static gboolean
fail (const Cursor *self, const gchar *expected, GError **error)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
               "%s: byte %" G_GSIZE_FORMAT ": expected %s", self->name,
               (gsize) (self->at - self->start), expected);
  return FALSE;
}

static void
skip_blanks (Cursor *self)
{
  while (self->at < self->end && strchr (" \t\r\n", *self->at) != NULL &&
         *self->at != '\0')
    self->at++;
}

static gboolean
skip_char (Cursor *self, gchar character)
{
  skip_blanks (self);
  if (self->at == self->end || *self->at != character)
    return FALSE;
  self->at++;
  return TRUE;
}

/* Behind the opening quote. */
static gboolean
skip_string (Cursor *self, GError **error)
{
  while (self->at < self->end && *self->at != '"')
    self->at += *self->at == '\\' && self->at + 1 < self->end ? 2 : 1;
  if (self->at == self->end)
    return fail (self, "the end of a string", error);
  self->at++;
  return TRUE;
}

static gboolean
skip_brackets (Cursor *self, GError **error)
{
  gsize depth = 0;

  do
    {
      gchar character;

      if (self->at == self->end)
        return fail (self, "a closing bracket", error);
      character = *self->at++;
      if (character == '"' && !skip_string (self, error))
        return FALSE;
      if (character == '[' || character == '{')
        depth++;
      else if (character == ']' || character == '}')
        depth--;
    }
  while (depth > 0);
  return TRUE;
}

static gboolean
read_value (Cursor *self, Slice *ret_value, GError **error)
{
  skip_blanks (self);
  ret_value->start = self->at;
  if (self->at == self->end)
    return fail (self, "a value", error);
  if (*self->at == '[' || *self->at == '{')
    {
      if (!skip_brackets (self, error))
        return FALSE;
    }
  else if (*self->at == '"')
    {
      self->at++;
      if (!skip_string (self, error))
        return FALSE;
    }
  else
    while (self->at < self->end && strchr (",]} \t\r\n", *self->at) == NULL)
      self->at++;
  ret_value->length = self->at - ret_value->start;
  if (ret_value->length == 0)
    return fail (self, "a value", error);
  return TRUE;
}

static gboolean
read_key (Cursor *self, Slice *ret_key, GError **error)
{
  if (!skip_char (self, '"'))
    return fail (self, "a key in quotes", error);
  ret_key->start = self->at;
  if (!skip_string (self, error))
    return FALSE;
  ret_key->length = self->at - 1 - ret_key->start;
  if (memchr (ret_key->start, '\\', ret_key->length) != NULL)
    return fail (self, "a key without escapes", error);
  if (!skip_char (self, ':'))
    return fail (self, "':'", error);
  return TRUE;
}

static gboolean
slice_equals (Slice slice, const gchar *text)
{
  return slice.length == strlen (text) &&
         memcmp (slice.start, text, slice.length) == 0;
}

static gboolean
slice_ends_with (Slice slice, const gchar *text)
{
  gsize length = strlen (text);

  return slice.length >= length &&
         memcmp (slice.start + slice.length - length, text, length) == 0;
}

typedef gboolean (*MemberFunc) (Slice key, Slice value, gpointer user_data);

/* At an object. */
static gboolean
foreach_member (Cursor *self, MemberFunc func, gpointer user_data,
                GError **error)
{
  Slice key, value;

  if (!skip_char (self, '{'))
    return fail (self, "'{'", error);
  if (skip_char (self, '}'))
    return TRUE;
  do
    {
      if (!read_key (self, &key, error) || !read_value (self, &value, error))
        return FALSE;
      if (!func (key, value, user_data))
        return fail (self, "messages that are an array", error);
    }
  while (skip_char (self, ','));
  return skip_char (self, '}') || fail (self, "',' or '}'", error);
}

typedef struct {
  gboolean has_role;
  gboolean is_system;
} Message;

static gboolean
find_role (Slice key, Slice value, gpointer user_data)
{
  Message *message = user_data;

  if (!slice_equals (key, "role"))
    return TRUE;
  message->has_role = value.start[0] == '"';
  message->is_system = slice_equals (value, "\"system\"") ||
                       slice_equals (value, "\"developer\"");
  return TRUE;
}

/* Templates leave out, without a word, what has no role that they know. What
 * is no JSON is left to the template's strict reader. */
static gboolean
check_messages (GstLmChatInput *self, GError **error)
{
  Cursor cursor = { self->messages->str, self->messages->str,
                    self->messages->str + self->messages->len, "" };
  guint i = 0;

  do
    {
      Message message = { FALSE, FALSE };

      skip_blanks (&cursor);
      if (cursor.at < cursor.end && *cursor.at == '{' &&
          !foreach_member (&cursor, find_role, &message, NULL))
        return TRUE;
      if (!message.has_role)
        {
          g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                       "messages[%u] is no object with a string \"role\"", i);
          return FALSE;
        }
      if (i++ == 0)
        self->has_system = message.is_system;
    }
  while (skip_char (&cursor, ','));
  return TRUE;
}

static gboolean
set_messages (GstLmChatInput *self, Slice array)
{
  Slice inside = { array.start + 1, array.length - 2 };

  if (array.length < 2 || array.start[0] != '[')
    return FALSE;
  while (inside.length > 0 && g_ascii_isspace (inside.start[0]))
    {
      inside.start++;
      inside.length--;
    }
  while (inside.length > 0 &&
         g_ascii_isspace (inside.start[inside.length - 1]))
    inside.length--;
  g_string_truncate (self->messages, 0);
  g_string_append_len (self->messages, inside.start, inside.length);
  return TRUE;
}

/* Names in _token belong to the tokenizer: what they hold counts as the
 * template's own text, so that no request may bring them. */
static gboolean
add_member (Slice key, Slice value, gpointer user_data)
{
  GstLmChatInput *self = user_data;

  if (slice_equals (key, "messages"))
    return set_messages (self, value);
  if (slice_ends_with (key, "_token"))
    return TRUE;
  g_string_append_c (self->members, '"');
  g_string_append_len (self->members, key.start, key.length);
  g_string_append (self->members, "\":");
  g_string_append_len (self->members, value.start, value.length);
  g_string_append_c (self->members, ',');
  return TRUE;
}

static GstLmChatInput *
chat_input_new (void)
{
  GstLmChatInput *self = g_new0 (GstLmChatInput, 1);

  self->messages = g_string_new (NULL);
  self->members = g_string_new (NULL);
  return self;
}

static gboolean
check_end (Cursor *self, GError **error)
{
  skip_blanks (self);
  return self->at == self->end || fail (self, "the end", error);
}

/* One message of the user. */
GstLmChatInput *
gst_lm_chat_input_new_text (const gchar *text, gsize length)
{
  GstLmChatInput *self = chat_input_new ();

  gst_lm_chat_append_message (self->messages, "user", text, length);
  return self;
}

GstLmChatInput *
gst_lm_chat_input_new_json (const gchar *json, gsize length, GError **error)
{
  g_autoptr (GstLmChatInput) self = chat_input_new ();
  Cursor cursor = { json, json, json + length, "messages" };
  Slice array;

  skip_blanks (&cursor);
  if (cursor.at < cursor.end && *cursor.at == '{')
    {
      if (!foreach_member (&cursor, add_member, self, error))
        return NULL;
    }
  else if (!read_value (&cursor, &array, error))
    return NULL;
  else if (!set_messages (self, array))
    {
      cursor.at = array.start;
      fail (&cursor, "an array of messages, or an object that holds one",
            error);
      return NULL;
    }
  if (!check_end (&cursor, error))
    return NULL;
  if (self->messages->len == 0)
    {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
                   "messages: there is none");
      return NULL;
    }
  return check_messages (self, error) ? g_steal_pointer (&self) : NULL;
}

void
gst_lm_chat_input_free (GstLmChatInput *self)
{
  g_string_free (self->messages, TRUE);
  g_string_free (self->members, TRUE);
  g_free (self);
}

void
gst_lm_chat_append_string (GString *json, const gchar *text, gsize length)
{
  g_string_append_c (json, '"');
  for (gsize i = 0; i < length; i++)
    {
      guchar character = text[i];

      if (character < 0x20)
        g_string_append_printf (json, "\\u%04x", character);
      else
        {
          if (character == '"' || character == '\\')
            g_string_append_c (json, '\\');
          g_string_append_c (json, character);
        }
    }
  g_string_append_c (json, '"');
}

void
gst_lm_chat_append_message (GString *messages, const gchar *role,
                            const gchar *text, gsize length)
{
  if (messages->len > 0)
    g_string_append_c (messages, ',');
  g_string_append_printf (messages, "{\"role\":\"%s\",\"content\":", role);
  gst_lm_chat_append_string (messages, text, length);
  g_string_append_c (messages, '}');
}

void
gst_lm_chat_append_messages (GString *messages, const gchar *more,
                             gsize length)
{
  if (length == 0)
    return;
  if (messages->len > 0)
    g_string_append_c (messages, ',');
  g_string_append_len (messages, more, length);
}

gboolean
gst_lm_chat_check_array (const gchar *json, gsize length, const gchar *name,
                         GError **error)
{
  Cursor cursor = { json, json, json + length, name };
  Slice array;

  skip_blanks (&cursor);
  if (cursor.at == cursor.end || *cursor.at != '[')
    return fail (&cursor, "an array", error);
  return read_value (&cursor, &array, error) && check_end (&cursor, error);
}
