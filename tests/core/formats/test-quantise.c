/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The quantiser: exact where the weights allow, better than the plain way
 * elsewhere, and heedful of what matters.
 */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "formats/moments.h"

#define ROWS RUNNEL_TILE_ROWS
#define MAX_COLUMNS 160
#define MAX_TILE (MAX_COLUMNS * ROWS * 2)

static const RunnelTensorType types[] = {
  RUNNEL_TENSOR_INT4_32, RUNNEL_TENSOR_INT4_64, RUNNEL_TENSOR_INT8_32,
  RUNNEL_TENSOR_INT8_64, RUNNEL_TENSOR_INT4_32_OFFSET,
  RUNNEL_TENSOR_INT4_64_OFFSET, RUNNEL_TENSOR_INT8_32_OFFSET,
  RUNNEL_TENSOR_INT8_64_OFFSET, RUNNEL_TENSOR_INT4_32_CENTRED,
  RUNNEL_TENSOR_INT4_64_CENTRED,
};

static float weights[ROWS][MAX_COLUMNS];
static float restored[ROWS][MAX_COLUMNS];
static const float *rows[ROWS];

/* Twelve uniform numbers: near enough to a bell. */
static float
draw_normal (void)
{
  float sum = -6;

  for (int i = 0; i < 12; i++)
    sum += (float) g_test_rand_double ();
  return sum;
}

static void
draw_weights (float scale)
{
  for (int r = 0; r < ROWS; r++) {
    rows[r] = weights[r];
    for (int c = 0; c < MAX_COLUMNS; c++)
      weights[r][c] = scale * draw_normal ();
  }
}

static RunnelTileForm
get_form (RunnelTensorType type)
{
  RunnelTileForm form;

  g_assert_true (runnel_blocks_tile_form (type, &form));
  return form;
}

/* Quantises, restores, and gives the weighted sum of squared errors. */
static double
quantise (RunnelTensorType type, int columns, const float *importance)
{
  guint8 tile[MAX_TILE], again[MAX_TILE];
  const RunnelTileForm form = get_form (type);
  const gsize bytes = runnel_tile_bytes (form, columns);
  double error = 0;

  memset (tile, 0xaa, sizeof tile);
  memset (again, 0x55, sizeof again);
  runnel_quantise_tile (type, rows, columns, importance, tile);
  runnel_quantise_tile (type, rows, columns, importance, again);
  g_assert_cmpmem (tile, bytes, again, bytes);
  for (gsize i = bytes; i < sizeof tile; i++)
    g_assert_cmpuint (tile[i], ==, 0xaa);
  for (int r = 0; r < ROWS; r++) {
    runnel_tiles_dequantize (restored[r], tile, form, columns, r);
    for (int c = 0; c < columns; c++) {
      double miss = restored[r][c] - (rows[r] ? rows[r][c] : 0);

      error += (importance ? importance[c] : 1) * miss * miss;
    }
  }
  return error;
}

/* What the whole range of each group gives. */
static double
get_plain_error (RunnelTensorType type, int columns)
{
  const RunnelTileForm form = get_form (type);
  const int n_codes = (1 << form.bits) - 1;
  double error = 0;

  for (int r = 0; r < ROWS; r++)
    for (int from = 0; from < columns; from += form.group) {
      const int end = MIN (from + form.group, columns);
      float low = weights[r][from], high = low, d, m;

      for (int c = from; c < end; c++) {
        low = fminf (low, weights[r][c]);
        high = fmaxf (high, weights[r][c]);
      }
      d = form.offset ? (high - low) / n_codes
          : fmaxf (-low, high) / (n_codes / 2);
      m = form.offset ? low : 0;
      for (int c = from; c < end; c++) {
        double miss = rintf ((weights[r][c] - m) / d) * d + m - weights[r][c];

        error += miss * miss;
      }
    }
  return error;
}

static void
test_error (void)
{
  for (guint t = 0; t < G_N_ELEMENTS (types); t++)
    for (int columns = 32; columns <= MAX_COLUMNS; columns += 32) {
      const RunnelTileForm form = get_form (types[t]);
      double error, plain;

      draw_weights (0.05f);
      error = quantise (types[t], columns, NULL);
      plain = get_plain_error (types[t], columns);
      g_test_message ("%08x, %d columns: error %.3g, plain %.3g, ratio %.3f",
          types[t], columns, error, plain, error / plain);
      g_assert_cmpfloat (error, <, plain * (form.bits == 4 ? 0.97 : 1.02));
    }
}

