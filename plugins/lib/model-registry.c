/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* The models of this process: who opens the same file again gets the same
 * object, while anybody still holds it.
 */
#include "model-holder.h"

#include <glib/gstdio.h>

static GMutex registry_lock;
static GHashTable *registry; /* key → GWeakRef; under registry_lock */

static void
weak_ref_free (gpointer ref)
{
  g_weak_ref_clear (ref);
  g_free (ref);
}

/* A file that was replaced since is another model. */
static gchar *
make_key (const gchar *path, RunnelLoadMode mode)
{
  g_autofree gchar *canonical = g_canonicalize_filename (path, NULL);
  GStatBuf info;

  if (g_stat (canonical, &info) != 0)
    return NULL;
  return g_strdup_printf ("%d:%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT
                          ":%" G_GINT64_FORMAT ".%ld:%" G_GINT64_FORMAT ":%s",
                          mode, (guint64) info.st_dev, (guint64) info.st_ino,
                          (gint64) info.st_mtim.tv_sec,
                          (long) info.st_mtim.tv_nsec, (gint64) info.st_size,
                          canonical);
}

static gboolean
is_dead (gpointer key, gpointer ref, gpointer user_data)
{
  g_autoptr (GObject) object = g_weak_ref_get (ref);

  return object == NULL;
}

static RunnelModel *
find_unlocked (const gchar *key)
{
  GWeakRef *ref = registry != NULL ? g_hash_table_lookup (registry, key) : NULL;

  return ref != NULL ? g_weak_ref_get (ref) : NULL;
}

static void
add_unlocked (const gchar *key, RunnelModel *model)
{
  GWeakRef *ref = g_new (GWeakRef, 1);

  if (registry == NULL)
    registry = g_hash_table_new_full (g_str_hash, g_str_equal, g_free,
                                      weak_ref_free);
  g_hash_table_foreach_remove (registry, is_dead, NULL);
  g_weak_ref_init (ref, model);
  g_hash_table_replace (registry, g_strdup (key), ref);
}

/**
 * gst_lm_model_get:
 * @path: (type filename): a model file
 * @mode: how it comes into memory
 * @error: return location for a #GError
 *
 * The model of a file: the one that is open in this process already, if the
 * file is still the same, or else opened now.
 *
 * Returns: (transfer full): the model, or %NULL with the errors of
 *   runnel_model_open()
 *
 * Since: 0.1
 */
RunnelModel *
gst_lm_model_get (const gchar *path, RunnelLoadMode mode, GError **error)
{
  g_autofree gchar *key = NULL;
  RunnelModel *model = NULL;

  g_return_val_if_fail (path != NULL, NULL);

  key = make_key (path, mode);
  if (key == NULL)
    return runnel_model_open (path, mode, error); /* which says why */

  g_mutex_lock (&registry_lock);
  model = find_unlocked (key);
  if (model == NULL)
    {
      model = runnel_model_open (path, mode, error);
      if (model != NULL)
        add_unlocked (key, model);
    }
  g_mutex_unlock (&registry_lock);
  return model;
}
