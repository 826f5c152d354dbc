/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Packages whose weights are quantised anew: types, rules, importance,
 * calibration.
 */
#include <glib/gstdio.h>

#include "model/engine.h"
#include "model/model-private.h"
#include "package-fixture.h"
#include "same-model.h"

static void
test_quantised (void)
{
  static const struct {
    RunnelPackageType type;
    guint group;
    const char *packed;
    double bound;
  } cases[] = {
    { RUNNEL_PACKAGE_TYPE_AUTO, 0, "INT4_64_OFFSET", 0.15 },
    { RUNNEL_PACKAGE_TYPE_INT4, 32, "INT4_32_OFFSET", 0.15 },
    { RUNNEL_PACKAGE_TYPE_INT8, 0, "INT8_64", 0.01 },
    { RUNNEL_PACKAGE_TYPE_F16, 0, "F16", 0.001 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    TinyModel model = TINY_MODEL_DEFAULT;
    g_autoptr (GVariant) report = NULL;
    g_autofree char *type = NULL;
    g_autofree float *logits = NULL;
    gboolean lossless = TRUE;
    double error = 0;
    PackageFixture f;
    gsize n;

    model.type = RUNNEL_TENSOR_F32;
    package_set_up (&f, &model);
    report = package_convert (&f, cases[i].type, cases[i].group);
    package_assert_type (report, "blk.0.attn_v.weight", cases[i].packed, FALSE);
    package_find_tensor (report, "blk.0.attn_v.weight", &type, &lossless,
        &error);
    g_assert_cmpfloat (error, <, cases[i].bound);
    logits = compute_logits (f.package, &n);
    package_tear_down (&f);
  }
}

static void
test_rules (void)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GVariant) report = NULL;
  TinyModel model = TINY_MODEL_DEFAULT;
  GError *error = NULL;
  PackageFixture f;

  package_set_up (&f, &model);
  runnel_converter_keep (converter, "blk.*", RUNNEL_PACKAGE_TYPE_F16);
  runnel_converter_keep (converter, "*ffn*", RUNNEL_PACKAGE_TYPE_SOURCE);
  runnel_converter_keep (converter, "*.attn_?.weight",
      RUNNEL_PACKAGE_TYPE_INT8);
  report = runnel_converter_convert (converter, f.source, f.package, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  package_assert_type (report, "token_embd.weight", "INT4_32_OFFSET", TRUE);
  package_assert_type (report, "blk.1.attn_output.weight", "F16", FALSE);
  package_assert_type (report, "blk.1.ffn_gate.weight", "Q4_1", TRUE);
  package_assert_type (report, "blk.1.attn_k.weight", "INT8_32_OFFSET", TRUE);
  package_assert_type (report, "blk.1.ffn_norm.weight", "F32", TRUE);
  package_tear_down (&f);
}

/* What weighs nothing may be lost for what weighs much. */
static void
test_importance (void)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GVariant) report = NULL;
  float importance[64];
  GError *error = NULL;
  PackageFixture f;

  model.type = RUNNEL_TENSOR_F32;
  package_set_up (&f, &model);
  for (guint i = 0; i < 64; i++)
    importance[i] = i % 7;
  runnel_converter_set_importance (converter, "blk.0.attn_q.weight",
      importance, 64);
  report = runnel_converter_convert (converter, f.source, f.package, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  package_assert_type (report, "blk.0.attn_q.weight", "INT4_64_OFFSET", FALSE);
  package_tear_down (&f);
}

#define N_FEW 8

/* What the first layer's queries lose on a few tokens. */
static double
get_query_error (RunnelModel *source, RunnelModel *package)
{
  RunnelCheckpoint *from = runnel_model_get_checkpoint (source);
  RunnelCheckpoint *to = runnel_model_get_checkpoint (package);
  const RunnelTensor *q = runnel_checkpoint_tensor (from,
      "blk.0.attn_q.weight");
  const RunnelTensor *rounded = runnel_checkpoint_tensor (to,
      "blk.0.attn_q.weight");
  const RunnelTensor *embedding = runnel_checkpoint_tensor (from,
      "token_embd.weight");
  float norm[64];
  double error = 0;

  runnel_tensor_type_dequantize_row (RUNNEL_TENSOR_F32, runnel_tensor_data (
          runnel_checkpoint_tensor (from, "blk.0.attn_norm.weight")), 64, 0,
      norm);
  for (guint token = 0; token < N_FEW; token++)
    for (guint row = 0; row < q->dims[1]; row++) {
      float x[64], exact[64], got[64];
      double miss = 0;

      runnel_tensor_type_dequantize_row (embedding->type,
          runnel_tensor_data (embedding), 64, token, x);
      runnel_tensor_type_dequantize_row (q->type, runnel_tensor_data (q), 64,
          row, exact);
      runnel_tensor_type_dequantize_row (rounded->type,
          runnel_tensor_data (rounded), 64, row, got);
      for (guint c = 0; c < 64; c++)
        miss += norm[c] * x[c] * (got[c] - exact[c]);
      error += miss * miss;
    }
  return error;
}

/* Calibrated by them, their outputs lose less than without. */
static void
test_calibration (void)
{
  TinyModel tiny = TINY_MODEL_DEFAULT;
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (RunnelCalibration) calibration = NULL;
  g_autoptr (RunnelModel) source = NULL;
  double errors[2];
  gint32 tokens[250];
  GError *error = NULL;
  PackageFixture f;

  tiny.type = RUNNEL_TENSOR_F32;
  package_set_up (&f, &tiny);
  source = runnel_model_open (f.source, RUNNEL_LOAD_MODE_MAP, &error);
  g_assert_no_error (error);
  backend = runnel_backend_get ("cpu", 1, NULL, &error);
  g_assert_no_error (error);
  engine = runnel_engine_get (source, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  calibration = runnel_calibration_new (engine, &error);
  for (guint i = 0; i < G_N_ELEMENTS (tokens); i++)
    tokens[i] = i % N_FEW;
  runnel_calibration_feed (calibration, tokens, G_N_ELEMENTS (tokens), NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GVariant) report = NULL;
    g_autoptr (RunnelModel) package = NULL;

    report = runnel_converter_convert (converter, f.source, f.package, NULL,
        NULL, NULL, &error);
    g_assert_no_error (error);
    package_assert_type (report, "blk.0.attn_q.weight", "INT4_64_OFFSET",
        FALSE);
    package = runnel_model_open (f.package, RUNNEL_LOAD_MODE_READ, &error);
    g_assert_no_error (error);
    errors[i] = get_query_error (source, package);
    g_clear_object (&package);
    g_unlink (f.package);
    runnel_converter_set_calibration (converter, calibration);
  }
  g_test_message ("error of queries %g, calibrated %g", errors[0], errors[1]);
  g_assert_cmpfloat (errors[1], <, 0.7 * errors[0]);
  package_tear_down (&f);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/package/quantised", test_quantised);
  g_test_add_func ("/package/rules", test_rules);
  g_test_add_func ("/package/importance", test_importance);
  g_test_add_func ("/package/calibration", test_calibration);
  return g_test_run ();
}
