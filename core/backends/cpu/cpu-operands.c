/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Weights on the CPU: block formats are interleaved into memory of ours and
 * their source pages given back; floats and tiled types stay in the file, or
 * are copied as they are.
 */
#include <string.h>
#include <sys/mman.h>

#include "../../error.h"
#include "cpu-backend.h"

struct _RunnelStore {
  guint8 *memory;
  gsize bytes;
  gsize used;
};

#define ALIGNMENT 64
#define ALIGN(n) (((n) + ALIGNMENT - 1) & ~(gsize) (ALIGNMENT - 1))

/* One anonymous mapping, on huge pages where the system has them: weights are
 * streamed once a token, and 2 MiB pages read a third faster. */
RunnelStore *
runnel_cpu_store_new (RunnelBackend *backend, gsize bytes, GError **error)
{
  RunnelStore *self = g_new0 (RunnelStore, 1);

  self->bytes = MAX (bytes, 1);
  self->memory = mmap (NULL, self->bytes, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (self->memory == MAP_FAILED) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_NOT_ENOUGH_MEMORY,
        "no memory for the %" G_GSIZE_FORMAT " bytes of the weights", bytes);
    g_free (self);
    return NULL;
  }
#ifdef MADV_HUGEPAGE
  madvise (self->memory, self->bytes, MADV_HUGEPAGE);
#endif
  return self;
}

void
runnel_cpu_store_free (RunnelStore *self)
{
  if (self == NULL)
    return;
  munmap (self->memory, self->bytes);
  g_free (self);
}

static guint8 *
take (RunnelStore *self, gsize bytes)
{
  guint8 *memory = self->memory + self->used;

  self->used += ALIGN (bytes);
  g_assert (self->used <= self->bytes);
  return memory;
}

/* Whether the matrix is interleaved here rather than used in the file. */
static gboolean
needs_packing (const RunnelTensor *tensor, const RunnelMatrix *matrix)
{
  return runnel_matrix_is_interleaved (matrix->kind)
      && !runnel_matrix_is_packed (tensor->type);
}

static gsize
packed_bytes (const RunnelMatrix *matrix)
{
  return runnel_matrix_n_tiles (matrix) * matrix->stride;
}

/* What the tensor becomes, without its data. */
static gboolean
describe (const RunnelTensor *tensor, RunnelMatrix *ret_matrix, GError **error)
{
  RunnelMatrix matrix = { 0 };
  gboolean is_vector = tensor->n_dims == 1;

  if (!runnel_matrix_kind_for_type (tensor->type, &matrix.kind)
      || (is_vector && runnel_matrix_is_quantised (matrix.kind))) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED,
        "%s: tensor '%s' is a %s of type %s, which has no CPU kernel",
        runnel_mapping_name (tensor->mapping), tensor->name,
        is_vector ? "vector" : "matrix",
        runnel_tensor_type_info (tensor->type)->name);
    return FALSE;
  }
  matrix.rows = tensor->dims[1];
  matrix.columns = tensor->dims[0];
  matrix.stride = runnel_matrix_stride (matrix.kind, matrix.columns);
  *ret_matrix = matrix;
  return TRUE;
}

gboolean
runnel_cpu_operand_bytes (RunnelBackend *backend, const RunnelTensor *tensor,
                          gboolean copy, gsize *ret_bytes, GError **error)
{
  RunnelMatrix matrix;

  if (!describe (tensor, &matrix, error))
    return FALSE;
  if (tensor->n_dims == 1)
    *ret_bytes = ALIGN (matrix.columns * sizeof (float));
  else if (needs_packing (tensor, &matrix))
    *ret_bytes = ALIGN (packed_bytes (&matrix));
  else if (copy && runnel_mapping_is_file (tensor->mapping))
    *ret_bytes = ALIGN (tensor->bytes);
  else
    *ret_bytes = 0;
  return TRUE;
}

typedef struct {
  const RunnelTensor *tensor;
  const RunnelMatrix *matrix;
  guint8 *packed;
} Packing;

