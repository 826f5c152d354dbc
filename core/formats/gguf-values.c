/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "gguf-private.h"

#include <string.h>

#include "../error.h"

const RunnelGgufTypeInfo runnel_gguf_types[RUNNEL_GGUF_N_TYPES] = {
  [RUNNEL_GGUF_UINT8] = { "uint8", 1 },
  [RUNNEL_GGUF_INT8] = { "int8", 1 },
  [RUNNEL_GGUF_UINT16] = { "uint16", 2 },
  [RUNNEL_GGUF_INT16] = { "int16", 2 },
  [RUNNEL_GGUF_UINT32] = { "uint32", 4 },
  [RUNNEL_GGUF_INT32] = { "int32", 4 },
  [RUNNEL_GGUF_FLOAT32] = { "float32", 4 },
  [RUNNEL_GGUF_BOOL] = { "bool", 1 },
  [RUNNEL_GGUF_STRING] = { "string", 0 },
  [RUNNEL_GGUF_ARRAY] = { "array", 0 },
  [RUNNEL_GGUF_UINT64] = { "uint64", 8 },
  [RUNNEL_GGUF_INT64] = { "int64", 8 },
  [RUNNEL_GGUF_FLOAT64] = { "float64", 8 },
};

static guint64
load_le (const guint8 *p, guint bytes)
{
  guint64 value = 0;

  for (guint i = 0; i < bytes; i++)
    value |= (guint64) p[i] << 8 * i;
  return value;
}

static const RunnelGgufEntry *
find_entry (const RunnelGguf *self, const char *key)
{
  gsize found = GPOINTER_TO_SIZE (g_hash_table_lookup (self->by_key, key));

  return found > 0 ?
      &g_array_index (self->entries, RunnelGgufEntry, found - 1) : NULL;
}

static gboolean
set_missing (const RunnelGguf *self, const char *key, GError **error)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
      "%s: key '%s' is missing", runnel_gguf_name (self), key);
  return FALSE;
}

static gboolean
set_wrong_type (const RunnelGguf *self, const RunnelGgufEntry *entry,
    const char *expected, GError **error)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
      "%s: key '%s' is of type %s; %s is expected", runnel_gguf_name (self),
      entry->key, runnel_gguf_types[entry->type].name, expected);
  return FALSE;
}

gsize
runnel_gguf_n_keys (const RunnelGguf *self)
{
  return self->entries->len;
}

const char *
runnel_gguf_key (const RunnelGguf *self, gsize i)
{
  g_return_val_if_fail (i < self->entries->len, NULL);
  return g_array_index (self->entries, RunnelGgufEntry, i).key;
}

gboolean
runnel_gguf_has (const RunnelGguf *self, const char *key)
{
  return g_hash_table_contains (self->by_key, key);
}

RunnelGgufType
runnel_gguf_type (const RunnelGguf *self, const char *key)
{
  const RunnelGgufEntry *entry = find_entry (self, key);

  g_return_val_if_fail (entry != NULL, RUNNEL_GGUF_UINT8);
  return entry->type;
}

const guint8 *
runnel_gguf_raw_value (const RunnelGguf *self, const char *key,
    RunnelGgufType *ret_type, gsize *ret_size)
{
  const RunnelGgufEntry *entry = find_entry (self, key);

  g_return_val_if_fail (entry != NULL, NULL);
  *ret_type = entry->type;
  if (entry->type == RUNNEL_GGUF_ARRAY)
    *ret_size = entry->array.end - entry->value;
  else if (entry->type == RUNNEL_GGUF_STRING)
    *ret_size = 8 + load_le (entry->value, 8);
  else
    *ret_size = runnel_gguf_types[entry->type].bytes;
  return entry->value;
}

/* An integer of any type; the sign is kept apart. */
static gboolean
load_integer (const RunnelGgufEntry *entry, guint64 *ret, gboolean *negative)
{
  guint64 raw;
  guint bits;

  switch (entry->type) {
    case RUNNEL_GGUF_UINT8: case RUNNEL_GGUF_INT8:
    case RUNNEL_GGUF_UINT16: case RUNNEL_GGUF_INT16:
    case RUNNEL_GGUF_UINT32: case RUNNEL_GGUF_INT32:
    case RUNNEL_GGUF_UINT64: case RUNNEL_GGUF_INT64:
      break;
    default:
      return FALSE;
  }
  bits = 8 * runnel_gguf_types[entry->type].bytes;
  raw = load_le (entry->value, bits / 8);
  *negative = (entry->type == RUNNEL_GGUF_INT8 ||
          entry->type == RUNNEL_GGUF_INT16 ||
          entry->type == RUNNEL_GGUF_INT32 ||
          entry->type == RUNNEL_GGUF_INT64) && raw >> (bits - 1) != 0;
  if (*negative)
    raw = bits < 64 ? (G_GUINT64_CONSTANT (1) << bits) - raw : -raw;
  *ret = raw;
  return TRUE;
}

