/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tiny-mnn.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "flat-writer.h"
#include "tiny-mnn-tokenizer.h"
#include "formats/checkpoint.h"
#include "model/architecture.h"

#define TABLE_ROWS 16        /* positions that have cosines */

typedef struct {
  RunnelCheckpoint *from;
  const RunnelHyperparameters *hp;
  const TinyMnn *how;
  GByteArray *weights, *graph;
  gsize next_op;               /* slot of the next operator */
  gint32 tensor;               /* the last one that was given a number */
  gint32 rows;                 /* the residual sum so far, and what is still */
  gint32 branch;               /* to be added to it; -1 without */
  gint64 output_codes, output_scales, output_scale_bytes;
} Writer;

/* ---- Weights ------------------------------------------------------------- */

static void
put (GByteArray *out, const void *data, gsize n)
{
  g_byte_array_append (out, data, n);
}

static const RunnelTensor *
find (Writer *self, RunnelPart part, guint layer)
{
  g_autofree char *name = runnel_part_dup_name (part, layer);

  return runnel_checkpoint_tensor (self->from, name);
}

static guint
code_at (const guint8 *codes, guint bits, guint r, guint c)
{
  return bits == 8 ? codes[32 * (c / 4) + 4 * r + c % 4] ^ 0x80
      : codes[32 * (c % 16 / 4) + 4 * r + c % 4] >> c / 16 * 4 & 15;
}

static void
put_scale (Writer *self, GByteArray *scales, const guint8 *half)
{
  guint16 bits = runnel_load_u16 (half);
  float value = runnel_half_to_float (bits);

  if (!self->how->float_scales) {
    put (scales, &bits, sizeof bits);
    return;
  }
  if (self->how->scale_factor != 0)
    value *= self->how->scale_factor;
  if (self->how->fault == TINY_MNN_HUGE_SCALE)
    value = 1e6f;
  put (scales, &value, sizeof value);
}

/* The first of a byte in its high bits. */
static void
put_bits (GByteArray *codes, guint *n_bits, guint code, guint bits)
{
  for (guint i = bits; i-- > 0; (*n_bits)++) {
    if (*n_bits % 8 == 0)
      put (codes, "", 1);
    codes->data[codes->len - 1] |= (code >> i & 1) << (7 - *n_bits % 8);
  }
}

/* Of codes in the package. */
static guint
count_bits (Writer *self, RunnelTileForm form)
{
  return form.bits == 4 && self->how->bits > 0 ? self->how->bits
      : (guint) form.bits;
}

/* Codes and scales of a tiled matrix in MNN's order. */
static void
split_tiles (Writer *self, const RunnelTensor *tensor, RunnelTileForm form,
             GByteArray *codes, GByteArray *scales)
{
  guint columns = tensor->dims[0], bits = count_bits (self, form), n_bits = 0;

  for (guint row = 0; row < tensor->dims[1]; row++) {
    guint r = row % RUNNEL_TILE_ROWS;
    const guint8 *p = runnel_tensor_data (tensor)
        + row / RUNNEL_TILE_ROWS * runnel_tile_bytes (form, columns);

    for (guint c = 0; c < columns; c++) {
      if (c % (guint) form.group == 0) {
        if (form.offset)
          put_scale (self, scales, p + 16 + 2 * r);
        put_scale (self, scales, p + 2 * r);
        p += runnel_tile_head_bytes (form);
      }
      put_bits (codes, &n_bits, code_at (p, form.bits, r, c % 32), bits);
      if (c % 32 == 31)
        p += runnel_tile_code_bytes (form);
    }
  }
}

static void
put_header (Writer *self, const RunnelTensor *tensor, guint bits,
            gboolean spoiled)
{
  guint8 start = 2, n_values = 1u << bits;
  guint32 sizes[2] = { tensor->dims[1], tensor->dims[0] };

  if (spoiled && self->how->fault == TINY_MNN_HEADER)
    sizes[0]++;
  put (self->weights, &start, 1);
  for (guint i = 0; i < 2; i++) {
    guint16 narrow = sizes[i];

    put (self->weights, self->how->wide ? (void *) &sizes[i]
        : (void *) &narrow, self->how->wide ? 4 : 2);
  }
  put (self->weights, &n_values, 1);
  for (gint i = 0; i < 1 << bits; i++) {
    gint8 value = i - (1 << bits) / 2;

    if (spoiled && self->how->fault == TINY_MNN_TABLE)
      value /= 2;
    put (self->weights, &value, 1);
  }
}

