/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <glib/gstdio.h>

#include "../error.h"

struct _RunnelMapping {
  gatomicrefcount ref_count;
  char *name;
  const guint8 *data;
  gsize size;
  GBytes *bytes;   /* whose bytes they are; NULL when they are our pages */
  int fd;          /* of a mapped file: it holds the lock; or −1 */
  gboolean is_shared;

  RunnelMappingFill fill;   /* NULL: they are there from the start */
  gpointer user_data;
  GDestroyNotify destroy;
  gboolean again;
  GMutex mutex;             /* guards the making and the giving back */
  gint filled;              /* atomic; set with the mutex */
};

GType
runnel_load_mode_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_LOAD_MODE_MAP, "RUNNEL_LOAD_MODE_MAP", "map" },
    { RUNNEL_LOAD_MODE_READ, "RUNNEL_LOAD_MODE_READ", "read" },
    { RUNNEL_LOAD_MODE_AUTO, "RUNNEL_LOAD_MODE_AUTO", "auto" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
        g_enum_register_static ("RunnelLoadMode", values));
  return type;
}

static gboolean
read_whole (int fd, guint8 *into, gsize size, const char *path,
    GError **error)
{
  gsize done = 0;

  while (done < size) {
    gssize n = read (fd, into + done, MIN (size - done, (gsize) 1 << 30));

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
          "%s: cannot be read: %s", path, g_strerror (errno));
      return FALSE;
    }
    if (n == 0) {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_TRUNCATED,
          "%s: truncated at byte %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT
          " while it was read", path, done, size);
      return FALSE;
    }
    done += n;
  }
  return TRUE;
}

/* The pages of an open file, or NULL. Read pages are anonymous memory of our
 * own and not from malloc, so that parts of them can be given back. */
static const guint8 *
take_pages (int fd, gsize size, RunnelLoadMode mode, const char *path,
    GError **error)
{
  gboolean map = mode != RUNNEL_LOAD_MODE_READ;
  void *pages = mmap (NULL, size, map ? PROT_READ : PROT_READ | PROT_WRITE,
      map ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS, map ? fd : -1, 0);

  if (pages == MAP_FAILED) {
    g_set_error (error, RUNNEL_ERROR,
        errno == ENOMEM ? RUNNEL_ERROR_NOT_ENOUGH_MEMORY : RUNNEL_ERROR_IO,
        "%s: cannot be %s (%" G_GSIZE_FORMAT " bytes): %s", path,
        map ? "mapped" : "read", size, g_strerror (errno));
    return NULL;
  }
  if (!map) {
#ifdef MADV_HUGEPAGE
    madvise (pages, size, MADV_HUGEPAGE);
#endif
    if (!read_whole (fd, pages, size, path, error)) {
      munmap (pages, size);
      return NULL;
    }
    mprotect (pages, size, PROT_READ);
  }
  return pages;
}

static RunnelMapping *
mapping_new (const guint8 *data, gsize size, GBytes *bytes, const char *name)
{
  RunnelMapping *self = g_new0 (RunnelMapping, 1);

  g_atomic_ref_count_init (&self->ref_count);
  self->name = g_strdup (name);
  self->data = data;
  self->size = size;
  self->bytes = bytes;
  self->fd = -1;
  return self;
}

/* Processes that map a file know of one another by an advisory lock on it,
 * shared and held as long as the mapping: who cannot have it alone for a
 * moment is not alone. File systems without locks have no sharing to tell. */
static void
hold (RunnelMapping *self, int fd)
{
  self->is_shared = flock (fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
  flock (fd, LOCK_SH | LOCK_NB);
  self->fd = fd;
}

/* @limit: bytes; a larger file is an error. */
static RunnelMapping *
open_limited (const char *path, RunnelLoadMode mode, gsize limit,
    GError **error)
{
  RunnelMapping *self = NULL;
  struct stat info;
  int fd = g_open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);

  if (fd < 0 || fstat (fd, &info) < 0) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "%s: cannot be opened: %s", path, g_strerror (errno));
  } else if (!S_ISREG (info.st_mode)) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "%s: is not a regular file", path);
  } else if ((guint64) info.st_size > limit) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
        "%s: has %" G_GUINT64_FORMAT " bytes; the limit is %" G_GSIZE_FORMAT,
        path, (guint64) info.st_size, limit);
  } else if (info.st_size == 0) {
    self = runnel_mapping_new_from_bytes (NULL, path);
  } else {
    const guint8 *pages = take_pages (fd, info.st_size, mode, path, error);

    if (pages != NULL)
      self = mapping_new (pages, info.st_size, NULL, path);
    if (self != NULL && mode != RUNNEL_LOAD_MODE_READ)
      hold (self, g_steal_fd (&fd));
  }
  if (fd >= 0)
    close (fd);
  return self;
}

