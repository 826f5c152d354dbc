/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "session.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <glib-unix.h>
#include <gstrunnel.h>

#include "pipeline-file.h"
#include "property-values.h"
#include "report.h"

#define REPLIES_ENDED "runnel-replies-ended"

struct _Session {
  GstElement *pipeline;
  GstElement *source;     /* borrowed: lmprompt or appsrc; or NULL */
  GMainLoop *loop;
  GError *error;          /* what ended the loop */
  gboolean interrupted;
  gboolean until_replies; /* the loop ends with the replies, not the stream */
  gboolean print;
  gint64 started;
  int null_fd;            /* for the sinks whose data is taken */

  GMutex lock;
  /* Under lock, with the replies' own fields. */
  GPtrArray *replies;
  guint current;          /* the one that is printed as it comes */
};

double
reply_get_speed (const Reply *reply)
{
  gint64 elapsed = reply->last - reply->first;

  return reply->completion_tokens > 1 && elapsed > 0
      ? (reply->completion_tokens - 1) * 1e6 / elapsed : 0;
}

static Reply *
reply_new (const char *name, GstPad *pad)
{
  Reply *reply = g_new0 (Reply, 1);

  reply->name = g_strdup (name);
  reply->text = g_string_new (NULL);
  reply->pad = gst_object_ref (pad);
  return reply;
}

static void
reply_free (gpointer data)
{
  Reply *reply = data;

  g_free (reply->name);
  gst_object_unref (reply->pad);
  g_string_free (reply->text, TRUE);
  g_free (reply);
}

static void
reply_reset (Reply *reply)
{
  g_string_truncate (reply->text, 0);
  reply->n_printed = 0;
  reply->ended = FALSE;
  reply->request = 0;
  reply->finish_reason = RUNNEL_FINISH_REASON_NONE;
  reply->prompt_tokens = reply->cached_tokens = reply->completion_tokens = 0;
  reply->drafts = (RunnelDraftStats) { 0 };
  reply->first = reply->last = 0;
}

/* Between the replies of one sink, a line end; between sinks, an empty line. */
static void
print_separator (const Reply *reply, const Reply *next)
{
  if (!g_str_has_suffix (reply->text->str, "\n"))
    putchar ('\n');
  if (next->pad != reply->pad)
    putchar ('\n');
}

/* Nobody reads what is generated from here on. */
static void
fail_to_print_unlocked (Session *self)
{
  g_autoptr (GError) error = g_error_new (RUNNEL_ERROR, RUNNEL_ERROR_IO,
      "the output cannot be written: %s",
      g_strerror (report_flush_output ()));

  self->print = FALSE;
  gst_element_post_message (self->pipeline, gst_message_new_error (
          GST_OBJECT (self->pipeline), error, NULL));
}

/* The current reply as it comes; one that ended before its turn, at once. */
static void
print_unlocked (Session *self)
{
  while (self->print && self->current < self->replies->len) {
    Reply *reply = self->replies->pdata[self->current];

    if (reply->text->len > reply->n_printed) {
      report_progress_end ();
      fwrite (reply->text->str + reply->n_printed, 1,
          reply->text->len - reply->n_printed, stdout);
      reply->n_printed = reply->text->len;
      if (report_flush_output () != 0)
        fail_to_print_unlocked (self);
    }
    if (!reply->ended)
      return;
    if (++self->current < self->replies->len)
      print_separator (reply, self->replies->pdata[self->current]);
  }
}

static gboolean
have_all_ended_unlocked (Session *self)
{
  for (guint i = 0; i < self->replies->len; i++)
    if (!((Reply *) self->replies->pdata[i])->ended)
      return FALSE;
  return TRUE;
}

static void
take_end_unlocked (Reply *reply, const GstLmRequestMeta *meta)
{
  reply->ended = TRUE;
  if (meta == NULL)
    return;
  reply->finish_reason = meta->finish_reason;
  reply->prompt_tokens = meta->prompt_tokens;
  reply->cached_tokens = meta->cached_tokens;
  reply->completion_tokens = meta->completion_tokens;
  reply->drafts = (RunnelDraftStats) {
    .blocks = meta->draft_blocks,
    .proposed = meta->proposed_tokens,
    .accepted = meta->accepted_tokens,
    .draft_time = meta->draft_time,
    .verify_time = meta->verify_time,
  };
}

