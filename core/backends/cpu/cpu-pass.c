/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "cpu-pass.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64
#define MIN_ROWS 8               /* that scratch has room for */
#define ALIGN(n) (((n) + ALIGNMENT - 1) & ~(gsize) (ALIGNMENT - 1))
#define PAD_TILE(n) \
  (((gsize) (n) + RUNNEL_TILE_ROWS - 1) / RUNNEL_TILE_ROWS * RUNNEL_TILE_ROWS)

/* ---- Memory ------------------------------------------------------------- */

/* Lays buffers out one after another; with a NULL base it only measures. */
typedef struct {
  guint8 *base;
  gsize used;
} Arena;

static gpointer
arena_take (Arena *arena, gsize bytes)
{
  gpointer memory = arena->base != NULL ? arena->base + arena->used : NULL;

  arena->used += ALIGN (bytes);
  return memory;
}

static void
lay_out_rows (Arena *arena, RunnelRows *rows, gsize n, guint columns)
{
  gsize groups = runnel_n_groups (columns);

  rows->columns = columns;
  rows->f_stride = PAD_TILE (columns);
  rows->f = arena_take (arena, n * rows->f_stride * sizeof (float));
  rows->q = arena_take (arena, n * groups * RUNNEL_GROUP);
  rows->scale = arena_take (arena, n * groups * sizeof (float));
  rows->sum = arena_take (arena, n * groups * sizeof (gint32));
  rows->moment = arena_take (arena, n * groups * sizeof (float));
}

static gsize
lay_out (RunnelPass *self, guint8 *base, gsize n)
{
  const RunnelShape *shape = &self->shape;
  guint n_q = shape->n_heads * shape->head_dim;
  guint n_kv = shape->n_kv_heads * shape->head_dim;
  Arena arena = { base, 0 };

  self->x_stride = PAD_TILE (shape->n_embd);
  self->k_offset = PAD_TILE (n_q);
  self->v_offset = self->k_offset + PAD_TILE (n_kv);
  self->qkv_stride = self->v_offset + PAD_TILE (n_kv);
  self->x = arena_take (&arena, n * self->x_stride * sizeof (float));
  self->product = arena_take (&arena, n * self->x_stride * sizeof (float));
  lay_out_rows (&arena, &self->normed, n, shape->n_embd);
  self->qkv = arena_take (&arena, n * self->qkv_stride * sizeof (float));
  lay_out_rows (&arena, &self->attention, n, n_q);
  lay_out_rows (&arena, &self->ff, n, shape->n_ff);
  self->up = arena_take (&arena, n * self->ff.f_stride * sizeof (float));
  if (shape->n_fused > 0)
    lay_out_rows (&arena, &self->fused, n, shape->n_fused);
  if (shape->conv_taps > 0) {
    self->factor_stride = PAD_TILE (
        2 * shape->conv_taps * (shape->n_embd / shape->conv_group));
    self->factors
        = arena_take (&arena, n * self->factor_stride * sizeof (float));
    self->conv_base = arena_take (&arena,
        2 * shape->conv_taps * self->x_stride * sizeof (float));
  }
  self->slots = arena_take (&arena, n * sizeof *self->slots);
  self->limits = arena_take (&arena, n * sizeof *self->limits);
  return arena.used;
}

static gboolean
ensure_rows (RunnelPass *self, guint n)
{
  gsize capacity = MAX (n, MIN_ROWS), bytes;
  gpointer arena;

  if (n <= self->capacity)
    return TRUE;
  bytes = lay_out (self, NULL, capacity);
  arena = aligned_alloc (ALIGNMENT, bytes);
  if (arena == NULL) {
    /* Measuring has moved the buffers; smaller batches go on. */
    lay_out (self, self->arena, self->capacity);
    return FALSE;
  }
  free (self->arena);
  self->arena = arena;
  self->arena_bytes = bytes;
  lay_out (self, arena, capacity);
  self->capacity = capacity;
  return TRUE;
}

