/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The CPU kernels: what each computes and how its data lies in memory. The
 * plain C kernels (scalar/) define the bits by the rules of
 * docs/exactness.md; every other level gives the same bits. Nothing here
 * depends on GLib, so the kernels build for any target.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../formats/tiles.h"

#define RUNNEL_GROUP 32        /* columns that share an activation scale */
#define RUNNEL_KV_TILE 8       /* keys interleaved in a tile of K */
#define RUNNEL_KEY_BLOCK 256   /* keys whose softmax is computed together */

/* ---- Weight matrices ------------------------------------------------- */

/* Interleaved kinds are tiles of 8 rows. The INT ones are those that
 * core/formats/tiles.h describes. The K ones hold the file's blocks of 256
 * columns (see core/formats/blocks.h), one of each row and four bytes of a row
 * in turn: byte 4·i + b of row r is byte 32·i + 4·r + b of the eight; where a
 * block ends in two bytes, they are 16 bytes of pairs. Row-major kinds are the
 * file's own rows. */
typedef enum {
  RUNNEL_MATRIX_INT4_32,          /* also from Q4_0 */
  RUNNEL_MATRIX_INT4_32_OFFSET,   /* also from Q4_1 */
  RUNNEL_MATRIX_INT4_32_CENTRED,
  RUNNEL_MATRIX_INT4_64,
  RUNNEL_MATRIX_INT4_64_OFFSET,
  RUNNEL_MATRIX_INT4_64_CENTRED,
  RUNNEL_MATRIX_INT8_32,          /* also from Q8_0, Q5_0 (codes −16 … 15) */
  RUNNEL_MATRIX_INT8_32_OFFSET,   /* also from Q5_1 (codes 0 … 31) */
  RUNNEL_MATRIX_INT8_64,
  RUNNEL_MATRIX_INT8_64_OFFSET,
  RUNNEL_MATRIX_Q2_K,
  RUNNEL_MATRIX_Q3_K,
  RUNNEL_MATRIX_Q4_K,
  RUNNEL_MATRIX_Q5_K,
  RUNNEL_MATRIX_Q6_K,
  RUNNEL_MATRIX_F32,         /* row-major from here on */
  RUNNEL_MATRIX_F16,
  RUNNEL_MATRIX_BF16,
  RUNNEL_N_MATRIX_KINDS
} RunnelMatrixKind;

typedef struct {
  RunnelMatrixKind kind;
  uint32_t rows;             /* outputs */
  uint32_t columns;          /* inputs */
  size_t stride;             /* bytes of a tile (interleaved) or of a row */
  const uint8_t *data;       /* any alignment */
} RunnelMatrix;

static inline bool
runnel_matrix_is_interleaved (RunnelMatrixKind kind)
{
  return kind <= RUNNEL_MATRIX_Q6_K;
}

/* The form of an INT kind. */
static inline RunnelTileForm
runnel_matrix_tile_form (RunnelMatrixKind kind)
{
  switch (kind) {
    case RUNNEL_MATRIX_INT4_32:
      return (RunnelTileForm) { 4, 32, 8, false };
    case RUNNEL_MATRIX_INT4_32_OFFSET:
      return (RunnelTileForm) { 4, 32, 0, true };
    case RUNNEL_MATRIX_INT4_32_CENTRED:
      return (RunnelTileForm) { 4, 32, 8, true };
    case RUNNEL_MATRIX_INT4_64:
      return (RunnelTileForm) { 4, 64, 8, false };
    case RUNNEL_MATRIX_INT4_64_OFFSET:
      return (RunnelTileForm) { 4, 64, 0, true };
    case RUNNEL_MATRIX_INT4_64_CENTRED:
      return (RunnelTileForm) { 4, 64, 8, true };
    case RUNNEL_MATRIX_INT8_32:
      return (RunnelTileForm) { 8, 32, 0, false };
    case RUNNEL_MATRIX_INT8_32_OFFSET:
      return (RunnelTileForm) { 8, 32, 0, true };
    case RUNNEL_MATRIX_INT8_64:
      return (RunnelTileForm) { 8, 64, 0, false };
    default:
      return (RunnelTileForm) { 8, 64, 0, true };
  }
}

/* Whether the product takes quantised activations. */
static inline bool
runnel_matrix_is_quantised (RunnelMatrixKind kind)
{
  return kind < RUNNEL_MATRIX_F32;
}

static inline uint32_t
runnel_matrix_n_tiles (const RunnelMatrix *w)
{
  return (w->rows + RUNNEL_TILE_ROWS - 1) / RUNNEL_TILE_ROWS;
}

static inline uint32_t
runnel_n_groups (uint32_t columns)
{
  return (columns + RUNNEL_GROUP - 1) / RUNNEL_GROUP;
}

/* ---- Activations ------------------------------------------------------ */

