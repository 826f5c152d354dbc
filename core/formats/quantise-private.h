/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What the quantiser's two ways share: a group of a row, and what is found for
 * it. Inlined, as it is the inmost loop of both.
 */
#pragma once

#include <stdbool.h>

#include "quantise.h"

#define RUNNEL_QUANTISE_GROUP 64       /* columns of the largest group */
#define RUNNEL_QUANTISE_FITS 6

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
    float x[RUNNEL_QUANTISE_GROUP];
    Lanes x_lanes[RUNNEL_QUANTISE_GROUP / LANES];
  };
  union {
    float weight[RUNNEL_QUANTISE_GROUP];
    Lanes weight_lanes[RUNNEL_QUANTISE_GROUP / LANES];
  };
  double sum_weight, sum_x;     /* weighted */
} RunnelQuantiseGroup;

typedef struct {
  float d, m;                   /* what their half floats are */
  float error;                  /* of the nearest codes, weighted squares */
  double q, qq, qx;             /* sums over these codes, weighted */
} RunnelQuantiseFit;

/* A type's form, and the bytes from one group to the next. */
RunnelTileForm runnel_quantise_form (RunnelTensorType type,
                                     size_t *ret_group_bytes);
/* @importance: NULL when all weigh the same. */
void runnel_quantise_fill (RunnelQuantiseGroup *group, RunnelTileForm form,
                           const float *x, const float *importance, int n);
/* The best few of the search, one at least; how many. */
int runnel_quantise_fit_some (const RunnelQuantiseGroup *group,
                              RunnelQuantiseFit fits[RUNNEL_QUANTISE_FITS]);
/* Writes a row's scale, offset and @n codes, less the origin, into the group
 * of a tile at @at, where its codes are zeros. */
void runnel_quantise_put (RunnelTileForm form, float d, float m,
                          const float *codes, int n, int row, uint8_t *at);

/* The nearest number that a half float can be, within its range. */
static inline float
runnel_quantise_round_to_half (float value)
{
  const float largest = 65504.0f;

  value = value > largest ? largest : value;
  value = value < -largest ? -largest : value;
  return runnel_half_to_float (runnel_float_to_half (value));
}

static inline float
runnel_quantise_add_lanes (Lanes lanes)
{
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

static inline Lanes
runnel_quantise_choose (Mask mask, Lanes if_set, Lanes otherwise)
{
  return (Lanes) (((Mask) if_set & mask) | ((Mask) otherwise & ~mask));
}

static inline Lanes
runnel_quantise_spread (float value)
{
  return (Lanes) { value, value, value, value };
}

/* The codes nearest to weights less the offset, divided by the scale; ties to
 * even. */
static inline Lanes
runnel_quantise_round (const RunnelQuantiseGroup *group, Lanes codes)
{
  const Lanes lowest = runnel_quantise_spread (group->lowest);
  const Lanes highest = runnel_quantise_spread (group->highest);

  codes = runnel_quantise_choose (codes > lowest, codes, lowest);
  codes = runnel_quantise_choose (codes < highest, codes, highest);
  return codes + 0x1.8p23f - 0x1.8p23f;
}
