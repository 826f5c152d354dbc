/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "mnn-rope.h"

#include <math.h>
#include <string.h>

#include "../backends/cpu/half.h"
#include "../error-private.h"

#define CLOSE 2e-5   /* what float32 cosines and sines leave of a frequency */

/* NaN outside of the file. */
static float
get_value (const RunnelMnnTable *table, const RunnelMapping *weights,
    guint row, guint column)
{
  gsize i = (gsize) row * table->columns + column;
  gsize size = runnel_mapping_size (weights);
  guint32 bits;

  if (table->inside.n > 0)
    return runnel_flat_vector_float (&table->inside, i);
  if (table->at > size || (size - table->at) / 4 <= i)
    return NAN;
  memcpy (&bits, runnel_mapping_data (weights) + table->at + 4 * i, 4);
  return runnel_float_from_bits (GUINT32_FROM_LE (bits));
}

/* Whether rows hold a value for each of @n pairs, or these twice. */
static gboolean
has_pairs (const RunnelMnnTable *table, const RunnelMapping *weights, guint n)
{
  if (table->columns != 2 * n)
    return table->columns == n;
  for (guint i = 0; i < n; i++)
    if (get_value (table, weights, 1, i) !=
        get_value (table, weights, 1, n + i))
      return FALSE;
  return TRUE;
}

/* The frequencies, if these are the cosines and sines of the positions. */
static gboolean
find_frequencies (const RunnelMnnTable *cosines, const RunnelMnnTable *sines,
    const RunnelMapping *weights, double *frequencies, guint n)
{
  guint last = cosines->rows - 1;

  if (sines->rows != cosines->rows || sines->columns != cosines->columns ||
      !has_pairs (cosines, weights, n) || !has_pairs (sines, weights, n))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    double c = get_value (cosines, weights, 1, i);
    double s = get_value (sines, weights, 1, i);

    if (!(get_value (cosines, weights, 0, i) == 1) ||
        !(get_value (sines, weights, 0, i) == 0) ||
        !(fabs (c * c + s * s - 1) < 1e-5))
      return FALSE;
    frequencies[i] = atan2 (s, c);
    if (!(frequencies[i] > 0) || frequencies[i] > 1 + CLOSE ||
        (i > 0 && frequencies[i] >= frequencies[i - 1]))
      return FALSE;
    /* The last row tells positions from anything else that begins so. */
    if (!(fabs (get_value (cosines, weights, last, i) -
                cos (last * frequencies[i])) < 2e-3) ||
        !(fabs (get_value (sines, weights, last, i) -
                sin (last * frequencies[i])) < 2e-3))
      return FALSE;
  }
  return TRUE;
}

/* The number of four digits that was meant, if it is as near as that. */
static double
snap (double value, double tolerance)
{
  double unit = pow (10, floor (log10 (value)) - 3);
  double rounded = round (value / unit) * unit;

  return fabs (rounded / value - 1) < tolerance ? rounded : value;
}

static gboolean
is_geometric (const double *frequencies, guint n, double base)
{
  for (guint i = 0; i < n; i++)
    if (fabs (frequencies[i] / frequencies[0] * pow (base, (double) i / n) -
            1) > CLOSE)
      return FALSE;
  return TRUE;
}

/* Divisors of base^(-i/n), all at least 1: the first, which turns fastest, is
 * never scaled. NULL when they are not of this form. */
static GArray *
make_factors (const double *frequencies, guint n, double *base)
{
  GArray *factors = g_array_new (FALSE, FALSE, sizeof (float));

  *base = snap (pow (frequencies[1], -(double) n), 1e-4);
  for (guint i = 0; i < n; i++) {
    float factor = pow (*base, -(double) i / n) / frequencies[i];

    if (!isfinite (factor) || factor < 1 - 10 * CLOSE) {
      g_array_unref (factors);
      return NULL;
    }
    if (factor < 1 + 10 * CLOSE)
      factor = 1;
    g_array_append_val (factors, factor);
  }
  return factors;
}

static gboolean
describe (const double *frequencies, guint n, RunnelHyperparameters *hp,
    GArray **factors)
{
  double base = n == 1 ? 10000 :
      pow (frequencies[0] / frequencies[n - 1], n / (n - 1.0));

  base = snap (base, CLOSE);
  if (is_geometric (frequencies, n, base)) {
    hp->rope_base = base;
    if (fabs (frequencies[0] - 1) > CLOSE) {
      hp->rope_scaling = RUNNEL_ROPE_SCALING_LINEAR;
      hp->rope_factor = snap (1 / frequencies[0], CLOSE);
    }
    return TRUE;
  }
  if (factors == NULL || fabs (frequencies[0] - 1) > CLOSE)
    return FALSE;
  *factors = make_factors (frequencies, n, &hp->rope_base);
  return *factors != NULL;
}

gboolean
runnel_mnn_rope_read (const RunnelMnnGraph *graph,
    const RunnelMapping *weights, RunnelHyperparameters *hp, GArray **factors,
    GError **error)
{
  guint n = hp->rope_dimensions / 2;
  g_autofree double *frequencies = g_new (double, MAX (n, 1));

  for (guint c = 0; c < graph->tables->len; c++) {
    for (guint s = 0; s < graph->tables->len; s++) {
      const RunnelMnnTable *cosines =
          &g_array_index (graph->tables, RunnelMnnTable, c);
      const RunnelMnnTable *sines =
          &g_array_index (graph->tables, RunnelMnnTable, s);

      if (!find_frequencies (cosines, sines, weights, frequencies, n))
        continue;
      if (describe (frequencies, n, hp, factors))
        return TRUE;
      runnel_set_error_about (error, RUNNEL_ERROR_UNSUPPORTED,
          graph->buffer.name, "scales the rotation of positions in a way that "
          "is not supported in architecture '%s'", hp->architecture);
      return FALSE;
    }
  }
  runnel_set_error_about (error, RUNNEL_ERROR_UNSUPPORTED, graph->buffer.name,
      "holds no tables of cosines and sines of positions for %u rotated "
      "elements; export it with MNN 3.6 or later", hp->rope_dimensions);
  return FALSE;
}
