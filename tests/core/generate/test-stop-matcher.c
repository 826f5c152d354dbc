/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "error.h"
#include "generate/stop-matcher.h"

/* Feeds the text in the pieces that the bits of `cuts` say (bit i: a cut
 * behind byte i) and flushes. Checks what is promised on the way: never more
 * held than can still match, released in step with the count. */
static void
feed (const char *const *stops, const char *text, guint64 cuts, GString *out,
      int *matched)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelStopMatcher) matcher =
    runnel_stop_matcher_new (stops, &error);
  const gsize n = strlen (text);
  gsize start = 0;

  g_assert_no_error (error);
  for (gsize i = 0; i < n; i++) {
    if (i + 1 < n && !(cuts >> i & 1))
      continue;
    const gboolean stopped =
      runnel_stop_matcher_push (matcher, text + start, i + 1 - start, out);

    start = i + 1;
    g_assert_cmpuint (runnel_stop_matcher_get_released (matcher), ==, out->len);
    if (stopped)
      g_assert_cmpint (runnel_stop_matcher_get_matched (matcher), >=, 0);
    else
      g_assert_cmpuint (out->len + runnel_stop_matcher_get_held (matcher), ==,
                        start);
  }
  runnel_stop_matcher_flush (matcher, out);
  g_assert_cmpuint (runnel_stop_matcher_get_released (matcher), ==, out->len);
  *matched = runnel_stop_matcher_get_matched (matcher);
}

static void
check_all_cuts (const char *const *stops, const char *text,
                const char *expected, int expected_match)
{
  const gsize n = strlen (text);

  g_assert_cmpuint (n, <, 18);
  for (guint64 cuts = 0; cuts < (guint64) 1 << (n - 1); cuts++) {
    g_autoptr (GString) out = g_string_new (NULL);
    int matched;

    feed (stops, text, cuts, out, &matched);
    g_assert_cmpstr (out->str, ==, expected);
    g_assert_cmpint (matched, ==, expected_match);
  }
}

#define STOPS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* C29 */
static void
test_cases (void)
{
  check_all_cuts (STOPS ("DEFGHIJ"), "ABC DEFGHIJKL", "ABC ", 0);
  check_all_cuts (STOPS ("\n\n", "END"), "a\n\nb", "a", 0);
  check_all_cuts (STOPS ("aab", "ab"), "aaab", "a", 0);
  check_all_cuts (STOPS ("ab", "aab"), "aaab", "a", 1);
  check_all_cuts (STOPS ("\xc3\xa9"), "caf\xc3\xa9!", "caf", 0);
  check_all_cuts (STOPS ("x"), "xyz", "", 0);
  check_all_cuts (STOPS ("DEFGHIJ"), "ABC DEFGHIX", "ABC DEFGHIX", -1);
  check_all_cuts (STOPS ("DEFGHIJ"), "ABC DEFGHI", "ABC DEFGHI", -1);
  check_all_cuts (STOPS ("abcd", "bc"), "abce", "a", 1);
  check_all_cuts (STOPS ("aabaaaab"), "aabaabaaaab", "aab", 0);
  check_all_cuts (STOPS ("a", "b", "c", "d"), "xyzcab", "xyz", 2);
  check_all_cuts (STOPS ("a", "b", "c", "d", "e"), "xyzecab", "xyz", 4);
  check_all_cuts ((const char *const[]){ NULL }, "abc", "abc", -1);
  check_all_cuts (NULL, "abc", "abc", -1);
}

static void
test_limits (void)
{
  const char *stops[18] = { NULL };
  g_autofree char *longest = g_strnfill (RUNNEL_STOP_MATCHER_MAX_LENGTH, 'x');
  g_autofree char *longer =
    g_strnfill (RUNNEL_STOP_MATCHER_MAX_LENGTH + 1, 'x');
  g_autoptr (RunnelStopMatcher) matcher = NULL;
  g_autoptr (GError) error = NULL;

  for (int i = 0; i < 17; i++)
    stops[i] = "s";
  g_assert_null (runnel_stop_matcher_new (stops, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT);
  g_clear_error (&error);
  stops[16] = NULL;
  stops[15] = longest;
  matcher = runnel_stop_matcher_new (stops, &error);
  g_assert_no_error (error);
  stops[15] = longer;
  g_assert_null (runnel_stop_matcher_new (stops, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT);
  g_clear_error (&error);
  stops[15] = "";
  g_assert_null (runnel_stop_matcher_new (stops, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT);
}

static void
test_longest_stop (void)
{
  g_autofree char *longest = g_strnfill (RUNNEL_STOP_MATCHER_MAX_LENGTH, 'x');
  g_autoptr (RunnelStopMatcher) matcher =
    runnel_stop_matcher_new (STOPS (longest), NULL);
  g_autoptr (GString) out = g_string_new (NULL);

  for (gsize i = 0; i < RUNNEL_STOP_MATCHER_MAX_LENGTH - 1; i++)
    g_assert_false (runnel_stop_matcher_push (matcher, "x", 1, out));
  g_assert_cmpuint (out->len, ==, 0);
  g_assert_false (runnel_stop_matcher_push (matcher, "yx", 2, out));
  g_assert_cmpuint (out->len, ==, RUNNEL_STOP_MATCHER_MAX_LENGTH);
  g_assert_cmpuint (runnel_stop_matcher_get_held (matcher), ==, 1);
}

/* The definition, word by word. */
static int
find_naive (const char *const *stops, const char *text, gsize *emitted)
{
  const gsize n = strlen (text);

  for (gsize end = 1; end <= n; end++)
    for (gsize start = 0; start < end; start++)
      for (int i = 0; stops[i]; i++)
        if (strlen (stops[i]) == end - start &&
            memcmp (stops[i], text + start, end - start) == 0) {
          *emitted = start;
          return i;
        }
  *emitted = n;
  return -1;
}

static void
test_random (void)
{
  const guint32 seed = g_test_rand_int ();
  GRand *rand = g_rand_new_with_seed (seed);

  g_test_message ("seed %u", seed);
  for (int round = 0; round < 5000; round++) {
    char stops[4][8], text[41];
    const char *list[5] = { NULL };
    const int n_stops = g_rand_int_range (rand, 1, 5);
    const int letters = g_rand_int_range (rand, 2, 4);
    const int length = g_rand_int_range (rand, 1, 41);
    const guint64 cuts =
      (guint64) g_rand_int (rand) << 32 | g_rand_int (rand);
    g_autoptr (GString) out = g_string_new (NULL);
    gsize emitted;
    int expected, matched;

    for (int i = 0; i < n_stops; i++) {
      const int n = g_rand_int_range (rand, 1, 8);

      for (int j = 0; j < n; j++)
        stops[i][j] = (char) ('a' + g_rand_int_range (rand, 0, letters));
      stops[i][n] = '\0';
      list[i] = stops[i];
    }
    for (int j = 0; j < length; j++)
      text[j] = (char) ('a' + g_rand_int_range (rand, 0, letters));
    text[length] = '\0';
    expected = find_naive (list, text, &emitted);
    feed (list, text, cuts, out, &matched);
    g_assert_cmpint (matched, ==, expected);
    g_assert_cmpmem (out->str, out->len, text, emitted);
  }
  g_rand_free (rand);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stop-matcher/cases", test_cases);
  g_test_add_func ("/stop-matcher/limits", test_limits);
  g_test_add_func ("/stop-matcher/longest-stop", test_longest_stop);
  g_test_add_func ("/stop-matcher/random", test_random);
  return g_test_run ();
}