static gboolean
allocate_output (RunnelPass *self)
{
  Arena measure = { NULL, 0 }, arena = { NULL, 0 };

  self->logits_stride = PAD_TILE (self->shape.n_vocab);
  lay_out_rows (&measure, &self->output_rows, RUNNEL_OUTPUT_ROWS,
      self->shape.n_embd);
  arena_take (&measure,
      RUNNEL_OUTPUT_ROWS * self->logits_stride * sizeof (float));
  self->output_bytes = measure.used;
  self->output_arena = aligned_alloc (ALIGNMENT, measure.used);
  if (self->output_arena == NULL)
    return FALSE;
  arena.base = self->output_arena;
  lay_out_rows (&arena, &self->output_rows, RUNNEL_OUTPUT_ROWS,
      self->shape.n_embd);
  self->logits = arena_take (&arena,
      RUNNEL_OUTPUT_ROWS * self->logits_stride * sizeof (float));
  return TRUE;
}

static void
pass_free (RunnelPass *self)
{
  if (self == NULL)
    return;
  free (self->arena);
  free (self->output_arena);
  free (self->runs);
  free (self->first_run);
  free (self->partials);
  free (self->n_unfinished);
  free (self->thread_scratch);
  free (self);
}

static RunnelPass *
pass_new (RunnelBackend *backend, const RunnelShape *shape)
{
  RunnelPass *self = calloc (1, sizeof *self);
  guint n_queries = RUNNEL_ATTEND_ROWS * (shape->n_heads / shape->n_kv_heads);

  if (self == NULL)
    return NULL;
  self->backend = backend;
  self->kernels = runnel_cpu_backend_table (backend);
  self->team = runnel_cpu_backend_team (backend);
  self->shape = *shape;
  self->kv = runnel_cpu_kv_layout (shape);
  self->partial_stride
      = ALIGN (sizeof (RunnelPartial) + shape->head_dim * sizeof (float));
  self->thread_scratch_stride = 2 * n_queries * self->partial_stride;
  self->thread_scratch = aligned_alloc (ALIGNMENT,
      runnel_team_n_threads (self->team) * self->thread_scratch_stride);
  if (self->thread_scratch == NULL || !allocate_output (self)) {
    pass_free (self);
    return NULL;
  }
  return self;
}

static gsize
scratch_bytes (RunnelPass *self, guint n_rows)
{
  gsize bytes;

  runnel_team_lock (self->team, 1);
  bytes = self->arena_bytes;
  if (n_rows > self->capacity) {
    bytes = lay_out (self, NULL, MAX (n_rows, MIN_ROWS));
    lay_out (self, self->arena, self->capacity);
  }
  bytes += self->output_bytes + runnel_cpu_attend_bytes (self)
      + runnel_team_n_threads (self->team) * self->thread_scratch_stride;
  runnel_team_unlock (self->team);
  return bytes;
}

static void
trim (RunnelPass *self)
{
  runnel_team_lock (self->team, 1);
  free (self->arena);
  self->arena = NULL;
  self->arena_bytes = self->capacity = 0;
  runnel_cpu_attend_trim (self);
  runnel_team_unlock (self->team);
}

/* ---- Begin and end ------------------------------------------------------- */

/* Finds the place of every new row: the last rows of its sequence's keys. */
static void
place_rows (RunnelPass *self, const RunnelPassSequence *sequence)
{
  const guint limit = sequence->first_key + sequence->n_rows;
  guint key = 0;

  for (guint i = 0; i < sequence->n_keys; i++) {
    const RunnelKeys *keys = &sequence->keys[i];
    guint end = key + keys->n;

    for (guint k = MAX (key, sequence->first_key); k < end; k++) {
      guint row = sequence->row + (k - sequence->first_key);

      self->slots[row].page = keys->page;
      self->slots[row].row = keys->first + (k - key);
      self->limits[row] = sequence->joint ? limit : k + 1;
    }
    key = end;
  }
}

