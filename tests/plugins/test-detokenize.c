/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "element-fixture.h"

#include <string.h>
#include "tiny-model.h"

/* ZWJ family: 25 bytes, in tokens of one byte each. */
static const char family[] = "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2"
                             "\x80\x8d\xf0\x9f\x91\xa7\xe2\x80\x8d\xf0\x9f\x91"
                             "\xa6";

static ElementTest *
detokenize_new (const char *properties)
{
  g_autofree char *launch =
      g_strconcat ("lmdetokenize model=$MODEL ", properties, NULL);

  return element_test_new (launch, GST_LM_CAPS_TOKENS);
}

typedef struct {
  const gint32 *tokens;
  gsize n_tokens;
  guint64 text_end;
  gboolean last;
} Part;

static GstFlowReturn
push_part (ElementTest *test, guint64 id, Part part)
{
  GstBuffer *buffer = gst_lm_buffer_new_tokens (part.tokens, part.n_tokens);
  GstLmRequestMeta *meta = gst_lm_buffer_add_request_meta (buffer, id);

  meta->is_reply = TRUE;
  if (part.text_end != GST_LM_TEXT_END_NONE)
    gst_lm_buffer_add_tokens_meta (buffer, part.text_end, NULL, 0, NULL, 0);
  if (part.last)
    {
      meta->finish_reason = RUNNEL_FINISH_REASON_LENGTH;
      meta->completion_tokens = 3;
      GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_MARKER);
    }
  return gst_harness_push (test->harness, buffer);
}

/* What came out so far, with [ ] around each buffer and | behind a marked
 * one. */
static char *
describe_output (ElementTest *test)
{
  GString *all = g_string_new (NULL);
  GstBuffer *buffer;

  while ((buffer = gst_harness_try_pull (test->harness)) != NULL)
    {
      g_autofree char *text = element_test_text (buffer);

      g_assert_true (g_utf8_validate (text, -1, NULL));
      g_assert_null (gst_lm_buffer_get_request_meta (buffer)->model);
      g_string_append_printf (
          all, "[%s]%s", text,
          GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER) ? "|" : "");
      gst_buffer_unref (buffer);
    }
  return g_string_free (all, FALSE);
}

static void
expect_output (ElementTest *test, const char *expected)
{
  g_autofree char *got = describe_output (test);

  g_assert_cmpstr (got, ==, expected);
}

static void
to_bytes (const char *text, gint32 *tokens)
{
  for (gsize i = 0; text[i] != '\0'; i++)
    tokens[i] = TINY_FIRST_BYTE + (guint8) text[i];
}

/* C05: every way of cutting gives whole characters and the whole text. */
static void
test_cuts (void)
{
  gint32 tokens[sizeof family];

  to_bytes (family, tokens);
  for (gsize step = 1; step <= 5; step++)
    {
      g_autoptr (ElementTest) test = detokenize_new ("");
      g_autoptr (GString) all = g_string_new (NULL);
      gsize n = strlen (family);
      GstBuffer *buffer;

      for (gsize at = 0; at < n; at += step)
        push_part (test, 1, (Part) { tokens + at, MIN (step, n - at),
                                     GST_LM_TEXT_END_NONE, at + step >= n });
      while ((buffer = gst_harness_try_pull (test->harness)) != NULL)
        {
          g_autofree char *text = element_test_text (buffer);

          g_assert_true (g_utf8_validate (text, -1, NULL));
          g_string_append (all, text);
          gst_buffer_unref (buffer);
        }
      g_assert_cmpstr (all->str, ==, family);
    }
}

static void
test_incomplete (void)
{
  g_autoptr (ElementTest) keep = detokenize_new ("");
  g_autoptr (ElementTest) drop = detokenize_new ("keep-incomplete=false");
  gint32 tokens[4];

  to_bytes ("a\xf0\x9f\xa6", tokens);
  for (gsize i = 0; i < 4; i++)
    {
      Part part = { tokens + i, 1, GST_LM_TEXT_END_NONE, i == 3 };

      push_part (keep, 1, part);
      push_part (drop, 2, part);
    }
  expect_output (keep, "[a][\xef\xbf\xbd]|");
  expect_output (drop, "[a][]|");
}

/* C29: generation says how far the text may be shown. */
static void
test_text_end (void)
{
  g_autoptr (ElementTest) test = detokenize_new ("");
  gint32 tokens[] = { TINY_FIRST_PIECE + 13, TINY_FIRST_PIECE + 1 };

  push_part (test, 1, (Part) { tokens, 1, 2, FALSE });
  expect_output (test, "[us]");
  push_part (test, 1, (Part) { tokens + 1, 1, 5, FALSE });
  expect_output (test, "[ert]");
  push_part (test, 1, (Part) { NULL, 0, 6, TRUE });
  expect_output (test, "[h]|");

  /* The next reply begins anew. */
  push_part (test, 2, (Part) { tokens, 1, 4, TRUE });
  expect_output (test, "[user]|");
}

