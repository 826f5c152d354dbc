/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* Case C32: everything that may happen to a pipeline while a reply is being
 * made. The model is slowed down to 50 ms per token by a probe behind
 * lmdecode, and 10,000 tokens are asked for, so that only a reply that ends
 * early ends at all. Each case is repeated 20 times, or 200 with
 * RUNNEL_TEST_LONG=1, under a watchdog. */
#include "pipeline-run.h"

#define TOKEN_MS 50
#define WATCHDOG_SECONDS 5
#define QUEUE "queue max-size-buffers=1 max-size-bytes=0 max-size-time=0"

static const char *model;

static guint
get_repeats (void)
{
  return g_strcmp0 (g_getenv ("RUNNEL_TEST_LONG"), "1") == 0 ? 200 : 20;
}

static GstPadProbeReturn
slow_down (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  g_usleep (TOKEN_MS * 1000);
  return GST_PAD_PROBE_OK;
}

/* A long slow reply, through @middle to the sink `out`. */
static GstElement *
slow_new (const char *middle)
{
  GstElement *pipeline = pipeline_new ("lmprompt name=in text=\"hello\" "
      "! lmtokenize model=%s ! lmprefill ! lmdecode name=d max-tokens=10000 "
      "ignore-eos=true overflow-policy=shift ! %s ! fakesink name=out "
      "sync=false async=false", model, middle);
  g_autoptr (GstPad) pad =
      gst_element_get_static_pad (pipeline_get (pipeline, "d"), "src");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, slow_down, NULL, NULL);
  return pipeline;
}

static GstElement *
slow_start (const char *middle, Recorder **out)
{
  GstElement *pipeline = slow_new (middle);

  *out = recorder_new (pipeline, "out");
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  return pipeline;
}

/* Within two tokens and what a busy machine needs, five times. */
static void
assert_quick (gint64 since)
{
  g_assert_cmpint (g_get_monotonic_time () - since, <,
      5 * 3 * TOKEN_MS * 1000 * PIPELINE_SLACK);
}

static void
to_state (GstState state)
{
  Recorder *out;
  GstElement *pipeline = slow_start ("identity", &out);
  gint64 start;
  guint n;

  recorder_wait_buffers (out, 1);
  start = g_get_monotonic_time ();
  g_assert_cmpint (gst_element_set_state (pipeline, state), ==,
      GST_STATE_CHANGE_SUCCESS);
  assert_quick (start);
  n = recorder_get_n_buffers (out);
  g_usleep (TOKEN_MS * 1000 / 5);
  g_assert_cmpuint (recorder_get_n_buffers (out), ==, n);
  recorder_free (out);
  pipeline_free (pipeline);
}

static void
case_null (void)
{
  to_state (GST_STATE_NULL);
}

static void
case_ready (void)
{
  to_state (GST_STATE_READY);
}

/* READY and back: a new reply from the same pipeline. */
static void
case_ready_again (void)
{
  Recorder *out;
  GstElement *pipeline = slow_start ("identity", &out);

  recorder_wait_buffers (out, 1);
  gst_element_set_state (pipeline, GST_STATE_READY);
  recorder_clear (out);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  recorder_wait_buffers (out, 2);
  recorder_free (out);
  pipeline_free (pipeline);
}

/* PAUSED keeps the reply; it goes on with the next token. */
static void
case_paused (void)
{
  Recorder *out;
  GstElement *pipeline = slow_start ("identity", &out);
  guint n;

  recorder_wait_buffers (out, 2);
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  g_usleep (2 * TOKEN_MS * 1000);
  n = recorder_get_n_buffers (out);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  recorder_wait_buffers (out, n + 2);
  g_assert_cmpuint (recorder_get_n_markers (out), ==, 0);
  for (guint i = 1; i < n + 2; i++)
    g_assert_cmpuint (gst_lm_buffer_get_request_meta
        (recorder_get_buffer (out, i))->id, ==,
        gst_lm_buffer_get_request_meta (recorder_get_buffer (out, 0))->id);
  recorder_free (out);
  pipeline_free (pipeline);
}