static void
pack_tiles (void *data, unsigned thread, size_t begin, size_t end)
{
  Packing *packing = data;
  const RunnelTensor *tensor = packing->tensor;

  runnel_matrix_pack (tensor->type, runnel_tensor_data (tensor),
      tensor->bytes / tensor->dims[1], packing->matrix->rows,
      packing->matrix->columns, packing->packed, begin, end);
}

static const guint8 *
interleave (RunnelBackend *backend, RunnelStore *store,
            const RunnelTensor *tensor, const RunnelMatrix *matrix)
{
  RunnelTeam *team = runnel_cpu_backend_team (backend);
  Packing packing = { tensor, matrix, take (store, packed_bytes (matrix)) };

  runnel_team_lock (team, runnel_team_n_threads (team));
  runnel_team_for (team, runnel_matrix_n_tiles (matrix), 16, pack_tiles,
      &packing);
  runnel_team_unlock (team);
  runnel_mapping_release (tensor->mapping, tensor->offset, tensor->bytes);
  return packing.packed;
}

static void
copy_part (void *data, unsigned thread, size_t begin, size_t end)
{
  Packing *packing = data;
  gsize stride = packing->matrix->stride;
  gsize from = begin * stride;

  memcpy (packing->packed + from, runnel_tensor_data (packing->tensor) + from,
      MIN (end * stride, packing->tensor->bytes) - from);
}

/* Tiles or rows as they are in the file. */
static const guint8 *
copy_in (RunnelBackend *backend, RunnelStore *store,
         const RunnelTensor *tensor, const RunnelMatrix *matrix)
{
  RunnelTeam *team = runnel_cpu_backend_team (backend);
  Packing packing = { tensor, matrix, take (store, tensor->bytes) };

  runnel_team_lock (team, runnel_team_n_threads (team));
  runnel_team_for (team, tensor->bytes / matrix->stride, 16, copy_part,
      &packing);
  runnel_team_unlock (team);
  runnel_mapping_release (tensor->mapping, tensor->offset, tensor->bytes);
  return packing.packed;
}

static void
widen_vector (RunnelBackend *backend, RunnelStore *store,
              const RunnelTensor *tensor, RunnelMatrix *matrix)
{
  RunnelMatrix source = *matrix;
  float *values = (float *) take (store, matrix->columns * sizeof (float));

  source.data = runnel_tensor_data (tensor);
  runnel_cpu_backend_table (backend)->row (&source, 0, values);
  matrix->kind = RUNNEL_MATRIX_F32;
  matrix->stride = matrix->columns * sizeof (float);
  matrix->data = (const guint8 *) values;
}

RunnelOperand *
runnel_cpu_operand_new (RunnelBackend *backend, RunnelStore *store,
                        const RunnelTensor *tensor, gboolean copy)
{
  RunnelOperand *self = g_new0 (RunnelOperand, 1);

  describe (tensor, &self->matrix, NULL);
  if (tensor->n_dims == 1) {
    widen_vector (backend, store, tensor, &self->matrix);
  } else if (needs_packing (tensor, &self->matrix)) {
    self->matrix.data = interleave (backend, store, tensor, &self->matrix);
  } else if (copy && runnel_mapping_is_file (tensor->mapping)) {
    self->matrix.data = copy_in (backend, store, tensor, &self->matrix);
  } else {
    self->matrix.data = runnel_tensor_data (tensor);
    self->mapping = runnel_mapping_ref (tensor->mapping);
  }
  return self;
}

void
runnel_cpu_operand_free (RunnelOperand *self)
{
  if (self == NULL)
    return;
  g_clear_pointer (&self->mapping, runnel_mapping_unref);
  g_free (self);
}

void
runnel_cpu_operand_size (const RunnelOperand *self, guint64 *ret_elements,
                         guint64 *ret_bytes, gboolean *ret_quantised)
{
  const RunnelMatrix *w = &self->matrix;

  *ret_elements = (guint64) w->rows * w->columns;
  *ret_bytes = runnel_matrix_is_interleaved (w->kind) ? packed_bytes (w)
      : (guint64) w->rows * w->stride;
  *ret_quantised = runnel_matrix_is_quantised (w->kind);
}
