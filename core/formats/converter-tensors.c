/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Tensors into a package, some tiles at a time. What is written is read back
 * from the file and compared with the source: code by code where nothing may
 * be lost, else weight by weight for the error.
 */
#include "converter-private.h"

#include <math.h>
#include <string.h>

#include "../error-private.h"
#include "../model/architecture.h"
#include "quantise.h"
#include "repack.h"

#define CHUNK ((guint64) 1 << 20)   /* elements at once, about */

typedef enum {
  COPY,       /* byte by byte */
  REPACK,     /* codes, scales and offsets stay */
  QUANTISE,   /* floats to codes */
  CAST,       /* to another float type */
} Way;

typedef struct {
  RunnelConversion *conversion;
  const RunnelTensor *source;
  RunnelTensorFile *file;
  guint64 columns, rows;
  const float *importance;
  const RunnelFeedback *feedback;   /* or NULL */
  const RunnelMnnRounding *rounding;

  Way way;
  RunnelTensorType type;
  RunnelTileForm form;          /* of a tiled type */

  /* Of some rows */
  guint64 rows_at_once;         /* whole tiles */
  guint8 *in, *out;
  float *values, *written;      /* of the source; of the package */
  double error, norm;           /* sums of squares */
  gboolean differs;
} Job;

/* ---- Sizes ----------------------------------------------------------- */

static guint64
bytes_of (RunnelTensorType type, guint64 columns, guint64 rows)
{
  guint64 bytes = 0;

  /* The whole tensor's were checked. */
  runnel_tensor_type_bytes (type, columns, rows, &bytes);
  return bytes;
}

/* Where rows that begin a tile lie in a tensor of @type. */
static guint64
offset_of (RunnelTensorType type, guint64 columns, guint64 row)
{
  return bytes_of (type, columns, row);
}

static gboolean
read_rows (Job *job, guint64 row, guint64 n)
{
  guint64 bytes = bytes_of (job->source->type, job->columns, n);

  return runnel_tensor_file_read (job->file, job->source->offset
          + offset_of (job->source->type, job->columns, row), job->in, bytes,
      job->conversion->error);
}

/* @n rows of @type at @data as floats. */
static void
to_floats (RunnelTensorType type, guint64 columns, guint64 n,
           const guint8 *data, float *values)
{
  for (guint64 row = 0; row < n; row++)
    runnel_tensor_type_dequantize_row (type, data, columns, row,
        values + row * columns);
}

/* ---- What becomes of a tensor ---------------------------------------- */

static RunnelPackageType
choose_rule (const RunnelConversion *self, const char *name)
{
  RunnelPackageType type = self->type;

  for (guint i = 0; i < self->rules->len; i++) {
    const RunnelConverterRule *rule
        = &g_array_index (self->rules, RunnelConverterRule, i);

    if (g_pattern_spec_match_string (rule->pattern, name))
      type = rule->type;
  }
  return type;
}

static void
choose_copy (Job *job)
{
  job->way = COPY;
  job->type = job->source->type;
}

static void
choose_cast (Job *job, RunnelTensorType type)
{
  job->way = job->source->type == type ? COPY : CAST;
  job->type = type;
}

static void
choose_quantised (Job *job, int bits)
{
  guint group = job->conversion->group == 32 ? 32 : 64;

  job->way = QUANTISE;
  if (bits == 4)
    job->type = group == 32 ? RUNNEL_TENSOR_INT4_32_OFFSET
                            : RUNNEL_TENSOR_INT4_64_OFFSET;
  else
    job->type = group == 32 ? RUNNEL_TENSOR_INT8_32 : RUNNEL_TENSOR_INT8_64;
}

/* Whether every pair of groups of 32 can be one of 64. */
static gboolean
check_joinable (Job *job, gboolean *ret)
{
  *ret = TRUE;
  for (guint64 row = 0; *ret && row < job->rows; row += job->rows_at_once) {
    guint64 n = MIN (job->rows_at_once, job->rows - row);
    RunnelGroupRows rows = { job->source->type, job->columns, job->in };

    if (!runnel_conversion_advance (job->conversion, 0) ||
        !read_rows (job, row, n))
      return FALSE;
    *ret = runnel_repack_can_join (&rows, n);
  }
  return TRUE;
}

