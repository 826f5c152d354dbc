/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tensor-file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <glib/gstdio.h>

#include "../error-private.h"

#define PART ((gsize) 1 << 20)   /* bytes hashed at once */

struct _RunnelTensorFile {
  RunnelMapping *mapping;
  int fd;              /* -1: the mapping's own bytes */
  struct stat info;
};

static gboolean
set_changed (RunnelTensorFile *self, GError **error)
{
  runnel_set_error_about (error, RUNNEL_ERROR_IO,
      runnel_mapping_name (self->mapping),
      "was changed while it was read; try again when nobody writes to it");
  return FALSE;
}

RunnelTensorFile *
runnel_tensor_file_new_in_memory (RunnelMapping *mapping)
{
  RunnelTensorFile *self = g_new0 (RunnelTensorFile, 1);

  self->mapping = runnel_mapping_ref (mapping);
  self->fd = -1;
  return self;
}

RunnelTensorFile *
runnel_tensor_file_new (RunnelMapping *mapping, GError **error)
{
  g_autoptr (RunnelTensorFile) self
      = runnel_tensor_file_new_in_memory (mapping);
  const char *path = runnel_mapping_name (mapping);

  if (!runnel_mapping_is_file (mapping))
    return g_steal_pointer (&self);
  self->fd = g_open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (self->fd < 0 || fstat (self->fd, &self->info) < 0) {
    runnel_set_error_about (error, RUNNEL_ERROR_IO, path,
        "cannot be opened: %s", g_strerror (errno));
    return NULL;
  }
  if ((guint64) self->info.st_size != runnel_mapping_size (mapping)) {
    set_changed (self, error);
    return NULL;
  }
  return g_steal_pointer (&self);
}

void
runnel_tensor_file_free (RunnelTensorFile *self)
{
  if (self->fd >= 0)
    close (self->fd);
  runnel_mapping_unref (self->mapping);
  g_free (self);
}

gsize
runnel_tensor_file_size (const RunnelTensorFile *self)
{
  return runnel_mapping_size (self->mapping);
}

gboolean
runnel_tensor_file_read (RunnelTensorFile *self, gsize offset, guint8 *data,
    gsize size, GError **error)
{
  if (self->fd < 0) {
    memcpy (data, runnel_mapping_data (self->mapping) + offset, size);
    return TRUE;
  }
  while (size > 0) {
    gssize n = pread (self->fd, data, MIN (size, (gsize) 1 << 30),
        (off_t) offset);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      runnel_set_error_about (error,
          n < 0 ? RUNNEL_ERROR_IO : RUNNEL_ERROR_TRUNCATED,
          runnel_mapping_name (self->mapping), "cannot be read at byte %"
          G_GSIZE_FORMAT ": %s", offset,
          n < 0 ? g_strerror (errno) : "the file ends there");
      return FALSE;
    }
    data += n;
    offset += n;
    size -= n;
  }
  return TRUE;
}

gboolean
runnel_tensor_file_hash (RunnelTensorFile *self, gsize offset, gsize size,
    GChecksum *hash, GCancellable *cancellable, GError **error)
{
  g_autofree guint8 *buffer = g_malloc (MIN (PART, size));

  while (size > 0) {
    gsize n = MIN (PART, size);

    if (g_cancellable_is_cancelled (cancellable)) {
      runnel_set_error_about (error, RUNNEL_ERROR_CANCELLED,
          runnel_mapping_name (self->mapping), "reading was cancelled");
      return FALSE;
    }
    if (!runnel_tensor_file_read (self, offset, buffer, n, error))
      return FALSE;
    g_checksum_update (hash, buffer, n);
    offset += n;
    size -= n;
  }
  return TRUE;
}

gboolean
runnel_tensor_file_is_unchanged (RunnelTensorFile *self, GError **error)
{
  struct stat now;

  if (self->fd < 0)
    return TRUE;
  if (fstat (self->fd, &now) == 0 && now.st_size == self->info.st_size &&
      now.st_mtim.tv_sec == self->info.st_mtim.tv_sec &&
      now.st_mtim.tv_nsec == self->info.st_mtim.tv_nsec)
    return TRUE;
  return set_changed (self, error);
}
