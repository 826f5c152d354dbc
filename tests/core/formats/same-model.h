/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Whether two files hold the same model, bit for bit.
 */
#pragma once

#include "text/tokenizer.h"

RunnelTokenizer *load_tokenizer (const char *path);

/* Logits after each of some tokens; @ret_n of them in all. */
float *compute_logits (const char *path, gsize *ret_n);

void assert_same_logits (const char *path, const char *expected);

/* Logits, tokens and what the tokenizer says of itself. */
void assert_same_model (const char *path, const char *expected);
