/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* The JSON that a chat template reads, put together from pieces of JSON text:
 * pieces are copied as they came, so that numbers and the order of keys stay,
 * and the template's strict reader sees every one of them.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What came in: an array of messages, or an object that holds one. */
typedef struct {
  GString *messages; /* the array's inside: no brackets */
  GString *members;  /* the object's other members, each followed by ',' */
  gboolean has_system;
} GstLmChatInput;

GstLmChatInput *gst_lm_chat_input_new_text (const gchar *text, gsize length);
GstLmChatInput *gst_lm_chat_input_new_json (const gchar *json, gsize length,
                                            GError **error);
void gst_lm_chat_input_free (GstLmChatInput *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstLmChatInput, gst_lm_chat_input_free)

void gst_lm_chat_append_string (GString *json, const gchar *text,
                                gsize length);
void gst_lm_chat_append_message (GString *messages, const gchar *role,
                                 const gchar *text, gsize length);
/* Joins two insides of arrays. */
void gst_lm_chat_append_messages (GString *messages, const gchar *more,
                                  gsize length);
/* A JSON array, and nothing behind it. @name is what errors call it. */
gboolean gst_lm_chat_check_array (const gchar *json, gsize length,
                                  const gchar *name, GError **error);

G_END_DECLS
