/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* The public face of libgstrunnel: what elements, scripts and applications
 * share about text, tokens, states and requests in a pipeline. */
#pragma once

#include "api.h"
#include "caps.h"
#include "enums.h"
#include "events.h"
#include "filter.h"
#include "model-holder.h"
#include "reply.h"
#include "request.h"
#include "request-meta.h"
#include "session.h"
#include "state-memory.h"
#include "text-framer.h"
#include "text-meta.h"
#include "text-sink.h"
#include "tokens-meta.h"
