/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The outputs of a matrix are off by (w - v)' H (w - v), H the second moments
 * of its inputs. Columns are rounded in order first, each with what those
 * before it lost. Then, group by group and round by round, the scale and the
 * offset of least squares for these codes and the best code of one column
 * after the other, all others as they are, make it smaller still: coordinate
 * descent, as Behdin et al. do ("QuantEase", 2023).
 */
#include "quantise-private.h"

#include <string.h>

#define N_ROUNDS 2
#define MAX_BLOCK RUNNEL_QUANTISE_BLOCK
#define MAX_GROUP RUNNEL_QUANTISE_GROUP

typedef struct {
  float d, m;
} Scale;

/* The columns of a block of a tile. */
typedef struct {
  int n;
  RunnelTileForm form;
  const float *factor, *moments;    /* [n][stride] */
  size_t stride;
  struct Row {
    bool used;
    float x[MAX_BLOCK];             /* what is left to be rounded */
    float slope[MAX_BLOCK];         /* H (w - v) */
    float codes[MAX_BLOCK];         /* less the origin */
    Scale scales[MAX_BLOCK / RUNNEL_TILE_COLUMNS];   /* of each group */
  } rows[RUNNEL_TILE_ROWS];
} Block;

typedef struct Row Row;

static int
get_width (const Block *block, int first)
{
  const int left = block->n - first;

  return left < block->form.group ? left : block->form.group;
}

/* Takes @amounts of the @n rows of @matrix that begin with @first from @to, at
 * the columns from @from to @end, four rows at a time. */
static void
subtract_rows (const float *matrix, size_t stride, int first, int n,
               const float *amounts, float *restrict to, int from, int end)
{
  for (int c = 0; c < n; c += 4) {
    const float *row = matrix + (size_t) (first + c) * stride;
    const float *a = amounts + c;

    for (int k = from; k < end; k++)
      to[k] -= (a[0] * row[k] + a[1] * row[stride + k])
          + (a[2] * row[2 * stride + k] + a[3] * row[3 * stride + k]);
  }
}

/* ---- In order ------------------------------------------------------------ */

/* A row of a group, rounded in order. */
typedef struct {
  Scale scale;
  float cost;                       /* what it adds to (w - v)' H (w - v) */
  float codes[MAX_GROUP];
  float errors[MAX_GROUP];          /* what columns behind are corrected by */
} Rounded;

/* The group's own columns are corrected at once. */
static Rounded
round_in_order (const Block *block, int first,
                const RunnelQuantiseGroup *group, Scale scale)
{
  const float inverse = scale.d != 0 ? 1 / scale.d : 0;
  Rounded self = { .scale = scale };
  float x[MAX_GROUP];

  memcpy (x, group->x, sizeof x);
  for (int c = 0; c < group->n; c++) {
    const float *factor
        = block->factor + (size_t) (first + c) * block->stride + first;
    const Lanes code = runnel_quantise_round (group,
        runnel_quantise_spread ((x[c] - scale.m) * inverse));
    const float error = (x[c] - (scale.d * code[0] + scale.m)) / factor[c];

    self.codes[c] = code[0];
    self.errors[c] = error;
    self.cost += error * error;
    for (int k = c + 1; k < group->n; k++)
      x[k] -= error * factor[k];
  }
  return self;
}

/* By the scale that costs least, of the best few. */
static Rounded
round_group (const Block *block, int first, const RunnelQuantiseGroup *group)
{
  RunnelQuantiseFit fits[RUNNEL_QUANTISE_FITS];
  const int n = runnel_quantise_fit_some (group, fits);
  Rounded best;

  for (int i = 0; i < n; i++) {
    Rounded rounded = round_in_order (block, first, group,
        (Scale) { fits[i].d, fits[i].m });

    if (i == 0 || rounded.cost < best.cost)
      best = rounded;
  }
  return best;
}

