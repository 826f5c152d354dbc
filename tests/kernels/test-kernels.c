/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "testing.h"

#include "backends/cpu/self-check.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

int n_failed;
long n_checks;
int effort = 100;

static uint64_t state = 1;

/* splitmix64 (Steele, Lea and Flood 2014). */
uint64_t
random_bits (void)
{
  uint64_t z = (state += 0x9e3779b97f4a7c15u);

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint32_t
random_below (uint32_t n)
{
  return (uint32_t) ((random_bits () >> 32) * n >> 32);
}

uint32_t
random_between (uint32_t first, uint32_t last)
{
  return first + random_below (last - first + 1);
}

float
random_float (void)
{
  return (float) ((int64_t) random_bits () >> 40) * 0x1p-23f;
}

float
random_normal (void)
{
  return (random_float () + random_float () + random_float ());
}

typedef struct Region Region;
struct Region {
  Region *next;
  void *base;
  size_t size;
};

static Region *regions;

void *
guarded (size_t size, size_t alignment)
{
  size_t page = (size_t) sysconf (_SC_PAGESIZE);
  size_t inside = (size + alignment + page) / page * page;
  Region *region = malloc (sizeof *region);
  uint8_t *base = mmap (NULL, inside + page, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (region == NULL || base == MAP_FAILED) {
    fputs ("out of memory\n", stderr);
    exit (1);
  }
  mprotect (base + inside, page, PROT_NONE);
  *region = (Region) { regions, base, inside + page };
  regions = region;
  memset (base, 0xa5, inside);
  return base + (inside - size) / alignment * alignment;
}

void
release_all (void)
{
  while (regions != NULL) {
    Region *region = regions;

    regions = region->next;
    munmap (region->base, region->size);
    free (region);
  }
}

void
expect (bool ok, const char *format, ...)
{
  va_list args;

  n_checks++;
  if (ok)
    return;
  if (n_failed++ < 40) {
    printf ("FAILED: ");
    va_start (args, format);
    vprintf (format, args);
    va_end (args);
    printf ("\n");
  }
}

bool
same_floats (const float *a, const float *b, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (runnel_float_bits (a[i]) != runnel_float_bits (b[i])
        && !(isnan (a[i]) && isnan (b[i])))
      return false;
  }
  return true;
}

bool
same_rows (const RunnelRows *a, const RunnelRows *b)
{
  size_t groups = (size_t) a->n * runnel_n_groups (a->columns);

  return memcmp (a->q, b->q, groups * RUNNEL_GROUP) == 0
      && memcmp (a->sum, b->sum, groups * sizeof *a->sum) == 0
      && same_floats (a->scale, b->scale, groups)
      && same_floats (a->moment, b->moment, groups);
}

void
fill_floats (float *x, size_t n, Fill fill)
{
  static const float special[] = { NAN, INFINITY, -INFINITY };
  float constant = random_normal ();

  for (size_t i = 0; i < n; i++) {
    switch (fill) {
      case FILL_WIDE:
        x[i] = ldexpf (random_normal (), (int) random_below (200) - 140);
        break;
      case FILL_EQUAL:
        x[i] = constant;
        break;
      case FILL_EXTREME:
        x[i] = random_below (2) ? constant : -constant;
        break;
      case FILL_ZERO:
        x[i] = random_below (2) ? 0.0f : -0.0f;
        break;
      default:
        x[i] = random_normal ();
        break;
    }
  }
  if (fill == FILL_NON_FINITE)
    x[random_below ((uint32_t) n)] = special[random_below (3)];
}

static RunnelRows *
allocate_rows (uint32_t n, uint32_t columns)
{
  RunnelRows *x = guarded (sizeof *x, 16);
  size_t groups = (size_t) n * runnel_n_groups (columns);

  x->n = n;
  x->columns = columns;
  x->q = guarded (groups * RUNNEL_GROUP, 64);
  x->scale = guarded (groups * sizeof *x->scale, 64);
  x->sum = guarded (groups * sizeof *x->sum, 64);
  x->moment = guarded (groups * sizeof *x->moment, 64);
  return x;
}

RunnelRows *
new_rows (uint32_t n, uint32_t columns, Fill fill)
{
  RunnelRows *x = allocate_rows (n, columns);

  x->f_stride = (columns + 15) / 16 * 16;
  x->f = guarded ((n - 1) * x->f_stride * sizeof (float)
      + columns * sizeof (float), 64);
  for (uint32_t i = 0; i < n; i++)
    fill_floats (x->f + i * x->f_stride, columns, fill);
  return x;
}

RunnelRows *
copy_rows (const RunnelRows *x)
{
  RunnelRows *copy = allocate_rows (x->n, x->columns);

  copy->f = x->f;
  copy->f_stride = x->f_stride;
  return copy;
}

/* ---- Choosing the level by name, mask and flags -------------------------- */

static void
test_dispatch (void)
{
  const char *const *names = runnel_kernels_names ();
  const char *mask = getenv ("RUNNEL_KERNELS");
  char *saved = mask != NULL ? strdup (mask) : NULL;
  size_t n = 0;

  expect (strcmp (names[0], "scalar") == 0, "the first level is scalar");
  for (; names[n] != NULL; n++) {
    const RunnelKernels *kernels = runnel_kernels_by_name (names[n]);

    expect (kernels != NULL && strcmp (kernels->name, names[n]) == 0,
        "level %s by its name", names[n]);
    setenv ("RUNNEL_KERNELS", names[n], 1);
    expect (runnel_kernels_by_name ("auto") == kernels,
        "auto under the mask %s", names[n]);
  }
  setenv ("RUNNEL_KERNELS", "nonsense", 1);
  expect (runnel_kernels_by_name ("auto") == NULL, "auto, unknown mask");
  unsetenv ("RUNNEL_KERNELS");
  expect (strcmp (runnel_kernels_by_name ("auto")->name, names[n - 1]) == 0,
      "auto is the best level");
  expect (runnel_kernels_by_name ("nonsense") == NULL, "unknown level");
  expect (runnel_kernels_select (0) == &runnel_kernels_scalar,
      "no flags select scalar");
  if (saved != NULL)
    setenv ("RUNNEL_KERNELS", saved, 1);
  free (saved);
}

static void
test_fp_control (void)
{
  volatile float smallest = 0x1p-149f, half = 0.5f, result;
  uint64_t first = runnel_fp_enter (), inner;

  result = (smallest * 3.0f) * half;
  expect (result == 0x1p-148f, "denormals are kept");
  inner = runnel_fp_enter ();
  runnel_fp_leave (inner);
  result = (smallest * 3.0f) * half;
  expect (result == 0x1p-148f, "nested enter and leave");
  runnel_fp_leave (first);

#if defined(__x86_64__)
  unsigned int before = __builtin_ia32_stmxcsr ();
  unsigned int flush = before | 0x8040;         /* FTZ and DAZ */

  __builtin_ia32_ldmxcsr (flush);
  first = runnel_fp_enter ();
  result = (smallest * 3.0f) * half;
  expect (result == 0x1p-148f, "denormals under a flushing host");
  runnel_fp_leave (first);
  expect ((__builtin_ia32_stmxcsr () & 0x8040) == 0x8040,
      "the host's control word comes back");
  __builtin_ia32_ldmxcsr (before);
#endif
}

static void
add_one (float *x, const float *y, uint32_t n)
{
  runnel_kernels_scalar.add (x, y, n);
  x[n / 2] = x[n / 2] + 1e-6f;
}

static void
leave_out (const RunnelMatrix *w, const RunnelRows *x, const float *bias,
    float *y, size_t y_stride, uint32_t tile_begin, uint32_t tile_end)
{
  runnel_kernels_scalar.matmul[w->kind] (w, x, NULL, y, y_stride, tile_begin,
      tile_end);
}

/* Broken tables are found out, and the next level down is taken. */
static void
test_self_check (void)
{
  const char *const *names = runnel_kernels_names ();
  const RunnelKernels *best = runnel_kernels_by_name ("auto");
  RunnelKernels broken[2] = { *best, *best };
  const RunnelKernels *ladder[3] = { &broken[0], &broken[1],
    &runnel_kernels_scalar };
  const char *fault;

  for (size_t i = 0; names[i] != NULL; i++) {
    const RunnelKernels *kernels = runnel_kernels_by_name (names[i]);

    expect (runnel_kernels_find_fault (kernels) == NULL, "%s is sound",
        names[i]);
    expect (runnel_kernels_sound (kernels, &fault) == kernels && fault == NULL,
        "%s is used", names[i]);
  }
  broken[0].add = add_one;
  expect (runnel_kernels_first_sound (ladder, 3, &fault) == &broken[1]
      && strcmp (fault, "a row operation") == 0, "one level down");
  for (int kind = 0; kind < RUNNEL_N_MATRIX_KINDS; kind++) {
    broken[1] = *best;
    broken[1].matmul[kind] = leave_out;
    expect (runnel_kernels_find_fault (&broken[1]) != NULL,
        "kind %d is checked", kind);
  }
  expect (runnel_kernels_first_sound (ladder, 3, &fault)
      == &runnel_kernels_scalar, "down to scalar");
}

/* The levels of this machine are these and no others. */
static void
test_levels (const char *const *expected)
{
  const char *const *names = runnel_kernels_names ();
  size_t i = 0;

  while (names[i] != NULL && expected[i] != NULL
      && strcmp (names[i], expected[i]) == 0)
    i++;
  expect (names[i] == NULL && expected[i] == NULL, "level %s, not %s",
      names[i] != NULL ? names[i] : "(none)",
      expected[i] != NULL ? expected[i] : "(none)");
}

/* test-kernels [LEVEL]: every level of this machine, or one; test-kernels
 * expect LEVELS...: every level, which must be these. RUNNEL_TEST_SEED and
 * RUNNEL_TEST_EFFORT (percent) change what is tried. */
int
main (int argc, char **argv)
{
  const char *const *names = runnel_kernels_names ();
  const char *only = argc == 2 ? argv[1] : NULL;
  const char *seed = getenv ("RUNNEL_TEST_SEED");
  const char *percent = getenv ("RUNNEL_TEST_EFFORT");
  uint64_t saved = runnel_fp_enter ();
  uint64_t first_state = seed != NULL ? strtoull (seed, NULL, 0) : 1;

  if (percent != NULL)
    effort = atoi (percent);
  if (only != NULL && runnel_kernels_by_name (only) == NULL) {
    printf ("this machine has no level %s\n", only);
    return 1;
  }
  printf ("seed %llu, effort %d %%\n", (unsigned long long) first_state,
      effort);
  if (argc > 2)
    test_levels ((const char *const *) argv + 2);
  test_dispatch ();
  test_fp_control ();
  test_self_check ();

  for (size_t i = 0; names[i] != NULL; i++) {
    const RunnelKernels *kernels = runnel_kernels_by_name (names[i]);
    long before = n_checks;

    if (only != NULL && strcmp (only, names[i]) != 0)
      continue;
    state = first_state;
    test_products (kernels);
    test_rows (kernels);
    test_attention (kernels);
    printf ("%s: %ld checks\n", names[i], n_checks - before);
  }
  if (only == NULL) {
    long before = n_checks;

    state = first_state;
    test_avx512_model ();
    printf ("model of avx512vnni: %ld checks\n", n_checks - before);
  }
  runnel_fp_leave (saved);
  printf ("%d failed\n", n_failed);
  return n_failed != 0;
}