typedef struct {
  gint64 external[5];
  guint bits;
  gboolean offset;
  guint n_blocks;
} Blob;

static RunnelPart
bias_part (RunnelPart part)
{
  return part == RUNNEL_PART_Q ? RUNNEL_PART_Q_BIAS
      : part == RUNNEL_PART_K ? RUNNEL_PART_K_BIAS
      : part == RUNNEL_PART_V ? RUNNEL_PART_V_BIAS : RUNNEL_N_PARTS;
}

static void
put_bias (Writer *self, Blob *blob, RunnelPart part, guint layer, guint rows,
          gboolean spoiled)
{
  RunnelPart bias = bias_part (part);
  const RunnelTensor *tensor
      = bias != RUNNEL_N_PARTS ? find (self, bias, layer) : NULL;
  g_autofree float *ones = NULL;

  if (tensor != NULL) {
    put (self->weights, runnel_tensor_data (tensor), tensor->bytes);
    blob->external[3] = tensor->bytes;
  } else if (spoiled && self->how->fault == TINY_MNN_BIAS) {
    ones = g_new (float, rows);
    for (guint i = 0; i < rows; i++)
      ones[i] = 1;
    put (self->weights, ones, 4 * rows);
    blob->external[3] = 4 * rows;
  }
}

static void
put_matrix (Writer *self, Blob *blob, RunnelPart part, guint layer)
{
  const RunnelTensor *tensor = find (self, part, layer);
  g_autoptr (GByteArray) codes = g_byte_array_new ();
  g_autoptr (GByteArray) scales = g_byte_array_new ();
  gboolean spoiled = part == RUNNEL_PART_O && layer == 0;
  RunnelTileForm form;

  *blob = (Blob) { .external = { self->weights->len } };
  if (tensor->type == RUNNEL_TENSOR_F16) {
    put (self->weights, runnel_tensor_data (tensor), tensor->bytes);
    blob->bits = 16;
    blob->external[1] = tensor->bytes;
    put_bias (self, blob, part, layer, tensor->dims[1], spoiled);
    return;
  }
  g_assert_true (runnel_blocks_tile_form (tensor->type, &form));
  g_assert_true (form.bits == 8 || form.origin == 8);
  split_tiles (self, tensor, form, codes, scales);
  if (spoiled && self->how->fault == TINY_MNN_BLOCK)
    while (scales->len < tensor->dims[1] * tensor->dims[0] / 16
               * (form.offset ? 2 : 1) * (self->how->float_scales ? 4 : 2))
      put (scales, "", 1);
  blob->bits = count_bits (self, form);
  put_header (self, tensor, blob->bits, spoiled);
  put (self->weights, codes->data, codes->len);
  put (self->weights, scales->data, scales->len);
  blob->external[1] = self->weights->len - scales->len - blob->external[0];
  blob->external[2] = scales->len;
  blob->offset = form.offset;
  blob->n_blocks = tensor->dims[1] * tensor->dims[0] / form.group;
  put_bias (self, blob, part, layer, tensor->dims[1], spoiled);
}

/* ---- Operators ----------------------------------------------------------- */

/* Its parameters go to the slot that is returned. */
static gsize
put_op (Writer *self, const char *name, gint type, gint main_type,
        const gint32 *inputs, gsize n_inputs, const gint32 *outputs,
        gsize n_outputs)
{
  FlatField fields[] = {
    { 0, 'o' }, { 1, 'b', main_type }, { 3, 'o' }, { 4, 'o' },
    { 5, 'i', type }, { 2, 'o' },
  };
  gsize n = G_N_ELEMENTS (fields) - (main_type == 0);

  flat_table (self->graph, self->next_op, fields, n);
  self->next_op += 4;
  flat_int32s (self->graph, fields[0].slot, inputs, n_inputs);
  flat_string (self->graph, fields[2].slot, name);
  flat_int32s (self->graph, fields[3].slot, outputs, n_outputs);
  return fields[5].slot;
}

static gint32
new_tensor (Writer *self)
{
  return ++self->tensor;
}

