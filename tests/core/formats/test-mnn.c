/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A tiny model as GGUF file and as MNN package must be the same model, bit
 * for bit; packages with one thing wrong are refused with one error.
 */
#include <math.h>
#include <string.h>
#include <glib/gstdio.h>

#include "error.h"
#include "formats/checkpoint.h"
#include "formats/converter.h"
#include "formats/mnn-graph.h"
#include "model/sequence.h"
#include "text/tokenizer-mtok.h"
#include "tiny-mnn.h"
#include "tiny-model.h"

static TinyModel
describe (const char *architecture, RunnelTensorType type, gboolean tied)
{
  TinyModel model = TINY_MODEL_DEFAULT;

  model.architecture = architecture;
  model.type = type;
  model.tied = tied;
  model.n_embd = 128;   /* so that blocks of 64 divide all rows */
  model.seed = g_test_rand_int ();
  return model;
}

/* A package and the GGUF file that it was made of. */
typedef struct {
  char *gguf, *folder;
} Pair;

static Pair
write_pair (const TinyModel *model, const TinyMnn *how)
{
  Pair pair = { tiny_model_write (model), NULL };

  pair.folder = tiny_mnn_write (pair.gguf, pair.gguf, how);
  return pair;
}

static void
pair_clear (Pair *self)
{
  g_remove (self->gguf);
  tiny_mnn_remove (self->folder);
  g_free (self->gguf);
  g_free (self->folder);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Pair, pair_clear)

static RunnelCheckpoint *
open_checkpoint (const char *path, RunnelLoadMode mode)
{
  g_autoptr (GError) error = NULL;
  RunnelCheckpoint *checkpoint = runnel_checkpoint_open (path, mode, &error);

  g_assert_no_error (error);
  return checkpoint;
}

static void
assert_refused (const char *path, int code, const char *message)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelCheckpoint) checkpoint
      = runnel_checkpoint_open (path, RUNNEL_LOAD_MODE_MAP, &error);

  g_assert_null (checkpoint);
  g_assert_cmpint (error->domain, ==, RUNNEL_ERROR);
  if (strstr (error->message, message) == NULL)
    g_test_message ("\"%s\" does not hold \"%s\"", error->message, message);
  g_assert_nonnull (strstr (error->message, message));
  g_assert_cmpint (error->code, ==, code);
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

#define N_IDS 9

static float *
forward (const char *path, gsize *ret_n)
{
  static const gint32 ids[N_IDS] = { 1, 40, 7, 260, 3, 99, 2, 275, 120 };
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model
      = runnel_model_open (path, RUNNEL_LOAD_MODE_MAP, &error);
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (RunnelSequence) sequence = NULL;
  float *logits;

  g_assert_no_error (error);
  *ret_n = (gsize) N_IDS * runnel_model_get_n_vocab (model);
  logits = g_new (float, *ret_n);
  backend = runnel_backend_get ("cpu", 2, NULL, &error);
  g_assert_no_error (error);
  engine = runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  sequence = runnel_sequence_new (engine, 0, &error);
  g_assert_no_error (error);
  g_assert_true (runnel_sequence_forward (sequence, ids, N_IDS, logits, *ret_n,
      &error));
  return logits;
}

