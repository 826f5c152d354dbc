/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <glib/gstdio.h>

#include "formats/json.h"
#include "hostile-json.h"

static RunnelJson *
parse (const char *text)
{
  g_autoptr (GError) error = NULL;
  RunnelJson *json = runnel_json_parse (text, strlen (text), "text", &error);

  g_assert_no_error (error);
  return json;
}

static void
test_kinds (void)
{
  g_autoptr (RunnelJson) json = parse (" {\"n\": null, \"t\":true,\r\n"
      "\"f\":false, \"i\":-12, \"d\":1.5e1,\t\"s\":\"x\", \"a\":[1,[]],"
      "\"o\":{}} ");
  static const char keys[] = "ntfidsao";
  const RunnelJsonNode *root = runnel_json_root (json);
  gint64 integer;

  g_assert_cmpint (runnel_json_node_kind (root), ==, RUNNEL_JSON_OBJECT);
  g_assert_cmpuint (runnel_json_node_size (root), ==, 8);
  for (guint i = 0; i < 8; i++) {
    const char key[] = { keys[i], '\0' };

    g_assert_cmpstr (runnel_json_node_key (root, i, NULL), ==, key);
    g_assert_true (runnel_json_node_member (root, key) ==
        runnel_json_node_value (root, i));
  }
  g_assert_cmpint (runnel_json_node_kind (runnel_json_node_value (root, 0)),
      ==, RUNNEL_JSON_NULL);
  g_assert_true (runnel_json_node_boolean (runnel_json_node_value (root, 1)));
  g_assert_false (runnel_json_node_boolean (runnel_json_node_value (root, 2)));
  g_assert_true (runnel_json_node_int64 (runnel_json_node_value (root, 3),
          &integer));
  g_assert_cmpint (integer, ==, -12);
  g_assert_cmpfloat (runnel_json_node_double (runnel_json_node_value (root,
          4)), ==, 15);
  g_assert_false (runnel_json_node_int64 (runnel_json_node_value (root, 4),
          &integer));
  g_assert_cmpuint (runnel_json_node_size (runnel_json_node_value (root, 6)),
      ==, 2);
  g_assert_cmpuint (runnel_json_node_size (runnel_json_node_item (
          runnel_json_node_value (root, 6), 1)), ==, 0);
  g_assert_cmpuint (runnel_json_node_size (runnel_json_node_value (root, 7)),
      ==, 0);
  g_assert_null (runnel_json_node_member (root, "x"));
  g_assert_null (runnel_json_node_member (runnel_json_node_value (root, 6),
          "x"));
}

static void
test_integers (void)
{
  static const struct { const char *text; gboolean fits; gint64 value; }
  cases[] = {
    { "0", TRUE, 0 }, { "-0", TRUE, 0 },
    { "9223372036854775807", TRUE, G_MAXINT64 },
    { "-9223372036854775808", TRUE, G_MININT64 },
    { "9223372036854775808", FALSE, 0 },
    { "18446744073709551615", FALSE, 0 },
    { "-123456789012345678901234567890", FALSE, 0 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (RunnelJson) json = parse (cases[i].text);
    const RunnelJsonNode *node = runnel_json_root (json);
    gint64 value = 0;

    g_assert_cmpint (runnel_json_node_kind (node), ==, RUNNEL_JSON_INTEGER);
    g_assert_cmpint (runnel_json_node_int64 (node, &value), ==, cases[i].fits);
    g_assert_cmpint (value, ==, cases[i].value);
    g_assert_cmpstr (runnel_json_node_digits (node), ==, cases[i].text);
    g_assert_cmpfloat (runnel_json_node_double (node), ==,
        g_ascii_strtod (cases[i].text, NULL));
  }
}

static void
test_strings (void)
{
  static const struct { const char *text, *value; gsize length; } cases[] = {
    { "\"\"", "", 0 },
    { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8 },
    { "\"\\u0041\\u00e9\\u65e5\"", "A\xc3\xa9\xe6\x97\xa5", 6 },
    { "\"\\ud83d\\uDE00\"", "\xf0\x9f\x98\x80", 4 },
    { "\"a\\u0000b\"", "a\0b", 3 },
    { "\"\xf4\x8f\xbf\xbf\x7f\"", "\xf4\x8f\xbf\xbf\x7f", 5 },
    { "\"\\ufffe\\uffff\"", "\xef\xbf\xbe\xef\xbf\xbf", 6 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (RunnelJson) json = parse (cases[i].text);
    gsize length;
    const char *value = runnel_json_node_string (runnel_json_root (json),
        &length);

    g_assert_cmpmem (value, length, cases[i].value, cases[i].length);
    g_assert_cmpint (value[length], ==, '\0');
  }
}

static void
test_rejects (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (hostile_json); i++) {
    g_autoptr (GError) error = NULL;
    /* Of exactly this size, so that a sanitizer sees a read past the end. */
    g_autofree char *text = g_memdup2 (hostile_json[i].text,
        hostile_json[i].length);

    g_test_message ("case %" G_GSIZE_FORMAT, i);
    g_assert_null (runnel_json_parse (text, hostile_json[i].length, "text",
            &error));
    g_assert_error (error, RUNNEL_ERROR, (int) hostile_json[i].code);
    g_assert_true (g_str_has_prefix (error->message, "text: line "));
    g_assert_nonnull (strstr (error->message, hostile_json[i].message));
  }
}

static RunnelJson *
parse_nested (const char *open, const char *close, guint depth,
    GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; i < depth; i++)
    g_string_append (text, open);
  g_string_append (text, "1");
  for (guint i = 0; i < depth; i++)
    g_string_append (text, close);
  return runnel_json_parse (text->str, text->len, "deep", error);
}