/* n rows of float activations and, beside them, the same rows quantised: of
 * each group of 32 columns an 8-bit code per column, a scale, the integer sum
 * of the codes and the moment = scale · (float) sum. Columns past the end of
 * the last group have code 0. Arrays are 64-byte aligned. */
typedef struct {
  uint32_t n;
  uint32_t columns;
  float *f;                  /* [n][f_stride] */
  size_t f_stride;
  int8_t *q;                 /* [n][groups · 32] */
  float *scale;              /* [n][groups] */
  int32_t *sum;              /* [n][groups] */
  float *moment;             /* [n][groups] */
} RunnelRows;

/* ---- Keys and values --------------------------------------------------- */

typedef enum { RUNNEL_KV_F16, RUNNEL_KV_F32, RUNNEL_KV_INT8 } RunnelKvFormat;

/* How one layer's keys and values lie in a page of page_rows rows (a multiple
 * of 8): K as [kv_head][row / 8][head_dim][row % 8], then V as
 * [kv_head][row][head_dim], elements of the KV type. Behind the elements of
 * either plane INT8 has their scales, floats [kv_head][row]. */
typedef struct {
  RunnelKvFormat format;
  uint32_t page_rows;
  uint32_t n_kv_heads;
  uint32_t head_dim;
} RunnelKvLayout;

static inline size_t
runnel_kv_element_size (RunnelKvFormat format)
{
  return format == RUNNEL_KV_INT8 ? 1 : format == RUNNEL_KV_F16 ? 2 : 4;
}

/* Bytes of a head's row of K alone (or V alone) with its scale. */
static inline size_t
runnel_kv_row_bytes (const RunnelKvLayout *kv)
{
  return kv->head_dim * runnel_kv_element_size (kv->format)
      + (kv->format == RUNNEL_KV_INT8 ? sizeof (float) : 0);
}

/* Bytes of K alone (or V alone) of one layer in a page. */
static inline size_t
runnel_kv_plane_bytes (const RunnelKvLayout *kv)
{
  return (size_t) kv->page_rows * kv->n_kv_heads * runnel_kv_row_bytes (kv);
}

/* Where in a plane of INT8 the scale of a head's row is. */
static inline size_t
runnel_kv_scale_offset (const RunnelKvLayout *kv, uint32_t head, uint32_t row)
{
  return (size_t) kv->page_rows * kv->n_kv_heads * kv->head_dim
      + ((size_t) head * kv->page_rows + row) * sizeof (float);
}

/* A run of rows of a page that are consecutive keys of a sequence. */
typedef struct {
  uint8_t *layer;            /* this layer's K in the page; V follows */
  uint32_t first;            /* row in the page */
  uint32_t n;
  uint32_t key;              /* logical index of the first row */
} RunnelKvRun;

/* What attention over one block of keys leaves for each query. */
typedef struct {
  float max;
  float sum;
  float out[];               /* [head_dim] */
} RunnelPartial;

/* ---- The table --------------------------------------------------------- */

/* All kernels may be called from any thread at once on disjoint outputs and
 * neither allocate nor keep state. The caller has set the floating-point
 * control word (runnel_fp_enter). */
