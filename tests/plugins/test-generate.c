/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* lmgenerate gives what the elements linked by hand give, and has their
 * properties; the presets load. */
#include "pipeline-run.h"

#define SOURCE "appsrc name=in format=time caps=\"" GST_LM_CAPS_TEXT "\" ! "
#define SINK " ! fakesink name=out sync=false async=false"

static const char *model;

static char *
text_of (GstElement *pipeline, Recorder *out, const char *const *prompts)
{
  guint n = g_strv_length ((char **) prompts);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < n; i++)
    pipeline_send (pipeline, prompts[i], NULL);
  recorder_wait_markers (out, n);
  g_assert_cmpuint (recorder_get_n_markers (out), ==, n);
  return recorder_get_text (out);
}

static void
assert_fused_equals_split (const char *parameters)
{
  static const char *const prompts[] = { "Hello there", "And again?", NULL };
  GstElement *fused = pipeline_new (SOURCE "lmgenerate model=%s %s" SINK,
      model, parameters);
  GstElement *split = pipeline_new (SOURCE "lmchat ! lmtokenize model=%s ! "
      "lmprefill ! lmdecode %s ! lmdetokenize" SINK, model, parameters);
  g_autoptr (Recorder) fused_out = recorder_new (fused, "out");
  g_autoptr (Recorder) split_out = recorder_new (split, "out");
  g_autofree char *fused_text = text_of (fused, fused_out, prompts);
  g_autofree char *split_text = text_of (split, split_out, prompts);

  g_assert_cmpstr (fused_text, ==, split_text);
  g_assert_cmpuint (strlen (fused_text), >, 0);
  for (guint i = 0; i < 2; i++) {
    GstLmRequestMeta *a = recorder_get_end (fused_out, i);
    GstLmRequestMeta *b = recorder_get_end (split_out, i);

    g_assert_cmpint (a->finish_reason, ==, b->finish_reason);
    g_assert_cmpuint (a->prompt_tokens, ==, b->prompt_tokens);
    g_assert_cmpuint (a->completion_tokens, ==, b->completion_tokens);
  }
  pipeline_free (fused);
  pipeline_free (split);
}

static void
test_equals_split (void)
{
  assert_fused_equals_split ("temperature=0 max-tokens=20");
  assert_fused_equals_split ("temperature=1.2 seed=5 max-tokens=20 "
      "repetition-penalty=1.3");
  assert_fused_equals_split ("temperature=0 max-tokens=20 stop=\"<\\\"a\\\",\\\"e\\\">\"");
}

/* framing belongs to the bin's input alone. */
static void
test_framing (void)
{
  GstElement *pipeline = pipeline_new (SOURCE "lmgenerate framing=stream "
      "model=%s temperature=0 max-tokens=5" SINK, model);
  g_autoptr (Recorder) out = recorder_new (pipeline, "out");

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  pipeline_send (pipeline, "one ", NULL);
  pipeline_send (pipeline, "request", NULL);
  pipeline_end (pipeline);
  pipeline_run (pipeline);
  g_assert_cmpuint (recorder_get_n_markers (out), ==, 1);
  pipeline_free (pipeline);
}

/* Every property of every element of the bin is one of the bin, with the same
 * type and default, and no freer to change: GST_PARAM_MUTABLE_* ascend. */
static void
test_properties (void)
{
  static const char *const names[] = {
    "lmchat", "lmtokenize", "lmprefill", "lmdecode", "lmdetokenize"
  };
  g_autoptr (GstElement) bin =
      gst_object_ref_sink (gst_element_factory_make ("lmgenerate", NULL));
  guint n_checked = 0;

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (GstElement) child =
        gst_bin_get_by_name (GST_BIN (bin), names[i] + strlen ("lm"));
    g_autofree GParamSpec **specs = NULL;
    guint n_specs;

    g_assert_nonnull (child);
    specs = g_object_class_list_properties (G_OBJECT_GET_CLASS (child),
        &n_specs);
    for (guint j = 0; j < n_specs; j++) {
      GParamSpec *ours;

      if (!g_type_is_a (specs[j]->owner_type, GST_TYPE_LM_FILTER))
        continue;
      ours = g_object_class_find_property (G_OBJECT_GET_CLASS (bin),
          specs[j]->name);
      g_assert_nonnull (ours);
      g_assert_true (ours->value_type == specs[j]->value_type);
      g_assert_cmpint (ours->flags, <=, specs[j]->flags);
      g_assert_cmpint (g_param_values_cmp (ours,
              g_param_spec_get_default_value (ours),
              g_param_spec_get_default_value (specs[j])), ==, 0);
      n_checked++;
    }
  }
  g_assert_cmpuint (n_checked, >, 30);
}

