/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* Case C35: what links and what does not, several models in one pipeline, a
 * second prompt that sees the first, and what every element says of itself. */
#include "pipeline-run.h"

#include <glib/gstdio.h>
#include <string.h>
#include "tiny-model.h"

#define SOURCE "appsrc name=in format=time caps=\"" GST_LM_CAPS_TEXT "\" ! "
#define SINK " ! fakesink name=out sync=false async=false"
#define GENERATE "lmprefill ! lmdecode temperature=0 max-tokens=12"
#define TURN(role, text) "<|im_start|>" role "\n" text "<|im_end|>\n"

static char *models[2]; /* of one vocabulary */

/* Text for keep-turns: what a reply was, as the chat has it afterwards. */
static char *
prompt_text (Recorder *prompts, guint i)
{
  GstBuffer *buffer = recorder_get_buffer (prompts, i);
  gsize size = gst_buffer_get_size (buffer);
  char *text = g_malloc0 (size + 1);

  gst_buffer_extract (buffer, 0, text, size);
  return text;
}

/* Every property but keep-turns and the length is at its default. */
static void
test_second_prompt (void)
{
  GstElement *pipeline = pipeline_new (SOURCE "lmchat keep-turns=true ! "
      "lmtokenize name=tokenize model=%s ! lmprefill ! lmdecode max-tokens=20 "
      "! lmdetokenize" SINK, models[0]);
  g_autoptr (Watchdog) watchdog = watchdog_start (120, "second prompt");
  g_autoptr (Recorder) prompts = recorder_new (pipeline, "tokenize");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autofree char *reply = NULL;
  g_autofree char *first = NULL;
  g_autofree char *second = NULL;
  g_autofree char *expected = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  pipeline_send (pipeline, "My name is Bob.", NULL);
  recorder_wait_markers (out, 1);
  reply = recorder_get_text (out);
  pipeline_send (pipeline, "What is my name?", NULL);
  pipeline_end (pipeline);
  recorder_wait_markers (out, 2);

  first = prompt_text (prompts, 0);
  second = prompt_text (prompts, 1);
  g_assert_cmpstr (first, ==,
      TURN ("user", "My name is Bob.") "<|im_start|>assistant\n");
  expected = g_strconcat (TURN ("user", "My name is Bob.")
      "<|im_start|>assistant\n", reply, "<|im_end|>\n"
      TURN ("user", "What is my name?") "<|im_start|>assistant\n", NULL);
  g_assert_cmpstr (second, ==, expected);
  g_assert_cmpuint (recorder_get_end (out, 1)->cached_tokens, >=,
      recorder_get_end (out, 0)->prompt_tokens);
  g_assert_cmpuint (recorder_get_end (out, 1)->completion_tokens, >, 0);
  pipeline_free (pipeline);
}

/* Both prompts may be there before the first reply: queues do not matter. */
static void
test_queued_turns (void)
{
  GstElement *pipeline = pipeline_new (SOURCE "queue ! lmchat keep-turns=true "
      "! queue ! lmtokenize name=tokenize model=%s ! queue ! lmprefill ! queue "
      "! lmdecode max-tokens=5 ! queue ! lmdetokenize" SINK, models[0]);
  g_autoptr (Watchdog) watchdog = watchdog_start (120, "queued turns");
  g_autoptr (Recorder) prompts = recorder_new (pipeline, "tokenize");
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  for (guint i = 0; i < 4; i++)
    pipeline_send (pipeline, "Go on.", NULL);
  pipeline_end (pipeline);
  pipeline_run (pipeline);
  g_assert_cmpuint (recorder_get_n_markers (out), ==, 4);
  for (guint i = 0; i < 4; i++)
    {
      g_autofree char *text = prompt_text (prompts, i);
      g_auto (GStrv) turns = g_strsplit (text, "<|im_start|>user\nGo on.", -1);

      g_assert_cmpuint (g_strv_length (turns), ==, i + 2);
    }
  pipeline_free (pipeline);
}

static gboolean
can_link (const char *launch)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GstElement) pipeline = gst_parse_launch_full (
      launch, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);

  if (pipeline != NULL)
    gst_object_ref_sink (pipeline);
  else
    g_assert_error (error, GST_PARSE_ERROR, GST_PARSE_ERROR_LINK);
  return pipeline != NULL;
}