typedef struct {
  const char *name;          /* "scalar", "avx2", "neon", ... */

  /* y[i][r] = Σ_c w[r][c]·x[i][c] (+ bias[r] if not NULL) for the rows r of
   * tiles [tile_begin, tile_end) and every row i of x. y has y_stride floats
   * a row and room for whole tiles; padding rows get 0. */
  void (*matmul[RUNNEL_N_MATRIX_KINDS]) (const RunnelMatrix *w,
                                         const RunnelRows *x,
                                         const float *bias, float *y,
                                         size_t y_stride, uint32_t tile_begin,
                                         uint32_t tile_end);

  /* One row of a matrix as floats: the embedding. */
  void (*row) (const RunnelMatrix *w, uint32_t row, float *y);

  /* Fills q, scale, sum and moment of groups [group_begin, group_end) of row
   * i from f. */
  void (*quantise) (RunnelRows *x, uint32_t i, uint32_t group_begin,
                    uint32_t group_end);

  /* y = x / rms (x) · weight */
  void (*norm) (const float *x, const float *weight, float epsilon,
                uint32_t columns, float *y);

  /* x += y */
  void (*add) (float *x, const float *y, uint32_t n);

  /* gate = gate / (1 + exp (−gate)) · up */
  void (*silu_mul) (float *gate, const float *up, uint32_t n);

  /* Rotates the first 2·half elements of a head: pairs (2i, 2i+1), or (i,
   * i + half) when halves is set, by cos[i], sin[i]. */
  void (*rope) (float *head, const float *cos, const float *sin, uint32_t half,
                bool halves);

  /* x *= factor */
  void (*scale) (float *x, float factor, uint32_t n);

  /* y = (base + factor)·x, or y += it: a tap of a depthwise convolution over
   * n channels that share a factor. y may be x. */
  void (*conv_tap) (float *y, const float *x, const float *base, float factor,
                    uint32_t n, bool add);

  /* Writes one row of keys and values, k and v of [n_kv_heads][head_dim],
   * rounded to the KV format, as row `row` of a page's layer. */
  void (*kv_store) (const RunnelKvLayout *kv, uint8_t *layer, uint32_t row,
                    const float *k, const float *v);

  /* Reads it back as floats (saving state, shifting). */
  void (*kv_load) (const RunnelKvLayout *kv, const uint8_t *layer,
                   uint32_t row, float *k, float *v);

  /* Attention of queries over the keys [key_begin, key_end), at most
   * RUNNEL_KEY_BLOCK of them starting at a multiple of it, of one KV head.
   * Query (i, h) is q + i·q_stride + h·head_dim, already scaled; it sees the
   * keys below limits[i]. Each query with at least one visible key gets a
   * partial at partials + (i·n_heads + h)·partial_stride bytes; the others'
   * are left untouched. runs are in ascending key order and cover the block;
   * they may reach beyond it. */
  void (*attend) (const RunnelKvLayout *kv, const RunnelKvRun *runs,
                  uint32_t n_runs, uint32_t kv_head, uint32_t key_begin,
                  uint32_t key_end, const float *q, size_t q_stride,
                  uint32_t n_queries, uint32_t n_heads, const uint32_t *limits,
                  uint8_t *partials, size_t partial_stride);

  /* into = into ⊕ from, where from holds later keys. */
  void (*merge) (RunnelPartial *into, const RunnelPartial *from,
                 uint32_t head_dim);

  /* y = partial.out / partial.sum */
  void (*finish) (const RunnelPartial *partial, uint32_t head_dim, float *y);

  /* Index of the first element that is not finite, or n. */
  uint32_t (*find_non_finite) (const float *x, uint32_t n);

  /* Multiply-adds of bytes, and of floats, as fast as the level's instructions
   * allow and without memory; returns how many they were. What they compute
   * is of no use: they show what the processor could do. */
  uint64_t (*peak_integer) (uint64_t rounds);
  uint64_t (*peak_float) (uint64_t rounds);
} RunnelKernels;

/* Levels above scalar that this machine has and this build holds. */
enum {
  RUNNEL_CPU_AVX2 = 1u << 0,       /* with FMA and F16C, and the OS's consent */
  RUNNEL_CPU_NEON = 1u << 1,
  RUNNEL_CPU_DOTPROD = 1u << 2,
  RUNNEL_CPU_I8MM = 1u << 3,
  RUNNEL_CPU_AVX512VNNI = 1u << 4,   /* with AVX-512 F and BW */
};

uint32_t runnel_cpu_flags (void);

/* The best table for flags & runnel_cpu_flags (). Never NULL. */
const RunnelKernels *runnel_kernels_select (uint32_t flags);

/* By level name ("scalar", "avx2", "avx512vnni", "neon", "dotprod", "i8mm", "auto"); NULL
 * when it is unknown or this machine lacks it. */
const RunnelKernels *runnel_kernels_by_name (const char *name);

/* Names of the levels this machine can run, best last; NULL-terminated. */
const char *const *runnel_kernels_names (void);

extern const RunnelKernels runnel_kernels_scalar;

/* Puts this thread into the rounding mode and denormal handling that the
 * kernels need, and back. */
uint64_t runnel_fp_enter (void);
void runnel_fp_leave (uint64_t saved);

/* ---- Packing ------------------------------------------------------------ */

/* The kind that a file's tensor type (its GGUF number) becomes; false when
 * there is none. */
bool runnel_matrix_kind_for_type (uint32_t tensor_type, RunnelMatrixKind *kind);

/* Whether a file's tensor type is tiled already, so that its data are used as
 * they are. */
bool runnel_matrix_is_packed (uint32_t tensor_type);

/* Bytes of a tile (interleaved) or row of a kind; columns must be whole
 * blocks. */
size_t runnel_matrix_stride (RunnelMatrixKind kind, uint32_t columns);

/* Interleaves rows of a file's tensor (type as above, row-major at src,
 * src_stride bytes a row) into tiles [tile_begin, tile_end) at dst (the start
 * of the whole matrix). Lossless. */
void runnel_matrix_pack (uint32_t tensor_type, const uint8_t *src,
                         size_t src_stride, uint32_t rows, uint32_t columns,
                         uint8_t *dst, uint32_t tile_begin, uint32_t tile_end);

/* ---- Elementary functions of fixed form ---------------------------------- */

float runnel_exp (float x);                      /* as the kernels compute it */
double runnel_log (double x);                    /* finite x > 0 */
double runnel_pow (double base, double exponent); /* base > 0 */
void runnel_sin_cos (double angle, double *sin, double *cos); /* |angle| < 2^40 */
