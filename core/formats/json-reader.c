/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "json-reader.h"

#include "../error.h"

const RunnelJsonNode *
runnel_json_find (const RunnelJsonNode *object, const char *key)
{
  const RunnelJsonNode *node = runnel_json_node_member (object, key);

  return node != NULL && runnel_json_node_kind (node) != RUNNEL_JSON_NULL ?
      node : NULL;
}

gboolean
runnel_json_is_number (const RunnelJsonNode *node)
{
  RunnelJsonKind kind = runnel_json_node_kind (node);

  return kind == RUNNEL_JSON_INTEGER || kind == RUNNEL_JSON_FLOAT;
}

gboolean
runnel_json_get_uint_or (RunnelJsonReader *self, const RunnelJsonNode *object,
    const char *key, gint64 max, guint fallback, guint *ret)
{
  const RunnelJsonNode *node = runnel_json_find (object, key);
  gint64 value;

  if (node == NULL) {
    *ret = fallback;
    return TRUE;
  }
  if (runnel_json_node_kind (node) != RUNNEL_JSON_INTEGER)
    return runnel_json_reader_fail (self, RUNNEL_ERROR_MALFORMED,
        "'%s' is no integer", key);
  if (!runnel_json_node_int64 (node, &value) || value < 1 || value > max)
    return runnel_json_reader_fail (self, RUNNEL_ERROR_LIMIT,
        "'%s' is %s; it must lie between 1 and %" G_GINT64_FORMAT, key,
        runnel_json_node_digits (node), max);
  *ret = value;
  return TRUE;
}

gboolean
runnel_json_get_uint (RunnelJsonReader *self, const char *key, gint64 max,
    guint *ret)
{
  if (runnel_json_find (self->root, key) == NULL)
    return runnel_json_reader_fail (self, RUNNEL_ERROR_MALFORMED,
        "'%s' is missing", key);
  return runnel_json_get_uint_or (self, self->root, key, max, 0, ret);
}

gboolean
runnel_json_get_double_or (RunnelJsonReader *self,
    const RunnelJsonNode *object, const char *key, double fallback,
    double *ret)
{
  const RunnelJsonNode *node = runnel_json_find (object, key);

  if (node != NULL && !runnel_json_is_number (node))
    return runnel_json_reader_fail (self, RUNNEL_ERROR_MALFORMED,
        "'%s' is no number", key);
  *ret = node != NULL ? runnel_json_node_double (node) : fallback;
  return TRUE;
}

gboolean
runnel_json_get_boolean_or (RunnelJsonReader *self,
    const RunnelJsonNode *object, const char *key, gboolean fallback,
    gboolean *ret)
{
  const RunnelJsonNode *node = runnel_json_find (object, key);

  if (node != NULL && runnel_json_node_kind (node) != RUNNEL_JSON_BOOLEAN)
    return runnel_json_reader_fail (self, RUNNEL_ERROR_MALFORMED,
        "'%s' is neither true nor false", key);
  *ret = node != NULL ? runnel_json_node_boolean (node) : fallback;
  return TRUE;
}

gboolean
runnel_json_get_string_or_null (RunnelJsonReader *self,
    const RunnelJsonNode *object, const char *key, const char **ret)
{
  const RunnelJsonNode *node = runnel_json_find (object, key);

  if (node != NULL && runnel_json_node_kind (node) != RUNNEL_JSON_STRING)
    return runnel_json_reader_fail (self, RUNNEL_ERROR_MALFORMED,
        "'%s' is no string", key);
  *ret = node != NULL ? runnel_json_node_string (node, NULL) : NULL;
  return TRUE;
}
