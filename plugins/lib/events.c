/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "events.h"

/**
 * gst_lm_event_new_cancel:
 * @id: a request
 *
 * An event that ends the reply to a request and keeps what came. Send it
 * upstream from where the reply arrives; behind a tee it cancels that branch.
 *
 * Returns: (transfer full): the event
 *
 * Since: 0.1
 */
GstEvent *
gst_lm_event_new_cancel (guint64 id)
{
  return gst_event_new_custom (
      GST_EVENT_CUSTOM_UPSTREAM,
      gst_structure_new (GST_LM_EVENT_CANCEL, "id", G_TYPE_UINT64, id, NULL));
}

/**
 * gst_lm_event_parse_cancel:
 * @event: an event
 * @ret_id: (out) (optional): the request
 *
 * Reads a cancel event.
 *
 * Returns: %FALSE when @event is none
 *
 * Since: 0.1
 */
gboolean
gst_lm_event_parse_cancel (GstEvent *event, guint64 *ret_id)
{
  const GstStructure *structure;
  guint64 id;

  if (!gst_event_has_name (event, GST_LM_EVENT_CANCEL))
    return FALSE;
  structure = gst_event_get_structure (event);
  if (!gst_structure_get_uint64 (structure, "id", &id))
    return FALSE;
  if (ret_id != NULL)
    *ret_id = id;
  return TRUE;
}

/**
 * gst_lm_event_new_reply:
 * @id: a request
 * @text: the whole text of the reply
 * @finish_reason: why it ended
 *
 * An event that tells the elements upstream how a request ended.
 *
 * Returns: (transfer full): the event
 *
 * Since: 0.1
 */
GstEvent *
gst_lm_event_new_reply (guint64 id, const gchar *text,
                        RunnelFinishReason finish_reason)
{
  return gst_event_new_custom (
      GST_EVENT_CUSTOM_UPSTREAM,
      gst_structure_new (GST_LM_EVENT_REPLY, "id", G_TYPE_UINT64, id, "text",
                         G_TYPE_STRING, text, "finish-reason",
                         RUNNEL_TYPE_FINISH_REASON, finish_reason, NULL));
}

/**
 * gst_lm_event_parse_reply:
 * @event: an event
 * @ret_id: (out) (optional): the request
 * @ret_text: (out) (optional) (transfer none): the reply's text
 * @ret_finish_reason: (out) (optional): why it ended
 *
 * Reads a reply event.
 *
 * Returns: %FALSE when @event is none
 *
 * Since: 0.1
 */
gboolean
gst_lm_event_parse_reply (GstEvent *event, guint64 *ret_id,
                          const gchar **ret_text,
                          RunnelFinishReason *ret_finish_reason)
{
  const GstStructure *structure;
  const gchar *text;
  guint64 id;
  gint reason;

  if (!gst_event_has_name (event, GST_LM_EVENT_REPLY))
    return FALSE;
  structure = gst_event_get_structure (event);
  text = gst_structure_get_string (structure, "text");
  if (text == NULL || !gst_structure_get_uint64 (structure, "id", &id) ||
      !gst_structure_get_enum (structure, "finish-reason",
                               RUNNEL_TYPE_FINISH_REASON, &reason))
    return FALSE;
  if (ret_id != NULL)
    *ret_id = id;
  if (ret_text != NULL)
    *ret_text = text;
  if (ret_finish_reason != NULL)
    *ret_finish_reason = reason;
  return TRUE;
}

/**
 * gst_lm_query_new_model:
 *
 * A query for the model that text is going to.
 *
 * Returns: (transfer full): the query
 *
 * Since: 0.1
 */
GstQuery *
gst_lm_query_new_model (void)
{
  return gst_query_new_custom (GST_QUERY_CUSTOM,
                               gst_structure_new_empty (GST_LM_QUERY_MODEL));
}

/**
 * gst_lm_query_is_model:
 * @query: a query
 *
 * Whether a query asks for the model.
 *
 * Returns: %TRUE if it does
 *
 * Since: 0.1
 */
gboolean
gst_lm_query_is_model (GstQuery *query)
{
  return GST_QUERY_TYPE (query) == GST_QUERY_CUSTOM &&
         gst_structure_has_name (gst_query_get_structure (query),
                                 GST_LM_QUERY_MODEL);
}

/**
 * gst_lm_query_set_model:
 * @query: a writable model query
 * @model: the answer
 *
 * Answers a model query.
 *
 * Since: 0.1
 */
void
gst_lm_query_set_model (GstQuery *query, RunnelModel *model)
{
  g_return_if_fail (gst_lm_query_is_model (query));

  gst_structure_set (gst_query_writable_structure (query), "model",
                     RUNNEL_TYPE_MODEL, model, NULL);
}

/**
 * gst_lm_query_get_model:
 * @query: a model query
 *
 * The answer to a model query.
 *
 * Returns: (transfer none) (nullable): the model
 *
 * Since: 0.1
 */
RunnelModel *
gst_lm_query_get_model (GstQuery *query)
{
  const GValue *value;

  g_return_val_if_fail (gst_lm_query_is_model (query), NULL);

  value = gst_structure_get_value (gst_query_get_structure (query), "model");
  return value != NULL ? g_value_get_object (value) : NULL;
}

/**
 * gst_lm_pad_query_model:
 * @pad: a source pad of text
 *
 * Asks downstream of a pad for the model that its text is going to.
 *
 * Returns: (transfer full) (nullable): the model, or %NULL when nobody has
 *   one
 *
 * Since: 0.1
 */
RunnelModel *
gst_lm_pad_query_model (GstPad *pad)
{
  g_autoptr (GstQuery) query = gst_lm_query_new_model ();
  RunnelModel *model;

  if (!gst_pad_peer_query (pad, query))
    return NULL;
  model = gst_lm_query_get_model (query);
  return model != NULL ? g_object_ref (model) : NULL;
}
