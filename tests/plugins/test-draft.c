/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * lmdraft in pipelines: replies are those without it; its draft is opened when
 * it becomes READY, and loaded in a thread; and what is said of drafts that
 * cannot be used.
 */
#include <glib/gstdio.h>
#include <unistd.h>

#include "pipeline-run.h"

#define HEAD "lmprompt text=\"one two three four, one two three\" ! " \
    "lmtokenize model=%s ! "
#define DECODE "lmprefill name=prefill ! lmdecode seed=5 max-tokens=30 " \
    "ignore-eos=true draft-adaptive=false temperature=%s ! fakesink name=out"
#define ALONE "appsrc name=in caps=\"" GST_LM_CAPS_TOKENS ", vocab=v\" ! " \
    "lmdraft name=draft draft=%s %s ! fakesink"

static char *draft_path;

/* A draft for pipeline_model_path(), by the program whose path is in the
 * environment. */
static void
make_draft (void)
{
  const char *program = g_getenv ("RUNNEL_TEST_MAKE_DRAFT");
  const char *argv[] = { program, NULL, pipeline_model_path (), NULL };
  g_autoptr (GError) error = NULL;
  int fd, status = -1;

  g_assert_nonnull (program);
  fd = g_file_open_tmp ("runnel-draft-XXXXXX.gguf", &draft_path, &error);
  g_assert_no_error (error);
  close (fd);
  argv[1] = draft_path;
  g_spawn_sync (NULL, (char **) argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL,
      NULL, &status, &error);
  g_assert_no_error (error);
  g_assert_cmpint (status, ==, 0);
}

static GArray *
run_one (const char *draft, const char *temperature, guint *ret_proposed)
{
  g_autofree char *drafter
      = draft ? g_strdup_printf ("lmdraft draft=%s ! ", draft) : g_strdup ("");
  GstElement *pipeline = pipeline_new (HEAD "%s" DECODE,
      pipeline_model_path (), drafter, temperature);
  g_autoptr (Recorder) recorder = recorder_new (pipeline, "out");
  GArray *reply;

  pipeline_run (pipeline);
  *ret_proposed = recorder_get_end (recorder, 0)->proposed_tokens;
  reply = recorder_get_reply (recorder, 0);
  pipeline_free (pipeline);
  return reply;
}

static void
test_replies (void)
{
  static const char *const temperatures[] = { "0", "1" };

  for (guint t = 0; t < G_N_ELEMENTS (temperatures); t++) {
    guint none, proposed;
    g_autoptr (GArray) plain = run_one (NULL, temperatures[t], &none);
    g_autoptr (GArray) drafted
        = run_one (draft_path, temperatures[t], &proposed);

    g_assert_cmpuint (plain->len, ==, 30);
    g_assert_cmpmem (plain->data, plain->len * sizeof (gint32), drafted->data,
        drafted->len * sizeof (gint32));
    g_assert_cmpuint (none, ==, 0);
    g_assert_cmpuint (proposed, >, 0);
  }
}

/* ---- Loading ------------------------------------------------------------- */

static GstProgressType
wait_progress (GstElement *pipeline, GstProgressType type)
{
  GstProgressType found;

  do {
    g_autoptr (GstMessage) message
        = pipeline_wait_message (pipeline, GST_MESSAGE_PROGRESS);

    gst_message_parse_progress (message, &found, NULL, NULL);
  } while (found != type && found != GST_PROGRESS_TYPE_ERROR);
  return found;
}

/* It is loaded without any request. */
static void
test_loaded_early (void)
{
  GstElement *pipeline = pipeline_new (ALONE, draft_path, "");

  g_assert_cmpint (gst_element_set_state (pipeline, GST_STATE_READY), ==,
      GST_STATE_CHANGE_SUCCESS);
  g_assert_cmpint (wait_progress (pipeline, GST_PROGRESS_TYPE_START), ==,
      GST_PROGRESS_TYPE_START);
  g_assert_cmpint (wait_progress (pipeline, GST_PROGRESS_TYPE_COMPLETE), ==,
      GST_PROGRESS_TYPE_COMPLETE);
  pipeline_free (pipeline);
}