static void
test_links (void)
{
  g_assert_true (can_link ("lmprompt ! lmchat ! lmtokenize ! lmprefill ! "
                           "lmdecode ! lmdetokenize ! fdsink"));
  g_assert_true (can_link ("fdsrc ! lmgenerate ! fdsink"));
  g_assert_false (can_link ("lmprompt ! lmprefill"));
  g_assert_false (can_link ("lmprompt ! lmdetokenize"));
  g_assert_false (can_link ("lmtokenize ! lmdecode"));
  g_assert_false (can_link ("lmprefill ! lmdetokenize"));
  g_assert_false (can_link ("lmdetokenize ! text/x-raw,format=pango-markup ! "
                            "fakesink"));
  g_assert_false (can_link ("fakesrc ! application/octet-stream ! lmtokenize"));
  g_assert_false (can_link ("fakesrc ! text/x-raw,format=pango-markup ! "
                            "lmchat"));
  g_assert_false (can_link ("fakesrc ! application/json ! lmtokenize"));
}

static void
test_refused_caps (void)
{
  GstElement *pipeline = pipeline_new ("lmprompt text=hi ! lmtokenize "
      "model=%s ! application/x-lm-tokens,vocab=other ! fakesink", models[0]);
  g_autofree char *error = pipeline_run_to_error (pipeline);
  g_autoptr (RunnelModel) model = gst_lm_model_get (models[0], 0, NULL);
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, NULL);

  g_assert_nonnull (strstr (error, "vocab"));
  g_assert_nonnull (strstr (error, "other"));
  g_assert_nonnull (strstr (error, runnel_tokenizer_get_digest (tokenizer)));
  pipeline_free (pipeline);
}

static GArray *
reply_of (const char *model)
{
  GstElement *pipeline = pipeline_new ("lmprompt text=\"the user\" ! "
      "lmtokenize model=%s ! " GENERATE SINK, model);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  GArray *reply;

  pipeline_run (pipeline);
  reply = recorder_get_reply (out, 0);
  pipeline_free (pipeline);
  return reply;
}

static void
assert_same_reply (GArray *a, GArray *b)
{
  g_assert_cmpmem (a->data, a->len * sizeof (gint32), b->data,
                   b->len * sizeof (gint32));
}

/* New state caps in the middle of the stream: what was before is answered by
 * the model that it was for. */
static void
test_two_models (void)
{
  g_autoptr (Watchdog) watchdog = watchdog_start (120, "two models");
  g_autoptr (GArray) alone_a = reply_of (models[0]);
  g_autoptr (GArray) alone_b = reply_of (models[1]);
  GstElement *pipeline = pipeline_new ("funnel name=f ! " GENERATE SINK
      " appsrc name=in format=time caps=\"" GST_LM_CAPS_TEXT "\" ! lmtokenize "
      "model=%s ! f.  appsrc name=in2 format=time caps=\"" GST_LM_CAPS_TEXT
      "\" ! lmtokenize model=%s ! f.", models[0], models[1]);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 6; i++)
    {
      g_autoptr (GArray) reply = NULL;
      g_autoptr (GstBuffer) buffer = gst_buffer_new_memdup ("the user", 8);
      GstFlowReturn ret;

      g_signal_emit_by_name (pipeline_get (pipeline, i % 2 == 0 ? "in" : "in2"),
                             "push-buffer", buffer, &ret);
      recorder_wait_markers (out, i + 1);
      reply = recorder_get_reply (out, i);
      assert_same_reply (reply, i % 2 == 0 ? alone_a : alone_b);
    }
  pipeline_free (pipeline);
}

/* An element with a model of its own uses it, and nobody else's. */
static void
test_own_model (void)
{
  g_autoptr (GArray) alone = reply_of (models[1]);
  GstElement *pipeline = pipeline_new ("lmprompt text=\"the user\" ! "
      "lmtokenize model=%s ! lmprefill model=%s ! lmdecode temperature=0 "
      "max-tokens=12" SINK, models[0], models[1]);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (GArray) reply = NULL;

  pipeline_run (pipeline);
  reply = recorder_get_reply (out, 0);
  assert_same_reply (reply, alone);
  pipeline_free (pipeline);
}

