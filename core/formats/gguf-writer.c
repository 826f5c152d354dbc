/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <glib/gstdio.h>

#include "../error.h"

#define ALIGNMENT 32

typedef struct {
  char *name;
  RunnelTensorType type;
  guint n_dims;
  guint64 dims[RUNNEL_TENSOR_MAX_DIMS];
  gsize bytes;
  GBytes *data;       /* NULL: what produce gives */
  RunnelGgufProduce produce;
  gpointer user_data;
} Tensor;

struct _RunnelGgufWriter {
  GByteArray *entries;
  guint64 n_entries;
  GArray *tensors;    /* Tensor */
};

static void
clear_tensor (void *data)
{
  Tensor *tensor = data;

  g_free (tensor->name);
  g_clear_pointer (&tensor->data, g_bytes_unref);
}

RunnelGgufWriter *
runnel_gguf_writer_new (void)
{
  RunnelGgufWriter *self = g_new0 (RunnelGgufWriter, 1);

  self->entries = g_byte_array_new ();
  self->tensors = g_array_new (FALSE, FALSE, sizeof (Tensor));
  g_array_set_clear_func (self->tensors, clear_tensor);
  return self;
}

void
runnel_gguf_writer_free (RunnelGgufWriter *self)
{
  g_byte_array_unref (self->entries);
  g_array_unref (self->tensors);
  g_free (self);
}

static void
append_u32 (GByteArray *out, guint32 value)
{
  value = GUINT32_TO_LE (value);
  g_byte_array_append (out, (const guint8 *) &value, sizeof value);
}

static void
append_u64 (GByteArray *out, guint64 value)
{
  value = GUINT64_TO_LE (value);
  g_byte_array_append (out, (const guint8 *) &value, sizeof value);
}

static void
append_string (GByteArray *out, const char *text, gsize length)
{
  append_u64 (out, length);
  g_byte_array_append (out, (const guint8 *) text, length);
}

static void
begin_entry (RunnelGgufWriter *self, const char *key, RunnelGgufType type)
{
  append_string (self->entries, key, strlen (key));
  append_u32 (self->entries, type);
  self->n_entries++;
}

static void
begin_array (RunnelGgufWriter *self, const char *key, RunnelGgufType element,
    gsize n)
{
  begin_entry (self, key, RUNNEL_GGUF_ARRAY);
  append_u32 (self->entries, element);
  append_u64 (self->entries, n);
}

void
runnel_gguf_writer_add_uint32 (RunnelGgufWriter *self, const char *key,
    guint32 v)
{
  begin_entry (self, key, RUNNEL_GGUF_UINT32);
  append_u32 (self->entries, v);
}

void
runnel_gguf_writer_add_float32 (RunnelGgufWriter *self, const char *key,
    float v)
{
  guint32 bits;

  memcpy (&bits, &v, sizeof bits);
  begin_entry (self, key, RUNNEL_GGUF_FLOAT32);
  append_u32 (self->entries, bits);
}

void
runnel_gguf_writer_add_float64 (RunnelGgufWriter *self, const char *key,
    double v)
{
  guint64 bits;

  memcpy (&bits, &v, sizeof bits);
  begin_entry (self, key, RUNNEL_GGUF_FLOAT64);
  append_u64 (self->entries, bits);
}

void
runnel_gguf_writer_add_boolean (RunnelGgufWriter *self, const char *key,
    gboolean v)
{
  guint8 byte = v != FALSE;

  begin_entry (self, key, RUNNEL_GGUF_BOOL);
  g_byte_array_append (self->entries, &byte, 1);
}

void
runnel_gguf_writer_add_string (RunnelGgufWriter *self, const char *key,
    const char *text, gssize length)
{
  begin_entry (self, key, RUNNEL_GGUF_STRING);
  append_string (self->entries, text,
      length < 0 ? strlen (text) : (gsize) length);
}

void
runnel_gguf_writer_add_strings (RunnelGgufWriter *self, const char *key,
    const char *const *texts, const gsize *lengths, gsize n)
{
  begin_array (self, key, RUNNEL_GGUF_STRING, n);
  for (gsize i = 0; i < n; i++)
    append_string (self->entries, texts[i],
        lengths != NULL ? lengths[i] : strlen (texts[i]));
}

