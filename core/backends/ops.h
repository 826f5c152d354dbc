/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The op table: what a backend computes for the forward pass. Ops work on a
 * *pass*, which holds the rows of one batch and their intermediate results on
 * the device; model/forward.c calls them in order, layer by layer. A weight on
 * the device is an opaque operand.
 */
#pragma once

#include "backend.h"
#include "../formats/checkpoint.h"

G_BEGIN_DECLS

typedef struct _RunnelOperand RunnelOperand;   /* a matrix or vector */
typedef struct _RunnelStore RunnelStore;       /* memory for operands */
typedef struct _RunnelPass RunnelPass;         /* scratch for one batch */

/* The sizes that a pass and the pages of keys and values follow from. */
typedef struct {
  guint n_layers;
  guint n_embd;
  guint n_ff;
  guint n_heads;
  guint n_kv_heads;
  guint head_dim;
  guint n_vocab;
  guint rope_dimensions;
  RunnelRopeStyle rope_style;
  float norm_epsilon;
  RunnelKvType kv_type;
  /* Of drafts, else 0. */
  guint conv_taps, conv_group;
  guint n_fused;             /* columns of what is fused into x */
} RunnelShape;

/* Rows of a page's memory that are consecutive keys of a sequence. */
typedef struct {
  guint8 *page;
  guint32 first;
  guint32 n;
} RunnelKeys;

/* The rows of one sequence in a batch. Its keys include the new rows. */
typedef struct {
  guint row;                 /* first row in the pass */
  guint n_rows;
  guint first_key;           /* logical index of the first new row */
  const RunnelKeys *keys;    /* ascending, all of the sequence */
  guint n_keys;              /* runs, not rows */
  gboolean joint;            /* the new rows see each other both ways: a
                                draft's block */
} RunnelPassSequence;

typedef struct {
  guint n_rows;
  const gint32 *tokens;      /* [n_rows] */
  const float *cos, *sin;    /* [n_rows][rope_dimensions / 2] */
  const RunnelPassSequence *sequences;
  guint n_sequences;
} RunnelPassRows;

/* Weights of a layer; NULL where the architecture has none. */
typedef struct {
  RunnelOperand *attn_norm;
  RunnelOperand *q, *k, *v, *o;
  RunnelOperand *q_bias, *k_bias, *v_bias;
  RunnelOperand *q_norm, *k_norm;
  RunnelOperand *ffn_norm;
  RunnelOperand *gate, *up, *down;
  /* A dynamic depthwise convolution over the rows of a block stands before
   * and behind attention, and before and behind the MLP. Of tap j it has
   * base[j] + f[j][group] as the factor of a channel in the row j before; f
   * are the products of the conv with the sublayer's normed input. Base and f
   * are [2][conv_taps][…]: before, behind. */
  RunnelOperand *attn_conv_base, *attn_conv;
  RunnelOperand *ffn_conv_base, *ffn_conv;
  guint window;              /* keys nearer than this are seen; 0: all */
} RunnelLayer;

/* What the products of a layer read. */
typedef enum {
  RUNNEL_INPUT_QKV,            /* after project */
  RUNNEL_INPUT_O,              /* after attend */
  RUNNEL_INPUT_GATE_UP,        /* after mlp */
  RUNNEL_INPUT_DOWN,           /* after mlp */
  RUNNEL_N_INPUTS
} RunnelInput;

