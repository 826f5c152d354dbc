/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <glib/gstdio.h>

#include "hostile-gguf.h"

static RunnelGguf *
open_bytes (GBytes *bytes, GError **error)
{
  g_autoptr (RunnelMapping) mapping =
      runnel_mapping_new_from_bytes (bytes, "test.gguf");

  return runnel_gguf_new (mapping, error);
}

static void
test_good (void)
{
  g_autoptr (GBytes) bytes = make_good_gguf ();
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGguf) gguf = open_bytes (bytes, &error);
  const RunnelTensor *tensor;
  guint64 number;
  double real;
  gboolean flag;
  const char *text;
  g_autofree char *copy = NULL;
  gsize length;

  g_assert_no_error (error);
  g_assert_cmpuint (runnel_gguf_version (gguf), ==, 3);
  g_assert_cmpstr (runnel_gguf_name (gguf), ==, "test.gguf");
  g_assert_cmpuint (runnel_gguf_n_keys (gguf), ==, 7);
  g_assert_cmpstr (runnel_gguf_key (gguf, 3), ==, "flag");
  g_assert_true (runnel_gguf_has (gguf, "tokens"));
  g_assert_false (runnel_gguf_has (gguf, "toke"));
  g_assert_cmpint (runnel_gguf_type (gguf, "tokens"), ==, RUNNEL_GGUF_ARRAY);
  g_assert_true (runnel_gguf_get_uint (gguf, "llama.block_count", 1, 2,
          &number, &error));
  g_assert_cmpuint (number, ==, 2);
  g_assert_true (runnel_gguf_get_double (gguf, "epsilon", &real, &error));
  g_assert_cmpfloat (real, ==, 0.5);
  g_assert_true (runnel_gguf_get_double (gguf, "big", &real, &error));
  g_assert_cmpfloat (real, ==, -5);
  g_assert_true (runnel_gguf_get_boolean_or (gguf, "flag", FALSE, &flag,
          &error));
  g_assert_true (flag);
  g_assert_true (runnel_gguf_get_string (gguf, "general.architecture", &text,
          &length, &error));
  g_assert_cmpmem (text, length, "llama", 5);
  g_assert_true (runnel_gguf_dup_string_or_null (gguf, "general.architecture",
          &copy, &error));
  g_assert_cmpstr (copy, ==, "llama");

  g_assert_cmpuint (runnel_gguf_n_tensors (gguf), ==, 2);
  tensor = runnel_gguf_find_tensor (gguf, "a.weight");
  g_assert_true (tensor == runnel_gguf_tensor (gguf, 0));
  g_assert_cmpint (tensor->type, ==, RUNNEL_TENSOR_F32);
  g_assert_cmpuint (tensor->n_dims, ==, 2);
  g_assert_cmpuint (tensor->dims[0], ==, 4);
  g_assert_cmpuint (tensor->dims[1], ==, 2);
  g_assert_cmpuint (tensor->dims[2], ==, 1);
  g_assert_cmpuint (tensor->bytes, ==, 32);
  tensor = runnel_gguf_find_tensor (gguf, "b.weight");
  g_assert_cmpuint (tensor->bytes, ==, 34);
  g_assert_cmpuint (tensor->offset % 32, ==, 0);
  g_assert_cmpuint (tensor->offset + tensor->bytes, ==,
      g_bytes_get_size (bytes));
  g_assert_null (runnel_gguf_find_tensor (gguf, "c.weight"));
}

