/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "safetensors.h"

#include <string.h>

#include "../error-private.h"
#include "json.h"

/* The reference implementation's limit. */
#define MAX_HEADER ((guint64) 100 * 1000 * 1000)
#define MAX_SHARDS 1024
#define MAX_AXES 32

typedef struct {
  RunnelMapping *mapping;
  gsize data;               /* where the tensors' data begins */
} Shard;

struct _RunnelSafetensors {
  GArray *shards;           /* Shard */
  GStringChunk *names;
  GArray *tensors;          /* RunnelTensor */
  GHashTable *by_name;      /* name → index + 1 */
  GHashTable *unusable;     /* name → why */
};

static const struct { const char *name; guint bits; int type; } dtypes[] = {
  { "F32", 32, RUNNEL_TENSOR_F32 }, { "F16", 16, RUNNEL_TENSOR_F16 },
  { "BF16", 16, RUNNEL_TENSOR_BF16 },
  { "BOOL", 8, -1 }, { "U8", 8, -1 }, { "I8", 8, -1 }, { "F8_E5M2", 8, -1 },
  { "F8_E4M3", 8, -1 }, { "U16", 16, -1 }, { "I16", 16, -1 },
  { "U32", 32, -1 }, { "I32", 32, -1 }, { "F64", 64, -1 }, { "U64", 64, -1 },
  { "I64", 64, -1 },
};

/* A tensor's place in the data section, for the check of the whole. */
typedef struct {
  const char *name;
  gsize begin, end;
} Span;

typedef struct {
  RunnelSafetensors *self;
  Shard shard;
  const char *name;         /* of the file */
  gsize size;               /* of the data section */
  GArray *spans;            /* Span */
  GError **error;
} Reader;

/* FALSE in sight of the compiler, which then sees what is initialised. */
#define fail(self, code, ...) \
  (runnel_set_error_about ((self)->error, code, (self)->name, __VA_ARGS__), \
      FALSE)

/* --- one tensor --- */

static gboolean
get_size (const RunnelJsonNode *node, gsize *ret)
{
  gint64 value;

  if (node == NULL || !runnel_json_node_int64 (node, &value) || value < 0 ||
      value > G_MAXSSIZE)
    return FALSE;
  *ret = value;
  return TRUE;
}

/* The axes, ours first the file's last, and their product. */
static gboolean
read_shape (Reader *self, const char *name, const RunnelJsonNode *shape,
    RunnelTensor *tensor, gsize *elements)
{
  gsize n, axis;

  if (shape == NULL || runnel_json_node_kind (shape) != RUNNEL_JSON_ARRAY)
    return fail (self, RUNNEL_ERROR_MALFORMED,
        "tensor '%s': 'shape' is no array", name);
  n = runnel_json_node_size (shape);
  if (n > MAX_AXES)
    return fail (self, RUNNEL_ERROR_LIMIT, "tensor '%s' has %" G_GSIZE_FORMAT
        " axes; the limit is %d", name, n, MAX_AXES);
  tensor->n_dims = MAX (n, 1);
  for (guint i = 0; i < RUNNEL_TENSOR_MAX_DIMS; i++)
    tensor->dims[i] = 1;
  *elements = 1;
  for (gsize i = 0; i < n; i++) {
    if (!get_size (runnel_json_node_item (shape, n - 1 - i), &axis))
      return fail (self, RUNNEL_ERROR_MALFORMED, "tensor '%s': axis %"
          G_GSIZE_FORMAT " of 'shape' is no size", name, n - 1 - i);
    if (!g_size_checked_mul (elements, *elements, axis))
      return fail (self, RUNNEL_ERROR_LIMIT,
          "tensor '%s': the number of its elements overflows", name);
    if (i < RUNNEL_TENSOR_MAX_DIMS)
      tensor->dims[i] = axis;
  }
  return TRUE;
}