static void
take_buffer_unlocked (Reply *reply, GstBuffer *buffer)
{
  const GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (buffer);
  GstMapInfo map;

  if (meta != NULL)
    reply->request = meta->id;
  reply->last = g_get_monotonic_time ();
  if (reply->first == 0)
    reply->first = reply->last;
  if (gst_buffer_map (buffer, &map, GST_MAP_READ)) {
    g_string_append_len (reply->text, (const char *) map.data, map.size);
    gst_buffer_unmap (buffer, &map);
  }
  if (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER))
    take_end_unlocked (reply, meta);
}

/* What is coming to @pad: a buffer after the end of a reply begins another,
 * which stands behind the first where that one has been printed. */
static Reply *
find_reply_unlocked (Session *self, GstPad *pad, gboolean has_buffer)
{
  Reply *reply = NULL, *next;

  for (guint i = 0; i < self->replies->len; i++)
    if (((Reply *) self->replies->pdata[i])->pad == pad)
      reply = self->replies->pdata[i];
  if (!reply->ended || !has_buffer)
    return reply;
  next = reply_new (reply->name, pad);
  if (self->print && self->current == self->replies->len)
    print_separator (reply, next);
  g_ptr_array_add (self->replies, next);
  return next;
}

static GstPadProbeReturn
on_reply_data (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Session *self = user_data;
  const gboolean has_buffer = (info->type & GST_PAD_PROBE_TYPE_BUFFER) != 0;
  gboolean all_ended;
  Reply *reply;

  if (!has_buffer
      && GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) != GST_EVENT_EOS)
    return GST_PAD_PROBE_OK;
  g_mutex_lock (&self->lock);
  reply = find_reply_unlocked (self, pad, has_buffer);
  if (has_buffer)
    take_buffer_unlocked (reply, GST_PAD_PROBE_INFO_BUFFER (info));
  else
    reply->ended = TRUE;
  print_unlocked (self);
  all_ended = have_all_ended_unlocked (self);
  g_mutex_unlock (&self->lock);
  if (all_ended)
    gst_element_post_message (self->pipeline, gst_message_new_application (
            GST_OBJECT (self->pipeline),
            gst_structure_new_empty (REPLIES_ENDED)));
  return has_buffer ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

/* The prompt's id, so that its replies can be cancelled. */
static GstPadProbeReturn
on_prompt (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Session *self = user_data;
  const GstLmRequestMeta *meta
      = gst_lm_buffer_get_request_meta (GST_PAD_PROBE_INFO_BUFFER (info));

  g_mutex_lock (&self->lock);
  for (guint i = 0; meta != NULL && i < self->replies->len; i++)
    ((Reply *) self->replies->pdata[i])->request = meta->id;
  g_mutex_unlock (&self->lock);
  return GST_PAD_PROBE_OK;
}

static gboolean
prints (GstElement *element)
{
  int fd = -1;

  if (!element_is (element, "fdsink"))
    return FALSE;
  g_object_get (element, "fd", &fd, NULL);
  return fd == 1;
}

/* What the command takes is not the sink's any more: it need not wait for a
 * first buffer, and shall not wind standard output back, which an fdsink does
 * to a file when it starts. */
static void
add_reply (Session *self, GstElement *sink)
{
  g_autoptr (GstPad) pad = gst_element_get_static_pad (sink, "sink");

  g_object_set (sink, "async", FALSE, "sync", FALSE, "fd", self->null_fd,
      NULL);
  g_ptr_array_add (self->replies, reply_new (GST_OBJECT_NAME (sink), pad));
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER
      | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_reply_data, self, NULL);
}

