/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* Case C33: EOS, empty prompts, draining. Every prompt ends with exactly one
 * marked buffer, in order, and EOS comes after the last. */
#include "pipeline-run.h"

#define WATCHDOG_SECONDS 60

static const char *model;

static GstElement *
requests_new (const char *properties)
{
  return pipeline_new ("appsrc name=in format=time caps=\"" GST_LM_CAPS_TEXT
      "\" ! lmtokenize model=%s ! lmprefill ! lmdecode name=d temperature=0 %s "
      "! lmdetokenize ! fakesink name=out sync=false async=false", model,
      properties);
}

/* Plays @pipeline with @prompts and EOS; the recorder has all that came. */
static Recorder *
play (GstElement *pipeline, const char *const *prompts)
{
  g_autoptr (Watchdog) watchdog =
      watchdog_start (WATCHDOG_SECONDS, g_test_get_path ());
  Recorder *out = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  for (; *prompts; prompts++)
    pipeline_send (pipeline, *prompts, NULL);
  pipeline_end (pipeline);
  pipeline_run (pipeline);
  g_assert_true (recorder_get_eos (out));
  return out;
}

static void
assert_replies (const char *properties, const char *const *prompts)
{
  GstElement *pipeline = requests_new (properties);
  g_autoptr (Recorder) out = play (pipeline, prompts);
  guint n = g_strv_length ((char **) prompts);
  guint n_buffers = recorder_get_n_buffers (out);
  guint64 id = 0;

  g_assert_cmpuint (recorder_get_n_markers (out), ==, n);
  for (guint i = 0; i < n; i++) {
    GstLmRequestMeta *meta = recorder_get_end (out, i);

    g_assert_cmpint (meta->finish_reason, !=, RUNNEL_FINISH_REASON_NONE);
    g_assert_cmpint (meta->finish_reason, !=, RUNNEL_FINISH_REASON_ERROR);
    g_assert_cmpuint (meta->id, >, id);
    id = meta->id;
  }
  if (n_buffers > 0)
    g_assert_true (GST_BUFFER_FLAG_IS_SET (recorder_get_buffer (out,
                n_buffers - 1), GST_BUFFER_FLAG_MARKER));
  pipeline_free (pipeline);
}

static void
test_one (void)
{
  assert_replies ("max-tokens=5", (const char *[]) { "hello", NULL });
}

static void
test_none (void)
{
  assert_replies ("max-tokens=5", (const char *[]) { NULL });
}

static void
test_empty (void)
{
  assert_replies ("max-tokens=5", (const char *[]) { "", NULL });
}

static void
test_blanks (void)
{
  assert_replies ("max-tokens=5", (const char *[]) { "  ", "\n", NULL });
}

static void
test_several (void)
{
  assert_replies ("max-tokens=5",
      (const char *[]) { "a", "b", "", "c", "d", NULL });
}

static void
test_zero_tokens (void)
{
  assert_replies ("max-tokens=0", (const char *[]) { "a", "b", NULL });
}

/* The tiny model's context is short: the reply ends there. */
static void
test_no_limit (void)
{
  assert_replies ("max-tokens=-1 ignore-eos=true",
      (const char *[]) { "a", "b", NULL });
}

/* The model says its end token first: no token, and yet an end. */
static void
test_end_at_once (void)
{
  GstElement *pipeline = requests_new ("max-tokens=1 ignore-eos=true");
  g_autoptr (Recorder) out = NULL;
  g_autoptr (RunnelModel) opened =
      runnel_model_open (model, RUNNEL_LOAD_MODE_MAP, NULL);
  gint32 eos =
      runnel_tokenizer_get_eos (runnel_model_get_tokenizer (opened, NULL));
  g_autofree char *bias = g_strdup_printf ("bias,%d=1000000.0", eos);

  gst_util_set_object_arg (G_OBJECT (pipeline_get (pipeline, "d")),
      "logit-bias", bias);
  g_object_set (pipeline_get (pipeline, "d"), "max-tokens", 9, "ignore-eos",
      FALSE, NULL);
  out = play (pipeline, (const char *[]) { "hello", "again", NULL });
  g_assert_cmpuint (recorder_get_n_markers (out), ==, 2);
  for (guint i = 0; i < 2; i++) {
    g_assert_cmpint (recorder_get_end (out, i)->finish_reason, ==,
        RUNNEL_FINISH_REASON_STOP);
    g_assert_cmpuint (recorder_get_end (out, i)->completion_tokens, ==, 0);
  }
  pipeline_free (pipeline);
}

/* A prompt in three buffers, under framing=stream, is one request. */
static void
test_in_parts (void)
{
  GstElement *pipeline = pipeline_new ("appsrc name=in format=time caps=\""
      GST_LM_CAPS_TEXT "\" ! lmtokenize framing=stream model=%s ! lmprefill ! "
      "lmdecode temperature=0 max-tokens=5 ignore-eos=true ! tee name=t ! "
      "fakesink name=out sync=false async=false", model);
  GstElement *whole = pipeline_new ("appsrc name=in format=time caps=\""
      GST_LM_CAPS_TEXT "\" ! lmtokenize model=%s ! lmprefill ! "
      "lmdecode temperature=0 max-tokens=5 ignore-eos=true ! "
      "fakesink name=out sync=false async=false", model);
  g_autoptr (Recorder) parts =
      play (pipeline, (const char *[]) { "he", "l\xc3", "\xa4lo", NULL });
  g_autoptr (Recorder) one = play (whole, (const char *[]) { "hel\xc3\xa4lo",
          NULL });
  g_autoptr (GArray) a = recorder_get_reply (parts, 0);
  g_autoptr (GArray) b = recorder_get_reply (one, 0);

  g_assert_cmpuint (recorder_get_n_markers (parts), ==, 1);
  g_assert_cmpuint (recorder_get_n_markers (one), ==, 1);
  g_assert_cmpmem (a->data, a->len * 4, b->data, b->len * 4);
  pipeline_free (pipeline);
  pipeline_free (whole);
}

static void
test_bad_max_tokens (void)
{
  GstElement *element =
      gst_object_ref_sink (gst_element_factory_make ("lmdecode", NULL));
  gint max_tokens;

  g_test_expect_message ("GLib-GObject", G_LOG_LEVEL_WARNING,
      "*invalid or out of range*max-tokens*");
  g_object_set (element, "max-tokens", -2, NULL);
  g_test_assert_expected_messages ();
  g_object_get (element, "max-tokens", &max_tokens, NULL);
  g_assert_cmpint (max_tokens, ==, -1);
  gst_object_unref (element);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  model = pipeline_model_path ();
  g_test_add_func ("/requests/one", test_one);
  g_test_add_func ("/requests/none", test_none);
  g_test_add_func ("/requests/empty", test_empty);
  g_test_add_func ("/requests/blanks", test_blanks);
  g_test_add_func ("/requests/several", test_several);
  g_test_add_func ("/requests/zero-tokens", test_zero_tokens);
  g_test_add_func ("/requests/no-limit", test_no_limit);
  g_test_add_func ("/requests/end-at-once", test_end_at_once);
  g_test_add_func ("/requests/in-parts", test_in_parts);
  g_test_add_func ("/requests/bad-max-tokens", test_bad_max_tokens);
  return g_test_run ();
}
