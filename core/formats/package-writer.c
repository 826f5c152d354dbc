/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "package-writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <glib/gstdio.h>

#include "../error-private.h"

#define DIGEST RUNNEL_PACKAGE_DIGEST_BYTES

struct _RunnelPackageWriter {
  char *path, *temporary;
  int fd;
  RunnelGgufWriter *metadata;
  RunnelTensor *tensors;      /* offsets from the data section's start */
  guint n_tensors;
  gsize data;                 /* where that section begins */

  guint current;              /* the tensor being written */
  gsize written;              /* bytes of it */
  GChecksum *hash;            /* of these */

  /* By tensor */
  guint8 *digests;
  guint32 *source_types;
  guint8 *lossless;
  float *errors;
};

static gsize
round_up (gsize n, gsize alignment)
{
  return (n + alignment - 1) / alignment * alignment;
}

static gboolean
fail_writing (RunnelPackageWriter *self, int failure, GError **error)
{
  runnel_set_error_about (error, RUNNEL_ERROR_IO, self->path,
      "cannot be written: %s%s", g_strerror (failure),
      failure == ENOSPC ? "; make room, or name another place" : "");
  return FALSE;
}

/* ---- The header ------------------------------------------------------ */

RunnelGgufWriter *
runnel_package_writer_make_metadata (void)
{
  RunnelGgufWriter *metadata = runnel_gguf_writer_new ();
  char digits[2 * DIGEST];

  memset (digits, '0', sizeof digits);
  runnel_gguf_writer_add_string (metadata, RUNNEL_PACKAGE_SHA256, digits,
      sizeof digits);
  runnel_gguf_writer_add_uint32 (metadata, RUNNEL_PACKAGE_KEY_VERSION,
      RUNNEL_PACKAGE_VERSION);
  runnel_gguf_writer_add_uint32 (metadata, "general.alignment",
      RUNNEL_PACKAGE_ALIGNMENT);
  return metadata;
}

/* Bytes of a key with an array of @n elements. */
static gsize
array_bytes (const char *key, gsize element, gsize n)
{
  return 8 + strlen (key) + 4 + 4 + 8 + element * n;
}

/* Bytes of what write_record () adds. */
static gsize
record_bytes (gsize n)
{
  return array_bytes (RUNNEL_PACKAGE_TENSOR_SHA256, DIGEST, n)
      + array_bytes (RUNNEL_PACKAGE_SOURCE_TYPE, 4, n)
      + array_bytes (RUNNEL_PACKAGE_LOSSLESS, 1, n)
      + array_bytes (RUNNEL_PACKAGE_ERROR, 4, n);
}

static void
write_record (RunnelPackageWriter *self)
{
  guint n = self->n_tensors;

  runnel_gguf_writer_add_uint8s (self->metadata, RUNNEL_PACKAGE_TENSOR_SHA256,
      self->digests, (gsize) DIGEST * n);
  runnel_gguf_writer_add_uint32s (self->metadata, RUNNEL_PACKAGE_SOURCE_TYPE,
      self->source_types, n);
  runnel_gguf_writer_add_booleans (self->metadata, RUNNEL_PACKAGE_LOSSLESS,
      self->lossless, n);
  runnel_gguf_writer_add_float32s (self->metadata, RUNNEL_PACKAGE_ERROR,
      self->errors, n);
}

/* Where the digits of the file's own digest lie: it is the first key. */
static gsize
find_digits (void)
{
  return 4 + 4 + 8 + 8 + 8 + strlen (RUNNEL_PACKAGE_SHA256) + 4 + 8;
}

/* Puts the digest of the header, as long as its digits are zeros, there. */
static void
seal (GByteArray *header)
{
  g_autofree char *digest = g_compute_checksum_for_data (G_CHECKSUM_SHA256,
      header->data, header->len);

  memcpy (header->data + find_digits (), digest, 2 * DIGEST);
}

static GByteArray *
make_header (RunnelPackageWriter *self)
{
  g_autoptr (GByteArray) bare = NULL;
  g_autofree guint8 *zeros = NULL;
  GByteArray *header;
  gsize filler;

  write_record (self);
  bare = runnel_gguf_writer_make_header (self->metadata, self->tensors,
      self->n_tensors);
  filler = self->data - bare->len - array_bytes (RUNNEL_PACKAGE_FILLER, 0, 0);
  zeros = g_malloc0 (filler);
  runnel_gguf_writer_add_uint8s (self->metadata, RUNNEL_PACKAGE_FILLER, zeros,
      filler);
  header = runnel_gguf_writer_make_header (self->metadata, self->tensors,
      self->n_tensors);
  g_assert (header->len == self->data);
  seal (header);
  return header;
}

/* ---- The file -------------------------------------------------------- */