void
runnel_gguf_writer_add_int32s (RunnelGgufWriter *self, const char *key,
    const gint32 *values, gsize n)
{
  begin_array (self, key, RUNNEL_GGUF_INT32, n);
  for (gsize i = 0; i < n; i++)
    append_u32 (self->entries, (guint32) values[i]);
}

void
runnel_gguf_writer_add_uint8s (RunnelGgufWriter *self, const char *key,
    const guint8 *values, gsize n)
{
  begin_array (self, key, RUNNEL_GGUF_UINT8, n);
  g_byte_array_append (self->entries, values, n);
}

void
runnel_gguf_writer_add_uint16s (RunnelGgufWriter *self, const char *key,
    const guint16 *values, gsize n)
{
  begin_array (self, key, RUNNEL_GGUF_UINT16, n);
  for (gsize i = 0; i < n; i++) {
    guint16 value = GUINT16_TO_LE (values[i]);

    g_byte_array_append (self->entries, (const guint8 *) &value, 2);
  }
}

void
runnel_gguf_writer_add_uint32s (RunnelGgufWriter *self, const char *key,
    const guint32 *values, gsize n)
{
  begin_array (self, key, RUNNEL_GGUF_UINT32, n);
  for (gsize i = 0; i < n; i++)
    append_u32 (self->entries, values[i]);
}

void
runnel_gguf_writer_add_float32s (RunnelGgufWriter *self, const char *key,
    const float *values, gsize n)
{
  begin_array (self, key, RUNNEL_GGUF_FLOAT32, n);
  for (gsize i = 0; i < n; i++) {
    guint32 bits;

    memcpy (&bits, &values[i], sizeof bits);
    append_u32 (self->entries, bits);
  }
}

void
runnel_gguf_writer_add_booleans (RunnelGgufWriter *self, const char *key,
    const guint8 *values, gsize n)
{
  begin_array (self, key, RUNNEL_GGUF_BOOL, n);
  g_byte_array_append (self->entries, values, n);
}

void
runnel_gguf_writer_add_raw (RunnelGgufWriter *self, const char *key,
    RunnelGgufType type, const guint8 *value, gsize size)
{
  begin_entry (self, key, type);
  g_byte_array_append (self->entries, value, size);
}

void
runnel_gguf_writer_add_tensor (RunnelGgufWriter *self, const char *name,
    RunnelTensorType type, const guint64 *dims, guint n_dims, GBytes *data)
{
  Tensor tensor = { NULL, type, n_dims };

  g_return_if_fail (n_dims >= 1 && n_dims <= RUNNEL_TENSOR_MAX_DIMS);
  memcpy (tensor.dims, dims, n_dims * sizeof *dims);
  tensor.name = g_strdup (name);
  tensor.bytes = g_bytes_get_size (data);
  tensor.data = g_bytes_ref (data);
  g_array_append_val (self->tensors, tensor);
}

void
runnel_gguf_writer_add_produced (RunnelGgufWriter *self, const char *name,
    RunnelTensorType type, const guint64 *dims, guint n_dims, gsize bytes,
    RunnelGgufProduce produce, gpointer user_data)
{
  Tensor tensor = { NULL, type, n_dims };

  g_return_if_fail (n_dims >= 1 && n_dims <= RUNNEL_TENSOR_MAX_DIMS);
  memcpy (tensor.dims, dims, n_dims * sizeof *dims);
  tensor.name = g_strdup (name);
  tensor.bytes = bytes;
  tensor.produce = produce;
  tensor.user_data = user_data;
  g_array_append_val (self->tensors, tensor);
}

static gsize
padding (gsize at)
{
  return (ALIGNMENT - at % ALIGNMENT) % ALIGNMENT;
}

static void
append_start (GByteArray *out, guint64 n_tensors, guint64 n_entries)
{
  g_byte_array_append (out, (const guint8 *) "GGUF", 4);
  append_u32 (out, 3);
  append_u64 (out, n_tensors);
  append_u64 (out, n_entries);
}

