/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A group is fitted by search: from several ranges, the codes that are nearest
 * and the scale and offset of least weighted squares for those codes take
 * turns until nothing gets better. Errors are always those of the half floats
 * that the file will hold.
 */
#include "quantise-private.h"

#include <math.h>
#include <string.h>

#define MAX_ROUNDS 6
#define HALF_MIN 0x1p-24f

typedef RunnelQuantiseGroup Group;
typedef RunnelQuantiseFit Fit;

/* To the nearest integer, ties to even, of numbers below 2²². */
static float
round_to_integer (float x)
{
  return x + 0x1.8p23f - 0x1.8p23f;
}

/* The error and the sums of the codes that are nearest by the scale and offset
 * of @fit. */
static void
measure (const Group *group, Fit *fit)
{
  const float inverse = fit->d != 0 ? 1 / fit->d : 0;
  Lanes errors = runnel_quantise_spread (0);
  Lanes q = errors, qq = errors, qx = errors;

  for (int i = 0; i < group->n / LANES; i++) {
    const Lanes x = group->x_lanes[i], weight = group->weight_lanes[i];
    const Lanes code = runnel_quantise_round (group, (x - fit->m) * inverse);
    const Lanes weighted = weight * code, miss = code * fit->d + fit->m - x;

    errors += weight * miss * miss;
    q += weighted;
    qq += weighted * code;
    qx += weighted * x;
  }
  fit->error = runnel_quantise_add_lanes (errors);
  fit->q = runnel_quantise_add_lanes (q);
  fit->qq = runnel_quantise_add_lanes (qq);
  fit->qx = runnel_quantise_add_lanes (qx);
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
      fit->d = runnel_quantise_round_to_half ((float) (along / across));
    fit->m = runnel_quantise_round_to_half (
        (float) ((group->sum_x - fit->d * fit->q) / group->sum_weight));
  } else if (fit->qq > 0) {
    fit->d = runnel_quantise_round_to_half ((float) (fit->qx / fit->qq));
  }
}

/* Beginning with a scale and an offset. */
static Fit
begin (const Group *group, float d, float m)
{
  Fit fit = { .d = runnel_quantise_round_to_half (d),
    .m = runnel_quantise_round_to_half (m) };

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
    fit->m = runnel_quantise_round_to_half (
        start - d * (group->lowest + (float) shift));
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
    float d = runnel_quantise_round_to_half ((high - low) / (float) steps);

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
#define N_BEST RUNNEL_QUANTISE_FITS

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

int
runnel_quantise_fit_some (const Group *group, Fit best[N_BEST])
{
  float low, high;
  int n = 0;

  find_range (group, &low, &high);
  if (match (group, low, high, &best[0]))
    return 1;
  for (int i = 0; i < N_BEST; i++)
    best[i] = (Fit) { .error = INFINITY };
  if (group->offset) {
    search_offset (group, low, high, best);
    /* All alike: one step to what the offset's rounding left. */
    if (low == high)
      keep (best, begin (group, low - runnel_quantise_round_to_half (low),
              low));
  } else {
    search_scale (group, low, high, best);
  }
  while (n < N_BEST && best[n].error < INFINITY)
    refine (group, &best[n++]);
  return n > 0 ? n : 1;   /* squares may overflow */
}

static Fit
fit_group (const Group *group)
{
  Fit fits[N_BEST];
  const int n = runnel_quantise_fit_some (group, fits);

  for (int i = 1; i < n; i++)
    if (fits[i].error < fits[0].error)
      fits[0] = fits[i];
  return fits[0];
}

/* ---- Tiles --------------------------------------------------------------- */

void
runnel_quantise_fill (Group *group, RunnelTileForm form, const float *x,
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

void
runnel_quantise_put (RunnelTileForm form, float d, float m,
                     const float *codes, int n, int row, uint8_t *at)
{
  const uint16_t scale = runnel_float_to_half (d);
  const uint16_t offset = runnel_float_to_half (m);
  uint8_t *first = at + runnel_tile_head_bytes (form);

  memcpy (at + 2 * row, &scale, 2);
  if (form.offset)
    memcpy (at + 2 * RUNNEL_TILE_ROWS + 2 * row, &offset, 2);
  for (int c = 0; c < n; c++) {
    int half = c / RUNNEL_TILE_COLUMNS, i = c % RUNNEL_TILE_COLUMNS;
    int within = form.bits == 4 ? i % 16 : i;
    uint8_t code = (uint8_t) ((int) codes[c] + form.origin);
    uint8_t *byte = &first[half * (int) runnel_tile_code_bytes (form)
        + 32 * (within / 4) + 4 * row + within % 4];

    *byte |= form.bits == 4 ? (uint8_t) (code << i / 16 * 4) : code;
  }
}

static void
put_nearest (RunnelTileForm form, const Group *group, const Fit *fit, int row,
             uint8_t *at)
{
  const float inverse = fit->d != 0 ? 1 / fit->d : 0;
  float codes[RUNNEL_QUANTISE_GROUP];

  for (int i = 0; i < group->n / LANES; i++) {
    Lanes nearest = runnel_quantise_round (group,
        (group->x_lanes[i] - fit->m) * inverse);

    memcpy (&codes[i * LANES], &nearest, sizeof nearest);
  }
  runnel_quantise_put (form, fit->d, fit->m, codes, group->n, row, at);
}

RunnelTileForm
runnel_quantise_form (RunnelTensorType type, size_t *ret_group_bytes)
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
  const RunnelTileForm form = runnel_quantise_form (type, &group_bytes);
  const uint32_t step = (uint32_t) form.group;

  memset (tile, 0, runnel_tile_bytes (form, columns));
  for (int row = 0; row < RUNNEL_TILE_ROWS; row++)
    for (uint32_t c = 0; rows[row] != NULL && c < columns; c += step) {
      Group group = { 0 };
      Fit fit;

      runnel_quantise_fill (&group, form, rows[row] + c,
          importance ? importance + c : NULL,
          (int) (columns - c < step ? columns - c : step));
      fit = fit_group (&group);
      put_nearest (form, &group, &fit, row, tile + c / step * group_bytes);
    }
}
