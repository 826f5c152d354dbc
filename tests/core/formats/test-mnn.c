/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A tiny model as GGUF file and as MNN package must be the same model, bit
 * for bit.
 */
#include <glib/gstdio.h>

#include "formats/checkpoint.h"
#include "formats/converter.h"
#include "mnn-pair.h"
#include "same-model.h"

static RunnelCheckpoint *
open_checkpoint (const char *path, RunnelLoadMode mode)
{
  g_autoptr (GError) error = NULL;
  RunnelCheckpoint *checkpoint = runnel_checkpoint_open (path, mode, &error);

  g_assert_no_error (error);
  return checkpoint;
}

/* --- the same model --- */

static void
assert_same_tensors (RunnelCheckpoint *a, RunnelCheckpoint *b)
{
  g_assert_cmpuint (runnel_checkpoint_n_tensors (a), ==,
      runnel_checkpoint_n_tensors (b));
  for (gsize i = 0; i < runnel_checkpoint_n_tensors (a); i++) {
    const RunnelTensor *left = runnel_checkpoint_nth_tensor (a, i);
    const RunnelTensor *right = runnel_checkpoint_tensor (b, left->name);
    g_autofree float *x = g_new (float, left->dims[0]);
    g_autofree float *y = g_new (float, left->dims[0]);

    g_assert_nonnull (right);
    g_assert_cmpstr (runnel_tensor_type_info (left->type)->name, ==,
        runnel_tensor_type_info (right->type)->name);
    g_assert_cmpuint (left->bytes, ==, right->bytes);
    g_assert_cmpuint (left->n_dims, ==, right->n_dims);
    for (guint64 row = 0; row < left->dims[1]; row++) {
      runnel_tensor_type_dequantize_row (left->type,
          runnel_tensor_data (left), left->dims[0], row, x);
      runnel_tensor_type_dequantize_row (right->type,
          runnel_tensor_data (right), left->dims[0], row, y);
      g_assert_cmpmem (x, 4 * left->dims[0], y, 4 * left->dims[0]);
    }
  }
}

static void
assert_same_sizes (RunnelCheckpoint *a, RunnelCheckpoint *b)
{
  const RunnelHyperparameters *x = runnel_checkpoint_hyperparameters (a);
  const RunnelHyperparameters *y = runnel_checkpoint_hyperparameters (b);

  g_assert_cmpstr (x->architecture, ==, y->architecture);
  g_assert_cmpuint (x->n_layers, ==, y->n_layers);
  g_assert_cmpuint (x->n_embd, ==, y->n_embd);
  g_assert_cmpuint (x->n_ff, ==, y->n_ff);
  g_assert_cmpuint (x->n_heads, ==, y->n_heads);
  g_assert_cmpuint (x->n_kv_heads, ==, y->n_kv_heads);
  g_assert_cmpuint (x->head_dim, ==, y->head_dim);
  g_assert_cmpuint (x->n_vocab, ==, y->n_vocab);
  g_assert_cmpuint (x->context_length, ==, y->context_length);
  g_assert_cmpuint (x->rope_dimensions, ==, y->rope_dimensions);
  g_assert_cmpfloat (x->rope_base, ==, y->rope_base);
  g_assert_cmpfloat (x->norm_epsilon, ==, y->norm_epsilon);
  g_assert_cmpint (x->rope_style, ==, y->rope_style);
  g_assert_cmpint (x->rope_scaling, ==, y->rope_scaling);
  g_assert_cmpint (x->tied, ==, y->tied);
}

