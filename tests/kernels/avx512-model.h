/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The intrinsics of avx512/matmul-tiles.c in plain C, lane by lane, after the
 * pseudocode of Intel's Intrinsics Guide. The test machines need no AVX-512.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "backends/cpu/half.h"

typedef struct { uint8_t b[16]; } Model128;
typedef struct { uint8_t b[32]; } Model256;
typedef struct { int32_t l[16]; } Model512i;
typedef struct { float l[16]; } Model512;

#define __m128i Model128
#define __m256i Model256
#define __m512i Model512i
#define __m512 Model512
#define __mmask16 uint16_t
#define _MM_HINT_T0 3
#define _mm_prefetch(p, hint) __builtin_prefetch (p)

static inline Model128
_mm_loadu_si128 (const Model128 *p)
{
  return *p;
}

static inline Model256
_mm256_loadu_si256 (const Model256 *p)
{
  return *p;
}

static inline Model256
_mm256_castsi128_si256 (Model128 a)
{
  Model256 r = { { 0 } };

  memcpy (r.b, a.b, sizeof a.b);
  return r;
}

static inline Model256
_mm256_inserti128_si256 (Model256 a, Model128 b, int half)
{
  memcpy (a.b + 16 * half, b.b, sizeof b.b);
  return a;
}

static inline Model512i
_mm512_castsi256_si512 (Model256 a)
{
  Model512i r = { { 0 } };

  memcpy (r.l, a.b, sizeof a.b);
  return r;
}

static inline Model512i
_mm512_inserti64x4 (Model512i a, Model256 b, int half)
{
  memcpy (a.l + 8 * half, b.b, sizeof b.b);
  return a;
}

static inline Model512
_mm512_cvtph_ps (Model256 a)
{
  Model512 r;

  for (int i = 0; i < 16; i++)
    r.l[i] = runnel_load_half (a.b + 2 * i);
  return r;
}

static inline Model512i
_mm512_set1_epi32 (int value)
{
  Model512i r;

  for (int i = 0; i < 16; i++)
    r.l[i] = value;
  return r;
}

static inline Model512i
_mm512_setzero_si512 (void)
{
  return _mm512_set1_epi32 (0);
}

static inline Model512i
_mm512_and_si512 (Model512i a, Model512i b)
{
  for (int i = 0; i < 16; i++)
    a.l[i] &= b.l[i];
  return a;
}

static inline Model512i
_mm512_xor_si512 (Model512i a, Model512i b)
{
  for (int i = 0; i < 16; i++)
    a.l[i] ^= b.l[i];
  return a;
}

static inline Model512i
_mm512_srli_epi16 (Model512i a, unsigned int count)
{
  uint16_t lanes[32];

  memcpy (lanes, a.l, sizeof lanes);
  for (int i = 0; i < 32; i++)
    lanes[i] >>= count;
  memcpy (a.l, lanes, sizeof lanes);
  return a;
}

static inline Model512i
_mm512_sub_epi32 (Model512i a, Model512i b)
{
  for (int i = 0; i < 16; i++)
    a.l[i] = (int32_t) ((uint32_t) a.l[i] - (uint32_t) b.l[i]);
  return a;
}

/* Bytes of a are unsigned, those of b signed; no sum saturates. */
static inline Model512i
_mm512_dpbusd_epi32 (Model512i sum, Model512i a, Model512i b)
{
  const uint8_t *x = (const uint8_t *) a.l;
  const int8_t *y = (const int8_t *) b.l;

  for (int i = 0; i < 16; i++) {
    for (int k = 4 * i; k < 4 * i + 4; k++)
      sum.l[i] = (int32_t) ((uint32_t) sum.l[i] + (uint32_t) (x[k] * y[k]));
  }
  return sum;
}

static inline Model512
_mm512_cvtepi32_ps (Model512i a)
{
  Model512 r;

  for (int i = 0; i < 16; i++)
    r.l[i] = (float) a.l[i];
  return r;
}

static inline Model512
_mm512_set1_ps (float value)
{
  Model512 r;

  for (int i = 0; i < 16; i++)
    r.l[i] = value;
  return r;
}

static inline Model512
_mm512_setzero_ps (void)
{
  return _mm512_set1_ps (0.0f);
}

static inline Model512
_mm512_add_ps (Model512 a, Model512 b)
{
  for (int i = 0; i < 16; i++)
    a.l[i] = a.l[i] + b.l[i];
  return a;
}

static inline Model512
_mm512_mul_ps (Model512 a, Model512 b)
{
  for (int i = 0; i < 16; i++)
    a.l[i] = a.l[i] * b.l[i];
  return a;
}

static inline Model512
_mm512_maskz_mov_ps (uint16_t mask, Model512 a)
{
  for (int i = 0; i < 16; i++)
    a.l[i] = mask >> i & 1 ? a.l[i] : 0.0f;
  return a;
}

/* Lanes out of the mask are not touched in memory. */
static inline Model512
_mm512_maskz_loadu_ps (uint16_t mask, const float *p)
{
  Model512 r = { { 0.0f } };

  for (int i = 0; i < 16; i++) {
    if (mask >> i & 1)
      r.l[i] = p[i];
  }
  return r;
}

static inline void
_mm512_mask_storeu_ps (float *p, uint16_t mask, Model512 a)
{
  for (int i = 0; i < 16; i++) {
    if (mask >> i & 1)
      p[i] = a.l[i];
  }
}