static gboolean
read_offsets (Reader *self, const char *name, const RunnelJsonNode *offsets,
    Span *span)
{
  if (offsets == NULL || runnel_json_node_kind (offsets) != RUNNEL_JSON_ARRAY ||
      runnel_json_node_size (offsets) != 2 ||
      !get_size (runnel_json_node_item (offsets, 0), &span->begin) ||
      !get_size (runnel_json_node_item (offsets, 1), &span->end) ||
      span->begin > span->end)
    return fail (self, RUNNEL_ERROR_MALFORMED,
        "tensor '%s': 'data_offsets' is no pair of rising sizes", name);
  if (span->end > self->size)
    return fail (self, RUNNEL_ERROR_TRUNCATED,
        "truncated at byte %" G_GSIZE_FORMAT ", in the data of '%s' (%"
        G_GSIZE_FORMAT " to %" G_GSIZE_FORMAT "); copy the file again",
        self->shard.data + self->size, name, self->shard.data + span->begin,
        self->shard.data + span->end);
  return TRUE;
}

/* What keeps a well-formed tensor from use, or NULL. */
static char *
explain_unusable (const RunnelTensor *tensor, const char *dtype, int type,
    gsize elements)
{
  if (type < 0)
    return g_strdup_printf ("is of type %s (F32, F16 and BF16 are supported)",
        dtype);
  if (elements == 0)
    return g_strdup ("is empty");
  if (tensor->n_dims > RUNNEL_TENSOR_MAX_DIMS)
    return g_strdup_printf ("has %u axes (up to %d are supported)",
        tensor->n_dims, RUNNEL_TENSOR_MAX_DIMS);
  if (tensor->offset % runnel_tensor_type_info (type)->block_bytes != 0)
    return g_strdup ("is not aligned to its elements; save the file again "
        "with a current safetensors library");
  return NULL;
}

static gboolean
read_tensor (Reader *self, const char *name, const RunnelJsonNode *node)
{
  RunnelSafetensors *owner = self->self;
  const RunnelJsonNode *dtype;
  RunnelTensor tensor = { g_string_chunk_insert (owner->names, name) };
  Span span = { tensor.name };
  const char *type_name;
  char *reason;
  gsize elements, bits;
  guint i;

  if (g_hash_table_contains (owner->by_name, name) ||
      g_hash_table_contains (owner->unusable, name))
    return fail (self, RUNNEL_ERROR_MALFORMED, "tensor '%s' occurs twice",
        name);
  dtype = runnel_json_node_member (node, "dtype");
  if (dtype == NULL || runnel_json_node_kind (dtype) != RUNNEL_JSON_STRING)
    return fail (self, RUNNEL_ERROR_MALFORMED,
        "tensor '%s': 'dtype' is no string", name);
  type_name = runnel_json_node_string (dtype, NULL);
  if (!read_shape (self, name, runnel_json_node_member (node, "shape"),
          &tensor, &elements) ||
      !read_offsets (self, name, runnel_json_node_member (node, "data_offsets"),
          &span))
    return FALSE;
  g_array_append_val (self->spans, span);
  for (i = 0; i < G_N_ELEMENTS (dtypes); i++)
    if (strcmp (dtypes[i].name, type_name) == 0)
      break;
  if (i < G_N_ELEMENTS (dtypes) &&
      (!g_size_checked_mul (&bits, elements, dtypes[i].bits) ||
          bits / 8 != span.end - span.begin))
    return fail (self, RUNNEL_ERROR_MALFORMED, "tensor '%s': %" G_GSIZE_FORMAT
        " bytes of data for %" G_GSIZE_FORMAT " elements of type %s", name,
        span.end - span.begin, elements, type_name);
  tensor.offset = self->shard.data + span.begin;
  tensor.bytes = span.end - span.begin;
  tensor.mapping = self->shard.mapping;
  tensor.type = i < G_N_ELEMENTS (dtypes) ? MAX (dtypes[i].type, 0) : 0;
  reason = explain_unusable (&tensor, type_name,
      i < G_N_ELEMENTS (dtypes) ? dtypes[i].type : -1, elements);
  if (reason != NULL) {
    g_hash_table_insert (owner->unusable, (char *) tensor.name, reason);
    return TRUE;
  }
  g_array_append_val (owner->tensors, tensor);
  g_hash_table_insert (owner->by_name, (char *) tensor.name,
      GSIZE_TO_POINTER (owner->tensors->len));
  return TRUE;
}