static void
test_same (void)
{
  static const RunnelTensorType types[] = {
    RUNNEL_TENSOR_INT4_32, RUNNEL_TENSOR_INT4_64,
    RUNNEL_TENSOR_INT4_32_CENTRED, RUNNEL_TENSOR_INT4_64_CENTRED,
    RUNNEL_TENSOR_INT8_32, RUNNEL_TENSOR_INT8_64,
    RUNNEL_TENSOR_INT8_32_OFFSET, RUNNEL_TENSOR_INT8_64_OFFSET,
    RUNNEL_TENSOR_F16,
  };

  for (guint i = 0; i < 4 * G_N_ELEMENTS (types); i++) {
    RunnelTensorType type = types[i / 4];
    gboolean tied = i % 2 == 0 || type == RUNNEL_TENSOR_F16;
    TinyModel model = mnn_pair_describe (i % 4 < 2 ? "qwen3" : "qwen2",
        type, tied);
    TinyMnn how = {
      .fused = (i ^ i / 4) % 2, .wide = i % 3 == 0, .list = i % 4 == 2,
      .float_scales = i % 5 == 0, .partly = i % 8 == 1,
    };
    g_auto (MnnPair) pair = mnn_pair_write (&model, &how);
    g_autoptr (RunnelCheckpoint) gguf
        = open_checkpoint (pair.gguf, RUNNEL_LOAD_MODE_MAP);
    g_autoptr (RunnelCheckpoint) mnn = open_checkpoint (pair.folder,
        i % 2 ? RUNNEL_LOAD_MODE_READ : RUNNEL_LOAD_MODE_MAP);

    if (how.list && how.float_scales)
      continue;
    assert_same_sizes (gguf, mnn);
    assert_same_tensors (gguf, mnn);
    for (gsize k = 0; k < runnel_checkpoint_n_tensors (mnn); k++)
      g_assert_null (runnel_checkpoint_nth_rounding (mnn, k));
    assert_same_logits (pair.folder, pair.gguf);
  }
}

/* The package of a model, into a fresh file; nothing may be lost. */
static char *
convert (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GVariant) report = NULL;
  char *package = NULL;
  guint n_tensors = 0, n_lossless = 0;
  int fd = g_file_open_tmp ("runnel-mnn-XXXXXX.gguf", &package, &error);

  g_assert_no_error (error);
  g_close (fd, NULL);
  report = runnel_converter_convert (converter, path, package, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  g_assert_true (g_variant_lookup (report, "n_tensors", "u", &n_tensors));
  g_assert_true (g_variant_lookup (report, "n_lossless", "u", &n_lossless));
  g_assert_cmpuint (n_tensors, ==, n_lossless);
  return package;
}

/* Codes, origin and groups are the same in a GGUF file, in the package made of
 * it, in MNN's package with the weights of that, and in the package made of
 * MNN's. */
static void
test_converted (void)
{
  static const RunnelTensorType types[] = {
    RUNNEL_TENSOR_Q4_0, RUNNEL_TENSOR_Q8_0, RUNNEL_TENSOR_INT4_64_CENTRED,
    RUNNEL_TENSOR_INT8_64_OFFSET,
  };

  for (guint i = 0; i < G_N_ELEMENTS (types); i++) {
    TinyModel model = mnn_pair_describe (i % 2 ? "qwen2" : "qwen3",
        types[i], i % 2);
    TinyMnn how = { .fused = i % 2 == 0 };
    g_autofree char *gguf = tiny_model_write (&model);
    g_autofree char *of_gguf = convert (gguf);
    g_autofree char *folder = tiny_mnn_write (of_gguf, gguf, &how);
    g_autofree char *of_folder = convert (folder);
    g_autoptr (RunnelCheckpoint) a
        = open_checkpoint (of_gguf, RUNNEL_LOAD_MODE_MAP);
    g_autoptr (RunnelCheckpoint) b
        = open_checkpoint (of_folder, RUNNEL_LOAD_MODE_MAP);

    assert_same_sizes (a, b);
    assert_same_tensors (a, b);
    assert_same_logits (of_gguf, gguf);
    assert_same_logits (folder, gguf);
    assert_same_logits (of_folder, gguf);
    tiny_mnn_remove (folder);
    g_remove (gguf);
    g_remove (of_gguf);
    g_remove (of_folder);
  }
}

