/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "../api.h"

G_BEGIN_DECLS

/*
 * A strict JSON reader (RFC 8259) into an immutable tree that keeps what
 * other readers lose: the order of keys, integers apart from floats, the
 * digits of integers that do not fit 64 bits.
 *
 * Every node belongs to its document; a document lives until its last
 * reference goes. Strings are UTF-8 and may hold NUL, so they have a length.
 */
typedef struct _RunnelJson RunnelJson;          /* reference-counted */
typedef struct _RunnelJsonNode RunnelJsonNode;  /* borrowed from its document */

typedef enum {
  RUNNEL_JSON_NULL,
  RUNNEL_JSON_BOOLEAN,
  RUNNEL_JSON_INTEGER,   /* no '.', no exponent; any number of digits */
  RUNNEL_JSON_FLOAT,
  RUNNEL_JSON_STRING,
  RUNNEL_JSON_ARRAY,
  RUNNEL_JSON_OBJECT,
} RunnelJsonKind;

#define RUNNEL_JSON_MAX_DEPTH 256
/* Bytes of a text. Node sizes are 32 bits, and no JSON of ours comes near. */
#define RUNNEL_JSON_MAX_TEXT ((gsize) 1 << 30)

/* @name is what error messages call the text: a file name, "messages".
 * Errors give line and column. Duplicate keys: the last value wins and keeps
 * the place of the first, as in Python. */
RunnelJson *runnel_json_parse (const char *text, gsize length,
                               const char *name, GError **error);
RunnelJson *runnel_json_load (const char *path, GError **error);
RunnelJson *runnel_json_ref (RunnelJson *self);
void runnel_json_unref (RunnelJson *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelJson, runnel_json_unref)

const RunnelJsonNode *runnel_json_root (const RunnelJson *self);
const char *runnel_json_name (const RunnelJson *self);

RunnelJsonKind runnel_json_node_kind (const RunnelJsonNode *node);
gboolean runnel_json_node_boolean (const RunnelJsonNode *node);
/* FALSE when the node is no integer or does not fit. */
gboolean runnel_json_node_int64 (const RunnelJsonNode *node, gint64 *ret);
/* Also for integers (rounded). */
double runnel_json_node_double (const RunnelJsonNode *node);
/* The digits of an integer ("-12"), for those that fit no gint64. */
const char *runnel_json_node_digits (const RunnelJsonNode *node);
/* NUL-terminated; @length may be NULL. */
const char *runnel_json_node_string (const RunnelJsonNode *node,
                                     gsize *length);
gsize runnel_json_node_size (const RunnelJsonNode *node); /* items or members */
const RunnelJsonNode *runnel_json_node_item (const RunnelJsonNode *node,
                                             gsize i);
const char *runnel_json_node_key (const RunnelJsonNode *node, gsize i,
                                  gsize *length);
const RunnelJsonNode *runnel_json_node_value (const RunnelJsonNode *node,
                                              gsize i);
/* NULL when absent or when @node is no object. Constant time on average. */
const RunnelJsonNode *runnel_json_node_member (const RunnelJsonNode *node,
                                               const char *key);

/* Writing: appends to a GString; numbers are the shortest that read back. */
void runnel_json_append_string (GString *out, const char *text, gssize length);
void runnel_json_append_double (GString *out, double value);

G_END_DECLS
