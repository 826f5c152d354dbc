/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* lmprefill: what it gives, the prefix cache, prompts over the context, both
 * ways to stop it, and what it says about the graph behind it. */
#include <glib/gstdio.h>

#include "pipeline-run.h"
#include "tiny-model.h"

#define HEAD "appsrc name=in format=time caps=\"" GST_LM_CAPS_TEXT "\" ! " \
  "lmtokenize model=%s ! lmprefill name=p error-policy=report "
#define SINK "fakesink name=out sync=false async=false"

static const char *model;

static GstElement *
prefill_new (const char *properties)
{
  return pipeline_new (HEAD "%s ! " SINK, model, properties);
}

static char *
repeat (const char *text, guint n)
{
  GString *all = g_string_new (NULL);

  while (n--)
    g_string_append (all, text);
  return g_string_free (all, FALSE);
}

static void
test_state (void)
{
  GstElement *pipeline = prefill_new ("cache-budget=0");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (GstPad) pad =
      gst_element_get_static_pad (pipeline_get (pipeline, "out"), "sink");
  g_autoptr (GstCaps) caps = NULL;
  GstLmRequestMeta *meta;
  RunnelSequence *sequence;
  GstBuffer *buffer;
  guint64 id;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  id = pipeline_send (pipeline, "some words", NULL);
  recorder_wait_buffers (out, 1);
  buffer = recorder_get_buffer (out, 0);
  meta = gst_lm_buffer_get_request_meta (buffer);
  sequence = gst_lm_buffer_peek_state (buffer);
  g_assert_nonnull (sequence);
  g_assert_cmpuint (meta->id, ==, id);
  g_assert_cmpuint (meta->prompt_tokens, ==,
      runnel_sequence_get_length (sequence));
  g_assert_cmpuint (meta->cached_tokens, ==, 0);
  g_assert_cmpuint (gst_buffer_get_size (buffer), ==,
      runnel_sequence_get_kv_bytes (sequence));
  caps = gst_pad_get_current_caps (pad);
  g_assert_cmpstr (gst_lm_caps_get_model (caps), ==,
      runnel_model_get_content_id (meta->model));
  pipeline_free (pipeline);
}

/* A second prompt that begins like the first computes only its own end. */
static void
test_cache (void)
{
  GstElement *pipeline = prefill_new ("cache-budget=16777216");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autofree char *common = repeat ("abcdefgh ", 4);
  g_autofree char *first = g_strconcat (common, "one", NULL);
  g_autofree char *second = g_strconcat (common, "two", NULL);
  GstLmRequestMeta *meta;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, first, NULL);
  pipeline_send (pipeline, second, NULL);
  pipeline_send (pipeline, second, gst_structure_new ("overrides", "use-cache",
          G_TYPE_BOOLEAN, FALSE, NULL));
  recorder_wait_buffers (out, 3);
  meta = gst_lm_buffer_get_request_meta (recorder_get_buffer (out, 1));
  g_assert_cmpuint (meta->cached_tokens, >, 0);
  g_assert_cmpuint (meta->cached_tokens, <, meta->prompt_tokens);
  meta = gst_lm_buffer_get_request_meta (recorder_get_buffer (out, 2));
  g_assert_cmpuint (meta->cached_tokens, ==, 0);
  pipeline_free (pipeline);
}