/* A matrix is made when it is asked for, given back, and made again. */
static void
test_again (void)
{
  TinyModel model = mnn_pair_describe ("qwen3",
      RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
  TinyMnn how = { .fused = TRUE };
  g_auto (MnnPair) pair = mnn_pair_write (&model, &how);
  g_autoptr (RunnelCheckpoint) gguf
      = open_checkpoint (pair.gguf, RUNNEL_LOAD_MODE_MAP);

  for (guint mode = 0; mode < 2; mode++) {
    g_autoptr (RunnelCheckpoint) mnn = open_checkpoint (pair.folder, mode);

    for (guint round = 0; round < 2; round++) {
      assert_same_tensors (gguf, mnn);
      for (gsize i = 0; i < runnel_checkpoint_n_tensors (mnn); i++) {
        const RunnelTensor *tensor = runnel_checkpoint_nth_tensor (mnn, i);

        runnel_mapping_release (tensor->mapping, tensor->offset,
            tensor->bytes);
      }
    }
  }
}

static void
test_paths (void)
{
  static const char *const names[] = { "", "config.json", "llm_config.json",
    "llm.mnn" };
  TinyModel description = mnn_pair_describe ("qwen2",
      RUNNEL_TENSOR_INT4_64, TRUE);
  TinyMnn how = { FALSE };
  g_auto (MnnPair) pair = mnn_pair_write (&description, &how);
  g_autofree char *content_id = NULL, *base = g_path_get_basename (pair.folder);
  g_autofree char *settings = g_build_filename (pair.folder, "config.json",
      NULL);

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = g_build_filename (pair.folder, names[i], NULL);
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelModel) model
        = runnel_model_open (path, RUNNEL_LOAD_MODE_MAP, &error);
    g_autoptr (GVariant) description_of = NULL;
    const char *format;

    g_assert_no_error (error);
    g_assert_cmpstr (runnel_model_get_name (model), ==, base);
    if (content_id == NULL)
      content_id = g_strdup (runnel_model_get_content_id (model));
    g_assert_cmpstr (runnel_model_get_content_id (model), ==, content_id);
    description_of = g_variant_ref_sink (runnel_model_describe (model));
    g_assert_true (g_variant_lookup (description_of, "format", "&s", &format));
    g_assert_cmpstr (format, ==, "MNN");
  }
  /* The exporter's names serve when nothing says them. */
  g_remove (settings);
  runnel_checkpoint_unref (open_checkpoint (pair.folder,
      RUNNEL_LOAD_MODE_MAP));
}

/* One row of a matrix of 4 bits, groups of 64 and offsets, of whose codes only
 * the low @bits were written. */
static void
decode_narrow (const RunnelTensor *tensor, guint64 row, guint bits,
    float *values)
{
  RunnelTileForm form;
  const guint8 *p;
  guint r = row % RUNNEL_TILE_ROWS;
  float d = 0, m = 0;

  g_assert_true (runnel_blocks_tile_form (tensor->type, &form));
  p = runnel_tensor_data (tensor) + row / RUNNEL_TILE_ROWS *
      runnel_tile_bytes (form, tensor->dims[0]);
  for (guint c = 0; c < tensor->dims[0]; c++) {
    if (c % 64 == 0) {
      d = runnel_half_to_float (runnel_load_u16 (p + 2 * r));
      m = runnel_half_to_float (runnel_load_u16 (p + 16 + 2 * r));
      p += runnel_tile_head_bytes (form);
    }
    values[c] = (p[32 * (c % 16 / 4) + 4 * r + c % 4] >> c % 32 / 16 * 4) &
        ((1 << bits) - 1);
    values[c] = d * (values[c] - (1 << (bits - 1)));
    values[c] = values[c] + m;
    if (c % 32 == 31)
      p += runnel_tile_code_bytes (form);
  }
}

