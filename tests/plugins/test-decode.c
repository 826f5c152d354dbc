/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* lmdecode: what it gives, its parameters as properties and overrides, both
 * ways to end a reply, and what it tells. */
#include <glib/gstdio.h>
#include <math.h>

#include "pipeline-run.h"
#include "tiny-model.h"

#define TEXT_CAPS "caps=\"" GST_LM_CAPS_TEXT "\""
#define SINK "fakesink name=out sync=false async=false"

static const char *model;

/* appsrc in ! … ! lmdecode d ! fakesink out */
static GstElement *
decode_new (const char *properties)
{
  return pipeline_new ("appsrc name=in format=time " TEXT_CAPS
      " ! lmtokenize model=%s error-policy=report ! lmprefill name=p "
      "error-policy=report ! lmdecode name=d error-policy=report "
      "temperature=0 %s ! " SINK, model, properties);
}

static GArray *
reply_of (const char *properties, const char *text, GstStructure *overrides)
{
  GstElement *pipeline = decode_new (properties);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  GArray *reply;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, text, overrides);
  recorder_wait_markers (out, 1);
  reply = recorder_get_reply (out, 0);
  pipeline_free (pipeline);
  return reply;
}

static void
assert_same (GArray *a, GArray *b)
{
  g_assert_cmpmem (a->data, a->len * sizeof (gint32), b->data,
      b->len * sizeof (gint32));
}

/* The core's reply to the same prompt. */
static GArray *
core_reply (const char *text, guint n_tokens, double temperature, guint64 seed)
{
  GArray *reply = g_array_new (FALSE, FALSE, sizeof (gint32));
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) opened =
      runnel_model_open (model, RUNNEL_LOAD_MODE_MAP, &error);
  g_autoptr (RunnelBackend) backend =
      runnel_backend_get ("cpu", 0, NULL, &error);
  g_autoptr (RunnelEngine) engine = runnel_engine_get (opened, backend,
      RUNNEL_KV_TYPE_F16, NULL, NULL, NULL, &error);
  g_autoptr (RunnelGenerationParams) params = runnel_generation_params_new ();
  g_autoptr (RunnelGeneration) generation = NULL;
  RunnelSequence *sequence = runnel_sequence_new (engine, 0, &error);
  RunnelGenerationStep step = { 0 };
  g_autofree gint32 *tokens = NULL;
  gsize n;

  tokens = runnel_tokenizer_encode (runnel_model_get_tokenizer (opened, NULL),
      text, -1, FALSE, &n, &error);
  g_assert_no_error (error);
  runnel_sequence_prefill (sequence, tokens, n, 0, FALSE, NULL, NULL, NULL,
      NULL, &error);
  g_assert_no_error (error);
  params->max_tokens = n_tokens;
  params->ignore_eos = TRUE;
  params->sampler->temperature = temperature;
  params->sampler->seed = seed;
  generation = runnel_generation_new (sequence, params, &error);
  g_assert_no_error (error);
  while (!step.finished) {
    runnel_generation_next (generation, &step, &error);
    g_assert_no_error (error);
    g_array_append_vals (reply, step.tokens, step.n_tokens);
  }
  return reply;
}

static void
test_equals_core (void)
{
  g_autoptr (GArray) greedy = core_reply ("ab cd", 12, 0, 0);
  g_autoptr (GArray) drawn = core_reply ("ab cd", 12, 0.9, 7);
  g_autoptr (GArray) reply = NULL;

  reply = reply_of ("max-tokens=12 ignore-eos=true", "ab cd", NULL);
  g_assert_cmpuint (reply->len, ==, 12);
  assert_same (reply, greedy);
  g_clear_pointer (&reply, g_array_unref);
  reply = reply_of ("max-tokens=12 ignore-eos=true temperature=0.9 seed=7",
      "ab cd", NULL);
  assert_same (reply, drawn);
}

