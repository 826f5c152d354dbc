/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gst/gst.h>
#include <runnel.h>
#include "api.h"

G_BEGIN_DECLS

/**
 * GST_LM_ALLOCATOR_STATE:
 *
 * Name of the allocator of state memories.
 */
#define GST_LM_ALLOCATOR_STATE "RunnelState"

#define GST_TYPE_LM_STATE_ALLOCATOR (gst_lm_state_allocator_get_type ())
GST_LM_API
G_DECLARE_FINAL_TYPE (GstLmStateAllocator, gst_lm_state_allocator, GST,
                      LM_STATE_ALLOCATOR, GstAllocator)

/**
 * GstLmStateAllocator:
 *
 * Makes memories that hold a #RunnelSequence: not shareable, not mappable,
 * copied by runnel_sequence_fork(), their size the bytes of keys and values
 * (so that the limits of a queue mean something).
 *
 * Nobody changes the sequence inside a buffer; gst_lm_state_take() gives one
 * to change.
 *
 * Since: 0.1
 */

GST_LM_API GstMemory *gst_lm_state_memory_new (RunnelSequence *sequence);
GST_LM_API gboolean gst_lm_is_state_memory (GstMemory *memory);
GST_LM_API GstBuffer *gst_lm_buffer_new_state (RunnelSequence *sequence);
GST_LM_API RunnelSequence *gst_lm_buffer_peek_state (GstBuffer *buffer);
GST_LM_API RunnelSequence *gst_lm_state_take (GstBuffer *buffer)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
