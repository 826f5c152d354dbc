/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with interleaved weights. A 32-bit lane is a row of the tile: its
 * four bytes meet the same four columns of x in every lane, so that nothing
 * is ever summed across lanes.
 *
 * Up to MAX_STREAMED rows of x meet one tile after another, since memory is
 * fastest as one stream of tiles (measured: two at a time lose a third), and
 * share the unpacking of codes eight rows at a time. More rows meet panels of
 * two tiles of 4-bit codes that are unpacked once and stay in the nearest
 * cache: then four bytes of x are fetched for two tiles, and what is left is
 * little but products and sums. The products of 8-bit codes keep two pipes so
 * busy that a panel gains nothing.
 */
#include "avx2.h"

#define AT_ONCE 8               /* rows of x that share a tile's codes */
#define MAX_STREAMED 23
#define PREFETCH_BYTES 2560

/* The compiler sees another value: it neither moves what is computed from v
 * out of a loop, where registers are scarce, nor joins it with constants. */
#define OPAQUE(v) __asm__ ("" : "+r" (v))
#define OPAQUE_VECTOR(v) __asm__ ("" : "+x" (v))

/* What waits in memory while registers hold sums that are used more often. */
#define IN_MEMORY(v) __asm__ ("" : "+m" (v))

/* Rows of x at one group of 32 columns. The i-th row is i · odd[0] bytes
 * on, made from odd[] = 1, 3, 5, 7 rows by doubling as an address can have
 * it; its codes are eight times as far. */
typedef struct {
  const int8_t *q;
  const char *scale;
  const char *sum;
  const char *moment;
  size_t odd[4];
  size_t odd_codes[4];
} Rows;

ALWAYS_INLINE Rows
take_rows (const RunnelRows *x, uint32_t row)
{
  size_t groups = runnel_n_groups (x->columns);
  size_t at = row * groups;
  Rows rows = {
    .q = x->q + at * RUNNEL_GROUP,
    .scale = (const char *) (x->scale + at),
    .sum = (const char *) (x->sum + at),
    .moment = (const char *) (x->moment + at),
  };

  for (size_t i = 0; i < 4; i++) {
    rows.odd[i] = (2 * i + 1) * groups * sizeof (float);
    rows.odd_codes[i] = (2 * i + 1) * groups * RUNNEL_GROUP;
  }
  return rows;
}

/* Before a group of n rows is used. */
ALWAYS_INLINE void
hold_rows (Rows *rows, int n, RunnelTileForm form)
{
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    if (n > (i == 0 ? 1 : 2 * i + 1)) {
      OPAQUE (rows->odd[i]);
      OPAQUE (rows->odd_codes[i]);
    }
  }
  OPAQUE (rows->q);
  OPAQUE (rows->scale);
  if (form.origin == 8)
    OPAQUE (rows->sum);
  if (form.offset)
    OPAQUE (rows->moment);
}

ALWAYS_INLINE void
next_group (Rows *rows)
{
  rows->q += RUNNEL_GROUP;
  rows->scale += sizeof (float);
  rows->sum += sizeof (int32_t);
  rows->moment += sizeof (float);
}

ALWAYS_INLINE size_t
row_offset (const size_t odd[4], int i)
{
  switch (i) {
    case 0:
      return 0;
    case 2:
      return 2 * odd[0];
    case 4:
      return 4 * odd[0];
    case 6:
      return 2 * odd[1];
    default:
      return odd[i / 2];
  }
}

/* Four bytes of the i-th row, the same in every lane. */
ALWAYS_INLINE __m256i
load_codes (const Rows *rows, int i, int column)
{
  return broadcast_4_bytes (rows->q + row_offset (rows->odd_codes, i)
      + column);
}

ALWAYS_INLINE __m256
load_float (const char *values, const Rows *rows, int i)
{
  float value;

  memcpy (&value, values + row_offset (rows->odd, i), sizeof value);
  return _mm256_set1_ps (value);
}

