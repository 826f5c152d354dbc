/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Attention on the CPU. A piece of work is a block of rows of a sequence and
 * one KV head. Where there are fewer pieces than threads could use, as in
 * decoding at depth, they are split by blocks of keys and merged after; the
 * bits are the same either way.
 */
#include <stdlib.h>

#include "cpu-pass.h"

static gboolean
grow (gpointer *memory, gsize *capacity, gsize n, gsize element)
{
  gpointer larger;

  if (n <= *capacity)
    return TRUE;
  n += n / 2;
  larger = aligned_alloc (64, (n * element + 63) & ~(gsize) 63);
  if (larger == NULL)
    return FALSE;
  free (*memory);
  *memory = larger;
  *capacity = n;
  return TRUE;
}

static guint
heads_per_kv (const RunnelPass *self)
{
  return self->shape.n_heads / self->shape.n_kv_heads;
}

/* ---- The pieces of work -------------------------------------------------- */

typedef struct {
  const RunnelPassSequence *sequence;
  const RunnelKvRun *runs;
  guint n_runs;
  guint row;                 /* first row in the pass */
  guint n_rows;
  guint kv_head;
} Piece;

static guint
n_row_blocks (const RunnelPassSequence *sequence)
{
  return (sequence->n_rows + RUNNEL_ATTEND_ROWS - 1) / RUNNEL_ATTEND_ROWS;
}

static guint
n_key_blocks (guint n_keys)
{
  return (n_keys + RUNNEL_KEY_BLOCK - 1) / RUNNEL_KEY_BLOCK;
}

static gsize
n_pieces (const RunnelPass *self)
{
  gsize n = 0;

  for (guint i = 0; i < self->rows->n_sequences; i++)
    n += n_row_blocks (&self->rows->sequences[i]);
  return n * self->shape.n_kv_heads;
}

/* Piece number `index`; those of a KV head of one sequence are neighbours. */
static Piece
get_piece (const RunnelPass *self, gsize index)
{
  const RunnelPassSequence *sequence = self->rows->sequences;
  gsize n;
  guint s = 0, block;
  Piece piece;

  while (index >= (n = (gsize) n_row_blocks (&sequence[s])
      * self->shape.n_kv_heads)) {
    index -= n;
    s++;
  }
  block = index % n_row_blocks (&sequence[s]);
  piece.sequence = &sequence[s];
  piece.runs = self->runs + self->first_run[s];
  piece.n_runs = self->first_run[s + 1] - self->first_run[s];
  piece.row = sequence[s].row + block * RUNNEL_ATTEND_ROWS;
  piece.n_rows = MIN (RUNNEL_ATTEND_ROWS,
      sequence[s].n_rows - block * RUNNEL_ATTEND_ROWS);
  piece.kv_head = index / n_row_blocks (&sequence[s]);
  return piece;
}

/* Keys that the last row of the piece sees: none of it sees more. */
static guint
piece_keys (const RunnelPass *self, const Piece *piece)
{
  return self->limits[piece->row + piece->n_rows - 1];
}

