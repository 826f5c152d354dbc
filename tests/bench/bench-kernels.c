/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Micro-benchmark of the kernels, no GLib. Levels take turns, sample by
 * sample, and time is the thread's own, so that a busy machine hurts little
 * and all alike; medians, the middle half and the best are printed.
 *
 *     bench-kernels [products|attention|rows|pack] [LEVEL [PART OF A NAME]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/cpu/half.h"
#include "backends/cpu/kernels.h"

#define SAMPLES 15
#define SAMPLE_SECONDS 0.004
#define MAX_LEVELS 4

static const RunnelKernels *levels[MAX_LEVELS];
static int n_levels;
static const char *filter = "";  /* only what has this in its name */
static uint64_t state = 1;

static uint32_t
random_u32 (void)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t) (state >> 32);
}

static float
random_float (void)
{
  return (float) (int32_t) random_u32 () * 0x1p-31f;
}

static void *
allocate (size_t size)
{
  void *p = aligned_alloc (64, (size + 63) / 64 * 64);

  if (p == NULL)
    exit (1);
  memset (p, 0, size);
  return p;
}

static float *
random_floats (size_t n)
{
  float *p = allocate (n * sizeof *p);

  for (size_t i = 0; i < n; i++)
    p[i] = random_float ();
  return p;
}

static double
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

static int
compare_doubles (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

/* Measures work (kernels, data), which does `amount` of something, for every
 * level in turn and prints amount per second. */
static void
measure (const char *what, const char *unit, double amount,
    void (*work) (const RunnelKernels *, void *), void *data)
{
  double rates[MAX_LEVELS][SAMPLES], medians[MAX_LEVELS];
  long repeats[MAX_LEVELS];

  if (strstr (what, filter) == NULL)
    return;
  for (int l = 0; l < n_levels; l++) {
    double begin = now ();

    repeats[l] = 0;
    while (now () - begin < SAMPLE_SECONDS) {
      work (levels[l], data);
      repeats[l]++;
    }
  }
  for (int s = 0; s < SAMPLES; s++) {
    for (int l = 0; l < n_levels; l++) {
      double begin = now ();

      for (long i = 0; i < repeats[l]; i++)
        work (levels[l], data);
      rates[l][s] = amount * (double) repeats[l] / (now () - begin);
    }
  }
  printf ("%-38s", what);
  for (int l = 0; l < n_levels; l++) {
    qsort (rates[l], SAMPLES, sizeof (double), compare_doubles);
    medians[l] = rates[l][SAMPLES / 2];
    printf ("  %s %8.2f (%.2f - %.2f, %.2f)", levels[l]->name,
        medians[l], rates[l][SAMPLES / 4], rates[l][SAMPLES * 3 / 4],
        rates[l][SAMPLES - 1]);
  }
  printf (" %s", unit);
  if (n_levels > 1)
    printf (", %.1f x", medians[n_levels - 1] / medians[0]);
  printf ("\n");
}

/* ---- Products ------------------------------------------------------------ */

static const struct {
  RunnelMatrixKind kind;
  const char *name;
} kinds[] = {
  {RUNNEL_MATRIX_INT4_32, "INT4_32"},
  {RUNNEL_MATRIX_INT4_32_OFFSET, "INT4_32_OFFSET"},
  {RUNNEL_MATRIX_INT4_64_OFFSET, "INT4_64_OFFSET"},
  {RUNNEL_MATRIX_INT4_64_CENTRED, "INT4_64_CENTRED"},
  {RUNNEL_MATRIX_INT8_32, "INT8_32"},
  {RUNNEL_MATRIX_INT8_32_OFFSET, "INT8_32_OFFSET"},
  {RUNNEL_MATRIX_INT8_64, "INT8_64"},
  {RUNNEL_MATRIX_Q2_K, "Q2_K"},
  {RUNNEL_MATRIX_Q3_K, "Q3_K"},
  {RUNNEL_MATRIX_Q4_K, "Q4_K"},
  {RUNNEL_MATRIX_Q5_K, "Q5_K"},
  {RUNNEL_MATRIX_Q6_K, "Q6_K"},
  {RUNNEL_MATRIX_F32, "F32"},
  {RUNNEL_MATRIX_F16, "F16"},
  {RUNNEL_MATRIX_BF16, "BF16"},
};

typedef struct {
  RunnelMatrix w;
  RunnelRows x;
  float *y;
} Product;

static void
multiply (const RunnelKernels *kernels, void *data)
{
  Product *p = data;

  kernels->matmul[p->w.kind] (&p->w, &p->x, NULL, p->y, p->w.rows, 0,
      runnel_matrix_n_tiles (&p->w));
}

static void
bench_product (RunnelMatrixKind kind, const char *name, uint32_t rows,
    uint32_t columns, uint32_t n)
{
  Product p = { {kind, rows, columns, runnel_matrix_stride (kind, columns)} };
  size_t size = p.w.stride * (runnel_matrix_is_interleaved (kind)
      ? runnel_matrix_n_tiles (&p.w) : rows);
  size_t groups = runnel_n_groups (columns);
  uint8_t *data = allocate (size);
  char what[64];

  /* Bytes below 0x40 are harmless halves and floats wherever they fall. */
  for (size_t i = 0; i < size; i++)
    data[i] = random_u32 () & 0x3f;
  p.w.data = data;
  p.x = (RunnelRows) { n, columns, random_floats (n * columns), columns,
    allocate (n * groups * RUNNEL_GROUP), allocate (n * groups * 4),
    allocate (n * groups * 4), allocate (n * groups * 4) };
  for (uint32_t i = 0; i < n; i++)
    levels[0]->quantise (&p.x, i, 0, groups);
  p.y = allocate ((size_t) n * rows * sizeof (float));

  snprintf (what, sizeof what, "%s %u x %u, %u row%s", name, rows, columns, n,
      n > 1 ? "s" : "");
  if (n == 1)
    measure (what, "GB/s", (double) size * 1e-9, multiply, &p);
  else
    measure (what, "GMAC/s", (double) n * rows * columns * 1e-9, multiply, &p);
  free (data);
  free (p.x.f);
  free (p.x.q);
  free (p.x.scale);
  free (p.x.sum);
  free (p.x.moment);
  free (p.y);
}

static void
bench_products (void)
{
  static const uint32_t n_rows[] = { 1, 2, 4, 16, 128 };

  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    for (size_t i = 0; i < sizeof n_rows / sizeof n_rows[0]; i++)
      bench_product (kinds[k].kind, kinds[k].name, 576, 768, n_rows[i]);
  }
  /* Larger than the caches. */
  bench_product (RUNNEL_MATRIX_INT4_32_OFFSET, "INT4_32_OFFSET", 98304, 1536,
      1);
  bench_product (RUNNEL_MATRIX_INT8_32, "INT8_32", 49152, 1536, 1);
}

