/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "generate/reply-stream.h"

typedef struct {
  const char *text;
  gboolean incomplete;
} Piece;

/* What came out of a stream, in all. Token i is the i-th piece. */
typedef struct {
  GString *text;
  guint n_tokens;
  guint64 text_end;
  gsize n_whole;
  gboolean stopped;
} Reply;

static void
take_step (RunnelReplyStream *stream, Reply *reply)
{
  RunnelGenerationStep step;

  runnel_reply_stream_get_step (stream, &step);
  for (gsize i = 0; i < step.n_tokens; i++) {
    g_assert_cmpint (step.tokens[i], ==, reply->n_tokens);
    g_assert_cmpfloat (step.logprobs[i], ==, -(float) reply->n_tokens);
    for (int j = 0; j < 2; j++)
      g_assert_cmpint (step.top[i * 2 + j].token, ==,
                       reply->n_tokens * 10 + j);
    reply->n_tokens++;
  }
  g_string_append_len (reply->text, step.text, step.text_length);
  g_assert_cmpuint (step.text_end, ==, reply->text->len);
  reply->text_end = step.text_end;
}

static Reply
run (const char *const *stops, const Piece *pieces, guint n)
{
  g_autoptr (RunnelReplyStream) stream =
    runnel_reply_stream_new (stops, TRUE, 2, NULL);
  Reply reply = { .text = g_string_new (NULL) };

  for (guint i = 0; i < n && !reply.stopped; i++) {
    const gint32 token = (gint32) i;
    const RunnelTokenLogprob top[2] = { { token * 10, 0 },
                                        { token * 10 + 1, 0 } };

    runnel_reply_stream_begin_step (stream);
    reply.stopped = runnel_reply_stream_push (
      stream, token, -(float) i, top, pieces[i].text, strlen (pieces[i].text),
      pieces[i].incomplete);
    take_step (stream, &reply);
  }
  if (!reply.stopped) {
    runnel_reply_stream_begin_step (stream);
    reply.stopped = runnel_reply_stream_flush (stream, "", 0);
    take_step (stream, &reply);
  }
  runnel_reply_stream_begin_step (stream);
  take_step (stream, &reply);
  reply.n_whole = runnel_reply_stream_get_n_whole (stream);
  return reply;
}

static void
check (const char *const *stops, const Piece *pieces, guint n,
       const char *text, guint n_tokens, guint n_whole)
{
  Reply reply = run (stops, pieces, n);

  g_assert_cmpstr (reply.text->str, ==, text);
  g_assert_cmpuint (reply.n_tokens, ==, n_tokens);
  g_assert_cmpuint (reply.n_whole, ==, n_whole);
  g_string_free (reply.text, TRUE);
}

#define STOPS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define CHECK(stops, pieces, text, n_tokens, n_whole)                         \
  check (stops, pieces, G_N_ELEMENTS (pieces), text, n_tokens, n_whole)

/* C29: a token that the stop string cuts comes out, but is not whole. */
static void
test_stops (void)
{
  static const Piece abc[] = { { "ABC" }, { " DEF" }, { "G" }, { "HI" },
                               { "JKL" } };
  static const Piece newlines[] = { { "a\n" }, { "\nb" } };
  static const Piece aab[] = { { "a" }, { "a" }, { "ab" } };
  static const Piece first[] = { { "x" }, { "y" } };
  static const Piece control[] = { { "a" }, { "" }, { "" }, { "END" } };

  CHECK (STOPS ("DEFGHIJ"), abc, "ABC ", 2, 1);
  CHECK (STOPS ("\n\n", "END"), newlines, "a", 1, 0);
  CHECK (STOPS ("aab", "ab"), aab, "a", 1, 1);
  CHECK (STOPS ("x"), first, "", 0, 0);
  CHECK (STOPS ("END"), control, "a", 3, 3);
}

/* What can no longer match comes out unchanged. */
static void
test_released (void)
{
  static const Piece abc[] = { { "ABC" }, { " DEF" }, { "G" }, { "HI" },
                               { "X" } };

  CHECK (STOPS ("DEFGHIJ"), abc, "ABC DEFGHIX", 5, 5);
  check (STOPS ("DEFGHIJ"), abc, 4, "ABC DEFGHI", 4, 4);
  CHECK (NULL, abc, "ABC DEFGHIX", 5, 5);
}

/* A token that ends inside a character comes out at once, but is whole only
 * when the character is. */
static void
test_incomplete (void)
{
  static const Piece accent[] = { { "caf" }, { "", TRUE }, { "\xc3\xa9" },
                                  { "!" } };
  static const Piece mixed[] = { { "caf", TRUE }, { "\xc3\xa9" }, { "!" } };

  CHECK (STOPS ("\xc3\xa9"), accent, "caf", 2, 1);
  CHECK (STOPS ("\xc3\xa9"), mixed, "caf", 1, 0);
  CHECK (STOPS ("!"), accent, "caf\xc3\xa9", 3, 3);
  CHECK (NULL, accent, "caf\xc3\xa9!", 4, 4);
  check (NULL, accent, 2, "caf", 2, 2);
}

/* Text that only the end brings can complete a stop string. */
static void
test_flush_stops (void)
{
  g_autoptr (RunnelReplyStream) stream =
    runnel_reply_stream_new (STOPS ("a\xef\xbf\xbd"), FALSE, 0, NULL);
  RunnelGenerationStep step;

  runnel_reply_stream_begin_step (stream);
  g_assert_false (runnel_reply_stream_push (stream, 1, 0, NULL, "xa", 2, TRUE));
  runnel_reply_stream_get_step (stream, &step);
  g_assert_cmpuint (step.n_tokens, ==, 0);
  g_assert_null (step.logprobs);
  g_assert_null (step.top);
  g_assert_cmpstr (step.text, ==, "x");
  runnel_reply_stream_begin_step (stream);
  g_assert_true (runnel_reply_stream_flush (stream, "\xef\xbf\xbd", 3));
  runnel_reply_stream_get_step (stream, &step);
  g_assert_cmpuint (step.n_tokens, ==, 1);
  g_assert_cmpuint (step.text_end, ==, 1);
  g_assert_cmpuint (runnel_reply_stream_get_n_whole (stream), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/reply-stream/stops", test_stops);
  g_test_add_func ("/reply-stream/released", test_released);
  g_test_add_func ("/reply-stream/incomplete", test_incomplete);
  g_test_add_func ("/reply-stream/flush-stops", test_flush_stops);
  return g_test_run ();
}
