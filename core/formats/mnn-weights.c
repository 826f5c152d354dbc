/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "mnn-weights.h"

#include <math.h>
#include <string.h>

#include "../error-private.h"

#define fail(file, error, code, ...) \
  (runnel_set_error_about (error, code, runnel_mapping_name (file), \
      __VA_ARGS__), FALSE)

gboolean
runnel_mnn_check_range (const RunnelMapping *file, guint64 at, guint64 bytes,
    const char *what, GError **error)
{
  gsize size = runnel_mapping_size (file);

  if (at <= size && bytes <= size - at)
    return TRUE;
  return fail (file, error, RUNNEL_ERROR_TRUNCATED, "has %" G_GSIZE_FORMAT
      " bytes; '%s' asks for %" G_GUINT64_FORMAT " at %" G_GUINT64_FORMAT,
      size, what, bytes, at);
}

/* --- headers --- */

static guint32
load_size (const guint8 *p, gboolean wide)
{
  guint32 value;

  if (!wide)
    return runnel_load_u16 (p);
  memcpy (&value, p, sizeof value);
  return GUINT32_FROM_LE (value);
}

/* A table that maps codes to themselves is the only one written. */
static gboolean
is_plain_table (const guint8 *table, guint bits)
{
  guint n = 1u << bits;

  if (table[0] != (guint8) n)
    return FALSE;
  for (guint i = 0; i < n; i++)
    if ((gint8) table[1 + i] != (gint) i - (gint) (n / 2))
      return FALSE;
  return TRUE;
}

gboolean
runnel_mnn_codes_find (RunnelMnnCodes *self, RunnelMapping *file,
    const RunnelMnnLinear *linear, GError **error)
{
  gsize size_bytes = linear->wide ? 4 : 2;
  gsize table_at = 1 + 2 * size_bytes;
  gsize header = table_at + 1 + (1u << linear->bits);
  const guint8 *p;

  if (!runnel_mnn_check_range (file, linear->at, linear->codes_bytes,
          linear->op, error))
    return FALSE;
  if (linear->codes_bytes < header)
    return fail (file, error, RUNNEL_ERROR_TRUNCATED, "'%s' has %"
        G_GUINT64_FORMAT " bytes; its header alone takes %" G_GSIZE_FORMAT,
        linear->op, linear->codes_bytes, header);
  p = runnel_mapping_data (file) + linear->at;
  if (p[0] != 2 || load_size (p + 1, linear->wide) != linear->rows ||
      load_size (p + 1 + size_bytes, linear->wide) != linear->columns)
    return fail (file, error, RUNNEL_ERROR_MISMATCH, "'%s' begins with %u "
        "sizes, %u and %u; the graph has %u rows of %u", linear->op, p[0],
        load_size (p + 1, linear->wide),
        load_size (p + 1 + size_bytes, linear->wide), linear->rows,
        linear->columns);
  if (!is_plain_table (p + table_at, linear->bits))
    return fail (file, error, RUNNEL_ERROR_UNSUPPORTED, "'%s' has a table of "
        "its own for its codes; only equal steps are supported", linear->op);
  *self = (RunnelMnnCodes) {
    .file = file, .name = linear->op, .rows = linear->rows,
    .columns = linear->columns, .bits = linear->bits,
    .offset = linear->offset, .half_scales = linear->half_scales,
    .codes_at = linear->at + header,
    .codes_bytes = linear->codes_bytes - header,
    .scales_at = linear->at + linear->codes_bytes,
    .scales_bytes = linear->scales_bytes,
  };
  return TRUE;
}

/* --- making tiles --- */

typedef struct {
  RunnelMnnCodes codes;        /* with a reference to the file */
  RunnelTileForm form;
  guint block;                 /* columns that share a scale */
} Source;

static void
source_free (gpointer data)
{
  Source *self = data;

  runnel_mapping_unref (self->codes.file);
  g_free (self);
}

/* Writes four bytes, the lowest first. */
static void
store_lanes (guint8 *out, guint32 lanes)
{
  lanes = GUINT32_TO_LE (lanes);
  memcpy (out, &lanes, sizeof lanes);
}

/* 32 codes of 4 bits, the first of a byte in its high half, to the lanes of
 * one row: columns 4v … 4v + 3 low, 16 + 4v … 19 + 4v high. */
static void
place_4_bits (const guint8 *p, guint8 *out)
{
  for (guint v = 0; v < 4; v++) {
    guint32 a = p[2 * v], b = p[2 * v + 1];
    guint32 c = p[8 + 2 * v], d = p[9 + 2 * v];

    store_lanes (out + 32 * v, (a >> 4 | (c & 0xf0)) |
        ((a & 15) | (c & 15) << 4) << 8 | (b >> 4 | (d & 0xf0)) << 16 |
        ((b & 15) | (d & 15) << 4) << 24);
  }
}