/* Sum of 8 times the codes of the i-th row: of their origin. */
ALWAYS_INLINE __m256i
load_origin (const Rows *rows, int i)
{
  return _mm256_slli_epi32 (broadcast_4_bytes (rows->sum
          + row_offset (rows->odd, i)), 3);
}

/* Adds products of unsigned codes of up to 4 bits to sums of 16 bits. Of 32
 * columns eight pairs of products meet in one, at most 8 · 2 · 15 · 127 in
 * magnitude: 16 bits hold them. */
ALWAYS_INLINE __m256i
add_products (bool first, __m256i sum, __m256i codes, __m256i x)
{
  __m256i products = _mm256_maddubs_epi16 (codes, x);

  sum = first ? products : _mm256_add_epi16 (sum, products);
  OPAQUE_VECTOR (sum);
  return sum;
}

/* acc + (d · scale) · isum (+ m · moment). */
ALWAYS_INLINE __m256
add_group (__m256 acc, __m256 d, __m256 m, __m256i isum, __m256 scale,
    __m256 moment, bool offset)
{
  acc = _mm256_add_ps (acc, _mm256_mul_ps (_mm256_mul_ps (d, scale),
          _mm256_cvtepi32_ps (isum)));
  if (offset)
    acc = _mm256_add_ps (acc, _mm256_mul_ps (m, moment));
  return acc;
}

/* ---- A tile and a few rows --------------------------------------------- */

/* Integer sums of 32 columns of 4-bit codes. */
ALWAYS_INLINE void
sum_4_bits (const uint8_t *p, const Rows *rows, int n, bool origin_8,
    __m256i isum[AT_ONCE])
{
  const __m256i nibble = _mm256_set1_epi8 (15);

#pragma GCC unroll 4
  for (int v = 0; v < 4; v++) {
    __m256i codes = _mm256_loadu_si256 ((const __m256i *) (p + 32 * v));
    __m256i low, high;

    OPAQUE_VECTOR (codes);
    low = _mm256_and_si256 (codes, nibble);
    high = _mm256_and_si256 (_mm256_srli_epi16 (codes, 4), nibble);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
      isum[i] = add_products (v == 0, isum[i], low,
          load_codes (rows, i, 4 * v));
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
      isum[i] = add_products (false, isum[i], high,
          load_codes (rows, i, 4 * v + 16));
  }
#pragma GCC unroll 8
  for (int i = 0; i < n; i++) {
    isum[i] = _mm256_madd_epi16 (isum[i], _mm256_set1_epi16 (1));
    if (origin_8)
      isum[i] = _mm256_sub_epi32 (isum[i], load_origin (rows, i));
  }
}

/* The same of signed 8-bit codes; one pair of products, at most 2 · 128 · 127,
 * fills 16 bits. */
ALWAYS_INLINE void
sum_8_bits (const uint8_t *p, const Rows *rows, int n, __m256i isum[AT_ONCE])
{
#pragma GCC unroll 8
  for (int v = 0; v < 8; v++) {
    __m256i codes = _mm256_loadu_si256 ((const __m256i *) (p + 32 * v));
    __m256i magnitude;

    OPAQUE_VECTOR (codes);
    magnitude = _mm256_abs_epi8 (codes);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
      __m256i sums = _mm256_madd_epi16 (_mm256_maddubs_epi16 (magnitude,
              _mm256_sign_epi8 (load_codes (rows, i, 4 * v), codes)),
          _mm256_set1_epi16 (1));

      isum[i] = v == 0 ? sums : _mm256_add_epi32 (isum[i], sums);
      OPAQUE_VECTOR (isum[i]);
    }
  }
}