static void
find_ends (Session *self)
{
  g_autoptr (GPtrArray) elements = pipeline_list_elements (self->pipeline);

  for (guint i = 0; i < elements->len; i++) {
    GstElement *element = elements->pdata[i];

    if (prints (element))
      add_reply (self, element);
    if (self->source == NULL && (element_is (element, "lmprompt")
            || element_is (element, "appsrc"))) {
      g_autoptr (GstPad) pad = gst_element_get_static_pad (element, "src");

      self->source = element;
      gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_prompt, self,
          NULL);
    }
  }
}

Session *
session_new (const char *pipeline, const Options *options, GError **error)
{
  g_autoptr (PipelineFile) file = pipeline_file_load (pipeline, error);
  g_autoptr (GstElement) parsed
      = file ? pipeline_file_launch (file, error) : NULL;
  Session *self;

  if (parsed == NULL || !property_values_apply (parsed, options, error))
    return NULL;
  self = g_new0 (Session, 1);
  g_mutex_init (&self->lock);
  self->pipeline = g_steal_pointer (&parsed);
  self->replies = g_ptr_array_new_with_free_func (reply_free);
  self->loop = g_main_loop_new (NULL, FALSE);
  self->null_fd = open ("/dev/null", O_WRONLY | O_CLOEXEC);
  find_ends (self);
  return self;
}

void
session_free (Session *self)
{
  gst_element_set_state (self->pipeline, GST_STATE_NULL);
  g_ptr_array_unref (self->replies);
  gst_object_unref (self->pipeline);
  close (self->null_fd);
  g_main_loop_unref (self->loop);
  g_clear_error (&self->error);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
session_set_print (Session *self, gboolean print)
{
  self->print = print;
}

gboolean
session_takes_prompt (Session *self)
{
  return self->source != NULL && element_is (self->source, "lmprompt");
}

void
session_set_prompt (Session *self, const char *text)
{
  g_object_set (self->source, "location", NULL, "text", text, NULL);
}

static void
on_progress_message (GstMessage *message)
{
  GstProgressType type;
  g_autofree char *text = NULL;

  gst_message_parse_progress (message, &type, NULL, &text);
  if (type == GST_PROGRESS_TYPE_START || type == GST_PROGRESS_TYPE_CONTINUE)
    report_progress (text);
  else
    report_progress_end ();
}

/* An element that has nothing of its own to say leaves GStreamer's sentence,
 * which names neither it nor the cause: that stands at the end of the details
 * for developers. */
static GError *
explain_error (GstMessage *message)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *debug = NULL, *bare = NULL;
  const char *details;

  gst_message_parse_error (message, &error, &debug);
  bare = gst_error_get_message (error->domain, error->code);
  if (!g_str_equal (error->message, bare))
    return g_steal_pointer (&error);
  details = debug ? strrchr (g_strchomp (debug), '\n') : NULL;
  return g_error_new (error->domain, error->code, "%s: %s%s%s",
      GST_MESSAGE_SRC_NAME (message), bare, details ? " " : "",
      details ? details + 1 : "");
}

static gboolean
on_message (GstBus *bus, GstMessage *message, gpointer user_data)
{
  Session *self = user_data;
  g_autoptr (GError) warning = NULL;

  switch (GST_MESSAGE_TYPE (message)) {
    case GST_MESSAGE_ERROR:
      if (self->error == NULL)
        self->error = explain_error (message);
      g_main_loop_quit (self->loop);
      break;
    case GST_MESSAGE_WARNING:
      gst_message_parse_warning (message, &warning, NULL);
      report_warning (warning->message);
      break;
    case GST_MESSAGE_PROGRESS:
      on_progress_message (message);
      break;
    case GST_MESSAGE_EOS:
      g_main_loop_quit (self->loop);
      break;
    case GST_MESSAGE_APPLICATION:
      if (self->until_replies
          && gst_message_has_name (message, REPLIES_ENDED))
        g_main_loop_quit (self->loop);
      break;
    default:
      break;
  }
  return G_SOURCE_CONTINUE;
}