static gboolean
begin (RunnelPass *self, const RunnelPassRows *rows)
{
  runnel_team_lock (self->team, rows->n_rows <= RUNNEL_FEW_ROWS
      ? runnel_backend_get_n_threads (self->backend)
      : runnel_backend_get_n_prefill_threads (self->backend));
  self->rows = rows;
  if (!ensure_rows (self, rows->n_rows) || !runnel_cpu_attend_begin (self)) {
    runnel_team_unlock (self->team);
    return FALSE;
  }
  self->normed.n = self->attention.n = self->ff.n = rows->n_rows;
  self->fused.n = rows->n_rows;
  for (guint i = 0; i < rows->n_sequences; i++)
    place_rows (self, &rows->sequences[i]);
  self->fp = runnel_fp_enter ();
  return TRUE;
}

static void
end (RunnelPass *self)
{
  runnel_fp_leave (self->fp);
  self->rows = NULL;
  runnel_team_unlock (self->team);
}

static void
for_rows (RunnelPass *self, RunnelTeamFunc func, void *data)
{
  runnel_team_for (self->team, self->rows->n_rows, 1, func, data);
}

/* ---- Embedding and products ---------------------------------------------- */

typedef struct {
  RunnelPass *pass;
  const RunnelMatrix *matrix;
  const RunnelLayer *layer;
  const float *norm;
  gboolean quantise;
  guint first_part;          /* of q, k, v */
} Work;

static void
embed_rows (void *data, unsigned thread, size_t first, size_t last)
{
  Work *work = data;
  RunnelPass *self = work->pass;

  for (size_t i = first; i < last; i++)
    self->kernels->row (work->matrix, self->rows->tokens[i],
        self->x + i * self->x_stride);
}

static void
embed (RunnelPass *self, const RunnelOperand *embedding)
{
  Work work = { .pass = self, .matrix = &embedding->matrix };

  for_rows (self, embed_rows, &work);
}

static void
quantise_row (RunnelPass *self, RunnelRows *rows, guint i)
{
  self->kernels->quantise (rows, i, 0, runnel_n_groups (rows->columns));
}

static void
norm_rows (void *data, unsigned thread, size_t first, size_t last)
{
  Work *work = data;
  RunnelPass *self = work->pass;

  for (size_t i = first; i < last; i++) {
    self->kernels->norm (self->x + i * self->x_stride, work->norm,
        self->shape.norm_epsilon, self->shape.n_embd,
        self->normed.f + i * self->normed.f_stride);
    if (work->quantise)
      quantise_row (self, &self->normed, i);
  }
}

static inline gboolean
is_quantised (const RunnelOperand *operand)
{
  return runnel_matrix_is_quantised (operand->matrix.kind);
}

static void
norm (RunnelPass *self, const RunnelOperand *weight, gboolean quantise)
{
  Work work = {
    .pass = self,
    .norm = (const float *) weight->matrix.data,
    .quantise = quantise,
  };

  for_rows (self, norm_rows, &work);
}

static void
quantise_normed_rows (void *data, unsigned thread, size_t first, size_t last)
{
  RunnelPass *self = data;

  for (size_t i = first; i < last; i++)
    quantise_row (self, &self->normed, i);
}

/* norm (x) behind the convolution before a sublayer, if it has one. */
static void
norm_and_convolve (RunnelPass *self, const RunnelOperand *weight,
                   const RunnelOperand *base, const RunnelOperand *conv,
                   gboolean quantise)
{
  norm (self, weight, conv != NULL ? is_quantised (conv) : quantise);
  if (conv == NULL)
    return;
  runnel_cpu_conv_prepare (self, base, conv);
  runnel_cpu_convolve (self, 0, self->normed.f, self->normed.f_stride);
  if (quantise)
    for_rows (self, quantise_normed_rows, self);
}

