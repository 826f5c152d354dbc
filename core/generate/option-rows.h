/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The rows of options: forks of a sequence side by side in one batch.
 */
#pragma once

#include <gio/gio.h>

#include "../model/sequence.h"

G_BEGIN_DECLS

/* Token ids that follow a sequence. */
typedef struct {
  gint32 *tokens;            /* owned */
  guint n;
} RunnelTokenRun;

void runnel_token_run_clear (RunnelTokenRun *self);

/* Who computes, and what has been computed. */
typedef struct {
  RunnelEngine *engine;
  GCancellable *cancellable; /* nullable */
  guint64 rows;
  guint64 logits_rows;
} RunnelOptionRows;

/* Appends to @sequence, in chunks. */
gboolean runnel_option_rows_append (RunnelOptionRows *self,
                                    RunnelSequence *sequence,
                                    const gint32 *tokens, guint n,
                                    GError **error);
/* The same, and the hidden rows, [n][n_embd], before the model's last norm. */
gboolean runnel_option_rows_append_hidden (RunnelOptionRows *self,
                                           RunnelSequence *sequence,
                                           const gint32 *tokens, guint n,
                                           float *hidden, GError **error);
/* The hidden row of the last token, before the model's last norm. */
void runnel_option_rows_copy_hidden (RunnelSequence *sequence, float *row);
/* Forks @base, which does not change, for each of @runs, none of them empty,
 * appends it, and puts the forks side by side. @hidden: [n][n_embd] for the
 * last rows of the forks; or NULL. */
RunnelSequence *runnel_option_rows_join (RunnelOptionRows *self,
                                         RunnelSequence *base,
                                         const RunnelTokenRun *runs, guint n,
                                         float *hidden, GError **error);
/* The log-probability of each of @runs, none of them empty, behind @base,
 * which does not change. */
gboolean runnel_option_rows_score (RunnelOptionRows *self,
                                   RunnelSequence *base,
                                   const RunnelTokenRun *runs, guint n,
                                   double *log_probabilities, GError **error);

G_END_DECLS
