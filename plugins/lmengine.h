/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* Who computes with a state, where it is not who made it: the properties
 * backend, threads and kernels of the elements behind lmprefill. */
#pragma once

#include <gstrunnel.h>

G_BEGIN_DECLS

/* The properties, from the first id on. */
enum {
  GST_LM_ENGINE_BACKEND,
  GST_LM_ENGINE_THREADS,
  GST_LM_ENGINE_KERNELS,
  GST_LM_ENGINE_N_PROPERTIES,
};

/* All zeros is who made the state. */
typedef struct {
  GstLmBackend backend;
  guint threads;
  GstLmKernels kernels;
} GstLmEngineChoice;

void gst_lm_engine_choice_install (GObjectClass *klass, guint first_id);
/* @property: one of those above. */
void gst_lm_engine_choice_set (GstLmEngineChoice *self, guint property,
                               const GValue *value);
void gst_lm_engine_choice_get (const GstLmEngineChoice *self, guint property,
                               GValue *value);

/* Brings @sequence (taken) to the engine of the choice; its keys and values,
 * and what @drafters (nullable) know, are copied where that is another one. */
RunnelSequence *gst_lm_engine_choice_move (const GstLmEngineChoice *self,
                                           RunnelSequence *sequence,
                                           const GPtrArray *drafters,
                                           GCancellable *cancellable,
                                           GError **error);

G_END_DECLS
