/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Packages of MNN's form with the weights of a tiny model: the same codes,
 * scales and tokens in other files.
 */
#pragma once

#include <glib.h>

/* One thing of an operator or blob that is not as it should be. */
typedef enum {
  TINY_MNN_GOOD,
  TINY_MNN_RELU,             /* o_proj has an activation */
  TINY_MNN_KERNEL,           /* … is 3 wide */
  TINY_MNN_GROUPS,
  TINY_MNN_BITS,             /* … has 5 bits */
  TINY_MNN_KIND,             /* … weights of kind 2 */
  TINY_MNN_EXTRA_SCALE,
  TINY_MNN_OLD_OFFSETS,
  TINY_MNN_INLINE,           /* … weights in the graph */
  TINY_MNN_NAME,             /* … an unknown name */
  TINY_MNN_TABLE,            /* … a table of values of its own */
  TINY_MNN_HEADER,           /* … sizes that differ from the graph's */
  TINY_MNN_BLOCK,            /* … too few scales for a block of 16 */
  TINY_MNN_BIAS,             /* … a bias */
  TINY_MNN_TWICE,            /* … comes twice */
  TINY_MNN_ABSENT,           /* … is not there */
  TINY_MNN_BETA,             /* the first norm adds */
  TINY_MNN_EPSILON,          /* … has another epsilon */
  TINY_MNN_LAYER_NORM,       /* … is no RMS norm */
  TINY_MNN_OPERATOR,         /* an operator of a type that is not known */
  TINY_MNN_SUBGRAPH,
  TINY_MNN_YARN,             /* cosines are scaled */
  TINY_MNN_NO_TABLES,        /* no cosines */
  TINY_MNN_HEADS,            /* layers differ in heads */
  TINY_MNN_SHARED,           /* layers share keys */
  TINY_MNN_TIE,              /* the embedding is elsewhere */
  TINY_MNN_HUGE_SCALE,       /* a float32 scale above half floats */
} TinyMnnFault;

typedef struct {
  gboolean fused;            /* FusedLinear, with norms folded in */
  gboolean partly;           /* … of queries, keys and values only */
  gboolean wide;             /* 32-bit sizes in headers; tables hold both halves
                                of a head */
  gboolean float_scales;     /* float32 */
  double scale_factor;       /* of float32 scales; 0: 1 */
  guint bits;                /* codes of 4 bits keep these low ones; 0: all */
  gboolean list;             /* tie_embeddings as a list */
  gboolean text;             /* tokenizer.txt */
  guint rope_factors;        /* frequencies from this pair on are halved; 0:
                                none */
  double rope_linear;        /* all frequencies divided by it; 0: 1 */
  TinyMnnFault fault;
} TinyMnn;

/* Writes the GGUF file or package @model, whose matrices are of a tiled type
 * (of 8 bits or origin 8) or F16, with the vocabulary of the GGUF file @tokens
 * as a package of MNN's into a fresh folder and returns its path;
 * tiny_mnn_remove removes it. Aborts on failure. */
char *tiny_mnn_write (const char *model, const char *tokens,
                      const TinyMnn *how);
void tiny_mnn_remove (const char *folder);
