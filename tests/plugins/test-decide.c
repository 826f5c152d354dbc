/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* lmdecide: what it gives, where its questions come from, that it shares a
 * state, that the beginning of a reply makes way, and bad questions. */
#include <glib/gstdio.h>
#include <string.h>

#include "pipeline-run.h"

#define HEAD "appsrc name=in format=time caps=\"" GST_LM_CAPS_TEXT "\" ! "
#define STATE HEAD "lmchat name=chat ! lmtokenize model=%s ! lmprefill name=p "
#define SINK "fakesink name=out sync=false async=false"
#define ASKS "instructions=\"What is it?\" options=\"<bill,card,fraud>\""

static char *
decide (const char *launch, GstStructure *overrides)
{
  GstElement *pipeline = pipeline_new (launch, pipeline_model_path ());
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  GstLmRequestMeta *meta;
  char *json;
  guint64 id;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  id = pipeline_send (pipeline, "where is my card?", overrides);
  recorder_wait_markers (out, 1);
  meta = recorder_get_end (out, 0);
  g_assert_cmpuint (meta->id, ==, id);
  g_assert_cmpint (meta->finish_reason, ==, RUNNEL_FINISH_REASON_STOP);
  g_assert_null (meta->model);
  json = recorder_get_text (out);
  pipeline_free (pipeline);
  /* Time is no part of an answer. */
  *strstr (json, "\"seconds\"") = '\0';
  return json;
}

static void
test_answer (void)
{
  g_autofree char *json = decide (STATE "! lmdecide " ASKS " ! " SINK, NULL);

  g_assert_true (g_str_has_prefix (json,
      "{\"answers\":{\"decision\":{\"type\":\"choice\",\"choice\":\""));
  g_assert_nonnull (strstr (json, "\"probabilities\":{\"bill\":"));
}

/* The same question from each place, the first of which counts. */
static void
test_sources (void)
{
  const char *question = "{\"questions\":{\"decision\":{\"instructions\":"
      "\"What is it?\",\"criteria\":[\"bill\",\"card\",\"fraud\"]}}}";
  g_autofree char *path = g_build_filename (g_get_tmp_dir (),
      "runnel-questions-XXXXXX", NULL);
  g_autofree char *launch = NULL;
  g_autofree char *single = decide (STATE "! lmdecide " ASKS " ! " SINK, NULL);
  g_autofree char *request = decide (STATE "! lmdecide instructions=\"Other?\""
      " options=\"<x,y>\" ! " SINK, gst_structure_new ("overrides",
          "questions", G_TYPE_STRING, question, NULL));
  g_autofree char *options = decide (STATE "! lmdecide "
      "instructions=\"What is it?\" options=\"<x,y>\" ! " SINK,
      gst_structure_new ("overrides", "options", G_TYPE_STRV,
          ((const char *[]) { "bill", "card", "fraud", NULL }), NULL));
  g_autofree char *file = NULL;

  close (g_mkstemp (path));
  g_assert_true (g_file_set_contents (path, question, -1, NULL));
  launch = g_strdup_printf ("%s ! lmdecide location=%s instructions=x ! %s",
      STATE, path, SINK);
  file = decide (launch, NULL);
  g_unlink (path);
  g_assert_cmpstr (request, ==, single);
  g_assert_cmpstr (options, ==, single);
  g_assert_cmpstr (file, ==, single);
}

/* With and without the beginning of a reply: the question takes its place. */
static void
test_generation_prompt (void)
{
  g_autofree char *with = decide (STATE "! lmdecide " ASKS " ! " SINK, NULL);
  g_autofree char *without = decide (STATE "! lmdecide " ASKS " ! " SINK,
      gst_structure_new ("overrides", "add-generation-prompt", G_TYPE_BOOLEAN,
          FALSE, NULL));

  g_assert_cmpstr (with, ==, without);
}

/* The same answer alone and beside a reply, the same reply alone and beside a
 * decision. */
static void
test_shared (void)
{
  GstElement *pipeline = pipeline_new (STATE "! tee name=t "
      "t. ! queue ! lmdecide " ASKS " ! fakesink name=decision async=false "
      "t. ! queue ! lmdecode max-tokens=8 temperature=0 ! " SINK,
      pipeline_model_path ());
  GstElement *plain = pipeline_new (STATE "! lmdecode max-tokens=8 "
      "temperature=0 ! " SINK, pipeline_model_path ());
  g_autoptr (Recorder) decision = recorder_new (pipeline, "decision");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (Recorder) alone = recorder_new (plain, "out");
  g_autofree char *expected = decide (STATE "! lmdecide " ASKS " ! " SINK,
      NULL);
  g_autofree char *json = NULL;
  g_autoptr (GArray) reply = NULL, expected_reply = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  gst_element_set_state (plain, GST_STATE_PLAYING);
  pipeline_send (pipeline, "where is my card?", NULL);
  pipeline_send (plain, "where is my card?", NULL);
  recorder_wait_markers (decision, 1);
  recorder_wait_markers (out, 1);
  recorder_wait_markers (alone, 1);
  json = recorder_get_text (decision);
  *strstr (json, "\"seconds\"") = '\0';
  g_assert_cmpstr (json, ==, expected);
  reply = recorder_get_reply (out, 0);
  expected_reply = recorder_get_reply (alone, 0);
  g_assert_cmpmem (reply->data, reply->len * sizeof (gint32),
      expected_reply->data, expected_reply->len * sizeof (gint32));
  pipeline_free (pipeline);
  pipeline_free (plain);
}

