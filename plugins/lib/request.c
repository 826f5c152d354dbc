/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "request.h"

#include "events.h"
#include "request-meta.h"

static void
map_error (const GError *error, GQuark *domain, gint *code)
{
  *domain = GST_STREAM_ERROR;
  *code = GST_STREAM_ERROR_FAILED;
  if (error->domain != RUNNEL_ERROR)
    return;
  switch ((RunnelError) error->code)
    {
    case RUNNEL_ERROR_IO:
    case RUNNEL_ERROR_TRUNCATED:
      *domain = GST_RESOURCE_ERROR;
      *code = GST_RESOURCE_ERROR_OPEN_READ;
      break;
    case RUNNEL_ERROR_NOT_ENOUGH_MEMORY:
      *domain = GST_RESOURCE_ERROR;
      *code = GST_RESOURCE_ERROR_NO_SPACE_LEFT;
      break;
    case RUNNEL_ERROR_INVALID_ARGUMENT:
      *domain = GST_LIBRARY_ERROR;
      *code = GST_LIBRARY_ERROR_SETTINGS;
      break;
    case RUNNEL_ERROR_MALFORMED:
    case RUNNEL_ERROR_CORRUPT:
    case RUNNEL_ERROR_TEMPLATE:
      *code = GST_STREAM_ERROR_DECODE;
      break;
    case RUNNEL_ERROR_UNSUPPORTED:
      *code = GST_STREAM_ERROR_NOT_IMPLEMENTED;
      break;
    case RUNNEL_ERROR_MISMATCH:
      *code = GST_STREAM_ERROR_FORMAT;
      break;
    default:
      break;
    }
}

static void
post (GstElement *element, GstMessageType type, const GError *error)
{
  GQuark domain;
  gint code;

  map_error (error, &domain, &code);
  gst_element_message_full (element, type, domain, code,
                            g_strdup (error->message),
                            g_strdup_printf ("%s %d",
                                             g_quark_to_string (error->domain),
                                             error->code),
                            __FILE__, G_STRFUNC, __LINE__);
}

/**
 * gst_lm_element_post_error:
 * @element: the element that failed
 * @error: why
 *
 * Posts an error message with the error's own sentence.
 *
 * Since: 0.1
 */
void
gst_lm_element_post_error (GstElement *element, const GError *error)
{
  post (element, GST_MESSAGE_ERROR, error);
}

/**
 * gst_lm_element_post_warning:
 * @element: the element that has something to say
 * @error: what
 *
 * Posts a warning message with the error's own sentence.
 *
 * Since: 0.1
 */
void
gst_lm_element_post_warning (GstElement *element, const GError *error)
{
  post (element, GST_MESSAGE_WARNING, error);
}

/**
 * gst_lm_buffer_new_ended:
 * @request: a buffer of a request
 *
 * An empty, marked buffer of the same request, time and finish reason: the
 * reply of a request that ended before generation.
 *
 * Returns: (transfer full): the buffer
 *
 * Since: 0.1
 */
GstBuffer *
gst_lm_buffer_new_ended (GstBuffer *request)
{
  GstBuffer *buffer = gst_buffer_new ();

  GST_BUFFER_PTS (buffer) = GST_BUFFER_PTS (request);
  GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_MARKER);
  gst_lm_buffer_copy_request_meta (buffer, request);
  return buffer;
}

static gboolean
carries_text (GstPad *pad)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (pad);

  return caps != NULL &&
         (gst_structure_has_name (gst_caps_get_structure (caps, 0),
                                  "text/x-raw") ||
          gst_structure_has_name (gst_caps_get_structure (caps, 0),
                                  "application/json"));
}

/**
 * gst_lm_pad_push_ended:
 * @srcpad: a source pad; caps and segment are sent
 * @request: a buffer of a request that ends here
 * @model: (nullable): the model of what the pad carries
 * @message: (nullable): why the request failed
 *
 * Pushes the empty, marked buffer of gst_lm_buffer_new_ended(), with @model,
 * unless the pad carries text or JSON.
 *
 * Returns: what the push gave
 *
 * Since: 0.1
 */
GstFlowReturn
gst_lm_pad_push_ended (GstPad *srcpad, GstBuffer *request, RunnelModel *model,
                       const gchar *message)
{
  GstBuffer *ended = gst_lm_buffer_new_ended (request);
  GstLmRequestMeta *meta = gst_lm_buffer_ensure_request_meta (&ended);

  if (carries_text (srcpad))
    gst_lm_request_meta_set_model (meta, NULL);
  else if (model != NULL)
    gst_lm_request_meta_set_model (meta, model);
  if (message != NULL)
    gst_lm_request_meta_set_error (meta, message);
  return gst_pad_push (srcpad, ended);
}

/**
 * gst_lm_request_fail:
 * @element: the element in which the request fails
 * @sinkpad: (nullable): where the request came from
 * @srcpad: where its reply would have gone; caps and segment are sent
 * @request: (transfer full): a buffer of the request
 * @policy: what becomes of it
 * @error: why
 *
 * Ends a request that fails: tells upstream (%GST_LM_EVENT_REPLY), and either
 * posts an error, or posts a warning and pushes an empty, marked buffer with
 * finish reason error.
 *
 * Returns: what the chain function returns: %GST_FLOW_ERROR, or what the push
 *   gave
 *
 * Since: 0.1
 */
GstFlowReturn
gst_lm_request_fail (GstElement *element, GstPad *sinkpad, GstPad *srcpad,
                     GstBuffer *request, GstLmErrorPolicy policy,
                     const GError *error)
{
  g_autoptr (GstBuffer) owned = request;
  GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (request);

  if (sinkpad != NULL && meta != NULL)
    gst_pad_push_event (sinkpad,
                        gst_lm_event_new_reply (meta->id, "",
                                                RUNNEL_FINISH_REASON_ERROR));
  if (policy == GST_LM_ERROR_POLICY_FAIL)
    {
      gst_lm_element_post_error (element, error);
      return GST_FLOW_ERROR;
    }

  gst_lm_element_post_warning (element, error);
  return gst_lm_pad_push_ended (srcpad, request, NULL, error->message);
}
