/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What is a package's own in a GGUF container: its tokenizer, its record, its
 * rope keys, its digests and tiled tensors.
 */
#include <glib/gstdio.h>
#include <stdint.h>
#include <string.h>

#include "formats/package-writer.h"
#include "text/tokenizer-private.h"
#include "tiny-model.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

static void
read_tokenizer (const RunnelGguf *gguf)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelTokenizer) tokenizer
      = runnel_tokenizer_new_from_package (gguf, &error);
  g_autofree gint32 *tokens = NULL;
  g_autoptr (GBytes) text = NULL;
  gsize n;

  g_assert_true ((tokenizer == NULL) == (error != NULL));
  if (tokenizer == NULL)
    return;
  tokens = runnel_tokenizer_encode (tokenizer, "the user<|im_end|> and é", -1,
      TRUE, &n, NULL);
  for (gsize i = 0; tokens != NULL && i < n; i++)
    g_assert_cmpuint (tokens[i], <, runnel_tokenizer_get_n_tokens (tokenizer));
  if (tokens != NULL)
    text = runnel_tokenizer_decode (tokenizer, tokens, n, TRUE, NULL);
}

static void
read_tensors (const RunnelGguf *gguf)
{
  for (gsize i = 0; i < runnel_gguf_n_tensors (gguf); i++) {
    const RunnelTensor *tensor = runnel_gguf_tensor (gguf, i);
    g_autofree float *values = g_new (float, tensor->dims[0]);
    RunnelPackageRecord record;

    runnel_package_get_record (gguf, i, &record, NULL);
    for (guint64 row = 0; row < runnel_tensor_n_rows (tensor); row++)
      runnel_tensor_type_dequantize_row (tensor->type,
          runnel_tensor_data (tensor), tensor->dims[0], row, values);
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GBytes) bytes = g_bytes_new (data, size);
  g_autoptr (RunnelMapping) mapping
      = runnel_mapping_new_from_bytes (bytes, "fuzz.runnel");
  g_autoptr (RunnelGguf) gguf = runnel_gguf_new (mapping, NULL);
  g_autoptr (GError) error = NULL;
  RunnelHyperparameters hp = { .n_layers = 1 };
  gboolean good;

  if (gguf == NULL)
    return 0;
  g_variant_unref (g_variant_ref_sink (runnel_package_describe (gguf)));
  runnel_package_read_rope (gguf, &hp, NULL);
  read_tokenizer (gguf);
  read_tensors (gguf);
  good = runnel_package_verify (gguf, FALSE, NULL, NULL, NULL, &error);
  g_assert_true (good == (error == NULL));
  return 0;
}

/* ---- Seeds ----------------------------------------------------------- */

static void
add_tensors (RunnelGgufWriter *writer)
{
  static const struct {
    const char *name;
    RunnelTensorType type;
    guint64 dims[2];
  } tensors[] = {
    { "a", RUNNEL_TENSOR_F32, { 16, 1 } },
    { "b", RUNNEL_TENSOR_INT4_64_OFFSET, { 96, 9 } },
    { "c", RUNNEL_TENSOR_INT8_32, { 32, 8 } },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (tensors); i++) {
    g_autoptr (GBytes) data = NULL;
    guint64 bytes;

    runnel_tensor_type_bytes (tensors[i].type, tensors[i].dims[0],
        tensors[i].dims[1], &bytes);
    data = g_bytes_new_take (g_malloc0 (bytes), bytes);
    runnel_gguf_writer_add_tensor (writer, tensors[i].name, tensors[i].type,
        tensors[i].dims, 2, data);
  }
}

/* As small as no package is: without the filler, which would take most of the
 * mutations. */
static char *
write_small (void)
{
  static const guint8 digests[3 * RUNNEL_PACKAGE_DIGEST_BYTES];
  static const guint32 types[3];
  static const guint8 lossless[3] = { 1, 0, 1 };
  static const float errors[3];
  TinyModel model = TINY_MODEL_DEFAULT;
  RunnelHyperparameters hp = { .architecture = "llama",
    .rope_scaling = RUNNEL_ROPE_SCALING_YARN };
  char *path = tiny_model_write (&model);
  g_autoptr (RunnelTokenizer) tokenizer
      = runnel_tokenizer_new_from_file (path, NULL);
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autofree char *digits = g_strnfill (2 * RUNNEL_PACKAGE_DIGEST_BYTES, '0');

  runnel_gguf_writer_add_string (writer, RUNNEL_PACKAGE_SHA256, digits, -1);
  runnel_gguf_writer_add_uint32 (writer, RUNNEL_PACKAGE_KEY_VERSION,
      RUNNEL_PACKAGE_VERSION);
  runnel_package_write_hyperparameters (writer, &hp);
  runnel_tokenizer_write_package (tokenizer, writer, NULL);
  runnel_gguf_writer_add_uint8s (writer, RUNNEL_PACKAGE_TENSOR_SHA256,
      digests, sizeof digests);
  runnel_gguf_writer_add_uint32s (writer, RUNNEL_PACKAGE_SOURCE_TYPE, types,
      3);
  runnel_gguf_writer_add_booleans (writer, RUNNEL_PACKAGE_LOSSLESS, lossless,
      3);
  runnel_gguf_writer_add_float32s (writer, RUNNEL_PACKAGE_ERROR, errors, 3);
  add_tensors (writer);
  g_assert_true (runnel_gguf_writer_save (writer, path, NULL));
  return path;
}

const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  static char *contents;
  static gsize length;

  if (contents == NULL) {
    g_autofree char *path = write_small ();

    g_autoptr (RunnelGguf) gguf
        = runnel_gguf_open (path, RUNNEL_LOAD_MODE_READ, NULL);
    g_autoptr (RunnelTokenizer) tokenizer
        = runnel_tokenizer_new_from_package (gguf, NULL);

    g_assert_nonnull (tokenizer);
    g_assert_true (g_file_get_contents (path, &contents, &length, NULL));
    g_unlink (path);
  }
  *size = length;
  return i == 0 ? (const uint8_t *) contents : NULL;
}