/* A prompt of more tokens than context-length, by policy. */
static void
test_overflow (void)
{
  GstElement *pipeline = prefill_new ("context-length=16");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autofree char *text = repeat ("q7!z ", 40);
  RunnelSequence *sequence;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, text, NULL);
  pipeline_send (pipeline, text, gst_structure_new ("overrides",
          "overflow-policy", G_TYPE_STRING, "stop", NULL));
  pipeline_send (pipeline, text, gst_structure_new ("overrides",
          "overflow-policy", G_TYPE_STRING, "truncate", "n-keep", G_TYPE_INT, 2,
          NULL));
  recorder_wait_buffers (out, 3);
  g_assert_cmpint (recorder_get_end (out, 0)->finish_reason, ==,
      RUNNEL_FINISH_REASON_ERROR);
  g_assert_nonnull (strstr (recorder_get_end (out, 0)->error, "16"));
  g_assert_cmpint (recorder_get_end (out, 1)->finish_reason, ==,
      RUNNEL_FINISH_REASON_LENGTH);
  sequence = gst_lm_buffer_peek_state (recorder_get_buffer (out, 2));
  g_assert_nonnull (sequence);
  g_assert_cmpuint (runnel_sequence_get_length (sequence), <=, 12);
  pipeline_free (pipeline);
}

static void
test_fail_policy (void)
{
  GstElement *pipeline =
      prefill_new ("context-length=16 error-policy=fail");
  g_autofree char *text = repeat ("q7!z ", 40);
  g_autoptr (GstMessage) message = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, text, NULL);
  message = pipeline_wait_message (pipeline, GST_MESSAGE_ERROR);
  g_assert_cmpstr (GST_MESSAGE_SRC_NAME (message), ==, "p");
  pipeline_free (pipeline);
}

static void
test_max_memory (void)
{
  GstElement *pipeline = prefill_new ("cache-budget=0");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "abc", NULL);
  recorder_wait_buffers (out, 1);
  recorder_clear (out);
  g_object_set (pipeline_get (pipeline, "p"), "max-memory", (guint64) 1, NULL);
  pipeline_send (pipeline, "abc", NULL);
  recorder_wait_markers (out, 1);
  g_assert_cmpint (recorder_get_end (out, 0)->finish_reason, ==,
      RUNNEL_FINISH_REASON_ERROR);
  g_assert_nonnull (strstr (recorder_get_end (out, 0)->error, "max-memory"));
  /* The engine is shared by the tests that follow. */
  g_object_set (pipeline_get (pipeline, "p"), "max-memory", (guint64) 0, NULL);
  recorder_clear (out);
  pipeline_send (pipeline, "abc", NULL);
  recorder_wait_buffers (out, 1);
  g_assert_nonnull (gst_lm_buffer_peek_state (recorder_get_buffer (out, 0)));
  pipeline_free (pipeline);
}

/* Weights over the limit are refused before they are loaded. */
static void
test_max_memory_of_weights (void)
{
  GstElement *pipeline = prefill_new ("max-memory=1");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GError) error = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "abc", NULL);
  message = pipeline_wait_message (pipeline, GST_MESSAGE_ERROR);
  gst_message_parse_error (message, &error, NULL);
  g_assert_nonnull (strstr (error->message, "max-memory"));
  pipeline_free (pipeline);
}

static void
test_cancel_before (void)
{
  GstElement *pipeline = prefill_new ("");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (GstBuffer) buffer = gst_buffer_new_memdup ("abc", 3);
  guint64 id = gst_lm_request_id_new ();
  GstFlowReturn ret;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "abc", NULL);
  recorder_wait_buffers (out, 1);
  pipeline_cancel (pipeline, "out", id);
  gst_lm_buffer_add_request_meta (buffer, id);
  g_signal_emit_by_name (pipeline_get (pipeline, "in"), "push-buffer", buffer,
      &ret);
  recorder_wait_buffers (out, 2);
  g_assert_cmpint (recorder_get_end (out, 0)->finish_reason, ==,
      RUNNEL_FINISH_REASON_CANCELLED);
  g_assert_cmpuint (recorder_get_end (out, 0)->id, ==, id);
  /* It was that one alone. */
  pipeline_send (pipeline, "abc", NULL);
  recorder_wait_buffers (out, 3);
  g_assert_cmpuint (recorder_get_n_markers (out), ==, 1);
  pipeline_free (pipeline);
}

typedef struct {
  GstElement *pipeline;
  guint64 id;
  gboolean flush;
  gint n_progress;
} Interruption;

