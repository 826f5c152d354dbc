/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "../formats/moments.h"
#include "calibration.h"

G_BEGIN_DECLS

/* What a tensor (by its GGUF name) reads, as the quantiser wants it. NULL when
 * nothing is known of it. The same inputs are worked out once as long as they
 * are asked for one after the other; the result is valid until the next call.
 * Not to be called from two threads at once. */
const RunnelFeedback *runnel_calibration_get_feedback (RunnelCalibration *self,
                                                       const char *tensor,
                                                       guint64 n_columns);

G_END_DECLS
