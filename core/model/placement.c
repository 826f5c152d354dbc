/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Sources: the Linux kernel's Documentation/filesystems/proc.rst (meminfo),
 * admin-guide/mm/transhuge.rst and admin-guide/cgroup-v2.rst (memory.max).
 */
#include "placement.h"

#include <string.h>

#include "../backends/system-text.h"

/* A copy may take half of what is there: keys and values come later. */
#define SHARE_OF_MEMORY 2

/* A copy is advised to take huge pages, so madvise is enough. */
static gboolean
has_huge_pages (const char *root)
{
  g_autofree char *text
      = runnel_system_text_read (root,
          "/sys/kernel/mm/transparent_hugepage/enabled");

  return text != NULL && (strstr (text, "[always]") != NULL
      || strstr (text, "[madvise]") != NULL);
}

/* What the cgroup has left; no limit where there is none ("max"). */
static guint64
get_cgroup_room (const char *root)
{
  g_autofree char *max
      = runnel_system_text_read (root, "/sys/fs/cgroup/memory.max");
  g_autofree char *current
      = runnel_system_text_read (root, "/sys/fs/cgroup/memory.current");
  guint64 limit, used;

  if (max == NULL || current == NULL
      || !g_ascii_string_to_unsigned (max, 10, 0, G_MAXUINT64, &limit, NULL)
      || !g_ascii_string_to_unsigned (current, 10, 0, G_MAXUINT64, &used,
          NULL))
    return G_MAXUINT64;
  return limit > used ? limit - used : 0;
}

/* Bytes; 0 where the system does not say. */
static guint64
get_available_memory (const char *root)
{
  static const char field[] = "MemAvailable:";
  g_autofree char *text = runnel_system_text_read (root, "/proc/meminfo");
  const char *line = text != NULL ? strstr (text, field) : NULL;

  if (line == NULL)
    return 0;
  return MIN (g_ascii_strtoull (line + strlen (field), NULL, 10) * 1024,
      get_cgroup_room (root));
}

void
runnel_placement_decide (RunnelPlacement *self, RunnelLoadMode mode,
                         gboolean shared, guint64 bytes, const char *root)
{
  guint64 available = get_available_memory (root);

  self->copy = FALSE;
  self->huge_pages = mode != RUNNEL_LOAD_MODE_MAP && has_huge_pages (root);
  if (bytes == 0)
    self->reason = g_strdup ("repacked into huge pages");
  else if (mode == RUNNEL_LOAD_MODE_READ)
    self->reason = g_strdup ("read into memory (load-mode=read)");
  else if (mode == RUNNEL_LOAD_MODE_MAP)
    self->reason = g_strdup ("used in the file (load-mode=map)");
  else if (shared)
    self->reason = g_strdup ("used in the file: another process has it open "
        "too");
  else if (!self->huge_pages)
    self->reason = g_strdup ("used in the file: the system has no transparent "
        "huge pages");
  else if (bytes > available / SHARE_OF_MEMORY)
    self->reason = g_strdup_printf ("used in the file: a copy of %"
        G_GUINT64_FORMAT " MB is more than half of the %" G_GUINT64_FORMAT
        " MB of memory there is", bytes / 1000000, available / 1000000);
  else
    self->copy = TRUE;
  if (self->copy)
    self->reason = g_strdup_printf ("copied into huge pages: %"
        G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " MB", bytes / 1000000,
        available / 1000000);
}

void
runnel_placement_clear (RunnelPlacement *self)
{
  g_clear_pointer (&self->reason, g_free);
}
