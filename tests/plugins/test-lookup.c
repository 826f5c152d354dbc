/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * lmlookup in pipelines: replies are those without it, alone, behind a tee,
 * on another engine and from the prefix cache; and what the last buffer says
 * of drafting.
 */
#include "pipeline-run.h"

#define TEXT "one two three four, one two three four, one two three four, "
#define HEAD "lmprompt text=\"" TEXT "\" ! lmtokenize model=%s ! %s"
#define DECODE "lmdecode name=%s temperature=%s seed=5 max-tokens=40 " \
    "ignore-eos=true "

/* The reply at the sink pad of @element, its end in @ret_end. */
static GArray *
get_reply (GstElement *pipeline, const char *element,
           GstLmRequestMeta **ret_end)
{
  g_autoptr (Recorder) recorder = recorder_new (pipeline, element);

  pipeline_run (pipeline);
  g_assert_cmpuint (recorder_get_n_markers (recorder), ==, 1);
  if (ret_end)
    *ret_end = gst_lm_request_meta_copy (recorder_get_end (recorder, 0));
  return recorder_get_reply (recorder, 0);
}

static GArray *
run_one (const char *drafter, const char *temperature, const char *more,
         GstLmRequestMeta **ret_end)
{
  GstElement *pipeline = pipeline_new (HEAD "lmprefill ! " DECODE "%s ! "
      "fakesink name=out", pipeline_model_path (), drafter, "d", temperature,
      more);
  GArray *reply = get_reply (pipeline, "out", ret_end);

  pipeline_free (pipeline);
  return reply;
}

static void
assert_equal (const GArray *a, const GArray *b)
{
  g_assert_cmpuint (a->len, >, 0);
  g_assert_cmpmem (a->data, a->len * sizeof (gint32), b->data,
      b->len * sizeof (gint32));
}

static void
test_replies (void)
{
  static const char *const temperatures[] = { "0", "1" };
  static const char *const ways[] = {
    "", "draft-adaptive=false", "draft-adaptive=false draft-max=3",
    "draft-adaptive=false threads=2", "draft-max=0",
    "draft-adaptive=false draft-choice=longest",
  };

  for (guint t = 0; t < G_N_ELEMENTS (temperatures); t++) {
    g_autoptr (GArray) plain = run_one ("", temperatures[t], "", NULL);

    for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
      g_autoptr (GArray) reply = run_one ("lmlookup ngram-min=1 ! ",
          temperatures[t], ways[i], NULL);

      g_test_message ("temperature %s, %s", temperatures[t], ways[i]);
      assert_equal (plain, reply);
    }
  }
}

/* A reply that repeats itself has guesses that are right. */
static void
test_usage (void)
{
  GstLmRequestMeta *plain, *drafted;
  g_autoptr (GArray) a = run_one ("", "0", "logit-bias=bias,5=100", &plain);
  g_autoptr (GArray) b = run_one ("lmlookup ! ", "0",
      "logit-bias=bias,5=100 draft-adaptive=false", &drafted);

  assert_equal (a, b);
  g_assert_cmpuint (plain->draft_blocks, ==, 0);
  g_assert_cmpuint (plain->proposed_tokens, ==, 0);
  g_assert_cmpuint (plain->verify_time, ==, 0);
  g_assert_cmpuint (drafted->completion_tokens, ==, 40);
  g_assert_cmpuint (drafted->draft_blocks, <=, 5);
  g_assert_cmpuint (drafted->accepted_tokens, >=, 30);
  g_assert_cmpuint (drafted->accepted_tokens, <=, drafted->proposed_tokens);
  g_assert_cmpuint (drafted->verify_time, >, 0);
  gst_lm_request_meta_free (plain);
  gst_lm_request_meta_free (drafted);
}

