/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "model-holder.h"

G_BEGIN_DECLS

typedef enum {
  LOAD_NONE,
  LOAD_RUNNING,
  LOAD_DONE,
  LOAD_FAILED,
} LoadState;

/* How a model is loaded, once its file is open. */
typedef struct {
  gboolean verify;
  GstLmBackend backend;
  guint threads;
  guint prefill_threads;
  GstLmKernels kernels;
  RunnelKvType kv_type;
  guint64 max_memory;
} LoadSettings;

struct _GstLmModelHolder {
  GObject parent_instance;

  GstElement *element; /* owns us */
  GstLmModelParts parts;
  GstLmModelLoadFunc load; /* in the place of what @parts says, or NULL */
  gpointer load_data;

  GMutex lock;
  GCond cond; /* state, flushing */

  /* Properties; under lock */
  gchar *path;
  RunnelLoadMode load_mode;
  LoadSettings settings;

  /* Under lock */
  RunnelModel *own_model; /* of path; NULL below READY */
  gboolean changed;       /* properties are newer than own_model */
  gboolean flushing;
  LoadState state;
  RunnelModel *model; /* which is loading, loaded or failed */
  RunnelTokenizer *tokenizer;
  RunnelEngine *engine;
  GCancellable *cancellable;

  /* Under the element's state lock, or in the streaming thread while no
   * state change runs load code: there is one loader at a time */
  GThread *thread;

  /* Streaming thread */
  RunnelModel *checked_model; /* its vocabulary agrees with the own one */
};

/* Sets the installed properties to their defaults. */
void gst_lm_model_holder_init_properties (GstLmModelHolder *self);

/* Starts the thread that loads. Call without the lock, and with no loader
 * running. */
void gst_lm_model_holder_start_load (GstLmModelHolder *self,
                                     RunnelModel *model);
/* Cancels and joins. Call without the lock. */
void gst_lm_model_holder_stop_load (GstLmModelHolder *self);

G_END_DECLS
