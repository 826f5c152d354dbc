/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A GGUF file: whatever opens is read through, so that a bound that is wrong
 * is seen.
 */
#include <stdint.h>

#include "../core/formats/hostile-gguf.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

static void
read_value (RunnelGguf *gguf, const char *key)
{
  RunnelGgufType type = runnel_gguf_type (gguf, key);
  RunnelGgufArray array;
  const char *text;
  gsize length;
  guint64 number;
  double real;
  guint sum = 0;

  runnel_gguf_get_uint (gguf, key, 0, G_MAXUINT64, &number, NULL);
  runnel_gguf_get_double (gguf, key, &real, NULL);
  if (type == RUNNEL_GGUF_STRING &&
      runnel_gguf_get_string (gguf, key, &text, &length, NULL))
    sum += g_utf8_validate_len (text, length, NULL);
  if (type != RUNNEL_GGUF_ARRAY)
    return;
  if (runnel_gguf_get_array (gguf, key, RUNNEL_GGUF_STRING, &array, NULL)) {
    const guint8 *at = array.data;

    for (guint64 i = 0; i < array.n; i++) {
      at = runnel_gguf_next_string (at, &text, &length);
      sum += g_utf8_validate_len (text, length, NULL);
    }
    g_assert_true (at == array.end);
  } else if (runnel_gguf_get_array (gguf, key, RUNNEL_GGUF_INT32, &array,
          NULL)) {
    for (const guint8 *at = array.data; at < array.end; at++)
      sum += *at;
    g_assert_cmpuint (array.end - array.data, ==, 4 * array.n);
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  g_autoptr (RunnelMapping) mapping =
      runnel_mapping_new_from_bytes (bytes, "fuzz");
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGguf) gguf = runnel_gguf_new (mapping, &error);

  g_assert_true ((gguf == NULL) == (error != NULL));
  if (gguf == NULL)
    return 0;
  for (gsize i = 0; i < runnel_gguf_n_keys (gguf); i++)
    read_value (gguf, runnel_gguf_key (gguf, i));
  for (gsize i = 0; i < runnel_gguf_n_tensors (gguf); i++) {
    const RunnelTensor *tensor = runnel_gguf_tensor (gguf, i);
    g_autofree float *values = g_new (float, tensor->dims[0]);

    g_assert_true (runnel_gguf_find_tensor (gguf, tensor->name) == tensor);
    for (guint64 row = 0; row < runnel_tensor_n_rows (tensor); row++)
      runnel_tensor_type_dequantize_row (tensor->type,
          runnel_tensor_data (tensor), tensor->dims[0], row, values);
  }
  return 0;
}

/* Every other one is the good file: what is deep is reached from there. */
const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  static HostileGguf *cases;
  static GBytes *good;
  static gsize n;
  GBytes *seed;

  if (cases == NULL) {
    good = make_good_gguf ();
    cases = make_hostile_gguf (&n);
  }
  if (i / 2 >= n)
    return NULL;
  seed = i % 2 == 0 ? good : cases[i / 2].bytes;
  *size = g_bytes_get_size (seed);
  /* One of them is empty, and NULL would end the list. */
  return *size > 0 ? g_bytes_get_data (seed, NULL) : (const uint8_t *) "";
}