RunnelMapping *
runnel_mapping_open (const char *path, RunnelLoadMode mode, GError **error)
{
  return open_limited (path, mode, G_MAXSSIZE, error);
}

RunnelMapping *
runnel_mapping_read (const char *path, gsize limit, GError **error)
{
  return open_limited (path, RUNNEL_LOAD_MODE_READ, limit, error);
}

RunnelMapping *
runnel_mapping_new_from_bytes (GBytes *bytes, const char *name)
{
  GBytes *held = bytes != NULL ? g_bytes_ref (bytes) : g_bytes_new (NULL, 0);
  gsize size;
  const guint8 *data = g_bytes_get_data (held, &size);

  /* Readers do arithmetic on the start, also when there is nothing there. */
  return mapping_new (data != NULL ? data : (const guint8 *) "", size, held,
      name);
}

RunnelMapping *
runnel_mapping_new_filled (gsize size, const char *name,
    RunnelMappingFill fill, gpointer user_data, GDestroyNotify destroy,
    gboolean again, GError **error)
{
  RunnelMapping *self;
  void *pages;

  g_return_val_if_fail (size > 0 && fill != NULL, NULL);
  pages = mmap (NULL, size, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
        "%s: no address space for %" G_GSIZE_FORMAT " bytes: %s", name, size,
        g_strerror (errno));
    if (destroy != NULL)
      destroy (user_data);
    return NULL;
  }
#ifdef MADV_HUGEPAGE
  madvise (pages, size, MADV_HUGEPAGE);
#endif
  self = mapping_new (pages, size, NULL, name);
  self->fill = fill;
  self->user_data = user_data;
  self->destroy = destroy;
  self->again = again;
  g_mutex_init (&self->mutex);
  return self;
}

RunnelMapping *
runnel_mapping_ref (RunnelMapping *self)
{
  g_atomic_ref_count_inc (&self->ref_count);
  return self;
}

void
runnel_mapping_unref (RunnelMapping *self)
{
  if (!g_atomic_ref_count_dec (&self->ref_count))
    return;
  if (self->bytes != NULL)
    g_bytes_unref (self->bytes);
  else
    munmap ((void *) self->data, self->size);
  if (self->fd >= 0)
    close (self->fd);
  if (self->fill != NULL)
    g_mutex_clear (&self->mutex);
  if (self->destroy != NULL)
    self->destroy (self->user_data);
  g_free (self->name);
  g_free (self);
}

static void
make_bytes (RunnelMapping *self)
{
  g_mutex_lock (&self->mutex);
  if (!g_atomic_int_get (&self->filled)) {
    self->fill ((guint8 *) self->data, self->user_data);
    g_atomic_int_set (&self->filled, TRUE);
  }
  g_mutex_unlock (&self->mutex);
}

const guint8 *
runnel_mapping_data (const RunnelMapping *self)
{
  if (self->fill != NULL && !g_atomic_int_get (&self->filled))
    make_bytes ((RunnelMapping *) self);
  return self->data;
}

gsize
runnel_mapping_size (const RunnelMapping *self)
{
  return self->size;
}

const char *
runnel_mapping_name (const RunnelMapping *self)
{
  return self->name;
}

gboolean
runnel_mapping_is_shared (const RunnelMapping *self)
{
  return self->is_shared;
}

gboolean
runnel_mapping_is_file (const RunnelMapping *self)
{
  return self->fd >= 0;
}

static void
forget_bytes (RunnelMapping *self)
{
  g_mutex_lock (&self->mutex);
  if (g_atomic_ref_count_compare (&self->ref_count, 1)) {
    madvise ((void *) self->data, self->size, MADV_DONTNEED);
    g_atomic_int_set (&self->filled, FALSE);
  }
  g_mutex_unlock (&self->mutex);
}

void
runnel_mapping_release (RunnelMapping *self, gsize offset, gsize length)
{
  gsize page = sysconf (_SC_PAGESIZE);
  gsize begin, end;

  g_return_if_fail (offset <= self->size && length <= self->size - offset);
  if (self->fill != NULL && self->again && length == self->size)
    forget_bytes (self);
  if (self->bytes != NULL || self->fill != NULL)
    return;
  begin = (offset + page - 1) / page * page;
  end = offset + length;
  /* Nothing of the file follows its last byte in the last page. */
  if (end != self->size)
    end = end / page * page;
  if (begin < end)
    madvise ((void *) (self->data + begin), end - begin, MADV_DONTNEED);
}
