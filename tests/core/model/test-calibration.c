/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What a calibration sees, against the inputs worked out by hand.
 */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "formats/checkpoint.h"
#include "model/calibration-private.h"
#include "model/model-private.h"
#include "runnel.h"
#include "tiny-model.h"

#define N_TOKENS 600          /* more than a window */

typedef struct {
  RunnelModel *model;
  RunnelEngine *engine;
  gint32 tokens[N_TOKENS];
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autofree char *path = NULL;
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (GError) error = NULL;

  tiny.type = RUNNEL_TENSOR_F32;
  tiny.tied = data == NULL;
  path = tiny_model_write (&tiny);
  f->model = runnel_model_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_assert_no_error (error);
  g_unlink (path);
  backend = runnel_backend_get ("cpu", 2, NULL, &error);
  g_assert_no_error (error);
  f->engine = runnel_engine_get (f->model, backend, RUNNEL_KV_TYPE_F16, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < N_TOKENS; i++)
    f->tokens[i] = g_test_rand_int_range (0,
        runnel_model_get_n_vocab (f->model));
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_object_unref (f->engine);
  g_object_unref (f->model);
}

static void
read_row (RunnelModel *model, const char *name, guint row, float *values)
{
  const RunnelTensor *tensor = runnel_checkpoint_tensor (
      runnel_model_get_checkpoint (model), name);

  runnel_tensor_type_dequantize_row (tensor->type, runnel_tensor_data (tensor),
      tensor->dims[0], row, values);
}

/* The products of the first layer read the norm of the embedding. */
static void
make_expected (Fixture *f, guint n_embd, RunnelFeedback *expected)
{
  g_autofree float *rows = g_new (float, (N_TOKENS + 3) * n_embd);
  g_autofree float *norm = g_new (float, n_embd);
  RunnelMoments moments;

  read_row (f->model, "blk.0.attn_norm.weight", 0, norm);
  for (guint i = 0; i < N_TOKENS; i++) {
    float *row = rows + i * n_embd;
    double squares = 0;

    read_row (f->model, "token_embd.weight", f->tokens[i], row);
    for (guint c = 0; c < n_embd; c++)
      squares += row[c] * row[c];
    for (guint c = 0; c < n_embd; c++)
      row[c] *= norm[c] / sqrt (squares / n_embd + 1e-5);
  }
  runnel_moments_init (&moments, n_embd);
  runnel_moments_add (&moments, rows, N_TOKENS);
  runnel_moments_make_feedback (&moments, expected);
  runnel_moments_clear (&moments);
}

/* The mean squares are those of the norm's weights, but for chance. */
static void
check_importance (Fixture *f, const float *importance, guint n_embd)
{
  g_autofree float *norm = g_new (float, n_embd);
  double sum = 0, expected = 0;

  read_row (f->model, "blk.0.attn_norm.weight", 0, norm);
  for (guint c = 0; c < n_embd; c++) {
    g_assert_cmpfloat (importance[c], >, 0);
    sum += importance[c];
    expected += norm[c] * norm[c];
  }
  g_assert_cmpfloat (fabs (sum / expected - 1), <, 0.2);
}

static void
test_moments (Fixture *f, gconstpointer data)
{
  const guint n_embd = runnel_model_get_n_embd (f->model);
  RunnelFeedback expected = { 0 };
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelCalibration) calibration
      = runnel_calibration_new (f->engine, &error);
  g_autofree float *importance = NULL;
  const RunnelFeedback *feedback;
  gsize n_columns;

  g_assert_no_error (error);
  make_expected (f, n_embd, &expected);
  g_assert_null (runnel_calibration_get_feedback (calibration,
          "blk.0.attn_q.weight", n_embd));
  g_assert_true (runnel_calibration_feed (calibration, f->tokens, N_TOKENS,
          NULL, NULL, NULL, &error));
  g_assert_cmpuint (runnel_calibration_get_n_tokens (calibration), ==,
      N_TOKENS);
  importance = runnel_calibration_dup_importance (calibration,
      "blk.0.attn_v.weight", &n_columns);
  g_assert_cmpuint (n_columns, ==, n_embd);
  feedback = runnel_calibration_get_feedback (calibration,
      "blk.0.attn_q.weight", n_embd);
  g_assert_nonnull (feedback);
  for (guint i = 0; i < n_embd; i++)
    for (guint k = i; k < n_embd; k++) {
      gsize at = (gsize) i * feedback->block + k;

      g_assert_cmpfloat (fabsf (feedback->factors[at] - expected.factors[at]),
          <, 2e-3f * fabsf (expected.factors[i * feedback->block + i]));
      g_assert_cmpfloat (fabsf (feedback->moments[at] - expected.moments[at]),
          <, 2e-3f * fabsf (expected.moments[i * feedback->block + i]));
    }
  runnel_feedback_clear (&expected);
  check_importance (f, importance, n_embd);
}

