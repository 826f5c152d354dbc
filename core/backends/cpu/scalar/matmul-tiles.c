/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Products with interleaved weights: tiles of 8 rows, 32 columns at a time.
 */
#include "scalar.h"

#include <string.h>

#define TILE RUNNEL_TILE_ROWS
#define GROUP RUNNEL_GROUP

typedef int8_t Codes[TILE][GROUP];

static void
unpack_4_bits (const uint8_t *packed, int origin, Codes codes)
{
  for (int v = 0; v < 4; v++) {
    for (int r = 0; r < TILE; r++) {
      for (int b = 0; b < 4; b++) {
        uint8_t byte = packed[32 * v + 4 * r + b];

        codes[r][4 * v + b] = (int8_t) ((byte & 15) - origin);
        codes[r][16 + 4 * v + b] = (int8_t) ((byte >> 4) - origin);
      }
    }
  }
}

static void
unpack_8_bits (const uint8_t *packed, Codes codes)
{
  for (int v = 0; v < 8; v++) {
    for (int r = 0; r < TILE; r++)
      memcpy (&codes[r][4 * v], packed + 32 * v + 4 * r, 4);
  }
}

/* acc = acc + (d · scale) · isum, and acc + m · moment, of one group. */
static void
add_group (const Codes codes, const float *d, const float *m, const int8_t *q,
    float scale, float moment, float *acc)
{
  for (int r = 0; r < TILE; r++) {
    int32_t isum = 0;

    for (int c = 0; c < GROUP; c++)
      isum += codes[r][c] * q[c];
    acc[r] = acc[r] + (d[r] * scale) * (float) isum;
    if (m != NULL)
      acc[r] = acc[r] + m[r] * moment;
  }
}

static inline void
matmul (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end,
    RunnelTileForm form)
{
  uint32_t groups = runnel_n_groups (w->columns);
  uint32_t per_scale = (uint32_t) form.group / GROUP;

  for (uint32_t t = tile_begin; t < tile_end; t++) {
    const uint8_t *p = w->data + t * w->stride;
    uint32_t first = t * TILE;
    float d[TILE] = { 0.0f }, m[TILE] = { 0.0f };

    for (uint32_t i = 0; i < x->n; i++)
      memset (y + i * y_stride + first, 0, TILE * sizeof (float));

    for (uint32_t g = 0; g < groups; g++) {
      Codes codes;

      if (g % per_scale == 0) {
        for (int r = 0; r < TILE; r++) {
          d[r] = runnel_load_half (p + 2 * r);
          m[r] = form.offset ? runnel_load_half (p + 16 + 2 * r) : 0.0f;
        }
        p += runnel_tile_head_bytes (form);
      }
      if (form.bits == 4)
        unpack_4_bits (p, form.origin, codes);
      else
        unpack_8_bits (p, codes);
      p += runnel_tile_code_bytes (form);

      for (uint32_t i = 0; i < x->n; i++) {
        size_t at = (size_t) i * groups + g;

        add_group (codes, d, form.offset ? m : NULL, x->q + at * GROUP,
            x->scale[at], x->moment[at], y + i * y_stride + first);
      }
    }

    for (uint32_t i = 0; i < x->n; i++) {
      float *out = y + i * y_stride + first;

      for (uint32_t r = 0; r < TILE; r++) {
        if (first + r >= w->rows)
          out[r] = 0.0f;
        else if (bias != NULL)
          out[r] = out[r] + bias[first + r];
      }
    }
  }
}

#define DEFINE_MATMUL(kind, name)                                             \
  RUNNEL_DECLARE_MATMUL (runnel_scalar_matmul_##name)                         \
  {                                                                           \
    matmul (w, x, bias, y, y_stride, tile_begin, tile_end,                    \
        runnel_matrix_tile_form (RUNNEL_MATRIX_##kind));                      \
  }

RUNNEL_FOR_EACH_TILE_KIND (DEFINE_MATMUL)