typedef struct {
  /* Weights live in one store, made for the sum of their needs. A type that
   * the device cannot compute with is an error. @copy: into the store also
   * what could be used in the file. */
  gboolean (*operand_bytes) (RunnelBackend *self, const RunnelTensor *tensor,
                             gboolean copy, gsize *ret_bytes, GError **error);
  RunnelStore *(*store_new) (RunnelBackend *self, gsize bytes, GError **error);
  void (*store_free) (RunnelStore *store);
  /* A matrix (two axes) or a vector of floats (one axis). Repacked and copied
   * tensors give their source pages back; others are used in place. */
  RunnelOperand *(*operand_new) (RunnelBackend *self, RunnelStore *store,
                                 const RunnelTensor *tensor, gboolean copy);
  void (*operand_free) (RunnelOperand *operand);
  /* Elements and bytes, and whether products take 8-bit activations. */
  void (*operand_size) (const RunnelOperand *operand, guint64 *ret_elements,
                        guint64 *ret_bytes, gboolean *ret_quantised);

  /* Rows a page should hold, and its bytes for a shape. */
  guint (*page_rows) (RunnelBackend *self);
  gsize (*page_bytes) (RunnelBackend *self, const RunnelShape *shape);

  RunnelPass *(*pass_new) (RunnelBackend *self, const RunnelShape *shape);
  void (*pass_free) (RunnelPass *pass);
  /* The memory of a pass, now and once it has run a batch of @n_rows. Not
   * between begin and end. */
  gsize (*scratch_bytes) (RunnelPass *pass, guint n_rows);
  /* Gives back what can be had again. Safe from other threads. */
  void (*trim) (RunnelPass *pass);
  /* Takes the device for one batch; @rows stays valid until end. FALSE
   * when memory for that many rows is short. */
  gboolean (*begin) (RunnelPass *pass, const RunnelPassRows *rows);
  void (*end) (RunnelPass *pass);

  /* x = rows of the embedding */
  void (*embed) (RunnelPass *pass, const RunnelOperand *embedding);
  /* q, k, v = products of norm (x) */
  void (*project) (RunnelPass *pass, const RunnelLayer *layer);
  /* head norms, rotation, k and v into the pages */
  void (*rope_append) (RunnelPass *pass, const RunnelLayer *layer,
                       guint layer_index);
  void (*attend) (RunnelPass *pass, const RunnelLayer *layer,
                  guint layer_index);
  /* x += o · attention */
  void (*project_add) (RunnelPass *pass, const RunnelLayer *layer);
  /* x += down · (silu (gate · norm (x)) ∘ (up · norm (x))) */
  void (*mlp) (RunnelPass *pass, const RunnelLayer *layer);
  /* x = matrix · input, of [n_rows][n_fused] floats: a draft's context. */
  void (*fuse) (RunnelPass *pass, const RunnelOperand *matrix,
                const float *input);
  /* k and v of norm (x), head norm and rotation, into the pages */
  void (*append_context) (RunnelPass *pass, const RunnelOperand *norm,
                          const RunnelLayer *layer, guint layer_index);
  /* Copies row @row of x to the host: the hidden row, before the last norm. */
  void (*read_hidden) (RunnelPass *pass, guint row, float *hidden);
  /* Copies row @row of what a product of the last layer read to the host, as
   * floats; NULL where the device does not keep it. */
  void (*read_input) (RunnelPass *pass, RunnelInput input, guint row,
                      float *values);
  /* Logits of hidden rows that the host gives: @hidden and @logits are
   * @n_rows pointers to [n_embd] floats and to one for each row of the matrix,
   * at most n_vocab. May be called without
   * begin for rows alone, between begin and end otherwise. Returns the index
   * of the first row with a non-finite logit, or n_rows. */
  guint (*output) (RunnelPass *pass, const RunnelOperand *norm,
                   const RunnelOperand *output, const float *const *hidden,
                   float *const *logits, guint n_rows);

  /* A row of a matrix as floats, to the host. */
  void (*read_row) (RunnelBackend *self, const RunnelOperand *matrix,
                    guint row, float *values);

  /* One row of all layers to or from the host, k and v of
   * [n_layers][n_kv_heads · head_dim] floats: shift. */
  void (*kv_read) (RunnelBackend *self, const RunnelShape *shape,
                   const guint8 *page, guint row, float *k, float *v);
  void (*kv_write) (RunnelBackend *self, const RunnelShape *shape,
                    guint8 *page, guint row, const float *k, const float *v);
  /* The row's own bits, page independent: [page_bytes / page_rows] bytes. */
  void (*kv_export) (RunnelBackend *self, const RunnelShape *shape,
                     const guint8 *page, guint row, guint8 *bits);
  void (*kv_import) (RunnelBackend *self, const RunnelShape *shape,
                     guint8 *page, guint row, const guint8 *bits);
  /* Rotates a head in place by cos and sin of [rope_dimensions / 2]. */
  void (*rotate) (RunnelBackend *self, const RunnelShape *shape, float *head,
                  const float *cos, const float *sin);
  /* See runnel_backend_measure_limits (). */
  void (*measure_limits) (RunnelBackend *self, double *bytes,
                          double *integer_macs, double *float_macs);
} RunnelOps;

struct _RunnelBackendClass {
  GObjectClass parent_class;

  const char *name;
  const RunnelOps *ops;
  guint (*get_n_threads) (RunnelBackend *self);
  guint (*get_n_prefill_threads) (RunnelBackend *self);
  const char *(*get_kernels) (RunnelBackend *self);
};

/* Its table, or the one that counts where a profile was started. */
const RunnelOps *runnel_backend_ops (RunnelBackend *self);

G_END_DECLS
