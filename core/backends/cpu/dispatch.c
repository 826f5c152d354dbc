/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Which kernels run: a ladder of levels, lowest first; each needs the flags
 * of its row.
 */
#include "self-check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef RUNNEL_HAVE_AVX2
extern const RunnelKernels runnel_kernels_avx2;
#endif
#ifdef RUNNEL_HAVE_AVX512VNNI
extern const RunnelKernels runnel_kernels_avx512vnni;
#endif
#ifdef RUNNEL_HAVE_NEON
extern const RunnelKernels runnel_kernels_neon;
extern const RunnelKernels runnel_kernels_dotprod;
extern const RunnelKernels runnel_kernels_i8mm;
#endif

typedef struct {
  const RunnelKernels *kernels;
  uint32_t needs;
} Level;

static const Level levels[] = {
  {&runnel_kernels_scalar, 0},
#ifdef RUNNEL_HAVE_AVX2
  {&runnel_kernels_avx2, RUNNEL_CPU_AVX2},
#endif
#ifdef RUNNEL_HAVE_AVX512VNNI
  {&runnel_kernels_avx512vnni, RUNNEL_CPU_AVX2 | RUNNEL_CPU_AVX512VNNI},
#endif
#ifdef RUNNEL_HAVE_NEON
  {&runnel_kernels_neon, RUNNEL_CPU_NEON},
  {&runnel_kernels_dotprod, RUNNEL_CPU_NEON | RUNNEL_CPU_DOTPROD},
  {&runnel_kernels_i8mm,
      RUNNEL_CPU_NEON | RUNNEL_CPU_DOTPROD | RUNNEL_CPU_I8MM},
#endif
};

#define N_LEVELS (sizeof levels / sizeof levels[0])

const RunnelKernels *
runnel_kernels_select (uint32_t flags)
{
  size_t i = N_LEVELS - 1;

  flags &= runnel_cpu_flags ();
  while ((levels[i].needs & ~flags) != 0)
    i--;
  return levels[i].kernels;
}

static const RunnelKernels *
find_level (const char *name)
{
  uint32_t flags = runnel_cpu_flags ();

  for (size_t i = 0; i < N_LEVELS; i++) {
    if (strcmp (levels[i].kernels->name, name) == 0)
      return (levels[i].needs & ~flags) == 0 ? levels[i].kernels : NULL;
  }
  return NULL;
}

const RunnelKernels *
runnel_kernels_by_name (const char *name)
{
  if (strcmp (name, "auto") == 0) {
    const char *mask = getenv ("RUNNEL_KERNELS");

    if (mask == NULL || *mask == '\0' || strcmp (mask, "auto") == 0)
      return runnel_kernels_select (UINT32_MAX);
    name = mask;
  }
  return find_level (name);
}

static const char *names[N_LEVELS + 1];
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

static void
fill_names (void)
{
  uint32_t flags = runnel_cpu_flags ();
  size_t n = 0;

  for (size_t i = 0; i < N_LEVELS; i++) {
    if ((levels[i].needs & ~flags) == 0)
      names[n++] = levels[i].kernels->name;
  }
}

const char *const *
runnel_kernels_names (void)
{
  pthread_once (&names_once, fill_names);
  return names;
}

typedef struct {
  const RunnelKernels *kernels; /* NULL until it is known */
  const char *fault;
} Verdict;

static Verdict verdicts[N_LEVELS];
static pthread_mutex_t verdicts_mutex = PTHREAD_MUTEX_INITIALIZER;

const RunnelKernels *
runnel_kernels_sound (const RunnelKernels *wanted, const char **fault)
{
  const RunnelKernels *ladder[N_LEVELS], *sound;
  uint32_t flags = runnel_cpu_flags ();
  size_t n = 0, at = N_LEVELS - 1;

  while (at > 0 && levels[at].kernels != wanted)
    at--;
  for (size_t i = at + 1; i-- > 0;) {
    if ((levels[i].needs & ~flags) == 0)
      ladder[n++] = levels[i].kernels;
  }
  pthread_mutex_lock (&verdicts_mutex);
  if (verdicts[at].kernels == NULL)
    verdicts[at].kernels = runnel_kernels_first_sound (ladder, n,
        &verdicts[at].fault);
  sound = verdicts[at].kernels;
  *fault = verdicts[at].fault;
  pthread_mutex_unlock (&verdicts_mutex);
  return sound;
}
