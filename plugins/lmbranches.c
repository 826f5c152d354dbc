/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "lmbranches.h"

#include <gstrunnel.h>

static gboolean
may_carry_state (GstPad *pad)
{
  g_autoptr (GstCaps) caps = gst_pad_get_pad_template_caps (pad);

  if (gst_caps_is_any (caps))
    return TRUE;
  for (guint i = 0; i < gst_caps_get_size (caps); i++)
    if (gst_structure_has_name (gst_caps_get_structure (caps, i),
            GST_LM_CAPS_STATE))
      return TRUE;
  return FALSE;
}

static void
collect_link (const GValue *value, gpointer user_data)
{
  GstPad *pad = g_value_get_object (value);

  if (GST_PAD_IS_SRC (pad) && gst_pad_is_linked (pad) && may_carry_state (pad))
    g_ptr_array_add (user_data, gst_object_ref (pad));
}

/* The source pads that a state pushed by @pad leaves the next element by. */
static GPtrArray *
get_next_pads (GstPad *pad)
{
  GPtrArray *links = g_ptr_array_new_with_free_func (gst_object_unref);
  g_autoptr (GstPad) peer = gst_pad_get_peer (pad);
  GstIterator *iterator;

  if (!peer || !(iterator = gst_pad_iterate_internal_links (peer)))
    return links;
  while (gst_iterator_foreach (iterator, collect_link, links)
      == GST_ITERATOR_RESYNC) {
    gst_iterator_resync (iterator);
    g_ptr_array_set_size (links, 0);
  }
  gst_iterator_free (iterator);
  return links;
}

gboolean
gst_lm_pad_forks (GstPad *pad)
{
  g_autoptr (GPtrArray) links = get_next_pads (pad);

  if (links->len == 0)
    return FALSE;
  return links->len > 1 || gst_lm_pad_forks (g_ptr_array_index (links, 0));
}

/* Whether @pad pushes from a thread of its own, as that of a queue does. */
static gboolean
has_task (GstPad *pad)
{
  gboolean result;

  GST_OBJECT_LOCK (pad);
  result = GST_PAD_TASK (pad) != NULL;
  GST_OBJECT_UNLOCK (pad);
  return result;
}

/* @branch: the last branch of a fork on the way to @pad that no queue has
 * followed, or NULL. */
static GstPad *
find_unqueued (GstPad *pad, GstPad *branch)
{
  g_autoptr (GPtrArray) links = get_next_pads (pad);

  if (links->len == 0)
    return branch ? gst_object_ref (branch) : NULL;
  for (guint i = 0; i < links->len; i++) {
    GstPad *next = g_ptr_array_index (links, i);
    GstPad *found = find_unqueued (next, links->len > 1 ? next :
        has_task (next) ? NULL : branch);

    if (found)
      return found;
  }
  return NULL;
}

GstPad *
gst_lm_pad_find_unqueued_branch (GstPad *pad)
{
  return find_unqueued (pad, NULL);
}
