/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include <glib.h>

#include "text/character-class.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"

/* The words of a text, joined by "|". */
static char *
split (RunnelPretokenizer pre, const char *text, gsize length)
{
  const guint8 *classes = runnel_character_classes ();
  GString *out = g_string_new (NULL);

  for (gsize at = 0; at < length;) {
    gsize n = runnel_pretokenizer_next (pre, classes,
                                        (const guint8 *) text + at,
                                        length - at);

    g_assert_cmpuint (n, >, 0);
    g_assert_cmpuint (n, <=, length - at);
    if (at > 0)
      g_string_append_c (out, '|');
    g_string_append_len (out, text + at, n);
    at += n;
  }
  return g_string_free (out, FALSE);
}

static void
test_published_splits (void)
{
  static const struct {
    const char *text, *qwen2, *smollm, *gpt2, *llama;
  } cases[] = {
    { "x = 12345", "x| =| |1|2|3|4|5", "x| =| |1|2|3|4|5", "x| =| 12345",
      "x| =| |123|45" },
    { "a   b", "a|  | b", "a|  | b", "a|  | b", "a|  | b" },
    { "  \n\n  foo", "  \n\n| | foo", "  \n\n | foo", "  \n\n | foo",
      "  \n\n| | foo" },
    { "(x):\n", "(x|):\n", "(|x|):|\n", "(|x|):|\n", "(x|):\n" },
    { "don'T", "don|'T", "don|'|T", "don|'|T", "don|'T" },
    { "don't we'll I've", "don|'t| we|'ll| I|'ve", "don|'t| we|'ll| I|'ve",
      "don|'t| we|'ll| I|'ve", "don|'t| we|'ll| I|'ve" },
    { "it'\xc5\xbf", "it|'\xc5\xbf", "it|'|\xc5\xbf", "it|'|\xc5\xbf",
      "it|'\xc5\xbf" },
    { "你好，世界2024年", "你好|，世界|2|0|2|4|年", "你好|，|世界|2|0|2|4|年",
      "你好|，|世界|2024|年", "你好|，世界|202|4|年" },
    { "\t\tif x", "\t|\tif| x", "\t|\t|if| x", "\t|\t|if| x", "\t|\tif| x" },
    { "foo\r\nbar", "foo|\r\n|bar", "foo|\r|\n|bar", "foo|\r|\n|bar",
      "foo|\r\n|bar" },
    { "½²٣", "½|²|٣", "½|²|٣", "½²٣", "½²٣" },
    { "end  ", "end|  ", "end|  ", "end|  ", "end|  " },
    { "a  1", "a| | |1", "a|  |1", "a| | 1", "a| | |1" },
    { "\xc2\x85\xe3\x80\x80x", "\xc2\x85|\xe3\x80\x80x",
      "\xc2\x85|\xe3\x80\x80|x", "\xc2\x85|\xe3\x80\x80|x",
      "\xc2\x85|\xe3\x80\x80x" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const char *expected[] = { cases[i].qwen2, cases[i].smollm, cases[i].gpt2,
                               cases[i].llama };

    for (guint pre = 0; pre < G_N_ELEMENTS (expected); pre++) {
      g_autofree char *got = split ((RunnelPretokenizer) pre, cases[i].text,
                                    strlen (cases[i].text));

      g_assert_cmpstr (got, ==, expected[pre]);
    }
  }
}

/* GLib's regular expressions as a second opinion: another engine, the
 * published patterns word for word. */
#define WORDS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+" \
  "| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static void
split_by_regex (GRegex *regex, const char *text, gsize length, GString *out)
{
  g_autoptr (GMatchInfo) match = NULL;
  gint last = 0;

  g_regex_match_full (regex, text, length, 0, G_REGEX_MATCH_NOTEMPTY, &match,
                      NULL);
  while (g_match_info_matches (match)) {
    gint start, end;

    g_match_info_fetch_pos (match, 0, &start, &end);
    g_assert_cmpint (start, ==, last);
    if (out->len > 0)
      g_string_append_c (out, '|');
    g_string_append_len (out, text + start, end - start);
    last = end;
    g_match_info_next (match, NULL);
  }
  g_assert_cmpint (last, ==, length);
}

/* Digits by themselves first, then the pattern on what lies between. */
static void
split_digits (GRegex *regex, const char *text, gsize length, GString *out)
{
  const char *start = text, *end = text + length;

  for (const char *p = text; p < end;) {
    const char *next = g_utf8_next_char (p);
    GUnicodeType type = g_unichar_type (g_utf8_get_char (p));

    if (type == G_UNICODE_DECIMAL_NUMBER || type == G_UNICODE_LETTER_NUMBER
        || type == G_UNICODE_OTHER_NUMBER) {
      if (p > start)
        split_by_regex (regex, start, p - start, out);
      if (out->len > 0)
        g_string_append_c (out, '|');
      g_string_append_len (out, p, next - p);
      start = next;
    }
    p = next;
  }
  if (end > start)
    split_by_regex (regex, start, end - start, out);
}

static char *
random_text (GRand *random)
{
  /* No U+0085: PCRE does not count it as a blank. */
  static const char *const pieces[] = {
    "a", "s", "S", "t", "re", "LL", "vE", "d", "M", "é", "ſ", "你", "好", "Я",
    "'", "'", "'s", "'T", " ", " ", "  ", "\n", "\r", "\r\n", "\t", "\v",
    "\xc2\xa0", "\xe2\x80\xa8", "\xe3\x80\x80", "\xe1\x9a\x80", "0", "7", "12",
    "½", "٣", "Ⅷ", "𝟘", "!", "(", ":", "-", "…", "。", "😀", "\xe2\x80\x8b",
    "\xcc\x81", "\xe2\x80\x8d", "𐐀", "ª", "_", "\x01",
  };
  GString *out = g_string_new (NULL);

  for (gint n = g_rand_int_range (random, 1, 14); n > 0; n--)
    g_string_append (out, pieces[g_rand_int_range (random, 0,
                                                   G_N_ELEMENTS (pieces))]);
  return g_string_free (out, FALSE);
}

static void
test_against_regex (void)
{
  guint32 seed = g_test_rand_int ();
  g_autoptr (GRand) random = g_rand_new_with_seed (seed);
  static const char *const patterns[] = {
    WORDS "\\p{N}" REST, GPT2, GPT2, WORDS "\\p{N}{1,3}" REST,
  };
  GRegex *regexes[4];

  g_test_message ("seed %u", seed);
  for (guint i = 0; i < 4; i++) {
    regexes[i] = g_regex_new (patterns[i], G_REGEX_OPTIMIZE, 0, NULL);
    g_assert_nonnull (regexes[i]);
  }
  for (guint i = 0; i < 5000; i++) {
    g_autofree char *text = random_text (random);

    for (guint pre = 0; pre < 4; pre++) {
      g_autoptr (GString) expected = g_string_new (NULL);
      g_autofree char *got = split ((RunnelPretokenizer) pre, text,
                                    strlen (text));

      if (pre == RUNNEL_PRETOKENIZER_SMOLLM)
        split_digits (regexes[pre], text, strlen (text), expected);
      else
        split_by_regex (regexes[pre], text, strlen (text), expected);
      g_assert_cmpstr (got, ==, expected->str);
    }
  }
  for (guint i = 0; i < 4; i++)
    g_regex_unref (regexes[i]);
}

/* The tables hold at least what GLib's Unicode version has, for characters
 * that have long been assigned. */
static void
test_classes (void)
{
  const guint8 *classes = runnel_character_classes ();

  for (gunichar c = 0; c < 0x2000; c++) {
    guint8 class = runnel_character_class (classes, c);

    if (g_unichar_isalpha (c))
      g_assert_true (class & RUNNEL_CHARACTER_LETTER);
    if (g_unichar_isdigit (c))
      g_assert_true (class & RUNNEL_CHARACTER_NUMBER);
    g_assert_cmpint ((class & RUNNEL_CHARACTER_NEWLINE) != 0, ==,
                     c == '\r' || c == '\n');
  }
  g_assert_true (runnel_character_class (classes, 0x20000)
                 & RUNNEL_CHARACTER_LETTER);
  g_assert_true (runnel_character_class (classes, 0x1d7d8)
                 & RUNNEL_CHARACTER_NUMBER);
  g_assert_cmpint (runnel_character_class (classes, 0x1f600), ==,
                   RUNNEL_CHARACTER_INERT);
  g_assert_cmpint (runnel_character_class (classes, 0x10ffff)
                   & RUNNEL_CHARACTER_LETTER, ==, 0);
}

static char *
nfc (const char *text, gsize length)
{
  const guint8 *classes = runnel_character_classes ();
  GString *out = g_string_new (NULL);

  runnel_normalize_nfc (classes, text, length, out);
  if (runnel_is_surely_nfc (classes, text, length)) {
    g_assert_cmpuint (out->len, ==, length);
    g_assert_cmpmem (out->str, out->len, text, length);
  }
  return g_string_free (out, FALSE);
}

static void
test_nfc (void)
{
  static const char *const cases[][2] = {
    { "cafe\xcc\x81", "caf\xc3\xa9" },
    { "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c" },
    { "\xe2\x84\xab", "\xc3\x85" },
    { "a\xcc\xa7\xcc\x81", "\xc3\xa1\xcc\xa7" },
    { "\xe0\xa4\x95\xe0\xa4\xbc", "\xe0\xa4\x95\xe0\xa4\xbc" },
    { "\xcc\x81", "\xcc\x81" },
    { "", "" },
  };
  g_autofree char *with_nul = nfc ("e\xcc\x81\0e\xcc\x81", 7);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *got = nfc (cases[i][0], strlen (cases[i][0]));

    g_assert_cmpstr (got, ==, cases[i][1]);
  }
  g_assert_cmpmem (with_nul, 5, "\xc3\xa9\0\xc3\xa9", 5);
}