static void
put_floats_op (Writer *self, const gint32 *dims, gsize n_dims,
               const float *values, gsize n, gint32 output)
{
  FlatField fields[] = { { 0, 'o' }, { 2, 'i', 1 }, { 7, 'o' } };
  gsize slot = put_op (self, "onnx::Gather", 11, 7, NULL, 0, &output, 1);

  flat_table (self->graph, slot, fields, G_N_ELEMENTS (fields));
  flat_int32s (self->graph, fields[0].slot, dims, n_dims);
  flat_floats (self->graph, fields[2].slot, values, n);
}

static void
put_table_op (Writer *self, gboolean sine, guint step)
{
  gint32 n = self->hp->rope_dimensions / 2;
  gint32 columns = self->how->wide ? 2 * n : n;
  gint32 dims[2] = { TABLE_ROWS, columns };
  g_autofree float *values = g_new (float, TABLE_ROWS * columns);
  double linear = self->how->rope_linear != 0 ? self->how->rope_linear : 1;

  for (gint32 i = 0; i < columns; i++) {
    double frequency = pow (self->hp->rope_base, -(double) (i % n) / n)
        / linear;

    if (self->how->rope_factors > 0
        && i % n >= (gint32) self->how->rope_factors)
      frequency /= 2;
    for (gint32 row = 0; row < TABLE_ROWS; row++)
      values[row * columns + i] = sine ? sin ((double) row * step * frequency)
          : cos ((double) row * step * frequency);
  }
  put_floats_op (self, dims, 2, values, TABLE_ROWS * columns,
      new_tensor (self));
}

static void
put_rotary (Writer *self)
{
  float factor = 1.25f;
  gint32 ins[2], out;

  if (self->how->fault == TINY_MNN_NO_TABLES)
    return;
  for (guint i = 0; i < 4; i++)
    put_table_op (self, i % 2, i < 2 ? TABLE_ROWS : 1);
  if (self->how->fault != TINY_MNN_YARN)
    return;
  ins[0] = self->tensor;
  ins[1] = new_tensor (self);
  out = new_tensor (self);
  put_floats_op (self, NULL, 0, &factor, 1, ins[1]);
  put_op (self, "/rotary/Mul_5_output_0", 7, 0, ins, 2, &out, 1);
}

static void
put_conv (Writer *self, gsize slot, RunnelPart part, guint layer)
{
  const RunnelTensor *tensor = find (self, part, layer);
  TinyMnnFault fault = part == RUNNEL_PART_O && layer == 0 ? self->how->fault
      : TINY_MNN_GOOD;
  FlatField conv[] = { { 0, 'o' }, { 3, 'o' }, { 6, 'o' } };
  FlatField common[] = {
    { 10, 'i', tensor->dims[1] }, { 11, 'i', tensor->dims[0] },
    { 2, 'i', fault == TINY_MNN_KERNEL ? 3 : 1 },
    { 9, 'i', fault == TINY_MNN_GROUPS ? 2 : 1 },
    { 12, 'b', fault == TINY_MNN_RELU },
  };
  Blob blob;

  put_matrix (self, &blob, part, layer);
  if (part == RUNNEL_PART_EMBEDDING || part == RUNNEL_PART_OUTPUT) {
    self->output_codes = blob.bits == 16 ? blob.external[0]
        : blob.external[0] + 2 + (self->how->wide ? 8 : 4) + (1 << blob.bits);
    self->output_scales = blob.external[0] + blob.external[1];
    self->output_scale_bytes = blob.external[2];
  }
  flat_table (self->graph, slot, conv, fault == TINY_MNN_INLINE ? 2 : 3);
  flat_table (self->graph, conv[0].slot, common, G_N_ELEMENTS (common));
  if (fault != TINY_MNN_INLINE)
    flat_int64s (self->graph, conv[2].slot, blob.external, 5);
  if (blob.bits == 16) {
    FlatField half[] = { { 2, 'i', 3 } };

    flat_table (self->graph, conv[1].slot, half, G_N_ELEMENTS (half));
  } else {
    FlatField how[] = {
      { 2, 'i', fault == TINY_MNN_KIND ? 2 : 1 },
      { 4, 'f', fault == TINY_MNN_EXTRA_SCALE ? 0.5 : 1 },
      { 7, 'i', fault == TINY_MNN_BITS ? 5 : blob.bits },
      { 8, 'i', fault == TINY_MNN_OLD_OFFSETS ? 0 : blob.offset },
      { 9, 'i', blob.offset ? blob.n_blocks : 0 },
      { 11, 'b', self->how->wide },
      { 15, 'b', !self->how->float_scales },
    };

    flat_table (self->graph, conv[1].slot, how, G_N_ELEMENTS (how));
  }
}