/* After FLUSH_START nothing comes; after FLUSH_STOP the next reply does. */
static void
case_flush (void)
{
  Recorder *out;
  GstElement *pipeline = slow_start ("identity", &out);
  g_autoptr (GstPad) pad =
      gst_element_get_static_pad (pipeline_get (pipeline, "d"), "sink");
  gint64 start;
  guint n;

  recorder_wait_buffers (out, 1);
  start = g_get_monotonic_time ();
  gst_pad_send_event (pad, gst_event_new_flush_start ());
  n = recorder_get_n_buffers (out);
  g_usleep (2 * TOKEN_MS * 1000);
  g_assert_cmpuint (recorder_get_n_buffers (out), ==, n);
  gst_pad_send_event (pad, gst_event_new_flush_stop (TRUE));
  g_assert_cmpint (g_get_monotonic_time () - start, <,
      5 * 5 * TOKEN_MS * 1000 * PIPELINE_SLACK);
  recorder_free (out);
  pipeline_free (pipeline);
}

/* The element leaves the running pipeline. */
static void
case_remove (void)
{
  Recorder *out;
  GstElement *pipeline = slow_start ("identity", &out);
  GstElement *decode = gst_object_ref (pipeline_get (pipeline, "d"));
  gint64 start;

  recorder_wait_buffers (out, 1);
  start = g_get_monotonic_time ();
  gst_bin_remove (GST_BIN (pipeline), decode);
  gst_element_set_state (decode, GST_STATE_NULL);
  assert_quick (start);
  gst_object_unref (decode);
  recorder_free (out);
  pipeline_free (pipeline);
}

/* The reply waits in its push, behind a full queue. */
static void
case_blocked (void)
{
  GstElement *pipeline = slow_new (QUEUE);
  Recorder *out = recorder_new (pipeline, "out");
  gint64 start;

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  recorder_wait_buffers (out, 1);
  g_usleep (3 * TOKEN_MS * 1000);
  g_assert_cmpuint (recorder_get_n_buffers (out), ==, 1);
  start = g_get_monotonic_time ();
  g_assert_cmpint (gst_element_set_state (pipeline, GST_STATE_NULL), ==,
      GST_STATE_CHANGE_SUCCESS);
  assert_quick (start);
  recorder_free (out);
  pipeline_free (pipeline);
}

static GstPadProbeReturn
return_flow (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  gst_buffer_unref (GST_PAD_PROBE_INFO_BUFFER (info));
  GST_PAD_PROBE_INFO_FLOW_RETURN (info) = GPOINTER_TO_INT (user_data);
  return GST_PAD_PROBE_HANDLED;
}

/* Downstream gives @flow to the third token: generation ends there. */
static void
end_by_flow (GstFlowReturn flow)
{
  Recorder *out;
  GstElement *pipeline = slow_start ("identity name=i", &out);
  g_autoptr (GstPad) decoded =
      gst_element_get_static_pad (pipeline_get (pipeline, "d"), "src");
  g_autoptr (GstPad) given =
      gst_element_get_static_pad (pipeline_get (pipeline, "i"), "sink");

  recorder_wait_buffers (out, 1);
  gst_pad_add_probe (given, GST_PAD_PROBE_TYPE_BUFFER, return_flow,
      GINT_TO_POINTER (flow), NULL);
  /* It reaches the source, which posts what is an error, and no other element
   * does. */
  if (flow == GST_FLOW_ERROR || flow == GST_FLOW_NOT_LINKED)
    gst_message_unref (pipeline_wait_message (pipeline, GST_MESSAGE_ERROR));
  else
    while (gst_pad_get_last_flow_return (decoded) != flow)
      g_usleep (1000);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  g_assert_cmpuint (pipeline_count_messages (pipeline, GST_MESSAGE_ERROR), ==,
      0);
  g_assert_cmpuint (recorder_get_n_markers (out), ==, 0);
  recorder_free (out);
  pipeline_free (pipeline);
}

static void
case_flow_flushing (void)
{
  end_by_flow (GST_FLOW_FLUSHING);
}

static void
case_flow_not_linked (void)
{
  end_by_flow (GST_FLOW_NOT_LINKED);
}

static void
case_flow_eos (void)
{
  end_by_flow (GST_FLOW_EOS);
}

static void
case_flow_error (void)
{
  end_by_flow (GST_FLOW_ERROR);
}

static void
to_null (GstElement *pipeline, gpointer user_data)
{
  gst_element_set_state (pipeline, GST_STATE_NULL);
}

static void
wait_for_null (GstElement *pipeline)
{
  GstState state;

  do {
    g_usleep (1000);
    gst_element_get_state (pipeline, &state, NULL, 0);
  } while (state != GST_STATE_NULL);
}

