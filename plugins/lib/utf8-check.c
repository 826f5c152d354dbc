/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "utf8-check.h"

#include <runnel.h>

/* NUL is a character like others here, not so in GLib. */
static gboolean
is_utf8 (const GstMapInfo *map, gsize *ret_bad)
{
  const gchar *text = (const gchar *) map->data;
  const gchar *end = text + map->size;
  const gchar *bad = text;

  while (!g_utf8_validate_len (text, end - text, &bad) && *bad == '\0')
    text = bad + 1;
  *ret_bad = bad - (const gchar *) map->data;
  return bad == end;
}

gboolean
gst_lm_buffer_check_utf8 (GstBuffer *buffer, GError **error)
{
  GstMapInfo map;
  gsize bad;
  gboolean valid;

  if (gst_buffer_get_size (buffer) == 0)
    return TRUE;
  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    {
      g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
                   "a text buffer cannot be read");
      return FALSE;
    }
  valid = is_utf8 (&map, &bad);
  gst_buffer_unmap (buffer, &map);
  if (!valid)
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED,
                 "the text is not UTF-8 at byte %" G_GSIZE_FORMAT ": convert "
                 "it, or set framing=stream if its source cuts characters",
                 bad);
  return valid;
}
