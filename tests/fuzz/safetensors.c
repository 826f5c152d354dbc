/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A safetensors file: whatever opens is read through.
 */
#include <stdint.h>

#include "../core/formats/hostile-safetensors.h"
#include "formats/safetensors.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
const uint8_t *runnel_fuzz_seeds (size_t i, size_t *size);

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  g_autoptr (RunnelMapping) mapping =
      runnel_mapping_new_from_bytes (bytes, "fuzz");
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelSafetensors) file =
      runnel_safetensors_new (mapping, &error);

  g_assert_true ((file == NULL) == (error != NULL));
  for (gsize i = 0; file != NULL && i < runnel_safetensors_n_tensors (file);
      i++) {
    const RunnelTensor *tensor = runnel_safetensors_tensor (file, i);
    gsize n = tensor->dims[0] * tensor->dims[1] * tensor->dims[2] *
        tensor->dims[3];
    g_autofree float *values = g_new (float, n);

    g_assert_true (runnel_safetensors_find (file, tensor->name) == tensor);
    g_assert_null (runnel_safetensors_unusable (file, tensor->name));
    runnel_blocks_dequantize (tensor->type) (values,
        runnel_tensor_data (tensor), n);
  }
  return 0;
}

/* Every other one is the good file: what is deep is reached from there. */
const uint8_t *
runnel_fuzz_seeds (size_t i, size_t *size)
{
  static GPtrArray *seeds;

  if (seeds == NULL) {
    seeds = g_ptr_array_new ();
    for (gsize k = 0; k < G_N_ELEMENTS (hostile_safetensors); k++) {
      g_ptr_array_add (seeds, make_safetensors (GOOD_SAFETENSORS, -1,
              GOOD_SAFETENSORS_DATA));
      g_ptr_array_add (seeds, make_safetensors (hostile_safetensors[k].header,
              hostile_safetensors[k].length, hostile_safetensors[k].n_data));
    }
  }
  return i < seeds->len ? g_bytes_get_data (seeds->pdata[i], size) : NULL;
}
