/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "../model/hyperparameters.h"
#include "gguf.h"
#include "json.h"
#include "mnn-package.h"
#include "safetensors.h"

G_BEGIN_DECLS

/* How a model file says what the model is, whatever its format. Tensors go by
 * their GGUF names ("token_embd.weight", "blk.0.attn_q.weight"). */

typedef struct _RunnelCheckpoint RunnelCheckpoint;

/* @path: a GGUF file, a Hugging Face folder or a .safetensors file in one, an
 * MNN package's folder or its config.json or graph. */
RunnelCheckpoint *runnel_checkpoint_open (const char *path,
                                          RunnelLoadMode mode, GError **error);
RunnelCheckpoint *runnel_checkpoint_ref (RunnelCheckpoint *self);
void runnel_checkpoint_unref (RunnelCheckpoint *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelCheckpoint, runnel_checkpoint_unref)

const char *runnel_checkpoint_path (const RunnelCheckpoint *self);
RunnelLoadMode runnel_checkpoint_load_mode (const RunnelCheckpoint *self);
const RunnelHyperparameters *
runnel_checkpoint_hyperparameters (const RunnelCheckpoint *self);
/* By GGUF name; NULL when absent. */
const RunnelTensor *runnel_checkpoint_tensor (const RunnelCheckpoint *self,
                                              const char *name);
gsize runnel_checkpoint_n_tensors (const RunnelCheckpoint *self);
const RunnelTensor *runnel_checkpoint_nth_tensor (const RunnelCheckpoint *self,
                                                  gsize i);
/* NULL unless the checkpoint is a GGUF file. */
RunnelGguf *runnel_checkpoint_gguf (const RunnelCheckpoint *self);
/* The folder of a Hugging Face checkpoint, else NULL. */
const char *runnel_checkpoint_folder (const RunnelCheckpoint *self);
/* NULL unless the checkpoint is an MNN package. Its tensors of codes are made
 * when their data are asked for; runnel_mapping_release of all their bytes
 * gives them back. */
const RunnelMnnPackage *runnel_checkpoint_mnn (const RunnelCheckpoint *self);
/* What scales and offsets of the nth tensor lost when it was made; NULL when it
 * is as the file has it. */
const RunnelMnnRounding *
runnel_checkpoint_nth_rounding (const RunnelCheckpoint *self, gsize i);
/* A hash of the whole header and the first and last 4 KiB of every tensor. */
const char *runnel_checkpoint_content_id (const RunnelCheckpoint *self);

G_END_DECLS
