/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "caps.h"

/**
 * gst_lm_caps_new_text:
 *
 * Caps of plain text, %GST_LM_CAPS_TEXT.
 *
 * Returns: (transfer full): fixed caps
 *
 * Since: 0.1
 */
GstCaps *
gst_lm_caps_new_text (void)
{
  return gst_caps_new_simple ("text/x-raw", "format", G_TYPE_STRING, "utf8",
                              NULL);
}

/**
 * gst_lm_caps_new_tokens:
 * @tokenizer: whose ids they are
 *
 * Caps of token ids of a vocabulary.
 *
 * Returns: (transfer full): fixed caps
 *
 * Since: 0.1
 */
GstCaps *
gst_lm_caps_new_tokens (RunnelTokenizer *tokenizer)
{
  return gst_caps_new_simple (GST_LM_CAPS_TOKENS, GST_LM_CAPS_FIELD_VOCAB,
                              G_TYPE_STRING,
                              runnel_tokenizer_get_digest (tokenizer), NULL);
}

/**
 * gst_lm_caps_new_state:
 * @model: whose states they are
 *
 * Caps of states in host memory.
 *
 * Returns: (transfer full): fixed caps
 *
 * Since: 0.1
 */
GstCaps *
gst_lm_caps_new_state (RunnelModel *model)
{
  return gst_caps_new_simple (GST_LM_CAPS_STATE, GST_LM_CAPS_FIELD_MODEL,
                              G_TYPE_STRING,
                              runnel_model_get_content_id (model), NULL);
}

static const gchar *
get_field (const GstCaps *caps, const gchar *media_type, const gchar *field)
{
  GstStructure *structure;

  if (caps == NULL || gst_caps_is_any (caps) || gst_caps_is_empty (caps))
    return NULL;
  structure = gst_caps_get_structure (caps, 0);
  if (!gst_structure_has_name (structure, media_type))
    return NULL;
  return gst_structure_get_string (structure, field);
}

/**
 * gst_lm_caps_get_vocab:
 * @caps: (nullable): caps
 *
 * The vocabulary of tokens caps.
 *
 * Returns: (nullable): the tokenizer's digest, or %NULL when @caps are no
 *   tokens caps or do not say
 *
 * Since: 0.1
 */
const gchar *
gst_lm_caps_get_vocab (const GstCaps *caps)
{
  return get_field (caps, GST_LM_CAPS_TOKENS, GST_LM_CAPS_FIELD_VOCAB);
}

/**
 * gst_lm_caps_get_model:
 * @caps: (nullable): caps
 *
 * The model of state caps.
 *
 * Returns: (nullable): its content id, or %NULL when @caps are no state caps
 *   or do not say
 *
 * Since: 0.1
 */
const gchar *
gst_lm_caps_get_model (const GstCaps *caps)
{
  return get_field (caps, GST_LM_CAPS_STATE, GST_LM_CAPS_FIELD_MODEL);
}
