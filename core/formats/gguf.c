/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "gguf-private.h"

#include <stdlib.h>
#include <string.h>

#include "../error-private.h"

/* The specification's own limits on names, and limits no good file reaches. */
#define MAX_KEY_LENGTH 65535
#define MAX_TENSOR_NAME 64
#define MAX_STRING ((guint64) G_MAXINT32)
#define MAX_ENTRIES ((guint64) 1 << 24)
#define MAX_ELEMENTS ((guint64) G_MAXINT32)
#define MAX_ARRAY_DEPTH 4
#define DEFAULT_ALIGNMENT 32
#define MAX_ALIGNMENT ((guint64) 1 << 20)

/* The least an entry can take: what a count is checked against. */
#define MIN_KEY_BYTES (8 + 4 + 1)
#define MIN_TENSOR_BYTES (8 + 4 + 8 + 4 + 8)

typedef struct {
  RunnelGguf *gguf;
  const char *name;         /* of the file */
  const guint8 *start, *at, *end;
  GError **error;
} Reader;

/* FALSE in sight of the compiler, which then sees what is initialised. */
#define fail(self, code, ...) \
  (runnel_set_error_about ((self)->error, code, (self)->name, __VA_ARGS__), \
      FALSE)

static void
set_truncated (Reader *self, const char *what, const char *of)
{
  runnel_set_error_about (self->error, RUNNEL_ERROR_TRUNCATED, self->name,
      "truncated at byte %" G_GSIZE_FORMAT ", in %s%s%s%s; copy the file again",
      (gsize) (self->end - self->start), what, of != NULL ? " of '" : "",
      of != NULL ? of : "", of != NULL ? "'" : "");
}

#define fail_truncated(...) (set_truncated (__VA_ARGS__), FALSE)

/* --- little-endian values --- */

static guint32
load_u32 (const guint8 *p)
{
  guint32 value;

  memcpy (&value, p, sizeof value);
  return GUINT32_FROM_LE (value);
}

static guint64
load_u64 (const guint8 *p)
{
  guint64 value;

  memcpy (&value, p, sizeof value);
  return GUINT64_FROM_LE (value);
}

static gboolean
take (Reader *self, gsize bytes, const char *what, const char *of,
    const guint8 **ret)
{
  if ((gsize) (self->end - self->at) < bytes)
    return fail_truncated (self, what, of);
  *ret = self->at;
  self->at += bytes;
  return TRUE;
}

static gboolean
take_u32 (Reader *self, const char *what, const char *of, guint32 *ret)
{
  const guint8 *at;

  if (!take (self, 4, what, of, &at))
    return FALSE;
  *ret = load_u32 (at);
  return TRUE;
}

static gboolean
take_u64 (Reader *self, const char *what, const char *of, guint64 *ret)
{
  const guint8 *at;

  if (!take (self, 8, what, of, &at))
    return FALSE;
  *ret = load_u64 (at);
  return TRUE;
}

static gboolean
take_string (Reader *self, guint64 limit, const char *what, const char *of,
    const guint8 **ret, gsize *ret_length)
{
  guint64 length;

  if (!take_u64 (self, what, of, &length))
    return FALSE;
  if (length > limit)
    return fail (self, RUNNEL_ERROR_LIMIT,
        "%s%s%s%s at byte %" G_GSIZE_FORMAT " claims %" G_GUINT64_FORMAT
        " bytes; the limit is %" G_GUINT64_FORMAT, what,
        of != NULL ? " of '" : "", of != NULL ? of : "", of != NULL ? "'" : "",
        (gsize) (self->at - self->start - 8), length, limit);
  *ret_length = length;
  return take (self, length, what, of, ret);
}

