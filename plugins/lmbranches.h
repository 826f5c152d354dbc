/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* What the graph downstream does with the states of a pad. */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

/* Whether states pushed by @pad reach more than one consumer. */
gboolean gst_lm_pad_forks (GstPad *pad);
/* The first branch of a fork that reaches its consumer in the thread of the
 * fork, so that it holds up the other branches; or NULL. */
GstPad *gst_lm_pad_find_unqueued_branch (GstPad *pad);

G_END_DECLS
