/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "float-twin.h"

#include <unistd.h>

#include "formats/blocks.h"
#include "formats/gguf.h"

static void
copy_key (RunnelGgufWriter *writer, RunnelGguf *gguf, const char *key)
{
  guint64 number;
  double real;
  const char *text;
  gsize length;

  switch (runnel_gguf_type (gguf, key)) {
    case RUNNEL_GGUF_UINT32:
      if (runnel_gguf_get_uint (gguf, key, 0, G_MAXUINT32, &number, NULL))
        runnel_gguf_writer_add_uint32 (writer, key, number);
      break;
    case RUNNEL_GGUF_FLOAT32:
      if (runnel_gguf_get_double (gguf, key, &real, NULL))
        runnel_gguf_writer_add_float32 (writer, key, (float) real);
      break;
    case RUNNEL_GGUF_STRING:
      if (runnel_gguf_get_string (gguf, key, &text, &length, NULL))
        runnel_gguf_writer_add_string (writer, key, text, length);
      break;
    default:
      /* Arrays are the tokenizer's: token ids are given here. */
      break;
  }
}

static void
copy_tensor (RunnelGgufWriter *writer, const RunnelTensor *tensor)
{
  gsize rows = runnel_tensor_n_rows (tensor), n = tensor->dims[0] * rows;
  float *values = g_new (float, n);
  g_autoptr (GBytes) data = g_bytes_new_take (values, n * sizeof (float));

  for (gsize row = 0; row < rows; row++)
    runnel_tensor_type_dequantize_row (tensor->type,
        runnel_tensor_data (tensor), tensor->dims[0], row,
        values + row * tensor->dims[0]);
  runnel_gguf_writer_add_tensor (writer, tensor->name, RUNNEL_TENSOR_F32,
      tensor->dims, tensor->n_dims, data);
}

char *
float_twin_write (const char *path, GError **error)
{
  g_autoptr (RunnelGguf) gguf
      = runnel_gguf_open (path, RUNNEL_LOAD_MODE_MAP, error);
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autofree char *twin = NULL;
  int fd;

  if (gguf == NULL)
    return NULL;
  for (gsize i = 0; i < runnel_gguf_n_keys (gguf); i++)
    copy_key (writer, gguf, runnel_gguf_key (gguf, i));
  for (gsize i = 0; i < runnel_gguf_n_tensors (gguf); i++)
    copy_tensor (writer, runnel_gguf_tensor (gguf, i));
  fd = g_file_open_tmp ("runnel-float-XXXXXX.gguf", &twin, error);
  if (fd < 0)
    return NULL;
  close (fd);
  if (!runnel_gguf_writer_save (writer, twin, error))
    return NULL;
  return g_steal_pointer (&twin);
}
