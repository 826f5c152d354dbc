/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* lmgate: both ways, one end of a reply each, gaps, pairing, what is wrong,
 * and cancelling. */
#include <string.h>

#include "pipeline-run.h"

#define STATE "appsrc name=in format=time caps=\"" GST_LM_CAPS_TEXT "\" ! " \
  "lmchat name=chat ! lmtokenize model=%s ! lmprefill ! tee name=t " \
  "t. ! queue ! gate.sink "
#define DECIDE "t. ! queue ! lmdecide name=decide question-type=yesno " \
  "error-policy=report instructions=\"Is it?\" ! gate.decision "
#define REST "gate.src ! lmdecode max-tokens=4 temperature=0 ! " \
  "lmdetokenize ! funnel name=f gate.text ! f. " \
  "f. ! fakesink name=out sync=false async=false"

static GstElement *
gate_new (const char *properties)
{
  g_autofree char *launch = g_strdup_printf ("%slmgate name=gate "
      "error-policy=report %s %s", STATE DECIDE, properties, REST);

  return pipeline_new (launch, pipeline_model_path ());
}

static void
test_both_ways (void)
{
  GstElement *pipeline = gate_new ("text=\"Not mine.\"");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  guint64 ids[4];

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 4; i++) {
    g_autofree char *text = NULL;
    GstLmRequestMeta *meta;

    /* No probability is 0 or 1 here: the threshold alone decides. */
    g_object_set (pipeline_get (pipeline, "gate"), "threshold",
        i % 2 ? 1.0 : 0.0, NULL);
    ids[i] = pipeline_send (pipeline, "hello", NULL);
    recorder_wait_markers (out, 1);
    meta = recorder_get_end (out, 0);
    text = recorder_get_text (out);
    g_assert_cmpuint (meta->id, ==, ids[i]);
    g_assert_true (meta->is_reply);
    g_assert_cmpuint (recorder_get_n_markers (out), ==, 1);
    g_assert_cmpint (strcmp (text, "Not mine.") == 0, ==, i % 2);
    if (i % 2)
      g_assert_cmpint (meta->finish_reason, ==, RUNNEL_FINISH_REASON_STOP);
    recorder_clear (out);
  }
  pipeline_free (pipeline);
}

/* The unused branch gets a gap for each request, and no marked buffer. */
static void
test_gaps (void)
{
  g_autofree char *launch = g_strconcat (STATE DECIDE, "lmgate name=gate "
      "threshold=0 gate.src ! fakesink name=src async=false "
      "gate.text ! fakesink name=text async=false", NULL);
  GstElement *pipeline = pipeline_new (launch, pipeline_model_path ());
  g_autoptr (Recorder) src = recorder_new (pipeline, "src");
  g_autoptr (Recorder) text = recorder_new (pipeline, "text");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "hello", NULL);
  recorder_wait_buffers (src, 1);
  g_assert_nonnull (gst_lm_buffer_peek_state (recorder_get_buffer (src, 0)));
  g_assert_cmpuint (recorder_get_n_gaps (text), ==, 1);
  g_assert_cmpuint (recorder_get_n_buffers (text), ==, 0);
  g_object_set (pipeline_get (pipeline, "gate"), "threshold", 1.0, NULL);
  pipeline_send (pipeline, "hello", NULL);
  recorder_wait_markers (text, 1);
  g_assert_cmpuint (recorder_get_n_gaps (src), ==, 1);
  g_assert_cmpuint (recorder_get_n_buffers (src), ==, 1);
  pipeline_free (pipeline);
}

/* A decision that failed, options that are not there, an empty prompt: one
 * marked buffer each, and the next request is not touched. */
static void
test_failures (void)
{
  GstElement *pipeline = gate_new ("threshold=1 text=No pass=\"<yes,maybe>\"");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "hello", NULL);
  recorder_wait_markers (out, 1);
  g_assert_nonnull (strstr (recorder_get_end (out, 0)->error, "'maybe'"));
  gst_util_set_object_arg (G_OBJECT (pipeline_get (pipeline, "gate")), "pass",
      "<yes>");
  pipeline_send (pipeline, "hello", gst_structure_new ("overrides",
          "questions", G_TYPE_STRING, "{}", NULL));
  recorder_wait_markers (out, 2);
  g_assert_cmpint (recorder_get_end (out, 1)->finish_reason, ==,
      RUNNEL_FINISH_REASON_ERROR);
  pipeline_send (pipeline, "hello", NULL);
  recorder_wait_markers (out, 3);
  g_assert_cmpint (recorder_get_end (out, 2)->finish_reason, ==,
      RUNNEL_FINISH_REASON_STOP);
  g_object_set (pipeline_get (pipeline, "gate"), "question", "other", NULL);
  pipeline_send (pipeline, "hello", NULL);
  recorder_wait_markers (out, 4);
  g_assert_nonnull (strstr (recorder_get_end (out, 3)->error, "'other'"));
  g_assert_cmpuint (recorder_get_n_markers (out), ==, 4);
  pipeline_free (pipeline);
}

/* All of a queue of requests, in their order, then EOS. */
static void
test_many (void)
{
  GstElement *pipeline = gate_new ("threshold=1 text=No");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  guint64 ids[8];

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 8; i++)
    ids[i] = pipeline_send (pipeline, "hello", NULL);
  recorder_wait_markers (out, 8);
  for (guint i = 0; i < 8; i++)
    g_assert_cmpuint (recorder_get_end (out, i)->id, ==, ids[i]);
  pipeline_end (pipeline);
  gst_message_unref (pipeline_wait_message (pipeline, GST_MESSAGE_EOS));
  pipeline_free (pipeline);
}

/* In the middle of anything. */
static void
test_to_null (void)
{
  for (guint i = 0; i < 10; i++) {
    GstElement *pipeline = gate_new ("text=No");

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    pipeline_send (pipeline, "hello", NULL);
    g_usleep (i * 3000);
    pipeline_free (pipeline);
  }
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gate/both-ways", test_both_ways);
  g_test_add_func ("/gate/gaps", test_gaps);
  g_test_add_func ("/gate/failures", test_failures);
  g_test_add_func ("/gate/many", test_many);
  g_test_add_func ("/gate/to-null", test_to_null);
  return g_test_run ();
}
