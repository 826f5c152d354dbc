/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What the kernel tests share. No GLib: they run for any target. Memory comes
 * from pages of its own that end at an inaccessible one, so that reading or
 * writing past the end is caught in every build.
 */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/half.h"
#include "backends/cpu/kernels.h"

extern int n_failed;           /* failed checks so far */
extern long n_checks;
extern int effort;             /* percent of the cases to try */

uint64_t random_bits (void);
uint32_t random_below (uint32_t n);
uint32_t random_between (uint32_t first, uint32_t last);
float random_float (void);     /* in [-1, 1) */
float random_normal (void);    /* roughly normal, sigma 1 */

/* Size bytes, filled with 0xa5, that end at a guard page (up to the
 * alignment); freed all at once by release_all (). */
void *guarded (size_t size, size_t alignment);
void release_all (void);

/* Counts a check; prints what failed. */
__attribute__((format (printf, 2, 3)))
void expect (bool ok, const char *format, ...);

/* Equal bits, or NaN both. */
bool same_floats (const float *a, const float *b, size_t n);
bool same_rows (const RunnelRows *a, const RunnelRows *b);

/* What a row of activations is made of. */
typedef enum {
  FILL_NORMAL,
  FILL_WIDE,                   /* magnitudes from 2^-140 to 2^60 */
  FILL_EQUAL,
  FILL_EXTREME,                /* every element plus or minus the largest */
  FILL_ZERO,
  FILL_NON_FINITE,             /* some NaN and infinities */
  N_FILLS
} Fill;

void fill_floats (float *x, size_t n, Fill fill);

RunnelRows *new_rows (uint32_t n, uint32_t columns, Fill fill);
RunnelRows *copy_rows (const RunnelRows *x);    /* same f, own codes */

/* The file formats, from their descriptions. */
typedef struct {
  uint32_t type;
  const char *name;
  uint32_t block_elements;
  uint32_t block_bytes;        /* 0 for tiled types */
  uint32_t half_bytes;         /* tiled: the codes of 32 columns of 8 rows */
  int origin;
  bool offset;
} TensorType;

extern const TensorType tensor_types[];
extern const size_t n_tensor_types;

/* How the codes and scales of a made-up tensor are chosen. */
typedef enum {
  CODES_RANDOM,
  CODES_LOW,                   /* all bits 0: the lowest code of signed ones */
  CODES_HIGH,                  /* all bits 1 */
  CODES_ZERO_SCALE,
  CODES_TINY_SCALE,            /* denormal halves */
  CODES_NON_FINITE_SCALE,
  N_CODES
} Codes;

/* Bytes that the matrix takes in a file. */
size_t tensor_bytes (const TensorType *type, uint32_t rows, uint32_t columns);
void fill_tensor (const TensorType *type, uint8_t *file, uint32_t rows,
    uint32_t columns, Codes codes);
void dequantise_row (const TensorType *type, const uint8_t *file,
    uint32_t row, uint32_t columns, double *y);

void test_products (const RunnelKernels *kernels);
void test_avx512_model (void);
void test_rows (const RunnelKernels *kernels);
void test_attention (const RunnelKernels *kernels);
