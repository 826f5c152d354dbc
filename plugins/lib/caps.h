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
 * GST_LM_CAPS_TEXT:
 *
 * Caps of plain text: UTF-8, no markup.
 */
#define GST_LM_CAPS_TEXT "text/x-raw, format=(string)utf8"

/**
 * GST_LM_CAPS_JSON:
 *
 * Caps of chat messages and of decisions.
 */
#define GST_LM_CAPS_JSON "application/json"

/**
 * GST_LM_CAPS_TOKENS:
 *
 * Media type of token ids: int32 in the machine's byte order, in plain
 * memory. Fixed caps carry %GST_LM_CAPS_FIELD_VOCAB.
 */
#define GST_LM_CAPS_TOKENS "application/x-lm-tokens"

/**
 * GST_LM_CAPS_STATE:
 *
 * Media type of states: a #RunnelSequence as a memory. Fixed caps carry
 * %GST_LM_CAPS_FIELD_MODEL.
 */
#define GST_LM_CAPS_STATE "application/x-lm-state"

/**
 * GST_LM_CAPS_FIELD_VOCAB:
 *
 * Field of tokens caps: the tokenizer's digest. Different ones do not link.
 */
#define GST_LM_CAPS_FIELD_VOCAB "vocab"

/**
 * GST_LM_CAPS_FIELD_MODEL:
 *
 * Field of state caps: the content id of the state's model.
 */
#define GST_LM_CAPS_FIELD_MODEL "model"

/**
 * GST_LM_CAPS_FEATURE_MEMORY_VULKAN:
 *
 * Caps feature of states that live on a GPU. None is host memory.
 */
#define GST_LM_CAPS_FEATURE_MEMORY_VULKAN "memory:RunnelVulkan"

/**
 * GST_LM_CAPS_STATE_ANYWHERE:
 *
 * States in host memory or on a GPU: for the templates of computing elements.
 */
#define GST_LM_CAPS_STATE_ANYWHERE \
  GST_LM_CAPS_STATE "; " \
  GST_LM_CAPS_STATE "(" GST_LM_CAPS_FEATURE_MEMORY_VULKAN ")"

GST_LM_API GstCaps *gst_lm_caps_new_text (void);
GST_LM_API GstCaps *gst_lm_caps_new_tokens (RunnelTokenizer *tokenizer);
GST_LM_API GstCaps *gst_lm_caps_new_state (RunnelModel *model);
GST_LM_API const gchar *gst_lm_caps_get_vocab (const GstCaps *caps);
GST_LM_API const gchar *gst_lm_caps_get_model (const GstCaps *caps);

G_END_DECLS