/* The name of a key or tensor, kept with a NUL. */
static const char *
take_name (Reader *self, guint64 limit, const char *what)
{
  gsize at = self->at - self->start, length;
  const guint8 *text;

  if (!take_string (self, limit, what, NULL, &text, &length))
    return NULL;
  if (length == 0) {
    runnel_set_error_about (self->error, RUNNEL_ERROR_MALFORMED, self->name,
        "%s at byte %" G_GSIZE_FORMAT " is empty", what, at);
    return NULL;
  }
  if (!g_utf8_validate_len ((const char *) text, length, NULL)) {
    runnel_set_error_about (self->error, RUNNEL_ERROR_MALFORMED, self->name,
        "%s at byte %" G_GSIZE_FORMAT " is not UTF-8 text", what, at);
    return NULL;
  }
  return g_string_chunk_insert_len (self->gguf->names, (const char *) text,
      length);
}

/* --- metadata --- */

static gboolean
check_booleans (Reader *self, const guint8 *at, guint64 n, const char *key)
{
  for (guint64 i = 0; i < n; i++)
    if (at[i] > 1)
      return fail (self, RUNNEL_ERROR_MALFORMED,
          "key '%s': %u is no boolean (0 or 1)", key, at[i]);
  return TRUE;
}

static gboolean
check_type (Reader *self, guint32 type, const char *key)
{
  if (type >= RUNNEL_GGUF_N_TYPES)
    return fail (self, RUNNEL_ERROR_MALFORMED,
        "key '%s': unknown value type %u", key, type);
  return TRUE;
}

static gboolean
take_array (Reader *self, const char *key, guint depth, RunnelGgufArray *ret)
{
  guint32 type;
  guint64 n;
  gsize left, least;

  if (depth == MAX_ARRAY_DEPTH)
    return fail (self, RUNNEL_ERROR_LIMIT,
        "key '%s': arrays nested more than %d deep", key, MAX_ARRAY_DEPTH);
  if (!take_u32 (self, "the array", key, &type) ||
      !check_type (self, type, key) ||
      !take_u64 (self, "the array", key, &n))
    return FALSE;
  if (n > MAX_ELEMENTS)
    return fail (self, RUNNEL_ERROR_LIMIT,
        "key '%s': an array of %" G_GUINT64_FORMAT " elements; the limit is %"
        G_GUINT64_FORMAT, key, n, MAX_ELEMENTS);
  left = self->end - self->at;
  least = type == RUNNEL_GGUF_STRING ? 8 :
      type == RUNNEL_GGUF_ARRAY ? 12 : runnel_gguf_types[type].bytes;
  if (n > left / least)
    return fail_truncated (self, "the array", key);
  ret->type = type;
  ret->n = n;
  ret->data = self->at;
  if (type == RUNNEL_GGUF_STRING) {
    const guint8 *text;
    gsize length;

    for (guint64 i = 0; i < n; i++)
      if (!take_string (self, MAX_STRING, "a string", key, &text, &length))
        return FALSE;
  } else if (type == RUNNEL_GGUF_ARRAY) {
    RunnelGgufArray inner;

    for (guint64 i = 0; i < n; i++)
      if (!take_array (self, key, depth + 1, &inner))
        return FALSE;
  } else {
    self->at += n * least;
    if (type == RUNNEL_GGUF_BOOL && !check_booleans (self, ret->data, n, key))
      return FALSE;
  }
  ret->end = self->at;
  return TRUE;
}

static gboolean
take_entry (Reader *self)
{
  RunnelGguf *gguf = self->gguf;
  RunnelGgufEntry entry = { take_name (self, MAX_KEY_LENGTH, "a key") };
  guint32 type;

  if (entry.key == NULL ||
      !take_u32 (self, "the type", entry.key, &type) ||
      !check_type (self, type, entry.key))
    return FALSE;
  if (g_hash_table_contains (gguf->by_key, entry.key))
    return fail (self, RUNNEL_ERROR_MALFORMED, "key '%s' occurs twice",
        entry.key);
  entry.type = type;
  entry.value = self->at;
  if (type == RUNNEL_GGUF_ARRAY) {
    if (!take_array (self, entry.key, 0, &entry.array))
      return FALSE;
  } else if (type == RUNNEL_GGUF_STRING) {
    const guint8 *text;
    gsize length;

    if (!take_string (self, MAX_STRING, "the value", entry.key, &text,
            &length))
      return FALSE;
  } else if (!take (self, runnel_gguf_types[type].bytes, "the value", entry.key,
          &entry.value)) {
    return FALSE;
  }
  if (type == RUNNEL_GGUF_BOOL &&
      !check_booleans (self, entry.value, 1, entry.key))
    return FALSE;
  g_array_append_val (gguf->entries, entry);
  g_hash_table_insert (gguf->by_key, (char *) entry.key,
      GSIZE_TO_POINTER (gguf->entries->len));
  return TRUE;
}