/* The tile at p times n rows. */
ALWAYS_INLINE void
multiply_tile (const uint8_t *p, uint32_t groups, Rows rows, int n,
    RunnelTileForm form, __m256 acc[AT_ONCE])
{
  const int heads = (int) runnel_tile_head_bytes (form);
  const int codes = (int) runnel_tile_code_bytes (form);
  const int per_scale = form.group / RUNNEL_GROUP;

#pragma GCC unroll 8
  for (int i = 0; i < n; i++)
    acc[i] = _mm256_setzero_ps ();
  while (groups > 0) {
    __m256 d = lanes_load_halves (p), m = d;

    if (form.offset)
      m = lanes_load_halves (p + 16);
    p += heads;
#pragma GCC unroll 2
    for (int k = 0; k < per_scale; k++) {
      __m256i isum[AT_ONCE];

      hold_rows (&rows, n, form);
      OPAQUE (p);
      for (int line = 0; line < codes; line += 64)
        _mm_prefetch ((const char *) p + PREFETCH_BYTES + line, _MM_HINT_T0);
      if (form.bits == 4)
        sum_4_bits (p, &rows, n, form.origin == 8, isum);
      else
        sum_8_bits (p, &rows, n, isum);
#pragma GCC unroll 8
      for (int i = 0; i < n; i++) {
        acc[i] = add_group (acc[i], d, m, isum[i],
            load_float (rows.scale, &rows, i),
            load_float (rows.moment, &rows, i), form.offset);
        if (n > 6)              /* else there are registers for all */
          IN_MEMORY (acc[i]);
      }
      p += codes;
      next_group (&rows);
      if (--groups == 0)
        break;
    }
  }
}

/* The t-th tile times n rows of x from the first on. */
ALWAYS_INLINE void
multiply_rows (const RunnelMatrix *w, const RunnelRows *x, uint32_t first,
    int n, const float *bias, float *y, size_t y_stride, uint32_t t,
    RunnelTileForm form)
{
  __m256 acc[AT_ONCE];

  multiply_tile (w->data + t * w->stride, runnel_n_groups (w->columns),
      take_rows (x, first), n, form, acc);
#pragma GCC unroll 8
  for (int i = 0; i < n; i++)
    store_tile (acc[i], w, t * RUNNEL_TILE_ROWS, bias,
        y + (first + (uint32_t) i) * y_stride);
}

/* The t-th tile times all rows, in parts of nearly the same size. */
ALWAYS_INLINE void
stream_tile (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t t, RunnelTileForm form)
{
  for (uint32_t i = 0, n; i < x->n; i += n) {
    uint32_t left = x->n - i, n_parts = (left + AT_ONCE - 1) / AT_ONCE;

    n = (left + n_parts - 1) / n_parts;
    switch (n) {
#define CASE(n)                                                               \
      case n:                                                                 \
        multiply_rows (w, x, i, n, bias, y, y_stride, t, form);               \
        break;
      CASE (1) CASE (2) CASE (3) CASE (4) CASE (5) CASE (6) CASE (7) CASE (8)
#undef CASE
    }
  }
}

/* ---- Panels and many rows ---------------------------------------------- */

#define PANEL_TILES 2
#define PANEL_GROUPS 32         /* 20 KiB, beside which rows of x have room */
#define PANEL_ROWS 4
#define PANEL_LINES 5           /* of a cache, that hold 32 columns of tiles */

/* Of tiles and groups of 32 columns, in the order of their use: vectors of
 * one code a byte, scales and offsets. */
typedef struct {
  __m256i codes[PANEL_GROUPS][8][PANEL_TILES];
  __m256 d[PANEL_GROUPS][PANEL_TILES];
  __m256 m[PANEL_GROUPS][PANEL_TILES];
} Panel;

