/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The public face of librunnel. Internal headers end in -private.h or belong
 * to rooms that this file does not name.
 */
#pragma once

#include "api.h"
#include "error.h"
#include "progress.h"
#include "backends/backend.h"
#include "backends/energy-meter.h"
#include "formats/converter.h"
#include "formats/decision-head.h"
#include "formats/load-mode.h"
#include "formats/verify.h"
#include "generate/decider.h"
#include "generate/decision.h"
#include "generate/dflash-drafter.h"
#include "generate/generation.h"
#include "generate/lookup-drafter.h"
#include "generate/question.h"
#include "generate/sampler.h"
#include "model/calibration.h"
#include "model/drafter.h"
#include "model/engine.h"
#include "model/model.h"
#include "model/random-model.h"
#include "model/sequence.h"
#include "text/chat-template.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