/* Every buffer has the request's id; the last, and only it, says the end. */
static void
test_metas (void)
{
  GstElement *pipeline =
      decode_new ("max-tokens=5 ignore-eos=true top-logprobs=3");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  guint64 id, text_end = 0;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  id = pipeline_send (pipeline, "hello", NULL);
  recorder_wait_markers (out, 1);
  for (guint i = 0; i < recorder_get_n_buffers (out); i++) {
    GstBuffer *buffer = recorder_get_buffer (out, i);
    GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (buffer);
    GstLmTokensMeta *tokens = gst_lm_buffer_get_tokens_meta (buffer);
    gboolean last = i + 1 == recorder_get_n_buffers (out);
    gsize n = gst_buffer_get_size (buffer) / sizeof (gint32);

    g_assert_cmpuint (meta->id, ==, id);
    g_assert_true (meta->is_reply);
    g_assert_nonnull (meta->model);
    g_assert_cmpint (meta->finish_reason, ==,
        last ? RUNNEL_FINISH_REASON_LENGTH : RUNNEL_FINISH_REASON_NONE);
    g_assert_cmpint (!!GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER),
        ==, last);
    g_assert_cmpuint (tokens->text_end, >=, text_end);
    text_end = tokens->text_end;
    g_assert_cmpuint (tokens->n_logprobs, ==, n);
    g_assert_cmpuint (tokens->n_top, ==, 3 * n);
    for (gsize t = 0; t < n; t++) {
      g_assert_cmpfloat (tokens->logprobs[t], <=, 0);
      g_assert_cmpfloat (tokens->top[3 * t].logprob, >=,
          tokens->top[3 * t + 1].logprob);
      g_assert_cmpfloat (tokens->logprobs[t], <=, tokens->top[3 * t].logprob);
    }
  }
  g_assert_cmpuint (recorder_get_end (out, 0)->completion_tokens, ==, 5);
  g_assert_cmpuint (recorder_get_end (out, 0)->prompt_tokens, >, 0);
  pipeline_free (pipeline);
}

static void
test_zero_tokens (void)
{
  GstElement *pipeline = decode_new ("max-tokens=0");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "hello", NULL);
  recorder_wait_markers (out, 1);
  g_assert_cmpuint (recorder_get_n_buffers (out), ==, 1);
  g_assert_cmpuint (gst_buffer_get_size (recorder_get_buffer (out, 0)), ==, 0);
  g_assert_cmpint (recorder_get_end (out, 0)->finish_reason, ==,
      RUNNEL_FINISH_REASON_LENGTH);
  pipeline_free (pipeline);
}

/* An override does what the property does, for its request alone. */
static void
test_overrides (void)
{
  GstElement *pipeline = decode_new ("max-tokens=9 ignore-eos=true");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (GArray) plain = core_reply ("abc", 9, 0, 0);
  g_autoptr (GArray) drawn = core_reply ("abc", 4, 1.5, 99);
  g_autoptr (GArray) first = NULL, second = NULL, third = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "abc", NULL);
  /* Numbers of other types, as scripts give them, are converted. */
  pipeline_send (pipeline, "abc", gst_structure_new ("overrides",
          "max-tokens", G_TYPE_DOUBLE, 4.0, "temperature", G_TYPE_FLOAT, 1.5f,
          "seed", G_TYPE_INT, 99, "parse-special", G_TYPE_BOOLEAN, FALSE, NULL));
  pipeline_send (pipeline, "abc", NULL);
  recorder_wait_markers (out, 3);
  first = recorder_get_reply (out, 0);
  second = recorder_get_reply (out, 1);
  third = recorder_get_reply (out, 2);
  assert_same (first, plain);
  assert_same (second, drawn);
  assert_same (third, plain);
  pipeline_free (pipeline);
}