/* --- one file --- */

static int
compare_spans (const void *a, const void *b)
{
  const Span *s = a, *t = b;

  if (s->begin != t->begin)
    return s->begin < t->begin ? -1 : 1;
  return s->end < t->end ? -1 : s->end > t->end;
}

/* The format allows no overlaps and no holes. */
static gboolean
check_spans (Reader *self)
{
  gsize at = 0;

  g_array_sort (self->spans, compare_spans);
  for (guint i = 0; i < self->spans->len; i++) {
    const Span *span = &g_array_index (self->spans, Span, i);

    if (span->begin != at)
      return fail (self, RUNNEL_ERROR_MALFORMED, span->begin < at ?
          "tensor '%s': its data overlap those of another" :
          "tensor '%s': a hole lies before its data", span->name);
    at = span->end;
  }
  if (at != self->size)
    return fail (self, RUNNEL_ERROR_MALFORMED, "the last %" G_GSIZE_FORMAT
        " bytes belong to no tensor", self->size - at);
  return TRUE;
}

static gboolean
read_members (Reader *self, const RunnelJsonNode *root)
{
  for (gsize i = 0; i < runnel_json_node_size (root); i++) {
    gsize length;
    const char *name = runnel_json_node_key (root, i, &length);
    const RunnelJsonNode *node = runnel_json_node_value (root, i);

    if (strcmp (name, "__metadata__") == 0)
      continue;
    if (length == 0 || strlen (name) != length)
      return fail (self, RUNNEL_ERROR_MALFORMED,
          "the name of tensor %" G_GSIZE_FORMAT " is empty or holds a NUL", i);
    if (runnel_json_node_kind (node) != RUNNEL_JSON_OBJECT)
      return fail (self, RUNNEL_ERROR_MALFORMED,
          "tensor '%s' is described by no object", name);
    if (!read_tensor (self, name, node))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_header (Reader *self)
{
  const guint8 *data = runnel_mapping_data (self->shard.mapping);
  gsize size = runnel_mapping_size (self->shard.mapping);
  g_autofree char *label = g_strdup_printf ("%s, header", self->name);
  g_autoptr (RunnelJson) json = NULL;
  guint64 length;

  if (size < 8)
    return fail (self, RUNNEL_ERROR_TRUNCATED,
        "truncated at byte %" G_GSIZE_FORMAT ", in the length of the header",
        size);
  memcpy (&length, data, 8);
  length = GUINT64_FROM_LE (length);
  if (length > MAX_HEADER)
    return fail (self, RUNNEL_ERROR_LIMIT, "the header claims %"
        G_GUINT64_FORMAT " bytes; the limit is %" G_GUINT64_FORMAT
        " (is this a safetensors file?)", length, MAX_HEADER);
  if (length > size - 8)
    return fail (self, RUNNEL_ERROR_TRUNCATED,
        "truncated at byte %" G_GSIZE_FORMAT ", in the header of %"
        G_GUINT64_FORMAT " bytes; copy the file again", size, length);
  self->shard.data = 8 + length;
  self->size = size - self->shard.data;
  if (length == 0 || data[8] != '{')
    return fail (self, RUNNEL_ERROR_MALFORMED,
        "the header does not begin with '{'");
  json = runnel_json_parse ((const char *) data + 8, length, label,
      self->error);
  return json != NULL && read_members (self, runnel_json_root (json)) &&
      check_spans (self);
}

static gboolean
add_shard (RunnelSafetensors *self, RunnelMapping *mapping, GError **error)
{
  Reader reader = { self, { mapping, 0 }, runnel_mapping_name (mapping) };
  gboolean good;

  reader.spans = g_array_new (FALSE, FALSE, sizeof (Span));
  reader.error = error;
  good = read_header (&reader);
  g_array_unref (reader.spans);
  if (good) {
    runnel_mapping_ref (mapping);
    g_array_append_val (self->shards, reader.shard);
  }
  return good;
}

/* --- index and shards --- */

/* Shards lie beside the index; a name that leads elsewhere is an attack. */
static gboolean
shard_name_is_plain (const char *name, gsize length)
{
  return length > 0 && strlen (name) == length && strchr (name, '/') == NULL &&
      strchr (name, '\\') == NULL && strcmp (name, ".") != 0 &&
      strcmp (name, "..") != 0;
}

/* The shard's number + 1 in *@shards, opened at its first mention. */
static gsize
need_shard (RunnelSafetensors *self, const char *index_path, const char *name,
    GHashTable *shards, RunnelLoadMode mode, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (index_path);
  g_autofree char *path = g_build_filename (folder, name, NULL);
  gsize found = GPOINTER_TO_SIZE (g_hash_table_lookup (shards, name));
  g_autoptr (RunnelMapping) mapping = NULL;

  if (found > 0)
    return found;
  if (self->shards->len == MAX_SHARDS) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
        "%s: names more than %d shards", index_path, MAX_SHARDS);
    return 0;
  }
  mapping = runnel_mapping_open (path, mode, error);
  if (mapping == NULL || !add_shard (self, mapping, error))
    return 0;
  g_hash_table_insert (shards, g_strdup (name),
      GSIZE_TO_POINTER (self->shards->len));
  return self->shards->len;
}