/* What the modules' names make of "model.layers.0.mlp.up_proj.weight". */
static char *
dup_op_name (RunnelPart part, guint layer)
{
  g_autofree char *hf = runnel_part_dup_hf_name (part, layer);
  g_autoptr (GString) name = g_string_new (hf);

  if (part == RUNNEL_PART_EMBEDDING || part == RUNNEL_PART_OUTPUT)
    return g_strdup ("/lm/lm_head/Linear");
  g_string_replace (name, "model.layers.", "layers#", 0);
  g_string_replace (name, ".weight", "", 0);
  g_string_replace (name, ".", "/", 0);
  g_string_replace (name, "#", ".", 0);
  return g_strdup_printf ("/%s/Linear", name->str);
}

static gint32
put_linear (Writer *self, gint32 input, RunnelPart part, guint layer)
{
  g_autofree char *name = dup_op_name (part, layer);
  gboolean spoiled = part == RUNNEL_PART_O && layer == 0;
  gint32 output = new_tensor (self);
  guint n = !spoiled ? 1 : self->how->fault == TINY_MNN_TWICE ? 2
      : self->how->fault == TINY_MNN_ABSENT ? 0 : 1;

  for (guint i = 0; i < n; i++)
    put_conv (self, put_op (self, spoiled && self->how->fault == TINY_MNN_NAME
        ? "/layers.0/self_attn/x_proj/Linear" : name, 12, 9, &input, 1,
        &output, 1), part, layer);
  return output;
}

/* With weights in the file, or in the graph as those of heads are. */
static void
put_norm (Writer *self, gsize slot, RunnelPart part, guint layer,
          gboolean inside)
{
  const RunnelTensor *tensor = find (self, part, layer);
  guint n = tensor->dims[0];
  gboolean spoiled = part == RUNNEL_PART_ATTN_NORM && layer == 0;
  FlatField fields[] = {
    { 0, 'o' },
    { 1, 'f', spoiled && self->how->fault == TINY_MNN_EPSILON ? 1e-3
        : self->hp->norm_epsilon },
    { 6, 'b', !spoiled || self->how->fault != TINY_MNN_LAYER_NORM },
    { inside ? 2 : 5, 'o' },
  };
  gint64 external[3] = { self->weights->len, 4 * n, 4 * n };
  g_autofree float *beta = g_new0 (float, n);
  gint32 axis = -1;

  flat_table (self->graph, slot, fields, G_N_ELEMENTS (fields));
  flat_int32s (self->graph, fields[0].slot, &axis, 1);
  if (inside) {
    flat_floats (self->graph, fields[3].slot,
        (const float *) runnel_tensor_data (tensor), n);
    return;
  }
  flat_int64s (self->graph, fields[3].slot, external, 3);
  beta[1] = spoiled && self->how->fault == TINY_MNN_BETA;
  put (self->weights, runnel_tensor_data (tensor), 4 * n);
  put (self->weights, beta, 4 * n);
}

/* The residual sum, normalised; a branch that waits is added first. */
static gint32
put_norm_op (Writer *self, const char *name, RunnelPart part, guint layer)
{
  gint32 ins[2] = { self->rows, self->branch };
  gint32 outs[2] = { new_tensor (self), 0 };
  gboolean adds = self->branch >= 0;

  if (adds) {
    self->rows = outs[0];
    outs[1] = new_tensor (self);
    self->branch = -1;
  }
  put_norm (self, put_op (self, name, 603, 88, ins, adds ? 2 : 1, outs,
      adds ? 2 : 1), part, layer, FALSE);
  return outs[adds];
}

/* q, k and v, or gate and up, in one operator; the first norm of all stays by
 * itself, as the exporter has it. */