static inline void
multiply (const RunnelPass *self, const RunnelMatrix *w, const RunnelRows *x,
          const RunnelOperand *bias, float *y, gsize y_stride, size_t first,
          size_t last)
{
  self->kernels->matmul[w->kind] (w, x,
      bias != NULL ? (const float *) bias->matrix.data : NULL, y, y_stride,
      first, last);
}

/* One loop over the tiles of q, then k, then v. */
static void
project_tiles (void *data, unsigned thread, size_t first, size_t last)
{
  Work *work = data;
  RunnelPass *self = work->pass;
  const RunnelLayer *layer = work->layer;
  const RunnelOperand *parts[] = { layer->q, layer->k, layer->v };
  const RunnelOperand *biases[] = { layer->q_bias, layer->k_bias,
                                    layer->v_bias };
  const gsize offsets[] = { 0, self->k_offset, self->v_offset };
  size_t base = 0;

  for (guint i = work->first_part; i < 3; i++) {
    const RunnelMatrix *w = &parts[i]->matrix;
    size_t n = runnel_matrix_n_tiles (w);
    size_t from = MAX (first, base), to = MIN (last, base + n);

    if (from < to)
      multiply (self, w, &self->normed, biases[i], self->qkv + offsets[i],
          self->qkv_stride, from - base, to - base);
    base += n;
  }
}

static void
project (RunnelPass *self, const RunnelLayer *layer)
{
  Work work = { .pass = self, .layer = layer };
  gsize n_tiles = runnel_matrix_n_tiles (&layer->q->matrix)
      + runnel_matrix_n_tiles (&layer->k->matrix)
      + runnel_matrix_n_tiles (&layer->v->matrix);

  norm_and_convolve (self, layer->attn_norm, layer->attn_conv_base,
      layer->attn_conv, is_quantised (layer->q) || is_quantised (layer->k)
      || is_quantised (layer->v));
  runnel_team_for (self->team, n_tiles, runnel_pass_grain (self, n_tiles),
      project_tiles, &work);
}

typedef struct {
  RunnelPass *pass;
  const RunnelMatrix *matrix;
  const RunnelRows *input;
} AddWork;

static void
multiply_add_tiles (void *data, unsigned thread, size_t first, size_t last)
{
  AddWork *work = data;
  RunnelPass *self = work->pass;
  size_t column = first * RUNNEL_TILE_ROWS;
  size_t n = MIN (last * RUNNEL_TILE_ROWS, work->matrix->rows) - column;

  multiply (self, work->matrix, work->input, NULL, self->product,
      self->x_stride, first, last);
  for (guint i = 0; i < work->input->n; i++)
    self->kernels->add (self->x + i * self->x_stride + column,
        self->product + i * self->x_stride + column, n);
}

static void
multiply_tiles (void *data, unsigned thread, size_t first, size_t last)
{
  AddWork *work = data;

  multiply (work->pass, work->matrix, work->input, NULL, work->pass->product,
      work->pass->x_stride, first, last);
}

static void
add_product_rows (void *data, unsigned thread, size_t first, size_t last)
{
  RunnelPass *self = data;

  for (size_t i = first; i < last; i++)
    self->kernels->add (self->x + i * self->x_stride,
        self->product + i * self->x_stride, self->shape.n_embd);
}

/* x += matrix · input, or its convolution. */
static void
multiply_add (RunnelPass *self, const RunnelOperand *operand,
              const RunnelRows *input, gboolean convolve)
{
  AddWork work = { self, &operand->matrix, input };
  gsize n_tiles = runnel_matrix_n_tiles (&operand->matrix);

  if (convolve) {
    runnel_team_for (self->team, n_tiles, runnel_pass_grain (self, n_tiles),
        multiply_tiles, &work);
    runnel_cpu_convolve (self, 1, self->product, self->x_stride);
    for_rows (self, add_product_rows, self);
    return;
  }
  runnel_team_for (self->team, n_tiles, runnel_pass_grain (self, n_tiles),
      multiply_add_tiles, &work);
}