/* ---- Attention ----------------------------------------------------------- */

#define PAGE_ROWS 32             /* as the CPU backend has */
#define MAX_DEPTH 4096

typedef struct {
  RunnelKvLayout layout;
  RunnelKvRun *runs;
  uint32_t n_layers;           /* in a page */
  uint32_t layer;              /* the next one's turn */
  uint32_t depth;
  uint32_t n_queries;
  uint32_t n_heads;            /* of one KV head */
  float *q;
  float *y;
  uint32_t *limits;
  uint8_t *partials[2];
} Attention;

/* One layer, the next with every call: all heads, blocks merged and
 * finished. */
static void
attend (const RunnelKernels *kernels, void *data)
{
  Attention *a = data;
  size_t layer_bytes = 2 * runnel_kv_plane_bytes (&a->layout);
  uint32_t head_dim = a->layout.head_dim;
  size_t stride = sizeof (RunnelPartial) + head_dim * sizeof (float);
  size_t row = (size_t) a->layout.n_kv_heads * a->n_heads * head_dim;

  for (uint32_t g = 0; g < a->layout.n_kv_heads; g++) {
    for (uint32_t begin = 0; begin < a->depth; begin += RUNNEL_KEY_BLOCK) {
      uint32_t end = begin + RUNNEL_KEY_BLOCK;

      if (end > a->depth)
        end = a->depth;
      kernels->attend (&a->layout, a->runs + begin / PAGE_ROWS,
          (end - begin + PAGE_ROWS - 1) / PAGE_ROWS, g, begin, end,
          a->q + (size_t) g * a->n_heads * head_dim, row, a->n_queries,
          a->n_heads, a->limits, a->partials[begin > 0], stride);
      for (uint32_t j = 0; begin > 0 && j < a->n_queries * a->n_heads; j++)
        kernels->merge ((RunnelPartial *) (a->partials[0] + j * stride),
            (RunnelPartial *) (a->partials[1] + j * stride), head_dim);
    }
    for (uint32_t j = 0; j < a->n_queries * a->n_heads; j++)
      kernels->finish ((RunnelPartial *) (a->partials[0] + j * stride),
          head_dim, a->y);
  }
  a->layer = (a->layer + 1) % a->n_layers;
  for (uint32_t i = 0; i < MAX_DEPTH / PAGE_ROWS; i++) {
    if (a->layer > 0)
      a->runs[i].layer += layer_bytes;
    else
      a->runs[i].layer -= (a->n_layers - 1) * layer_bytes;
  }
}