static void
test_narrow (void)
{
  for (guint bits = 2; bits <= 3; bits++) {
    TinyModel model = mnn_pair_describe ("qwen3",
        RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
    TinyMnn how = { .bits = bits };
    g_auto (MnnPair) pair = mnn_pair_write (&model, &how);
    g_autoptr (RunnelCheckpoint) gguf
        = open_checkpoint (pair.gguf, RUNNEL_LOAD_MODE_MAP);
    g_autoptr (RunnelCheckpoint) mnn
        = open_checkpoint (pair.folder, RUNNEL_LOAD_MODE_MAP);

    for (gsize i = 0; i < runnel_checkpoint_n_tensors (mnn); i++) {
      const RunnelTensor *tensor = runnel_checkpoint_nth_tensor (mnn, i);
      const RunnelTensor *source
          = runnel_checkpoint_tensor (gguf, tensor->name);
      g_autofree float *x = g_new (float, tensor->dims[0]);
      g_autofree float *y = g_new (float, tensor->dims[0]);

      if (tensor->n_dims == 1)
        continue;
      for (guint64 row = 0; row < tensor->dims[1]; row++) {
        runnel_tensor_type_dequantize_row (tensor->type,
            runnel_tensor_data (tensor), tensor->dims[0], row, x);
        decode_narrow (source, row, bits, y);
        g_assert_cmpmem (x, 4 * tensor->dims[0], y, 4 * tensor->dims[0]);
      }
    }
  }
}

/* --- positions --- */

static void
test_rope (void)
{
  static const TinyMnn hows[] = {
    { .rope_linear = 4 }, { .rope_factors = 3 }, { .rope_factors = 7 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (hows); i++) {
    TinyModel model = mnn_pair_describe ("llama", RUNNEL_TENSOR_INT8_32, TRUE);
    g_auto (MnnPair) pair = mnn_pair_write (&model, &hows[i]);
    g_autoptr (RunnelCheckpoint) mnn
        = open_checkpoint (pair.folder, RUNNEL_LOAD_MODE_MAP);
    const RunnelHyperparameters *hp = runnel_checkpoint_hyperparameters (mnn);
    const RunnelTensor *factors
        = runnel_checkpoint_tensor (mnn, "rope_freqs.weight");
    g_autoptr (RunnelCheckpoint) gguf
        = open_checkpoint (pair.gguf, RUNNEL_LOAD_MODE_MAP);
    g_autofree char *path = convert (pair.folder);
    g_autoptr (RunnelCheckpoint) converted
        = open_checkpoint (path, RUNNEL_LOAD_MODE_MAP);

    g_remove (path);
    g_assert_cmpfloat (hp->rope_base, ==,
        runnel_checkpoint_hyperparameters (gguf)->rope_base);
    assert_same_sizes (mnn, converted);
    assert_same_tensors (mnn, converted);
    if (hows[i].rope_linear != 0) {
      g_assert_cmpint (hp->rope_scaling, ==, RUNNEL_ROPE_SCALING_LINEAR);
      g_assert_cmpfloat (hp->rope_factor, ==, hows[i].rope_linear);
      g_assert_null (factors);
      continue;
    }
    g_assert_cmpint (hp->rope_scaling, ==, RUNNEL_ROPE_SCALING_NONE);
    g_assert_cmpuint (factors->dims[0], ==, hp->rope_dimensions / 2);
    for (guint k = 0; k < factors->dims[0]; k++)
      g_assert_cmpfloat_with_epsilon (
          ((const float *) runnel_tensor_data (factors))[k],
          k < hows[i].rope_factors ? 1 : 2, 1e-4);
  }
}

/* --- scales --- */

static void
test_rounding (void)
{
  TinyModel model = mnn_pair_describe ("qwen3",
      RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
  TinyMnn how = { .float_scales = TRUE, .scale_factor = 1.0001 };
  g_auto (MnnPair) pair = mnn_pair_write (&model, &how);
  g_autoptr (RunnelCheckpoint) mnn
      = open_checkpoint (pair.folder, RUNNEL_LOAD_MODE_MAP);
  guint n_rounded = 0;

  for (gsize i = 0; i < runnel_checkpoint_n_tensors (mnn); i++) {
    const RunnelMnnRounding *rounding
        = runnel_checkpoint_nth_rounding (mnn, i);
    const RunnelTensor *tensor = runnel_checkpoint_nth_tensor (mnn, i);

    g_assert_true ((rounding != NULL) == (tensor->n_dims == 2));
    if (rounding == NULL)
      continue;
    n_rounded++;
    g_assert_cmpuint (rounding->n, ==, tensor->dims[0] / 64 * tensor->dims[1]
        * 2);
    g_assert_cmpuint (rounding->n_rounded, >, rounding->n / 2);
    g_assert_cmpuint (rounding->n_rounded, <=, rounding->n);
    g_assert_cmpfloat (rounding->max_error, >, 5e-5);
    g_assert_cmpfloat (rounding->max_error, <, 1.0 / 2048);
  }
  g_assert_cmpuint (n_rounded, >, 10);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/mnn/same", test_same);
  g_test_add_func ("/mnn/converted", test_converted);
  g_test_add_func ("/mnn/again", test_again);
  g_test_add_func ("/mnn/narrow", test_narrow);
  g_test_add_func ("/mnn/paths", test_paths);
  g_test_add_func ("/mnn/rope", test_rope);
  g_test_add_func ("/mnn/rounding", test_rounding);
  return g_test_run ();
}