/* Codes of @bits that mean the same; @may_quantise: rather other codes than
 * groups of another size. */
static gboolean
choose_repack (Job *job, int bits, gboolean may_quantise)
{
  guint wanted = job->conversion->group;
  guint narrow = runnel_repack_exact_type (job->source->type, bits);
  gboolean joinable = FALSE;

  job->way = REPACK;
  job->type = narrow;
  if (wanted != 32) {
    if (!check_joinable (job, &joinable))
      return FALSE;
    if (joinable)
      job->type = runnel_repack_wide_type (narrow);
    else if (wanted == 64 && may_quantise)
      choose_quantised (job, bits);
  }
  if (job->type == job->source->type)
    choose_copy (job);
  return TRUE;
}

/* Rows that are no whole groups stay floats. */
static void
choose_float (Job *job)
{
  if (job->source->type == RUNNEL_TENSOR_BF16)
    choose_cast (job, RUNNEL_TENSOR_F32);
  else
    choose_copy (job);
}

static gboolean
choose_codes (Job *job, int bits)
{
  if (job->columns % RUNNEL_TILE_COLUMNS != 0) {
    choose_float (job);
    return TRUE;
  }
  if (runnel_repack_exact_type (job->source->type, bits) != 0)
    return choose_repack (job, bits, TRUE);
  choose_quantised (job, bits);
  return TRUE;
}

/* What a draft reads of its target's hidden rows has a few columns far larger
 * than the others, so that codes would cost it acceptance: MNN keeps this
 * matrix in floats too. */
static gboolean
is_fusion (const Job *job)
{
  RunnelPart part;
  guint layer;

  return runnel_part_find (job->source->name, &part, &layer) &&
      part == RUNNEL_PART_FUSION;
}

static gboolean
choose_auto (Job *job)
{
  if (runnel_repack_exact_type (job->source->type, 4) != 0)
    return choose_repack (job, 4, FALSE);
  if (runnel_repack_exact_type (job->source->type, 8) != 0)
    return choose_repack (job, 8, FALSE);
  if (job->conversion->is_float && is_fusion (job)) {
    choose_cast (job, RUNNEL_TENSOR_F16);
    return TRUE;
  }
  if (job->conversion->is_float)
    return choose_codes (job, 4);
  choose_copy (job);   /* K-quants fit no tile; floats among codes stay */
  return TRUE;
}

static gboolean
choose (Job *job)
{
  RunnelPart part;
  guint layer;

  if (job->source->n_dims == 1 ||
      runnel_head_owns_tensor (job->source->name) ||
      (runnel_part_find (job->source->name, &part, &layer) &&
          runnel_part_is_elementwise (part))) {
    choose_float (job);
    return TRUE;
  }
  switch (choose_rule (job->conversion, job->source->name)) {
    case RUNNEL_PACKAGE_TYPE_INT4:
      return choose_codes (job, 4);
    case RUNNEL_PACKAGE_TYPE_INT8:
      return choose_codes (job, 8);
    case RUNNEL_PACKAGE_TYPE_F16:
      choose_cast (job, RUNNEL_TENSOR_F16);
      return TRUE;
    case RUNNEL_PACKAGE_TYPE_SOURCE:
      choose_copy (job);
      return TRUE;
    case RUNNEL_PACKAGE_TYPE_AUTO:
      break;
  }
  return choose_auto (job);
}

/* ---- Making ---------------------------------------------------------- */

