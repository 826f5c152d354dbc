/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "reply.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include "events.h"
#include "reply-channel.h"
#include "request-meta.h"

struct _GstLmReplyChannel {
  GMutex lock;
  GCond has_room;       /* the reader took a piece, or an interrupt */

  /* under lock */
  guint64 id;           /* 0: whatever reply comes first */
  GQueue pieces;        /* gchar *, none empty */
  GstBuffer *last;      /* nullable: ended, with this buffer */
  GError *error;        /* nullable: ended, with this error */
  gboolean is_abandoned;
  gboolean is_interrupted;
  gboolean is_cancelled;
  gint fd;              /* readable while there is something, or -1 */
  GTask *task;          /* nullable: who waits; owned */
  GSource *wakeup;      /* nullable: will look after the task; owned */
};

struct _GstLmReply {
  GObject parent_instance;

  GstLmReplyChannel *channel;
  GstLmTextSink *sink;
  GObject *owner; /* nullable; the reader's thread */
};

G_DEFINE_FINAL_TYPE (GstLmReply, gst_lm_reply, G_TYPE_OBJECT)

/* ---- The channel -------------------------------------------------------- */

GstLmReplyChannel *
gst_lm_reply_channel_new (guint64 id)
{
  GstLmReplyChannel *self = g_atomic_rc_box_new0 (GstLmReplyChannel);

  g_mutex_init (&self->lock);
  g_cond_init (&self->has_room);
  g_queue_init (&self->pieces);
  self->id = id;
  self->fd = -1;
  return self;
}

GstLmReplyChannel *
gst_lm_reply_channel_ref (GstLmReplyChannel *self)
{
  return g_atomic_rc_box_acquire (self);
}

static void
channel_clear (gpointer data)
{
  GstLmReplyChannel *self = data;

  g_clear_pointer (&self->wakeup, g_source_unref);
  g_queue_clear_full (&self->pieces, g_free);
  gst_clear_buffer (&self->last);
  g_clear_error (&self->error);
  if (self->fd >= 0)
    close (self->fd);
  g_cond_clear (&self->has_room);
  g_mutex_clear (&self->lock);
}

void
gst_lm_reply_channel_unref (GstLmReplyChannel *self)
{
  g_atomic_rc_box_release_full (self, channel_clear);
}

static gboolean
has_ended_unlocked (GstLmReplyChannel *self)
{
  return self->last != NULL || self->error != NULL;
}

static gboolean
is_ready_unlocked (GstLmReplyChannel *self)
{
  return self->pieces.length > 0 || has_ended_unlocked (self);
}

static void
signal_fd_unlocked (GstLmReplyChannel *self)
{
  guint64 one = 1;

  /* Fails only where the counter is full, and then it is readable. */
  if (self->fd >= 0 && write (self->fd, &one, sizeof one) < 0)
    return;
}

static void
clear_fd_unlocked (GstLmReplyChannel *self)
{
  guint64 count;

  /* Fails only where nothing was written. */
  if (self->fd >= 0 && read (self->fd, &count, sizeof count) < 0)
    return;
}

/* The next piece, or NULL at the end; what there is must be ready. */
static gchar *
take_unlocked (GstLmReplyChannel *self, GError **error)
{
  gchar *piece = g_queue_pop_head (&self->pieces);

  if (piece != NULL)
    g_cond_broadcast (&self->has_room);
  else if (self->error != NULL)
    g_propagate_error (error, g_error_copy (self->error));
  if (!is_ready_unlocked (self))
    clear_fd_unlocked (self);
  return piece;
}