static void
quantise_attention_rows (void *data, unsigned thread, size_t first,
                         size_t last)
{
  RunnelPass *self = data;

  for (size_t i = first; i < last; i++)
    quantise_row (self, &self->attention, i);
}

static void
project_add (RunnelPass *self, const RunnelLayer *layer)
{
  if (is_quantised (layer->o))
    for_rows (self, quantise_attention_rows, self);
  multiply_add (self, layer->o, &self->attention, layer->attn_conv != NULL);
}

/* ---- Rotation and the cache ---------------------------------------------- */

static void
rotate_heads (RunnelPass *self, float *heads, guint n_heads,
              const RunnelOperand *head_norm, guint row, float factor)
{
  const RunnelShape *shape = &self->shape;
  guint half = shape->rope_dimensions / 2;

  for (guint h = 0; h < n_heads; h++) {
    float *head = heads + h * shape->head_dim;

    if (head_norm != NULL)
      self->kernels->norm (head, (const float *) head_norm->matrix.data,
          shape->norm_epsilon, shape->head_dim, head);
    self->kernels->rope (head, self->rows->cos + row * half,
        self->rows->sin + row * half, half,
        shape->rope_style == RUNNEL_ROPE_HALVES);
  }
  if (factor != 1.0f)
    self->kernels->scale (heads, factor, n_heads * shape->head_dim);
}

typedef struct {
  RunnelPass *pass;
  const RunnelLayer *layer;
  gsize layer_offset;        /* of this layer's K in a page */
  float query_scale;
} RopeWork;

static void
rope_append_rows (void *data, unsigned thread, size_t first, size_t last)
{
  RopeWork *work = data;
  RunnelPass *self = work->pass;

  for (size_t i = first; i < last; i++) {
    float *q = self->qkv + i * self->qkv_stride;
    float *k = q + self->k_offset;
    float *v = q + self->v_offset;

    rotate_heads (self, q, self->shape.n_heads, work->layer->q_norm, i,
        work->query_scale);
    rotate_heads (self, k, self->shape.n_kv_heads, work->layer->k_norm, i,
        1.0f);
    self->kernels->kv_store (&self->kv,
        self->slots[i].page + work->layer_offset, self->slots[i].row, k, v);
  }
}

static void
rope_append (RunnelPass *self, const RunnelLayer *layer, guint layer_index)
{
  RopeWork work = {
    .pass = self,
    .layer = layer,
    .layer_offset = 2 * runnel_kv_plane_bytes (&self->kv) * layer_index,
    .query_scale = 1.0f / __builtin_sqrtf ((float) self->shape.head_dim),
  };

  for_rows (self, rope_append_rows, &work);
}

/* ---- A draft's context --------------------------------------------------- */

static void
fuse_tiles (void *data, unsigned thread, size_t first, size_t last)
{
  Work *work = data;
  RunnelPass *self = work->pass;

  multiply (self, work->matrix, &self->fused, NULL, self->x, self->x_stride,
      first, last);
}

static void
fuse (RunnelPass *self, const RunnelOperand *operand, const float *input)
{
  Work work = { .pass = self, .matrix = &operand->matrix };
  gsize n_tiles = runnel_matrix_n_tiles (&operand->matrix);
  const guint columns = self->fused.columns;

  for (guint i = 0; i < self->fused.n; i++) {
    memcpy (self->fused.f + i * self->fused.f_stride,
        input + (gsize) i * columns, columns * sizeof (float));
    if (is_quantised (operand))
      quantise_row (self, &self->fused, i);
  }
  runnel_team_for (self->team, n_tiles, runnel_pass_grain (self, n_tiles),
      fuse_tiles, &work);
}

