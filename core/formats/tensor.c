/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "tensor.h"

static const RunnelTensorTypeInfo infos[] = {
  [RUNNEL_TENSOR_F32] = { "F32", 1, 4 },
  [RUNNEL_TENSOR_F16] = { "F16", 1, 2 },
  [RUNNEL_TENSOR_Q4_0] = { "Q4_0", 32, 18 },
  [RUNNEL_TENSOR_Q4_1] = { "Q4_1", 32, 20 },
  [RUNNEL_TENSOR_Q5_0] = { "Q5_0", 32, 22 },
  [RUNNEL_TENSOR_Q5_1] = { "Q5_1", 32, 24 },
  [RUNNEL_TENSOR_Q8_0] = { "Q8_0", 32, 34 },
  [RUNNEL_TENSOR_Q2_K] = { "Q2_K", 256, 84 },
  [RUNNEL_TENSOR_Q3_K] = { "Q3_K", 256, 110 },
  [RUNNEL_TENSOR_Q4_K] = { "Q4_K", 256, 144 },
  [RUNNEL_TENSOR_Q5_K] = { "Q5_K", 256, 176 },
  [RUNNEL_TENSOR_Q6_K] = { "Q6_K", 256, 210 },
  [RUNNEL_TENSOR_BF16] = { "BF16", 1, 2 },
};

const RunnelTensorTypeInfo *
runnel_tensor_type_info (guint type)
{
  if (type >= G_N_ELEMENTS (infos) || infos[type].name == NULL)
    return NULL;
  return &infos[type];
}
