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
 * GST_LM_REQUEST_META_API_TYPE: (skip)
 */
#define GST_LM_REQUEST_META_API_TYPE (gst_lm_request_meta_api_get_type ())
/**
 * GST_LM_REQUEST_META_INFO: (skip)
 */
#define GST_LM_REQUEST_META_INFO (gst_lm_request_meta_get_info ())

typedef struct _GstLmRequestMeta GstLmRequestMeta;

/**
 * GstLmRequestMeta:
 * @meta: parent
 * @id: the request; never 0
 * @overrides: (nullable): parameters of this request alone, typed fields
 *   named as the properties of the elements that read them
 * @deadline: when the reply is worth nothing any more, in the time of
 *   g_get_monotonic_time() × 1000; %GST_CLOCK_TIME_NONE: never
 * @drafters: (nullable) (element-type GObject): the #RunnelDrafter objects
 *   attached so far
 * @model: (nullable): on tokens and states: the model they belong to
 * @is_reply: whether the buffer is a reply or a part of one, and not a prompt
 * @finish_reason: on the last buffer: why the reply ended
 * @prompt_tokens: on the last buffer: tokens of the prompt
 * @completion_tokens: on the last buffer: tokens drawn
 * @cached_tokens: prompt tokens that the prefix cache saved
 * @draft_blocks: on the last buffer: passes that verified guesses of drafters
 * @proposed_tokens: on the last buffer: guesses verified
 * @accepted_tokens: on the last buffer: guesses kept; by @draft_blocks: the
 *   mean accepted length
 * @draft_time: on the last buffer: time spent in drafters
 * @verify_time: on the last buffer: time spent in passes that verified guesses
 * @generation_prompt: on a prompt, where the beginning of the reply stands that
 *   a chat template wrote behind the messages: in bytes of text, in tokens of
 *   tokens and states; −1: there is none, or nobody knows
 * @error: (nullable): of a failed request: what went wrong, for people
 *
 * What belongs to a request, on every buffer of it. It may be changed until
 * its buffer is pushed, and never afterwards; a copy owns its own lists.
 *
 * A buffer whose finish reason is set before it reaches generation has ended
 * early (it failed, or its prompt is empty): the elements on the way pass it
 * on without work, and it becomes the empty, marked reply. See
 * gst_lm_buffer_has_ended().
 *
 * Since: 0.1
 */
struct _GstLmRequestMeta {
  GstMeta meta;

  guint64 id;
  GstStructure *overrides;
  GstClockTime deadline;
  GPtrArray *drafters;
  RunnelModel *model;
  gboolean is_reply;
  RunnelFinishReason finish_reason;
  guint prompt_tokens;
  guint completion_tokens;
  guint cached_tokens;
  guint draft_blocks;
  guint proposed_tokens;
  guint accepted_tokens;
  GstClockTime draft_time;
  GstClockTime verify_time;
  gint generation_prompt;
  gchar *error;
};

#define GST_TYPE_LM_REQUEST_META (gst_lm_request_meta_get_type ())
GST_LM_API GType gst_lm_request_meta_get_type (void);
GST_LM_API GstLmRequestMeta *
gst_lm_request_meta_copy (const GstLmRequestMeta *self);
GST_LM_API void gst_lm_request_meta_free (GstLmRequestMeta *self);

GST_LM_API GType gst_lm_request_meta_api_get_type (void);
GST_LM_API const GstMetaInfo *gst_lm_request_meta_get_info (void);

GST_LM_API guint64 gst_lm_request_id_new (void);
GST_LM_API GstLmRequestMeta *gst_lm_buffer_add_request_meta (GstBuffer *buffer,
                                                             guint64 id);
GST_LM_API GstLmRequestMeta *gst_lm_buffer_get_request_meta (GstBuffer *buffer);
GST_LM_API GstLmRequestMeta *gst_lm_buffer_ensure_request_meta (GstBuffer **buffer);
GST_LM_API GstLmRequestMeta *gst_lm_buffer_copy_request_meta (GstBuffer *buffer,
                                                              GstBuffer *from);
GST_LM_API void gst_lm_buffer_set_overrides (GstBuffer *buffer,
                                             const GstStructure *overrides);
GST_LM_API gboolean gst_lm_buffer_has_ended (GstBuffer *buffer);

GST_LM_API void gst_lm_request_meta_set_overrides (GstLmRequestMeta *self,
                                                   const GstStructure *overrides);
GST_LM_API void gst_lm_request_meta_set_model (GstLmRequestMeta *self,
                                               RunnelModel *model);
GST_LM_API void gst_lm_request_meta_add_drafter (GstLmRequestMeta *self,
                                                 RunnelDrafter *drafter);
GST_LM_API void gst_lm_request_meta_set_error (GstLmRequestMeta *self,
                                               const gchar *message);
GST_LM_API gboolean gst_lm_request_meta_has_override (const GstLmRequestMeta *self,
                                                      const gchar *name);
GST_LM_API gboolean gst_lm_request_meta_get_parameter (const GstLmRequestMeta *self,
                                                       GObject *element,
                                                       const gchar *name,
                                                       GValue *ret_value,
                                                       GError **error);

G_END_DECLS
