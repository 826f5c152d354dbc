/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "question.h"

G_BEGIN_DECLS

/* The options by the bytes of label and description: the order in which they
 * are computed, whatever the order in which they were given. */
const guint *runnel_question_get_order (RunnelQuestion *self);
/* A text that is the same for equal questions, whatever the order of their
 * options and their ids. */
char *runnel_question_make_key (RunnelQuestion *self);

G_END_DECLS