gboolean
runnel_gguf_get_uint (const RunnelGguf *self, const char *key, guint64 min,
    guint64 max, guint64 *ret, GError **error)
{
  const RunnelGgufEntry *entry = find_entry (self, key);
  guint64 value;
  gboolean negative;

  if (entry == NULL)
    return set_missing (self, key, error);
  if (!load_integer (entry, &value, &negative))
    return set_wrong_type (self, entry, "an integer", error);
  if (negative || value < min || value > max) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
        "%s: key '%s' is %s%" G_GUINT64_FORMAT "; it must lie between %"
        G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT, runnel_gguf_name (self),
        key, negative ? "-" : "", value, min, max);
    return FALSE;
  }
  *ret = value;
  return TRUE;
}

gboolean
runnel_gguf_get_index (const RunnelGguf *self, const char *key, guint32 n,
    gint32 *ret, GError **error)
{
  guint64 value;

  if (!runnel_gguf_has (self, key)) {
    *ret = -1;
    return TRUE;
  }
  if (n == 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
        "%s: key '%s' counts into a list that has no entries",
        runnel_gguf_name (self), key);
    return FALSE;
  }
  if (!runnel_gguf_get_uint (self, key, 0, n - 1, &value, error))
    return FALSE;
  *ret = (gint32) value;
  return TRUE;
}

gboolean
runnel_gguf_get_uint_or (const RunnelGguf *self, const char *key, guint64 min,
    guint64 max, guint64 fallback, guint64 *ret, GError **error)
{
  if (runnel_gguf_has (self, key))
    return runnel_gguf_get_uint (self, key, min, max, ret, error);
  *ret = fallback;
  return TRUE;
}

gboolean
runnel_gguf_get_double (const RunnelGguf *self, const char *key, double *ret,
    GError **error)
{
  const RunnelGgufEntry *entry = find_entry (self, key);
  guint64 raw;
  gboolean negative;

  if (entry == NULL)
    return set_missing (self, key, error);
  if (entry->type == RUNNEL_GGUF_FLOAT32) {
    guint32 bits = load_le (entry->value, 4);
    float value;

    memcpy (&value, &bits, sizeof value);
    *ret = value;
  } else if (entry->type == RUNNEL_GGUF_FLOAT64) {
    raw = load_le (entry->value, 8);
    memcpy (ret, &raw, sizeof raw);
  } else if (load_integer (entry, &raw, &negative)) {
    *ret = negative ? -(double) raw : (double) raw;
  } else {
    return set_wrong_type (self, entry, "a number", error);
  }
  return TRUE;
}

gboolean
runnel_gguf_get_double_or (const RunnelGguf *self, const char *key,
    double fallback, double *ret, GError **error)
{
  if (runnel_gguf_has (self, key))
    return runnel_gguf_get_double (self, key, ret, error);
  *ret = fallback;
  return TRUE;
}

gboolean
runnel_gguf_get_boolean_or (const RunnelGguf *self, const char *key,
    gboolean fallback, gboolean *ret, GError **error)
{
  const RunnelGgufEntry *entry = find_entry (self, key);

  if (entry == NULL)
    *ret = fallback;
  else if (entry->type == RUNNEL_GGUF_BOOL)
    *ret = entry->value[0] != 0;
  else
    return set_wrong_type (self, entry, "a bool", error);
  return TRUE;
}

gboolean
runnel_gguf_get_string (const RunnelGguf *self, const char *key,
    const char **ret, gsize *ret_length, GError **error)
{
  const RunnelGgufEntry *entry = find_entry (self, key);

  if (entry == NULL)
    return set_missing (self, key, error);
  if (entry->type != RUNNEL_GGUF_STRING)
    return set_wrong_type (self, entry, "a string", error);
  runnel_gguf_next_string (entry->value, ret, ret_length);
  return TRUE;
}

gboolean
runnel_gguf_dup_string_or_null (const RunnelGguf *self, const char *key,
    char **ret, GError **error)
{
  const char *text;
  gsize length;

  if (!runnel_gguf_has (self, key)) {
    *ret = NULL;
    return TRUE;
  }
  if (!runnel_gguf_get_string (self, key, &text, &length, error))
    return FALSE;
  if (memchr (text, '\0', length) != NULL) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: key '%s' holds a NUL character", runnel_gguf_name (self), key);
    return FALSE;
  }
  *ret = g_strndup (text, length);
  return TRUE;
}

gboolean
runnel_gguf_get_array (const RunnelGguf *self, const char *key,
    RunnelGgufType element, RunnelGgufArray *ret, GError **error)
{
  const RunnelGgufEntry *entry = find_entry (self, key);

  if (entry == NULL)
    return FALSE;
  if (entry->type != RUNNEL_GGUF_ARRAY)
    return set_wrong_type (self, entry, "an array", error);
  if (entry->array.type != element) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: key '%s' is an array of %s; elements of type %s are expected",
        runnel_gguf_name (self), key, runnel_gguf_types[entry->array.type].name,
        runnel_gguf_types[element].name);
    return FALSE;
  }
  *ret = entry->array;
  return TRUE;
}

const guint8 *
runnel_gguf_next_string (const guint8 *at, const char **text, gsize *length)
{
  *length = load_le (at, 8);
  *text = (const char *) at + 8;
  return at + 8 + *length;
}
