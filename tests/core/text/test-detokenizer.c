/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "error.h"
#include "small-vocabulary.h"
#include "text/detokenizer.h"

/* A llama; two Chinese characters; a family joined by zero-width joiners. */
static const char *const texts[] = {
  "\xf0\x9f\xa6\x99",
  "\xe4\xbd\xa0\xe5\xa5\xbd",
  "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7"
  "\xe2\x80\x8d\xf0\x9f\x91\xa6",
};

typedef struct {
  SmallVocabulary *vocabulary;
  RunnelTokenizer *tokenizer;
  gint32 control;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  fixture->vocabulary = small_vocabulary_new ();
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    for (gsize start = 0; start < strlen (texts[i]); start++)
      for (gsize n = 2; n <= 4 && start + n <= strlen (texts[i]); n++)
        small_vocabulary_add_bytes (fixture->vocabulary, texts[i] + start, n);
  fixture->control = small_vocabulary_add (fixture->vocabulary, "<|end|>",
                                           RUNNEL_TOKEN_CONTROL);
  fixture->tokenizer = small_vocabulary_load (fixture->vocabulary, "smollm",
                                              &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  g_clear_object (&fixture->tokenizer);
  small_vocabulary_free (fixture->vocabulary);
}

/* Pushes @text in pieces of the given lengths. */
static void
push_cut (Fixture *fixture, RunnelDetokenizer *detokenizer, const char *text,
          const guint *lengths, guint n)
{
  g_autoptr (GString) all = g_string_new (NULL);
  g_autofree char *rest = NULL;
  gsize at = 0;

  for (guint i = 0; i < n; i++) {
    gsize before = all->len;
    gint32 token = small_vocabulary_add_bytes (fixture->vocabulary, text + at,
                                               lengths[i]);

    g_assert_true (runnel_detokenizer_push_to (detokenizer, token, all, NULL));
    g_assert_true (g_utf8_validate (all->str + before, all->len - before,
                                    NULL));
    at += lengths[i];
  }
  rest = runnel_detokenizer_flush (detokenizer, TRUE);
  g_assert_cmpstr (rest, ==, "");
  g_assert_cmpstr (all->str, ==, text);
}

/* All ways to cut the rest of a text; they recurse as deep as it is long. */
static void
push_all_cuts (Fixture *fixture, RunnelDetokenizer *detokenizer,
               const char *text, gsize at, guint *lengths, guint n)
{
  if (text[at] == '\0')
    push_cut (fixture, detokenizer, text, lengths, n);
  for (guint i = 1; i <= 4 && at + i <= strlen (text); i++) {
    lengths[n] = i;
    push_all_cuts (fixture, detokenizer, text, at + i, lengths, n + 1);
  }
}

static void
test_all_cuts (Fixture *fixture, gconstpointer data)
{
  g_autoptr (RunnelDetokenizer) detokenizer =
      runnel_detokenizer_new (fixture->tokenizer, FALSE);
  guint lengths[32];

  push_all_cuts (fixture, detokenizer, texts[0], 0, lengths, 0);
  push_all_cuts (fixture, detokenizer, texts[1], 0, lengths, 0);
  /* The family has 7 million cuts: of its 25 bytes, each end of 14. */
  push_all_cuts (fixture, detokenizer, texts[2] + 11, 0, lengths, 0);
}

static void
test_random_cuts (Fixture *fixture, gconstpointer data)
{
  g_autoptr (RunnelDetokenizer) detokenizer =
      runnel_detokenizer_new (fixture->tokenizer, FALSE);
  guint32 seed = g_test_rand_int ();
  g_autoptr (GRand) random = g_rand_new_with_seed (seed);

  g_test_message ("seed %u", seed);
  for (guint i = 0; i < 20000; i++) {
    gsize left = strlen (texts[2]);
    guint lengths[32], n = 0;

    while (left > 0) {
      lengths[n] = g_rand_int_range (random, 1, MIN (left, 4) + 1);
      left -= lengths[n++];
    }
    push_cut (fixture, detokenizer, texts[2], lengths, n);
  }
}

static void
test_cut_at_limit (Fixture *fixture, gconstpointer data)
{
  g_autoptr (RunnelDetokenizer) detokenizer =
      runnel_detokenizer_new (fixture->tokenizer, FALSE);

  for (guint keep = 0; keep < 2; keep++) {
    for (guint n = 1; n < 4; n++) {
      g_autofree char *rest = NULL, *again = NULL, *next = NULL;

      for (guint i = 0; i < n; i++) {
        g_autofree char *piece = runnel_detokenizer_push (
            detokenizer, (guint8) texts[0][i], NULL);

        g_assert_cmpstr (piece, ==, "");
      }
      rest = runnel_detokenizer_flush (detokenizer, keep);
      again = runnel_detokenizer_flush (detokenizer, keep);
      g_assert_cmpstr (rest, ==, keep ? "\xef\xbf\xbd" : "");
      g_assert_cmpstr (again, ==, "");
      next = runnel_detokenizer_push (detokenizer, 'x', NULL);
      g_assert_cmpstr (next, ==, "x");
    }
  }
  g_free (runnel_detokenizer_push (detokenizer, 0xf0, NULL));
  runnel_detokenizer_reset (detokenizer);
  {
    g_autofree char *piece = runnel_detokenizer_push (detokenizer, 'y', NULL);

    g_assert_cmpstr (piece, ==, "y");
  }
}

/* Every short string of bytes that matter, against GLib's replacement of
 * maximal subparts. */
static void
test_ill_formed (Fixture *fixture, gconstpointer data)
{
  static const guint8 bytes[] = { 'a', 0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2,
                                  0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5 };
  /* What Unicode 15, table 3-8 and its neighbours say. */
  static const struct {
    const char *bytes;
    const char *text;
  } cases[] = {
    { "\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41",
      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" "A" },
    { "\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41",
      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" "A" },
    { "\xf4\x91\x92\x93\xff\x41\x80\xbf\x42",
      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" "A"
      "\xef\xbf\xbd\xef\xbf\xbd" "B" },
    { "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41",
      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" "A" },
  };
  g_autoptr (RunnelDetokenizer) detokenizer =
      runnel_detokenizer_new (fixture->tokenizer, FALSE);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GString) out = g_string_new (NULL);
    g_autofree char *rest = NULL;

    for (const char *p = cases[i].bytes; *p != '\0'; p++)
      g_assert_true (runnel_detokenizer_push_to (detokenizer, (guint8) *p, out,
                                                 NULL));
    rest = runnel_detokenizer_flush (detokenizer, TRUE);
    g_string_append (out, rest);
    g_assert_cmpstr (out->str, ==, cases[i].text);
  }
  for (guint i = 0; i < 13 * 13 * 13 * 13 * 13; i++) {
    g_autoptr (GString) out = g_string_new (NULL);
    g_autofree char *rest = NULL;

    for (guint k = 0, n = i; k < 5; k++, n /= 13)
      if (!runnel_detokenizer_push_to (detokenizer, bytes[n % 13], out, NULL))
        g_assert_not_reached ();
    rest = runnel_detokenizer_flush (detokenizer, TRUE);
    g_string_append (out, rest);
    if (!g_utf8_validate (out->str, out->len, NULL))
      g_error ("string %u gives ill-formed text", i);
  }
}

static void
test_control (Fixture *fixture, gconstpointer data)
{
  for (guint render = 0; render < 2; render++) {
    g_autoptr (RunnelDetokenizer) detokenizer =
        runnel_detokenizer_new (fixture->tokenizer, render);
    g_autofree char *piece =
        runnel_detokenizer_push (detokenizer, fixture->control, NULL);

    g_assert_cmpstr (piece, ==, render ? "<|end|>" : "");
  }
}

static void
test_out_of_range (Fixture *fixture, gconstpointer data)
{
  g_autoptr (RunnelDetokenizer) detokenizer =
      runnel_detokenizer_new (fixture->tokenizer, FALSE);
  const gint32 wrong[] = {
    -1, G_MININT32, G_MAXINT32,
    (gint32) runnel_tokenizer_get_n_tokens (fixture->tokenizer),
  };

  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (runnel_detokenizer_push (detokenizer, wrong[i], &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, function) \
  g_test_add ("/detokenizer/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("all-cuts", test_all_cuts);
  ADD ("random-cuts", test_random_cuts);
  ADD ("cut-at-limit", test_cut_at_limit);
  ADD ("ill-formed", test_ill_formed);
  ADD ("control", test_control);
  ADD ("out-of-range", test_out_of_range);
  return g_test_run ();
}