/* Whether there was one to cancel. */
static gboolean
cancel_replies (Session *self)
{
  gboolean sent = FALSE;

  for (guint i = 0; i < session_get_n_replies (self); i++) {
    Reply *reply;
    guint64 request;

    g_mutex_lock (&self->lock);
    reply = self->replies->pdata[i];
    request = reply->ended ? 0 : reply->request;
    g_mutex_unlock (&self->lock);
    if (request == 0)
      continue;
    gst_pad_push_event (reply->pad, gst_lm_event_new_cancel (request));
    sent = TRUE;
  }
  return sent;
}

/* The first time ends the replies, with what came of them. The second time
 * ends the loop, and so does the first where prompts come from elsewhere, or
 * none is on its way. */
static gboolean
on_interrupt (gpointer user_data)
{
  Session *self = user_data;
  gboolean sent = FALSE;

  if (self->source != NULL && !self->interrupted)
    sent = cancel_replies (self);
  self->interrupted = TRUE;
  if (!sent)
    g_main_loop_quit (self->loop);
  return G_SOURCE_CONTINUE;
}

static gboolean
run_loop (Session *self, GError **error)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (self->pipeline);
  guint watch = gst_bus_add_watch (bus, on_message, self);
  guint interrupt = g_unix_signal_add (SIGINT, on_interrupt, self);

  g_main_loop_run (self->loop);
  g_source_remove (interrupt);
  g_source_remove (watch);
  report_progress_end ();
  if (self->error != NULL) {
    g_propagate_error (error, g_steal_pointer (&self->error));
    return FALSE;
  }
  return TRUE;
}

/* The message that says why, in place of the bare refusal. */
static gboolean
fail_to_start (Session *self, GError **error)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (self->pipeline);
  g_autoptr (GstMessage) message
      = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);

  if (message != NULL)
    g_propagate_error (error, explain_error (message));
  else
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO,
        "the pipeline does not start");
  return FALSE;
}

gboolean
session_start (Session *self, GError **error)
{
  self->started = g_get_monotonic_time ();
  if (gst_element_set_state (self->pipeline, GST_STATE_PLAYING)
      == GST_STATE_CHANGE_FAILURE)
    return fail_to_start (self, error);
  return TRUE;
}

gboolean
session_run (Session *self, GError **error)
{
  return session_start (self, error) && run_loop (self, error);
}

gboolean
session_check_turns (Session *self, GError **error)
{
  if (self->source != NULL && element_is (self->source, "appsrc")
      && self->replies->len == 1)
    return TRUE;
  report_set_usage (error, "this pipeline holds no conversation: it needs an "
      "appsrc and one fdsink");
  return FALSE;
}

static GstBuffer *
new_prompt (const char *text)
{
  GstBuffer *buffer = gst_buffer_new_memdup (text, strlen (text));

  gst_lm_buffer_add_request_meta (buffer, 0);
  return buffer;
}

gboolean
session_ask (Session *self, const char *text, GError **error)
{
  g_autoptr (GstBuffer) buffer = new_prompt (text);
  GstFlowReturn ret;

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->replies->len; i++) {
    Reply *reply = self->replies->pdata[i];

    reply_reset (reply);
    reply->request = gst_lm_buffer_get_request_meta (buffer)->id;
  }
  self->current = 0;
  g_mutex_unlock (&self->lock);
  self->interrupted = FALSE;
  self->until_replies = TRUE;
  self->started = g_get_monotonic_time ();
  g_signal_emit_by_name (self->source, "push-buffer", buffer, &ret);
  return run_loop (self, error);
}

gboolean
session_restart (Session *self, GError **error)
{
  gst_element_set_state (self->pipeline, GST_STATE_READY);
  return session_start (self, error);
}

guint
session_get_n_replies (Session *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = self->replies->len;
  g_mutex_unlock (&self->lock);
  return n;
}

const Reply *
session_get_reply (Session *self, guint i)
{
  return self->replies->pdata[i];
}

gboolean
session_get_interrupted (Session *self)
{
  return self->interrupted;
}

gint64
session_get_started (Session *self)
{
  return self->started;
}
