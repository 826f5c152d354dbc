/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The numbers that a model is made by, whatever file they come from.
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

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
#define RUNNEL_MAX_TAPS 64

/* Of a draft that reads hidden rows of its target and guesses a block of
 * tokens at once (DFlash); block_size is 0 in models that do not. */
typedef struct {
  guint block_size;            /* slots, the anchor's among them */
  gint32 mask_token;           /* in the slots that are to be guessed */
  guint n_target_layers;       /* 0: the file does not say */
  guint n_taps;
  guint taps[RUNNEL_MAX_TAPS]; /* layers of the target, from 0 */
  guint conv_taps, conv_group; /* 0 without convolutions (DFlash 1) */
  guint selector_rank, selector_top_k;     /* 0 without a path selector */
  guint window;                /* of sliding layers: |distance| below it */
  guint8 sliding[RUNNEL_MAX_LAYERS];
} RunnelDraftHyperparameters;

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
  gboolean tied;               /* no output matrix: the embedding serves */
  RunnelDraftHyperparameters draft;
} RunnelHyperparameters;

G_END_DECLS
