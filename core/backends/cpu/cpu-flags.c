/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What the processor and the operating system allow.
 */
#include "kernels.h"

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

#define LEAF1_ECX_FMA (1u << 12)
#define LEAF1_ECX_OSXSAVE (1u << 27)
#define LEAF1_ECX_AVX (1u << 28)
#define LEAF1_ECX_F16C (1u << 29)
#define LEAF7_EBX_AVX2 (1u << 5)
#define LEAF7_EBX_AVX512F (1u << 16)
#define LEAF7_EBX_AVX512BW (1u << 30)
#define LEAF7_ECX_AVX512_VNNI (1u << 11)
#define XCR0_SSE_AVX 6u         /* XMM and YMM state is saved */
#define XCR0_AVX512 0xe6u       /* and the mask registers and ZMM */

static uint32_t
read_xcr0 (void)
{
  uint32_t low, high;

  __asm__ volatile ("xgetbv":"=a" (low), "=d" (high):"c" (0));
  return low;
}

uint32_t
runnel_cpu_flags (void)
{
  const unsigned int needed = LEAF1_ECX_FMA | LEAF1_ECX_OSXSAVE
      | LEAF1_ECX_AVX | LEAF1_ECX_F16C;
  const unsigned int avx512 = LEAF7_EBX_AVX512F | LEAF7_EBX_AVX512BW;
  unsigned int a, b, c, d;
  uint32_t flags = RUNNEL_CPU_AVX2;

  if (!__get_cpuid (1, &a, &b, &c, &d) || (c & needed) != needed)
    return 0;
  if ((read_xcr0 () & XCR0_SSE_AVX) != XCR0_SSE_AVX)
    return 0;
  if (!__get_cpuid_count (7, 0, &a, &b, &c, &d) || !(b & LEAF7_EBX_AVX2))
    return 0;
  if ((b & avx512) == avx512 && (c & LEAF7_ECX_AVX512_VNNI)
      && (read_xcr0 () & XCR0_AVX512) == XCR0_AVX512)
    flags |= RUNNEL_CPU_AVX512VNNI;
  return flags;
}

#elif defined(__aarch64__) && defined(__linux__)

#include <sys/auxv.h>

/* From the Linux ABI (Documentation/arch/arm64/elf_hwcaps.rst); older libc
 * headers lack some of the names. */
#define HWCAP_BIT_ASIMD (1ul << 1)
#define HWCAP_BIT_ASIMDDP (1ul << 20)
#define HWCAP2_BIT_I8MM (1ul << 13)

uint32_t
runnel_cpu_flags (void)
{
  unsigned long hwcap = getauxval (AT_HWCAP);
  unsigned long hwcap2 = getauxval (AT_HWCAP2);
  uint32_t flags = 0;

  if (hwcap & HWCAP_BIT_ASIMD)
    flags |= RUNNEL_CPU_NEON;
  if (hwcap & HWCAP_BIT_ASIMDDP)
    flags |= RUNNEL_CPU_DOTPROD;
  if (hwcap2 & HWCAP2_BIT_I8MM)
    flags |= RUNNEL_CPU_I8MM;
  return flags;
}

#else

uint32_t
runnel_cpu_flags (void)
{
  return 0;
}

#endif
