/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* runnel/cancel before, while and after a reply is made, at every token, and
 * from another thread at random times (the seed is printed by the test
 * program). What came stays, every request ends once, and the next one is as
 * if nothing had been. */
#include "pipeline-run.h"

#define N_TOKENS 12

static const char *model;

static GstElement *
cancel_new (void)
{
  return pipeline_new ("appsrc name=in format=time caps=\"" GST_LM_CAPS_TEXT
      "\" ! lmtokenize model=%s ! lmprefill ! lmdecode name=d temperature=0 "
      "ignore-eos=true max-tokens=%d ! fakesink name=out sync=false "
      "async=false", model, N_TOKENS);
}

typedef struct {
  GstElement *pipeline;
  guint at;                     /* tokens until the cancel */
  guint n;
} AtToken;

static GstPadProbeReturn
cancel_at_token (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  AtToken *self = user_data;
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);

  if (gst_buffer_get_size (buffer) > 0 && ++self->n == self->at)
    pipeline_cancel (self->pipeline, "out",
        gst_lm_buffer_get_request_meta (buffer)->id);
  return GST_PAD_PROBE_OK;
}

static GArray *
whole_reply (void)
{
  GstElement *pipeline = cancel_new ();
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  GArray *reply;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "hello", NULL);
  recorder_wait_markers (out, 1);
  reply = recorder_get_reply (out, 0);
  g_assert_cmpuint (reply->len, ==, N_TOKENS);
  pipeline_free (pipeline);
  return reply;
}

static void
test_at_every_token (void)
{
  g_autoptr (GArray) whole = whole_reply ();

  for (guint at = 1; at <= N_TOKENS; at++) {
    GstElement *pipeline = cancel_new ();
    AtToken token = { pipeline, at, 0 };
    g_autoptr (GstPad) pad =
        gst_element_get_static_pad (pipeline_get (pipeline, "d"), "src");
    g_autoptr (Recorder) out = recorder_new (pipeline, "out");
    g_autoptr (GArray) cut = NULL, next = NULL;

    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, cancel_at_token, &token,
        NULL);
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    pipeline_send (pipeline, "hello", NULL);
    pipeline_send (pipeline, "hello", NULL);
    recorder_wait_markers (out, 2);
    cut = recorder_get_reply (out, 0);
    next = recorder_get_reply (out, 1);
    g_assert_cmpuint (cut->len, >=, at);
    g_assert_cmpuint (cut->len, <=, MIN (at + 1, N_TOKENS));
    g_assert_cmpmem (cut->data, cut->len * 4, whole->data, cut->len * 4);
    g_assert_cmpmem (next->data, next->len * 4, whole->data, whole->len * 4);
    g_assert_cmpint (recorder_get_end (out, 0)->finish_reason, ==,
        at < N_TOKENS ? RUNNEL_FINISH_REASON_CANCELLED :
        RUNNEL_FINISH_REASON_LENGTH);
    g_assert_cmpuint (recorder_get_end (out, 0)->completion_tokens, ==,
        cut->len);
    pipeline_free (pipeline);
  }
}

static void
test_after (void)
{
  GstElement *pipeline = cancel_new ();
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  guint64 id;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  id = pipeline_send (pipeline, "hello", NULL);
  recorder_wait_markers (out, 1);
  pipeline_cancel (pipeline, "out", id);
  pipeline_send (pipeline, "hello", NULL);
  recorder_wait_markers (out, 2);
  for (guint i = 0; i < 2; i++)
    g_assert_cmpint (recorder_get_end (out, i)->finish_reason, ==,
        RUNNEL_FINISH_REASON_LENGTH);
  pipeline_free (pipeline);
}

/* A flush throws the reply away, with every request behind it; the next one
 * is answered in full. */
static void
test_flush (void)
{
  g_autoptr (GArray) whole = whole_reply ();
  GstElement *pipeline = cancel_new ();
  GstElement *in = pipeline_get (pipeline, "in");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 20; i++) {
    g_autoptr (Watchdog) watchdog = watchdog_start (30, g_test_get_path ());
    g_autoptr (GArray) reply = NULL;
    guint64 id;

    recorder_clear (out);
    pipeline_send (pipeline, "hello", NULL);
    pipeline_send (pipeline, "hello", NULL);
    if (i % 2)
      recorder_wait_buffers (out, 1 + i / 2);
    gst_element_send_event (in, gst_event_new_flush_start ());
    gst_element_send_event (in, gst_event_new_flush_stop (TRUE));
    recorder_clear (out);
    id = pipeline_send (pipeline, "hello", NULL);
    recorder_wait_markers (out, 1);
    reply = recorder_get_reply (out, 0);
    g_assert_cmpmem (reply->data, reply->len * 4, whole->data, whole->len * 4);
    g_assert_cmpuint (recorder_get_end (out, 0)->id, ==, id);
  }
  pipeline_free (pipeline);
}

static gpointer
cancel_late (gpointer data)
{
  AtToken *self = data;

  g_usleep (self->n);
  pipeline_cancel (self->pipeline, "out", self->at);
  return NULL;
}

/* A race of the event with the reply: whatever wins, it ends once. */
static void
test_race (void)
{
  gboolean is_long = g_strcmp0 (g_getenv ("RUNNEL_TEST_LONG"), "1") == 0;
  g_autoptr (GArray) whole = whole_reply ();
  GstElement *pipeline = cancel_new ();
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < (is_long ? 200 : 20); i++) {
    g_autoptr (Watchdog) watchdog = watchdog_start (30, g_test_get_path ());
    AtToken race = { pipeline, 0, g_test_rand_int_range (0, 3000) };
    g_autoptr (GArray) reply = NULL;
    GThread *thread;

    recorder_clear (out);
    race.at = pipeline_send (pipeline, "hello", NULL);
    thread = g_thread_new ("cancel", cancel_late, &race);
    recorder_wait_markers (out, 1);
    g_thread_join (thread);
    reply = recorder_get_reply (out, 0);
    g_assert_cmpmem (reply->data, reply->len * 4, whole->data, reply->len * 4);
    g_assert_cmpint (recorder_get_end (out, 0)->finish_reason, ==,
        reply->len < N_TOKENS ? RUNNEL_FINISH_REASON_CANCELLED :
        RUNNEL_FINISH_REASON_LENGTH);
  }
  g_assert_cmpuint (recorder_get_n_markers (out), ==, 1);
  pipeline_free (pipeline);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  model = pipeline_model_path ();
  g_test_add_func ("/cancel/at-every-token", test_at_every_token);
  g_test_add_func ("/cancel/after", test_after);
  g_test_add_func ("/cancel/flush", test_flush);
  g_test_add_func ("/cancel/race", test_race);
  return g_test_run ();
}