static void
test_arrays (void)
{
  g_autoptr (GBytes) bytes = make_good_gguf ();
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGguf) gguf = open_bytes (bytes, &error);
  RunnelGgufArray array;
  const guint8 *at;
  const char *text;
  gsize length;

  g_assert_true (runnel_gguf_get_array (gguf, "tokens", RUNNEL_GGUF_STRING,
          &array, &error));
  g_assert_cmpuint (array.n, ==, 2);
  at = runnel_gguf_next_string (array.data, &text, &length);
  g_assert_cmpmem (text, length, "a", 1);
  at = runnel_gguf_next_string (at, &text, &length);
  g_assert_cmpuint (length, ==, 0);
  g_assert_true (at == array.end);
  g_assert_true (runnel_gguf_get_array (gguf, "ids", RUNNEL_GGUF_INT32,
          &array, &error));
  g_assert_cmpuint (array.data[0], ==, 7);

  g_assert_false (runnel_gguf_get_array (gguf, "none", RUNNEL_GGUF_INT32,
          &array, &error));
  g_assert_no_error (error);
  g_assert_false (runnel_gguf_get_array (gguf, "ids", RUNNEL_GGUF_STRING,
          &array, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED);
  g_clear_error (&error);
  g_assert_false (runnel_gguf_get_array (gguf, "flag", RUNNEL_GGUF_STRING,
          &array, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED);
}

static void
assert_uint_fails (RunnelGguf *gguf, const char *key, RunnelError code,
    const char *message)
{
  g_autoptr (GError) error = NULL;
  guint64 untouched = 77;

  g_assert_false (runnel_gguf_get_uint (gguf, key, 0, 1, &untouched, &error));
  g_assert_error (error, RUNNEL_ERROR, code);
  g_assert_nonnull (strstr (error->message, "test.gguf: key '"));
  g_assert_nonnull (strstr (error->message, message));
  g_assert_cmpuint (untouched, ==, 77);
}

static void
assert_index_fails (RunnelGguf *gguf, const char *key, guint32 n,
    const char *message)
{
  g_autoptr (GError) error = NULL;
  gint32 untouched = 77;

  g_assert_false (runnel_gguf_get_index (gguf, key, n, &untouched, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT);
  g_assert_nonnull (strstr (error->message, message));
  g_assert_cmpint (untouched, ==, 77);
}

static void
test_index (void)
{
  g_autoptr (GBytes) bytes = make_good_gguf ();
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGguf) gguf = open_bytes (bytes, &error);
  guint64 number;
  gint32 found;

  g_assert_true (runnel_gguf_get_uint (gguf, "llama.block_count", 0, 1000,
          &number, &error));
  g_assert_true (runnel_gguf_get_index (gguf, "llama.block_count",
          (guint32) number + 1, &found, &error));
  g_assert_cmpint (found, ==, (gint32) number);
  g_assert_true (runnel_gguf_get_index (gguf, "none", 0, &found, &error));
  g_assert_cmpint (found, ==, -1);
  assert_index_fails (gguf, "llama.block_count", (guint32) number, "between 0");
  assert_index_fails (gguf, "llama.block_count", 0, "no entries");
  assert_index_fails (gguf, "big", 9, "-5");
}

static void
test_wrong_values (void)
{
  g_autoptr (GBytes) bytes = make_good_gguf ();
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGguf) gguf = open_bytes (bytes, &error);
  guint64 number;
  double real;
  gboolean flag;
  char *copy;

  assert_uint_fails (gguf, "none", RUNNEL_ERROR_MALFORMED, "is missing");
  assert_uint_fails (gguf, "big", RUNNEL_ERROR_LIMIT, "-5");
  assert_uint_fails (gguf, "llama.block_count", RUNNEL_ERROR_LIMIT,
      "between 0 and 1");
  assert_uint_fails (gguf, "epsilon", RUNNEL_ERROR_MALFORMED, "float32");
  assert_uint_fails (gguf, "flag", RUNNEL_ERROR_MALFORMED, "bool");
  g_assert_true (runnel_gguf_get_uint_or (gguf, "none", 0, 1, 9, &number,
          &error));
  g_assert_cmpuint (number, ==, 9);
  g_assert_true (runnel_gguf_get_double_or (gguf, "none", 0.25, &real,
          &error));
  g_assert_cmpfloat (real, ==, 0.25);
  g_assert_true (runnel_gguf_get_boolean_or (gguf, "none", TRUE, &flag,
          &error));
  g_assert_true (flag);
  g_assert_true (runnel_gguf_dup_string_or_null (gguf, "none", &copy, &error));
  g_assert_null (copy);
  g_assert_no_error (error);
  g_assert_false (runnel_gguf_get_boolean_or (gguf, "big", TRUE, &flag,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED);
  g_clear_error (&error);
  g_assert_false (runnel_gguf_get_double_or (gguf, "tokens", 0, &real,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED);
  g_clear_error (&error);
  g_assert_false (runnel_gguf_dup_string_or_null (gguf, "flag", &copy,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED);
}

/* Every integer type, at its ends. */
static void
test_integers (void)
{
  g_autoptr (GBytes) bytes = make_gguf ("m88" "s41s41" "s411s411" "s44s44"
      "s48s48", U64 (0), U64 (8),
      "u8", RUNNEL_GGUF_UINT8, 255, "i8", RUNNEL_GGUF_INT8, 255,
      "u16", RUNNEL_GGUF_UINT16, 255, 255, "i16", RUNNEL_GGUF_INT16, 0, 128,
      "u32", RUNNEL_GGUF_UINT32, G_MAXUINT32, "i32", RUNNEL_GGUF_INT32,
      0x80000000, "u64", RUNNEL_GGUF_UINT64, G_MAXUINT64, "i64",
      RUNNEL_GGUF_INT64, U64 (0x8000000000000000));
  static const struct { const char *key; double value; } values[] = {
    { "u8", 255 }, { "i8", -1 }, { "u16", 65535 }, { "i16", -32768 },
    { "u32", 4294967295.0 }, { "i32", -2147483648.0 },
    { "u64", 18446744073709551615.0 }, { "i64", -9223372036854775808.0 },
  };
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGguf) gguf = open_bytes (bytes, &error);

  g_assert_no_error (error);
  for (gsize i = 0; i < G_N_ELEMENTS (values); i++) {
    double value;

    g_assert_true (runnel_gguf_get_double (gguf, values[i].key, &value,
            &error));
    g_assert_cmpfloat (value, ==, values[i].value);
  }
}

static void
test_hostile (void)
{
  gsize n;
  g_autofree HostileGguf *cases = make_hostile_gguf (&n);

  for (gsize i = 0; i < n; i++) {
    g_autoptr (GError) error = NULL;

    g_test_message ("%s", cases[i].name);
    g_assert_null (open_bytes (cases[i].bytes, &error));
    g_test_message ("  %s", error->message);
    g_assert_error (error, RUNNEL_ERROR, (int) cases[i].code);
    g_assert_true (g_str_has_prefix (error->message, "test.gguf: "));
    g_assert_nonnull (strstr (error->message, cases[i].message));
    g_bytes_unref (cases[i].bytes);
  }
}

static void
test_prefixes (void)
{
  g_autoptr (GBytes) good = make_good_gguf ();

  for (gsize n = 0; n < g_bytes_get_size (good); n++) {
    g_autoptr (GBytes) prefix = g_bytes_new (g_bytes_get_data (good, NULL), n);
    g_autofree char *expected = g_strdup_printf (
        "truncated at byte %" G_GSIZE_FORMAT, n);
    g_autoptr (GError) error = NULL;

    g_assert_null (open_bytes (prefix, &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_TRUNCATED);
    g_assert_nonnull (strstr (error->message, expected));
  }
}

static void
test_version_2_and_alignment (void)
{
  g_autoptr (GBytes) bytes = make_gguf ("r488s44" "s4848" "s4848" "z",
      "GGUF", 2, U64 (2), U64 (1), "general.alignment", RUNNEL_GGUF_UINT32, 8,
      "a", 1, U64 (2), 0, U64 (0), "b", 1, U64 (2), 0, U64 (8),
      /* after a header of 123 bytes */ 5 + 16);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGguf) gguf = open_bytes (bytes, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (runnel_gguf_version (gguf), ==, 2);
  g_assert_cmpuint (runnel_gguf_header_size (gguf), ==,
      runnel_gguf_tensor (gguf, 0)->offset -
      (8 - runnel_gguf_header_size (gguf) % 8) % 8);
  g_assert_cmpuint (runnel_gguf_tensor (gguf, 1)->offset, ==,
      runnel_gguf_tensor (gguf, 0)->offset + 8);
}

/* Odd tokens are the tokenizer's business: the container holds them. */
static void
test_odd_strings (void)
{
  g_autofree char *huge = g_strnfill (1 << 20, 'x');
  const char *texts[] = { "", "a\0b", "\xff\xfe", huge };
  const gsize lengths[] = { 0, 3, 2, 1 << 20 };
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autofree char *folder = g_dir_make_tmp (NULL, NULL);
  g_autofree char *path = g_build_filename (folder, "odd.gguf", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGguf) gguf = NULL;
  RunnelGgufArray array;
  const guint8 *at;
  char *copy;

  runnel_gguf_writer_add_strings (writer, "tokens", texts, lengths, 4);
  runnel_gguf_writer_add_string (writer, "nul", "a\0b", 3);
  g_assert_true (runnel_gguf_writer_save (writer, path, &error));
  gguf = runnel_gguf_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_assert_no_error (error);
  g_assert_true (runnel_gguf_get_array (gguf, "tokens", RUNNEL_GGUF_STRING,
          &array, &error));
  at = array.data;
  for (guint i = 0; i < 4; i++) {
    const char *text;
    gsize length;

    at = runnel_gguf_next_string (at, &text, &length);
    g_assert_cmpmem (text, length, texts[i], lengths[i]);
  }
  g_assert_false (runnel_gguf_dup_string_or_null (gguf, "nul", &copy, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MALFORMED);
  g_remove (path);
  g_rmdir (folder);
}

static void
test_writer (void)
{
  g_autoptr (RunnelGgufWriter) writer = runnel_gguf_writer_new ();
  g_autofree char *folder = g_dir_make_tmp (NULL, NULL);
  g_autofree char *path = g_build_filename (folder, "new.gguf", NULL);
  g_autofree char *nowhere = g_build_filename (folder, "no", "x.gguf", NULL);
  g_autoptr (GBytes) data = g_bytes_new_static ("0123456789abcdef", 16);
  const guint64 dims[] = { 2, 2 };
  const gint32 ids[] = { -1, 5 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GDir) left = NULL;

  runnel_gguf_writer_add_uint32 (writer, "n", 7);
  runnel_gguf_writer_add_float32 (writer, "x", 0.1f);
  runnel_gguf_writer_add_boolean (writer, "yes", 5);
  runnel_gguf_writer_add_string (writer, "s", "text", -1);
  runnel_gguf_writer_add_int32s (writer, "ids", ids, 2);
  runnel_gguf_writer_add_tensor (writer, "a", RUNNEL_TENSOR_F32, dims, 2,
      data);
  runnel_gguf_writer_add_tensor (writer, "b", RUNNEL_TENSOR_F32, dims, 2,
      data);
  for (RunnelLoadMode mode = RUNNEL_LOAD_MODE_MAP;
      mode <= RUNNEL_LOAD_MODE_READ; mode++) {
    g_autoptr (RunnelGguf) gguf = NULL;
    RunnelGgufArray array;
    double real;
    gboolean yes;

    g_assert_true (runnel_gguf_writer_save (writer, path, &error));
    gguf = runnel_gguf_open (path, mode, &error);
    g_assert_no_error (error);
    g_assert_true (runnel_gguf_get_double (gguf, "x", &real, &error));
    g_assert_cmpfloat (real, ==, 0.1f);
    g_assert_true (runnel_gguf_get_boolean_or (gguf, "yes", 0, &yes, &error));
    g_assert_cmpint (yes, ==, TRUE);
    g_assert_true (runnel_gguf_get_array (gguf, "ids", RUNNEL_GGUF_INT32,
            &array, &error));
    g_assert_cmpmem (array.data, array.end - array.data, ids, sizeof ids);
    for (guint i = 0; i < 2; i++) {
      const RunnelTensor *tensor = runnel_gguf_tensor (gguf, i);

      g_assert_cmpmem (runnel_tensor_data (tensor), tensor->bytes,
          "0123456789abcdef", 16);
    }
  }
  g_assert_false (runnel_gguf_writer_save (writer, nowhere, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  /* Renamed into place, nothing left beside it. */
  left = g_dir_open (folder, 0, NULL);
  g_assert_cmpstr (g_dir_read_name (left), ==, "new.gguf");
  g_assert_null (g_dir_read_name (left));
  g_remove (path);
  g_rmdir (folder);
}

/* The bounds of a long array cost little: it must load, and quickly, which
 * the fuzz targets and the watchdog of the suite would show. */
static void
test_long_array (void)
{
  enum { N = 100000 };
  g_autoptr (GByteArray) out = g_byte_array_new ();
  g_autoptr (GBytes) head = make_gguf ("m88s448", U64 (0), U64 (1), "tokens",
      RUNNEL_GGUF_ARRAY, RUNNEL_GGUF_STRING, (guint64) N), bytes = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGguf) gguf = NULL;
  RunnelGgufArray array;
  gint64 begin;

  g_byte_array_append (out, g_bytes_get_data (head, NULL),
      g_bytes_get_size (head));
  for (guint i = 0; i < N; i++) {
    g_autoptr (GBytes) one = make_gguf ("s", "token");

    g_byte_array_append (out, g_bytes_get_data (one, NULL), 13);
  }
  bytes = g_byte_array_free_to_bytes (g_steal_pointer (&out));
  begin = g_get_monotonic_time ();
  gguf = open_bytes (bytes, &error);
  g_assert_no_error (error);
  g_test_message ("%d strings in %" G_GINT64_FORMAT " us", N,
      g_get_monotonic_time () - begin);
  g_assert_true (runnel_gguf_get_array (gguf, "tokens", RUNNEL_GGUF_STRING,
          &array, &error));
  g_assert_cmpuint (array.n, ==, N);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gguf/good", test_good);
  g_test_add_func ("/gguf/arrays", test_arrays);
  g_test_add_func ("/gguf/index", test_index);
  g_test_add_func ("/gguf/wrong-values", test_wrong_values);
  g_test_add_func ("/gguf/integers", test_integers);
  g_test_add_func ("/gguf/hostile", test_hostile);
  g_test_add_func ("/gguf/prefixes", test_prefixes);
  g_test_add_func ("/gguf/version-2-and-alignment",
      test_version_2_and_alignment);
  g_test_add_func ("/gguf/odd-strings", test_odd_strings);
  g_test_add_func ("/gguf/writer", test_writer);
  g_test_add_func ("/gguf/long-array", test_long_array);
  return g_test_run ();
}
