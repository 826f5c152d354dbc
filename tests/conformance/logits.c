/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "logits.h"

#include <math.h>

static void
compare (LogitsDeviation *deviation, const float *ours, const float *theirs,
         gsize n)
{
  for (gsize i = 0; i < n; i++) {
    double d = fabs ((double) ours[i] - theirs[i]);

    /* Written so that NaN fails. */
    if (!(d <= deviation->max))
      deviation->max = d;
    deviation->squares += d * d;
  }
  deviation->n += n;
}

float *
logits_forward (RunnelEngine *engine, const gint32 *ids, gsize n,
                gsize n_vocab, GError **error)
{
  g_autoptr (RunnelSequence) sequence = runnel_sequence_new (engine, 0, error);
  g_autofree float *logits = g_new (float, n * n_vocab);

  if (sequence == NULL || !runnel_sequence_forward (sequence, ids, n, logits,
          n * n_vocab, error))
    return NULL;
  return g_steal_pointer (&logits);
}

gboolean
logits_compare (RunnelEngine *engine, Npz *ids, Npz *reference, gsize n_vocab,
                LogitsDeviation *deviation, GError **error)
{
  static const guint lengths[] = { 1, 17, 64 };

  for (guint i = 0; i < G_N_ELEMENTS (lengths); i++) {
    g_autofree char *ids_name = g_strdup_printf ("ids_%u", lengths[i]);
    g_autofree char *all = g_strdup_printf ("logits_%u", lengths[i]);
    g_autofree char *some = g_strdup_printf ("%s_at_pos", all);
    g_autofree char *pos = g_strdup_printf ("pos_%u", lengths[i]);
    g_autofree gint32 *tokens = npz_dup_ints (npz_find (ids, ids_name));
    g_autofree float *ours = logits_forward (engine, tokens, lengths[i],
        n_vocab, error);
    const NpzArray *whole = npz_find (reference, all);
    const NpzArray *part = npz_find (reference, some);

    if (ours == NULL)
      return FALSE;
    if (whole != NULL) {
      g_autofree float *theirs = npz_dup_floats (whole);

      compare (deviation, ours, theirs, whole->n);
    } else if (part != NULL) {
      g_autofree float *theirs = npz_dup_floats (part);
      g_autofree gint32 *at = npz_dup_ints (npz_find (reference, pos));

      for (gsize k = 0; k < part->dims[0]; k++)
        compare (deviation, ours + at[k] * n_vocab, theirs + k * n_vocab,
            n_vocab);
    }
  }
  return TRUE;
}