static gboolean
add_mapped_weight (RunnelSafetensors *self, const char *index_path,
    const RunnelJsonNode *map, gsize i, GHashTable *shards,
    RunnelLoadMode mode, GError **error)
{
  const char *tensor = runnel_json_node_key (map, i, NULL), *name;
  const RunnelJsonNode *node = runnel_json_node_value (map, i);
  const RunnelTensor *found;
  gsize length, shard;

  if (runnel_json_node_kind (node) != RUNNEL_JSON_STRING) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: tensor '%s' is mapped to no file name", index_path, tensor);
    return FALSE;
  }
  name = runnel_json_node_string (node, &length);
  if (!shard_name_is_plain (name, length)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: tensor '%s' is mapped to '%s'; shards must lie in the folder of "
        "the index", index_path, tensor, name);
    return FALSE;
  }
  shard = need_shard (self, index_path, name, shards, mode, error);
  if (shard == 0)
    return FALSE;
  found = runnel_safetensors_find (self, tensor);
  if (found == NULL ? runnel_safetensors_unusable (self, tensor) != NULL :
      found->mapping ==
      g_array_index (self->shards, Shard, shard - 1).mapping)
    return TRUE;
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH,
      "%s: tensor '%s' is not in shard '%s'", index_path, tensor, name);
  return FALSE;
}

static gboolean
add_index (RunnelSafetensors *self, const char *path, RunnelLoadMode mode,
    GError **error)
{
  g_autoptr (RunnelJson) json = runnel_json_load (path, error);
  g_autoptr (GHashTable) shards =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  const RunnelJsonNode *map;

  if (json == NULL)
    return FALSE;
  map = runnel_json_node_member (runnel_json_root (json), "weight_map");
  if (map == NULL || runnel_json_node_kind (map) != RUNNEL_JSON_OBJECT) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
        "%s: 'weight_map' is missing or no object", path);
    return FALSE;
  }
  for (gsize i = 0; i < runnel_json_node_size (map); i++)
    if (!add_mapped_weight (self, path, map, i, shards, mode, error))
      return FALSE;
  return TRUE;
}

/* --- the object --- */