static void
make_tiles (Job *job, guint64 n)
{
  gsize stride = runnel_tile_bytes (job->form, job->columns);
  RunnelGroupRows source = { job->source->type, job->columns, job->in };

  for (guint64 row = 0; row < n; row += RUNNEL_TILE_ROWS) {
    guint8 *tile = job->out + row / RUNNEL_TILE_ROWS * stride;
    const float *rows[RUNNEL_TILE_ROWS] = { NULL };
    int some = MIN (RUNNEL_TILE_ROWS, n - row);

    if (job->way == REPACK) {
      runnel_repack_tile (&source, row, some, job->type, tile);
      continue;
    }
    for (int r = 0; r < some; r++)
      rows[r] = job->values + (row + r) * job->columns;
    if (job->feedback != NULL)
      runnel_quantise_tile_with_feedback (job->type, rows, job->columns,
          job->feedback, tile);
    else
      runnel_quantise_tile (job->type, rows, job->columns, job->importance,
          tile);
  }
}

static void
make_floats (Job *job, guint64 n)
{
  for (guint64 i = 0; i < n * job->columns; i++) {
    guint16 half;

    if (job->type == RUNNEL_TENSOR_F32) {
      memcpy (job->out + 4 * i, &job->values[i], 4);
      continue;
    }
    half = runnel_float_to_half (job->values[i]);
    memcpy (job->out + 2 * i, &half, 2);
  }
}

/* The bytes of @n rows, which are in, come out. */
static void
make (Job *job, guint64 n)
{
  if (job->way == QUANTISE || job->way == CAST)
    to_floats (job->source->type, job->columns, n, job->in, job->values);
  if (job->way == COPY)
    memcpy (job->out, job->in, bytes_of (job->type, job->columns, n));
  else if (job->way == CAST)
    make_floats (job, n);
  else
    make_tiles (job, n);
}

/* ---- Proving --------------------------------------------------------- */

/* The same codes, scales and offsets in all groups of @n rows. */
static gboolean
is_same (Job *job, guint64 n)
{
  RunnelGroupRows source = { job->source->type, job->columns, job->in };
  RunnelGroupRows package = { job->type, job->columns, job->out };

  for (guint64 row = 0; row < n; row++)
    for (guint64 part = 0; part < job->columns / RUNNEL_TILE_COLUMNS;
        part++) {
      RunnelGroup a, b;

      runnel_repack_get (&source, row, part, &a);
      runnel_repack_get (&package, row, part, &b);
      if (a.d != b.d || a.m != b.m || memcmp (a.q, b.q, sizeof a.q) != 0)
        return FALSE;
    }
  return TRUE;
}

static void
add_error (Job *job, guint64 n)
{
  to_floats (job->source->type, job->columns, n, job->in, job->values);
  to_floats (job->type, job->columns, n, job->out, job->written);
  for (guint64 i = 0; i < n * job->columns; i++) {
    double difference = (double) job->values[i] - job->written[i];

    job->error += difference * difference;
    job->norm += (double) job->values[i] * job->values[i];
    job->differs |= !(difference == 0);
  }
}

static gboolean
prove_rows (Job *job, guint64 row, guint64 n)
{
  RunnelConversion *self = job->conversion;
  guint64 bytes = bytes_of (job->type, job->columns, n);

  if (!read_rows (job, row, n) ||
      !runnel_package_writer_read_back (self->writer,
          offset_of (job->type, job->columns, row), job->out, bytes,
          self->error))
    return FALSE;
  if (job->way == QUANTISE || job->way == CAST)
    add_error (job, n);
  else if (job->way == COPY ? memcmp (job->in, job->out, bytes) != 0
                            : !is_same (job, n)) {
    runnel_set_error_about (self->error, RUNNEL_ERROR_CORRUPT,
        job->source->name, "is not what was written of it when it is read "
        "back; the disk or the memory of this machine is at fault");
    return FALSE;
  }
  return TRUE;
}

/* ---- One tensor ------------------------------------------------------ */

/* Scales that were rounded when the source was read are a loss too. */
static void
get_record (const Job *job, RunnelPackageRecord *record)
{
  record->source_type = job->source->type;
  record->error = 0;
  if (job->differs)
    record->error = job->norm > 0 ? sqrt (job->error / job->norm) : INFINITY;
  else if (job->rounding != NULL && job->rounding->n_rounded > 0)
    record->error = job->rounding->max_error;
  record->lossless = !job->differs && record->error == 0;
}