/* n groups of 4-bit codes from the first on, which begins a group of `form`. */
ALWAYS_INLINE void
unpack_tile (const uint8_t *p, uint32_t first, uint32_t n, RunnelTileForm form,
    Panel *panel, int t)
{
  const __m256i nibble = _mm256_set1_epi8 (15);
  const size_t heads = runnel_tile_head_bytes (form);
  const size_t codes = runnel_tile_code_bytes (form);
  const uint32_t per_scale = (uint32_t) form.group / RUNNEL_GROUP;

  p += first / per_scale * heads + first * codes;
  for (uint32_t g = 0; g < n;) {
    __m256 d = lanes_load_halves (p), m = d;

    if (form.offset)
      m = lanes_load_halves (p + 16);
    p += heads;
    for (uint32_t k = 0; k < per_scale && g < n; k++, g++, p += codes) {
      panel->d[g][t] = d;
      if (form.offset)
        panel->m[g][t] = m;
#pragma GCC unroll 4
      for (int v = 0; v < 4; v++) {
        __m256i packed
            = _mm256_loadu_si256 ((const __m256i *) (p + 32 * v));

        panel->codes[g][v][t] = _mm256_and_si256 (packed, nibble);
        panel->codes[g][v + 4][t]
            = _mm256_and_si256 (_mm256_srli_epi16 (packed, 4), nibble);
      }
    }
  }
}

/* Sums of 32 columns, half of them in either half of a lane. */
ALWAYS_INLINE void
sum_panel (const __m256i codes[8][PANEL_TILES],
    const int8_t *const q[PANEL_ROWS], int n,
    __m256i sums[PANEL_ROWS][PANEL_TILES])
{
#pragma GCC unroll 8
  for (int v = 0; v < 8; v++) {
    __m256i c0 = codes[v][0], c1 = codes[v][1];

#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
      __m256i x = broadcast_4_bytes (q[i] + 4 * v);
      __m256i a = _mm256_maddubs_epi16 (c0, x);
      __m256i b = _mm256_maddubs_epi16 (c1, x);

      sums[i][0] = v == 0 ? a : _mm256_add_epi16 (sums[i][0], a);
      sums[i][1] = v == 0 ? b : _mm256_add_epi16 (sums[i][1], b);
      __asm__ ("" : : "x" (sums[i][0]), "x" (sums[i][1]));    /* in order */
    }
  }
}

/* Panel, which begins with the first-th 32 columns, times n rows of x from
 * the row-th on, which the next ones follow in memory; `ahead`, if not NULL,
 * is what will be unpacked next, a line of a cache for every group. (A
 * pointer for every row is faster here, by 7 %, than offsets of rows.) */
ALWAYS_INLINE void
multiply_panel (const Panel *panel, uint32_t first, uint32_t groups,
    const RunnelRows *x, uint32_t row, int n, const uint8_t *ahead,
    RunnelTileForm form, __m256 acc[PANEL_ROWS][PANEL_TILES])
{
  const size_t row_groups = runnel_n_groups (x->columns);
  const int8_t *q[PANEL_ROWS];
  size_t at[PANEL_ROWS];

#pragma GCC unroll 4
  for (int i = 0; i < n; i++) {
    at[i] = (row + (uint32_t) i) * row_groups + first;
    q[i] = x->q + at[i] * RUNNEL_GROUP;
  }
  for (uint32_t g = 0; g < groups; g++) {
    __m256i sums[PANEL_ROWS][PANEL_TILES];

    if (ahead != NULL)
      _mm_prefetch ((const char *) ahead + 64 * g, _MM_HINT_T1);
    sum_panel (panel->codes[g], q, n, sums);
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
      __m256 scale = _mm256_set1_ps (x->scale[at[i]]);
      __m256 moment = _mm256_set1_ps (x->moment[at[i]]);
      __m256i origin = _mm256_slli_epi32 (_mm256_set1_epi32 (x->sum[at[i]]),
          3);

#pragma GCC unroll 2
      for (int t = 0; t < PANEL_TILES; t++) {
        __m256i isum
            = _mm256_madd_epi16 (sums[i][t], _mm256_set1_epi16 (1));

        if (form.origin == 8)
          isum = _mm256_sub_epi32 (isum, origin);
        acc[i][t] = add_group (acc[i][t], panel->d[g][t], panel->m[g][t],
            isum, scale, moment, form.offset);
      }
      _mm_prefetch ((const char *) q[i]
          + PANEL_ROWS * row_groups * RUNNEL_GROUP, _MM_HINT_T0);
      q[i] += RUNNEL_GROUP;
      at[i]++;
    }
  }
}

