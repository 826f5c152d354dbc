/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The floating-point control word: round to nearest even, denormals kept,
 * exceptions masked. A host application may have set flush-to-zero (audio
 * software does), which would change bits.
 */
#include "kernels.h"

#if defined(__x86_64__) || defined(__i386__)

#include <xmmintrin.h>

#define MXCSR_DEFAULT 0x1f80u

uint64_t
runnel_fp_enter (void)
{
  uint64_t saved = _mm_getcsr ();

  _mm_setcsr (MXCSR_DEFAULT);
  return saved;
}

void
runnel_fp_leave (uint64_t saved)
{
  _mm_setcsr ((unsigned int) saved);
}

#elif defined(__aarch64__)

uint64_t
runnel_fp_enter (void)
{
  uint64_t saved;

  __asm__ volatile ("mrs %0, fpcr":"=r" (saved));
  __asm__ volatile ("msr fpcr, %0"::"r" ((uint64_t) 0));
  return saved;
}

void
runnel_fp_leave (uint64_t saved)
{
  __asm__ volatile ("msr fpcr, %0"::"r" (saved));
}

#else

#include <fenv.h>

uint64_t
runnel_fp_enter (void)
{
  int saved = fegetround ();

  fesetround (FE_TONEAREST);
  return (uint64_t) saved;
}

void
runnel_fp_leave (uint64_t saved)
{
  fesetround ((int) saved);
}

#endif