static void
put_fused (Writer *self, const RunnelPart *parts, guint n, guint layer,
           gint32 *outputs)
{
  gboolean gated = n == 2, folded = gated || layer > 0;
  g_autofree char *name = dup_op_name (parts[0], layer);
  gint32 ins[2] = { self->rows, self->branch }, outs[4];
  guint n_outs = gated ? 1 : n;
  FlatField fields[] = {
    { 0, 'o' }, { 1, 'b', gated }, { 2, 'b', folded }, { 3, 'o' },
  };
  gsize convs;

  if (!folded)
    ins[0] = put_norm_op (self, "/blocks.0/input_layernorm/Mul_1_output_0",
        RUNNEL_PART_ATTN_NORM, layer);
  for (guint i = 0; i < n_outs; i++)
    outputs[i] = outs[i] = new_tensor (self);
  outs[n_outs] = new_tensor (self);
  flat_table (self->graph, put_op (self, name, 307, 103, ins, folded ? 2 : 1,
      outs, n_outs + folded), fields, folded ? 4 : 3);
  convs = flat_tables (self->graph, fields[0].slot, n);
  for (guint i = 0; i < n; i++)
    put_conv (self, convs + 4 * i, parts[i], layer);
  if (!folded)
    return;
  put_norm (self, fields[3].slot, gated ? RUNNEL_PART_FFN_NORM
      : RUNNEL_PART_ATTN_NORM, layer, FALSE);
  self->rows = outs[n_outs];
  self->branch = -1;
}

static void
put_projections (Writer *self, const RunnelPart *parts, guint n, guint layer,
                 gint32 *outputs)
{
  g_autofree char *name = g_strdup_printf ("/blocks.%u/%s/Mul_1_output_0",
      layer, n == 3 ? "input_layernorm" : "post_attention_layernorm");
  gint32 input, gate_up[2], gated;

  if (self->how->fused && (n == 3 || !self->how->partly)) {
    put_fused (self, parts, n, layer, outputs);
    return;
  }
  input = put_norm_op (self, name, n == 3 ? RUNNEL_PART_ATTN_NORM
      : RUNNEL_PART_FFN_NORM, layer);
  for (guint i = 0; i < n; i++)
    outputs[i] = put_linear (self, input, parts[i], layer);
  if (n == 3)
    return;
  gate_up[0] = outputs[1];
  gate_up[1] = outputs[0];
  gated = new_tensor (self);
  put_op (self, "/mlp/Mul_output_0", 7, 0, gate_up, 2, &gated, 1);
  outputs[0] = gated;
}

static void
put_rope_op (Writer *self, const gint32 *ins, const gint32 *outs, guint layer)
{
  g_autofree char *name = g_strdup_printf ("/layers.%u/self_attn/FusedRoPE",
      layer);
  gboolean norms = find (self, RUNNEL_PART_Q_NORM, layer) != NULL;
  FlatField fields[] = {
    { 0, 'i', self->hp->rope_dimensions },
    { 1, 'i', self->hp->n_heads
        + (layer == 1 && self->how->fault == TINY_MNN_HEADS) },
    { 2, 'i', self->hp->n_kv_heads }, { 3, 'i', self->hp->head_dim },
    { 4, 'o' }, { 5, 'o' },
  };

  flat_table (self->graph, put_op (self, name, 306, 102, ins, 2, outs, 2),
      fields, norms ? 6 : 4);
  if (!norms)
    return;
  put_norm (self, fields[4].slot, RUNNEL_PART_Q_NORM, layer, TRUE);
  put_norm (self, fields[5].slot, RUNNEL_PART_K_NORM, layer, TRUE);
}

static gint32
put_attention (Writer *self, gint32 *qkv, guint layer)
{
  g_autofree char *name = g_strdup_printf (
      "/layers.%u/self_attn/FusedAttention", layer);
  FlatField fields[] = {
    { 0, 'b', 1 }, { 2, 'i', layer },
    { 3, 'i', self->how->fault == TINY_MNN_SHARED ? 0 : -1 },
    { 6, 'f', 0 },
  };
  gint32 rotated[2] = { new_tensor (self), new_tensor (self) };
  gint32 ins[3] = { rotated[0], rotated[1], qkv[2] };
  gint32 output = new_tensor (self);

  put_rope_op (self, qkv, rotated, layer);
  flat_table (self->graph, put_op (self, name, 299, 98, ins, 3, &output, 1),
      fields, G_N_ELEMENTS (fields));
  return output;
}