/* Text asks downstream where its model is. */
static void
test_model_downstream (void)
{
  g_autoptr (GArray) alone = reply_of (models[1]);
  GstElement *pipeline = pipeline_new ("lmprompt text=\"the user\" ! "
      "lmtokenize ! identity ! lmprefill model=%s ! lmdecode temperature=0 "
      "max-tokens=12" SINK, models[1]);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");
  g_autoptr (GArray) reply = NULL;

  pipeline_run (pipeline);
  reply = recorder_get_reply (out, 0);
  assert_same_reply (reply, alone);
  pipeline_free (pipeline);
}

static void
check_property (GstElement *element, GParamSpec *spec)
{
  const GParamFlags mutable = GST_PARAM_MUTABLE_READY
      | GST_PARAM_MUTABLE_PAUSED | GST_PARAM_MUTABLE_PLAYING;
  const char *blurb = g_param_spec_get_blurb (spec);

  if (!g_str_has_prefix (g_type_name (spec->owner_type), "GstLm"))
    return;
  if (blurb == NULL || strlen (blurb) < 10)
    g_error ("%s:%s lacks a blurb", GST_OBJECT_NAME (element), spec->name);
  if ((spec->flags & G_PARAM_WRITABLE) != 0 && (spec->flags & mutable) == 0)
    g_error ("%s:%s does not say when it may change",
             GST_OBJECT_NAME (element), spec->name);
}

static void
check_element (GstElementFactory *factory)
{
  static const char *const keys[] = {
    GST_ELEMENT_METADATA_LONGNAME, GST_ELEMENT_METADATA_KLASS,
    GST_ELEMENT_METADATA_DESCRIPTION, GST_ELEMENT_METADATA_AUTHOR,
  };
  GstElement *element = gst_element_factory_create (factory, NULL);
  g_autofree GParamSpec **specs = NULL;
  guint n_specs;

  g_assert_nonnull (element);
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      const char *value = gst_element_factory_get_metadata (factory, keys[i]);

      g_assert_nonnull (value);
      g_assert_cmpuint (strlen (value), >, 5);
    }
  g_assert_cmpuint (gst_plugin_feature_get_rank (GST_PLUGIN_FEATURE (factory)),
                    ==, GST_RANK_NONE);
  specs = g_object_class_list_properties (G_OBJECT_GET_CLASS (element),
                                          &n_specs);
  for (guint i = 0; i < n_specs; i++)
    check_property (element, specs[i]);
  gst_object_unref (element);
}

static void
test_manual (void)
{
  GList *features = gst_registry_get_feature_list_by_plugin (
      gst_registry_get (), "runnel");
  guint n = 0;

  for (GList *l = features; l != NULL; l = l->next)
    if (GST_IS_ELEMENT_FACTORY (l->data))
      {
        g_autoptr (GstPluginFeature) loaded = gst_plugin_feature_load (l->data);

        check_element (GST_ELEMENT_FACTORY (loaded));
        n++;
      }
  g_assert_cmpuint (n, >=, 7);
  gst_plugin_feature_list_free (features);
}

int
main (int argc, char **argv)
{
  int status;

  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (models); i++)
    {
      TinyModel model = TINY_MODEL_DEFAULT;

      model.seed = i + 1;
      models[i] = tiny_model_write (&model);
    }
  g_test_add_func ("/negotiation/second-prompt", test_second_prompt);
  g_test_add_func ("/negotiation/queued-turns", test_queued_turns);
  g_test_add_func ("/negotiation/links", test_links);
  g_test_add_func ("/negotiation/refused-caps", test_refused_caps);
  g_test_add_func ("/negotiation/two-models", test_two_models);
  g_test_add_func ("/negotiation/own-model", test_own_model);
  g_test_add_func ("/negotiation/model-downstream", test_model_downstream);
  g_test_add_func ("/negotiation/manual", test_manual);
  status = g_test_run ();
  for (guint i = 0; i < G_N_ELEMENTS (models); i++)
    {
      g_unlink (models[i]);
      g_free (models[i]);
    }
  return status;
}