/* In the main context of who waits. */
static gboolean
answer_task (gpointer data)
{
  GstLmReplyChannel *self = data;
  g_autoptr (GTask) task = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *piece = NULL;

  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->wakeup, g_source_unref);
  if (self->task != NULL && (is_ready_unlocked (self) ||
                             g_cancellable_is_cancelled (
                                 g_task_get_cancellable (self->task))))
    {
      task = g_steal_pointer (&self->task);
      if (!g_cancellable_set_error_if_cancelled (
              g_task_get_cancellable (task), &error))
        piece = take_unlocked (self, &error);
    }
  g_mutex_unlock (&self->lock);

  if (task == NULL)
    return G_SOURCE_REMOVE;
  g_cancellable_disconnect (g_task_get_cancellable (task),
                            GPOINTER_TO_SIZE (g_task_get_task_data (task)));
  if (error != NULL)
    g_task_return_error (task, g_steal_pointer (&error));
  else
    g_task_return_pointer (task, g_steal_pointer (&piece), g_free);
  return G_SOURCE_REMOVE;
}

static void
wake_task_unlocked (GstLmReplyChannel *self)
{
  if (self->task == NULL || self->wakeup != NULL)
    return;
  self->wakeup = g_idle_source_new ();
  g_source_set_priority (self->wakeup, g_task_get_priority (self->task));
  g_source_set_static_name (self->wakeup, "GstLmReply");
  g_source_set_callback (self->wakeup, answer_task,
                         gst_lm_reply_channel_ref (self),
                         (GDestroyNotify) gst_lm_reply_channel_unref);
  g_source_attach (self->wakeup, g_task_get_context (self->task));
}

static void
notify_unlocked (GstLmReplyChannel *self)
{
  signal_fd_unlocked (self);
  wake_task_unlocked (self);
}

guint64
gst_lm_reply_channel_get_id (GstLmReplyChannel *self)
{
  guint64 id;

  g_mutex_lock (&self->lock);
  id = self->id;
  g_mutex_unlock (&self->lock);
  return id;
}

/* A part of the reply that @self waits for has come: it has an id now, and room
 * is to be waited for until the next interrupt. Returns whether the reply was
 * cancelled before it had one. */
gboolean
gst_lm_reply_channel_begin (GstLmReplyChannel *self, guint64 id)
{
  gboolean is_cancelled;

  g_mutex_lock (&self->lock);
  is_cancelled = self->is_cancelled && self->id == 0;
  self->id = id;
  self->is_interrupted = FALSE;
  g_mutex_unlock (&self->lock);
  return is_cancelled;
}

void
gst_lm_reply_channel_interrupt (GstLmReplyChannel *self)
{
  g_mutex_lock (&self->lock);
  self->is_interrupted = TRUE;
  g_cond_broadcast (&self->has_room);
  g_mutex_unlock (&self->lock);
}

static gchar *
dup_text (GstBuffer *buffer)
{
  gsize size = gst_buffer_get_size (buffer);
  gchar *text;

  if (size == 0)
    return NULL;
  text = g_malloc (size + 1);
  gst_buffer_extract (buffer, 0, text, size);
  text[size] = '\0';
  return text;
}

/* Whatever the element before the sink may be, the reader gets UTF-8. */
static gchar *
dup_piece (GstBuffer *buffer)
{
  gchar *text = dup_text (buffer);
  gchar *valid;

  if (text == NULL || g_utf8_validate (text, gst_buffer_get_size (buffer), NULL))
    return text;
  valid = g_utf8_make_valid (text, gst_buffer_get_size (buffer));
  g_free (text);
  return valid;
}

GstFlowReturn
gst_lm_reply_channel_push (GstLmReplyChannel *self, GstBuffer *buffer,
                           gboolean last, guint room)
{
  GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (buffer);
  g_autofree gchar *piece = dup_piece (buffer);
  GstFlowReturn ret = GST_FLOW_OK;

  g_mutex_lock (&self->lock);
  while (self->pieces.length >= room && !self->is_abandoned &&
         !self->is_interrupted && !self->is_cancelled &&
         !has_ended_unlocked (self))
    g_cond_wait (&self->has_room, &self->lock);
  if (self->is_interrupted)
    ret = GST_FLOW_FLUSHING;
  else if (!self->is_abandoned && !has_ended_unlocked (self))
    {
      if (piece != NULL)
        g_queue_push_tail (&self->pieces, g_steal_pointer (&piece));
      if (last)
        self->last = gst_buffer_ref (buffer);
      if (last && meta != NULL && meta->error != NULL)
        g_set_error_literal (&self->error, G_IO_ERROR, G_IO_ERROR_FAILED,
                             meta->error);
      if (is_ready_unlocked (self))
        notify_unlocked (self);
    }
  g_mutex_unlock (&self->lock);
  return ret;
}

