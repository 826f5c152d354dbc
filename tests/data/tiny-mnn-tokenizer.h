/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "formats/gguf.h"

/* Writes the tokenizer of a tiny model as tokenizer.txt (@text) or
 * tokenizer.mtok. */
void tiny_mnn_write_tokenizer (const RunnelGguf *gguf, gboolean text,
                               const char *folder);
