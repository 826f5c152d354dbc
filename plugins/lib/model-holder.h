/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gst/gst.h>
#include <runnel.h>
#include "api.h"
#include "enums.h"

G_BEGIN_DECLS

#define GST_TYPE_LM_MODEL_HOLDER (gst_lm_model_holder_get_type ())
GST_LM_API
G_DECLARE_FINAL_TYPE (GstLmModelHolder, gst_lm_model_holder, GST,
                      LM_MODEL_HOLDER, GObject)

/**
 * GstLmModelHolder:
 *
 * An element's model. The file is opened and its header checked in
 * NULL→READY, so that a bad one fails there with one error message; the slow
 * parts (tokenizer tables, packing weights) are made in a thread, with
 * progress messages, and the streaming thread waits for them with
 * gst_lm_model_holder_wait().
 *
 * An element without a model of its own takes the stream's, from the request
 * meta. Models are shared in the process: see gst_lm_model_get().
 *
 * #GstLmFilter owns one and does the calls; only elements of another shape
 * need to make them.
 *
 * Since: 0.1
 */

/**
 * GST_LM_MAX_THREADS:
 *
 * The most threads that an engine computes with.
 *
 * Since: 0.1
 */
#define GST_LM_MAX_THREADS 256

/**
 * GstLmModelLoadFunc: (skip)
 * @model: the opened model
 * @progress: to be told how far it is
 * @progress_data: for @progress
 * @cancellable: stops it
 * @user_data: of gst_lm_model_holder_set_load_func()
 * @error: return location
 *
 * The slow part of loading, in a thread.
 *
 * Returns: %FALSE with an error when the model cannot be used
 *
 * Since: 0.1
 */
typedef gboolean (*GstLmModelLoadFunc) (RunnelModel *model,
                                        RunnelProgressFunc progress,
                                        gpointer progress_data,
                                        GCancellable *cancellable,
                                        gpointer user_data, GError **error);

GST_LM_API RunnelModel *gst_lm_model_get (const gchar *path,
                                          RunnelLoadMode mode, GError **error);

GST_LM_API GstLmModelHolder *gst_lm_model_holder_new (GstElement *element,
                                                      GstLmModelParts parts);
GST_LM_API void gst_lm_model_holder_install_properties (GObjectClass *klass,
                                                        GstLmModelParts parts);
GST_LM_API gboolean gst_lm_model_holder_set_property (GstLmModelHolder *self,
                                                      guint prop_id,
                                                      const GValue *value);
GST_LM_API gboolean gst_lm_model_holder_get_property (GstLmModelHolder *self,
                                                      guint prop_id,
                                                      GValue *value);

GST_LM_API void gst_lm_model_holder_set_path (GstLmModelHolder *self,
                                              const gchar *path);
GST_LM_API gchar *gst_lm_model_holder_dup_path (GstLmModelHolder *self);
GST_LM_API void gst_lm_model_holder_set_load_func (GstLmModelHolder *self,
                                                   GstLmModelLoadFunc load,
                                                   gpointer user_data);

GST_LM_API gboolean
gst_lm_model_holder_prepare_change (GstLmModelHolder *self,
                                    GstStateChange transition);
GST_LM_API void gst_lm_model_holder_finish_change (GstLmModelHolder *self,
                                                   GstStateChange transition);
GST_LM_API void gst_lm_model_holder_set_flushing (GstLmModelHolder *self,
                                                  gboolean flushing);

GST_LM_API void gst_lm_model_holder_set_max_memory (GstLmModelHolder *self,
                                                    guint64 bytes);

GST_LM_API GstFlowReturn gst_lm_model_holder_wait (GstLmModelHolder *self,
                                                   RunnelModel *stream_model);

GST_LM_API RunnelModel *
gst_lm_model_holder_dup_own_model (GstLmModelHolder *self);
GST_LM_API RunnelTokenizer *
gst_lm_model_holder_dup_own_tokenizer (GstLmModelHolder *self);
GST_LM_API RunnelModel *
gst_lm_model_holder_get_model (GstLmModelHolder *self);
GST_LM_API RunnelTokenizer *
gst_lm_model_holder_get_tokenizer (GstLmModelHolder *self);
GST_LM_API RunnelEngine *
gst_lm_model_holder_get_engine (GstLmModelHolder *self);

G_END_DECLS