/* --- tensors --- */

/* Elements and bytes of a tensor, each product checked. */
static gboolean
measure_tensor (Reader *self, RunnelTensor *tensor)
{
  const RunnelTensorTypeInfo *info = runnel_tensor_type_info (tensor->type);
  guint64 bytes;
  guint64 elements = 1;

  for (guint i = 0; i < tensor->n_dims; i++) {
    if (tensor->dims[i] == 0)
      return fail (self, RUNNEL_ERROR_MALFORMED,
          "tensor '%s': dimension %u is 0", tensor->name, i);
    if (!g_uint64_checked_mul (&elements, elements, tensor->dims[i]))
      return fail (self, RUNNEL_ERROR_LIMIT,
          "tensor '%s': the number of its elements overflows", tensor->name);
  }
  if (tensor->dims[0] % info->block_elements != 0)
    return fail (self, RUNNEL_ERROR_MALFORMED,
        "tensor '%s': rows of %" G_GUINT64_FORMAT " elements are not whole "
        "%s blocks of %u", tensor->name, tensor->dims[0], info->name,
        info->block_elements);
  if (!runnel_tensor_type_bytes (tensor->type, tensor->dims[0],
          elements / tensor->dims[0], &bytes) || bytes > G_MAXSSIZE)
    return fail (self, RUNNEL_ERROR_LIMIT,
        "tensor '%s': the number of its bytes overflows", tensor->name);
  tensor->bytes = bytes;
  return TRUE;
}

/* The offset is still that of the file, from the data section's start. */
static gboolean
take_tensor (Reader *self)
{
  RunnelGguf *gguf = self->gguf;
  RunnelTensor tensor = { take_name (self, MAX_TENSOR_NAME, "a tensor name") };
  guint32 type;
  guint64 offset;

  if (tensor.name == NULL ||
      !take_u32 (self, "tensor", tensor.name, &tensor.n_dims))
    return FALSE;
  if (g_hash_table_contains (gguf->by_name, tensor.name))
    return fail (self, RUNNEL_ERROR_MALFORMED, "tensor '%s' occurs twice",
        tensor.name);
  if (tensor.n_dims == 0 || tensor.n_dims > RUNNEL_TENSOR_MAX_DIMS)
    return fail (self, RUNNEL_ERROR_LIMIT,
        "tensor '%s' has %u dimensions; 1 to %d are allowed", tensor.name,
        tensor.n_dims, RUNNEL_TENSOR_MAX_DIMS);
  for (guint i = 0; i < RUNNEL_TENSOR_MAX_DIMS; i++) {
    tensor.dims[i] = 1;
    if (i < tensor.n_dims &&
        !take_u64 (self, "tensor", tensor.name, &tensor.dims[i]))
      return FALSE;
  }
  if (!take_u32 (self, "tensor", tensor.name, &type) ||
      !take_u64 (self, "tensor", tensor.name, &offset))
    return FALSE;
  if (runnel_tensor_type_info (type) == NULL)
    return fail (self, RUNNEL_ERROR_UNSUPPORTED,
        "tensor '%s': type %u is not supported (F32, F16, BF16, Q4_0 to "
        "Q8_0, Q2_K to Q6_K and Runnel's INT4 and INT8 are)", tensor.name, type);
  tensor.type = type;
  if (!measure_tensor (self, &tensor))
    return FALSE;
  if (offset % gguf->alignment != 0)
    return fail (self, RUNNEL_ERROR_MALFORMED,
        "tensor '%s': offset %" G_GUINT64_FORMAT " is not a multiple of the "
        "alignment %" G_GSIZE_FORMAT, tensor.name, offset, gguf->alignment);
  if (offset > G_MAXSSIZE - tensor.bytes)
    return fail (self, RUNNEL_ERROR_LIMIT, "tensor '%s': offset %"
        G_GUINT64_FORMAT " overflows", tensor.name, offset);
  tensor.offset = offset;
  tensor.mapping = gguf->mapping;
  g_array_append_val (gguf->tensors, tensor);
  g_hash_table_insert (gguf->by_name, (char *) tensor.name,
      GSIZE_TO_POINTER (gguf->tensors->len));
  return TRUE;
}