static void
assert_same_logits (const char *path, const char *other)
{
  gsize n_theirs, n_ours;
  g_autofree float *theirs = forward (path, &n_theirs);
  g_autofree float *ours = forward (other, &n_ours);

  g_assert_cmpmem (theirs, 4 * n_theirs, ours, 4 * n_ours);
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
    TinyModel model = describe (i % 4 < 2 ? "qwen3" : "qwen2", type, tied);
    TinyMnn how = {
      .fused = (i ^ i / 4) % 2, .wide = i % 3 == 0, .list = i % 4 == 2,
      .float_scales = i % 5 == 0, .partly = i % 8 == 1,
    };
    g_auto (Pair) pair = write_pair (&model, &how);
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
    assert_same_logits (pair.gguf, pair.folder);
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
    TinyModel model = describe (i % 2 ? "qwen2" : "qwen3", types[i], i % 2);
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
    assert_same_logits (gguf, of_gguf);
    assert_same_logits (gguf, folder);
    assert_same_logits (gguf, of_folder);
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
  TinyModel model = describe ("qwen3", RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
  TinyMnn how = { .fused = TRUE };
  g_auto (Pair) pair = write_pair (&model, &how);
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
  TinyModel description = describe ("qwen2", RUNNEL_TENSOR_INT4_64, TRUE);
  TinyMnn how = { FALSE };
  g_auto (Pair) pair = write_pair (&description, &how);
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
    TinyModel model = describe ("qwen3", RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
    TinyMnn how = { .bits = bits };
    g_auto (Pair) pair = write_pair (&model, &how);
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
    TinyModel model = describe ("llama", RUNNEL_TENSOR_INT8_32, TRUE);
    g_auto (Pair) pair = write_pair (&model, &hows[i]);
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
  TinyModel model = describe ("qwen3", RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
  TinyMnn how = { .float_scales = TRUE, .scale_factor = 1.0001 };
  g_auto (Pair) pair = write_pair (&model, &how);
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

/* --- faults --- */

static void
test_faults (void)
{
  static const struct {
    TinyMnnFault fault;
    RunnelError code;
    const char *message;
  } cases[] = {
    { TINY_MNN_RELU, RUNNEL_ERROR_UNSUPPORTED,
      "'/layers.0/self_attn/o_proj/Linear' has groups or an activation" },
    { TINY_MNN_GROUPS, RUNNEL_ERROR_UNSUPPORTED, "groups or an activation" },
    { TINY_MNN_KERNEL, RUNNEL_ERROR_UNSUPPORTED, "more than a point" },
    { TINY_MNN_BITS, RUNNEL_ERROR_UNSUPPORTED, "codes of 5 bits" },
    { TINY_MNN_KIND, RUNNEL_ERROR_UNSUPPORTED, "weights of kind 2" },
    { TINY_MNN_EXTRA_SCALE, RUNNEL_ERROR_UNSUPPORTED, "integer kernels" },
    { TINY_MNN_OLD_OFFSETS, RUNNEL_ERROR_UNSUPPORTED, "old form" },
    { TINY_MNN_INLINE, RUNNEL_ERROR_UNSUPPORTED, "weights in the graph" },
    { TINY_MNN_NAME, RUNNEL_ERROR_UNSUPPORTED, "none of a decoder's "
      "projections" },
    { TINY_MNN_TABLE, RUNNEL_ERROR_UNSUPPORTED, "a table of its own" },
    { TINY_MNN_HEADER, RUNNEL_ERROR_MISMATCH, "the graph has" },
    { TINY_MNN_BLOCK, RUNNEL_ERROR_UNSUPPORTED, "blocks of 16 columns" },
    { TINY_MNN_BIAS, RUNNEL_ERROR_UNSUPPORTED, "has a bias" },
    { TINY_MNN_TWICE, RUNNEL_ERROR_MALFORMED, "is the second one" },
    { TINY_MNN_ABSENT, RUNNEL_ERROR_MALFORMED,
      "'blk.0.attn_output.weight' is missing" },
    { TINY_MNN_BETA, RUNNEL_ERROR_UNSUPPORTED, "adds to what it normalises" },
    { TINY_MNN_EPSILON, RUNNEL_ERROR_UNSUPPORTED, "another epsilon" },
    { TINY_MNN_LAYER_NORM, RUNNEL_ERROR_UNSUPPORTED, "no RMS norm" },
    { TINY_MNN_OPERATOR, RUNNEL_ERROR_UNSUPPORTED, "'odd' is of type 40" },
    { TINY_MNN_SUBGRAPH, RUNNEL_ERROR_UNSUPPORTED, "graphs within the graph" },
    { TINY_MNN_YARN, RUNNEL_ERROR_UNSUPPORTED, "YaRN" },
    { TINY_MNN_NO_TABLES, RUNNEL_ERROR_UNSUPPORTED, "no tables of cosines" },
    { TINY_MNN_HEADS, RUNNEL_ERROR_UNSUPPORTED, "differs from its like" },
    { TINY_MNN_SHARED, RUNNEL_ERROR_UNSUPPORTED, "shares keys" },
    { TINY_MNN_TIE, RUNNEL_ERROR_MISMATCH, "'tie_embeddings' names" },
    { TINY_MNN_HUGE_SCALE, RUNNEL_ERROR_LIMIT, "no half float holds" },
  };
  TinyModel model = describe ("qwen3", RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);

  for (guint i = 0; i < 2 * G_N_ELEMENTS (cases); i++) {
    TinyMnn how = { .fused = i % 2, .fault = cases[i / 2].fault };
    g_auto (Pair) pair = { NULL, NULL };

    how.float_scales = how.fault == TINY_MNN_HUGE_SCALE;
    pair = write_pair (&model, &how);
    g_test_message ("fault %d", how.fault);
    assert_refused (pair.folder, cases[i / 2].code, cases[i / 2].message);
  }
  {
    TinyMnn how = { .rope_factors = 3 };
    g_auto (Pair) pair = write_pair (&model, &how);

    assert_refused (pair.folder, RUNNEL_ERROR_UNSUPPORTED, "rotation of "
        "positions in a way");
  }
}

/* Replaces the first @from in a file of the folder. */
static void
edit (const char *folder, const char *file, const char *from, const char *to)
{
  g_autofree char *path = g_build_filename (folder, file, NULL);
  g_autofree char *text = NULL;
  g_autoptr (GString) edited = NULL;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  edited = g_string_new (text);
  g_assert_cmpuint (g_string_replace (edited, from, to, 1), ==, 1);
  g_assert_true (g_file_set_contents (path, edited->str, edited->len, NULL));
}

static void
test_settings (void)
{
  static const struct {
    const char *file, *from, *to;
    RunnelError code;
    const char *message;
  } cases[] = {
    { "llm_config.json", "qwen3", "gemma4", RUNNEL_ERROR_UNSUPPORTED,
      "gemma4" },
    { "llm_config.json", "\"model_type\"", "\"x\"", RUNNEL_ERROR_MALFORMED,
      "'model_type' is missing" },
    { "llm_config.json", "\"hidden_size\":128", "\"hidden_size\":96",
      RUNNEL_ERROR_MISMATCH, "the model's sizes ask for" },
    { "llm_config.json", "\"layer_nums\":2", "\"layer_nums\":1",
      RUNNEL_ERROR_MISMATCH, "belongs to no layer" },
    { "llm_config.json", "\"layer_nums\":2", "\"layer_nums\":3",
      RUNNEL_ERROR_MALFORMED, "is missing" },
    { "llm_config.json", "\"layer_nums\":2", "\"layer_nums\":-1",
      RUNNEL_ERROR_LIMIT, "'layer_nums' is -1" },
    { "llm_config.json", "\"full\"", "\"sliding\"", RUNNEL_ERROR_UNSUPPORTED,
      "'attention_type' is 'sliding'" },
    { "llm_config.json", "\"is_mrope\":false", "\"is_mrope\":true",
      RUNNEL_ERROR_UNSUPPORTED, "'is_mrope'" },
    { "llm_config.json", "{", "{\"attn_scale\":1.0,",
      RUNNEL_ERROR_UNSUPPORTED, "'attn_scale' is 1" },
    { "llm_config.json", "{", "[", RUNNEL_ERROR_MALFORMED, "llm_config" },
    { "llm_config.json", "\"weight_offset\":", "\"weight_offset\":-",
      RUNNEL_ERROR_MALFORMED, "'tie_embeddings.weight_offset'" },
    { "llm_config.json", "\"quant_bit\":4", "\"quant_bit\":8",
      RUNNEL_ERROR_MISMATCH, "'tie_embeddings' names 8-bit codes" },
    { "llm_config.json", "\"tie_embeddings\":{", "\"tie_embeddings\":3,\"x\":{",
      RUNNEL_ERROR_MALFORMED, "neither an object nor a list" },
    { "llm_config.json", "\"tie_embeddings\":{",
      "\"tie_embeddings\":[1],\"x\":{", RUNNEL_ERROR_MALFORMED,
      "no list of five integers" },
    { "llm_config.json", "\"tie_embeddings\":{", "\"x\":{", RUNNEL_ERROR_IO,
      "embeddings_bf16.bin" },
    { "config.json", "llm.mnn.weight", "../llm.mnn.weight",
      RUNNEL_ERROR_UNSUPPORTED, "only a file of the same folder" },
    { "config.json", "llm.mnn.weight", "absent", RUNNEL_ERROR_IO, "absent" },
    { "config.json", "\"llm.mnn\"", "3", RUNNEL_ERROR_MALFORMED,
      "'llm_model' is no string" },
    { "config.json", "\"llm.mnn\"", "\"llm.mnn.weight\"",
      RUNNEL_ERROR_MALFORMED, "llm.mnn.weight" },
  };
  TinyModel model = describe ("qwen3", RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
  TinyMnn how = { FALSE };
  g_autofree char *gguf = tiny_model_write (&model);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *folder = tiny_mnn_write (gguf, gguf, &how);

    g_test_message ("%s: %s", cases[i].from, cases[i].to);
    edit (folder, cases[i].file, cases[i].from, cases[i].to);
    assert_refused (folder, cases[i].code, cases[i].message);
    tiny_mnn_remove (folder);
  }
  g_remove (gguf);
}

/* Files that end early are refused, wherever they end. */
static void
test_truncated (void)
{
  static const char *const files[] = { "llm.mnn", "llm.mnn.weight",
    "embeddings_int4.bin" };
  TinyModel model = describe ("qwen2", RUNNEL_TENSOR_INT4_32_CENTRED, FALSE);
  TinyMnn how = { .fused = TRUE };
  g_auto (Pair) pair = write_pair (&model, &how);

  for (guint f = 0; f < G_N_ELEMENTS (files); f++) {
    g_autofree char *path = g_build_filename (pair.folder, files[f], NULL);
    g_autofree char *whole = NULL;
    gsize size;

    g_assert_true (g_file_get_contents (path, &whole, &size, NULL));
    for (guint i = 0; i < 24; i++) {
      gsize cut = i < 8 ? i : i < 16 ? size - 1 - (i - 8)
          : (gsize) g_test_rand_int_range (8, size - 8);
      g_autoptr (GError) error = NULL;

      g_assert_true (g_file_set_contents (path, whole, cut, NULL));
      g_assert_null (runnel_checkpoint_open (pair.folder, i % 2, &error));
      g_assert_cmpint (error->domain, ==, RUNNEL_ERROR);
      g_assert_nonnull (strstr (error->message, files[f]));
    }
    g_assert_true (g_file_set_contents (path, whole, size, NULL));
  }
  assert_same_logits (pair.gguf, pair.folder);
}

/* Any byte of a graph may be anything. */
static void
test_altered_graph (void)
{
  TinyModel model = describe ("qwen3", RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
  TinyMnn how = { .fused = TRUE };
  g_auto (Pair) pair = write_pair (&model, &how);
  g_autofree char *path = g_build_filename (pair.folder, "llm.mnn", NULL);
  g_autofree char *graph = NULL;
  gsize size;

  g_assert_true (g_file_get_contents (path, &graph, &size, NULL));
  for (guint i = 0; i < 40000; i++) {
    gsize at = g_test_rand_int_range (0, size);
    char before = graph[at];
    g_autoptr (GBytes) bytes = NULL;
    g_autoptr (RunnelMapping) mapping = NULL;
    g_autoptr (GError) error = NULL;
    RunnelMnnGraph read = { .n_heads = 0 };

    graph[at] = i % 4 == 0 ? 0xff : i % 4 == 1 ? before ^ 0x80
        : g_test_rand_int ();
    bytes = g_bytes_new_static (graph, size);
    mapping = runnel_mapping_new_from_bytes (bytes, "graph");
    g_assert_true (runnel_mnn_graph_read (&read, mapping, &error)
        == (error == NULL));
    runnel_mnn_graph_clear (&read);
    graph[at] = before;
  }
}

/* --- tokenizers --- */

static RunnelTokenizer *
load_tokenizer (const char *path)
{
  g_autoptr (GError) error = NULL;
  RunnelTokenizer *tokenizer = runnel_tokenizer_new_from_file (path, &error);

  g_assert_no_error (error);
  return tokenizer;
}

static void
assert_encodes_alike (RunnelTokenizer *a, RunnelTokenizer *b)
{
  static const char *const texts[] = {
    "", "the user and the cat", "<|im_start|>user\nthe<|im_end|>",
    "\xf0\x9f\x90\x88 \xc3\xa4 123  4\n\n", "<unk> <|im_", "ininin",
  };

  for (guint i = 0; i < 2 * G_N_ELEMENTS (texts); i++) {
    gsize n = 0, m = 0;
    g_autofree gint32 *x = runnel_tokenizer_encode (a, texts[i / 2], -1, i % 2,
        &n, NULL);
    g_autofree gint32 *y = runnel_tokenizer_encode (b, texts[i / 2], -1, i % 2,
        &m, NULL);

    g_assert_cmpmem (x, n * sizeof *x, y, m * sizeof *y);
  }
}

static void
test_tokenizers (void)
{
  TinyModel model = describe ("qwen3", RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);

  for (guint text = 0; text < 2; text++) {
    TinyMnn how = { .text = text };
    g_auto (Pair) pair = write_pair (&model, &how);
    g_autoptr (RunnelTokenizer) theirs = load_tokenizer (pair.gguf);
    g_autoptr (RunnelTokenizer) ours = load_tokenizer (pair.folder);
    const gint32 *stops;
    gsize n;

    g_assert_cmpuint (runnel_tokenizer_get_n_tokens (ours), ==,
        runnel_tokenizer_get_n_tokens (theirs));
    g_assert_cmpint (runnel_tokenizer_get_eos (ours), ==, TINY_IM_END);
    stops = runnel_tokenizer_get_stop_tokens (ours, &n);
    g_assert_cmpuint (n, ==, 1);
    g_assert_cmpint (stops[0], ==, TINY_IM_END);
    g_assert_false (runnel_tokenizer_get_add_bos (ours));
    g_assert_true (runnel_tokenizer_is_control (ours, TINY_IM_START));
    g_assert_cmpstr (runnel_tokenizer_get_chat_template (ours), ==,
        runnel_tokenizer_get_chat_template (theirs));
    /* The older form leaves the cutting of words to the architecture. */
    g_assert_cmpstr (runnel_tokenizer_get_pre (ours), ==,
        text ? "qwen2" : "smollm");
    if (!text) {
      g_assert_cmpstr (runnel_tokenizer_get_digest (ours), ==,
          runnel_tokenizer_get_digest (theirs));
      assert_encodes_alike (ours, theirs);
    }
  }
}

/* The vocabulary of @file by ranks: no merges, the control tokens last, since
 * an id is a rank. */
static RunnelTokenizer *
load_ranks (const char *const *pieces, const char *special)
{
  g_autoptr (GString) file = g_string_new (NULL);
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (RunnelMapping) mapping = NULL;
  g_autoptr (GError) error = NULL;
  RunnelMtokContext context = { .architecture = "qwen2" };
  RunnelTokenizer *tokenizer;
  guint n = 256 + g_strv_length ((char **) pieces);

  g_string_append_printf (file, "430 1\n1 1 0\n%u %u\n%u\n", n, n, n + 1);
  for (guint i = 0; i < n + 1; i++) {
    guint8 byte = i;
    const char *piece = i < 256 ? NULL : i < n ? pieces[i - 256] : special;
    g_autofree char *base64 = piece == NULL ? g_base64_encode (&byte, 1)
        : g_base64_encode ((const guint8 *) piece, strlen (piece));

    g_string_append_printf (file, "%s\n", base64);
  }
  bytes = g_bytes_new (file->str, file->len);
  mapping = runnel_mapping_new_from_bytes (bytes, "ranks");
  tokenizer = runnel_tokenizer_new_from_mtok (mapping, &context, &error);
  g_assert_no_error (error);
  return tokenizer;
}

/* "abcd" is "ab" and "cd" although "bc" is a token: it ranks behind "ab".
 * "xyz" cannot be reached, since neither "xy" nor "yz" is a token. */
static void
test_ranks (void)
{
  static const char *const pieces[] = { "ab", "bc", "cd", "abcd", "xyz",
    "abcdab", NULL };
  static const struct { const char *text; gint32 ids[4]; gsize n; } cases[] = {
    { "abcd", { 259 }, 1 }, { "abc", { 256, 'c' }, 2 }, { "bcd", { 257, 'd' },
      2 }, { "xyz", { 'x', 'y', 'z' }, 3 }, { "abcdab", { 261 }, 1 },
    { "bcab", { 257, 256 }, 2 }, { "a<|end|>", { 'a', 262 }, 2 },
  };
  g_autoptr (RunnelTokenizer) tokenizer = load_ranks (pieces, "<|end|>");

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gsize n;
    g_autofree gint32 *ids = runnel_tokenizer_encode (tokenizer,
        cases[i].text, -1, TRUE, &n, NULL);

    g_assert_cmpmem (ids, 4 * n, cases[i].ids, 4 * cases[i].n);
  }
  g_assert_cmpint (runnel_tokenizer_get_eos (tokenizer), ==, 262);
  g_assert_true (runnel_tokenizer_is_control (tokenizer, 262));
}

/* Cut anywhere and altered anywhere, it opens or says why not. */
static void
test_altered_tokenizer (void)
{
  TinyModel model = describe ("qwen3", RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
  RunnelMtokContext context = { .architecture = "qwen3", .n_vocab = 276 };

  for (guint text = 0; text < 2; text++) {
    TinyMnn how = { .text = text };
    g_auto (Pair) pair = write_pair (&model, &how);
    g_autofree char *path = g_build_filename (pair.folder,
        text ? "tokenizer.txt" : "tokenizer.mtok", NULL);
    g_autofree char *file = NULL;
    gsize size;

    g_assert_true (g_file_get_contents (path, &file, &size, NULL));
    for (guint i = 0; i < 3000; i++) {
      gsize cut = i < 1000 ? i * size / 1000 : size;
      gsize at = g_test_rand_int_range (0, size);
      char before = file[at];
      g_autoptr (GBytes) bytes = NULL;
      g_autoptr (RunnelMapping) mapping = NULL;
      g_autoptr (RunnelTokenizer) tokenizer = NULL;
      g_autoptr (GError) error = NULL;

      if (i >= 1000)
        file[at] = g_test_rand_int ();
      bytes = g_bytes_new (file, cut);
      mapping = runnel_mapping_new_from_bytes (bytes, "tokenizer");
      tokenizer = runnel_tokenizer_new_from_mtok (mapping, &context, &error);
      g_assert_true ((tokenizer == NULL) == (error != NULL));
      /* Only lengths of optional ends may be missing without harm. */
      if (i < 1000 && cut + 4 < size)
        g_assert_null (tokenizer);
      file[at] = before;
    }
  }
}

static void
test_refused_tokenizers (void)
{
  static const struct { const char *text, *message; } cases[] = {
    { "430 0\n0 0 0\n\n", "no byte-level BPE" },
    { "430 2\n0 0 0\n\n", "no byte-level BPE" },
    { "430 1\n0 0 0\n\n9\nYQ==\n", "fewer lines" },
    { "430 1\n0 0 0\n\n2\nYQ==\n\n", "no token of 1 to 256" },
    { "430 x\n", "lacks a number" },
    { "430 3\n1 0 0\n\n", "lacks a number" },
    { "430 3\n5000 0 0\n", "more than 4096" },
    { "430 3\n0 0 0\n\n4000000000 1\n", "fewer lines" },
    { "430 3\n0 1 0\n7\n2 0\na\nb\n", "stop id is out of range" },
    { "430 3\n0 0 0\n\n2 1\na\nb\nab\n", "no blank" },
    { "430 3\n0 0 2\n0 1\n2 0\na\nb\n", "more than one token" },
    { "430 4\n0 0 0\n\n\1", "normaliser" },
    { "430 4\n0 0 0\n\n", "ends before the tokenizer" },
    { "439 4\n", "no tokenizer" },
  };
  RunnelMtokContext context = { .architecture = "qwen2" };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GBytes) bytes = g_bytes_new_static (cases[i].text,
        strlen (cases[i].text));
    g_autoptr (RunnelMapping) mapping
        = runnel_mapping_new_from_bytes (bytes, "tokenizer");
    g_autoptr (GError) error = NULL;

    g_assert_null (runnel_tokenizer_new_from_mtok (mapping, &context, &error));
    g_test_message ("%s", error->message);
    g_assert_nonnull (strstr (error->message, cases[i].message));
  }
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
  g_test_add_func ("/mnn/faults", test_faults);
  g_test_add_func ("/mnn/settings", test_settings);
  g_test_add_func ("/mnn/truncated", test_truncated);
  g_test_add_func ("/mnn/altered-graph", test_altered_graph);
  g_test_add_func ("/mnn/tokenizers", test_tokenizers);
  g_test_add_func ("/mnn/ranks", test_ranks);
  g_test_add_func ("/mnn/altered-tokenizer", test_altered_tokenizer);
  g_test_add_func ("/mnn/refused-tokenizers", test_refused_tokenizers);
  return g_test_run ();
}
