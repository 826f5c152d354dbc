/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* Sessions, replies and lmtextsink, as a program in C uses them; the tests of
 * the languages are in tests/bindings. */
#include <glib/gstdio.h>
#include <poll.h>

#include "pipeline-run.h"
#include "tiny-model.h"

#define N_WORDS 40
#define N_RACES (g_getenv ("RUNNEL_TEST_LONG") ? 200 : 20)

static char *script_path;

static void
make_script (void)
{
  char *words[N_WORDS + 1] = { NULL };
  TinyModel model = TINY_MODEL_DEFAULT;

  for (guint i = 0; i < N_WORDS; i++)
    words[i] = g_strdup_printf ("w%u,", i + 1);
  model.script = (const char *const *) words;
  script_path = tiny_model_write (&model);
  for (guint i = 0; i < N_WORDS; i++)
    g_free (words[i]);
}

static void
assert_words (const char *text, guint n)
{
  GString *words = g_string_new (NULL);

  for (guint i = 0; i < n; i++)
    g_string_append_printf (words, "w%u,", i + 1);
  g_assert_cmpstr (text, ==, words->str);
  g_string_free (words, TRUE);
}

static GstLmSession *
new_session (void)
{
  GstElement *element = gst_element_factory_make ("lmgenerate", NULL);
  g_autoptr (GstElement) sink = NULL;
  g_autoptr (GError) error = NULL;
  GstLmSession *session;

  g_object_set (element, "model", script_path, "temperature", 0., NULL);
  gst_util_set_object_arg (G_OBJECT (element), "error-policy", "report");
  session = gst_lm_session_new (element, &error);
  g_assert_no_error (error);
  g_assert_true (gst_lm_session_get_element (session) == element);
  sink = gst_bin_get_by_name (GST_BIN (gst_lm_session_get_pipeline (session)),
      "replies");
  g_object_set (sink, "max-pieces", 1, NULL);
  return session;
}

static GstLmReply *
ask (GstLmSession *session, const char *overrides)
{
  g_autoptr (GstStructure) structure = NULL;
  g_autoptr (GError) error = NULL;
  GstLmReply *reply;

  if (overrides)
    structure = gst_structure_from_string (overrides, NULL);
  reply = gst_lm_session_send_text (session, "Hello", structure, &error);
  g_assert_no_error (error);
  return reply;
}

/* The next piece, waited for by the file descriptor. */
static char *
next_piece (GstLmReply *reply, GError **error)
{
  struct pollfd poll_fd = { gst_lm_reply_get_fd (reply), POLLIN, 0 };
  g_autoptr (GError) failure = NULL;
  char *piece = NULL;

  g_assert_cmpint (poll_fd.fd, >=, 0);
  while (!gst_lm_reply_try_next (reply, &piece, &failure) && !failure)
    g_assert_cmpint (poll (&poll_fd, 1, -1), ==, 1);
  if (failure)
    g_propagate_error (error, g_steal_pointer (&failure));
  return piece;
}

static char *
read_reply (GstLmReply *reply)
{
  GString *text = g_string_new (NULL);
  g_autoptr (GError) error = NULL;

  for (;;) {
    g_autofree char *piece = next_piece (reply, &error);

    g_assert_no_error (error);
    if (!piece)
      return g_string_free (text, FALSE);
    g_assert_cmpstr (piece, !=, "");
    g_string_append (text, piece);
  }
}

static void
test_text (void)
{
  g_autoptr (GstLmSession) session = new_session ();
  g_autoptr (GstLmReply) reply = ask (session, NULL);
  g_autofree char *text = read_reply (reply);
  g_autofree char *rest = read_reply (reply);
  g_autoptr (GstBuffer) last = gst_lm_reply_dup_last_buffer (reply);

  assert_words (text, N_WORDS);
  g_assert_cmpstr (rest, ==, "");
  g_assert_cmpint (gst_lm_reply_get_finish_reason (reply), ==,
      RUNNEL_FINISH_REASON_STOP);
  g_assert_cmpuint (gst_lm_reply_get_completion_tokens (reply), ==, N_WORDS);
  g_assert_cmpuint (gst_lm_reply_get_prompt_tokens (reply), >, 5);
  g_assert_cmpuint (gst_lm_buffer_get_request_meta (last)->id, ==,
      gst_lm_reply_get_id (reply));
}

