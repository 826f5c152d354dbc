/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* JSON on one line, written as it is said. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
  GString *text;
  gboolean needs_comma;
} JsonOutput;

#define JSON_OUTPUT_INIT { g_string_new (NULL), FALSE }

/* @key is NULL in arrays and at the top. Numbers are the shortest that read
 * back; what is not finite becomes null. */
void json_begin_object (JsonOutput *self, const char *key);
void json_end_object (JsonOutput *self);
void json_begin_array (JsonOutput *self, const char *key);
void json_end_array (JsonOutput *self);
/* @text may be NULL, which is null; @length −1: to the NUL. */
void json_add_string (JsonOutput *self, const char *key, const char *text,
                      gssize length);
void json_add_int (JsonOutput *self, const char *key, gint64 value);
void json_add_uint (JsonOutput *self, const char *key, guint64 value);
void json_add_double (JsonOutput *self, const char *key, double value);
void json_add_float (JsonOutput *self, const char *key, float value);
void json_add_boolean (JsonOutput *self, const char *key, gboolean value);
void json_add_tokens (JsonOutput *self, const char *key, const gint32 *tokens,
                      gsize n_tokens);
/* Numbers, strings, booleans, arrays, tuples and dictionaries. */
void json_add_variant (JsonOutput *self, const char *key, GVariant *value);
/* A line on stdout; empties @self. */
void json_print (JsonOutput *self);
void json_output_clear (JsonOutput *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (JsonOutput, json_output_clear)

G_END_DECLS
