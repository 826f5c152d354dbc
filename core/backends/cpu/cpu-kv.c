/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Pages of keys and values on the CPU: their geometry, and their rows to and
 * from the host.
 */
#include <string.h>

#include "cpu-backend.h"

RunnelKvLayout
runnel_cpu_kv_layout (const RunnelShape *shape)
{
  static const RunnelKvFormat formats[] = {
    [RUNNEL_KV_TYPE_F16] = RUNNEL_KV_F16,
    [RUNNEL_KV_TYPE_F32] = RUNNEL_KV_F32,
    [RUNNEL_KV_TYPE_INT8] = RUNNEL_KV_INT8,
  };
  RunnelKvLayout kv = {
    .format = formats[shape->kv_type],
    .page_rows = RUNNEL_CPU_PAGE_ROWS,
    .n_kv_heads = shape->n_kv_heads,
    .head_dim = shape->head_dim,
  };

  return kv;
}

guint
runnel_cpu_page_rows (RunnelBackend *backend)
{
  return RUNNEL_CPU_PAGE_ROWS;
}

gsize
runnel_cpu_page_bytes (RunnelBackend *backend, const RunnelShape *shape)
{
  RunnelKvLayout kv = runnel_cpu_kv_layout (shape);

  return 2 * runnel_kv_plane_bytes (&kv) * shape->n_layers;
}

void
runnel_cpu_kv_read (RunnelBackend *backend, const RunnelShape *shape,
                    const guint8 *page, guint row, float *k, float *v)
{
  RunnelKvLayout kv = runnel_cpu_kv_layout (shape);
  gsize layer_bytes = 2 * runnel_kv_plane_bytes (&kv);
  gsize n = (gsize) shape->n_kv_heads * shape->head_dim;

  for (guint l = 0; l < shape->n_layers; l++)
    runnel_cpu_backend_table (backend)->kv_load (&kv, page + l * layer_bytes,
        row, k + l * n, v + l * n);
}

void
runnel_cpu_kv_write (RunnelBackend *backend, const RunnelShape *shape,
                     guint8 *page, guint row, const float *k, const float *v)
{
  RunnelKvLayout kv = runnel_cpu_kv_layout (shape);
  gsize layer_bytes = 2 * runnel_kv_plane_bytes (&kv);
  gsize n = (gsize) shape->n_kv_heads * shape->head_dim;

  for (guint l = 0; l < shape->n_layers; l++)
    runnel_cpu_backend_table (backend)->kv_store (&kv, page + l * layer_bytes,
        row, k + l * n, v + l * n);
}

/* Where the bits of a row lie: from a page or, when `import` is set, into
 * it. */
typedef struct {
  guint8 *bits;              /* the next */
  gboolean import;
} RowCopy;

static void
copy_bits (RowCopy *copy, guint8 *at, gsize size)
{
  memcpy (copy->import ? at : copy->bits, copy->import ? copy->bits : at,
      size);
  copy->bits += size;
}

/* A row of a head of one layer: K is strided, V contiguous, and each is
 * followed by its scale where it has one. */
static void
copy_head_row (RowCopy *copy, const RunnelKvLayout *kv, guint8 *layer,
               guint head, guint row)
{
  gsize element = runnel_kv_element_size (kv->format);
  gsize first = (gsize) head * kv->page_rows;
  guint8 *v_plane = layer + runnel_kv_plane_bytes (kv);
  guint8 *k = layer + (first + row / RUNNEL_KV_TILE * RUNNEL_KV_TILE)
      * kv->head_dim * element + row % RUNNEL_KV_TILE * element;

  for (guint d = 0; d < kv->head_dim; d++)
    copy_bits (copy, k + d * RUNNEL_KV_TILE * element, element);
  if (kv->format == RUNNEL_KV_INT8)
    copy_bits (copy, layer + runnel_kv_scale_offset (kv, head, row),
        sizeof (float));
  copy_bits (copy, v_plane + (first + row) * kv->head_dim * element,
      kv->head_dim * element);
  if (kv->format == RUNNEL_KV_INT8)
    copy_bits (copy, v_plane + runnel_kv_scale_offset (kv, head, row),
        sizeof (float));
}

static void
copy_row (const RunnelShape *shape, guint8 *page, guint row, guint8 *bits,
          gboolean import)
{
  RunnelKvLayout kv = runnel_cpu_kv_layout (shape);
  gsize layer_bytes = 2 * runnel_kv_plane_bytes (&kv);
  RowCopy copy = { bits, import };

  for (guint l = 0; l < shape->n_layers; l++)
    for (guint h = 0; h < kv.n_kv_heads; h++)
      copy_head_row (&copy, &kv, page + l * layer_bytes, h, row);
}

void
runnel_cpu_kv_export (RunnelBackend *backend, const RunnelShape *shape,
                      const guint8 *page, guint row, guint8 *bits)
{
  copy_row (shape, (guint8 *) page, row, bits, FALSE);
}

void
runnel_cpu_kv_import (RunnelBackend *backend, const RunnelShape *shape,
                      guint8 *page, guint row, const guint8 *bits)
{
  copy_row (shape, page, row, (guint8 *) bits, TRUE);
}
