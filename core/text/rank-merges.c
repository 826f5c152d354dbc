/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "rank-merges.h"

#include <string.h>

#define NO_MERGE G_MAXINT32

/* A part of the token and what it would become with the next one. */
typedef struct {
  gsize start, length;
  gint32 id, joined;
} Part;

static gint32
join (const RunnelVocabulary *vocabulary, const guint8 *bytes,
      const Part *left, guint token)
{
  gint32 id = runnel_vocabulary_find (vocabulary, bytes + left->start,
                                      left->length + left[1].length);

  return id >= 0 && (guint) id < token ? id : NO_MERGE;
}

gboolean
runnel_rank_merge_find (const RunnelVocabulary *vocabulary, guint token,
                        guint32 ret_parts[2])
{
  Part parts[RUNNEL_MAX_RANKED];
  gsize n;
  const guint8 *bytes = runnel_vocabulary_piece (vocabulary, token, &n);

  g_return_val_if_fail (n <= RUNNEL_MAX_RANKED, FALSE);
  for (gsize i = 0; i < n; i++) {
    parts[i] = (Part) { i, 1,
      runnel_vocabulary_find (vocabulary, bytes + i, 1), NO_MERGE };
    if (parts[i].id < 0)
      return FALSE;
  }
  for (gsize i = 0; i + 1 < n; i++)
    parts[i].joined = join (vocabulary, bytes, &parts[i], token);
  while (n > 2) {
    gsize best = 0;

    for (gsize i = 1; i + 1 < n; i++)
      if (parts[i].joined < parts[best].joined)
        best = i;
    if (parts[best].joined == NO_MERGE)
      return FALSE;
    parts[best].id = parts[best].joined;
    parts[best].length += parts[best + 1].length;
    memmove (&parts[best + 1], &parts[best + 2],
             (n - best - 2) * sizeof *parts);
    n--;
    parts[best].joined = best + 1 < n
        ? join (vocabulary, bytes, &parts[best], token) : NO_MERGE;
    if (best > 0)
      parts[best - 1].joined = join (vocabulary, bytes, &parts[best - 1],
                                     token);
  }
  if (n < 2)
    return FALSE;
  ret_parts[0] = parts[0].id;
  ret_parts[1] = parts[1].id;
  return TRUE;
}
