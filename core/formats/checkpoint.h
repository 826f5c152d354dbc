/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "gguf.h"
#include "json.h"
#include "safetensors.h"

G_BEGIN_DECLS

/* How a model file says what the model is, whatever its format. Tensors go by
 * their GGUF names ("token_embd.weight", "blk.0.attn_q.weight"). */

typedef enum {
  RUNNEL_ROPE_PAIRS,   /* rotates (2i, 2i+1): rows as GGUF llama stores them */
  RUNNEL_ROPE_HALVES,  /* rotates (i, i + d/2): NeoX, Hugging Face */
} RunnelRopeStyle;

typedef enum {
  RUNNEL_ROPE_SCALING_NONE,
  RUNNEL_ROPE_SCALING_LINEAR,
  RUNNEL_ROPE_SCALING_YARN,
  RUNNEL_ROPE_SCALING_LLAMA3,
} RunnelRopeScaling;

#define RUNNEL_MAX_LAYERS 512

typedef struct {
  char architecture[32];       /* "llama", "qwen2", "qwen3" */
  guint n_layers;
  guint n_embd;                /* width of the residual stream */
  guint n_ff;
  guint n_heads;
  guint n_kv_heads;
  guint head_dim;
  guint n_vocab;
  guint context_length;        /* trained length */
  double norm_epsilon;
  double rope_base;
  guint rope_dimensions;       /* rotated elements of a head */
  RunnelRopeStyle rope_style;
  RunnelRopeScaling rope_scaling;
  double rope_factor;          /* linear, yarn, llama3 */
  guint rope_original_context; /* yarn, llama3 */
  double rope_low_freq_factor, rope_high_freq_factor;          /* llama3 */
  /* yarn; 0 = default */
  double rope_beta_fast, rope_beta_slow, rope_attention_factor;
  gboolean tied;               /* no output.weight: the embedding serves */
} RunnelHyperparameters;

typedef struct _RunnelCheckpoint RunnelCheckpoint;

/* @path: a GGUF file, a Hugging Face folder, or a .safetensors file in one. */
RunnelCheckpoint *runnel_checkpoint_open (const char *path,
                                          RunnelLoadMode mode, GError **error);
RunnelCheckpoint *runnel_checkpoint_ref (RunnelCheckpoint *self);
void runnel_checkpoint_unref (RunnelCheckpoint *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelCheckpoint, runnel_checkpoint_unref)

const char *runnel_checkpoint_path (const RunnelCheckpoint *self);
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
/* A hash of the whole header and the first and last 4 KiB of every tensor. */
const char *runnel_checkpoint_content_id (const RunnelCheckpoint *self);

G_END_DECLS