static void
append_context_rows (void *data, unsigned thread, size_t first, size_t last)
{
  RopeWork *work = data;
  RunnelPass *self = work->pass;

  for (size_t i = first; i < last; i++) {
    float *k = self->qkv + i * self->qkv_stride + self->k_offset;
    float *v = self->qkv + i * self->qkv_stride + self->v_offset;

    rotate_heads (self, k, self->shape.n_kv_heads, work->layer->k_norm, i,
        1.0f);
    self->kernels->kv_store (&self->kv,
        self->slots[i].page + work->layer_offset, self->slots[i].row, k, v);
  }
}

static void
append_context (RunnelPass *self, const RunnelOperand *norm_weight,
                const RunnelLayer *layer, guint layer_index)
{
  Work work = { .pass = self, .layer = layer, .first_part = 1 };
  RopeWork rope = {
    .pass = self,
    .layer = layer,
    .layer_offset = 2 * runnel_kv_plane_bytes (&self->kv) * layer_index,
  };
  gsize n_tiles = runnel_matrix_n_tiles (&layer->k->matrix)
      + runnel_matrix_n_tiles (&layer->v->matrix);

  norm (self, norm_weight,
      is_quantised (layer->k) || is_quantised (layer->v));
  runnel_team_for (self->team, n_tiles, runnel_pass_grain (self, n_tiles),
      project_tiles, &work);
  for_rows (self, append_context_rows, &rope);
}

/* ---- The MLP ------------------------------------------------------------- */

#define BLOCK_TILES (RUNNEL_GROUP / RUNNEL_TILE_ROWS)
#define FEW_ROWS 4              /* whose blocks are small: several are taken */

/* A block is one group of 32 columns of the hidden layer: gate and up are
 * multiplied, joined and quantised while they are in the cache. */
static void
gate_blocks (void *data, unsigned thread, size_t first, size_t last)
{
  Work *work = data;
  RunnelPass *self = work->pass;
  const RunnelMatrix *gate = &work->layer->gate->matrix;
  const RunnelMatrix *up = &work->layer->up->matrix;
  gsize stride = self->ff.f_stride;
  size_t tile = first * BLOCK_TILES;
  size_t end_tile = MIN (last * BLOCK_TILES, runnel_matrix_n_tiles (gate));
  size_t column = first * RUNNEL_GROUP;
  size_t n = MIN (last * RUNNEL_GROUP, self->shape.n_ff) - column;

  multiply (self, gate, &self->normed, NULL, self->ff.f, stride, tile,
      end_tile);
  multiply (self, up, &self->normed, NULL, self->up, stride, tile, end_tile);
  for (guint i = 0; i < self->ff.n; i++) {
    self->kernels->silu_mul (self->ff.f + i * stride + column,
        self->up + i * stride + column, n);
    if (work->quantise)
      self->kernels->quantise (&self->ff, i, first, last);
  }
}

static void
mlp (RunnelPass *self, const RunnelLayer *layer)
{
  Work work = {
    .pass = self,
    .layer = layer,
    .quantise = is_quantised (layer->down),
  };
  gsize n_blocks = runnel_n_groups (self->shape.n_ff);

  norm_and_convolve (self, layer->ffn_norm, layer->ffn_conv_base,
      layer->ffn_conv, is_quantised (layer->gate) || is_quantised (layer->up));
  runnel_team_for (self->team, n_blocks,
      self->rows->n_rows > FEW_ROWS ? 1 : runnel_pass_grain (self, n_blocks),
      gate_blocks, &work);
  multiply_add (self, layer->down, &self->ff, layer->ffn_conv != NULL);
}

/* ---- Output -------------------------------------------------------------- */

static void
output_tiles (void *data, unsigned thread, size_t first, size_t last)
{
  Work *work = data;
  RunnelPass *self = work->pass;

  multiply (self, work->matrix, &self->output_rows, NULL, self->logits,
      self->logits_stride, first, last);
}