static void
test_specials (void)
{
  g_autoptr (ElementTest) hidden = detokenize_new ("");
  g_autoptr (ElementTest) shown = detokenize_new ("render-special=true");
  gint32 tokens[] = { TINY_FIRST_PIECE + 1, TINY_IM_START,
                      TINY_FIRST_PIECE + 13 };

  push_part (hidden, 1, (Part) { tokens, 3, 5, TRUE });
  expect_output (hidden, "[theus]|");
  /* The limit does not count what generation does not show. */
  push_part (shown, 2, (Part) { tokens, 2, 3, FALSE });
  push_part (shown, 2, (Part) { tokens + 2, 1, 5, TRUE });
  expect_output (shown, "[the<|im_start|>][us]|");
}

/* Replies to several requests may come in turns. */
static void
test_interleaved (void)
{
  g_autoptr (ElementTest) test = detokenize_new ("");
  gint32 a[3], b[3];

  to_bytes ("\xe4\xbd\xa0", a);
  to_bytes ("\xe5\xa5\xbd", b);
  for (gsize i = 0; i < 3; i++)
    {
      push_part (test, 1, (Part) { a + i, 1, GST_LM_TEXT_END_NONE, i == 2 });
      push_part (test, 2, (Part) { b + i, 1, GST_LM_TEXT_END_NONE, i == 2 });
    }
  expect_output (test, "[\xe4\xbd\xa0]|[\xe5\xa5\xbd]|");
}

static void
test_last_buffer (void)
{
  g_autoptr (ElementTest) test = detokenize_new ("");
  g_autoptr (GstBuffer) buffer = NULL;
  GstLmRequestMeta *meta;

  push_part (test, 7, (Part) { NULL, 0, 0, TRUE });
  buffer = gst_harness_pull (test->harness);
  meta = gst_lm_buffer_get_request_meta (buffer);
  g_assert_true (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER));
  g_assert_cmpuint (meta->id, ==, 7);
  g_assert_cmpint (meta->finish_reason, ==, RUNNEL_FINISH_REASON_LENGTH);
  g_assert_cmpuint (meta->completion_tokens, ==, 3);
}

static void
test_bad_tokens (void)
{
  g_autoptr (ElementTest) test = detokenize_new ("error-policy=report");
  gint32 foreign = 1000000, negative = -1;

  push_part (test, 1, (Part) { &foreign, 1, GST_LM_TEXT_END_NONE, FALSE });
  expect_output (test, "[]|");
  element_test_expect (test, GST_MESSAGE_WARNING, "1000000");
  push_part (test, 2, (Part) { &negative, 1, GST_LM_TEXT_END_NONE, FALSE });
  expect_output (test, "[]|");
  gst_harness_push (test->harness, element_test_buffer ("abc"));
  expect_output (test, "[]|");
}

/* Caps may come before the model is loaded or after it: no token of another
 * vocabulary goes through, and one message says so. */
static void
test_foreign_vocabulary (void)
{
  g_autoptr (ElementTest) test = element_test_new (
      "lmdetokenize model=$MODEL", GST_LM_CAPS_TOKENS ", vocab=(string)other");

  for (guint i = 0; i < 3; i++)
    g_assert_cmpint (gst_harness_push (test->harness,
                                       element_test_buffer ("abcd")), ==,
                     GST_FLOW_NOT_NEGOTIATED);
  g_assert_cmpuint (gst_harness_buffers_received (test->harness), ==, 0);
  element_test_expect (test, GST_MESSAGE_ERROR, "vocabulary other");
  element_test_expect_none (test, GST_MESSAGE_ERROR);
}

/* A flush forgets the reply that was under way. */
static void
test_flush (void)
{
  g_autoptr (ElementTest) test = detokenize_new ("");
  gint32 tokens[4];
  GstSegment segment;

  to_bytes ("\xf0\x9f\xa6\x99", tokens);
  push_part (test, 1, (Part) { tokens, 2, GST_LM_TEXT_END_NONE, FALSE });
  gst_harness_push_event (test->harness, gst_event_new_flush_start ());
  gst_harness_push_event (test->harness, gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (test->harness, gst_event_new_segment (&segment));
  push_part (test, 1, (Part) { tokens, 4, GST_LM_TEXT_END_NONE, TRUE });
  expect_output (test, "[\xf0\x9f\xa6\x99]|");
}

/* Ids of a prompt, as lmtokenize gives them: one buffer is all of it. */
static void
test_prompt (void)
{
  g_autoptr (ElementTest) test = element_test_new (
      "lmtokenize model=$MODEL ! lmdetokenize", GST_LM_CAPS_TEXT);

  element_test_push (test, "the user \xf0\x9f\xa6\x99");
  element_test_push (test, "");
  expect_output (test, "[the user \xf0\x9f\xa6\x99][]|");
}

static void
add_tests (void)
{
  g_test_add_func ("/detokenize/cuts", test_cuts);
  g_test_add_func ("/detokenize/incomplete", test_incomplete);
  g_test_add_func ("/detokenize/text-end", test_text_end);
  g_test_add_func ("/detokenize/specials", test_specials);
  g_test_add_func ("/detokenize/interleaved", test_interleaved);
  g_test_add_func ("/detokenize/last-buffer", test_last_buffer);
  g_test_add_func ("/detokenize/bad-tokens", test_bad_tokens);
  g_test_add_func ("/detokenize/foreign-vocabulary",
                   test_foreign_vocabulary);
  g_test_add_func ("/detokenize/flush", test_flush);
  g_test_add_func ("/detokenize/prompt", test_prompt);
}

int
main (int argc, char **argv)
{
  return element_test_run (&argc, &argv, add_tests);
}
