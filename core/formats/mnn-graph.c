/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "mnn-graph.h"

#include <math.h>
#include <string.h>

#include "../error.h"
#include "checkpoint-private.h"

#define MAX_OPS 65536
#define MAX_EDGES 256      /* inputs or outputs of an operator */
#define MAX_NORMS (4 * RUNNEL_MAX_LAYERS)
#define MAX_TABLES 32
#define MAX_FLOATS (1 << 26)

/* Fields of the schema's tables, by their number. */
enum { NET_OPS = 3, NET_SUBGRAPHS = 10 };
enum { OP_INPUTS, OP_MAIN_TYPE, OP_MAIN, OP_NAME, OP_OUTPUTS, OP_TYPE,
  OP_EXTERNAL_PATH = 7 };
enum { CONV_COMMON, CONV_WEIGHT, CONV_QUANTISED = 3, CONV_STATIC = 4,
  CONV_SPARSE = 5, CONV_EXTERNAL = 6 };
enum { COMMON_KERNEL_X = 2, COMMON_KERNEL_Y, COMMON_STRIDE_X, COMMON_STRIDE_Y,
  COMMON_GROUP = 9, COMMON_OUTPUTS, COMMON_INPUTS, COMMON_RELU, COMMON_RELU6 };
enum { QUANTISED_TYPE = 2, QUANTISED_EXTRA_SCALE = 4, QUANTISED_BITS = 7,
  QUANTISED_MIN, QUANTISED_READ_TYPE, QUANTISED_INTEGER_SCALE,
  QUANTISED_WIDE, QUANTISED_SCALE_STORAGE = 15 };
enum { NORM_AXIS, NORM_EPSILON, NORM_GAMMA, NORM_BETA, NORM_GROUP,
  NORM_EXTERNAL, NORM_RMS };
enum { ROPE_DIMENSIONS, ROPE_HEADS, ROPE_KV_HEADS, ROPE_HEAD_DIM, ROPE_Q_NORM,
  ROPE_K_NORM };
enum { FUSED_CONVS, FUSED_SILU_MUL, FUSED_HAS_NORM, FUSED_NORM };
enum { BLOB_DIMS, BLOB_TYPE = 2, BLOB_FLOATS = 7, BLOB_EXTERNAL = 9 };
enum { ATTENTION_SHARED_NAME = 1, ATTENTION_SHARED_INDEX = 3,
  ATTENTION_SCALE = 6 };

/* Members of the union of parameters. */
enum { MAIN_BLOB = 7, MAIN_CONVOLUTION = 9, MAIN_NORM = 88,
  MAIN_ATTENTION = 98, MAIN_ROPE = 102, MAIN_FUSED = 103 };

enum { TYPE_CONST = 11, TYPE_CONVOLUTION = 12, TYPE_ATTENTION = 299,
  TYPE_ROPE = 306, TYPE_FUSED_LINEAR = 307, TYPE_NORM = 603 };

enum { BLOB_FLOAT = 1 };
enum { WEIGHTS_INTEGER = 1, WEIGHTS_HALF = 3 };

/* Operators that only place data, and those around positions, the residual
 * sums and the gate. */
static const guint other_types[] = {
  7 /* BinaryOp */, 9 /* Cast */, 10 /* Concat */, 26 /* ExpandDims */,
  27 /* Fill */, 30 /* Gather */, 31 /* GatherV2 */, 34 /* Input */,
  44 /* Pack */, 46 /* Permute */, 65 /* Range */, 66 /* Rank */,
  73 /* Reshape */, 80 /* Shape */, 82 /* Size */, 83 /* Slice */,
  84 /* SliceTf */, 90 /* Squeeze */, 91 /* StridedSlice */,
  100 /* Transpose */, 101 /* UnaryOp */, 103 /* Where */,
  107 /* Unsqueeze */, 120 /* BroadcastTo */, 129 /* ConvertTensor */,
  257 /* Select */,
};

/* What a norm's output may pass on its way to a projection. */
static const guint passing_types[] = { 30, 31, 73, 83, 84, 90, 91, 107, 129 };