static int
compare_offsets (const void *a, const void *b)
{
  const RunnelTensor *s = *(const RunnelTensor *const *) a;
  const RunnelTensor *t = *(const RunnelTensor *const *) b;

  return s->offset < t->offset ? -1 : s->offset > t->offset;
}

/* Makes offsets those of the file; all data must lie inside it, apart. */
static gboolean
place_tensors (Reader *self)
{
  RunnelGguf *gguf = self->gguf;
  gsize data, size = self->end - self->start;
  guint n = gguf->tensors->len;
  g_autofree RunnelTensor **order = g_new (RunnelTensor *, n);

  if (n == 0)
    return TRUE;
  data = runnel_gguf_data_offset (gguf);
  for (guint i = 0; i < n; i++) {
    RunnelTensor *tensor = &g_array_index (gguf->tensors, RunnelTensor, i);

    order[i] = tensor;
    if (data > size || tensor->offset + tensor->bytes > size - data)
      return fail_truncated (self, "the data", tensor->name);
    tensor->offset += data;
  }
  qsort (order, n, sizeof *order, compare_offsets);
  for (guint i = 1; i < n; i++)
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->bytes)
      return fail (self, RUNNEL_ERROR_MALFORMED,
          "the data of tensors '%s' and '%s' overlap", order[i - 1]->name,
          order[i]->name);
  return TRUE;
}

/* --- the file --- */

static gboolean
take_magic (Reader *self)
{
  gsize left = self->end - self->at;
  const guint8 *magic;

  if (memcmp (self->at, "GGUF", MIN (left, 4)) == 0) {
    if (!take (self, 4, "the magic bytes", NULL, &magic) ||
        !take_u32 (self, "the version", NULL, &self->gguf->version))
      return FALSE;
  } else if (left >= 4 && memcmp (self->at, "FUGG", 4) == 0) {
    return fail (self, RUNNEL_ERROR_UNSUPPORTED,
        "is a big-endian GGUF file; convert it to little-endian");
  } else {
    return fail (self, RUNNEL_ERROR_MALFORMED,
        "is not a GGUF file (it does not begin with \"GGUF\")");
  }
  if (self->gguf->version == 2 || self->gguf->version == 3)
    return TRUE;
  if (self->gguf->version != 0 && (self->gguf->version & 0xffffff) == 0)
    return fail (self, RUNNEL_ERROR_UNSUPPORTED,
        "is a big-endian GGUF file (version 0x%08x); convert it to "
        "little-endian", self->gguf->version);
  return fail (self, RUNNEL_ERROR_UNSUPPORTED,
      "GGUF version %u is not supported (2 and 3 are)", self->gguf->version);
}

static gboolean
take_count (Reader *self, const char *what, guint64 *ret)
{
  if (!take_u64 (self, what, NULL, ret))
    return FALSE;
  if (*ret > MAX_ENTRIES)
    return fail (self, RUNNEL_ERROR_LIMIT, "%s is %" G_GUINT64_FORMAT
        "; the limit is %" G_GUINT64_FORMAT, what, *ret, MAX_ENTRIES);
  return TRUE;
}

