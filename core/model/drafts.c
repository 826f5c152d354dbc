/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "drafts.h"

#include <string.h>

void
runnel_drafts_clear (RunnelDrafts *self)
{
  g_clear_pointer (&self->states, g_ptr_array_unref);
  g_clear_pointer (&self->saved, g_hash_table_unref);
}

guint
runnel_drafts_count (const RunnelDrafts *self)
{
  return self->states != NULL ? self->states->len : 0;
}

RunnelDraftState *
runnel_drafts_get (const RunnelDrafts *self, guint i)
{
  return g_ptr_array_index (self->states, i);
}

static const char *
get_id (RunnelDraftState *state)
{
  return runnel_drafter_get_id (runnel_draft_state_get_drafter (state));
}

static gboolean
is_tapping (RunnelDraftState *state)
{
  guint n_taps;

  runnel_drafter_get_taps (runnel_draft_state_get_drafter (state), &n_taps);
  return n_taps > 0;
}

static gint
find_index (const RunnelDrafts *self, const char *id)
{
  for (guint i = 0; i < runnel_drafts_count (self); i++)
    if (g_str_equal (get_id (runnel_drafts_get (self, i)), id))
      return i;
  return -1;
}

RunnelDraftState *
runnel_drafts_find (const RunnelDrafts *self, const char *id)
{
  const gint index = find_index (self, id);

  return index >= 0 ? runnel_drafts_get (self, index) : NULL;
}

void
runnel_drafts_add (RunnelDrafts *self, RunnelDraftState *state)
{
  if (self->states == NULL)
    self->states = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (self->states, state);
}

void
runnel_drafts_copy (RunnelDrafts *self, const RunnelDrafts *from,
                    gboolean tapping)
{
  for (guint i = 0; i < runnel_drafts_count (from); i++) {
    RunnelDraftState *state = runnel_drafts_get (from, i);

    if (!tapping || is_tapping (state))
      runnel_drafts_add (self, runnel_draft_state_fork (state));
  }
}

gboolean
runnel_drafts_serve (const RunnelDrafts *self, const RunnelDrafts *wanted)
{
  for (guint i = 0; i < runnel_drafts_count (wanted); i++) {
    RunnelDraftState *state = runnel_drafts_get (wanted, i);

    if (is_tapping (state) && find_index (self, get_id (state)) < 0)
      return FALSE;
  }
  return TRUE;
}

void
runnel_drafts_adopt (RunnelDrafts *self, const RunnelDrafts *from)
{
  for (guint i = 0; i < runnel_drafts_count (from); i++) {
    RunnelDraftState *state = runnel_drafts_get (from, i);
    const gint index = find_index (self, get_id (state));

    if (index < 0)
      continue;
    g_object_unref (self->states->pdata[index]);
    self->states->pdata[index] = runnel_draft_state_fork (state);
  }
}

void
runnel_drafts_settle (RunnelDrafts *self, guint length)
{
  for (guint i = 0; i < runnel_drafts_count (self); i++)
    runnel_draft_state_settle (runnel_drafts_get (self, i), length);
}

void
runnel_drafts_shift (RunnelDrafts *self, guint n_keep)
{
  for (guint i = runnel_drafts_count (self); i-- > 0;)
    if (is_tapping (runnel_drafts_get (self, i)))
      g_ptr_array_remove_index (self->states, i);
  runnel_drafts_settle (self, n_keep);
}

gboolean
runnel_drafts_catch_up (RunnelDrafts *self, const gint32 *tokens, guint length,
                        GError **error)
{
  for (guint i = 0; i < runnel_drafts_count (self); i++)
    if (!runnel_draft_state_catch_up (runnel_drafts_get (self, i), tokens,
            length, error))
      return FALSE;
  return TRUE;
}

gsize
runnel_drafts_get_bytes (const RunnelDrafts *self)
{
  gsize bytes = 0;

  for (guint i = 0; i < runnel_drafts_count (self); i++)
    bytes += runnel_draft_state_get_bytes (runnel_drafts_get (self, i));
  return bytes;
}

/* ---- Images -------------------------------------------------------------- */

static void
append_number (GByteArray *image, guint32 number)
{
  const guint32 bits = GUINT32_TO_LE (number);

  g_byte_array_append (image, (const guint8 *) &bits, sizeof bits);
}

void
runnel_drafts_append_image (const RunnelDrafts *self, GByteArray *image)
{
  const guint at = image->len;
  guint32 count = 0;

  append_number (image, 0);
  for (guint i = 0; i < runnel_drafts_count (self); i++) {
    RunnelDraftState *state = runnel_drafts_get (self, i);
    g_autoptr (GBytes) saved = runnel_draft_state_save (state);
    const char *id = get_id (state);

    if (saved == NULL)
      continue;
    append_number (image, strlen (id));
    append_number (image, g_bytes_get_size (saved));
    g_byte_array_append (image, (const guint8 *) id, strlen (id));
    g_byte_array_append (image, g_bytes_get_data (saved, NULL),
        g_bytes_get_size (saved));
    count++;
  }
  count = GUINT32_TO_LE (count);
  memcpy (image->data + at, &count, sizeof count);
}

/* Takes a number from the front; FALSE at the end. */
static gboolean
take_number (const guint8 **data, gsize *size, guint32 *number)
{
  if (*size < sizeof *number)
    return FALSE;
  memcpy (number, *data, sizeof *number);
  *number = GUINT32_FROM_LE (*number);
  *data += sizeof *number;
  *size -= sizeof *number;
  return TRUE;
}

gboolean
runnel_drafts_read_image (RunnelDrafts *self, const guint8 *data, gsize size,
                          guint length)
{
  g_autoptr (GHashTable) saved = g_hash_table_new_full (g_str_hash,
      g_str_equal, g_free, (GDestroyNotify) g_bytes_unref);
  guint32 count, id_bytes, bytes;

  if (!take_number (&data, &size, &count))
    return FALSE;
  for (guint32 i = 0; i < count; i++) {
    if (!take_number (&data, &size, &id_bytes)
        || !take_number (&data, &size, &bytes) || size < id_bytes
        || size - id_bytes < bytes || memchr (data, '\0', id_bytes) != NULL)
      return FALSE;
    g_hash_table_replace (saved, g_strndup ((const char *) data, id_bytes),
        g_bytes_new (data + id_bytes, bytes));
    data += id_bytes + bytes;
    size -= id_bytes + bytes;
  }
  if (size > 0)
    return FALSE;
  if (count > 0) {
    self->saved = g_steal_pointer (&saved);
    self->saved_length = length;
  }
  return TRUE;
}