/* Random strings of characters that Unicode 9 had, against GLib. */
static void
test_nfc_against_glib (void)
{
  static const gunichar ranges[][2] = {
    { 0x41, 0x5a }, { 0xc0, 0x17f }, { 0x300, 0x345 }, { 0x5b0, 0x5bc },
    { 0x622, 0x655 }, { 0x915, 0x94d }, { 0x9c7, 0x9d7 }, { 0x1100, 0x1112 },
    { 0x1161, 0x1175 }, { 0x11a8, 0x11c2 }, { 0x1e00, 0x1ef9 },
    { 0x1f00, 0x1f15 }, { 0x304b, 0x309a }, { 0xac00, 0xac40 },
    { 0xf900, 0xf920 }, { 0x1d15e, 0x1d172 }, { 0x11099, 0x110ba },
    { 0x2f800, 0x2f820 },
  };
  guint32 seed = g_test_rand_int ();
  g_autoptr (GRand) random = g_rand_new_with_seed (seed);

  g_test_message ("seed %u", seed);
  for (guint i = 0; i < 20000; i++) {
    g_autoptr (GString) text = g_string_new (NULL);
    g_autofree char *expected = NULL, *got = NULL;

    for (gint n = g_rand_int_range (random, 1, 40); n > 0; n--) {
      guint range = g_rand_int_range (random, 0, G_N_ELEMENTS (ranges));

      g_string_append_unichar (
          text, g_rand_int_range (random, ranges[range][0],
                                  ranges[range][1] + 1));
    }
    expected = g_utf8_normalize (text->str, text->len,
                                 G_NORMALIZE_DEFAULT_COMPOSE);
    got = nfc (text->str, text->len);
    g_assert_cmpstr (got, ==, expected);
  }
}

/* Marks in descending order are the worst that a sort can meet. */
static void
test_nfc_many_marks (void)
{
  g_autoptr (GString) text = g_string_new ("a");
  g_autofree char *got = NULL;

  for (guint i = 0; i < 200000; i++)
    g_string_append (text, i % 2 == 0 ? "\xcc\x95" : "\xcc\xa3");
  got = nfc (text->str, text->len);
  /* One mark of two bytes went into the first letter, which grew by two. */
  g_assert_cmpuint (strlen (got), ==, text->len);
  g_assert_true (g_str_has_prefix (got, "\xe1\xba\xa1\xcc\xa3"));
  g_assert_true (g_str_has_suffix (got, "\xcc\x95\xcc\x95"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pretokenizer/published-splits", test_published_splits);
  g_test_add_func ("/pretokenizer/against-regex", test_against_regex);
  g_test_add_func ("/pretokenizer/classes", test_classes);
  g_test_add_func ("/pretokenizer/nfc", test_nfc);
  g_test_add_func ("/pretokenizer/nfc-against-glib", test_nfc_against_glib);
  g_test_add_func ("/pretokenizer/nfc-many-marks", test_nfc_many_marks);
  return g_test_run ();
}