/* The same answer, computed by another engine than that of the state. */
static void
test_engine (void)
{
  g_autofree char *expected = decide (STATE "! lmdecide " ASKS " ! " SINK,
      NULL);
  g_autofree char *scalar = decide (STATE "! lmdecide backend=cpu threads=2 "
      "kernels=scalar " ASKS " ! " SINK, NULL);

  g_assert_cmpstr (scalar, ==, expected);
}

/* Compared with itself, a text says nothing: all options are equal. */
static void
test_prior_location (void)
{
  g_autofree char *path = g_build_filename (g_get_tmp_dir (),
      "runnel-prior-XXXXXX", NULL);
  g_autofree char *launch = NULL, *json = NULL;

  close (g_mkstemp (path));
  g_assert_true (g_file_set_contents (path, "where is my card?\n", -1, NULL));
  launch = g_strdup_printf ("%s ! lmdecide prior-location=%s "
      "instructions=\"What is it?\" options=\"<bill,card>\" ! %s", STATE, path,
      SINK);
  json = decide (launch, NULL);
  g_unlink (path);
  g_assert_nonnull (strstr (json, "{\"bill\":0.5,\"card\":0.5}"));
}

/* Options before the states: the second one finds them read. */
static void
test_static (void)
{
  GstElement *pipeline = pipeline_new (STATE "! lmdecide layout=static "
      ASKS " ! " SINK, pipeline_model_path ());
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autofree char *expected = decide (STATE "! lmdecide layout=static " ASKS
      " ! " SINK, NULL);
  g_autofree char *json = NULL;
  char *probabilities;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "hello", NULL);
  pipeline_send (pipeline, "where is my card?", NULL);
  recorder_wait_markers (out, 2);
  json = recorder_get_text (out);
  /* What it cost differs. */
  *strstr (expected, "\"usage\"") = '\0';
  probabilities = strstr (json + 1, "{\"answers\"");
  g_assert_true (g_str_has_prefix (probabilities, expected));
  pipeline_free (pipeline);
}

/* ---- What is wrong ------------------------------------------------------- */

static void
test_bad_properties (void)
{
  static const char *const cases[][2] = {
    { "instructions=x", "0 options" },
    { "instructions=x options=\"<a,a>\"", "twice" },
    { "instructions=x options=\"<a,\\\"\\\">\"", "empty" },
    { "location=/does/not/exist", "/does/not/exist" },
    { "instructions=x options=\"<a,b>\" prior-location=/does/not/exist",
      "/does/not/exist" },
    { "questions=\"[]\"", "questions" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstElement *pipeline = pipeline_new (STATE "! lmdecide %s ! " SINK,
        pipeline_model_path (), cases[i][0]);
    g_autofree char *error = pipeline_run_to_error (pipeline);

    g_assert_nonnull (strstr (error, cases[i][1]));
    pipeline_free (pipeline);
  }
}

/* A request fails, the next one does not. */
static void
test_report (void)
{
  GstElement *pipeline = pipeline_new (STATE "! lmdecide "
      "error-policy=report ! " SINK, pipeline_model_path ());
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  GstLmRequestMeta *meta;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "hello", NULL);
  pipeline_send (pipeline, "hello", gst_structure_new ("overrides",
          "questions", G_TYPE_STRING, "{\"questions\":3}", NULL));
  pipeline_send (pipeline, "hello", gst_structure_new ("overrides",
          "instructions", G_TYPE_STRING, "Urgent?", "question-type",
          G_TYPE_STRING, "yesno", NULL));
  recorder_wait_markers (out, 3);
  meta = recorder_get_end (out, 0);
  g_assert_cmpint (meta->finish_reason, ==, RUNNEL_FINISH_REASON_ERROR);
  g_assert_nonnull (strstr (meta->error, "nothing to decide"));
  g_assert_null (meta->model);
  meta = recorder_get_end (out, 1);
  g_assert_nonnull (strstr (meta->error, "no object 'questions'"));
  meta = recorder_get_end (out, 2);
  g_assert_cmpint (meta->finish_reason, ==, RUNNEL_FINISH_REASON_STOP);
  pipeline_free (pipeline);
}

static void
test_cancel (void)
{
  GstElement *pipeline = pipeline_new (STATE "! lmdecide " ASKS " ! " SINK,
      pipeline_model_path ());
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  guint64 id;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  id = pipeline_send (pipeline, "hello", NULL);
  recorder_wait_markers (out, 1);
  /* The next one, before it is there. */
  pipeline_cancel (pipeline, "out", id + 1);
  g_assert_cmpuint (pipeline_send (pipeline, "hello", NULL), ==, id + 1);
  recorder_wait_markers (out, 2);
  g_assert_cmpint (recorder_get_end (out, 1)->finish_reason, ==,
      RUNNEL_FINISH_REASON_CANCELLED);
  pipeline_free (pipeline);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/decide/answer", test_answer);
  g_test_add_func ("/decide/sources", test_sources);
  g_test_add_func ("/decide/generation-prompt", test_generation_prompt);
  g_test_add_func ("/decide/shared", test_shared);
  g_test_add_func ("/decide/engine", test_engine);
  g_test_add_func ("/decide/prior-location", test_prior_location);
  g_test_add_func ("/decide/static", test_static);
  g_test_add_func ("/decide/bad-properties", test_bad_properties);
  g_test_add_func ("/decide/report", test_report);
  g_test_add_func ("/decide/cancel", test_cancel);
  return g_test_run ();
}
