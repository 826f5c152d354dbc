/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Scratch of one batch on the CPU. Buffers grow to the largest batch seen and
 * are then kept, so that a running engine does not allocate.
 */
#pragma once

#include "cpu-backend.h"

G_BEGIN_DECLS

/* Rows whose attention one piece of work computes together. */
#define RUNNEL_ATTEND_ROWS 8
/* Rows whose logits are computed together. */
#define RUNNEL_OUTPUT_ROWS 16
/* Up to here a pass is decoding, a draft or a decision, else a prefill. */
#define RUNNEL_FEW_ROWS 16

/* Where a new row's keys and values go. */
typedef struct {
  guint8 *page;
  guint32 row;
} RunnelSlot;

struct _RunnelPass {
  RunnelBackend *backend;
  const RunnelKernels *kernels;
  RunnelTeam *team;
  RunnelShape shape;
  RunnelKvLayout kv;
  const RunnelPassRows *rows;   /* between begin and end */
  guint64 fp;                   /* the caller's floating-point mode */

  guint capacity;               /* rows there is room for */
  gpointer arena;
  gsize arena_bytes;
  float *x;                     /* [rows][x_stride] the residual stream */
  gsize x_stride;
  RunnelRows normed;            /* inputs of q, k, v, gate, up */
  float *qkv;                   /* [rows][qkv_stride]: q, k, v padded to tiles */
  gsize qkv_stride;
  gsize k_offset, v_offset;
  RunnelRows attention;         /* output of attention */
  RunnelRows ff;                /* silu (gate) · up */
  float *up;                    /* [rows][ff.f_stride] */
  float *product;               /* [rows][x_stride] before it is added to x */
  RunnelRows fused;             /* input of a draft's context; or no columns */
  float *factors;               /* [rows][factor_stride] of convolutions */
  gsize factor_stride;
  float *conv_base;             /* [2 * conv_taps][x_stride] */
  RunnelSlot *slots;            /* [rows] */
  guint32 *limits;              /* [rows] keys a row sees */

  RunnelKvRun *runs;            /* all sequences' keys, at one layer */
  gsize runs_capacity;
  gsize n_runs;
  gsize *first_run;             /* [sequences + 1] */
  gsize sequences_capacity;

  gsize partial_stride;
  guint8 *partials;             /* split attention */
  gsize partials_capacity;
  gint *n_unfinished;           /* [pieces] blocks of split attention */
  gsize unfinished_capacity;
  guint8 *thread_scratch;       /* per thread: partials and scores */
  gsize thread_scratch_stride;

  gpointer output_arena;
  gsize output_bytes;
  RunnelRows output_rows;
  float *logits;                /* [RUNNEL_OUTPUT_ROWS][logits_stride] */
  gsize logits_stride;
};

/* cpu-attend.c */
gboolean runnel_cpu_attend_begin (RunnelPass *pass);
gsize runnel_cpu_attend_bytes (const RunnelPass *pass);
void runnel_cpu_attend_trim (RunnelPass *pass);
void runnel_cpu_attend (RunnelPass *pass, const RunnelLayer *layer,
                        guint layer_index);

/* cpu-conv.c: the factors of a sublayer's convolutions, of its normed input,
 * and the one before it (side 0) or behind it (side 1), in place. */
void runnel_cpu_conv_prepare (RunnelPass *pass, const RunnelOperand *base,
                              const RunnelOperand *conv);
void runnel_cpu_convolve (RunnelPass *pass, guint side, float *rows,
                          gsize stride);

/* How many items of a loop a thread takes at a time. */
static inline gsize
runnel_pass_grain (const RunnelPass *pass, gsize n_items)
{
  gsize grain = n_items / (runnel_team_n_active (pass->team) * 6);

  return MAX (grain, 1);
}

G_END_DECLS
