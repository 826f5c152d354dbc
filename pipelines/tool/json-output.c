/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "json-output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/json.h"

static void
begin_value (JsonOutput *self, const char *key)
{
  if (self->needs_comma)
    g_string_append_c (self->text, ',');
  self->needs_comma = TRUE;
  if (key == NULL)
    return;
  runnel_json_append_string (self->text, key, -1);
  g_string_append_c (self->text, ':');
}

static void
begin_container (JsonOutput *self, const char *key, char bracket)
{
  begin_value (self, key);
  g_string_append_c (self->text, bracket);
  self->needs_comma = FALSE;
}

static void
end_container (JsonOutput *self, char bracket)
{
  g_string_append_c (self->text, bracket);
  self->needs_comma = TRUE;
}

void
json_begin_object (JsonOutput *self, const char *key)
{
  begin_container (self, key, '{');
}

void
json_end_object (JsonOutput *self)
{
  end_container (self, '}');
}

void
json_begin_array (JsonOutput *self, const char *key)
{
  begin_container (self, key, '[');
}

void
json_end_array (JsonOutput *self)
{
  end_container (self, ']');
}

void
json_add_string (JsonOutput *self, const char *key, const char *text,
                 gssize length)
{
  begin_value (self, key);
  if (text != NULL)
    runnel_json_append_string (self->text, text, length);
  else
    g_string_append (self->text, "null");
}

void
json_add_int (JsonOutput *self, const char *key, gint64 value)
{
  begin_value (self, key);
  g_string_append_printf (self->text, "%" G_GINT64_FORMAT, value);
}

void
json_add_uint (JsonOutput *self, const char *key, guint64 value)
{
  begin_value (self, key);
  g_string_append_printf (self->text, "%" G_GUINT64_FORMAT, value);
}

void
json_add_double (JsonOutput *self, const char *key, double value)
{
  begin_value (self, key);
  runnel_json_append_double (self->text, value);
}

/* Fewer digits than its double would need. */
void
json_add_float (JsonOutput *self, const char *key, float value)
{
  char text[32];

  begin_value (self, key);
  if (!isfinite (value)) {
    g_string_append (self->text, "null");
    return;
  }
  for (int digits = 6; digits <= 9; digits++) {
    g_snprintf (text, sizeof text, "%.*g", digits, value);
    if (strtof (text, NULL) == value)
      break;
  }
  g_string_append (self->text, text);
}

void
json_add_boolean (JsonOutput *self, const char *key, gboolean value)
{
  begin_value (self, key);
  g_string_append (self->text, value ? "true" : "false");
}

void
json_add_tokens (JsonOutput *self, const char *key, const gint32 *tokens,
                 gsize n_tokens)
{
  json_begin_array (self, key);
  for (gsize i = 0; i < n_tokens; i++)
    json_add_int (self, NULL, tokens[i]);
  json_end_array (self);
}

static void
add_children (JsonOutput *self, GVariant *container)
{
  gsize n = g_variant_n_children (container);

  for (gsize i = 0; i < n; i++) {
    g_autoptr (GVariant) child = g_variant_get_child_value (container, i);

    if (g_variant_is_of_type (child, G_VARIANT_TYPE_DICT_ENTRY)) {
      g_autoptr (GVariant) name = g_variant_get_child_value (child, 0);
      g_autoptr (GVariant) value = g_variant_get_child_value (child, 1);

      json_add_variant (self, g_variant_get_string (name, NULL), value);
    } else {
      json_add_variant (self, NULL, child);
    }
  }
}

void
json_add_variant (JsonOutput *self, const char *key, GVariant *value)
{
  if (g_variant_is_of_type (value, G_VARIANT_TYPE_VARIANT)) {
    g_autoptr (GVariant) inner = g_variant_get_variant (value);

    json_add_variant (self, key, inner);
  } else if (g_variant_is_of_type (value, G_VARIANT_TYPE_STRING)) {
    json_add_string (self, key, g_variant_get_string (value, NULL), -1);
  } else if (g_variant_is_of_type (value, G_VARIANT_TYPE_BOOLEAN)) {
    json_add_boolean (self, key, g_variant_get_boolean (value));
  } else if (g_variant_is_of_type (value, G_VARIANT_TYPE_INT32)) {
    json_add_int (self, key, g_variant_get_int32 (value));
  } else if (g_variant_is_of_type (value, G_VARIANT_TYPE_UINT32)) {
    json_add_uint (self, key, g_variant_get_uint32 (value));
  } else if (g_variant_is_of_type (value, G_VARIANT_TYPE_UINT64)) {
    json_add_uint (self, key, g_variant_get_uint64 (value));
  } else if (g_variant_is_of_type (value, G_VARIANT_TYPE_DOUBLE)) {
    json_add_double (self, key, g_variant_get_double (value));
  } else if (g_variant_is_of_type (value, G_VARIANT_TYPE_DICTIONARY)) {
    json_begin_object (self, key);
    add_children (self, value);
    json_end_object (self);
  } else {
    json_begin_array (self, key);
    add_children (self, value);
    json_end_array (self);
  }
}

void
json_print (JsonOutput *self)
{
  fwrite (self->text->str, 1, self->text->len, stdout);
  putchar ('\n');
  g_string_truncate (self->text, 0);
  self->needs_comma = FALSE;
}

void
json_output_clear (JsonOutput *self)
{
  g_string_free (self->text, TRUE);
}