/* Comes in the streaming thread, between two chunks. */
static GstBusSyncReply
interrupt (GstBus *bus, GstMessage *message, gpointer user_data)
{
  Interruption *self = user_data;
  GstProgressType type;
  g_autofree char *code = NULL;

  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_PROGRESS)
    return GST_BUS_PASS;
  gst_message_parse_progress (message, &type, &code, NULL);
  if (type == GST_PROGRESS_TYPE_CONTINUE && g_str_equal (code, "prefill")
      && self->n_progress++ == 2) {
    if (self->flush) {
      g_autoptr (GstPad) pad = gst_element_get_static_pad (pipeline_get
          (self->pipeline, "p"), "sink");

      gst_pad_send_event (pad, gst_event_new_flush_start ());
    } else {
      pipeline_cancel (self->pipeline, "out", self->id);
    }
  }
  return GST_BUS_PASS;
}

static GstElement *
interrupted_new (Interruption *self, const char *tail)
{
  GstElement *pipeline = pipeline_new (HEAD
      "chunk=1 use-cache=false ! %s", model, tail);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  self->pipeline = pipeline;
  gst_bus_set_sync_handler (bus, interrupt, self, NULL);
  return pipeline;
}

static guint64
send_with_id (GstElement *pipeline, guint64 id)
{
  g_autofree char *text = repeat ("q7!z ", 8);
  GstBuffer *buffer = gst_buffer_new_memdup (text, strlen (text));
  GstFlowReturn ret;

  gst_lm_buffer_add_request_meta (buffer, id);
  g_signal_emit_by_name (pipeline_get (pipeline, "in"), "push-buffer", buffer,
      &ret);
  gst_buffer_unref (buffer);
  return id;
}

static void
test_cancel_while (void)
{
  Interruption interruption = { .id = gst_lm_request_id_new () };
  GstElement *pipeline = interrupted_new (&interruption, SINK);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  send_with_id (pipeline, interruption.id);
  recorder_wait_markers (out, 1);
  g_assert_cmpint (recorder_get_end (out, 0)->finish_reason, ==,
      RUNNEL_FINISH_REASON_CANCELLED);
  /* It took effect within one chunk. */
  g_assert_cmpint (interruption.n_progress, ==, 3);
  pipeline_free (pipeline);
}

/* Behind a tee the event of one branch leaves the others their state. */
static void
test_cancel_shared (void)
{
  Interruption interruption = { .id = gst_lm_request_id_new () };
  GstElement *pipeline = interrupted_new (&interruption,
      "tee name=t ! queue ! " SINK "  t. ! queue ! fakesink name=other "
      "sync=false async=false");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  send_with_id (pipeline, interruption.id);
  recorder_wait_buffers (out, 1);
  g_assert_nonnull (gst_lm_buffer_peek_state (recorder_get_buffer (out, 0)));
  g_assert_cmpint (interruption.n_progress, >, 3);
  pipeline_free (pipeline);
}

static void
test_flush (void)
{
  Interruption interruption = { .flush = TRUE };
  GstElement *pipeline = interrupted_new (&interruption, SINK);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (GstPad) pad =
      gst_element_get_static_pad (pipeline_get (pipeline, "p"), "sink");
  g_autoptr (Watchdog) watchdog = watchdog_start (60, g_test_get_path ());

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  send_with_id (pipeline, gst_lm_request_id_new ());
  while (gst_pad_get_last_flow_return (GST_PAD_PEER (pad)) !=
      GST_FLOW_FLUSHING)
    g_usleep (1000);
  g_assert_cmpint (interruption.n_progress, ==, 3);
  g_assert_cmpuint (recorder_get_n_buffers (out), ==, 0);
  pipeline_free (pipeline);
}

/* Branches of a tee without queues are warned of, once; with queues not. */
static guint
count_warnings (const char *tail)
{
  GstElement *pipeline = pipeline_new (HEAD "! tee name=t  %s", model, tail);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  guint n;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "abc", NULL);
  pipeline_send (pipeline, "abc", NULL);
  recorder_wait_buffers (out, 2);
  n = pipeline_count_messages (pipeline, GST_MESSAGE_WARNING);
  pipeline_free (pipeline);
  return n;
}

