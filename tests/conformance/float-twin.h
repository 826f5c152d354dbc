/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The same model with float32 weights: what other engines call the
 * dequantised reference.
 */
#pragma once

#include <glib.h>

/* Writes a GGUF file with the matrices of @path widened to F32 into the
 * folder for temporary files; the caller removes it. */
char *float_twin_write (const char *path, GError **error);
