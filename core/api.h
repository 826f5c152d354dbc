/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

/**
 * RUNNEL_API: (skip)
 *
 * Marks a symbol that librunnel exports; everything else is hidden.
 */
#define RUNNEL_API __attribute__ ((visibility ("default"))) extern
