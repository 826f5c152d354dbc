/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "element-fixture.h"

#include <glib/gstdio.h>
#include <string.h>
#include "tiny-model.h"

static char *
describe_tokens (GstBuffer *buffer)
{
  g_autofree gint32 *tokens = NULL;
  GString *all = g_string_new (NULL);
  gsize n;

  tokens = gst_lm_buffer_dup_tokens (buffer, &n, NULL);
  for (gsize i = 0; i < n; i++)
    g_string_append_printf (all, i > 0 ? " %d" : "%d", tokens[i]);
  return g_string_free (all, FALSE);
}

static GstBuffer *
tokenize (ElementTest *test, GstBuffer *buffer)
{
  g_assert_cmpint (gst_harness_push (test->harness, buffer), ==, GST_FLOW_OK);
  return gst_harness_pull (test->harness);
}

static guint
count_controls (GstBuffer *buffer)
{
  g_autofree gint32 *tokens = NULL;
  guint count = 0;
  gsize n;

  tokens = gst_lm_buffer_dup_tokens (buffer, &n, NULL);
  for (gsize i = 0; i < n; i++)
    count += tokens[i] < TINY_FIRST_BYTE;
  return count;
}

static void
test_caps_and_model (void)
{
  g_autoptr (ElementTest) test =
      element_test_new ("lmtokenize model=$MODEL", GST_LM_CAPS_TEXT);
  g_autoptr (GstBuffer) buffer = tokenize (test, element_test_buffer ("the"));
  GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (buffer);
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (test->harness->sinkpad);
  g_autoptr (RunnelModel) model =
      gst_lm_model_get (element_test_model (1), RUNNEL_LOAD_MODE_AUTO, NULL);
  g_autofree char *ids = describe_tokens (buffer);
  g_autofree char *expected = g_strdup_printf ("%d", TINY_FIRST_PIECE + 1);

  g_assert_cmpstr (ids, ==, expected);
  g_assert_cmpstr (gst_lm_caps_get_vocab (caps), ==,
                   runnel_tokenizer_get_digest (
                       runnel_model_get_tokenizer (model, NULL)));
  g_assert_true (meta->model == model);
  g_assert_false (meta->is_reply);
  g_assert_false (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER));
}

/* C01 in the pipeline: who may write control tokens. */
static void
test_specials (void)
{
  g_autoptr (ElementTest) literal =
      element_test_new ("lmtokenize model=$MODEL", GST_LM_CAPS_TEXT);
  g_autoptr (ElementTest) parsing = element_test_new (
      "lmtokenize model=$MODEL parse-special=true", GST_LM_CAPS_TEXT);
  static const char *const text = "<|im_start|>user<|im_end|>";
  const RunnelTextSpan span = { 0, 12 };
  GstBuffer *input = element_test_buffer (text);
  g_autoptr (GstStructure) overrides = gst_structure_new (
      "o", "parse-special", G_TYPE_BOOLEAN, TRUE, NULL);
  g_autoptr (GstBuffer) a = NULL;
  g_autoptr (GstBuffer) b = NULL;
  g_autoptr (GstBuffer) c = NULL;
  g_autoptr (GstBuffer) d = NULL;
  g_autoptr (GstBuffer) e = NULL;

  a = tokenize (literal, element_test_buffer (text));
  g_assert_cmpuint (count_controls (a), ==, 0);
  b = tokenize (parsing, element_test_buffer (text));
  g_assert_cmpuint (count_controls (b), ==, 2);
  gst_lm_buffer_add_text_meta (input, &span, 1);
  c = tokenize (literal, gst_buffer_copy (input));
  g_assert_cmpuint (count_controls (c), ==, 1);
  /* The template's word counts, not the property. */
  d = tokenize (parsing, input);
  g_assert_cmpuint (count_controls (d), ==, 1);
  input = element_test_buffer (text);
  gst_lm_request_meta_set_overrides (
      gst_lm_buffer_add_request_meta (input, 0), overrides);
  e = tokenize (literal, input);
  g_assert_cmpuint (count_controls (e), ==, 2);
}

/* C33: no token at all is an empty reply; blanks are text. */
static void
test_empty (void)
{
  g_autoptr (ElementTest) test =
      element_test_new ("lmtokenize model=$MODEL", GST_LM_CAPS_TEXT);
  g_autoptr (GstBuffer) empty = tokenize (test, element_test_buffer (""));
  g_autoptr (GstBuffer) blanks = tokenize (test, element_test_buffer ("  \n"));
  g_autoptr (GstEvent) reply = element_test_pull_reply (test);
  GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (empty);
  RunnelFinishReason reason;
  const gchar *text;
  guint64 id;

  g_assert_cmpuint (gst_buffer_get_size (empty), ==, 0);
  g_assert_true (GST_BUFFER_FLAG_IS_SET (empty, GST_BUFFER_FLAG_MARKER));
  g_assert_true (gst_lm_buffer_has_ended (empty));
  g_assert_cmpint (meta->finish_reason, ==, RUNNEL_FINISH_REASON_STOP);
  g_assert_true (gst_lm_event_parse_reply (reply, &id, &text, &reason));
  g_assert_cmpuint (id, ==, meta->id);
  g_assert_cmpstr (text, ==, "");
  g_assert_cmpuint (gst_buffer_get_size (blanks), >, 0);
  g_assert_false (gst_lm_buffer_has_ended (blanks));
  g_assert_null (element_test_pull_reply (test));
}

