/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "tokenizer.h"
#include "../formats/checkpoint.h"

G_BEGIN_DECLS

/* From an opened model: GGUF metadata, or tokenizer.json, tokenizer_config.json
 * and generation_config.json of a Hugging Face folder. */
RunnelTokenizer *runnel_tokenizer_new_from_checkpoint (RunnelCheckpoint *from,
                                                       GError **error);

G_END_DECLS
