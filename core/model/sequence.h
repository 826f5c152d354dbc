/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "../api.h"
#include "drafter.h"
#include "engine.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_SEQUENCE (runnel_sequence_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelSequence, runnel_sequence, RUNNEL, SEQUENCE, GObject)

/**
 * RunnelSequence:
 *
 * A token history and its keys and values, as a list of rows in shared pages.
 * To be used by one thread at a time; forks are independent of each other.
 *
 * Since: 0.1
 */
RUNNEL_API RunnelSequence *runnel_sequence_new (RunnelEngine *engine,
                                                guint context_length,
                                                GError **error);
RUNNEL_API RunnelEngine *runnel_sequence_get_engine (RunnelSequence *self);
RUNNEL_API guint runnel_sequence_get_length (RunnelSequence *self);
RUNNEL_API guint runnel_sequence_get_context_length (RunnelSequence *self);
RUNNEL_API const gint32 *runnel_sequence_get_tokens (RunnelSequence *self,
                                                     gsize *n_tokens);
RUNNEL_API guint64 runnel_sequence_get_kv_bytes (RunnelSequence *self);
RUNNEL_API gboolean runnel_sequence_get_shifted (RunnelSequence *self);
RUNNEL_API RunnelSequence *runnel_sequence_fork (RunnelSequence *self);
RUNNEL_API gboolean runnel_sequence_attach (RunnelSequence *self,
                                            RunnelDrafter *drafter,
                                            GError **error);
RUNNEL_API gboolean runnel_sequence_truncate (RunnelSequence *self,
                                              guint n_tokens, GError **error);
RUNNEL_API RunnelSequence *runnel_sequence_join (RunnelSequence **forks,
                                                 gsize n_forks, guint n_common,
                                                 GError **error);
RUNNEL_API gboolean runnel_sequence_shift (RunnelSequence *self, guint n_keep,
                                           guint n_drop, GError **error);
RUNNEL_API gboolean runnel_sequence_prefill (RunnelSequence *self,
                                             const gint32 *tokens,
                                             gsize n_tokens, guint chunk,
                                             gboolean use_cache,
                                             RunnelProgressFunc progress,
                                             gpointer user_data,
                                             GCancellable *cancellable,
                                             gsize *ret_cached,
                                             GError **error);
RUNNEL_API gboolean runnel_sequence_compute_logits (RunnelSequence *self,
                                                    float *logits,
                                                    gsize n_logits,
                                                    GError **error);
RUNNEL_API GBytes *runnel_sequence_compute_logits_bytes (RunnelSequence *self,
                                                         GError **error);
RUNNEL_API gboolean runnel_sequence_forward (RunnelSequence *self,
                                             const gint32 *tokens,
                                             gsize n_tokens, float *logits,
                                             gsize n_logits, GError **error);
RUNNEL_API gboolean runnel_sequence_save (RunnelSequence *self,
                                          const char *path, GError **error);
RUNNEL_API RunnelSequence *runnel_sequence_load (RunnelEngine *engine,
                                                 const char *path,
                                                 GError **error);
RUNNEL_API GBytes *runnel_sequence_serialize (RunnelSequence *self,
                                              GError **error);
RUNNEL_API RunnelSequence *runnel_sequence_deserialize (RunnelEngine *engine,
                                                        GBytes *image,
                                                        const char *name,
                                                        GError **error);

G_END_DECLS