/* Bytes to signed codes. */
static void
place_8_bits (const guint8 *p, guint8 *out)
{
  for (guint v = 0; v < 8; v++) {
    guint32 codes;

    memcpy (&codes, p + 4 * v, sizeof codes);
    codes ^= 0x80808080;
    memcpy (out + 32 * v, &codes, sizeof codes);
  }
}

/* 2 or 3 bits become 4, with the same distance to their origin. */
static void
place_few_bits (const guint8 *p, guint bits, guint8 *out)
{
  guint8 widened[RUNNEL_TILE_COLUMNS / 2] = { 0 };

  for (guint i = 0; i < RUNNEL_TILE_COLUMNS; i++) {
    guint bit = i * bits;
    guint pair = p[bit / 8] << 8;

    /* 32 codes are whole bytes, so the last ends one. */
    if (bit % 8 + bits > 8)
      pair |= p[bit / 8 + 1];
    pair = pair >> (16 - bit % 8 - bits) & ((1u << bits) - 1);
    widened[i / 2] |= (pair + 8 - (1u << (bits - 1))) << (i % 2 ? 0 : 4);
  }
  place_4_bits (widened, out);
}

static guint16
load_scale (const guint8 *scales, gsize i, gboolean half)
{
  guint32 bits;

  if (half)
    return runnel_load_u16 (scales + 2 * i);
  memcpy (&bits, scales + 4 * i, sizeof bits);
  return runnel_float_to_half (runnel_float_from_bits (
          GUINT32_FROM_LE (bits)));
}

static void
store_half (guint8 *out, guint16 half)
{
  out[0] = half & 0xff;
  out[1] = half >> 8;
}

/* One row into lane @r of its tile, whose bytes are zero before. */
static void
make_row (const Source *self, const guint8 *data, guint row, guint8 *tile)
{
  const RunnelMnnCodes *from = &self->codes;
  guint r = row % RUNNEL_TILE_ROWS;
  guint per_block = from->offset ? 2 : 1;
  gsize first = (gsize) row * (from->columns / self->block) * per_block;
  const guint8 *codes = data + from->codes_at +
      (gsize) row * from->columns * from->bits / 8;
  const guint8 *scales = data + from->scales_at;

  for (guint c = 0; c < from->columns; c += RUNNEL_TILE_COLUMNS) {
    if (c % self->form.group == 0) {
      gsize at = first + c / self->block * per_block;

      if (from->offset)
        store_half (tile + 2 * RUNNEL_TILE_ROWS + 2 * r,
            load_scale (scales, at++, from->half_scales));
      store_half (tile + 2 * r, load_scale (scales, at, from->half_scales));
      tile += runnel_tile_head_bytes (self->form);
    }
    if (from->bits == 4)
      place_4_bits (codes, tile + 4 * r);
    else if (from->bits == 8)
      place_8_bits (codes, tile + 4 * r);
    else
      place_few_bits (codes, from->bits, tile + 4 * r);
    codes += RUNNEL_TILE_COLUMNS * from->bits / 8;
    tile += runnel_tile_code_bytes (self->form);
  }
}

static void
make_tiles (guint8 *into, gpointer user_data)
{
  const Source *self = user_data;
  const RunnelMnnCodes *from = &self->codes;
  const guint8 *data = runnel_mapping_data (from->file);
  gsize stride = runnel_tile_bytes (self->form, from->columns);

  for (guint row = 0; row < from->rows; row++)
    make_row (self, data, row, into + row / RUNNEL_TILE_ROWS * stride);
  runnel_mapping_release (from->file, from->codes_at, from->codes_bytes);
  runnel_mapping_release (from->file, from->scales_at, from->scales_bytes);
}

/* --- checking --- */

/* Columns that share a scale, from the number of the scales; 0 on error. */
static guint
find_block (const RunnelMnnCodes *self, GError **error)
{
  guint64 scale_bytes = (self->half_scales ? 2 : 4) * (self->offset ? 2 : 1);
  guint64 per_row = self->scales_bytes / scale_bytes / self->rows;
  guint block;

  if (per_row == 0 || per_row > self->columns ||
      self->columns % per_row != 0 ||
      per_row * self->rows * scale_bytes != self->scales_bytes)
    return fail (self->file, error, RUNNEL_ERROR_MISMATCH, "'%s': %"
        G_GUINT64_FORMAT " bytes of scales are no whole number of blocks for "
        "each of %u rows of %u", self->name, self->scales_bytes, self->rows,
        self->columns);
  block = self->columns / per_row;
  if (block % 32 != 0)
    return fail (self->file, error, RUNNEL_ERROR_UNSUPPORTED, "'%s' has "
        "blocks of %u columns; multiples of 32 are supported (export it with "
        "--quant_block 64 or 32)", self->name, block);
  return block;
}