void
gst_lm_reply_channel_fail (GstLmReplyChannel *self, const GError *error)
{
  g_mutex_lock (&self->lock);
  if (!has_ended_unlocked (self))
    {
      self->error = g_error_copy (error);
      g_cond_broadcast (&self->has_room);
      notify_unlocked (self);
    }
  g_mutex_unlock (&self->lock);
}

/* ---- The reply ---------------------------------------------------------- */

GstLmReply *
gst_lm_reply_new (GstLmTextSink *sink, GstLmReplyChannel *channel)
{
  GstLmReply *self = g_object_new (GST_TYPE_LM_REPLY, NULL);

  self->channel = gst_lm_reply_channel_ref (channel);
  self->sink = g_object_ref (sink);
  return self;
}

void
gst_lm_reply_set_owner (GstLmReply *self, GObject *owner)
{
  g_set_object (&self->owner, owner);
}

static void
send_cancel (GstLmReply *self, guint64 id)
{
  if (id != 0)
    gst_pad_push_event (GST_BASE_SINK_PAD (self->sink),
                        gst_lm_event_new_cancel (id));
}

static void
gst_lm_reply_finalize (GObject *object)
{
  GstLmReply *self = GST_LM_REPLY (object);
  GstLmReplyChannel *channel = self->channel;

  gst_lm_reply_cancel (self);
  g_mutex_lock (&channel->lock);
  channel->is_abandoned = TRUE;
  g_queue_clear_full (&channel->pieces, g_free);
  g_mutex_unlock (&channel->lock);
  gst_lm_text_sink_forget (self->sink, channel);
  gst_lm_reply_channel_unref (channel);
  g_object_unref (self->sink);
  g_clear_object (&self->owner);
  G_OBJECT_CLASS (gst_lm_reply_parent_class)->finalize (object);
}

static void
gst_lm_reply_class_init (GstLmReplyClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_lm_reply_finalize;
}

static void
gst_lm_reply_init (GstLmReply *self)
{
}

/**
 * gst_lm_reply_get_id:
 * @self: the reply
 *
 * The id of the request.
 *
 * Returns: the id; 0 while any reply is waited for and none has come
 *
 * Since: 0.1
 */
guint64
gst_lm_reply_get_id (GstLmReply *self)
{
  g_return_val_if_fail (GST_IS_LM_REPLY (self), 0);

  return gst_lm_reply_channel_get_id (self->channel);
}

/* Any thread. A cancelled wait is answered where a piece would be. */
static void
on_cancelled (GCancellable *cancellable, gpointer data)
{
  GstLmReplyChannel *channel = data;

  g_mutex_lock (&channel->lock);
  wake_task_unlocked (channel);
  g_mutex_unlock (&channel->lock);
}

/**
 * gst_lm_reply_next_async:
 * @self: the reply
 * @cancellable: (nullable): ends the waiting, not the reply
 * @callback: (scope async): called when there is a piece, or the end
 * @user_data: for @callback
 *
 * Waits for the next piece, one call at a time.
 *
 * Since: 0.1
 */
void
gst_lm_reply_next_async (GstLmReply *self, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data)
{
  GstLmReplyChannel *channel = self->channel;
  g_autoptr (GTask) task = NULL;
  gulong handler = 0;

  g_return_if_fail (GST_IS_LM_REPLY (self));

  task = g_task_new (self, cancellable, callback, user_data);
  g_task_set_source_tag (task, gst_lm_reply_next_async);
  /* A piece that was taken is not to be lost to a cancel that comes later. */
  g_task_set_check_cancellable (task, FALSE);
  if (g_task_return_error_if_cancelled (task))
    return;
  if (cancellable != NULL)
    handler = g_cancellable_connect (
        cancellable, G_CALLBACK (on_cancelled),
        gst_lm_reply_channel_ref (channel),
        (GDestroyNotify) gst_lm_reply_channel_unref);
  g_task_set_task_data (task, GSIZE_TO_POINTER (handler), NULL);
  g_mutex_lock (&channel->lock);
  if (channel->task == NULL)
    {
      channel->task = g_steal_pointer (&task);
      if (is_ready_unlocked (channel) ||
          g_cancellable_is_cancelled (cancellable))
        wake_task_unlocked (channel);
    }
  g_mutex_unlock (&channel->lock);
  if (task == NULL)
    return;
  g_cancellable_disconnect (cancellable, handler);
  g_task_return_new_error (task, G_IO_ERROR, G_IO_ERROR_PENDING,
                           "The next piece of this reply is waited for "
                           "already");
}