static GstBusSyncReply
to_null_by_message (GstBus *bus, GstMessage *message, gpointer user_data)
{
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_STATE_CHANGED
      && GST_MESSAGE_SRC (message) == user_data) {
    GstState to;

    gst_message_parse_state_changed (message, NULL, &to, NULL);
    if (to == GST_STATE_PLAYING)
      gst_element_call_async (user_data, to_null, NULL, NULL);
  }
  gst_message_unref (message);
  return GST_BUS_DROP;
}

/* To NULL from a bus sync handler, by the way GStreamer has for it. */
static void
case_sync_handler (void)
{
  GstElement *pipeline = slow_new ("identity");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  gst_bus_set_sync_handler (bus, to_null_by_message, pipeline, NULL);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  wait_for_null (pipeline);
  gst_bus_set_sync_handler (bus, NULL, NULL, NULL);
  pipeline_free (pipeline);
}

static GstPadProbeReturn
to_null_on_buffer (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  gst_element_call_async (user_data, to_null, NULL, NULL);
  return GST_PAD_PROBE_REMOVE;
}

/* To NULL from the streaming thread, likewise. */
static void
case_streaming_thread (void)
{
  GstElement *pipeline = slow_new ("identity");
  g_autoptr (GstPad) pad =
      gst_element_get_static_pad (pipeline_get (pipeline, "out"), "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, to_null_on_buffer,
      pipeline, NULL);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  wait_for_null (pipeline);
  pipeline_free (pipeline);
}

static gint direct_done;

static GstPadProbeReturn
to_null_directly (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  gst_element_set_state (user_data, GST_STATE_NULL);
  g_atomic_int_set (&direct_done, TRUE);
  return GST_PAD_PROBE_REMOVE;
}

/* The mistake: GStreamer cannot join a thread from itself, warns and refuses,
 * and leaves the source's task for the right thread to stop. Our elements do
 * not hang over it. */
static void
case_streaming_thread_directly (void)
{
  GstElement *pipeline = slow_new ("identity");
  g_autoptr (GstPad) pad =
      gst_element_get_static_pad (pipeline_get (pipeline, "out"), "sink");
  g_autoptr (GstPad) source =
      gst_element_get_static_pad (pipeline_get (pipeline, "in"), "src");

  g_atomic_int_set (&direct_done, FALSE);
  g_test_expect_message ("GStreamer", G_LOG_LEVEL_WARNING,
      "*Trying to join task*");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, to_null_directly,
      pipeline, NULL);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  while (!g_atomic_int_get (&direct_done))
    g_usleep (1000);
  g_test_assert_expected_messages ();
  gst_pad_stop_task (source);
  pipeline_free (pipeline);
}

/* To NULL while the model is being loaded. */
static void
case_while_loading (void)
{
  GstElement *pipeline = slow_new ("identity");
  gint64 start;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  start = g_get_monotonic_time ();
  gst_element_set_state (pipeline, GST_STATE_NULL);
  assert_quick (start);
  pipeline_free (pipeline);
}

static void
repeat (gconstpointer data)
{
  void (*once) (void) = data;

  for (guint i = 0; i < get_repeats (); i++) {
    g_autoptr (Watchdog) watchdog = watchdog_start (WATCHDOG_SECONDS,
        g_test_get_path ());

    once ();
  }
}

int
main (int argc, char **argv)
{
  static const struct {
    const char *path;
    void (*once) (void);
  } cases[] = {
    { "/to-null/null", case_null },
    { "/to-null/ready", case_ready },
    { "/to-null/ready-again", case_ready_again },
    { "/to-null/paused", case_paused },
    { "/to-null/flush", case_flush },
    { "/to-null/remove", case_remove },
    { "/to-null/blocked", case_blocked },
    { "/to-null/flow-flushing", case_flow_flushing },
    { "/to-null/flow-not-linked", case_flow_not_linked },
    { "/to-null/flow-eos", case_flow_eos },
    { "/to-null/flow-error", case_flow_error },
    { "/to-null/sync-handler", case_sync_handler },
    { "/to-null/streaming-thread", case_streaming_thread },
    { "/to-null/streaming-thread-directly", case_streaming_thread_directly },
    { "/to-null/while-loading", case_while_loading },
  };

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  model = pipeline_model_path ();
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    g_test_add_data_func (cases[i].path, cases[i].once, repeat);
  return g_test_run ();
}