static void
bench_attention_shape (uint32_t n_layers, uint32_t n_kv_heads,
    uint32_t n_heads, uint32_t head_dim, RunnelKvFormat format)
{
  Attention a = { {format, PAGE_ROWS, n_kv_heads, head_dim} };
  size_t layer_bytes = 2 * runnel_kv_plane_bytes (&a.layout);
  size_t page = layer_bytes * n_layers;
  size_t row = (size_t) n_kv_heads * n_heads * head_dim;
  RunnelKvRun runs[MAX_DEPTH / PAGE_ROWS];
  float *kv = random_floats (2 * (size_t) n_kv_heads * head_dim);
  uint8_t *pages = allocate (page * (MAX_DEPTH / PAGE_ROWS));
  static const char *const formats[] = { "f16", "f32", "int8" };
  char what[80];

  for (uint32_t i = 0; i < MAX_DEPTH / PAGE_ROWS; i++) {
    runs[i] = (RunnelKvRun) { pages + i * page, 0, PAGE_ROWS, i * PAGE_ROWS };
    for (uint32_t r = 0; r < PAGE_ROWS * n_layers; r++)
      levels[0]->kv_store (&a.layout,
          runs[i].layer + r / PAGE_ROWS * layer_bytes, r % PAGE_ROWS, kv,
          kv + n_kv_heads * head_dim);
  }
  a.runs = runs;
  a.n_layers = n_layers;
  a.n_heads = n_heads;
  a.q = random_floats (32 * row);
  a.y = allocate (head_dim * sizeof (float));
  a.limits = allocate (32 * sizeof (uint32_t));
  for (int i = 0; i < 2; i++)
    a.partials[i] = allocate (32 * n_heads * (sizeof (RunnelPartial)
            + head_dim * sizeof (float)));

  for (uint32_t depth = 256; depth <= MAX_DEPTH; depth *= 4) {
    for (a.n_queries = 1; a.n_queries <= 32; a.n_queries *= 32) {
      a.depth = depth;
      for (uint32_t i = 0; i < a.n_queries; i++)
        a.limits[i] = depth - a.n_queries + 1 + i;
      snprintf (what, sizeof what, "%u layers, %u/%u heads of %u, %s, depth %u x %u",
          n_layers, n_kv_heads * n_heads, n_kv_heads, head_dim,
          formats[format], depth, a.n_queries);
      measure (what, "k tokens/s a layer", a.n_queries * 1e-3, attend, &a);
    }
  }
  free (kv);
  free (pages);
  free (a.q);
  free (a.y);
  free (a.limits);
  free (a.partials[0]);
  free (a.partials[1]);
}

static void
bench_attention (void)
{
  bench_attention_shape (1, 3, 3, 64, RUNNEL_KV_F16);
  bench_attention_shape (1, 2, 7, 64, RUNNEL_KV_F16);
  bench_attention_shape (1, 4, 1, 128, RUNNEL_KV_F16);
  bench_attention_shape (1, 3, 3, 64, RUNNEL_KV_F32);
  bench_attention_shape (1, 2, 7, 64, RUNNEL_KV_INT8);
  /* Larger than the caches, as whole models are. */
  bench_attention_shape (28, 2, 7, 64, RUNNEL_KV_F16);
  bench_attention_shape (28, 2, 7, 64, RUNNEL_KV_INT8);
}

/* ---- Rows and packing ---------------------------------------------------- */

typedef struct {
  RunnelRows x;
  float *a;
  float *b;
  float *y;
  uint32_t n;
} Rows;

static void
quantise (const RunnelKernels *kernels, void *data)
{
  Rows *rows = data;

  kernels->quantise (&rows->x, 0, 0, rows->n / RUNNEL_GROUP);
}

static void
norm (const RunnelKernels *kernels, void *data)
{
  Rows *rows = data;

  kernels->norm (rows->a, rows->b, 1e-5f, rows->n, rows->y);
}

static void
silu_mul (const RunnelKernels *kernels, void *data)
{
  Rows *rows = data;

  memcpy (rows->y, rows->a, rows->n * sizeof (float));
  kernels->silu_mul (rows->y, rows->b, rows->n);
}

static void
add (const RunnelKernels *kernels, void *data)
{
  Rows *rows = data;

  kernels->add (rows->y, rows->b, rows->n);
}

static void
rope (const RunnelKernels *kernels, void *data)
{
  Rows *rows = data;

  for (uint32_t i = 0; i < rows->n; i += 64)
    kernels->rope (rows->a + i, rows->b, rows->b + 32, 32, true);
}