static void
test_queues (void)
{
  g_assert_cmpuint (count_warnings ("t. ! queue ! " SINK "  t. ! queue ! "
          "fakesink sync=false async=false"), ==, 0);
  g_assert_cmpuint (count_warnings ("t. ! queue ! " SINK "  t. ! identity ! "
          "fakesink sync=false async=false"), ==, 1);
  g_assert_cmpuint (count_warnings ("t. ! " SINK), ==, 0);
}

typedef struct {
  gint n_caps;
} CapsCount;

static GstPadProbeReturn
count_caps (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  CapsCount *self = user_data;

  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_CAPS)
    self->n_caps++;
  return GST_PAD_PROBE_OK;
}

#define REPLY "lmprefill name=p ! lmdecode temperature=0 max-tokens=6 " \
  "ignore-eos=true ! " SINK

/* Two models of one vocabulary take turns in one lmprefill: the state caps
 * change with the model, and each reply is that of its own. */
static void
test_model_change (void)
{
  TinyModel kind = TINY_MODEL_DEFAULT;
  g_autofree char *second = NULL;
  const char *paths[2] = { model, NULL };
  GArray *alone[2];
  GstElement *pipeline;
  g_autoptr (Recorder) out = NULL;
  g_autoptr (GstPad) pad = NULL;
  CapsCount count = { 0 };

  kind.seed = 2;
  paths[1] = second = tiny_model_write (&kind);
  for (guint i = 0; i < 2; i++) {
    GstElement *single = pipeline_new ("lmprompt text=hello ! lmtokenize "
        "model=%s ! " REPLY, paths[i]);
    g_autoptr (Recorder) single_out = recorder_new (single, "out");

    pipeline_run (single);
    alone[i] = recorder_get_reply (single_out, 0);
    pipeline_free (single);
  }

  pipeline = pipeline_new ("lmprompt text=hello ! lmtokenize model=%s ! f.  "
      "lmprompt text=hello ! lmtokenize model=%s ! f.  funnel name=f ! "
      REPLY, paths[0], paths[1]);
  out = recorder_new (pipeline, "out");
  pad = gst_element_get_static_pad (pipeline_get (pipeline, "p"), "src");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, count_caps,
      &count, NULL);
  pipeline_run (pipeline);
  g_assert_cmpuint (recorder_get_n_markers (out), ==, 2);
  g_assert_cmpint (count.n_caps, ==, 2);
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GArray) reply = recorder_get_reply (out, i);
    gboolean is_second = g_str_equal (runnel_model_get_path
        (recorder_get_end (out, i)->model), second);

    g_assert_cmpmem (reply->data, reply->len * 4, alone[is_second]->data,
        alone[is_second]->len * 4);
  }
  pipeline_free (pipeline);
  g_array_unref (alone[0]);
  g_array_unref (alone[1]);
  g_unlink (second);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  model = pipeline_model_path ();
  g_test_add_func ("/prefill/state", test_state);
  g_test_add_func ("/prefill/cache", test_cache);
  g_test_add_func ("/prefill/overflow", test_overflow);
  g_test_add_func ("/prefill/fail-policy", test_fail_policy);
  g_test_add_func ("/prefill/max-memory", test_max_memory);
  g_test_add_func ("/prefill/max-memory-of-weights",
      test_max_memory_of_weights);
  g_test_add_func ("/prefill/cancel-before", test_cancel_before);
  g_test_add_func ("/prefill/cancel-while", test_cancel_while);
  g_test_add_func ("/prefill/cancel-shared", test_cancel_shared);
  g_test_add_func ("/prefill/flush", test_flush);
  g_test_add_func ("/prefill/queues", test_queues);
  g_test_add_func ("/prefill/model-change", test_model_change);
  return g_test_run ();
}
