/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gst/gst.h>
#include "api.h"

G_BEGIN_DECLS

/**
 * GstLmFraming:
 * @GST_LM_FRAMING_BUFFER: one buffer is one request; buffers that are parts
 *   of a reply are gathered up to their marker
 * @GST_LM_FRAMING_STREAM: everything up to EOS is one request
 * @GST_LM_FRAMING_LINE: each line is one request; empty lines are none
 *
 * Where a request begins and ends in a stream of text.
 *
 * Since: 0.1
 */
typedef enum {
  GST_LM_FRAMING_BUFFER,
  GST_LM_FRAMING_STREAM,
  GST_LM_FRAMING_LINE,
} GstLmFraming;

#define GST_TYPE_LM_FRAMING (gst_lm_framing_get_type ())
GST_LM_API GType gst_lm_framing_get_type (void);

/**
 * GstLmErrorPolicy:
 * @GST_LM_ERROR_POLICY_FAIL: an error message; the pipeline stops
 * @GST_LM_ERROR_POLICY_REPORT: a warning message, and an empty marked buffer
 *   with finish reason error takes the reply's place
 *
 * What becomes of a request that fails (not of an element that fails: that is
 * always an error).
 *
 * Since: 0.1
 */
typedef enum {
  GST_LM_ERROR_POLICY_FAIL,
  GST_LM_ERROR_POLICY_REPORT,
} GstLmErrorPolicy;

#define GST_TYPE_LM_ERROR_POLICY (gst_lm_error_policy_get_type ())
GST_LM_API GType gst_lm_error_policy_get_type (void);

/**
 * GstLmBackend:
 * @GST_LM_BACKEND_AUTO: the best of this machine that the neighbours accept
 * @GST_LM_BACKEND_CPU: the processor
 * @GST_LM_BACKEND_VULKAN: a GPU through Vulkan
 *
 * Who computes.
 *
 * Since: 0.1
 */
typedef enum {
  GST_LM_BACKEND_AUTO,
  GST_LM_BACKEND_CPU,
  GST_LM_BACKEND_VULKAN,
} GstLmBackend;

#define GST_TYPE_LM_BACKEND (gst_lm_backend_get_type ())
GST_LM_API GType gst_lm_backend_get_type (void);

/**
 * GstLmKernels:
 * @GST_LM_KERNELS_AUTO: the best level this machine can run
 * @GST_LM_KERNELS_SCALAR: plain C, which defines the bits
 * @GST_LM_KERNELS_AVX2: AVX2, FMA and F16C
 * @GST_LM_KERNELS_NEON: baseline AArch64
 * @GST_LM_KERNELS_DOTPROD: AArch64 with dot product instructions
 * @GST_LM_KERNELS_I8MM: AArch64 with 8-bit matrix instructions
 *
 * A level of the processor's kernels. All give the same bits.
 *
 * Since: 0.1
 */
typedef enum {
  GST_LM_KERNELS_AUTO,
  GST_LM_KERNELS_SCALAR,
  GST_LM_KERNELS_AVX2,
  GST_LM_KERNELS_NEON,
  GST_LM_KERNELS_DOTPROD,
  GST_LM_KERNELS_I8MM,
} GstLmKernels;

#define GST_TYPE_LM_KERNELS (gst_lm_kernels_get_type ())
GST_LM_API GType gst_lm_kernels_get_type (void);

/**
 * GstLmModelParts:
 * @GST_LM_MODEL_PART_TOKENIZER: the tokenizer's tables
 * @GST_LM_MODEL_PART_ENGINE: weights made ready on a backend
 *
 * What an element needs of a model, besides its header.
 *
 * Since: 0.1
 */
typedef enum {
  GST_LM_MODEL_PART_TOKENIZER = 1 << 0,
  GST_LM_MODEL_PART_ENGINE = 1 << 1,
} GstLmModelParts;

#define GST_TYPE_LM_MODEL_PARTS (gst_lm_model_parts_get_type ())
GST_LM_API GType gst_lm_model_parts_get_type (void);

G_END_DECLS