static RunnelSafetensors *
safetensors_new (void)
{
  RunnelSafetensors *self = g_new0 (RunnelSafetensors, 1);

  self->shards = g_array_new (FALSE, FALSE, sizeof (Shard));
  self->names = g_string_chunk_new (4096);
  self->tensors = g_array_new (FALSE, FALSE, sizeof (RunnelTensor));
  self->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  self->unusable = g_hash_table_new_full (g_str_hash, g_str_equal, NULL,
      g_free);
  return self;
}

RunnelSafetensors *
runnel_safetensors_new (RunnelMapping *mapping, GError **error)
{
  g_autoptr (RunnelSafetensors) self = safetensors_new ();

  return add_shard (self, mapping, error) ? g_steal_pointer (&self) : NULL;
}

static char *
find_in_folder (const char *folder, GError **error)
{
  static const char *const names[] = { "model.safetensors",
    "model.safetensors.index.json" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = g_build_filename (folder, names[i], NULL);

    if (g_file_test (path, G_FILE_TEST_EXISTS))
      return g_steal_pointer (&path);
  }
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
      "%s: holds neither %s nor %s", folder, names[0], names[1]);
  return NULL;
}

RunnelSafetensors *
runnel_safetensors_open (const char *path, RunnelLoadMode mode,
    GError **error)
{
  g_autoptr (RunnelSafetensors) self = safetensors_new ();
  g_autoptr (RunnelMapping) mapping = NULL;
  g_autofree char *file = g_file_test (path, G_FILE_TEST_IS_DIR) ?
      find_in_folder (path, error) : g_strdup (path);

  if (file == NULL)
    return NULL;
  if (g_str_has_suffix (file, ".json"))
    return add_index (self, file, mode, error) ? g_steal_pointer (&self) :
        NULL;
  mapping = runnel_mapping_open (file, mode, error);
  return mapping != NULL ? runnel_safetensors_new (mapping, error) : NULL;
}

void
runnel_safetensors_free (RunnelSafetensors *self)
{
  g_hash_table_unref (self->unusable);
  g_hash_table_unref (self->by_name);
  g_array_unref (self->tensors);
  g_string_chunk_free (self->names);
  for (guint i = 0; i < self->shards->len; i++)
    runnel_mapping_unref (g_array_index (self->shards, Shard, i).mapping);
  g_array_unref (self->shards);
  g_free (self);
}

gsize
runnel_safetensors_n_tensors (const RunnelSafetensors *self)
{
  return self->tensors->len;
}

const RunnelTensor *
runnel_safetensors_tensor (const RunnelSafetensors *self, gsize i)
{
  g_return_val_if_fail (i < self->tensors->len, NULL);
  return &g_array_index (self->tensors, RunnelTensor, i);
}

const RunnelTensor *
runnel_safetensors_find (const RunnelSafetensors *self, const char *name)
{
  gsize found = GPOINTER_TO_SIZE (g_hash_table_lookup (self->by_name, name));

  return found > 0 ? runnel_safetensors_tensor (self, found - 1) : NULL;
}

const char *
runnel_safetensors_unusable (const RunnelSafetensors *self, const char *name)
{
  return g_hash_table_lookup (self->unusable, name);
}

const char *
runnel_safetensors_find_unusable (const RunnelSafetensors *self,
    const char *prefix)
{
  const char *first = NULL;
  GHashTableIter iter;
  void *key;

  g_hash_table_iter_init (&iter, self->unusable);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    if (g_str_has_prefix (key, prefix) &&
        (first == NULL || strcmp (key, first) < 0))
      first = key;
  return first;
}

gsize
runnel_safetensors_n_shards (const RunnelSafetensors *self)
{
  return self->shards->len;
}

const guint8 *
runnel_safetensors_header (const RunnelSafetensors *self, gsize shard,
    gsize *size)
{
  const Shard *found;

  g_return_val_if_fail (shard < self->shards->len, NULL);
  found = &g_array_index (self->shards, Shard, shard);
  *size = found->data;
  return runnel_mapping_data (found->mapping);
}