static void
test_forwarding (void)
{
  g_autoptr (GstElement) bin =
      gst_object_ref_sink (gst_element_factory_make ("lmgenerate", NULL));
  g_autoptr (GstElement) decode = gst_bin_get_by_name (GST_BIN (bin), "decode");
  g_autoptr (GstElement) tokenize =
      gst_bin_get_by_name (GST_BIN (bin), "tokenize");
  g_autofree char *path = NULL;
  GstLmFraming framing;
  double temperature;

  g_object_set (bin, "temperature", 0.25, "model", "some.gguf", "framing",
      GST_LM_FRAMING_LINE, NULL);
  g_object_get (decode, "temperature", &temperature, NULL);
  g_assert_cmpfloat (temperature, ==, 0.25);
  g_object_get (bin, "temperature", &temperature, "framing", &framing, NULL);
  g_assert_cmpfloat (temperature, ==, 0.25);
  g_assert_cmpint (framing, ==, GST_LM_FRAMING_LINE);
  g_object_get (tokenize, "framing", &framing, "model", &path, NULL);
  g_assert_cmpint (framing, ==, GST_LM_FRAMING_BUFFER);
  g_assert_cmpstr (path, ==, "some.gguf");
}

static void
test_presets (void)
{
  static const struct {
    const char *element, *preset, *property;
    double value;
  } presets[] = {
    { "lmdecode", "greedy", "temperature", 0 },
    { "lmdecode", "creative", "temperature", 1 },
    { "lmdecode", "creative", "repetition-penalty", 1.1 },
    { "lmprefill", "low-memory", "context-length", 1024 },
    { "lmprefill", "low-memory", "cache-budget", 0 },
    { "lmgenerate", "greedy", "temperature", 0 },
    { "lmgenerate", "creative", "top-k", 0 },
    { "lmgenerate", "low-memory", "chunk", 32 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (presets); i++) {
    g_autoptr (GstElement) element = gst_object_ref_sink
        (gst_element_factory_make (presets[i].element, NULL));
    g_auto (GValue) value = G_VALUE_INIT;

    g_test_message ("%s of %s", presets[i].preset, presets[i].element);
    g_assert_true (gst_preset_load_preset (GST_PRESET (element),
            presets[i].preset));
    g_value_init (&value, G_TYPE_DOUBLE);
    g_object_get_property (G_OBJECT (element), presets[i].property, &value);
    g_assert_cmpfloat (g_value_get_double (&value), ==, presets[i].value);
  }
}

/* Each line of a preset file is a property of its element. */
static void
test_preset_fields (void)
{
  static const char *const elements[] =
      { "lmdecide", "lmdecode", "lmprefill", "lmgenerate" };

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    g_autoptr (GstElement) element =
        gst_object_ref_sink (gst_element_factory_make (elements[i], NULL));
    g_autofree char *file = g_strconcat (G_OBJECT_TYPE_NAME (element), ".prs",
        NULL);
    g_autofree char *path = g_build_filename (g_getenv ("GST_PRESET_PATH"),
        file, NULL);
    g_autoptr (GKeyFile) keys = g_key_file_new ();
    g_autoptr (GError) error = NULL;
    g_auto (GStrv) groups = NULL;

    g_key_file_load_from_file (keys, path, G_KEY_FILE_NONE, &error);
    g_assert_no_error (error);
    groups = g_key_file_get_groups (keys, NULL);
    for (guint g = 1; groups[g]; g++) {
      g_auto (GStrv) names = g_key_file_get_keys (keys, groups[g], NULL, NULL);

      for (guint n = 0; names[n]; n++)
        g_assert_true (g_str_has_prefix (names[n], "_meta/")
            || g_object_class_find_property (G_OBJECT_GET_CLASS (element),
                names[n]));
    }
  }
}

/* Every element goes through every state, twice, without a peer. */
static void
test_states (void)
{
  static const char *const elements[] = {
    "lmprompt", "lmchat", "lmtokenize", "lmlookup", "lmprefill", "lmdecide",
    "lmgate", "lmdecode", "lmdetokenize", "lmgenerate"
  };

  for (guint i = 0; i < 2 * G_N_ELEMENTS (elements); i++) {
    g_autoptr (GstElement) element = gst_object_ref_sink
        (gst_element_factory_make (elements[i / 2], NULL));

    g_test_message ("%s", elements[i / 2]);
    if (g_object_class_find_property (G_OBJECT_GET_CLASS (element), "model"))
      g_object_set (element, "model", model, NULL);
    for (guint round = 0; round < 2; round++) {
      gst_element_set_state (element, GST_STATE_READY);
      gst_element_set_state (element, GST_STATE_PAUSED);
      gst_element_set_state (element, GST_STATE_PLAYING);
      gst_element_set_state (element, GST_STATE_PAUSED);
      gst_element_set_state (element, GST_STATE_READY);
      g_assert_cmpint (gst_element_set_state (element, GST_STATE_NULL), ==,
          GST_STATE_CHANGE_SUCCESS);
    }
  }
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  model = pipeline_model_path ();
  g_test_add_func ("/generate/equals-split", test_equals_split);
  g_test_add_func ("/generate/framing", test_framing);
  g_test_add_func ("/generate/properties", test_properties);
  g_test_add_func ("/generate/forwarding", test_forwarding);
  g_test_add_func ("/generate/presets", test_presets);
  g_test_add_func ("/generate/preset-fields", test_preset_fields);
  g_test_add_func ("/generate/states", test_states);
  return g_test_run ();
}
