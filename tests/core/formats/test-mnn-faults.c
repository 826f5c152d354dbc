/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * MNN packages with one thing wrong are refused with one error.
 */
#include <string.h>
#include <glib/gstdio.h>

#include "error.h"
#include "formats/checkpoint.h"
#include "formats/mnn-graph.h"
#include "mnn-pair.h"
#include "same-model.h"

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
  TinyModel model = mnn_pair_describe ("qwen3",
      RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);

  for (guint i = 0; i < 2 * G_N_ELEMENTS (cases); i++) {
    TinyMnn how = { .fused = i % 2, .fault = cases[i / 2].fault };
    g_auto (MnnPair) pair = { NULL, NULL };

    how.float_scales = how.fault == TINY_MNN_HUGE_SCALE;
    pair = mnn_pair_write (&model, &how);
    g_test_message ("fault %d", how.fault);
    assert_refused (pair.folder, cases[i / 2].code, cases[i / 2].message);
  }
  {
    TinyMnn how = { .rope_factors = 3 };
    g_auto (MnnPair) pair = mnn_pair_write (&model, &how);

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
  TinyModel model = mnn_pair_describe ("qwen3",
      RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
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
  TinyModel model = mnn_pair_describe ("qwen2",
      RUNNEL_TENSOR_INT4_32_CENTRED, FALSE);
  TinyMnn how = { .fused = TRUE };
  g_auto (MnnPair) pair = mnn_pair_write (&model, &how);

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
  assert_same_logits (pair.folder, pair.gguf);
}

/* Any byte of a graph may be anything. */
static void
test_altered_graph (void)
{
  TinyModel model = mnn_pair_describe ("qwen3",
      RUNNEL_TENSOR_INT4_64_CENTRED, TRUE);
  TinyMnn how = { .fused = TRUE };
  g_auto (MnnPair) pair = mnn_pair_write (&model, &how);
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

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/mnn/faults", test_faults);
  g_test_add_func ("/mnn/settings", test_settings);
  g_test_add_func ("/mnn/truncated", test_truncated);
  g_test_add_func ("/mnn/altered-graph", test_altered_graph);
  return g_test_run ();
}
