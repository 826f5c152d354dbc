/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The CPU backend: the op table over the kernels and a thread team.
 */
#pragma once

#include "../ops.h"
#include "kernels.h"
#include "thread-team.h"

G_BEGIN_DECLS

#define RUNNEL_TYPE_CPU_BACKEND (runnel_cpu_backend_get_type ())
G_DECLARE_FINAL_TYPE (RunnelCpuBackend, runnel_cpu_backend, RUNNEL, CPU_BACKEND, RunnelBackend)

RunnelBackend *runnel_cpu_backend_get (guint n_threads,
                                       guint n_prefill_threads,
                                       const char *kernels, GError **error);

const RunnelKernels *runnel_cpu_backend_table (RunnelBackend *self);
RunnelTeam *runnel_cpu_backend_team (RunnelBackend *self);

/* Weights: cpu-operands.c. */
struct _RunnelOperand {
  RunnelMatrix matrix;         /* of a vector: one row of floats */
  RunnelMapping *mapping;      /* keeps data that is used in place, or NULL */
};

gboolean runnel_cpu_operand_bytes (RunnelBackend *backend,
                                   const RunnelTensor *tensor, gboolean copy,
                                   gsize *ret_bytes, GError **error);
RunnelStore *runnel_cpu_store_new (RunnelBackend *backend, gsize bytes,
                                   GError **error);
void runnel_cpu_store_free (RunnelStore *store);
RunnelOperand *runnel_cpu_operand_new (RunnelBackend *backend,
                                       RunnelStore *store,
                                       const RunnelTensor *tensor,
                                       gboolean copy);
void runnel_cpu_operand_free (RunnelOperand *operand);
void runnel_cpu_operand_size (const RunnelOperand *operand,
                              guint64 *ret_elements, guint64 *ret_bytes,
                              gboolean *ret_quantised);

/* cpu-limits.c */
void runnel_cpu_measure_limits (RunnelBackend *backend, double *bytes,
                                double *integer_macs, double *float_macs);

/* The op table: cpu-pass.c, cpu-attend.c and cpu-kv.c. */
extern const RunnelOps runnel_cpu_ops;

/* Page geometry of a shape. */
#define RUNNEL_CPU_PAGE_ROWS 32
RunnelKvLayout runnel_cpu_kv_layout (const RunnelShape *shape);

/* Ops on pages: cpu-kv.c. */
guint runnel_cpu_page_rows (RunnelBackend *backend);
gsize runnel_cpu_page_bytes (RunnelBackend *backend, const RunnelShape *shape);
void runnel_cpu_kv_read (RunnelBackend *backend, const RunnelShape *shape,
                         const guint8 *page, guint row, float *k, float *v);
void runnel_cpu_kv_write (RunnelBackend *backend, const RunnelShape *shape,
                          guint8 *page, guint row, const float *k,
                          const float *v);
void runnel_cpu_kv_export (RunnelBackend *backend, const RunnelShape *shape,
                           const guint8 *page, guint row, guint8 *bits);
void runnel_cpu_kv_import (RunnelBackend *backend, const RunnelShape *shape,
                           guint8 *page, guint row, const guint8 *bits);

G_END_DECLS
