/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What a case does with the machine: the time of each op, and how near it
 * comes to what memory and processors could do.
 */
#pragma once

#include <runnel.h>

#include "bench-cases.h"

G_BEGIN_DECLS

#define BENCH_MAX_OPS 16

typedef struct {
  char name[16];
  guint64 calls;
  guint64 ns;
  guint64 bytes;
  guint64 integer_macs;
  guint64 float_macs;
} BenchOp;

/* Of all measured runs of a case. */
typedef struct {
  BenchOp ops[BENCH_MAX_OPS];
  guint n_ops;
  double seconds;
} BenchProfile;

/* The machine at its best, a second; measured between the runs. */
typedef struct {
  Samples bytes;
  Samples integer_macs;
  Samples float_macs;
} BenchLimits;

void bench_limits_init (BenchLimits *self);
void bench_limits_clear (BenchLimits *self);
void bench_limits_measure (BenchLimits *self, RunnelBackend *backend);
void bench_limits_add_json (const BenchLimits *self, JsonOutput *json);
void bench_limits_print (const BenchLimits *self);

/* Adds what the backend counted since it was asked last. */
void bench_profile_add (BenchProfile *self, RunnelBackend *backend,
                        double seconds);
/* Shares of the limits. */
void bench_profile_print_roofline (const BenchProfile *self,
                                   const BenchCase *bench_case,
                                   const BenchLimits *limits);
/* Shares of the time; the names of the ops stand over the first one. */
void bench_profile_print_ops (const BenchProfile *self,
                              const BenchCase *bench_case, gboolean first);
void bench_profile_add_json (const BenchProfile *self,
                             const BenchLimits *limits, gboolean with_ops,
                             JsonOutput *json);

G_END_DECLS