static void
append_tensor (GByteArray *out, const char *name, RunnelTensorType type,
    const guint64 *dims, guint n_dims, guint64 offset)
{
  append_string (out, name, strlen (name));
  append_u32 (out, n_dims);
  for (guint d = 0; d < n_dims; d++)
    append_u64 (out, dims[d]);
  append_u32 (out, type);
  append_u64 (out, offset);
}

static GByteArray *
make_header (RunnelGgufWriter *self)
{
  GByteArray *out = g_byte_array_new ();
  static const guint8 zeros[ALIGNMENT];
  guint64 offset = 0;

  append_start (out, self->tensors->len, self->n_entries);
  g_byte_array_append (out, self->entries->data, self->entries->len);
  for (guint i = 0; i < self->tensors->len; i++) {
    const Tensor *tensor = &g_array_index (self->tensors, Tensor, i);

    append_tensor (out, tensor->name, tensor->type, tensor->dims,
        tensor->n_dims, offset);
    offset += tensor->bytes;
    offset += padding (offset);
  }
  if (self->tensors->len > 0)
    g_byte_array_append (out, zeros, padding (out->len));
  return out;
}

GByteArray *
runnel_gguf_writer_make_header (RunnelGgufWriter *self,
    const RunnelTensor *tensors, guint n_tensors)
{
  GByteArray *out = g_byte_array_new ();

  append_start (out, n_tensors, self->n_entries);
  g_byte_array_append (out, self->entries->data, self->entries->len);
  for (guint i = 0; i < n_tensors; i++)
    append_tensor (out, tensors[i].name, tensors[i].type, tensors[i].dims,
        tensors[i].n_dims, tensors[i].offset);
  return out;
}

static gboolean
write_all (int fd, const void *data, gsize size)
{
  const guint8 *at = data;

  while (size > 0) {
    gssize n = write (fd, at, MIN (size, (gsize) 1 << 30));

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return FALSE;
    at += n;
    size -= n;
  }
  return TRUE;
}

/* FALSE with errno, or with @error set when a producer failed. */
static gboolean
write_file (RunnelGgufWriter *self, int fd, GError **error)
{
  g_autoptr (GByteArray) header = make_header (self);
  static const guint8 zeros[ALIGNMENT];

  if (!write_all (fd, header->data, header->len))
    return FALSE;
  for (guint i = 0; i < self->tensors->len; i++) {
    const Tensor *tensor = &g_array_index (self->tensors, Tensor, i);
    g_autoptr (GBytes) data = tensor->data ? g_bytes_ref (tensor->data)
        : tensor->produce (tensor->user_data, error);

    if (data == NULL)
      return FALSE;
    g_assert (g_bytes_get_size (data) == tensor->bytes);
    if (!write_all (fd, g_bytes_get_data (data, NULL), tensor->bytes) ||
        !write_all (fd, zeros, padding (tensor->bytes)))
      return FALSE;
  }
  return fsync (fd) == 0;
}

gboolean
runnel_gguf_writer_save (RunnelGgufWriter *self, const char *path,
    GError **error)
{
  g_autofree char *temporary = g_strconcat (path, ".XXXXXX", NULL);
  g_autoptr (GError) wrong = NULL;
  GStatBuf there;
  int failure = 0;
  int fd;

  /* A rename would put a file in the place of a device. */
  if (g_stat (path, &there) == 0 && !S_ISREG (there.st_mode)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "%s: cannot be written: it is there and no regular file; name another "
        "one", path);
    return FALSE;
  }
  fd = g_mkstemp_full (temporary, O_RDWR | O_CLOEXEC, 0644);
  if (fd < 0) {
    failure = errno;
  } else {
    if (!write_file (self, fd, &wrong))
      failure = wrong != NULL ? ECANCELED : errno;
    if (close (fd) != 0 && failure == 0)
      failure = errno;
    if (failure == 0 && g_rename (temporary, path) != 0)
      failure = errno;
    if (failure != 0)
      g_unlink (temporary);
  }
  if (failure == 0)
    return TRUE;
  if (wrong != NULL)
    g_propagate_error (error, g_steal_pointer (&wrong));
  else
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "%s: cannot be written: %s", path, g_strerror (failure));
  return FALSE;
}
