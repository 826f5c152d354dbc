/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A model's weights on a backend. Shared by the engines of a model: packing
 * gives the file's pages back, so it happens once. A load that was cancelled
 * goes on where it stopped: what has been packed may be nowhere else.
 */
#pragma once

#include <gio/gio.h>

#include "../backends/ops.h"
#include "../formats/checkpoint.h"
#include "architecture.h"
#include "engine.h"
#include "placement.h"
#include "rope.h"

G_BEGIN_DECLS

typedef struct _RunnelWeights RunnelWeights;

struct _RunnelWeights {
  gatomicrefcount references;
  const RunnelOps *ops;
  RunnelStore *store;
  RunnelCheckpoint *checkpoint;    /* what is used in place lies there */
  gsize bytes;                     /* packed or in place */
  RunnelPlacement placement;       /* of what needs no packing */
  GArray *items;                   /* tensors and where their operands go */
  guint n_made;                    /* items whose operand is made */

  RunnelHyperparameters hp;
  RunnelRope rope;
  RunnelLayer *layers;             /* [hp.n_layers] */
  RunnelOperand *embedding;
  RunnelOperand *output_norm;
  RunnelOperand *output;           /* the embedding when tied */

  /* Of drafts, which have no embedding and no output matrix. */
  RunnelOperand *fusion;
  RunnelOperand *context_norm;
  RunnelOperand *selector;         /* NULL without a path selector */
  RunnelOperand *predecessors, *successors;
};

/* Reserves the memory, unless it is over @max_memory (0: no limit); nothing is
 * packed yet. */
RunnelWeights *runnel_weights_new (RunnelCheckpoint *checkpoint,
                                   RunnelBackend *backend, guint64 max_memory,
                                   GError **error);
/* Makes what is not made yet, on a backend of the same kind; by one thread at
 * a time. FALSE when it was cancelled: then call it again. */
gboolean runnel_weights_load (RunnelWeights *self, RunnelBackend *backend,
                              RunnelProgressFunc progress, gpointer user_data,
                              GCancellable *cancellable, GError **error);
gboolean runnel_weights_is_loaded (const RunnelWeights *self);
RunnelWeights *runnel_weights_ref (RunnelWeights *self);
void runnel_weights_unref (RunnelWeights *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelWeights, runnel_weights_unref)

G_END_DECLS