static void
put_layer (Writer *self, guint layer)
{
  static const RunnelPart qkv[] = { RUNNEL_PART_Q, RUNNEL_PART_K,
    RUNNEL_PART_V };
  static const RunnelPart mlp[] = { RUNNEL_PART_GATE, RUNNEL_PART_UP };
  gint32 outputs[3];

  put_projections (self, qkv, 3, layer, outputs);
  self->branch = put_linear (self, put_attention (self, outputs, layer),
      RUNNEL_PART_O, layer);
  put_projections (self, mlp, 2, layer, outputs);
  self->branch = put_linear (self, outputs[0], RUNNEL_PART_DOWN, layer);
}

static void
put_end (Writer *self)
{
  gint32 ins[2] = { self->rows, self->branch };
  gint32 sum = new_tensor (self), hidden, shaped = new_tensor (self);

  put_op (self, "/blocks/Add_1_output_0", 7, 0, ins, 2, &sum, 1);
  self->rows = sum;
  self->branch = -1;
  hidden = put_norm_op (self, "hidden_states", RUNNEL_PART_OUTPUT_NORM, 0);
  put_op (self, "/lm/lm_head/Linear/pre_reshape", 73, 0, &hidden, 1, &shaped,
      1);
  put_linear (self, shaped, self->hp->tied ? RUNNEL_PART_EMBEDDING
      : RUNNEL_PART_OUTPUT, 0);
}

static void
put_graph (Writer *self)
{
  FlatField net[] = { { 3, 'o' }, { 10, 'o' } };
  gint32 input = new_tensor (self);
  gsize n_ops, first;

  flat_table (self->graph, 0, net,
      self->how->fault == TINY_MNN_SUBGRAPH ? 2 : 1);
  /* More than there are; the number is put right at the end. */
  n_ops = 16 + 16 * self->hp->n_layers;
  first = flat_tables (self->graph, net[0].slot, n_ops);
  self->next_op = first;
  put_op (self, "input_ids", 34, 0, NULL, 0, &input, 1);
  if (self->how->fault == TINY_MNN_OPERATOR)
    put_op (self, "odd", 40, 0, NULL, 0, &input, 1);
  self->rows = input;
  self->branch = -1;
  put_rotary (self);
  for (guint layer = 0; layer < self->hp->n_layers; layer++)
    put_layer (self, layer);
  put_end (self);
  n_ops = (self->next_op - first) / 4;
  self->graph->data[first - 4] = n_ops & 0xff;
  self->graph->data[first - 3] = n_ops >> 8;
  if (self->how->fault == TINY_MNN_SUBGRAPH) {
    FlatField empty[] = { { 0, 'i', 0 } };

    flat_table (self->graph, flat_tables (self->graph, net[1].slot, 1), empty,
        1);
  }
}

/* ---- Other files --------------------------------------------------------- */

static void
save (const char *folder, const char *name, const void *data, gsize size)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);

  g_assert_true (g_file_set_contents (path, data, size, NULL));
}

/* An embedding of its own: codes with float32 scales, or bfloat16 made of
 * float16 by cutting, which tests compare by itself. */
static void
write_embedding (Writer *self, const char *folder, GString *config)
{
  const RunnelTensor *tensor = find (self, RUNNEL_PART_EMBEDDING, 0);
  g_autoptr (GByteArray) codes = g_byte_array_new ();
  g_autoptr (GByteArray) scales = g_byte_array_new ();
  TinyMnn floats = *self->how;
  Writer copy = *self;
  RunnelTileForm form;
  gsize n;

  if (!runnel_blocks_tile_form (tensor->type, &form)) {
    for (gsize i = 0; i < tensor->bytes; i += 2) {
      float value = runnel_half_to_float (
          runnel_load_u16 (runnel_tensor_data (tensor) + i));
      guint16 high = runnel_float_bits (value) >> 16;

      put (codes, &high, 2);
    }
    save (folder, "embeddings_bf16.bin", codes->data, codes->len);
    return;
  }
  floats.float_scales = TRUE;
  copy.how = &floats;
  split_tiles (&copy, tensor, form, codes, scales);
  n = codes->len;
  put (codes, scales->data, scales->len);
  save (folder, form.bits == 4 ? "embeddings_int4.bin" : "embeddings_int8.bin",
      codes->data, codes->len);
  g_string_append_printf (config, ",\"tie_embeddings\":{\"weight_offset\":0,"
      "\"alpha_offset\":%" G_GSIZE_FORMAT ",\"alpha_size\":%u,"
      "\"quant_bit\":%d,\"quant_block\":%d,\"alpha_dtype\":\"fp32\"}", n,
      scales->len, form.bits, form.group);
}

