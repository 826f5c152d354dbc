/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "../api.h"
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

/* @context_length: 0 is the model's trained length; more than it is an
 * error. */
RUNNEL_API RunnelSequence *runnel_sequence_new (RunnelEngine *engine,
                                                guint context_length,
                                                GError **error);
RUNNEL_API RunnelEngine *runnel_sequence_get_engine (RunnelSequence *self);
RUNNEL_API guint runnel_sequence_get_length (RunnelSequence *self);
RUNNEL_API guint runnel_sequence_get_context_length (RunnelSequence *self);
RUNNEL_API const gint32 *runnel_sequence_get_tokens (RunnelSequence *self,
                                                     gsize *n_tokens);
/* Bytes of the pages it refers to. */
RUNNEL_API guint64 runnel_sequence_get_kv_bytes (RunnelSequence *self);
/* Whether rows were dropped and keys rotated again: outside the exactness
 * contract and the prefix cache. */
RUNNEL_API gboolean runnel_sequence_get_shifted (RunnelSequence *self);

/* Shares the pages; copies nothing. */
RUNNEL_API RunnelSequence *runnel_sequence_fork (RunnelSequence *self);
/* Keeps the first @n_tokens. */
RUNNEL_API gboolean runnel_sequence_truncate (RunnelSequence *self,
                                              guint n_tokens, GError **error);
/* Puts forks side by side behind their common beginning of @n_common tokens:
 * a sequence that sees all of them. The next token's position follows the
 * longest. */
RUNNEL_API RunnelSequence *runnel_sequence_join (RunnelSequence **forks,
                                                 gsize n_forks, guint n_common,
                                                 GError **error);
/* Keeps the first @n_keep tokens, drops the next @n_drop and moves the rest
 * down, their keys rotated into new pages. */
RUNNEL_API gboolean runnel_sequence_shift (RunnelSequence *self, guint n_keep,
                                           guint n_drop, GError **error);

/* Appends tokens: finds the longest prefix in the cache (when the sequence is
 * empty and @use_cache), forwards the rest in chunks of @chunk rows (0:
 * default 128), and puts the result into the cache. When cancelled or failed
 * it keeps the chunks that were committed. Progress counts tokens. */
RUNNEL_API gboolean runnel_sequence_prefill (RunnelSequence *self,
                                             const gint32 *tokens,
                                             gsize n_tokens, guint chunk,
                                             gboolean use_cache,
                                             RunnelProgressFunc progress,
                                             gpointer user_data,
                                             GCancellable *cancellable,
                                             gsize *ret_cached,
                                             GError **error);
/* Logits of the token that follows: [n_vocab] floats. An empty sequence is an
 * error. Computes only the output matrix where the last hidden row is
 * there, else forwards the last token again. */
RUNNEL_API gboolean runnel_sequence_compute_logits (RunnelSequence *self,
                                                    float *logits,
                                                    gsize n_logits,
                                                    GError **error);
/* Appends tokens and gives the logits after each of them, [n_tokens][n_vocab]
 * floats: what perplexity needs. One batch. */
RUNNEL_API gboolean runnel_sequence_forward (RunnelSequence *self,
                                             const gint32 *tokens,
                                             gsize n_tokens, float *logits,
                                             gsize n_logits, GError **error);

/* A checksummed, versioned image of tokens, keys, values and hidden row. It
 * loads only into an engine of the same model content and KV type. */
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