static void
test_messages (void)
{
  g_autoptr (GstLmSession) session = new_session ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GstLmReply) reply = gst_lm_session_send_messages (session,
      "[{\"role\": \"user\", \"content\": \"Hello\"}]", NULL, &error);
  g_autofree char *text = NULL;

  g_assert_no_error (error);
  text = read_reply (reply);
  assert_words (text, N_WORDS);
}

static void
test_mistakes (void)
{
  g_autoptr (GstLmSession) session = new_session ();
  g_autoptr (GstStructure) unknown
      = gst_structure_from_string ("o, max-token=3", NULL);
  g_autoptr (GstLmReply) bad = ask (session, "o, max-tokens=-7");
  g_autoptr (GstLmReply) good = ask (session, "o, max-tokens=2");
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  GstElement *element = gst_element_factory_make ("lmgenerate", NULL);

  g_assert_null (gst_lm_session_send_text (session, "Hi", unknown, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  g_clear_error (&error);
  g_assert_null (next_piece (bad, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "max-tokens=-7"));
  g_clear_error (&error);
  g_assert_cmpint (gst_lm_reply_get_finish_reason (bad), ==,
      RUNNEL_FINISH_REASON_ERROR);
  text = read_reply (good);
  assert_words (text, 2);

  g_object_set (element, "model", "/nowhere", NULL);
  g_assert_null (gst_lm_session_new (element, &error));
  g_assert_nonnull (strstr (error->message, "/nowhere"));
  g_clear_error (&error);
  g_assert_null (gst_lm_session_new (gst_element_factory_make ("fakesrc",
      NULL), &error));
  g_assert_error (error, GST_CORE_ERROR, GST_CORE_ERROR_PAD);
}

static void
test_cancel (void)
{
  g_autoptr (GstLmSession) session = new_session ();

  for (guint n = 0; n < 4; n++) {
    g_autoptr (GstLmReply) reply = ask (session, NULL);
    g_autofree char *rest = NULL;

    for (guint i = 0; i < n; i++)
      g_free (next_piece (reply, NULL));
    gst_lm_reply_cancel (reply);
    gst_lm_reply_cancel (reply);
    rest = read_reply (reply);
    g_assert_cmpint (gst_lm_reply_get_finish_reason (reply), ==,
        RUNNEL_FINISH_REASON_CANCELLED);
    /* Those read, one that waits, one that is pushed, and two more. */
    g_assert_cmpuint (gst_lm_reply_get_completion_tokens (reply), <=, n + 4);
  }
}

static void
test_close (void)
{
  g_autoptr (GstLmSession) session = new_session ();
  g_autoptr (GstLmReply) reply = ask (session, NULL);
  g_autoptr (GError) error = NULL;

  g_free (next_piece (reply, NULL));
  gst_lm_session_close (session);
  while (!error)
    g_free (next_piece (reply, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CLOSED);
  g_clear_error (&error);
  g_assert_null (gst_lm_session_send_text (session, "Hi", NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CLOSED);
}

typedef struct {
  GMainLoop *loop;
  GThread *thread;
  GString *text;
  GError *error;
  guint n_calls;
} Reader;

static void
on_piece (GObject *source, GAsyncResult *result, gpointer data)
{
  GstLmReply *reply = GST_LM_REPLY (source);
  Reader *reader = data;
  g_autofree char *piece
      = gst_lm_reply_next_finish (reply, result, &reader->error);

  g_assert_true (g_thread_self () == reader->thread);
  reader->n_calls++;
  if (!piece) {
    g_main_loop_quit (reader->loop);
    return;
  }
  g_string_append (reader->text, piece);
  gst_lm_reply_next_async (reply, NULL, on_piece, reader);
}

/* In a context of its own, in any thread. */
static void
read_async (GstLmReply *reply, GCancellable *cancellable, Reader *reader)
{
  g_autoptr (GMainContext) context = g_main_context_new ();

  g_main_context_push_thread_default (context);
  reader->loop = g_main_loop_new (context, FALSE);
  reader->thread = g_thread_self ();
  reader->text = g_string_new (NULL);
  gst_lm_reply_next_async (reply, cancellable, on_piece, reader);
  g_main_loop_run (reader->loop);
  g_main_loop_unref (reader->loop);
  g_main_context_pop_thread_default (context);
}

static gpointer
read_in_thread (gpointer unused)
{
  g_autoptr (GstLmSession) session = new_session ();

  for (guint n = 1; n < 20; n++) {
    g_autofree char *overrides = g_strdup_printf ("o, max-tokens=%u", n);
    g_autoptr (GstLmReply) reply = ask (session, overrides);
    Reader reader = { 0 };

    read_async (reply, NULL, &reader);
    g_assert_no_error (reader.error);
    assert_words (reader.text->str, n);
    g_string_free (reader.text, TRUE);
  }
  return NULL;
}

static void
test_two_threads (void)
{
  GThread *other = g_thread_new ("other", read_in_thread, NULL);

  read_in_thread (NULL);
  g_thread_join (other);
}

static gpointer
cancel_soon (gpointer cancellable)
{
  g_usleep (5000);
  g_cancellable_cancel (cancellable);
  return NULL;
}

static void
test_wait_ends (void)
{
  g_autoptr (GstLmTextSink) sink
      = g_object_ref_sink (g_object_new (GST_TYPE_LM_TEXT_SINK, NULL));
  g_autoptr (GstLmReply) reply = gst_lm_text_sink_expect (sink, 0);

  for (guint i = 0; i < 2; i++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    GThread *thread = g_thread_new ("cancel", cancel_soon, cancellable);
    Reader reader = { 0 };

    read_async (reply, cancellable, &reader);
    g_thread_join (thread);
    g_assert_error (reader.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    g_assert_cmpuint (reader.n_calls, ==, 1);
    g_clear_error (&reader.error);
    g_string_free (reader.text, TRUE);
  }
  g_assert_cmpuint (gst_lm_reply_get_id (reply), ==, 0);
}

/* Replies are dropped, then sessions, at different moments of their lives. */
static void
test_races (void)
{
  g_autoptr (Watchdog) watchdog = watchdog_start (120, "dropping");
  GWeakRef pipelines[200];
  guint n_races = MIN (N_RACES, G_N_ELEMENTS (pipelines));

  for (guint n = 0; n < n_races; n++) {
    g_autoptr (GstLmSession) session = new_session ();
    g_autoptr (GstLmReply) reply = ask (session, NULL);

    g_weak_ref_init (&pipelines[n], gst_lm_session_get_pipeline (session));
    for (guint i = 0; i < n % 5; i++)
      g_free (next_piece (reply, NULL));
    if (n % 3 == 0)
      g_clear_object (&session);
    if (n % 3 == 1)
      g_clear_object (&reply);
    if (n % 3 == 2)
      g_usleep (n * 50);
  }
  /* Another thread stops them, and lets go of each. */
  for (guint n = 0; n < n_races; n++) {
    GObject *alive;

    while ((alive = g_weak_ref_get (&pipelines[n]))) {
      g_object_unref (alive);
      g_usleep (1000);
    }
    g_weak_ref_clear (&pipelines[n]);
  }
}

static void
test_branches (void)
{
  GstElement *pipeline = pipeline_new ("lmprompt text=Hello ! lmchat ! "
      "lmtokenize model=%s ! lmprefill ! tee name=t "
      "t. ! queue ! lmdecode max-tokens=3 ! lmdetokenize ! lmtextsink name=a "
      "t. ! queue ! lmdecode max-tokens=9 ! lmdetokenize ! lmtextsink name=b",
      script_path);
  GstElement *a = pipeline_get (pipeline, "a");
  GstElement *b = pipeline_get (pipeline, "b");
  g_autoptr (GstLmReply) first
      = gst_lm_text_sink_expect (GST_LM_TEXT_SINK (a), 0);
  g_autoptr (GstLmReply) second
      = gst_lm_text_sink_expect (GST_LM_TEXT_SINK (b), 0);
  g_autoptr (GstLmReply) none
      = gst_lm_text_sink_expect (GST_LM_TEXT_SINK (b), 0);
  g_autofree char *first_text = NULL;
  g_autofree char *second_text = NULL;
  g_autoptr (GError) error = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  first_text = read_reply (first);
  second_text = read_reply (second);
  assert_words (first_text, 3);
  assert_words (second_text, 9);
  g_assert_cmpuint (gst_lm_reply_get_id (first), ==,
      gst_lm_reply_get_id (second));
  /* The end of the pipeline is the end of waiting. */
  g_assert_null (next_piece (none, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CLOSED);
  pipeline_free (pipeline);
}

static void
test_flush (void)
{
  GstElement *pipeline = pipeline_new ("appsrc name=in format=time "
      "caps=text/x-raw,format=utf8 ! lmgenerate model=%s ! "
      "lmtextsink name=out max-pieces=1", script_path);
  GstElement *source = pipeline_get (pipeline, "in");
  GstLmTextSink *sink = GST_LM_TEXT_SINK (pipeline_get (pipeline, "out"));
  g_autoptr (Watchdog) watchdog = watchdog_start (60, "flushing");
  g_autoptr (GstLmReply) flushed = gst_lm_text_sink_expect (sink, 0);
  g_autoptr (GstLmReply) following = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "Hello", NULL);
  g_free (next_piece (flushed, NULL));
  gst_element_send_event (source, gst_event_new_flush_start ());
  gst_element_send_event (source, gst_event_new_flush_stop (TRUE));
  while (!error)
    g_free (next_piece (flushed, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);

  following = gst_lm_text_sink_expect (sink, 0);
  pipeline_send (pipeline, "Hello", NULL);
  text = read_reply (following);
  assert_words (text, N_WORDS);
  pipeline_free (pipeline);
}

/* Cancelled before anybody knew which request it is. */
static void
test_early_cancel (void)
{
  GstElement *pipeline = pipeline_new ("lmprompt text=Hello ! "
      "lmgenerate model=%s ! lmtextsink name=out max-pieces=1", script_path);
  GstLmTextSink *sink = GST_LM_TEXT_SINK (pipeline_get (pipeline, "out"));
  g_autoptr (GstLmReply) reply = gst_lm_text_sink_expect (sink, 0);
  g_autofree char *text = NULL;

  gst_lm_reply_cancel (reply);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  text = read_reply (reply);
  g_assert_cmpint (gst_lm_reply_get_finish_reason (reply), ==,
      RUNNEL_FINISH_REASON_CANCELLED);
  pipeline_free (pipeline);
}

int
main (int argc, char **argv)
{
  int status;

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  make_script ();
  g_test_add_func ("/session/text", test_text);
  g_test_add_func ("/session/messages", test_messages);
  g_test_add_func ("/session/mistakes", test_mistakes);
  g_test_add_func ("/session/cancel", test_cancel);
  g_test_add_func ("/session/close", test_close);
  g_test_add_func ("/session/two-threads", test_two_threads);
  g_test_add_func ("/session/wait-ends", test_wait_ends);
  g_test_add_func ("/session/races", test_races);
  g_test_add_func ("/text-sink/branches", test_branches);
  g_test_add_func ("/text-sink/flush", test_flush);
  g_test_add_func ("/text-sink/early-cancel", test_early_cancel);
  status = g_test_run ();
  g_unlink (script_path);
  g_free (script_path);
  return status;
}