static void
begin_group (Block *block, int first)
{
  const int n = get_width (block, first);
  float importance[MAX_GROUP];

  for (int c = 0; c < n; c++) {
    float diagonal
        = block->factor[(size_t) (first + c) * block->stride + first + c];

    /* An error here costs so much after the others have done their best. */
    importance[c] = 1 / (diagonal * diagonal);
  }
  for (int r = 0; r < RUNNEL_TILE_ROWS; r++) {
    Row *row = &block->rows[r];
    RunnelQuantiseGroup group = { 0 };
    Rounded rounded;

    if (!row->used)
      continue;
    runnel_quantise_fill (&group, block->form, row->x + first, importance, n);
    rounded = round_group (block, first, &group);
    row->scales[first / block->form.group] = rounded.scale;
    memcpy (row->codes + first, rounded.codes, n * sizeof (float));
    subtract_rows (block->factor, block->stride, first, n, rounded.errors,
        row->x, first + n, block->n);
  }
}

/* ---- Round by round ------------------------------------------------------ */

static const float ones[MAX_GROUP] = { [0 ... MAX_GROUP - 1] = 1 };

/* What is the same for all rows of a group. */
typedef struct {
  int first, n;
  float of_ones[MAX_GROUP];         /* H 1, within the group */
  float ones_ones;                  /* 1' H 1 */
} Square;

static float
dot (const float *a, const float *b, int n)
{
  Lanes sum = runnel_quantise_spread (0);

  for (int i = 0; i < n; i += LANES) {
    Lanes left, right;

    memcpy (&left, a + i, sizeof left);
    memcpy (&right, b + i, sizeof right);
    sum += left * right;
  }
  return runnel_quantise_add_lanes (sum);
}

/* The product of the group's part of H. */
static void
multiply (const Block *block, const Square *square, const float *values,
          float product[MAX_GROUP])
{
  for (int c = 0; c < square->n; c++)
    product[c] = dot (block->moments
        + (size_t) (square->first + c) * block->stride + square->first, values,
        square->n);
}

/* The scale and the offset of least squares for the codes as they are, each
 * rounded when it is known. */
static void
fit_scale (const Block *block, const Square *square, Row *row, Scale *scale,
           float changes[MAX_GROUP])
{
  const float *codes = row->codes + square->first;
  const double ones_ones = square->ones_ones;
  float *slope = row->slope + square->first;
  float of_codes[MAX_GROUP];
  double along_q = dot (slope, codes, square->n), along_1 = 0;
  double qq, q1 = 0, d, m = 0;
  Scale next = *scale;

  multiply (block, square, codes, of_codes);
  qq = dot (of_codes, codes, square->n);
  if (!(qq > 0))
    return;
  d = along_q / qq;
  if (block->form.offset) {
    double across;

    along_1 = dot (slope, ones, square->n);
    q1 = dot (of_codes, ones, square->n);
    across = qq * ones_ones - q1 * q1;
    d = across > 1e-6 * qq * ones_ones
        ? (along_q * ones_ones - along_1 * q1) / across : 0;
  }
  next.d = runnel_quantise_round_to_half (scale->d + (float) d);
  d = (double) next.d - scale->d;
  if (block->form.offset) {
    m = (along_1 - d * q1) / ones_ones;
    next.m = runnel_quantise_round_to_half (scale->m + (float) m);
    m = (double) next.m - scale->m;
  }
  /* Rounding may have made it worse. */
  if (next.d == 0 || !(d * along_q + m * along_1
          > 0.5 * (d * d * qq + 2 * d * m * q1 + m * m * ones_ones)))
    return;
  *scale = next;
  for (int c = 0; c < square->n; c++) {
    changes[c] += (float) d * codes[c] + (float) m;
    slope[c] -= (float) d * of_codes[c] + (float) m * square->of_ones[c];
  }
}

/* The best code of each column, the others as they are. */
static void
choose_codes (const Block *block, const Square *square,
              const RunnelQuantiseGroup *limits, Row *row, Scale scale,
              float changes[MAX_GROUP])
{
  const float inverse = scale.d != 0 ? 1 / scale.d : 0;
  float *codes = row->codes + square->first;
  float *slope = row->slope + square->first;

  for (int c = 0; c < square->n; c++) {
    const float *moments = block->moments
        + (size_t) (square->first + c) * block->stride + square->first;
    const Lanes code = runnel_quantise_round (limits,
        runnel_quantise_spread (codes[c] + slope[c] / moments[c] * inverse));
    const float change = (code[0] - codes[c]) * scale.d;

    if (change == 0)
      continue;
    codes[c] = code[0];
    changes[c] += change;
    for (int k = 0; k < square->n; k++)
      slope[k] -= change * moments[k];
  }
}

