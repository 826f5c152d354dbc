/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* Two replies to one prompt, by a tee behind lmprefill, against one: seconds
 * from PLAYING to EOS, the model loaded before, interleaved, medians of 5.
 * usage: bench-tee MODEL [TOKENS] [THREADS] */
#include <gstrunnel.h>
#include <stdlib.h>

#define N_ROUNDS 5
#define BRANCH "queue max-size-buffers=4 max-size-bytes=0 max-size-time=0 ! " \
  "lmdecode seed=%u max-tokens=%u ignore-eos=true ! lmdetokenize ! " \
  "fakesink sync=false "

static double
run (const char *launch)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GstElement) pipeline = gst_parse_launch (launch, &error);
  g_autoptr (GstBus) bus = NULL;
  g_autoptr (GstMessage) message = NULL;
  gint64 start;

  if (error)
    g_error ("%s", error->message);
  bus = gst_element_get_bus (pipeline);
  start = g_get_monotonic_time ();
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, GST_CLOCK_TIME_NONE,
      GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  start = g_get_monotonic_time () - start;
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR) {
    gst_message_parse_error (message, &error, NULL);
    g_error ("%s", error->message);
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  return start / 1e6;
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static double
median (double *values)
{
  qsort (values, N_ROUNDS, sizeof *values, compare);
  return values[N_ROUNDS / 2];
}

/* The engine that the pipelines' elements will find. */
static RunnelEngine *
load (const char *path, guint n_threads)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model =
      gst_lm_model_get (path, RUNNEL_LOAD_MODE_AUTO, &error);
  g_autoptr (RunnelBackend) backend = model ?
      runnel_backend_get ("auto", n_threads, NULL, &error) : NULL;
  RunnelEngine *engine = backend ? runnel_engine_get (model, backend,
      RUNNEL_KV_TYPE_F16, NULL, NULL, NULL, &error) : NULL;

  if (!engine)
    g_error ("%s", error->message);
  return engine;
}

int
main (int argc, char **argv)
{
  guint n_tokens = argc > 2 ? atoi (argv[2]) : 64;
  guint n_threads = argc > 3 ? atoi (argv[3]) : 0;
  double one[N_ROUNDS], two[N_ROUNDS];
  g_autoptr (RunnelEngine) engine = NULL;
  g_autofree char *head = NULL, *single = NULL, *tee = NULL;
  RunnelBackend *backend;

  gst_init (&argc, &argv);
  if (argc < 2)
    g_error ("usage: bench-tee MODEL [TOKENS] [THREADS]");
  engine = load (argv[1], n_threads);
  backend = runnel_engine_get_backend (engine);
  head = g_strdup_printf ("lmprompt text=\"Tell me about rivers.\" ! "
      "lmchat ! lmtokenize model=\"%s\" ! lmprefill threads=%u use-cache=false",
      argv[1], n_threads);
  single = g_strdup_printf ("%s ! " BRANCH, head, 1, n_tokens);
  tee = g_strdup_printf ("%s ! tee name=t  t. ! " BRANCH " t. ! " BRANCH, head,
      1, n_tokens, 2, n_tokens);
  for (guint i = 0; i < N_ROUNDS; i++) {
    one[i] = run (single);
    two[i] = run (tee);
  }
  g_print ("%s, %u tokens, %u threads, kernels %s: one reply %.3f s, two "
      "behind a tee %.3f s, ratio %.2f\n",
      runnel_model_get_name (runnel_engine_get_model (engine)), n_tokens,
      runnel_backend_get_n_threads (backend),
      runnel_backend_get_kernels (backend), median (one), median (two),
      median (two) / median (one));
  return 0;
}
