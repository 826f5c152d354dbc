/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* What the pads of a GstLmFilter answer. Queries come from any thread. */
#include "filter-private.h"

#include "caps.h"
#include "events.h"

static gboolean
answer_model (GstLmFilter *self, GstQuery *query)
{
  GstLmModelHolder *holder = gst_lm_filter_get_model_holder (self);
  g_autoptr (RunnelModel) model = NULL;

  if (holder != NULL)
    model = gst_lm_model_holder_dup_own_model (holder);
  if (model != NULL)
    gst_lm_query_set_model (query, model);
  return model != NULL;
}

/* The template's caps; tokens only of the vocabulary that we know to be
 * ours, so that different ones do not link. */
static GstCaps *
get_pad_caps (GstLmFilter *self, GstPad *pad)
{
  GstLmModelHolder *holder = gst_lm_filter_get_model_holder (self);
  g_autoptr (RunnelTokenizer) tokenizer = NULL;
  GstCaps *caps = gst_pad_get_pad_template_caps (pad);

  if (holder == NULL ||
      !gst_structure_has_name (gst_caps_get_structure (caps, 0),
                               GST_LM_CAPS_TOKENS))
    return caps;
  tokenizer = gst_lm_model_holder_dup_own_tokenizer (holder);
  if (tokenizer == NULL)
    return caps;
  gst_caps_unref (caps);
  return gst_lm_caps_new_tokens (tokenizer);
}

static void
answer_caps (GstLmFilter *self, GstPad *pad, GstQuery *query)
{
  g_autoptr (GstCaps) caps = get_pad_caps (self, pad);
  g_autoptr (GstCaps) result = NULL;
  GstCaps *filter;

  gst_query_parse_caps (query, &filter);
  if (filter != NULL)
    result = gst_caps_intersect_full (filter, caps, GST_CAPS_INTERSECT_FIRST);
  else
    result = gst_caps_ref (caps);
  gst_query_set_caps_result (query, result);
}

/* By template alone: another vocabulary is refused with a message, when its
 * caps event arrives. */
static void
answer_accept_caps (GstPad *pad, GstQuery *query)
{
  g_autoptr (GstCaps) template_caps = gst_pad_get_pad_template_caps (pad);
  GstCaps *caps;

  gst_query_parse_accept_caps (query, &caps);
  gst_query_set_accept_caps_result (query,
                                    gst_caps_is_subset (caps, template_caps));
}

gboolean
gst_lm_filter_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstLmFilter *self = GST_LM_FILTER (parent);

  switch (GST_QUERY_TYPE (query))
    {
    case GST_QUERY_CAPS:
      answer_caps (self, pad, query);
      return TRUE;
    case GST_QUERY_ACCEPT_CAPS:
      answer_accept_caps (pad, query);
      return TRUE;
    case GST_QUERY_CUSTOM:
      if (GST_PAD_IS_SINK (pad) && gst_lm_query_is_model (query) &&
          answer_model (self, query))
        return TRUE;
      break;
    default:
      break;
    }
  return gst_pad_query_default (pad, parent, query);
}