static void
improve_group (Block *block, const RunnelQuantiseGroup *limits, int first)
{
  Square square = { .first = first, .n = get_width (block, first) };

  multiply (block, &square, ones, square.of_ones);
  square.ones_ones = dot (square.of_ones, ones, square.n);
  for (int r = 0; r < RUNNEL_TILE_ROWS; r++) {
    Row *row = &block->rows[r];
    Scale *scale = &row->scales[first / block->form.group];
    float changes[MAX_GROUP] = { 0 };

    if (!row->used)
      continue;
    fit_scale (block, &square, row, scale, changes);
    choose_codes (block, &square, limits, row, *scale, changes);
    subtract_rows (block->moments, block->stride, first, square.n, changes,
        row->slope, 0, first);
    subtract_rows (block->moments, block->stride, first, square.n, changes,
        row->slope, first + square.n, block->n);
  }
}

/* H times what the codes in order have lost. */
static void
begin_slopes (Block *block, const float *const rows[RUNNEL_TILE_ROWS])
{
  for (int r = 0; r < RUNNEL_TILE_ROWS; r++)
    memset (block->rows[r].slope, 0, sizeof block->rows[r].slope);
  for (int first = 0; first < block->n; first += block->form.group)
    for (int r = 0; r < RUNNEL_TILE_ROWS; r++) {
      Row *row = &block->rows[r];
      const Scale scale = row->scales[first / block->form.group];
      const int n = get_width (block, first);
      float excess[MAX_GROUP];

      for (int c = 0; row->used && c < n; c++)
        excess[c] = scale.d * row->codes[first + c] + scale.m
            - rows[r][first + c];
      if (row->used)
        subtract_rows (block->moments, block->stride, first, n, excess,
            row->slope, 0, block->n);
    }
}

/* ---- Tiles --------------------------------------------------------------- */

static void
quantise_block (Block *block, const float *const rows[RUNNEL_TILE_ROWS])
{
  const int step = block->form.group;
  RunnelQuantiseGroup limits;

  for (int r = 0; r < RUNNEL_TILE_ROWS; r++) {
    block->rows[r].used = rows[r] != NULL;
    if (rows[r] != NULL)
      memcpy (block->rows[r].x, rows[r], block->n * sizeof (float));
  }
  for (int first = 0; first < block->n; first += step)
    begin_group (block, first);
  if (block->form.bits > 4)   /* they lose too little for it to be worth it */
    return;
  begin_slopes (block, rows);
  runnel_quantise_fill (&limits, block->form, NULL, NULL, 0);
  for (int round = 0; round < N_ROUNDS; round++)
    for (int first = 0; first < block->n; first += step)
      improve_group (block, &limits, first);
}

static void
put_block (const Block *block, uint8_t *at, size_t group_bytes)
{
  for (int r = 0; r < RUNNEL_TILE_ROWS; r++)
    for (int first = 0; block->rows[r].used && first < block->n;
        first += block->form.group) {
      const int group = first / block->form.group;
      const Scale scale = block->rows[r].scales[group];

      runnel_quantise_put (block->form, scale.d, scale.m,
          block->rows[r].codes + first, get_width (block, first), r,
          at + (size_t) group * group_bytes);
    }
}

void
runnel_quantise_tile_with_feedback (RunnelTensorType type,
                                    const float *const rows[RUNNEL_TILE_ROWS],
                                    uint32_t columns,
                                    const RunnelFeedback *feedback,
                                    uint8_t *tile)
{
  const size_t stride = feedback->block;
  size_t group_bytes;
  Block block;

  block.form = runnel_quantise_form (type, &group_bytes);
  block.stride = stride;
  block.factor = feedback->factors;
  block.moments = feedback->moments;
  memset (tile, 0, runnel_tile_bytes (block.form, columns));
  for (uint32_t from = 0; from < columns; from += feedback->block) {
    const float *parts[RUNNEL_TILE_ROWS];

    for (int r = 0; r < RUNNEL_TILE_ROWS; r++)
      parts[r] = rows[r] != NULL ? rows[r] + from : NULL;
    block.n = (int) (columns - from < feedback->block ? columns - from
        : feedback->block);
    quantise_block (&block, parts);
    put_block (&block, tile + from / (size_t) block.form.group * group_bytes,
        group_bytes);
    block.factor += stride * stride;
    block.moments += stride * stride;
  }
}