static void
kv_store (const RunnelKernels *kernels, void *data)
{
  Rows *rows = data;
  RunnelKvLayout kv = { RUNNEL_KV_F16, 8, 3, 64 };

  for (uint32_t r = 0; r < 8; r++)
    kernels->kv_store (&kv, (uint8_t *) rows->y, r, rows->a, rows->b);
}

static void
bench_rows (void)
{
  Rows rows = { .n = 1536 };

  rows.a = random_floats (rows.n);
  rows.b = random_floats (rows.n);
  rows.y = random_floats (8 * rows.n);
  rows.x = (RunnelRows) { 1, rows.n, rows.a, rows.n, allocate (rows.n),
    allocate (rows.n), allocate (rows.n), allocate (rows.n) };
  measure ("quantise 1536", "G/s", rows.n * 1e-9, quantise, &rows);
  measure ("norm 1536", "G/s", rows.n * 1e-9, norm, &rows);
  measure ("silu_mul 1536", "G/s", rows.n * 1e-9, silu_mul, &rows);
  measure ("add 1536", "G/s", rows.n * 1e-9, add, &rows);
  measure ("rope 24 x 64", "G/s", rows.n * 1e-9, rope, &rows);
  measure ("kv_store 3 x 64, f16", "G/s", 8 * 3 * 64 * 2e-9, kv_store, &rows);
  free (rows.a);
  free (rows.b);
  free (rows.y);
  free (rows.x.q);
  free (rows.x.scale);
  free (rows.x.sum);
  free (rows.x.moment);
}

typedef struct {
  uint32_t type;
  size_t row_bytes;
  uint8_t *src;
  uint8_t *dst;
} Packing;

static void
pack (const RunnelKernels *kernels, void *data)
{
  Packing *p = data;

  runnel_matrix_pack (p->type, p->src, p->row_bytes, 576, 1536, p->dst, 0, 72);
}

static void
bench_pack (void)
{
  static const struct {
    uint32_t type, block_bytes;
    const char *name;
  } types[] = {
    {2, 18, "pack Q4_0"}, {3, 20, "pack Q4_1"}, {6, 22, "pack Q5_0"},
    {7, 24, "pack Q5_1"}, {8, 34, "pack Q8_0"},
  };
  int all = n_levels;

  n_levels = 1;                 /* packing is the same code at every level */
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    Packing p = { types[i].type, 48 * types[i].block_bytes };

    p.src = allocate (576 * p.row_bytes);
    p.dst = allocate (576 * 48 * 36);
    measure (types[i].name, "GB/s", 576e-9 * p.row_bytes, pack, &p);
    free (p.src);
    free (p.dst);
  }
  n_levels = all;
}

static void
print_machine (void)
{
  FILE *file = fopen ("/proc/cpuinfo", "r");
  char line[256] = "", name[256] = "unknown processor";

  while (file != NULL && fgets (line, sizeof line, file) != NULL) {
    if (strncmp (line, "model name", 10) == 0) {
      snprintf (name, sizeof name, "%s", strchr (line, ':') + 2);
      name[strcspn (name, "\n")] = '\0';
      break;
    }
  }
  if (file != NULL)
    fclose (file);
  printf ("%s, CPU flags %#x, one thread, seed %llu, %d samples of %g ms "
      "of CPU time, median (quartiles, best)\n", name, runnel_cpu_flags (),
      (unsigned long long) state, SAMPLES, SAMPLE_SECONDS * 1e3);
}

int
main (int argc, char **argv)
{
  const char *const *names = runnel_kernels_names ();
  const char *what = argc > 1 ? argv[1] : "all";
  uint64_t saved = runnel_fp_enter ();

  for (int i = 0; names[i] != NULL && n_levels < MAX_LEVELS; i++) {
    if (argc <= 2 || strcmp (argv[2], names[i]) == 0)
      levels[n_levels++] = runnel_kernels_by_name (names[i]);
  }
  if (argc > 3)
    filter = argv[3];
  if (n_levels == 0) {
    fprintf (stderr, "this machine has no level %s\n", argv[2]);
    return 1;
  }
  print_machine ();
  if (strcmp (what, "all") == 0 || strcmp (what, "products") == 0)
    bench_products ();
  if (strcmp (what, "all") == 0 || strcmp (what, "attention") == 0)
    bench_attention ();
  if (strcmp (what, "all") == 0 || strcmp (what, "rows") == 0)
    bench_rows ();
  if (strcmp (what, "all") == 0 || strcmp (what, "pack") == 0)
    bench_pack ();
  runnel_fp_leave (saved);
  return 0;
}