RunnelPackageWriter *
runnel_package_writer_new (const char *path, RunnelGgufWriter *metadata,
    const RunnelTensor *tensors, guint n_tensors, GError **error)
{
  g_autoptr (RunnelPackageWriter) self = g_new0 (RunnelPackageWriter, 1);
  g_autoptr (GByteArray) header = NULL;

  self->path = g_strdup (path);
  self->metadata = metadata;
  self->tensors = g_memdup2 (tensors, n_tensors * sizeof *tensors);
  self->n_tensors = n_tensors;
  self->hash = g_checksum_new (G_CHECKSUM_SHA256);
  self->digests = g_new0 (guint8, DIGEST * n_tensors);
  self->source_types = g_new0 (guint32, n_tensors);
  self->lossless = g_new0 (guint8, n_tensors);
  self->errors = g_new0 (float, n_tensors);
  header = runnel_gguf_writer_make_header (metadata, tensors, n_tensors);
  self->data = round_up (header->len + record_bytes (n_tensors)
      + array_bytes (RUNNEL_PACKAGE_FILLER, 1, 0),
      RUNNEL_PACKAGE_DATA_ALIGNMENT);
  self->temporary = g_strconcat (path, ".XXXXXX", NULL);
  self->fd = g_mkstemp_full (self->temporary, O_RDWR | O_CLOEXEC, 0644);
  if (self->fd < 0) {
    fail_writing (self, errno, error);
    return NULL;
  }
  return g_steal_pointer (&self);
}

void
runnel_package_writer_free (RunnelPackageWriter *self)
{
  if (self->fd >= 0) {
    close (self->fd);
    g_unlink (self->temporary);
  }
  runnel_gguf_writer_free (self->metadata);
  g_checksum_free (self->hash);
  g_free (self->digests);
  g_free (self->source_types);
  g_free (self->lossless);
  g_free (self->errors);
  g_free (self->tensors);
  g_free (self->temporary);
  g_free (self->path);
  g_free (self);
}

static gboolean
write_at (RunnelPackageWriter *self, gsize at, const guint8 *data, gsize size,
    GError **error)
{
  while (size > 0) {
    gssize n = pwrite (self->fd, data, MIN (size, (gsize) 1 << 30),
        (off_t) at);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return fail_writing (self, n < 0 ? errno : EIO, error);
    data += n;
    at += n;
    size -= n;
  }
  return TRUE;
}

void
runnel_package_writer_begin (RunnelPackageWriter *self, RunnelTensorType type)
{
  RunnelTensor *tensor = &self->tensors[self->current];

  g_assert (self->current < self->n_tensors);
  tensor->type = type;
  tensor->offset = 0;
  if (self->current > 0)
    tensor->offset = round_up (tensor[-1].offset + tensor[-1].bytes,
        RUNNEL_PACKAGE_ALIGNMENT);
  self->written = 0;
  g_checksum_reset (self->hash);
}

gboolean
runnel_package_writer_write (RunnelPackageWriter *self, const guint8 *data,
    gsize size, GError **error)
{
  const RunnelTensor *tensor = &self->tensors[self->current];

  if (!write_at (self, self->data + tensor->offset + self->written, data,
          size, error))
    return FALSE;
  g_checksum_update (self->hash, data, size);
  self->written += size;
  return TRUE;
}

gboolean
runnel_package_writer_read_back (RunnelPackageWriter *self, gsize offset,
    guint8 *data, gsize size, GError **error)
{
  gsize at = self->data + self->tensors[self->current].offset + offset;

  while (size > 0) {
    gssize n = pread (self->fd, data, size, (off_t) at);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      runnel_set_error_about (error, RUNNEL_ERROR_IO, self->path,
          "cannot be read back: %s", g_strerror (n < 0 ? errno : EIO));
      return FALSE;
    }
    data += n;
    at += n;
    size -= n;
  }
  return TRUE;
}

gboolean
runnel_package_writer_end (RunnelPackageWriter *self,
    const RunnelPackageRecord *record, GError **error)
{
  static const guint8 zeros[RUNNEL_PACKAGE_ALIGNMENT];
  RunnelTensor *tensor = &self->tensors[self->current];
  gsize end = tensor->offset + self->written, size = DIGEST;

  tensor->bytes = self->written;
  g_checksum_get_digest (self->hash, self->digests + DIGEST * self->current,
      &size);
  self->source_types[self->current] = record->source_type;
  self->lossless[self->current] = record->lossless != FALSE;
  self->errors[self->current] = record->error;
  self->current++;
  return write_at (self, self->data + end, zeros,
      round_up (end, RUNNEL_PACKAGE_ALIGNMENT) - end, error);
}

gboolean
runnel_package_writer_finish (RunnelPackageWriter *self, gsize *ret_size,
    GError **error)
{
  const RunnelTensor *last = &self->tensors[self->n_tensors - 1];
  g_autoptr (GByteArray) header = NULL;
  int fd = self->fd;

  g_assert (self->current == self->n_tensors);
  header = make_header (self);
  if (!write_at (self, 0, header->data, header->len, error))
    return FALSE;
  if (fsync (fd) != 0 || g_rename (self->temporary, self->path) != 0)
    return fail_writing (self, errno, error);
  self->fd = -1;
  close (fd);
  *ret_size = self->data + round_up (last->offset + last->bytes,
      RUNNEL_PACKAGE_ALIGNMENT);
  return TRUE;
}