/* A reply that has been read needs its pipeline no more. */
static void
release_owner (GstLmReply *self)
{
  gboolean has_ended;

  g_mutex_lock (&self->channel->lock);
  has_ended = has_ended_unlocked (self->channel);
  g_mutex_unlock (&self->channel->lock);
  if (has_ended)
    g_clear_object (&self->owner);
}

/**
 * gst_lm_reply_next_finish:
 * @self: the reply
 * @result: what the callback was given
 * @error: return location for a #GError
 *
 * The piece that was waited for.
 *
 * Returns: (transfer full) (nullable): text, never empty; %NULL at the end, or
 *   with @error set when the request failed or its pipeline ended early
 *
 * Since: 0.1
 */
gchar *
gst_lm_reply_next_finish (GstLmReply *self, GAsyncResult *result,
                          GError **error)
{
  gchar *piece;

  g_return_val_if_fail (g_task_is_valid (result, self), NULL);

  piece = g_task_propagate_pointer (G_TASK (result), error);
  if (piece == NULL)
    release_owner (self);
  return piece;
}

/**
 * gst_lm_reply_try_next:
 * @self: the reply
 * @ret_piece: (out) (nullable): the next piece, never empty; %NULL at the end
 * @error: return location for a #GError
 *
 * The next piece, if it is there already.
 *
 * Returns: %TRUE when a piece or the end was there; %FALSE when it has to be
 *   waited for, or with @error set when the request failed or its pipeline
 *   ended early
 *
 * Since: 0.1
 */