/* Where a panel lies in a product. */
typedef struct {
  uint32_t t;                  /* its first tile */
  uint32_t group;              /* its first 32 columns */
  uint32_t n_groups;
  bool is_last;                /* of these tiles */
} Place;

/* n rows of x from the first on; sums wait in y for the next panel. Meanwhile
 * the first rows fetch the tiles that follow. */
ALWAYS_INLINE void
add_panel (const RunnelMatrix *w, const Panel *panel, Place at,
    const RunnelRows *x, uint32_t first, int n, const float *bias, float *y,
    size_t y_stride, RunnelTileForm form)
{
  __m256 acc[PANEL_ROWS][PANEL_TILES];
  uint32_t row = at.t * RUNNEL_TILE_ROWS, part = first / PANEL_ROWS;
  const uint8_t *ahead = NULL;

  if (part < PANEL_LINES)
    ahead = w->data + (at.t + PANEL_TILES) * w->stride
        + 64 * (PANEL_LINES * at.group + part * at.n_groups);
  y += first * y_stride;
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) {
#pragma GCC unroll 2
    for (int t = 0; t < PANEL_TILES; t++)
      acc[i][t] = at.group == 0 ? _mm256_setzero_ps ()
          : lanes_load (y + i * y_stride + row + t * RUNNEL_TILE_ROWS);
  }
  multiply_panel (panel, at.group, at.n_groups, x, first, n, ahead, form, acc);
#pragma GCC unroll 4
  for (int i = 0; i < n; i++, y += y_stride) {
#pragma GCC unroll 2
    for (int t = 0; t < PANEL_TILES; t++) {
      if (at.is_last)
        store_tile (acc[i][t], w, row + t * RUNNEL_TILE_ROWS, bias, y);
      else
        lanes_store (y + row + t * RUNNEL_TILE_ROWS, acc[i][t]);
    }
  }
}

/* Two tiles from the t-th on times all rows. */
ALWAYS_INLINE void
multiply_tiles (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t t, RunnelTileForm form)
{
  const uint32_t groups = runnel_n_groups (w->columns);
  Panel panel;

  for (uint32_t g = 0; g < groups; g += PANEL_GROUPS) {
    uint32_t left = groups - g, i = 0;
    Place at = { t, g, left < PANEL_GROUPS ? left : PANEL_GROUPS,
                 left <= PANEL_GROUPS };

    for (uint32_t k = 0; k < PANEL_TILES; k++)
      unpack_tile (w->data + (t + k) * w->stride, g, at.n_groups, form, &panel,
          (int) k);
    for (; i + PANEL_ROWS <= x->n; i += PANEL_ROWS)
      add_panel (w, &panel, at, x, i, PANEL_ROWS, bias, y, y_stride, form);
    for (; i < x->n; i++)
      add_panel (w, &panel, at, x, i, 1, bias, y, y_stride, form);
  }
}

ALWAYS_INLINE void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    RunnelTileForm form)
{
  uint32_t t = tile_begin;

  if (form.bits == 4 && x->n > MAX_STREAMED) {
    for (; t + PANEL_TILES <= tile_end; t += PANEL_TILES)
      multiply_tiles (w, x, bias, y, y_stride, t, form);
  }
  for (; t < tile_end; t++)
    stream_tile (w, x, bias, y, y_stride, t, form);
}

#define DEFINE_MATMUL(kind, name)                                             \
  RUNNEL_DECLARE_MATMUL (runnel_avx2_matmul_##name)                           \
  {                                                                           \
    matmul (w, x, bias, y, y_stride, tile_begin, tile_end,                    \
        runnel_matrix_tile_form (RUNNEL_MATRIX_##kind));                      \
  }

RUNNEL_FOR_EACH_TILE_KIND (DEFINE_MATMUL)