/* A bad one fails its request, and the next goes on. */
static void
test_bad_override (const void *data)
{
  const char *text = data;
  GstElement *pipeline = decode_new ("max-tokens=3 ignore-eos=true");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  GstStructure *overrides = gst_structure_from_string (text, NULL);
  g_autofree char *field = NULL;

  g_assert_nonnull (overrides);
  field = g_strdup (gst_structure_nth_field_name (overrides, 0));
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "abc", overrides);
  pipeline_send (pipeline, "abc", NULL);
  recorder_wait_markers (out, 2);
  g_assert_cmpint (recorder_get_end (out, 0)->finish_reason, ==,
      RUNNEL_FINISH_REASON_ERROR);
  g_assert_nonnull (recorder_get_end (out, 0)->error);
  g_assert_cmpint (recorder_get_end (out, 1)->finish_reason, ==,
      RUNNEL_FINISH_REASON_LENGTH);
  g_assert_cmpuint (pipeline_count_messages (pipeline, GST_MESSAGE_WARNING),
      ==, 1);
  g_assert_cmpuint (pipeline_count_messages (pipeline, GST_MESSAGE_ERROR), ==,
      0);
  pipeline_free (pipeline);
}

static void
test_fail_policy (void)
{
  GstElement *pipeline = decode_new ("error-policy=fail max-tokens=3");
  g_autoptr (GstMessage) message = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "abc", gst_structure_new ("overrides",
          "temperature", G_TYPE_DOUBLE, -1.0, NULL));
  message = pipeline_wait_message (pipeline, GST_MESSAGE_ERROR);
  g_assert_cmpstr (GST_MESSAGE_SRC_NAME (message), ==, "d");
  pipeline_free (pipeline);
}

/* A bad property is told with its field by the request it is for. */
static void
test_bad_logit_bias (void)
{
  GstElement *pipeline = decode_new ("error-policy=report max-tokens=3 "
      "logit-bias=\"b,x=1.0\"");
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GError) warning = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "abc", NULL);
  message = pipeline_wait_message (pipeline, GST_MESSAGE_WARNING);
  gst_message_parse_warning (message, &warning, NULL);
  g_assert_nonnull (strstr (warning->message, "logit-bias: the field 'x'"));
  pipeline_free (pipeline);
}

/* Other threads and kernels need another engine: the state is moved, and the
 * reply is the same. */
static void
test_other_engine (void)
{
  g_autoptr (GArray) plain = reply_of ("max-tokens=8", "abc", NULL);
  g_autoptr (GArray) other =
      reply_of ("max-tokens=8 threads=2 kernels=scalar", "abc", NULL);

  assert_same (plain, other);
}

static void
test_logit_bias (void)
{
  g_autoptr (GArray) plain =
      reply_of ("max-tokens=1 ignore-eos=true", "abc", NULL);
  g_autoptr (GArray) banned = NULL, forced = NULL;
  g_autofree char *ban = NULL;

  ban = g_strdup_printf ("max-tokens=1 ignore-eos=true "
      "logit-bias=\"bias,%d=(double)-inf\"", g_array_index (plain, gint32, 0));
  banned = reply_of (ban, "abc", NULL);
  g_assert_cmpint (g_array_index (banned, gint32, 0), !=,
      g_array_index (plain, gint32, 0));
  forced = reply_of ("max-tokens=1 ignore-eos=true "
      "logit-bias=\"bias,5=100000.0\"", "abc", NULL);
  g_assert_cmpint (g_array_index (forced, gint32, 0), ==, 5);
}

static void
test_stop_tokens (void)
{
  g_autoptr (GArray) plain =
      reply_of ("max-tokens=6 ignore-eos=true", "abc", NULL);
  g_autofree char *stop = g_strdup_printf ("max-tokens=6 ignore-eos=true "
      "stop-tokens=\"<%d>\"", g_array_index (plain, gint32, 3));
  g_autoptr (GArray) stopped = reply_of (stop, "abc", NULL);

  g_assert_cmpuint (stopped->len, <=, 3);
  g_assert_cmpmem (stopped->data, stopped->len * sizeof (gint32), plain->data,
      stopped->len * sizeof (gint32));
}