/* The run that holds a key. */
static guint
find_run (const Piece *piece, guint key)
{
  guint low = 0, high = piece->n_runs;

  while (high - low > 1) {
    guint middle = low + (high - low) / 2;

    if (piece->runs[middle].key <= key)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static void
attend_keys (const RunnelPass *self, const Piece *piece, guint key_begin,
             guint key_end, guint8 *partials)
{
  guint first = find_run (piece, key_begin);
  /* One more: it is fetched ahead. */
  guint last = MIN (find_run (piece, key_end - 1) + 1, piece->n_runs - 1);
  const float *q = self->qkv + piece->row * self->qkv_stride
      + piece->kv_head * heads_per_kv (self) * self->shape.head_dim;

  self->kernels->attend (&self->kv, piece->runs + first, last - first + 1,
      piece->kv_head, key_begin, key_end, q, self->qkv_stride, piece->n_rows,
      heads_per_kv (self), self->limits + piece->row, partials,
      self->partial_stride);
}

static void
finish_query (RunnelPass *self, const Piece *piece, guint query,
              const guint8 *partial)
{
  guint n_heads = heads_per_kv (self);
  guint row = piece->row + query / n_heads;
  guint head = piece->kv_head * n_heads + query % n_heads;

  self->kernels->finish ((const RunnelPartial *) partial,
      self->shape.head_dim, self->attention.f + row * self->attention.f_stride
      + head * self->shape.head_dim);
}

static void
attend_block (const RunnelPass *self, const Piece *piece, guint block,
              guint8 *partials)
{
  guint key_begin = block * RUNNEL_KEY_BLOCK;

  attend_keys (self, piece, key_begin,
      MIN (key_begin + RUNNEL_KEY_BLOCK, piece_keys (self, piece)), partials);
}

/* ---- Whole pieces -------------------------------------------------------- */

static void
merge_block (RunnelPass *self, const Piece *piece, guint block, guint8 *into,
             const guint8 *from)
{
  guint n_heads = heads_per_kv (self);

  for (guint query = 0; query < piece->n_rows * n_heads; query++)
    if (self->limits[piece->row + query / n_heads] > block * RUNNEL_KEY_BLOCK)
      self->kernels->merge ((RunnelPartial *)
          (into + query * self->partial_stride), (const RunnelPartial *)
          (from + query * self->partial_stride), self->shape.head_dim);
}

static void
attend_pieces (void *data, unsigned thread, size_t first, size_t last)
{
  RunnelPass *self = data;
  guint n_queries = RUNNEL_ATTEND_ROWS * heads_per_kv (self);
  guint8 *total = self->thread_scratch + thread * self->thread_scratch_stride;
  guint8 *partials = total + n_queries * self->partial_stride;

  for (size_t i = first; i < last; i++) {
    Piece piece = get_piece (self, i);
    guint n_blocks = n_key_blocks (piece_keys (self, &piece));

    attend_block (self, &piece, 0, total);
    for (guint block = 1; block < n_blocks; block++) {
      attend_block (self, &piece, block, partials);
      merge_block (self, &piece, block, total, partials);
    }
    for (guint query = 0; query < piece.n_rows * heads_per_kv (self); query++)
      finish_query (self, &piece, query, total + query * self->partial_stride);
  }
}

/* ---- Pieces split by keys ------------------------------------------------ */

/* Splitting is worth it when threads would be idle. */
static gboolean
is_split (const RunnelPass *self, guint max_blocks)
{
  return max_blocks > 1
      && n_pieces (self) < 2 * (gsize) runnel_team_n_active (self->team);
}

static guint
max_key_blocks (const RunnelPass *self)
{
  guint n = 0;

  for (guint i = 0; i < self->rows->n_sequences; i++) {
    const RunnelPassSequence *sequence = &self->rows->sequences[i];

    n = MAX (n, n_key_blocks (sequence->first_key + sequence->n_rows));
  }
  return n;
}

typedef struct {
  RunnelPass *pass;
  guint max_blocks;
} SplitWork;

static guint8 *
split_partials (const SplitWork *work, gsize piece, guint block)
{
  const RunnelPass *self = work->pass;

  return self->partials + (piece * work->max_blocks + block)
      * RUNNEL_ATTEND_ROWS * heads_per_kv (self) * self->partial_stride;
}

static void
merge_split_piece (const SplitWork *work, gsize index, const Piece *piece)
{
  RunnelPass *self = work->pass;
  guint8 *total = split_partials (work, index, 0);
  guint n_blocks = n_key_blocks (piece_keys (self, piece));

  for (guint block = 1; block < n_blocks; block++)
    merge_block (self, piece, block, total,
        split_partials (work, index, block));
  for (guint query = 0; query < piece->n_rows * heads_per_kv (self); query++)
    finish_query (self, piece, query, total + query * self->partial_stride);
}

/* Who is the last to finish a block of a piece merges them all: that needs no
 * loop of its own. */
static void
attend_split_blocks (void *data, unsigned thread, size_t first, size_t last)
{
  SplitWork *work = data;
  RunnelPass *self = work->pass;

  for (size_t i = first; i < last; i++) {
    gsize index = i / work->max_blocks;
    guint block = i % work->max_blocks;
    Piece piece = get_piece (self, index);

    if (block < n_key_blocks (piece_keys (self, &piece)))
      attend_block (self, &piece, block, split_partials (work, index, block));
    if (g_atomic_int_dec_and_test (&self->n_unfinished[index]))
      merge_split_piece (work, index, &piece);
  }
}

static void
attend_split (RunnelPass *self, guint max_blocks)
{
  SplitWork work = { self, max_blocks };
  gsize n = n_pieces (self);

  for (gsize i = 0; i < n; i++)
    self->n_unfinished[i] = max_blocks;
  runnel_team_for (self->team, n * max_blocks, 1, attend_split_blocks, &work);
}

/* ---- Rows of a block with a window --------------------------------------- */

typedef struct {
  RunnelPass *pass;
  guint window;
} WindowWork;

/* A row and a KV head. */
static Piece
get_row_piece (const RunnelPass *self, gsize index)
{
  const RunnelPassSequence *sequence = self->rows->sequences;
  const guint row = index / self->shape.n_kv_heads;
  guint s = 0;
  Piece piece;

  while (row >= sequence[s].row + sequence[s].n_rows)
    s++;
  piece.sequence = &sequence[s];
  piece.runs = self->runs + self->first_run[s];
  piece.n_runs = self->first_run[s + 1] - self->first_run[s];
  piece.row = row;
  piece.n_rows = 1;
  piece.kv_head = index % self->shape.n_kv_heads;
  return piece;
}

/* Blocks of keys are what is left of those of attention without a window. */
static void
attend_window (RunnelPass *self, const Piece *piece, guint window,
               guint8 *total, guint8 *partials)
{
  const guint key = piece->sequence->first_key + piece->row
      - piece->sequence->row;
  const guint end = MIN (piece_keys (self, piece), key + window);
  const guint first = key >= window ? key - window + 1 : 0;
  const guint n_heads = heads_per_kv (self);

  for (guint begin = first, next; begin < end; begin = next) {
    next = MIN ((begin / RUNNEL_KEY_BLOCK + 1) * RUNNEL_KEY_BLOCK, end);
    attend_keys (self, piece, begin, next, begin == first ? total : partials);
    for (guint query = 0; begin > first && query < n_heads; query++)
      self->kernels->merge ((RunnelPartial *)
          (total + query * self->partial_stride), (const RunnelPartial *)
          (partials + query * self->partial_stride), self->shape.head_dim);
  }
  for (guint query = 0; query < n_heads; query++)
    finish_query (self, piece, query, total + query * self->partial_stride);
}

static void
attend_window_pieces (void *data, unsigned thread, size_t first, size_t last)
{
  WindowWork *work = data;
  RunnelPass *self = work->pass;
  guint8 *total = self->thread_scratch + thread * self->thread_scratch_stride;

  for (size_t i = first; i < last; i++) {
    Piece piece = get_row_piece (self, i);

    attend_window (self, &piece, work->window, total, total
        + RUNNEL_ATTEND_ROWS * heads_per_kv (self) * self->partial_stride);
  }
}

/* ---- The op -------------------------------------------------------------- */

static gboolean
prepare_split (RunnelPass *self, guint max_blocks)
{
  return grow ((gpointer *) &self->partials, &self->partials_capacity,
      n_pieces (self) * max_blocks,
      RUNNEL_ATTEND_ROWS * heads_per_kv (self) * self->partial_stride)
      && grow ((gpointer *) &self->n_unfinished, &self->unfinished_capacity,
          n_pieces (self), sizeof *self->n_unfinished);
}

/* Makes the lists of runs, with the addresses of layer 0. */
gboolean
runnel_cpu_attend_begin (RunnelPass *self)
{
  const RunnelPassRows *rows = self->rows;
  guint max_blocks = max_key_blocks (self);
  gsize n_runs = 0;

  for (guint s = 0; s < rows->n_sequences; s++)
    n_runs += rows->sequences[s].n_keys;
  if (!grow ((gpointer *) &self->runs, &self->runs_capacity, n_runs,
          sizeof *self->runs)
      || !grow ((gpointer *) &self->first_run, &self->sequences_capacity,
          rows->n_sequences + 1, sizeof *self->first_run)
      || (is_split (self, max_blocks) && !prepare_split (self, max_blocks)))
    return FALSE;
  self->n_runs = 0;
  for (guint s = 0; s < rows->n_sequences; s++) {
    const RunnelPassSequence *sequence = &rows->sequences[s];
    guint key = 0;

    self->first_run[s] = self->n_runs;
    for (guint i = 0; i < sequence->n_keys; i++) {
      const RunnelKeys *keys = &sequence->keys[i];
      RunnelKvRun run = { keys->page, keys->first, keys->n, key };

      self->runs[self->n_runs++] = run;
      key += keys->n;
    }
  }
  self->first_run[rows->n_sequences] = self->n_runs;
  return TRUE;
}

/* Memory of split attention. */
gsize
runnel_cpu_attend_bytes (const RunnelPass *self)
{
  return self->partials_capacity * RUNNEL_ATTEND_ROWS * heads_per_kv (self)
      * self->partial_stride;
}

void
runnel_cpu_attend_trim (RunnelPass *self)
{
  free (self->partials);
  self->partials = NULL;
  self->partials_capacity = 0;
}

void
runnel_cpu_attend (RunnelPass *self, const RunnelLayer *layer,
                   guint layer_index)
{
  guint max_blocks = max_key_blocks (self);

  if (layer->window > 0) {
    WindowWork work = { self, layer->window };

    runnel_team_for (self->team,
        (gsize) self->rows->n_rows * self->shape.n_kv_heads, 1,
        attend_window_pieces, &work);
  } else if (is_split (self, max_blocks)) {
    attend_split (self, max_blocks);
  } else {
    runnel_team_for (self->team, n_pieces (self), 1, attend_pieces, self);
  }
  /* The next layer's keys lie behind this one's. */
  for (gsize i = 0; i < self->n_runs; i++)
    self->runs[i].layer += 2 * runnel_kv_plane_bytes (&self->kv);
}