/* Weights of the form d·q or d·q + m, of fewer codes than there are. */
static void
make_exact (RunnelTileForm form, int columns)
{
  for (int r = 0; r < ROWS; r++)
    for (int from = 0; from < columns; from += form.group) {
      float d = runnel_half_to_float (runnel_float_to_half (
              0.01f + 0.01f * (float) g_test_rand_double ()));
      float m = form.offset ? runnel_half_to_float (runnel_float_to_half (
              0.1f * draw_normal ())) : 0;
      int lowest = g_test_rand_int_range (0, 8);
      int highest = g_test_rand_int_range (8, 16);

      if (form.origin == 8 && g_test_rand_bit ())
        d = -d;
      for (int c = from; c < MIN (from + form.group, columns); c++) {
        int code = g_test_rand_int_range (lowest, highest + 1) - form.origin;

        weights[r][c] = (float) code * d + m;
      }
    }
}

static void
test_exact (void)
{
  draw_weights (1);
  for (guint t = 0; t < G_N_ELEMENTS (types); t++)
    for (int round = 0; round < 20 && get_form (types[t]).bits == 4; round++) {
      make_exact (get_form (types[t]), MAX_COLUMNS);
      g_assert_cmpfloat (quantise (types[t], MAX_COLUMNS, NULL), ==, 0);
    }
}

static void
test_importance (void)
{
  float importance[MAX_COLUMNS];

  for (int c = 0; c < MAX_COLUMNS; c++)
    importance[c] = c % 8 == 0 ? 50 : 0.5f;
  for (guint t = 0; t < G_N_ELEMENTS (types); t++) {
    double heedless = 0, heedful;

    draw_weights (0.1f);
    quantise (types[t], 128, NULL);
    for (int r = 0; r < ROWS; r++)
      for (int c = 0; c < 128; c++)
        heedless += importance[c] * pow (restored[r][c] - weights[r][c], 2);
    heedful = quantise (types[t], 128, importance);
    g_test_message ("%08x: %.3g of %.3g", types[t], heedful, heedless);
    g_assert_cmpfloat (heedful, <,
        heedless * (get_form (types[t]).bits == 4 ? 0.95 : 1.1));
  }
}

/* Padding, zeros, constants, and numbers at the ends of half floats. */
static void
test_extremes (void)
{
  static const float values[] = { 0, 1e-9f, -3e-6f, 0.1f, -65504, 7e4f, 1e30f };
  float none[MAX_COLUMNS] = { 0 };

  for (guint t = 0; t < G_N_ELEMENTS (types); t++) {
    draw_weights (1);
    rows[2] = rows[7] = NULL;
    quantise (types[t], 96, none);
    for (int c = 0; c < 96; c++)
      g_assert_true (restored[2][c] == 0 && restored[7][c] == 0);
    for (guint v = 0; v < G_N_ELEMENTS (values); v++) {
      draw_weights (0);
      for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < MAX_COLUMNS; c++)
          weights[r][c] = values[v] * (c % 3 ? 1 : (float) (r % 2));
      quantise (types[t], MAX_COLUMNS, NULL);
      for (int c = 0; c < MAX_COLUMNS; c++)
        g_assert_true (isfinite (restored[0][c]));
      if (fabsf (values[v]) < 6e4f)
        for (int c = 0; c < MAX_COLUMNS; c++)
          g_assert_cmpfloat (fabsf (restored[1][c] - values[v]), <=,
              fabsf (values[v]) * 0.004f + 1e-6f);
    }
  }
}

/* ---- Feedback ------------------------------------------------------------ */

#define WIDE 1088              /* more than a block */
#define N_INPUTS 640
#define N_CAUSES 40

static float inputs[N_INPUTS + 3][WIDE];

/* Inputs that hang together: mixtures of few causes, and a little of their
 * own. */
static void
draw_inputs (void)
{
  g_autofree float *mix = g_new (float, N_CAUSES * WIDE);

  for (int i = 0; i < N_CAUSES * WIDE; i++)
    mix[i] = draw_normal ();
  for (int row = 0; row < N_INPUTS; row++) {
    float causes[N_CAUSES];

    for (int i = 0; i < N_CAUSES; i++)
      causes[i] = draw_normal ();
    for (int c = 0; c < WIDE; c++) {
      inputs[row][c] = draw_normal ();
      for (int i = 0; i < N_CAUSES; i++)
        inputs[row][c] += causes[i] * mix[i * WIDE + c] / 3;
    }
  }
}