static RunnelTensorType
choose_type (const RunnelMnnCodes *self, guint block)
{
  gboolean wide = block % 64 == 0;

  if (self->bits == 8 && self->offset)
    return wide ? RUNNEL_TENSOR_INT8_64_OFFSET : RUNNEL_TENSOR_INT8_32_OFFSET;
  if (self->bits == 8)
    return wide ? RUNNEL_TENSOR_INT8_64 : RUNNEL_TENSOR_INT8_32;
  if (self->offset)
    return wide ? RUNNEL_TENSOR_INT4_64_CENTRED :
        RUNNEL_TENSOR_INT4_32_CENTRED;
  return wide ? RUNNEL_TENSOR_INT4_64 : RUNNEL_TENSOR_INT4_32;
}

/* Scales must be finite as half floats; what float32 ones lose is measured. */
static gboolean
check_scales (const RunnelMnnCodes *self, RunnelMnnRounding *rounding,
    GError **error)
{
  const guint8 *scales = runnel_mapping_data (self->file) + self->scales_at;
  RunnelMnnRounding found = { self->scales_bytes / 4, 0, 0 };

  if (self->half_scales) {
    *rounding = (RunnelMnnRounding) { self->scales_bytes / 2, 0, 0 };
    return TRUE;
  }
  for (gsize i = 0; i < found.n; i++) {
    float half = runnel_half_to_float (load_scale (scales, i, FALSE));
    guint32 bits;
    float exact;

    memcpy (&bits, scales + 4 * i, sizeof bits);
    exact = runnel_float_from_bits (GUINT32_FROM_LE (bits));
    if (!isfinite (half))
      return fail (self->file, error, RUNNEL_ERROR_LIMIT, "'%s': scale or "
          "zero point %" G_GSIZE_FORMAT " is %g, which no half float holds",
          self->name, i, exact);
    if (half == exact)
      continue;
    found.n_rounded++;
    found.max_error = MAX (found.max_error,
        fabs ((double) half - exact) / fabs (exact));
  }
  *rounding = found;
  return TRUE;
}

gboolean
runnel_mnn_codes_make_tensor (const RunnelMnnCodes *self, gboolean again,
    RunnelTensor *ret, RunnelMnnRounding *rounding, GError **error)
{
  guint64 codes_bytes = (guint64) self->rows * self->columns * self->bits / 8;
  guint block = find_block (self, error);
  RunnelTensor tensor = { 0 };
  guint64 bytes;
  Source *source;

  if (block == 0)
    return FALSE;
  if (self->codes_bytes != codes_bytes)
    return fail (self->file, error, RUNNEL_ERROR_MISMATCH, "'%s': %u rows of "
        "%u codes of %u bits take %" G_GUINT64_FORMAT " bytes, not %"
        G_GUINT64_FORMAT, self->name, self->rows, self->columns, self->bits,
        codes_bytes, self->codes_bytes);
  if (!runnel_mnn_check_range (self->file, self->codes_at, self->codes_bytes,
          self->name, error) ||
      !runnel_mnn_check_range (self->file, self->scales_at,
          self->scales_bytes, self->name, error) ||
      !check_scales (self, rounding, error))
    return FALSE;
  tensor.type = choose_type (self, block);
  tensor.n_dims = 2;
  tensor.dims[0] = self->columns;
  tensor.dims[1] = self->rows;
  tensor.dims[2] = tensor.dims[3] = 1;
  if (!runnel_tensor_type_bytes (tensor.type, self->columns, self->rows,
          &bytes) || bytes > G_MAXSSIZE)
    return fail (self->file, error, RUNNEL_ERROR_LIMIT, "'%s': %u rows of %u "
        "are larger than memory", self->name, self->rows, self->columns);
  tensor.bytes = bytes;
  source = g_new0 (Source, 1);
  source->codes = *self;
  source->codes.name = NULL;
  source->block = block;
  runnel_mapping_ref (self->file);
  runnel_blocks_tile_form (tensor.type, &source->form);
  tensor.mapping = runnel_mapping_new_filled (bytes,
      runnel_mapping_name (self->file), make_tiles, source, source_free, again,
      error);
  if (tensor.mapping == NULL)
    return FALSE;
  *ret = tensor;
  return TRUE;
}
