/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* Two replies to one prompt: a tee behind lmprefill. The prompt is computed
 * once, each reply is what it would be alone, bit for bit, and while both are
 * made their rows share batches. */
#include <glib/gstdio.h>

#include "pipeline-run.h"
#include "tiny-model.h"

/* Many, for the few rows of one branch before the other begins do not count. */
#define N_TOKENS 320
#define BRANCH "queue max-size-buffers=4 max-size-bytes=0 max-size-time=0 ! " \
  "lmdecode name=d%d temperature=1 top-k=0 top-p=1 min-p=0 ignore-eos=true " \
  "max-tokens=%d seed=%d ! fakesink name=out%d sync=false async=false "
#define HEAD "lmprompt text=\"Tell me about rivers.\" ! lmtokenize model=%s ! " \
  "lmprefill name=p cache-budget=0 ! "

static char *model;

/* Lets the branches begin side by side, as a long reply makes them. */
typedef struct {
  GMutex lock;
  GCond cond;
  guint n_waiting;
} Barrier;

static GstPadProbeReturn
wait_for_both (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Barrier *self = user_data;

  g_mutex_lock (&self->lock);
  self->n_waiting++;
  g_cond_broadcast (&self->cond);
  while (self->n_waiting < 2)
    g_cond_wait (&self->cond, &self->lock);
  g_mutex_unlock (&self->lock);
  return GST_PAD_PROBE_OK;
}

static void
add_barrier (GstElement *pipeline, Barrier *barrier)
{
  for (guint i = 1; i <= 2; i++) {
    g_autofree char *name = g_strdup_printf ("d%u", i);
    g_autoptr (GstPad) pad =
        gst_element_get_static_pad (pipeline_get (pipeline, name), "sink");

    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, wait_for_both, barrier,
        NULL);
  }
}

static GArray *
single_reply (gint seed)
{
  GstElement *pipeline = pipeline_new (HEAD BRANCH, model, 0, N_TOKENS, seed,
      0);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out0");
  GArray *reply;

  pipeline_run (pipeline);
  reply = recorder_get_reply (out, 0);
  pipeline_free (pipeline);
  g_assert_cmpuint (reply->len, ==, N_TOKENS);
  return reply;
}

static void
assert_same (GArray *a, GArray *b)
{
  g_assert_cmpmem (a->data, a->len * sizeof (gint32), b->data,
      b->len * sizeof (gint32));
}

/* The engine that the elements of this program share. */
static RunnelEngine *
get_engine (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) opened =
      gst_lm_model_get (model, RUNNEL_LOAD_MODE_AUTO, &error);
  g_autoptr (RunnelBackend) backend = NULL;
  RunnelEngine *engine;

  g_assert_no_error (error);
  backend = runnel_backend_get ("auto", 0, NULL, &error);
  g_assert_no_error (error);
  engine = runnel_engine_get (opened, backend, RUNNEL_KV_TYPE_F16, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  return engine;
}