/* How far the outputs of row @row are off. */
static double
get_output_error (RunnelTensorType type, const guint8 *tile, int row,
                  const float *exact)
{
  float values[WIDE];
  double error = 0;

  runnel_tiles_dequantize (values, tile, get_form (type), WIDE, row);
  for (int i = 0; i < N_INPUTS; i++) {
    double miss = 0;

    for (int c = 0; c < WIDE; c++)
      miss += inputs[i][c] * (values[c] - exact[c]);
    error += miss * miss;
  }
  return error;
}

/* H of the moments of a block, and H times what the factors say is its
 * inverse. */
static void
check_inverse (const RunnelMoments *moments, const RunnelFeedback *feedback)
{
  const guint block = feedback->block;
  double mean = 0;

  g_assert_cmpuint (block, ==, RUNNEL_QUANTISE_BLOCK);
  for (guint i = 0; i < block; i++)
    mean += moments->sums[i * block + i] / block;
  for (guint i = 0; i < block; i += 67) {
    g_autofree double *column = g_new0 (double, block);

    /* Column i of U'U. */
    for (guint k = 0; k <= i; k++)
      for (guint l = k; l < block; l++)
        column[l] += (double) feedback->factors[k * block + l]
            * feedback->factors[k * block + i];
    for (guint k = 0; k < block; k += 71) {
      double product = 0;

      for (guint l = 0; l < block; l++) {
        double moment = moments->sums[MIN (k, l) * block + MAX (k, l)] / mean;

        moment = k == l ? moment + 0.01
            : moment * N_INPUTS / (N_INPUTS + block);
        g_assert_cmpfloat (fabs (feedback->moments[k * block + l] - moment), <,
            1e-5 * (1 + fabs (moment)));
        product += column[l] * moment;
      }
      g_assert_cmpfloat (fabs (product - (k == i)), <, 1e-3);
    }
  }
}

static void
test_feedback (void)
{
  static const RunnelTensorType some[] = { RUNNEL_TENSOR_INT4_64_OFFSET,
      RUNNEL_TENSOR_INT4_32, RUNNEL_TENSOR_INT8_64 };
  g_autofree float *exact = g_new (float, ROWS * WIDE);
  guint8 tile[WIDE * ROWS * 2];
  RunnelMoments moments;
  RunnelFeedback feedback = { 0 };
  const float *pointers[ROWS];

  draw_inputs ();
  runnel_moments_init (&moments, WIDE);
  runnel_moments_add (&moments, inputs[0], N_INPUTS / 2 - 3);
  for (int i = N_INPUTS / 2 - 3; i < N_INPUTS; i++) {
    float one[4][WIDE];

    memcpy (one[0], inputs[i], sizeof one[0]);
    runnel_moments_add (&moments, one[0], 1);
  }
  runnel_moments_make_feedback (&moments, &feedback);
  check_inverse (&moments, &feedback);
  runnel_moments_clear (&moments);
  for (guint t = 0; t < G_N_ELEMENTS (some); t++) {
    double alone = 0, together = 0;

    for (int i = 0; i < ROWS * WIDE; i++)
      exact[i] = 0.05f * draw_normal ();
    for (int r = 0; r < ROWS; r++)
      pointers[r] = r == 5 ? NULL : exact + r * WIDE;
    runnel_quantise_tile (some[t], pointers, WIDE, NULL, tile);
    for (int r = 0; r < 5; r++)
      alone += get_output_error (some[t], tile, r, exact + r * WIDE);
    runnel_quantise_tile_with_feedback (some[t], pointers, WIDE, &feedback,
        tile);
    for (int r = 0; r < 5; r++)
      together += get_output_error (some[t], tile, r, exact + r * WIDE);
    g_test_message ("%08x: output error %.3g of %.3g", some[t], together,
        alone);
    g_assert_cmpfloat (together, <, 0.4 * alone);
    g_assert_cmpfloat (get_output_error (some[t], tile, 7,
            exact + 7 * WIDE), >, 0);
  }
  runnel_feedback_clear (&feedback);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/quantise/error", test_error);
  g_test_add_func ("/quantise/exact", test_exact);
  g_test_add_func ("/quantise/importance", test_importance);
  g_test_add_func ("/quantise/extremes", test_extremes);
  g_test_add_func ("/quantise/feedback", test_feedback);
  return g_test_run ();
}
