/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

/**
 * GST_LM_API: (skip)
 *
 * Marks a symbol that libgstrunnel exports; everything else is hidden.
 */
#define GST_LM_API __attribute__ ((visibility ("default"))) extern