static void
test_two_seeds (void)
{
  g_autoptr (GArray) alone1 = single_reply (1);
  g_autoptr (GArray) alone2 = single_reply (2);
  g_autoptr (RunnelEngine) engine = get_engine ();
  GstElement *pipeline = pipeline_new (HEAD "tee name=t  t. ! " BRANCH
      " t. ! " BRANCH, model, 1, N_TOKENS, 1, 1, 2, N_TOKENS, 2, 2);
  g_autoptr (Recorder) out1 = recorder_new (pipeline, "out1");
  g_autoptr (Recorder) out2 = recorder_new (pipeline, "out2");
  g_autoptr (GArray) reply1 = NULL, reply2 = NULL;
  RunnelEngineStats before, after;
  guint64 n_prompt, rows, decode_rows, batches;
  Barrier barrier = { .n_waiting = 0 };

  add_barrier (pipeline, &barrier);
  runnel_engine_get_stats (engine, &before);
  pipeline_run (pipeline);
  runnel_engine_get_stats (engine, &after);
  g_assert_cmpuint (pipeline_count_messages (pipeline, GST_MESSAGE_WARNING),
      ==, 0);

  reply1 = recorder_get_reply (out1, 0);
  reply2 = recorder_get_reply (out2, 0);
  assert_same (reply1, alone1);
  assert_same (reply2, alone2);
  g_assert_cmpuint (recorder_get_n_markers (out1), ==, 1);
  g_assert_cmpuint (recorder_get_n_markers (out2), ==, 1);

  n_prompt = recorder_get_end (out1, 0)->prompt_tokens;
  rows = after.rows - before.rows;
  decode_rows = after.decode_rows - before.decode_rows;
  batches = after.decode_batches - before.decode_batches;
  g_test_message ("prompt %" G_GUINT64_FORMAT ", rows %" G_GUINT64_FORMAT
      ", of them decode %" G_GUINT64_FORMAT " in %" G_GUINT64_FORMAT
      " batches", n_prompt, rows, decode_rows, batches);
  /* The prompt's rows once, and no more than a row for each token. */
  g_assert_cmpuint (rows - decode_rows, ==, n_prompt);
  g_assert_cmpuint (decode_rows, <=, 2 * N_TOKENS);
  /* Of b batches with d rows, d − b hold two: nine tenths of those that
   * could. */
  g_assert_cmpuint (10 * (decode_rows - batches), >=,
      9 * MIN (batches, decode_rows / 2));
  pipeline_free (pipeline);
}

/* A cancel of one branch leaves the other as it is. */
static void
test_cancel_one (void)
{
  g_autoptr (GArray) alone2 = single_reply (2);
  GstElement *pipeline = pipeline_new ("appsrc name=in format=time caps=\""
      GST_LM_CAPS_TEXT "\" ! lmtokenize model=%s ! lmprefill cache-budget=0 ! "
      "tee name=t  t. ! " BRANCH " t. ! " BRANCH, model, 1, N_TOKENS, 1, 1, 2,
      N_TOKENS, 2, 2);
  g_autoptr (Recorder) out1 = recorder_new (pipeline, "out1");
  g_autoptr (Recorder) out2 = recorder_new (pipeline, "out2");
  g_autoptr (GstBuffer) buffer =
      gst_buffer_new_memdup ("Tell me about rivers.", 21);
  guint64 id = gst_lm_request_id_new ();
  g_autoptr (GArray) reply1 = NULL, reply2 = NULL;
  GstFlowReturn ret;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  /* Before the state arrives, in its branch alone. */
  pipeline_cancel (pipeline, "out1", id);
  gst_lm_buffer_add_request_meta (buffer, id);
  g_signal_emit_by_name (pipeline_get (pipeline, "in"), "push-buffer", buffer,
      &ret);
  recorder_wait_markers (out1, 1);
  recorder_wait_markers (out2, 1);
  reply1 = recorder_get_reply (out1, 0);
  reply2 = recorder_get_reply (out2, 0);
  g_assert_cmpuint (reply1->len, ==, 0);
  g_assert_cmpint (recorder_get_end (out1, 0)->finish_reason, ==,
      RUNNEL_FINISH_REASON_CANCELLED);
  assert_same (reply2, alone2);
  pipeline_free (pipeline);
}

int
main (int argc, char **argv)
{
  /* A step of a few milliseconds, so that waking a thread is little to it. */
  TinyModel larger = TINY_MODEL_DEFAULT;
  int status;

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  larger.n_embd = 512;
  larger.n_layers = 8;
  model = tiny_model_write (&larger);
  g_test_add_func ("/tee/two-seeds", test_two_seeds);
  g_test_add_func ("/tee/cancel-one", test_cancel_one);
  status = g_test_run ();
  g_unlink (model);
  return status;
}
