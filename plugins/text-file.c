/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "text-file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <runnel.h>

static void
set_unreadable (GError **error, const char *path, int error_number)
{
  g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO, "%s: cannot be read: %s",
               path, g_strerror (error_number));
}

/* The size that stat tells is no promise: files grow, and those of /proc have
 * none. */
static char *
read_limited (int fd, const char *path, gsize limit, gsize *ret_length,
              GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);
  char block[65536];
  gssize n;

  while ((n = read (fd, block, sizeof block)) != 0)
    {
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        {
          set_unreadable (error, path, errno);
          return NULL;
        }
      if ((gsize) n > limit - text->len)
        {
          g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT,
                       "%s: is longer than %" G_GSIZE_FORMAT " bytes, the "
                       "limit for this file", path, limit);
          return NULL;
        }
      g_string_append_len (text, block, n);
    }
  *ret_length = text->len;
  return g_string_free (g_steal_pointer (&text), FALSE);
}

char *
gst_lm_text_file_read (const char *path, gsize limit, gsize *ret_length,
                       GError **error)
{
  struct stat status;
  char *text = NULL;
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

  if (fd < 0 || fstat (fd, &status) < 0)
    set_unreadable (error, path, errno);
  else if (!S_ISREG (status.st_mode))
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
                 "%s: is not a regular file", path);
  else
    text = read_limited (fd, path, limit, ret_length, error);
  if (fd >= 0)
    close (fd);
  return text;
}