static void
test_tee (void)
{
  g_autoptr (GArray) greedy = run_one ("", "0", "", NULL);
  g_autoptr (GArray) drawn = run_one ("", "1", "", NULL);
  GstElement *pipeline = pipeline_new (HEAD "lmprefill ! tee name=t  "
      "t. ! queue ! " DECODE "draft-adaptive=false ! fakesink name=a  "
      "t. ! queue ! " DECODE "draft-adaptive=false ! fakesink name=b",
      pipeline_model_path (), "lmlookup ngram-min=1 ! ", "d", "0", "e", "1");
  g_autoptr (Recorder) a = recorder_new (pipeline, "a");
  g_autoptr (Recorder) b = recorder_new (pipeline, "b");
  g_autoptr (GArray) first = NULL, second = NULL;

  pipeline_run (pipeline);
  first = recorder_get_reply (a, 0);
  second = recorder_get_reply (b, 0);
  assert_equal (first, greedy);
  assert_equal (second, drawn);
  g_assert_cmpuint (recorder_get_end (b, 0)->draft_blocks, >, 0);
  pipeline_free (pipeline);
}

/* C25: what an earlier request said is not looked up for a later one. */
static void
test_requests (void)
{
  static const char *const texts[] = { TEXT TEXT TEXT, "alpha beta alpha b" };
  guint proposed[2];

  for (guint n = 1; n <= 3; n += 2) {
    GstElement *pipeline = pipeline_new ("appsrc name=in format=time caps=\""
        GST_LM_CAPS_TEXT "\" ! lmtokenize model=%s ! lmlookup ngram-min=1 ! "
        "lmprefill ! " DECODE "draft-adaptive=false ! fakesink name=out",
        pipeline_model_path (), "d", "0");
    g_autoptr (Recorder) recorder = recorder_new (pipeline, "out");

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    for (guint i = 0; i < n; i++)
      pipeline_send (pipeline, texts[n == 1 || i == 1], NULL);
    recorder_wait_markers (recorder, n);
    proposed[n / 2] = recorder_get_end (recorder, n / 2)->proposed_tokens;
    if (n == 3)
      g_assert_cmpuint (recorder_get_end (recorder, 0)->proposed_tokens, ==,
          recorder_get_end (recorder, 2)->proposed_tokens);
    pipeline_free (pipeline);
  }
  g_assert_cmpuint (proposed[0], >, 0);
  g_assert_cmpuint (proposed[0], ==, proposed[1]);
}

/* A request may bring its own numbers; bad ones fail it, and one message says
 * so. */
static void
test_overrides (void)
{
  GstElement *pipeline = pipeline_new ("appsrc name=in format=time caps=\""
      GST_LM_CAPS_TEXT "\" ! lmtokenize model=%s ! lmlookup "
      "error-policy=report ! lmprefill ! lmdecode max-tokens=4 "
      "ignore-eos=true ! fakesink name=out", pipeline_model_path ());
  g_autoptr (Recorder) recorder = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, TEXT, gst_structure_new ("o", "ngram-min",
          G_TYPE_UINT, 5, "ngram-max", G_TYPE_UINT, 4, NULL));
  pipeline_send (pipeline, TEXT, gst_structure_new ("o", "ngram-min",
          G_TYPE_UINT, 5, "lookup-max", G_TYPE_INT, 3, NULL));
  pipeline_send (pipeline, TEXT, NULL);
  recorder_wait_markers (recorder, 3);
  g_assert_cmpint (recorder_get_end (recorder, 0)->finish_reason, ==,
      RUNNEL_FINISH_REASON_ERROR);
  g_assert_nonnull (strstr (recorder_get_end (recorder, 0)->error,
          "max_ngram is 4"));
  g_assert_cmpuint (recorder_get_end (recorder, 1)->completion_tokens, ==, 4);
  g_assert_cmpuint (recorder_get_end (recorder, 2)->completion_tokens, ==, 4);
  pipeline_free (pipeline);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/lookup/replies", test_replies);
  g_test_add_func ("/lookup/usage", test_usage);
  g_test_add_func ("/lookup/tee", test_tee);
  g_test_add_func ("/lookup/requests", test_requests);
  g_test_add_func ("/lookup/overrides", test_overrides);
  return g_test_run ();
}