/* An array of strings, in the forms that languages have for one. */
static void
test_stop_overrides (void)
{
  static const char *const forms[] = {
    "o,stop=(string)\"%s\"", "o,stop={(string)\"%s\"}",
    "o,stop=<(string)\"%s\",(string)zzzz>", NULL
  };
  GstElement *pipeline = pipeline_new ("appsrc name=in format=time " TEXT_CAPS
      " ! lmtokenize model=%s ! lmprefill ! lmdecode temperature=0 "
      "max-tokens=12 ignore-eos=true ! lmdetokenize ! " SINK, model);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autofree char *text = NULL;
  g_autofree char *stop = NULL, *wanted = NULL;
  char *strings[2] = { NULL, NULL };
  const char *second;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "abc", NULL);
  recorder_wait_markers (out, 1);
  text = recorder_get_text (out);
  /* A stop string of one character from the middle of the reply that a
   * structure's text can hold. */
  for (second = text; *second && !g_ascii_isalnum (*second); )
    second = g_utf8_next_char (second);
  g_assert_cmpint (*second, !=, 0);
  stop = g_strndup (second, 1);
  wanted = g_strndup (text, second - text);
  for (guint i = 0; i <= G_N_ELEMENTS (forms) - 1; i++) {
    GstStructure *overrides;
    g_autofree char *stopped = NULL;

    recorder_clear (out);
    if (forms[i]) {
      g_autofree char *form = g_strdup_printf (forms[i], stop);

      overrides = gst_structure_from_string (form, NULL);
    } else {
      strings[0] = stop;
      overrides = gst_structure_new ("o", "stop", G_TYPE_STRV, strings, NULL);
    }
    g_assert_nonnull (overrides);
    pipeline_send (pipeline, "abc", overrides);
    recorder_wait_markers (out, 1);
    stopped = recorder_get_text (out);
    g_assert_cmpstr (stopped, ==, wanted);
    g_assert_cmpint (recorder_get_end (out, 0)->finish_reason, ==,
        RUNNEL_FINISH_REASON_STOP);
  }
  pipeline_free (pipeline);
}

/* Every property survives being set and read. */
/* Nothing is taken that the backend would refuse. */
static void
test_thread_limit (void)
{
  static const char *const elements[] = { "lmdecode", "lmprefill" };
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_backend_get ("auto", GST_LM_MAX_THREADS + 1, NULL,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    GstElement *element = gst_element_factory_make (elements[i], NULL);
    GParamSpec *spec = g_object_class_find_property (
        G_OBJECT_GET_CLASS (element), "threads");

    g_assert_cmpuint (G_PARAM_SPEC_UINT (spec)->maximum, ==,
        GST_LM_MAX_THREADS);
    gst_object_unref (gst_object_ref_sink (element));
  }
}

static void
test_properties (void)
{
  GstElement *element = gst_element_factory_make ("lmdecode", NULL);
  g_autofree char *text = NULL;
  g_auto (GValue) stop = G_VALUE_INIT, got = G_VALUE_INIT;
  g_autoptr (GstStructure) bias = NULL;
  double value;
  guint64 seed;

  gst_object_ref_sink (element);
  gst_util_set_object_arg (G_OBJECT (element), "stop", "<\"one\",\"two x\">");
  gst_util_set_object_arg (G_OBJECT (element), "logit-bias",
      "bias,12=-5.5,13=(double)-inf");
  gst_util_set_object_arg (G_OBJECT (element), "seed", "18446744073709551615");
  gst_util_set_object_arg (G_OBJECT (element), "overflow-policy", "shift");
  g_value_init (&got, GST_TYPE_ARRAY);
  g_object_get_property (G_OBJECT (element), "stop", &got);
  g_assert_cmpuint (gst_value_array_get_size (&got), ==, 2);
  g_assert_cmpstr (g_value_get_string (gst_value_array_get_value (&got, 1)),
      ==, "two x");
  g_object_get (element, "logit-bias", &bias, "seed", &seed, NULL);
  g_assert_true (gst_structure_get_double (bias, "12", &value));
  g_assert_cmpfloat (value, ==, -5.5);
  g_assert_true (gst_structure_get_double (bias, "13", &value));
  g_assert_cmpfloat (value, ==, -INFINITY);
  g_assert_cmpuint (seed, ==, G_MAXUINT64);
  gst_object_unref (element);
}

typedef struct {
  GMutex lock;
  guint n;
  guint64 id;
  char *text;
  RunnelFinishReason reason;
} Replies;

