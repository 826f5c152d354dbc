/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A group is fitted by search: from several ranges, the codes that are nearest
 * and the scale and offset of least weighted squares for those codes take
 * turns until nothing gets better. Errors are always those of the half floats
 * that the file will hold.
 */
#include "quantise.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define MAX_GROUP 64
#define MAX_ROUNDS 6
#define HALF_MAX 65504.0f
#define HALF_MIN 0x1p-24f

/* Four floats that every compiler adds in the same order. */
#define LANES 4
typedef float Lanes __attribute__ ((vector_size (16)));
typedef int32_t Mask __attribute__ ((vector_size (16)));

/* What is to be fitted. */
typedef struct {
  int n;                        /* whole lanes */
  float lowest, highest;        /* codes, less the origin */
  bool offset;
  union {
    float x[MAX_GROUP];
    Lanes x_lanes[MAX_GROUP / LANES];
  };
  union {
    float weight[MAX_GROUP];
    Lanes weight_lanes[MAX_GROUP / LANES];
  };
  double sum_weight, sum_x;     /* weighted */
} Group;

typedef struct {
  float d, m;                   /* what their half floats are */
  float error;                  /* of the nearest codes, weighted squares */
  double q, qq, qx;             /* sums over these codes, weighted */
} Fit;

static float
round_to_half (float value)
{
  value = value > HALF_MAX ? HALF_MAX : value;
  value = value < -HALF_MAX ? -HALF_MAX : value;
  return runnel_half_to_float (runnel_float_to_half (value));
}

/* To the nearest integer, ties to even, of numbers below 2²². */
static float
round_to_integer (float x)
{
  return x + 0x1.8p23f - 0x1.8p23f;
}