static void
report (const Job *job, const RunnelPackageRecord *record)
{
  RunnelConversion *self = job->conversion;

  self->n_lossless += record->lossless;
  g_variant_builder_add (self->report, "(sssbdtt)", job->source->name,
      runnel_tensor_type_info (job->source->type)->name,
      runnel_tensor_type_info (job->type)->name, record->lossless,
      (double) record->error, (guint64) job->source->bytes,
      bytes_of (job->type, job->columns, job->rows));
}

static gboolean
write_rows (Job *job)
{
  RunnelConversion *self = job->conversion;

  runnel_package_writer_begin (self->writer, job->type);
  runnel_blocks_tile_form (job->type, &job->form);
  for (guint64 row = 0; row < job->rows; row += job->rows_at_once) {
    guint64 n = MIN (job->rows_at_once, job->rows - row);

    if (!runnel_conversion_advance (self,
            bytes_of (job->source->type, job->columns, n) / 2) ||
        !read_rows (job, row, n))
      return FALSE;
    make (job, n);
    if (!runnel_package_writer_write (self->writer, job->out,
            bytes_of (job->type, job->columns, n), self->error))
      return FALSE;
  }
  for (guint64 row = 0; row < job->rows; row += job->rows_at_once) {
    guint64 n = MIN (job->rows_at_once, job->rows - row);

    if (!runnel_conversion_advance (self,
            bytes_of (job->source->type, job->columns, n) / 2) ||
        !prove_rows (job, row, n))
      return FALSE;
  }
  return TRUE;
}

static const RunnelFeedback *
get_feedback (const Job *job)
{
  const RunnelConversion *self = job->conversion;
  const char *name = job->source->name;

  if (self->calibration == NULL)
    return NULL;
  /* The embedding will be the output matrix, which was there once more. */
  if (self->left_out != NULL && g_str_equal (name, "token_embd.weight"))
    name = self->left_out->name;
  return runnel_calibration_get_feedback (self->calibration, name,
      job->columns);
}

static gboolean
run_job (Job *job)
{
  RunnelPackageRecord record;

  if (!choose (job))
    return FALSE;
  if (job->way == QUANTISE)
    job->feedback = get_feedback (job);
  if (!write_rows (job))
    return FALSE;
  get_record (job, &record);
  if (!runnel_package_writer_end (job->conversion->writer, &record,
          job->conversion->error))
    return FALSE;
  report (job, &record);
  return TRUE;
}

gboolean
runnel_conversion_write_tensor (RunnelConversion *self,
    const RunnelTensor *tensor, const RunnelMnnRounding *rounding)
{
  RunnelImportance *importance
      = g_hash_table_lookup (self->importance, tensor->name);
  Job job = { self, tensor, .columns = tensor->dims[0],
    .rows = runnel_tensor_n_rows (tensor), .rounding = rounding };
  guint64 n;
  gboolean done;

  job.file = runnel_conversion_file (self, tensor->mapping);
  if (job.file == NULL)
    return FALSE;
  if (importance != NULL && importance->n == job.columns)
    job.importance = importance->values;
  job.rows_at_once = MAX (CHUNK / job.columns / RUNNEL_TILE_ROWS, 1)
      * RUNNEL_TILE_ROWS;
  n = MIN (job.rows_at_once,
      (job.rows + RUNNEL_TILE_ROWS - 1) / RUNNEL_TILE_ROWS
      * RUNNEL_TILE_ROWS);
  /* No type of ours takes more than a float. */
  job.in = g_malloc (4 * n * job.columns);
  job.out = g_malloc (4 * n * job.columns);
  job.values = g_new (float, n * job.columns);
  job.written = g_new (float, n * job.columns);
  done = run_job (&job);
  g_free (job.in);
  g_free (job.out);
  g_free (job.values);
  g_free (job.written);
  runnel_conversion_forget (self, tensor->mapping);
  return done;
}