static gboolean
take_header (Reader *self)
{
  RunnelGguf *gguf = self->gguf;
  guint64 n_tensors, n_keys, alignment;

  if (!take_magic (self) ||
      !take_count (self, "the number of tensors", &n_tensors) ||
      !take_count (self, "the number of keys", &n_keys))
    return FALSE;
  if (n_keys * MIN_KEY_BYTES + n_tensors * MIN_TENSOR_BYTES >
      (gsize) (self->end - self->at))
    return fail (self, RUNNEL_ERROR_TRUNCATED,
        "truncated at byte %" G_GSIZE_FORMAT ": %" G_GUINT64_FORMAT
        " keys and %" G_GUINT64_FORMAT " tensors do not fit into it",
        (gsize) (self->end - self->start), n_keys, n_tensors);
  for (guint64 i = 0; i < n_keys; i++)
    if (!take_entry (self))
      return FALSE;
  if (!runnel_gguf_get_uint_or (gguf, "general.alignment", 8, MAX_ALIGNMENT,
          DEFAULT_ALIGNMENT, &alignment, self->error))
    return FALSE;
  if ((alignment & (alignment - 1)) != 0)
    return fail (self, RUNNEL_ERROR_MALFORMED, "key 'general.alignment': %"
        G_GUINT64_FORMAT " is not a power of two", alignment);
  gguf->alignment = alignment;
  for (guint64 i = 0; i < n_tensors; i++)
    if (!take_tensor (self))
      return FALSE;
  gguf->header_size = self->at - self->start;
  return place_tensors (self);
}

RunnelGguf *
runnel_gguf_new (RunnelMapping *mapping, GError **error)
{
  g_autoptr (RunnelGguf) self = g_new0 (RunnelGguf, 1);
  const guint8 *data = runnel_mapping_data (mapping);
  Reader reader = { self, runnel_mapping_name (mapping), data, data,
    data + runnel_mapping_size (mapping), error };

  self->mapping = runnel_mapping_ref (mapping);
  self->names = g_string_chunk_new (4096);
  self->entries = g_array_new (FALSE, FALSE, sizeof (RunnelGgufEntry));
  self->by_key = g_hash_table_new (g_str_hash, g_str_equal);
  self->tensors = g_array_new (FALSE, FALSE, sizeof (RunnelTensor));
  self->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  return take_header (&reader) ? g_steal_pointer (&self) : NULL;
}

RunnelGguf *
runnel_gguf_open (const char *path, RunnelLoadMode mode, GError **error)
{
  g_autoptr (RunnelMapping) mapping =
      runnel_mapping_open (path, mode, error);

  return mapping != NULL ? runnel_gguf_new (mapping, error) : NULL;
}

void
runnel_gguf_free (RunnelGguf *self)
{
  g_hash_table_unref (self->by_name);
  g_array_unref (self->tensors);
  g_hash_table_unref (self->by_key);
  g_array_unref (self->entries);
  g_string_chunk_free (self->names);
  runnel_mapping_unref (self->mapping);
  g_free (self);
}

const char *
runnel_gguf_name (const RunnelGguf *self)
{
  return runnel_mapping_name (self->mapping);
}

guint
runnel_gguf_version (const RunnelGguf *self)
{
  return self->version;
}

gsize
runnel_gguf_header_size (const RunnelGguf *self)
{
  return self->header_size;
}

gsize
runnel_gguf_data_offset (const RunnelGguf *self)
{
  return (self->header_size + self->alignment - 1) / self->alignment
      * self->alignment;
}

RunnelMapping *
runnel_gguf_mapping (const RunnelGguf *self)
{
  return self->mapping;
}

gsize
runnel_gguf_n_tensors (const RunnelGguf *self)
{
  return self->tensors->len;
}

const RunnelTensor *
runnel_gguf_tensor (const RunnelGguf *self, gsize i)
{
  g_return_val_if_fail (i < self->tensors->len, NULL);
  return &g_array_index (self->tensors, RunnelTensor, i);
}

const RunnelTensor *
runnel_gguf_find_tensor (const RunnelGguf *self, const char *name)
{
  gsize found = GPOINTER_TO_SIZE (g_hash_table_lookup (self->by_name, name));

  return found > 0 ? runnel_gguf_tensor (self, found - 1) : NULL;
}