static float
add_lanes (Lanes lanes)
{
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

static Lanes
choose (Mask mask, Lanes if_set, Lanes otherwise)
{
  return (Lanes) (((Mask) if_set & mask) | ((Mask) otherwise & ~mask));
}

static Lanes
spread (float value)
{
  return (Lanes) { value, value, value, value };
}

/* The codes nearest to weights less the offset, divided by the scale. */
static Lanes
round_to_codes (const Group *group, Lanes codes)
{
  const Lanes lowest = spread (group->lowest);
  const Lanes highest = spread (group->highest);

  codes = choose (codes > lowest, codes, lowest);
  codes = choose (codes < highest, codes, highest);
  return codes + 0x1.8p23f - 0x1.8p23f;
}

/* The error and the sums of the codes that are nearest by the scale and offset
 * of @fit. */
static void
measure (const Group *group, Fit *fit)
{
  const float inverse = fit->d != 0 ? 1 / fit->d : 0;
  Lanes errors = spread (0), q = errors, qq = errors, qx = errors;

  for (int i = 0; i < group->n / LANES; i++) {
    const Lanes x = group->x_lanes[i], weight = group->weight_lanes[i];
    const Lanes code = round_to_codes (group, (x - fit->m) * inverse);
    const Lanes weighted = weight * code, miss = code * fit->d + fit->m - x;

    errors += weight * miss * miss;
    q += weighted;
    qq += weighted * code;
    qx += weighted * x;
  }
  fit->error = add_lanes (errors);
  fit->q = add_lanes (q);
  fit->qq = add_lanes (qq);
  fit->qx = add_lanes (qx);
}

/* The scale and offset of least squares for the codes of @fit, each rounded
 * when it is known, the offset to what the rounded scale leaves. */
static void
solve (const Group *group, Fit *fit)
{
  if (group->offset) {
    double across = group->sum_weight * fit->qq - fit->q * fit->q;
    double along = group->sum_weight * fit->qx - fit->q * group->sum_x;

    if (across > 1e-6 * group->sum_weight * fit->qq)
      fit->d = round_to_half ((float) (along / across));
    fit->m = round_to_half ((float) ((group->sum_x - fit->d * fit->q)
        / group->sum_weight));
  } else if (fit->qq > 0) {
    fit->d = round_to_half ((float) (fit->qx / fit->qq));
  }
}

/* Beginning with a scale and an offset. */
static Fit
begin (const Group *group, float d, float m)
{
  Fit fit = { .d = round_to_half (d), .m = round_to_half (m) };

  /* Better the smallest step than none. */
  if (fit.d == 0 && d != 0)
    fit.d = copysignf (HALF_MIN, d);
  measure (group, &fit);
  return fit;
}

/* From there on, until nothing gets better. */
static void
refine (const Group *group, Fit *fit)
{
  for (int round = 0; round < MAX_ROUNDS; round++) {
    Fit next = *fit;

    solve (group, &next);
    measure (group, &next);
    if (!(next.error < fit->error))
      break;
    *fit = next;
  }
}

static void
find_range (const Group *group, float *low, float *high)
{
  *low = *high = group->x[0];
  for (int i = 1; i < group->n; i++) {
    *low = group->x[i] < *low ? group->x[i] : *low;
    *high = group->x[i] > *high ? group->x[i] : *high;
  }
}

/* ---- Weights that were quantised before ---------------------------------- */

/* Whether all weights are whole steps of @d from @low, but for rounding. */
static bool
is_grid (const Group *group, float d, float low)
{
  for (int i = 0; i < group->n; i++) {
    float steps = (group->x[i] - low) / d;

    if (!(fabsf (steps - round_to_integer (steps)) < 0.01f))
      return false;
  }
  return true;
}

/* A group with @n_steps of @d from @start: which code @start was cannot be seen
 * from the weights, but from which of the offsets is a half float. */
static bool
match_offset (const Group *group, float d, float start, int n_steps, Fit *fit)
{
  int n_codes = (int) (group->highest - group->lowest);

  for (int shift = 0; shift <= n_codes - n_steps; shift++) {
    fit->d = d;
    fit->m = round_to_half (start - d * (group->lowest + (float) shift));
    measure (group, fit);
    if (fit->error == 0)
      return true;
  }
  return false;
}

static bool
match_scale (const Group *group, float d, Fit *fit)
{
  fit->d = d;
  fit->m = 0;
  measure (group, fit);
  return fit->error == 0;
}

/* Gives exact groups back; only groups of 4 bits are worth it, as the error of
 * 8 bits is below that of the activations. */
static bool
match (const Group *group, float low, float high, Fit *fit)
{
  int n_codes = (int) (group->highest - group->lowest);

  for (int steps = n_codes; steps > 0 && n_codes <= 15; steps--) {
    float d = round_to_half ((high - low) / (float) steps);

    if (d == 0 || !is_grid (group, d, low))
      continue;
    if (group->offset ? match_offset (group, d, low, steps, fit)
            || match_offset (group, -d, high, steps, fit)
        : match_scale (group, d, fit) || match_scale (group, -d, fit))
      return true;
  }
  return false;
}

/* ---- The search ---------------------------------------------------------- */

/* Ranges to begin with, as parts of the whole one: what is cut off costs less
 * than finer steps save. The best few are refined. */
static const float parts[] = { 1.0f, 0.94f, 0.88f, 0.82f, 0.75f, 0.67f };
#define N_PARTS ((int) (sizeof parts / sizeof *parts))
#define N_BEST 3

/* Keeps the best, in ascending order of error. */
static void
keep (Fit best[N_BEST], Fit fit)
{
  for (int i = 0; i < N_BEST; i++)
    if (fit.error < best[i].error) {
      Fit worse = best[i];

      best[i] = fit;
      fit = worse;
    }
}

static void
search_offset (const Group *group, float low, float high, Fit best[N_BEST])
{
  const float n_codes = group->highest - group->lowest;
  const int n_parts = n_codes > 15 ? 1 : N_PARTS;

  for (int a = 0; a < n_parts; a++)
    for (int b = 0; b < n_parts; b++) {
      float centre = (low + high) / 2, half = (high - low) / 2;
      float from = centre - half * parts[a], to = centre + half * parts[b];
      float d = (to - from) / n_codes;

      if (a - b <= 2 && b - a <= 2)
        keep (best, begin (group, d, from - d * group->lowest));
    }
}

static void
search_scale (const Group *group, float low, float high, Fit best[N_BEST])
{
  const int n_parts = group->highest > 15 ? 2 : N_PARTS;
  const float largest = -low > high ? low : high;

  for (int a = 0; a < n_parts; a++) {
    keep (best, begin (group, largest * parts[a] / group->lowest, 0));
    keep (best, begin (group, largest * parts[a] / group->highest, 0));
  }
}

static Fit
fit_group (const Group *group)
{
  Fit best[N_BEST];
  float low, high;

  find_range (group, &low, &high);
  if (match (group, low, high, &best[0]))
    return best[0];
  for (int i = 0; i < N_BEST; i++)
    best[i] = (Fit) { .error = INFINITY };
  if (group->offset) {
    search_offset (group, low, high, best);
    /* All alike: one step to what the offset's rounding left. */
    if (low == high)
      keep (best, begin (group, low - round_to_half (low), low));
  } else {
    search_scale (group, low, high, best);
  }
  for (int i = 0; i < N_BEST && best[i].error < INFINITY; i++)
    refine (group, &best[i]);
  for (int i = 1; i < N_BEST; i++)
    if (best[i].error < best[0].error)
      best[0] = best[i];
  return best[0];
}

/* ---- Tiles --------------------------------------------------------------- */

static void
fill_group (Group *group, RunnelTileForm form, const float *x,
            const float *importance, int n)
{
  double sum_weight = 0, sum_x = 0;

  group->n = n;
  group->offset = form.offset;
  group->lowest = form.bits == 4 ? (float) -form.origin
      : form.offset ? -128 : -127;
  group->highest = form.bits == 4 ? (float) (15 - form.origin) : 127;
  for (int i = 0; i < n; i++) {
    group->x[i] = x[i];
    group->weight[i] = importance ? importance[i] : 1;
    sum_weight += group->weight[i];
  }
  /* Of no importance: then all alike. */
  if (!(sum_weight > 0) || !isfinite (sum_weight)) {
    for (int i = 0; i < n; i++)
      group->weight[i] = 1;
    sum_weight = n;
  }
  for (int i = 0; i < n; i++) {
    group->weight[i] *= (float) (n / sum_weight);
    sum_x += (double) group->weight[i] * x[i];
  }
  group->sum_weight = n;
  group->sum_x = sum_x;
}

static void
put_group (RunnelTileForm form, const Group *group, const Fit *fit, int row,
           uint8_t *at)
{
  const float inverse = fit->d != 0 ? 1 / fit->d : 0;
  uint16_t d = runnel_float_to_half (fit->d);
  uint16_t m = runnel_float_to_half (fit->m);
  uint8_t *codes = at + runnel_tile_head_bytes (form);

  memcpy (at + 2 * row, &d, 2);
  if (form.offset)
    memcpy (at + 2 * RUNNEL_TILE_ROWS + 2 * row, &m, 2);
  for (int c = 0; c < group->n; c++) {
    int half = c / RUNNEL_TILE_COLUMNS, i = c % RUNNEL_TILE_COLUMNS;
    int within = form.bits == 4 ? i % 16 : i;
    Lanes nearest = round_to_codes (group,
        (group->x_lanes[c / LANES] - fit->m) * inverse);
    uint8_t code = (uint8_t) ((int) nearest[c % LANES] + form.origin);
    uint8_t *byte = &codes[half * (int) runnel_tile_code_bytes (form)
        + 32 * (within / 4) + 4 * row + within % 4];

    *byte |= form.bits == 4 ? (uint8_t) (code << i / 16 * 4) : code;
  }
}

/* A type's form, and the bytes from one group to the next. */
static RunnelTileForm
get_form (RunnelTensorType type, size_t *ret_group_bytes)
{
  RunnelTileForm form = { .bits = 4, .group = 32 };

  runnel_blocks_tile_form (type, &form);
  *ret_group_bytes = runnel_tile_head_bytes (form)
      + runnel_tile_code_bytes (form) * (size_t) form.group
      / RUNNEL_TILE_COLUMNS;
  return form;
}

void
runnel_quantise_tile (RunnelTensorType type,
                      const float *const rows[RUNNEL_TILE_ROWS],
                      uint32_t columns, const float *importance,
                      uint8_t *tile)
{
  size_t group_bytes;
  const RunnelTileForm form = get_form (type, &group_bytes);
  const uint32_t step = (uint32_t) form.group;

  memset (tile, 0, runnel_tile_bytes (form, columns));
  for (int row = 0; row < RUNNEL_TILE_ROWS; row++)
    for (uint32_t c = 0; rows[row] != NULL && c < columns; c += step) {
      Group group = { 0 };
      Fit fit;

      fill_group (&group, form, rows[row] + c,
          importance ? importance + c : NULL,
          (int) (columns - c < step ? columns - c : step));
      fit = fit_group (&group);
      put_group (form, &group, &fit, row, tile + c / step * group_bytes);
    }
}

/* ---- With feedback ------------------------------------------------------- */

/* The columns of a block of a tile. */
typedef struct {
  int n;
  const float *factor;          /* [n][block] */
  uint32_t block;
  float *rows[RUNNEL_TILE_ROWS];
} Block;

/* Takes what the code of column @j loses from the columns behind it, up to
 * @end. */
static void
spread_error (const Block *block, float *x, float error, int j, int end)
{
  const float *factor = block->factor + (size_t) j * block->block;

  for (int k = j + 1; k < end; k++)
    x[k] -= error * factor[k];
}

/* One row of a group: its columns are rounded in order. The group's own are
 * corrected at once, those behind it by the errors that come back. */
static void
quantise_in_order (const Block *block, int first, Group *group,
                   const Fit *fit, float *x, float errors[MAX_GROUP])
{
  const float inverse = fit->d != 0 ? 1 / fit->d : 0;

  for (int c = 0; c < group->n; c++) {
    const int j = first + c;
    const Lanes code = round_to_codes (group,
        spread ((x[j] - fit->m) * inverse));
    const float value = fit->d * code[0] + fit->m;

    errors[c] = (x[j] - value) / block->factor[(size_t) j * block->block + j];
    spread_error (block, x, errors[c], j, first + group->n);
    /* What is put later rounds to this code. */
    group->x[c] = value;
  }
}

/* Takes what a group's codes lose from the columns behind the group, four
 * errors at a time. */
static void
spread_errors (const Block *block, int first, int n,
               const float errors[MAX_GROUP], float *restrict x)
{
  const size_t stride = block->block;

  for (int c = 0; c < n; c += 4) {
    const float *factor = block->factor + (size_t) (first + c) * stride;
    const float *e = errors + c;

    for (int k = first + n; k < block->n; k++)
      x[k] -= (e[0] * factor[k] + e[1] * factor[stride + k])
          + (e[2] * factor[2 * stride + k] + e[3] * factor[3 * stride + k]);
  }
}

static void
quantise_group (const Block *block, RunnelTileForm form, int first, int n,
                uint8_t *at)
{
  float importance[MAX_GROUP];

  for (int c = 0; c < n; c++) {
    float diagonal = block->factor[(size_t) (first + c) * block->block + first
        + c];

    /* An error here costs so much after the others have done their best. */
    importance[c] = 1 / (diagonal * diagonal);
  }
  for (int row = 0; row < RUNNEL_TILE_ROWS; row++) {
    float errors[MAX_GROUP];
    Group group = { 0 };
    Fit fit;

    if (block->rows[row] == NULL)
      continue;
    fill_group (&group, form, block->rows[row] + first, importance, n);
    fit = fit_group (&group);
    quantise_in_order (block, first, &group, &fit, block->rows[row], errors);
    put_group (form, &group, &fit, row, at);
    spread_errors (block, first, n, errors, block->rows[row]);
  }
}

void
runnel_quantise_tile_with_feedback (RunnelTensorType type,
                                    float *const rows[RUNNEL_TILE_ROWS],
                                    uint32_t columns,
                                    const RunnelFeedback *feedback,
                                    uint8_t *tile)
{
  size_t group_bytes;
  const RunnelTileForm form = get_form (type, &group_bytes);
  const uint32_t step = (uint32_t) form.group;
  Block block = { .block = feedback->block, .factor = feedback->factors };

  memset (tile, 0, runnel_tile_bytes (form, columns));
  for (uint32_t from = 0; from < columns; from += block.block) {
    uint32_t n = columns - from < block.block ? columns - from : block.block;

    block.n = (int) n;
    for (int row = 0; row < RUNNEL_TILE_ROWS; row++)
      block.rows[row] = rows[row] != NULL ? rows[row] + from : NULL;
    for (uint32_t c = 0; c < n; c += step)
      quantise_group (&block, form, (int) c, (int) (n - c < step ? n - c
              : step), tile + (from + c) / step * group_bytes);
    block.factor += (size_t) block.block * block.block;
  }
}