gboolean
gst_lm_reply_try_next (GstLmReply *self, gchar **ret_piece, GError **error)
{
  GstLmReplyChannel *channel = self->channel;
  g_autoptr (GError) failure = NULL;
  gchar *piece = NULL;
  gboolean is_ready;

  g_return_val_if_fail (GST_IS_LM_REPLY (self), FALSE);

  *ret_piece = NULL;
  g_mutex_lock (&channel->lock);
  is_ready = is_ready_unlocked (channel);
  if (is_ready)
    piece = take_unlocked (channel, &failure);
  g_mutex_unlock (&channel->lock);

  if (is_ready && piece == NULL)
    release_owner (self);
  if (failure != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
  *ret_piece = piece;
  return is_ready;
}

/**
 * gst_lm_reply_get_fd:
 * @self: the reply
 *
 * A file descriptor for loops other than GLib's. It is readable while
 * gst_lm_reply_try_next() has something to give, and from the end on; it is
 * not to be read from or written to. It belongs to the reply.
 *
 * Returns: the descriptor; -1 when the process has no more
 *
 * Since: 0.1
 */
gint
gst_lm_reply_get_fd (GstLmReply *self)
{
  GstLmReplyChannel *channel = self->channel;
  gint fd;

  g_return_val_if_fail (GST_IS_LM_REPLY (self), -1);

  g_mutex_lock (&channel->lock);
  if (channel->fd < 0)
    {
      channel->fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
      if (is_ready_unlocked (channel))
        signal_fd_unlocked (channel);
    }
  fd = channel->fd;
  g_mutex_unlock (&channel->lock);
  return fd;
}

/**
 * gst_lm_reply_cancel:
 * @self: the reply
 *
 * Ends generation and keeps what came: the pieces that are there can still be
 * read, and the finish reason becomes cancelled. Does nothing to a reply that
 * has ended.
 *
 * Since: 0.1
 */
void
gst_lm_reply_cancel (GstLmReply *self)
{
  GstLmReplyChannel *channel = self->channel;
  gboolean has_ended;
  guint64 id;

  g_return_if_fail (GST_IS_LM_REPLY (self));

  g_mutex_lock (&channel->lock);
  has_ended = has_ended_unlocked (channel);
  id = channel->id;
  g_mutex_unlock (&channel->lock);
  if (!has_ended)
    send_cancel (self, id);

  /* Not before the event: generation would run on until it comes. */
  g_mutex_lock (&channel->lock);
  channel->is_cancelled = TRUE;
  id = id == 0 && !has_ended ? channel->id : 0;
  g_cond_broadcast (&channel->has_room);
  g_mutex_unlock (&channel->lock);
  send_cancel (self, id);
}

/**
 * gst_lm_reply_dup_last_buffer:
 * @self: the reply
 *
 * The buffer that ended the reply, with its #GstLmRequestMeta.
 *
 * Returns: (transfer full) (nullable): the buffer; %NULL while the reply has
 *   not ended, or when it ended with its pipeline
 *
 * Since: 0.1
 */
GstBuffer *
gst_lm_reply_dup_last_buffer (GstLmReply *self)
{
  GstBuffer *buffer = NULL;

  g_return_val_if_fail (GST_IS_LM_REPLY (self), NULL);

  g_mutex_lock (&self->channel->lock);
  if (self->channel->last != NULL)
    buffer = gst_buffer_ref (self->channel->last);
  g_mutex_unlock (&self->channel->lock);
  return buffer;
}

/**
 * gst_lm_reply_get_finish_reason:
 * @self: the reply
 *
 * Why the reply ended.
 *
 * Returns: the reason; %RUNNEL_FINISH_REASON_NONE while it has not
 *
 * Since: 0.1
 */
RunnelFinishReason
gst_lm_reply_get_finish_reason (GstLmReply *self)
{
  g_autoptr (GstBuffer) last = gst_lm_reply_dup_last_buffer (self);
  GstLmRequestMeta *meta =
      last != NULL ? gst_lm_buffer_get_request_meta (last) : NULL;

  return meta != NULL ? meta->finish_reason : RUNNEL_FINISH_REASON_NONE;
}

/**
 * gst_lm_reply_get_prompt_tokens:
 * @self: the reply
 *
 * How long the prompt was.
 *
 * Returns: tokens; 0 until the reply has ended
 *
 * Since: 0.1
 */
guint
gst_lm_reply_get_prompt_tokens (GstLmReply *self)
{
  g_autoptr (GstBuffer) last = gst_lm_reply_dup_last_buffer (self);
  GstLmRequestMeta *meta =
      last != NULL ? gst_lm_buffer_get_request_meta (last) : NULL;

  return meta != NULL ? meta->prompt_tokens : 0;
}

/**
 * gst_lm_reply_get_completion_tokens:
 * @self: the reply
 *
 * How many tokens were drawn.
 *
 * Returns: tokens; 0 until the reply has ended
 *
 * Since: 0.1
 */
guint
gst_lm_reply_get_completion_tokens (GstLmReply *self)
{
  g_autoptr (GstBuffer) last = gst_lm_reply_dup_last_buffer (self);
  GstLmRequestMeta *meta =
      last != NULL ? gst_lm_buffer_get_request_meta (last) : NULL;

  return meta != NULL ? meta->completion_tokens : 0;
}

/**
 * gst_lm_reply_get_cached_tokens:
 * @self: the reply
 *
 * How many tokens of the prompt were not computed again.
 *
 * Returns: tokens; 0 until the reply has ended
 *
 * Since: 0.1
 */
guint
gst_lm_reply_get_cached_tokens (GstLmReply *self)
{
  g_autoptr (GstBuffer) last = gst_lm_reply_dup_last_buffer (self);
  GstLmRequestMeta *meta =
      last != NULL ? gst_lm_buffer_get_request_meta (last) : NULL;

  return meta != NULL ? meta->cached_tokens : 0;
}
