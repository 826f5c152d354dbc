/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "../api.h"
#include "../progress.h"
#include "../formats/load-mode.h"
#include "../text/chat-template.h"
#include "../text/tokenizer.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_MODEL (runnel_model_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelModel, runnel_model, RUNNEL, MODEL, GObject)

/**
 * RunnelModel:
 *
 * An opened model file. Its header is read and checked at once, in
 * milliseconds; tokenizer tables, the chat template and weights are made when
 * they are asked for. Immutable and safe to use from several threads.
 *
 * Since: 0.1
 */

RUNNEL_API RunnelModel *runnel_model_open (const char *path,
                                           RunnelLoadMode mode,
                                           GError **error);
RUNNEL_API const char *runnel_model_get_path (RunnelModel *self);
RUNNEL_API const char *runnel_model_get_name (RunnelModel *self);
RUNNEL_API const char *runnel_model_get_content_id (RunnelModel *self);
RUNNEL_API const char *runnel_model_get_architecture (RunnelModel *self);
RUNNEL_API guint runnel_model_get_n_vocab (RunnelModel *self);
RUNNEL_API guint runnel_model_get_n_layers (RunnelModel *self);
RUNNEL_API guint runnel_model_get_n_embd (RunnelModel *self);
RUNNEL_API guint runnel_model_get_context_length (RunnelModel *self);
RUNNEL_API guint64 runnel_model_get_n_parameters (RunnelModel *self);
RUNNEL_API GVariant *runnel_model_describe (RunnelModel *self);
RUNNEL_API gboolean runnel_model_verify (RunnelModel *self,
                                         RunnelProgressFunc progress,
                                         gpointer user_data,
                                         GCancellable *cancellable,
                                         GError **error);
RUNNEL_API RunnelTokenizer *runnel_model_get_tokenizer (RunnelModel *self,
                                                        GError **error);
RUNNEL_API RunnelChatTemplate *runnel_model_get_chat_template (RunnelModel *self,
                                                               GError **error);

G_END_DECLS