static void
test_depth (void)
{
  static const char *const open[] = { "[", "{\"a\":" }, *close[] = { "]", "}" };

  for (guint i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelJson) good = parse_nested (open[i], close[i],
        RUNNEL_JSON_MAX_DEPTH, &error);

    g_assert_no_error (error);
    g_assert_null (parse_nested (open[i], close[i], RUNNEL_JSON_MAX_DEPTH + 1,
            &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT);
    g_clear_error (&error);
    g_assert_null (parse_nested (open[i], close[i], 1000000, &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT);
  }
}

/* The last value, at the first place. */
static void
test_duplicates (void)
{
  g_autoptr (GString) text = g_string_new ("{");
  g_autoptr (RunnelJson) small = parse ("{\"a\":1,\"b\":2,\"a\":3,\"\":4}");
  g_autoptr (RunnelJson) large = NULL;
  const RunnelJsonNode *root = runnel_json_root (small);
  gint64 value;

  g_assert_cmpuint (runnel_json_node_size (root), ==, 3);
  g_assert_cmpstr (runnel_json_node_key (root, 0, NULL), ==, "a");
  g_assert_cmpstr (runnel_json_node_digits (runnel_json_node_value (root, 0)),
      ==, "3");
  g_assert_nonnull (runnel_json_node_member (root, ""));

  for (guint i = 0; i < 3000; i++)
    g_string_append_printf (text, "%s\"key %u\":%u", i > 0 ? "," : "",
        i % 1000, i);
  g_string_append (text, "}");
  large = parse (text->str);
  root = runnel_json_root (large);
  g_assert_cmpuint (runnel_json_node_size (root), ==, 1000);
  for (guint i = 0; i < 1000; i++) {
    g_autofree char *key = g_strdup_printf ("key %u", i);

    g_assert_cmpstr (runnel_json_node_key (root, i, NULL), ==, key);
    g_assert_true (runnel_json_node_int64 (runnel_json_node_member (root,
            key), &value));
    g_assert_cmpint (value, ==, 2000 + i);
  }
  g_assert_null (runnel_json_node_member (root, "key 1000"));
}

static void
test_write_strings (void)
{
  static const struct { const char *text; gssize length; const char *json; }
  cases[] = {
    { "", -1, "\"\"" },
    { "a\"\\/\b\f\n\r\t\x01\x1f\x7f", -1,
      "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"" },
    { "a\0b", 3, "\"a\\u0000b\"" },
    { "\v", 1, "\"\\u000b\"" },
    { "\xc3\xa9\xf0\x9f\x98\x80", -1, "\"\xc3\xa9\xf0\x9f\x98\x80\"" },
    { "\xf0\x9f\x98", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
    { "\xff" "a", 2, "\"\xef\xbf\xbd" "a\"" },
    { "abc", 2, "\"ab\"" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GString) out = g_string_new ("x");

    runnel_json_append_string (out, cases[i].text, cases[i].length);
    g_assert_cmpstr (out->str + 1, ==, cases[i].json);
  }
}

static char *
format_double (double value)
{
  GString *out = g_string_new (NULL);

  runnel_json_append_double (out, value);
  return g_string_free (out, FALSE);
}

static void
test_write_doubles (void)
{
  static const struct { double value; const char *text; } cases[] = {
    { 0, "0.0" }, { -0.0, "-0.0" }, { 1, "1.0" }, { 100, "100.0" },
    { 0.1, "0.1" }, { -2.5, "-2.5" }, { 1e-4, "0.0001" }, { 1e-5, "1e-05" },
    { 1.5e-7, "1.5e-07" }, { 1e15, "1000000000000000.0" }, { 1e16, "1e+16" },
    { 1.0 / 3, "0.3333333333333333" }, { 5e-324, "5e-324" },
    { 2.2250738585072014e-308, "2.2250738585072014e-308" },
    { 1.7976931348623157e308, "1.7976931348623157e+308" },
    { 9007199254740993.0, "9007199254740992.0" }, { 2e-323, "2e-323" },
    { 123456.789, "123456.789" }, { NAN, "null" }, { INFINITY, "null" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = format_double (cases[i].value);

    g_assert_cmpstr (text, ==, cases[i].text);
  }
  /* Whatever the bits, it reads back, and no shorter form does. */
  for (guint i = 0; i < 20000; i++) {
    guint64 bits = (guint64) (guint32) g_test_rand_int () << 32 |
        (guint32) g_test_rand_int ();
    g_autofree char *text = NULL;
    guint digits = 0;
    double value;

    memcpy (&value, &bits, sizeof value);
    if (!isfinite (value))
      continue;
    text = format_double (value);
    g_assert_cmpfloat (g_ascii_strtod (text, NULL), ==, value);
    for (const char *p = text; *p != '\0' && *p != 'e'; p++)
      digits += g_ascii_isdigit (*p);
    if (strchr (text, 'e') != NULL && digits > 1) {
      char shorter[40];

      g_ascii_formatd (shorter, sizeof shorter, digits == 17 ? "%.15e" :
          digits == 16 ? "%.14e" : "%.0e", value);
      g_assert_true (digits < 16 || g_ascii_strtod (shorter, NULL) != value);
    }
  }
}

static void
test_load (void)
{
  g_autofree char *folder = g_dir_make_tmp (NULL, NULL);
  g_autofree char *path = g_build_filename (folder, "a.json", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelJson) json = NULL;

  g_file_set_contents (path, "[1]", 3, &error);
  json = runnel_json_load (path, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (runnel_json_name (json), ==, path);
  g_remove (path);
  g_assert_null (runnel_json_load (path, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_rmdir (folder);
}

/* The size of a vocabulary; the time is for the log. */
static void
test_large (void)
{
  enum { N = 150000 };
  g_autoptr (GString) text = g_string_new ("{\"vocab\":{");
  g_autoptr (RunnelJson) json = NULL;
  const RunnelJsonNode *vocab;
  gint64 begin;

  for (guint i = 0; i < N; i++)
    g_string_append_printf (text, "%s\n      \"token%u\": %u",
        i > 0 ? "," : "", i, i);
  g_string_append (text, "},\"merges\":[");
  for (guint i = 0; i < N; i++)
    g_string_append_printf (text, "%s\n      [\n\"a%u\",\n\"b\"]",
        i > 0 ? "," : "", i);
  g_string_append (text, "]}");
  begin = g_get_monotonic_time ();
  json = parse (text->str);
  g_test_message ("%" G_GSIZE_FORMAT " bytes in %" G_GINT64_FORMAT " us",
      text->len, g_get_monotonic_time () - begin);
  vocab = runnel_json_node_member (runnel_json_root (json), "vocab");
  g_assert_cmpuint (runnel_json_node_size (vocab), ==, N);
  for (guint i = 0; i < N; i += 7) {
    char key[20];

    g_snprintf (key, sizeof key, "token%u", i);
    g_assert_cmpuint (atoi (runnel_json_node_digits (
        runnel_json_node_member (vocab, key))), ==, i);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/json/kinds", test_kinds);
  g_test_add_func ("/json/integers", test_integers);
  g_test_add_func ("/json/strings", test_strings);
  g_test_add_func ("/json/rejects", test_rejects);
  g_test_add_func ("/json/depth", test_depth);
  g_test_add_func ("/json/duplicates", test_duplicates);
  g_test_add_func ("/json/write-strings", test_write_strings);
  g_test_add_func ("/json/write-doubles", test_write_doubles);
  g_test_add_func ("/json/load", test_load);
  g_test_add_func ("/json/large", test_large);
  return g_test_run ();
}