static guint
output (RunnelPass *self, const RunnelOperand *norm_weight,
        const RunnelOperand *matrix, const float *const *hidden,
        float *const *logits, guint n_rows)
{
  const RunnelShape *shape = &self->shape;
  const guint n_logits = matrix->matrix.rows;
  RunnelRows *rows = &self->output_rows;
  Work work = { .pass = self, .matrix = &matrix->matrix };
  gsize n_tiles = runnel_matrix_n_tiles (&matrix->matrix);

  for (guint base = 0; base < n_rows; base += RUNNEL_OUTPUT_ROWS) {
    rows->n = MIN (n_rows - base, RUNNEL_OUTPUT_ROWS);
    for (guint i = 0; i < rows->n; i++) {
      self->kernels->norm (hidden[base + i],
          (const float *) norm_weight->matrix.data, shape->norm_epsilon,
          shape->n_embd, rows->f + i * rows->f_stride);
      if (is_quantised (matrix))
        quantise_row (self, rows, i);
    }
    runnel_team_for (self->team, n_tiles, runnel_pass_grain (self, n_tiles),
        output_tiles, &work);
    for (guint i = 0; i < rows->n; i++) {
      const float *row = self->logits + i * self->logits_stride;

      if (self->kernels->find_non_finite (row, n_logits) < n_logits)
        return base + i;
      memcpy (logits[base + i], row, n_logits * sizeof (float));
    }
  }
  return n_rows;
}

static void
read_hidden (RunnelPass *self, guint row, float *hidden)
{
  memcpy (hidden, self->x + row * self->x_stride,
      self->shape.n_embd * sizeof (float));
}

static void
read_input (RunnelPass *self, RunnelInput input, guint row, float *values)
{
  const RunnelRows *rows = input == RUNNEL_INPUT_O ? &self->attention
      : input == RUNNEL_INPUT_DOWN ? &self->ff : &self->normed;

  memcpy (values, rows->f + row * rows->f_stride,
      rows->columns * sizeof (float));
}

static void
read_row (RunnelBackend *backend, const RunnelOperand *operand, guint row,
          float *values)
{
  runnel_cpu_backend_table (backend)->row (&operand->matrix, row, values);
}

static void
rotate (RunnelBackend *backend, const RunnelShape *shape, float *head,
        const float *cos, const float *sin)
{
  runnel_cpu_backend_table (backend)->rope (head, cos, sin,
      shape->rope_dimensions / 2, shape->rope_style == RUNNEL_ROPE_HALVES);
}

const RunnelOps runnel_cpu_ops = {
  .operand_bytes = runnel_cpu_operand_bytes,
  .store_new = runnel_cpu_store_new,
  .store_free = runnel_cpu_store_free,
  .operand_new = runnel_cpu_operand_new,
  .operand_free = runnel_cpu_operand_free,
  .operand_size = runnel_cpu_operand_size,
  .page_rows = runnel_cpu_page_rows,
  .page_bytes = runnel_cpu_page_bytes,
  .pass_new = pass_new,
  .pass_free = pass_free,
  .scratch_bytes = scratch_bytes,
  .trim = trim,
  .begin = begin,
  .end = end,
  .embed = embed,
  .project = project,
  .rope_append = rope_append,
  .attend = runnel_cpu_attend,
  .project_add = project_add,
  .mlp = mlp,
  .fuse = fuse,
  .append_context = append_context,
  .read_hidden = read_hidden,
  .read_input = read_input,
  .output = output,
  .read_row = read_row,
  .kv_read = runnel_cpu_kv_read,
  .kv_write = runnel_cpu_kv_write,
  .kv_export = runnel_cpu_kv_export,
  .kv_import = runnel_cpu_kv_import,
  .rotate = rotate,
  .measure_limits = runnel_cpu_measure_limits,
};