/* C33: EOS without a prompt, and behind prompts. */
static void
test_eos (void)
{
  g_autoptr (ElementTest) none =
      element_test_new ("lmtokenize model=$MODEL", GST_LM_CAPS_TEXT);
  g_autoptr (ElementTest) stream = element_test_new (
      "lmtokenize model=$MODEL framing=stream", GST_LM_CAPS_TEXT);
  g_autoptr (GstEvent) eos = NULL;

  gst_harness_push_event (none->harness, gst_event_new_eos ());
  eos = gst_pad_get_sticky_event (none->harness->sinkpad, GST_EVENT_EOS, 0);
  g_assert_nonnull (eos);
  g_assert_cmpuint (gst_harness_buffers_received (none->harness), ==, 0);

  element_test_push (stream, "th");
  element_test_push (stream, "e");
  gst_harness_push_event (stream->harness, gst_event_new_eos ());
  g_assert_cmpuint (gst_harness_buffers_received (stream->harness), ==, 1);
}

static void
test_model_errors (void)
{
  GstElement *element = gst_element_factory_make ("lmtokenize", NULL);
  g_autoptr (GstBus) bus = gst_bus_new ();
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (ElementTest) without =
      element_test_new ("lmtokenize", GST_LM_CAPS_TEXT);

  gst_element_set_bus (element, bus);
  g_object_set (element, "model", "/no/such/model.gguf", NULL);
  g_assert_cmpint (gst_element_set_state (element, GST_STATE_READY), ==,
                   GST_STATE_CHANGE_FAILURE);
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  g_assert_nonnull (message);
  gst_message_parse_error (message, &error, NULL);
  g_assert_nonnull (strstr (error->message, "/no/such/model.gguf"));
  g_assert_null (gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR));
  gst_element_set_state (element, GST_STATE_NULL);
  gst_element_set_bus (element, NULL);
  gst_object_unref (element);

  g_assert_cmpint (element_test_push (without, "the"), ==, GST_FLOW_ERROR);
  element_test_expect (without, GST_MESSAGE_ERROR, "model=");
}

/* C35: another vocabulary is refused by name, and never links when both are
 * known. */
static void
test_foreign_vocabulary (void)
{
  g_autofree char *launch = g_strdup_printf (
      "lmtokenize model=$MODEL name=a ! lmdetokenize model=%s name=b",
      element_test_foreign_model ());
  g_autoptr (ElementTest) test = element_test_new (launch, GST_LM_CAPS_TEXT);
  GstBin *bin = GST_BIN (test->harness->element);
  g_autoptr (GstElement) a = gst_bin_get_by_name (bin, "a");
  g_autoptr (GstElement) b = gst_bin_get_by_name (bin, "b");
  GstFlowReturn ret = element_test_push (test, "the");

  g_assert_true (ret == GST_FLOW_NOT_NEGOTIATED || ret == GST_FLOW_ERROR);
  element_test_expect (test, GST_MESSAGE_ERROR, "vocab");

  /* By now both are loaded. */
  gst_element_unlink (a, b);
  g_assert_false (gst_element_link (a, b));
}

/* Other weights of the same vocabulary are welcome. */
static void
test_same_vocabulary (void)
{
  g_autofree char *launch = g_strdup_printf (
      "lmtokenize model=$MODEL ! lmdetokenize model=%s", element_test_model (2));
  g_autoptr (ElementTest) test = element_test_new (launch, GST_LM_CAPS_TEXT);
  g_autofree char *text = NULL;

  g_assert_cmpint (element_test_push (test, "the user"), ==, GST_FLOW_OK);
  text = element_test_pull (test);
  g_assert_cmpstr (text, ==, "the user");
}

/* A new file while READY is obeyed; states may be cycled in mid-load. */
static void
test_states (void)
{
  GstElement *element = gst_element_factory_make ("lmtokenize", NULL);

  g_object_set (element, "model", element_test_model (1), NULL);
  for (guint i = 0; i < 20; i++)
    {
      gst_element_set_state (element, GST_STATE_PAUSED);
      if (i % 3 == 0)
        gst_element_set_state (element, GST_STATE_READY);
      if (i % 3 == 1)
        g_object_set (element, "model", element_test_model (1 + i % 2), NULL);
      gst_element_set_state (element, i % 2 == 0 ? GST_STATE_NULL
                                                 : GST_STATE_READY);
    }
  gst_element_set_state (element, GST_STATE_NULL);
  gst_object_unref (element);
}

static void
test_model_query (void)
{
  g_autoptr (ElementTest) test = element_test_new (
      "identity ! lmtokenize model=$MODEL", GST_LM_CAPS_TEXT);
  g_autoptr (RunnelModel) model =
      gst_lm_pad_query_model (test->harness->srcpad);
  g_autoptr (ElementTest) other =
      element_test_new ("identity", GST_LM_CAPS_TEXT);
  g_autoptr (RunnelModel) none = gst_lm_pad_query_model (other->harness->srcpad);

  g_assert_nonnull (model);
  g_assert_cmpstr (runnel_model_get_path (model), ==, element_test_model (1));
  g_assert_null (none);
}

static void
add_tests (void)
{
  g_test_add_func ("/tokenize/caps-and-model", test_caps_and_model);
  g_test_add_func ("/tokenize/specials", test_specials);
  g_test_add_func ("/tokenize/empty", test_empty);
  g_test_add_func ("/tokenize/eos", test_eos);
  g_test_add_func ("/tokenize/model-errors", test_model_errors);
  g_test_add_func ("/tokenize/foreign-vocabulary", test_foreign_vocabulary);
  g_test_add_func ("/tokenize/same-vocabulary", test_same_vocabulary);
  g_test_add_func ("/tokenize/states", test_states);
  g_test_add_func ("/tokenize/model-query", test_model_query);
}

int
main (int argc, char **argv)
{
  return element_test_run (&argc, &argv, add_tests);
}