static GstPadProbeReturn
on_upstream (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Replies *replies = user_data;
  RunnelFinishReason reason;
  const char *text;
  guint64 id;

  if (gst_lm_event_parse_reply (GST_PAD_PROBE_INFO_EVENT (info), &id, &text,
          &reason)) {
    g_mutex_lock (&replies->lock);
    replies->n++;
    replies->id = id;
    replies->reason = reason;
    g_free (replies->text);
    replies->text = g_strdup (text);
    g_mutex_unlock (&replies->lock);
  }
  return GST_PAD_PROBE_OK;
}

static void
watch_replies (GstElement *pipeline, Replies *replies)
{
  g_autoptr (GstPad) pad =
      gst_element_get_static_pad (pipeline_get (pipeline, "p"), "src");

  g_mutex_init (&replies->lock);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, on_upstream,
      replies, NULL);
}

/* runnel/reply: once, before the marked buffer, with the text of the reply. */
static void
test_reply_event (void)
{
  GstElement *pipeline = pipeline_new ("appsrc name=in format=time " TEXT_CAPS
      " ! lmtokenize model=%s ! lmprefill name=p ! lmdecode name=d "
      "temperature=0 max-tokens=8 ! lmdetokenize ! " SINK, model);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  Replies replies = { 0 };
  g_autofree char *text = NULL;
  guint64 id;

  watch_replies (pipeline, &replies);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  id = pipeline_send (pipeline, "abc", NULL);
  recorder_wait_markers (out, 1);
  text = recorder_get_text (out);
  g_assert_cmpuint (replies.n, ==, 1);
  g_assert_cmpuint (replies.id, ==, id);
  g_assert_cmpstr (replies.text, ==, text);
  g_assert_cmpint (replies.reason, ==,
      recorder_get_end (out, 0)->finish_reason);
  pipeline_free (pipeline);
  g_free (replies.text);
}

static void
test_stats (void)
{
  GstElement *pipeline = decode_new ("max-tokens=4 ignore-eos=true stats=true");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (GstMessage) message = NULL;
  const GstStructure *stats;
  guint64 id, request, first, duration;
  guint n;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  id = pipeline_send (pipeline, "abc", NULL);
  message = pipeline_wait_message (pipeline, GST_MESSAGE_ELEMENT);
  stats = gst_message_get_structure (message);
  g_assert_true (gst_structure_has_name (stats, "lmdecode-stats"));
  g_assert_true (gst_structure_get (stats, "request", G_TYPE_UINT64, &request,
          "completion-tokens", G_TYPE_UINT, &n, "first-token", G_TYPE_UINT64,
          &first, "duration", G_TYPE_UINT64, &duration, NULL));
  g_assert_cmpuint (request, ==, id);
  g_assert_cmpuint (n, ==, 4);
  g_assert_cmpuint (first, <=, duration);
  pipeline_free (pipeline);
}

static void
test_gap (void)
{
  GstElement *pipeline = decode_new ("max-tokens=4");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (GstPad) pad =
      gst_element_get_static_pad (pipeline_get (pipeline, "in"), "src");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "abc", NULL);
  recorder_wait_markers (out, 1);
  gst_pad_push_event (pad, gst_event_new_gap (0, GST_CLOCK_TIME_NONE));
  g_assert_cmpuint (recorder_get_n_gaps (out), ==, 1);
  pipeline_free (pipeline);
}

/* A branch that is never used: nothing but a gap, before any caps can be
 * known. */
static void
test_gap_first (void)
{
  GstElement *pipeline =
      pipeline_new ("lmprefill name=p ! lmdecode ! lmdetokenize ! " SINK);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (GstPad) sink =
      gst_element_get_static_pad (pipeline_get (pipeline, "p"), "sink");
  g_autoptr (GstPad) src =
      gst_object_ref_sink (gst_pad_new ("src", GST_PAD_SRC));
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_set_active (src, TRUE);
  gst_pad_link (src, sink);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  gst_pad_push_event (src, gst_event_new_stream_start ("test"));
  gst_pad_push_event (src, gst_event_new_segment (&segment));
  gst_pad_push_event (src, gst_event_new_gap (0, GST_CLOCK_TIME_NONE));
  g_assert_cmpuint (recorder_get_n_gaps (out), ==, 1);
  gst_pad_push_event (src, gst_event_new_eos ());
  g_assert_true (recorder_get_eos (out));
  g_assert_cmpuint (recorder_get_n_buffers (out), ==, 0);
  gst_pad_set_active (src, FALSE);
  gst_pad_unlink (src, sink);
  pipeline_free (pipeline);
}