/* Whatever the thread is doing. */
static void
test_states (void)
{
  g_autoptr (Watchdog) watchdog = watchdog_start (60, "states of lmdraft");
  static const GstState states[] = { GST_STATE_READY, GST_STATE_PAUSED,
    GST_STATE_PLAYING };
  GstElement *pipeline = pipeline_new (ALONE, draft_path, "");

  for (guint i = 0; i < 60; i++) {
    g_assert_cmpint (gst_element_set_state (pipeline, states[i % 3]), !=,
        GST_STATE_CHANGE_FAILURE);
    if (i % 4 == 3)
      g_usleep (100 * i);
    if (i % 5 == 0)
      gst_element_set_state (pipeline, GST_STATE_READY);
    gst_element_set_state (pipeline, GST_STATE_NULL);
  }
  g_assert_cmpuint (pipeline_count_messages (pipeline, GST_MESSAGE_ERROR), ==,
      0);
  pipeline_free (pipeline);
}

/* ---- What cannot be used ------------------------------------------------- */

static void
assert_refused (const char *path, const char *what)
{
  GstElement *pipeline = pipeline_new (ALONE, path, "");
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (gst_element_set_state (pipeline, GST_STATE_READY), ==,
      GST_STATE_CHANGE_FAILURE);
  message = pipeline_wait_message (pipeline, GST_MESSAGE_ERROR);
  gst_message_parse_error (message, &error, NULL);
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, path));
  g_assert_nonnull (strstr (error->message, what));
  g_assert_cmpuint (pipeline_count_messages (pipeline, GST_MESSAGE_ERROR), ==,
      0);
  pipeline_free (pipeline);
}

static void
test_bad_file (void)
{
  assert_refused ("/there/is/none.gguf", "cannot be opened");
  assert_refused (pipeline_model_path (), "not a DFlash draft");
}

static void
test_no_file (void)
{
  GstElement *pipeline = pipeline_new (HEAD "lmdraft ! " DECODE,
      pipeline_model_path (), "0");
  g_autofree char *text = pipeline_run_to_error (pipeline);

  g_assert_nonnull (strstr (text, "'draft'"));
  pipeline_free (pipeline);
}

/* One message from the thread, and another try after what was wrong is
 * mended. */
static void
test_too_large (void)
{
  GstElement *pipeline = pipeline_new (HEAD "lmdraft name=draft draft=%s "
      "max-memory=1000 ! " DECODE, pipeline_model_path (), draft_path, "0");
  g_autofree char *text = pipeline_run_to_error (pipeline);

  g_assert_nonnull (strstr (text, draft_path));
  g_assert_nonnull (strstr (text, "max-memory"));
  gst_element_set_state (pipeline, GST_STATE_NULL);
  g_object_set (pipeline_get (pipeline, "draft"), "max-memory", (guint64) 0,
      NULL);
  pipeline_run (pipeline);
  pipeline_free (pipeline);
}

/* What a draft takes counts in the memory of the model it is for. */
static void
test_counted (void)
{
  GstElement *pipeline = pipeline_new (HEAD "lmdraft draft=%s ! " DECODE,
      pipeline_model_path (), draft_path, "0");
  g_autofree char *text = NULL;

  g_object_set (pipeline_get (pipeline, "prefill"), "max-memory",
      (guint64) 400000, NULL);
  text = pipeline_run_to_error (pipeline);
  g_assert_nonnull (strstr (text, draft_path));
  g_assert_nonnull (strstr (text, "max-memory"));
  pipeline_free (pipeline);
}

int
main (int argc, char **argv)
{
  int result;

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  make_draft ();
  g_test_add_func ("/draft/replies", test_replies);
  g_test_add_func ("/draft/loaded-early", test_loaded_early);
  g_test_add_func ("/draft/states", test_states);
  g_test_add_func ("/draft/bad-file", test_bad_file);
  g_test_add_func ("/draft/no-file", test_no_file);
  g_test_add_func ("/draft/too-large", test_too_large);
  g_test_add_func ("/draft/counted", test_counted);
  result = g_test_run ();
  g_unlink (draft_path);
  g_free (draft_path);
  return result;
}
