/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "enums.h"

GType
gst_lm_framing_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GST_LM_FRAMING_BUFFER, "One buffer is one request", "buffer" },
    { GST_LM_FRAMING_STREAM, "Everything up to EOS is one request", "stream" },
    { GST_LM_FRAMING_LINE, "Each line is one request", "line" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       g_enum_register_static ("GstLmFraming", values));
  return type;
}

GType
gst_lm_error_policy_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GST_LM_ERROR_POLICY_FAIL, "An error; the pipeline stops", "fail" },
    { GST_LM_ERROR_POLICY_REPORT,
      "A warning and an empty reply with finish reason error", "report" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       g_enum_register_static ("GstLmErrorPolicy", values));
  return type;
}

GType
gst_lm_backend_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GST_LM_BACKEND_AUTO, "The best that the neighbours accept", "auto" },
    { GST_LM_BACKEND_CPU, "The processor", "cpu" },
    { GST_LM_BACKEND_VULKAN, "A GPU through Vulkan", "vulkan" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       g_enum_register_static ("GstLmBackend", values));
  return type;
}

GType
gst_lm_kernels_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GST_LM_KERNELS_AUTO, "The best level of this machine", "auto" },
    { GST_LM_KERNELS_SCALAR, "Plain C", "scalar" },
    { GST_LM_KERNELS_AVX2, "AVX2, FMA and F16C", "avx2" },
    { GST_LM_KERNELS_NEON, "Baseline AArch64", "neon" },
    { GST_LM_KERNELS_DOTPROD, "AArch64 with dot products", "dotprod" },
    { GST_LM_KERNELS_I8MM, "AArch64 with 8-bit matrices", "i8mm" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       g_enum_register_static ("GstLmKernels", values));
  return type;
}

GType
gst_lm_model_parts_get_type (void)
{
  static gsize type = 0;
  static const GFlagsValue values[] = {
    { GST_LM_MODEL_PART_TOKENIZER, "The tokenizer's tables", "tokenizer" },
    { GST_LM_MODEL_PART_ENGINE, "Weights ready on a backend", "engine" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       g_flags_register_static ("GstLmModelParts", values));
  return type;
}