typedef struct {
  RunnelFlatTable main;
  guint main_type, type;
  const char *name;
  RunnelFlatVector inputs, outputs;
} Op;

typedef struct { gint32 tensor; guint op; } Use;

typedef struct {
  RunnelMnnGraph *graph;
  RunnelFlatbuffer *in;
  GArray *ops;               /* of Op */
  GArray *uses;              /* of Use, by tensor */
  gboolean seen_norm;
} Reader;

#define fail(self, ...) runnel_flatbuffer_fail ((self)->in, __VA_ARGS__)
#define failed(self) ((self)->in->error != NULL)

static void
refuse (Reader *self, const Op *op, const char *what)
{
  if (!failed (self))
    g_set_error (&self->in->error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: operator '%s' %s", self->in->name, op->name, what);
}

static gboolean
is_among (guint type, const guint *types, guint n)
{
  for (guint i = 0; i < n; i++)
    if (types[i] == type)
      return TRUE;
  return FALSE;
}

/* --- names --- */

/* "/layers.3/self_attn/q_proj/Linear" and "/lm/lm_head/Linear": the names of
 * the model's own modules with slashes. */
static gboolean
find_linear (const char *op, RunnelPart *part, guint *layer)
{
  g_autoptr (GString) name = g_string_new (op);

  if (!g_str_has_suffix (op, "/Linear") || op[0] != '/')
    return FALSE;
  g_string_truncate (name, name->len - strlen ("/Linear"));
  g_string_erase (name, 0, 1);
  g_string_replace (name, "/", ".", 0);
  if (g_str_has_prefix (name->str, "lm."))
    g_string_erase (name, 0, strlen ("lm."));
  else
    g_string_prepend (name, "model.");
  g_string_append (name, ".weight");
  return runnel_part_find_hf (name->str, part, layer) &&
      !runnel_part_is_vector (*part);
}

/* "/layers.3/…" and "/blocks.3/…". */
static gboolean
find_layer (const char *op, guint *layer)
{
  const char *digits;
  char *end;
  guint64 value;

  if (!g_str_has_prefix (op, "/layers.") && !g_str_has_prefix (op, "/blocks."))
    return FALSE;
  digits = op + strlen ("/layers.");
  if (!g_ascii_isdigit (*digits))
    return FALSE;
  value = g_ascii_strtoull (digits, &end, 10);
  *layer = MIN (value, RUNNEL_MAX_LAYERS);
  return *end == '/';
}

/* --- projections --- */

static void
read_external (Reader *self, const Op *op, const RunnelFlatTable *conv,
    RunnelMnnLinear *linear)
{
  RunnelFlatVector external =
      runnel_flat_table_vector (conv, CONV_EXTERNAL, 8, MAX_EDGES);
  gint64 numbers[4] = { 0 };

  if (external.n < 3) {
    refuse (self, op, "keeps its weights in the graph; only packages with a "
        "file of weights beside it are supported");
    return;
  }
  /* Without quantisation there are no scales: place, weights, bias. */
  for (guint i = 0; i < 4 && i < external.n; i++)
    numbers[i] = runnel_flat_vector_int64 (&external, i);
  if (external.n == 3) {
    numbers[3] = numbers[2];
    numbers[2] = 0;
  }
  for (guint i = 0; i < 4; i++) {
    if (numbers[i] < 0) {
      fail (self, "operator '%s': a place or size of its weights is negative",
          op->name);
      return;
    }
  }
  linear->at = numbers[0];
  linear->codes_bytes = numbers[1];
  linear->scales_bytes = numbers[2];
  linear->bias_bytes = numbers[3];
}

static void
read_quantisation (Reader *self, const Op *op, const RunnelFlatTable *conv,
    RunnelMnnLinear *linear)
{
  RunnelFlatTable how = runnel_flat_table_table (conv, CONV_QUANTISED);
  gint64 type = runnel_flat_table_int32 (&how, QUANTISED_TYPE, 0);
  gint64 bits = runnel_flat_table_int32 (&how, QUANTISED_BITS, 0);
  gint64 min = runnel_flat_table_int32 (&how, QUANTISED_MIN, 0);
  float extra = runnel_flat_table_float (&how, QUANTISED_EXTRA_SCALE, 0);
  g_autofree char *what = NULL;

  if (type == WEIGHTS_HALF) {
    linear->bits = 16;
    return;
  }
  if (type != WEIGHTS_INTEGER)
    what = g_strdup_printf ("has weights of kind %" G_GINT64_FORMAT "; 1 "
        "(integers) and 3 (half floats) are supported", type);
  else if (bits != 2 && bits != 3 && bits != 4 && bits != 8)
    what = g_strdup_printf ("has codes of %" G_GINT64_FORMAT " bits; 2, 3, 4 "
        "and 8 are supported", bits);
  else if (runnel_flat_table_int8 (&how, QUANTISED_INTEGER_SCALE, 0) != 0 ||
      (extra != 1 && extra != 0))
    what = g_strdup ("has scales of integer kernels, which are not supported");
  linear->bits = bits;
  linear->offset = runnel_flat_table_int32 (&how, QUANTISED_READ_TYPE, 0) != 0;
  linear->half_scales =
      runnel_flat_table_int8 (&how, QUANTISED_SCALE_STORAGE, 0) != 0;
  linear->wide = runnel_flat_table_int8 (&how, QUANTISED_WIDE, 0) != 0;
  /* Older files with offsets give the minimum in place of the zero point. */
  if (what == NULL && linear->offset && min != 1)
    what = g_strdup ("has offsets in an old form; export it again");
  if (what != NULL)
    refuse (self, op, what);
}

static void
read_convolution (Reader *self, const Op *op, const RunnelFlatTable *conv,
    RunnelPart part, guint layer)
{
  RunnelFlatTable common = runnel_flat_table_table (conv, CONV_COMMON);
  RunnelFlatTable fixed = runnel_flat_table_table (conv, CONV_STATIC);
  RunnelFlatTable sparse = runnel_flat_table_table (conv, CONV_SPARSE);
  RunnelMnnLinear linear = { part, layer, op->name };
  gint64 rows = runnel_flat_table_int32 (&common, COMMON_OUTPUTS, 0);
  gint64 columns = runnel_flat_table_int32 (&common, COMMON_INPUTS, 0);

  for (guint i = COMMON_KERNEL_X; i <= COMMON_STRIDE_Y; i++)
    if (runnel_flat_table_int32 (&common, i, 1) != 1)
      refuse (self, op, "is a convolution over more than a point");
  if (runnel_flat_table_int32 (&common, COMMON_GROUP, 1) != 1 ||
      runnel_flat_table_int8 (&common, COMMON_RELU, 0) != 0 ||
      runnel_flat_table_int8 (&common, COMMON_RELU6, 0) != 0)
    refuse (self, op, "has groups or an activation");
  if (!runnel_flat_table_is_empty (&fixed) ||
      !runnel_flat_table_is_empty (&sparse))
    refuse (self, op, "has fixed activation scales or sparse weights");
  if (rows < 1 || columns < 1 || rows > RUNNEL_MAX_VOCAB ||
      columns > RUNNEL_MAX_FF)
    fail (self, "operator '%s' has %" G_GINT64_FORMAT " outputs of %"
        G_GINT64_FORMAT " inputs; 1 to %d and 1 to %d are allowed", op->name,
        rows, columns, RUNNEL_MAX_VOCAB, RUNNEL_MAX_FF);
  linear.rows = rows;
  linear.columns = columns;
  read_external (self, op, conv, &linear);
  read_quantisation (self, op, conv, &linear);
  if (!failed (self))
    g_array_append_val (self->graph->linears, linear);
}

/* --- norms --- */

static void
read_norm (Reader *self, const Op *op, const RunnelFlatTable *norm,
    RunnelPart part, guint layer)
{
  RunnelFlatVector axes = runnel_flat_table_vector (norm, NORM_AXIS, 4, 8);
  RunnelFlatVector beta =
      runnel_flat_table_vector (norm, NORM_BETA, 4, MAX_FLOATS);
  RunnelFlatVector external =
      runnel_flat_table_vector (norm, NORM_EXTERNAL, 8, MAX_EDGES);
  float epsilon = runnel_flat_table_float (norm, NORM_EPSILON, 0);
  RunnelMnnNorm found = { part, layer, op->name };

  found.inside = runnel_flat_table_vector (norm, NORM_GAMMA, 4, MAX_FLOATS);
  found.n = found.inside.n;
  if (external.n >= 3 && found.n == 0) {
    found.at = runnel_flat_vector_int64 (&external, 0);
    found.n_bytes = runnel_flat_vector_int64 (&external, 1);
    found.beta_bytes = runnel_flat_vector_int64 (&external, 2);
    found.n = MIN (found.n_bytes / 4, MAX_FLOATS);
  }
  for (gsize i = 0; i < beta.n && !failed (self); i++)
    if (runnel_flat_vector_float (&beta, i) != 0)
      refuse (self, op, "adds to what it normalises");
  if (!runnel_flat_table_int8 (norm, NORM_RMS, 0) || axes.n != 1 ||
      runnel_flat_vector_int32 (&axes, 0) != -1 ||
      runnel_flat_table_int32 (norm, NORM_GROUP, 1) != 1)
    refuse (self, op, "is no RMS norm over the last axis");
  if (found.n == 0)
    fail (self, "operator '%s' has no weights", op->name);
  if (self->seen_norm && epsilon != self->graph->norm_epsilon)
    refuse (self, op, "has another epsilon than the norms before it");
  if (self->graph->norms->len >= MAX_NORMS)
    fail (self, "has more than %d norms", MAX_NORMS);
  self->seen_norm = TRUE;
  self->graph->norm_epsilon = epsilon;
  if (!failed (self))
    g_array_append_val (self->graph->norms, found);
}

/* The first use of a tensor in the sorted list. */
static guint
find_use (const Reader *self, gint32 tensor)
{
  guint low = 0, high = self->uses->len;

  while (low < high) {
    guint middle = low + (high - low) / 2;

    if (g_array_index (self->uses, Use, middle).tensor < tensor)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Which norm it is, by a projection that takes what it gives. One with a norm
 * of its own takes the residual sum. */
static gboolean
part_before (const Op *user, RunnelPart *part, guint *layer)
{
  if ((user->type != TYPE_CONVOLUTION && user->type != TYPE_FUSED_LINEAR) ||
      !find_linear (user->name, part, layer) ||
      (user->main_type == MAIN_FUSED &&
          runnel_flat_table_int8 (&user->main, FUSED_HAS_NORM, 0) != 0))
    return FALSE;
  switch (*part) {
    case RUNNEL_PART_Q: case RUNNEL_PART_K: case RUNNEL_PART_V:
      *part = RUNNEL_PART_ATTN_NORM;
      return TRUE;
    case RUNNEL_PART_GATE: case RUNNEL_PART_UP:
      *part = RUNNEL_PART_FFN_NORM;
      return TRUE;
    case RUNNEL_PART_OUTPUT:
      *part = RUNNEL_PART_OUTPUT_NORM;
      return TRUE;
    default:
      return FALSE;
  }
}

/* A norm with two outputs gives the residual sum and the normalised rows; the
 * sum goes into additions and norms, where the search ends. */
static gboolean
find_norm (const Reader *self, const Op *op, RunnelPart *part, guint *layer)
{
  g_autoptr (GArray) tensors = g_array_new (FALSE, FALSE, sizeof (gint32));
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);

  for (gsize i = 0; i < op->outputs.n; i++) {
    gint32 tensor = runnel_flat_vector_int32 (&op->outputs, i);

    g_array_append_val (tensors, tensor);
  }
  for (guint i = 0; i < tensors->len; i++) {
    gint32 tensor = g_array_index (tensors, gint32, i);

    if (!g_hash_table_add (seen, GINT_TO_POINTER (tensor)))
      continue;
    for (guint u = find_use (self, tensor); u < self->uses->len &&
        g_array_index (self->uses, Use, u).tensor == tensor; u++) {
      const Op *user = &g_array_index (self->ops, Op,
          g_array_index (self->uses, Use, u).op);

      if (part_before (user, part, layer))
        return TRUE;
      if (!is_among (user->type, passing_types, G_N_ELEMENTS (passing_types)))
        continue;
      for (gsize o = 0; o < user->outputs.n; o++) {
        gint32 next = runnel_flat_vector_int32 (&user->outputs, o);

        g_array_append_val (tensors, next);
      }
    }
  }
  return FALSE;
}

/* --- operators --- */

static void
read_fused (Reader *self, const Op *op)
{
  static const RunnelPart qkv[] = { RUNNEL_PART_Q, RUNNEL_PART_K,
    RUNNEL_PART_V };
  static const RunnelPart mlp[] = { RUNNEL_PART_GATE, RUNNEL_PART_UP };
  RunnelFlatVector convs =
      runnel_flat_table_vector (&op->main, FUSED_CONVS, 4, MAX_EDGES);
  RunnelFlatTable norm = runnel_flat_table_table (&op->main, FUSED_NORM);
  gboolean gated = runnel_flat_table_int8 (&op->main, FUSED_SILU_MUL, 0) != 0;
  const RunnelPart *parts = gated ? mlp : qkv;
  RunnelPart first;
  guint layer;

  if (!find_linear (op->name, &first, &layer) || first != parts[0] ||
      convs.n != (gated ? G_N_ELEMENTS (mlp) : G_N_ELEMENTS (qkv))) {
    refuse (self, op, "fuses projections that are neither query, key and "
        "value nor gate and up");
    return;
  }
  for (gsize i = 0; i < convs.n && !failed (self); i++) {
    RunnelFlatTable conv = runnel_flat_vector_table (&convs, i);

    read_convolution (self, op, &conv, parts[i], layer);
  }
  if (runnel_flat_table_int8 (&op->main, FUSED_HAS_NORM, 0) == 0)
    return;
  read_norm (self, op, &norm,
      gated ? RUNNEL_PART_FFN_NORM : RUNNEL_PART_ATTN_NORM, layer);
}

/* One value of all layers; 0 before the first. */
static void
agree (Reader *self, const Op *op, gint64 value, guint max, const char *what,
    guint *ret)
{
  if (value < 1 || value > max)
    fail (self, "operator '%s': %s is %" G_GINT64_FORMAT "; it must lie "
        "between 1 and %u", op->name, what, value, max);
  else if (*ret != 0 && *ret != value)
    refuse (self, op, "differs from its like in other layers, which is not "
        "supported");
  else
    *ret = value;
}

static void
read_rope (Reader *self, const Op *op)
{
  RunnelMnnGraph *graph = self->graph;
  const RunnelFlatTable *main = &op->main;
  RunnelFlatTable q_norm = runnel_flat_table_table (main, ROPE_Q_NORM);
  RunnelFlatTable k_norm = runnel_flat_table_table (main, ROPE_K_NORM);
  guint layer;

  if (!find_layer (op->name, &layer)) {
    refuse (self, op, "rotates, but its name has no layer");
    return;
  }
  agree (self, op, runnel_flat_table_int32 (main, ROPE_HEADS, 0), 65536,
      "num_head", &graph->n_heads);
  agree (self, op, runnel_flat_table_int32 (main, ROPE_KV_HEADS, 0), 65536,
      "kv_num_head", &graph->n_kv_heads);
  agree (self, op, runnel_flat_table_int32 (main, ROPE_HEAD_DIM, 0), 65536,
      "head_dim", &graph->head_dim);
  agree (self, op, runnel_flat_table_int32 (main, ROPE_DIMENSIONS,
          graph->head_dim), 65536, "rope_cut_head_dim",
      &graph->rope_dimensions);
  if (!runnel_flat_table_is_empty (&q_norm))
    read_norm (self, op, &q_norm, RUNNEL_PART_Q_NORM, layer);
  if (!runnel_flat_table_is_empty (&k_norm))
    read_norm (self, op, &k_norm, RUNNEL_PART_K_NORM, layer);
}

static void
read_attention (Reader *self, const Op *op)
{
  float scale = runnel_flat_table_float (&op->main, ATTENTION_SCALE, 0);
  double head_dim = self->graph->head_dim;

  if (runnel_flat_table_string (&op->main, ATTENTION_SHARED_NAME)[0] != '\0' ||
      runnel_flat_table_int32 (&op->main, ATTENTION_SHARED_INDEX, -1) != -1)
    refuse (self, op, "shares keys and values with another layer");
  if (scale != 0 && fabs (scale * sqrt (head_dim) - 1) > 1e-5)
    refuse (self, op, "scales attention by something else than the head's "
        "size");
}

/* A number that cosines and sines are multiplied with, as YaRN does. */
static void
check_rotary_factor (Reader *self, const Op *op)
{
  RunnelFlatVector floats =
      runnel_flat_table_vector (&op->main, BLOB_FLOATS, 4, MAX_FLOATS);
  gint32 tensor;

  if (floats.n != 1 || op->outputs.n != 1 ||
      runnel_flat_vector_float (&floats, 0) == 1)
    return;
  tensor = runnel_flat_vector_int32 (&op->outputs, 0);
  for (guint u = find_use (self, tensor); u < self->uses->len &&
      g_array_index (self->uses, Use, u).tensor == tensor; u++) {
    const Op *user = &g_array_index (self->ops, Op,
        g_array_index (self->uses, Use, u).op);

    if (g_str_has_prefix (user->name, "/rotary/"))
      refuse (self, user, "scales the rotation of positions (YaRN), which is "
          "not supported");
  }
}

/* Tables of floats: cosines and sines among others. */
static void
read_table (Reader *self, const Op *op)
{
  RunnelFlatVector dims =
      runnel_flat_table_vector (&op->main, BLOB_DIMS, 4, MAX_EDGES);
  RunnelFlatVector external =
      runnel_flat_table_vector (&op->main, BLOB_EXTERNAL, 8, MAX_EDGES);
  RunnelMnnTable table = { 0 };

  if (op->main_type != MAIN_BLOB ||
      runnel_flat_table_int32 (&op->main, BLOB_TYPE, BLOB_FLOAT) != BLOB_FLOAT)
    return;
  check_rotary_factor (self, op);
  if (dims.n != 2 || self->graph->tables->len >= MAX_TABLES)
    return;
  table.rows = MAX (runnel_flat_vector_int32 (&dims, 0), 0);
  table.columns = MAX (runnel_flat_vector_int32 (&dims, 1), 0);
  table.inside =
      runnel_flat_table_vector (&op->main, BLOB_FLOATS, 4, MAX_FLOATS);
  if (table.inside.n == 0 && external.n >= 2)
    table.at = MAX (runnel_flat_vector_int64 (&external, 0), 0);
  else if (table.inside.n != (guint64) table.rows * table.columns)
    return;
  if (table.rows > 1 && table.columns > 0)
    g_array_append_val (self->graph->tables, table);
}

static void
read_op (Reader *self, const Op *op)
{
  RunnelPart part;
  guint layer;

  switch (op->type) {
    case TYPE_CONST:
      read_table (self, op);
      return;
    case TYPE_CONVOLUTION:
      if (op->main_type != MAIN_CONVOLUTION ||
          !find_linear (op->name, &part, &layer))
        refuse (self, op, "is none of a decoder's projections");
      else
        read_convolution (self, op, &op->main, part, layer);
      return;
    case TYPE_FUSED_LINEAR:
      if (op->main_type != MAIN_FUSED)
        refuse (self, op, "has no parameters");
      else
        read_fused (self, op);
      return;
    case TYPE_NORM:
      if (op->main_type != MAIN_NORM || !find_norm (self, op, &part, &layer))
        refuse (self, op, "is none of a decoder's norms");
      else
        read_norm (self, op, &op->main, part, layer);
      return;
    case TYPE_ROPE:
      if (op->main_type != MAIN_ROPE)
        refuse (self, op, "has no parameters");
      else
        read_rope (self, op);
      return;
    case TYPE_ATTENTION:
      if (op->main_type == MAIN_ATTENTION)
        read_attention (self, op);
      return;
    default:
      if (!is_among (op->type, other_types, G_N_ELEMENTS (other_types))) {
        g_autofree char *what = g_strdup_printf ("is of type %u, which is not "
            "supported", op->type);

        refuse (self, op, what);
      }
  }
}

static int
compare_uses (gconstpointer a, gconstpointer b)
{
  const Use *left = a, *right = b;

  if (left->tensor != right->tensor)
    return left->tensor < right->tensor ? -1 : 1;
  return left->op < right->op ? -1 : left->op > right->op;
}

static void
list_ops (Reader *self, const RunnelFlatVector *ops)
{
  for (gsize i = 0; i < ops->n && !failed (self); i++) {
    RunnelFlatTable table = runnel_flat_vector_table (ops, i);
    Op op = {
      runnel_flat_table_table (&table, OP_MAIN),
      (guint8) runnel_flat_table_int8 (&table, OP_MAIN_TYPE, 0),
      runnel_flat_table_int32 (&table, OP_TYPE, 0),
      runnel_flat_table_string (&table, OP_NAME),
      runnel_flat_table_vector (&table, OP_INPUTS, 4, MAX_EDGES),
      runnel_flat_table_vector (&table, OP_OUTPUTS, 4, MAX_EDGES),
    };

    if (runnel_flat_table_string (&table, OP_EXTERNAL_PATH)[0] != '\0')
      refuse (self, &op, "has a file of its own, which is not supported");
    for (gsize k = 0; k < op.inputs.n && !failed (self); k++) {
      Use use = { runnel_flat_vector_int32 (&op.inputs, k), i };

      g_array_append_val (self->uses, use);
    }
    g_array_append_val (self->ops, op);
  }
  g_array_sort (self->uses, compare_uses);
}

gboolean
runnel_mnn_graph_read (RunnelMnnGraph *self, const RunnelMapping *mapping,
    GError **error)
{
  g_autoptr (GArray) ops = g_array_new (FALSE, FALSE, sizeof (Op));
  g_autoptr (GArray) uses = g_array_new (FALSE, FALSE, sizeof (Use));
  Reader reader = { self, &self->buffer, ops, uses, FALSE };
  RunnelFlatVector list, graphs;
  RunnelFlatTable net;

  runnel_flatbuffer_init (&self->buffer, runnel_mapping_data (mapping),
      runnel_mapping_size (mapping), runnel_mapping_name (mapping));
  self->linears = g_array_new (FALSE, FALSE, sizeof (RunnelMnnLinear));
  self->norms = g_array_new (FALSE, FALSE, sizeof (RunnelMnnNorm));
  self->tables = g_array_new (FALSE, FALSE, sizeof (RunnelMnnTable));
  net = runnel_flatbuffer_root (&self->buffer);
  list = runnel_flat_table_vector (&net, NET_OPS, 4, MAX_OPS);
  graphs = runnel_flat_table_vector (&net, NET_SUBGRAPHS, 4, MAX_OPS);
  if (graphs.n > 0 && self->buffer.error == NULL)
    g_set_error (&self->buffer.error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: has graphs within the graph (experts, loops), which are not "
        "supported", self->buffer.name);
  list_ops (&reader, &list);
  for (guint i = 0; i < ops->len && self->buffer.error == NULL; i++)
    read_op (&reader, &g_array_index (ops, Op, i));
  return runnel_flatbuffer_check (&self->buffer, error);
}

void
runnel_mnn_graph_clear (RunnelMnnGraph *self)
{
  runnel_flatbuffer_clear (&self->buffer);
  g_clear_pointer (&self->linears, g_array_unref);
  g_clear_pointer (&self->norms, g_array_unref);
  g_clear_pointer (&self->tables, g_array_unref);
}

const RunnelMnnLinear *
runnel_mnn_graph_find (const RunnelMnnGraph *self, RunnelPart part)
{
  for (guint i = 0; i < self->linears->len; i++) {
    const RunnelMnnLinear *linear =
        &g_array_index (self->linears, RunnelMnnLinear, i);

    if (linear->part == part)
      return linear;
  }
  return NULL;
}