static void
test_names (Fixture *f, gconstpointer data)
{
  static const struct { const char *name; gboolean known; } names[] = {
    { "blk.0.attn_q.weight", TRUE }, { "blk.0.attn_k.weight", TRUE },
    { "blk.1.attn_v.weight", TRUE }, { "blk.1.attn_output.weight", TRUE },
    { "blk.1.ffn_gate.weight", TRUE }, { "blk.0.ffn_up.weight", TRUE },
    { "blk.1.ffn_down.weight", TRUE }, { "token_embd.weight", TRUE },
    { "blk.2.attn_q.weight", FALSE }, { "blk.0.attn_norm.weight", FALSE },
    { "output_norm.weight", FALSE }, { "other", FALSE },
  };
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelCalibration) calibration
      = runnel_calibration_new (f->engine, &error);

  runnel_calibration_feed (calibration, f->tokens, 70, NULL, NULL, NULL,
      &error);
  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const RunnelTensor *tensor = runnel_checkpoint_tensor (
        runnel_model_get_checkpoint (f->model), names[i].name);
    const RunnelFeedback *feedback = runnel_calibration_get_feedback (
        calibration, names[i].name, tensor ? tensor->dims[0] : 64);

    g_assert_true ((feedback != NULL) == names[i].known);
    if (feedback != NULL)
      for (guint c = 0; c < tensor->dims[0]; c++)
        g_assert_true (isfinite (feedback->factors[c * feedback->block + c])
            && feedback->factors[c * feedback->block + c] > 0);
  }
  g_assert_null (runnel_calibration_get_feedback (calibration,
          "blk.0.attn_q.weight", 32));
}

/* Rows that are only looked up are multiplied by nothing. */
static void
test_untied (Fixture *f, gconstpointer data)
{
  const guint n_embd = runnel_model_get_n_embd (f->model);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelCalibration) calibration
      = runnel_calibration_new (f->engine, &error);
  gsize n_columns;

  runnel_calibration_feed (calibration, f->tokens, 70, NULL, NULL, NULL,
      &error);
  g_assert_no_error (error);
  g_assert_nonnull (runnel_calibration_get_feedback (calibration,
          "output.weight", n_embd));
  g_assert_null (runnel_calibration_get_feedback (calibration,
          "token_embd.weight", n_embd));
  g_assert_null (runnel_calibration_dup_importance (calibration,
          "token_embd.weight", &n_columns));
  g_assert_cmpuint (n_columns, ==, 0);
}

static void
test_errors (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelCalibration) calibration
      = runnel_calibration_new (f->engine, &error);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  f->tokens[5] = 1 << 20;
  g_assert_false (runnel_calibration_feed (calibration, f->tokens, 10, NULL,
          NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  g_clear_error (&error);
  f->tokens[5] = 1;
  g_cancellable_cancel (cancellable);
  g_assert_false (runnel_calibration_feed (calibration, f->tokens, 10, NULL,
          NULL, cancellable, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/calibration/moments", Fixture, NULL, set_up, test_moments,
      tear_down);
  g_test_add ("/calibration/names", Fixture, NULL, set_up, test_names,
      tear_down);
  g_test_add ("/calibration/untied", Fixture, "untied", set_up, test_untied,
      tear_down);
  g_test_add ("/calibration/errors", Fixture, NULL, set_up, test_errors,
      tear_down);
  return g_test_run ();
}