static void
append_tied (Writer *self, GString *config)
{
  const RunnelTensor *tensor = find (self, RUNNEL_PART_EMBEDDING, 0);
  gint64 at = self->output_codes + (self->how->fault == TINY_MNN_TIE);
  RunnelTileForm form = { 16, 0, 0, FALSE };

  runnel_blocks_tile_form (tensor->type, &form);
  if (self->how->list)
    g_string_append_printf (config, ",\"tie_embeddings\":[%" G_GINT64_FORMAT
        ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%u,%d]", at,
        self->output_scales, self->output_scale_bytes,
        count_bits (self, form), form.group);
  else
    g_string_append_printf (config, ",\"tie_embeddings\":{\"weight_offset\":%"
        G_GINT64_FORMAT ",\"alpha_offset\":%" G_GINT64_FORMAT
        ",\"alpha_size\":%" G_GINT64_FORMAT ",\"quant_bit\":%u,"
        "\"quant_block\":%d,\"alpha_dtype\":\"%s\"}", at, self->output_scales,
        self->output_scale_bytes, count_bits (self, form), form.group,
        self->how->float_scales ? "fp32" : "fp16");
}

static void
write_config (Writer *self, const RunnelGguf *gguf, const char *folder)
{
  static const char settings[] = "{\"llm_model\":\"llm.mnn\","
      "\"llm_weight\":\"llm.mnn.weight\",\"thread_num\":4,"
      "\"sampler_type\":\"mixed\"}";
  g_autoptr (GString) config = g_string_new (NULL);
  g_autofree char *template = NULL;

  runnel_gguf_dup_string_or_null (gguf, "tokenizer.chat_template", &template,
      NULL);
  g_string_append_printf (config, "{\"model_type\":\"%s\",\"hidden_size\":%u,"
      "\"layer_nums\":%u,\"attention_mask\":\"float\","
      "\"attention_type\":\"full\",\"is_mrope\":false,"
      "\"max_position_embeddings\":%u,\"jinja\":{\"chat_template\":",
      self->hp->architecture, self->hp->n_embd, self->hp->n_layers,
      self->hp->context_length);
  runnel_json_append_string (config, template, -1);
  g_string_append (config, ",\"eos\":\"<|im_end|>\"}");
  if (self->hp->tied)
    append_tied (self, config);
  else
    write_embedding (self, folder, config);
  g_string_append_c (config, '}');
  save (folder, "llm_config.json", config->str, config->len);
  save (folder, "config.json", settings, strlen (settings));
}

/* ---- The whole ----------------------------------------------------------- */

char *
tiny_mnn_write (const char *model, const char *tokens, const TinyMnn *how)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelCheckpoint) from = runnel_checkpoint_open (model,
      RUNNEL_LOAD_MODE_MAP, &error);
  g_autoptr (RunnelGguf) gguf = NULL;
  char *folder = g_dir_make_tmp ("runnel-mnn-XXXXXX", NULL);
  Writer writer = { from, NULL, how };

  g_assert_no_error (error);
  gguf = runnel_gguf_open (tokens, RUNNEL_LOAD_MODE_MAP, &error);
  g_assert_no_error (error);
  g_assert_nonnull (folder);
  writer.hp = runnel_checkpoint_hyperparameters (from);
  writer.weights = g_byte_array_new ();
  writer.graph = flat_new ();
  put_graph (&writer);
  save (folder, "llm.mnn", writer.graph->data, writer.graph->len);
  save (folder, "llm.mnn.weight", writer.weights->data, writer.weights->len);
  write_config (&writer, gguf, folder);
  tiny_mnn_write_tokenizer (gguf, how->text, folder);
  g_byte_array_unref (writer.weights);
  g_byte_array_unref (writer.graph);
  return folder;
}

void
tiny_mnn_remove (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (folder, name, NULL);

    g_remove (path);
  }
  g_rmdir (folder);
}