/* C35: keys and values are of one model; an lmdecode with another one, even
 * of the same vocabulary, says what differs. */
static void
test_other_model (void)
{
  TinyModel kind = TINY_MODEL_DEFAULT;
  g_autofree char *other = NULL, *text = NULL;
  GstElement *pipeline;

  kind.seed = 3;
  other = tiny_model_write (&kind);
  pipeline = pipeline_new ("lmprompt text=abc ! lmtokenize model=%s ! "
      "lmprefill ! lmdecode name=d model=%s ! " SINK, model, other);
  text = pipeline_run_to_error (pipeline);
  g_assert_nonnull (strstr (text, "leave the property model unset"));
  g_assert_true (g_str_has_prefix (text, "d: "));
  pipeline_free (pipeline);
  g_unlink (other);
}

/* A reply that comes too late ends, with what it has. */
static void
test_deadline (void)
{
  GstElement *pipeline = decode_new ("ignore-eos=true");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (GstBuffer) buffer = gst_buffer_new_memdup ("abc", 3);
  GstFlowReturn ret;

  gst_lm_buffer_add_request_meta (buffer,
      gst_lm_request_id_new ())->deadline = 1;
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  g_signal_emit_by_name (pipeline_get (pipeline, "in"), "push-buffer", buffer,
      &ret);
  recorder_wait_markers (out, 1);
  g_assert_cmpint (recorder_get_end (out, 0)->finish_reason, ==,
      RUNNEL_FINISH_REASON_CANCELLED);
  pipeline_free (pipeline);
}

int
main (int argc, char **argv)
{
  static const char *const bad[] = {
    "o,temprature=0.5", "o,temperature=-1.0", "o,temperature=(string)hot",
    "o,max-tokens=-2",
    "o,max-tokens=2.5", "o,top-p=1.5", "o,seed=-1", "o,top-logprobs=65",
    "o,overflow-policy=(string)never", "o,ignore-eos=(string)perhaps",
    "o,logit-bias=(structure)[b,x=1.0]", "o,logit-bias=(structure)[b,5=x]",
    "o,logit-bias=(structure)[b,5=(double)inf]",
    "o,logit-bias=(structure)[b,99999999=1.0]",
    "o,repetition-penalty=0.0",
  };

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  model = pipeline_model_path ();
  g_test_add_func ("/decode/equals-core", test_equals_core);
  g_test_add_func ("/decode/metas", test_metas);
  g_test_add_func ("/decode/zero-tokens", test_zero_tokens);
  g_test_add_func ("/decode/overrides", test_overrides);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autofree char *path = g_strdup_printf ("/decode/bad-override/%u", i);

    g_test_add_data_func (path, bad[i], test_bad_override);
  }
  g_test_add_func ("/decode/fail-policy", test_fail_policy);
  g_test_add_func ("/decode/bad-logit-bias", test_bad_logit_bias);
  g_test_add_func ("/decode/other-engine", test_other_engine);
  g_test_add_func ("/decode/logit-bias", test_logit_bias);
  g_test_add_func ("/decode/stop-tokens", test_stop_tokens);
  g_test_add_func ("/decode/stop-overrides", test_stop_overrides);
  g_test_add_func ("/decode/properties", test_properties);
  g_test_add_func ("/decode/thread-limit", test_thread_limit);
  g_test_add_func ("/decode/reply-event", test_reply_event);
  g_test_add_func ("/decode/stats", test_stats);
  g_test_add_func ("/decode/gap", test_gap);
  g_test_add_func ("/decode/gap-first", test_gap_first);
  g_test_add_func ("/decode/other-model", test_other_model);
  g_test_add_func ("/decode/deadline", test_deadline);
  return g_test_run ();
}
