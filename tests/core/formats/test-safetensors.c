/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <glib/gstdio.h>

#include "formats/safetensors.h"
#include "hostile-safetensors.h"

static RunnelSafetensors *
open_bytes (GBytes *bytes, GError **error)
{
  g_autoptr (RunnelMapping) mapping =
      runnel_mapping_new_from_bytes (bytes, "test.safetensors");

  return runnel_safetensors_new (mapping, error);
}

static void
test_good (void)
{
  g_autoptr (GBytes) bytes = make_safetensors (GOOD_SAFETENSORS, -1,
      GOOD_SAFETENSORS_DATA);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelSafetensors) file = open_bytes (bytes, &error);
  const RunnelTensor *tensor;
  gsize size;

  g_assert_no_error (error);
  g_assert_cmpuint (runnel_safetensors_n_tensors (file), ==, 3);
  tensor = runnel_safetensors_find (file, "a");
  g_assert_true (tensor == runnel_safetensors_tensor (file, 0));
  g_assert_cmpint (tensor->type, ==, RUNNEL_TENSOR_F32);
  g_assert_cmpuint (tensor->n_dims, ==, 2);
  g_assert_cmpuint (tensor->dims[0], ==, 3);
  g_assert_cmpuint (tensor->dims[1], ==, 2);
  g_assert_cmpuint (tensor->bytes, ==, 24);
  tensor = runnel_safetensors_find (file, "s");
  g_assert_cmpuint (tensor->n_dims, ==, 1);
  g_assert_cmpuint (tensor->dims[0], ==, 1);
  tensor = runnel_safetensors_find (file, "b");
  g_assert_cmpint (tensor->type, ==, RUNNEL_TENSOR_BF16);
  g_assert_cmpuint (tensor->offset + tensor->bytes, ==,
      g_bytes_get_size (bytes));
  g_assert_null (runnel_safetensors_find (file, "ids"));
  g_assert_nonnull (strstr (runnel_safetensors_unusable (file, "ids"),
          "type I64"));
  g_assert_null (runnel_safetensors_unusable (file, "a"));
  g_assert_cmpuint (runnel_safetensors_n_shards (file), ==, 1);
  g_assert_true (runnel_safetensors_header (file, 0, &size) ==
      g_bytes_get_data (bytes, NULL));
  g_assert_cmpuint (size, ==, 8 + strlen (GOOD_SAFETENSORS));
}

/* Well-formed, but not to be used as they are. */
static void
test_unusable (void)
{
  static const struct { const char *header; gsize n_data; const char *reason; }
  cases[] = {
    { "{" T ("x", "F32", "[0,4]", "[0,0]") "}", 0, "is empty" },
    { "{" T ("x", "F16", "[1,1,1,1,2]", "[0,4]") "}", 4, "has 5 axes" },
    { "{" T ("x", "F4", "[8]", "[0,4]") "}", 4, "type F4" },
    { "{" T ("y", "F16", "[1]", "[0,2]") "," T ("x", "F32", "[1]", "[2,6]")
      " }", 6, "not aligned" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    /* The data begin at a multiple of 8, but for what the case says. */
    g_autofree char *header = g_strdup_printf ("%-160s", cases[i].header);
    g_autoptr (GBytes) bytes = make_safetensors (header, -1, cases[i].n_data);
    g_autoptr (GError) error = NULL;
    g_autoptr (RunnelSafetensors) file = open_bytes (bytes, &error);

    g_assert_no_error (error);
    g_assert_null (runnel_safetensors_find (file, "x"));
    g_assert_nonnull (strstr (runnel_safetensors_unusable (file, "x"),
            cases[i].reason));
  }
}

static void
test_hostile (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (hostile_safetensors); i++) {
    const HostileSafetensors *hostile = &hostile_safetensors[i];
    g_autoptr (GBytes) bytes = make_safetensors (hostile->header,
        hostile->length, hostile->n_data);
    g_autoptr (GError) error = NULL;

    g_assert_null (open_bytes (bytes, &error));
    g_test_message ("%s", error->message);
    g_assert_error (error, RUNNEL_ERROR, (int) hostile->code);
    g_assert_true (g_str_has_prefix (error->message, "test.safetensors"));
    g_assert_nonnull (strstr (error->message, hostile->message));
  }
}

static void
test_prefixes (void)
{
  g_autoptr (GBytes) good = make_safetensors (GOOD_SAFETENSORS, -1,
      GOOD_SAFETENSORS_DATA);

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

/* --- folders --- */

typedef struct {
  char *folder;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  fixture->folder = g_dir_make_tmp (NULL, NULL);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GDir) dir = g_dir_open (fixture->folder, 0, NULL);
  const char *name;

  while ((name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (fixture->folder, name, NULL);

    g_remove (path);
  }
  g_rmdir (fixture->folder);
  g_free (fixture->folder);
}

static void
put_file (Fixture *fixture, const char *name, GBytes *bytes)
{
  g_autofree char *path = g_build_filename (fixture->folder, name, NULL);
  g_autoptr (GError) error = NULL;

  g_file_set_contents (path, g_bytes_get_data (bytes, NULL),
      g_bytes_get_size (bytes), &error);
  g_assert_no_error (error);
  g_bytes_unref (bytes);
}

static void
put_shards (Fixture *fixture)
{
  put_file (fixture, "1.safetensors", make_safetensors (
      "{" T ("a", "F32", "[1]", "[0,4]") "}" "  ", -1, 4));
  put_file (fixture, "2.safetensors", make_safetensors (
      "{" T ("b", "F32", "[1]", "[0,4]") "," T ("n", "I64", "[0]", "[4,4]")
      "}" "     ", -1, 4));
}

static RunnelSafetensors *
open_index (Fixture *fixture, const char *text, GError **error)
{
  put_file (fixture, "model.safetensors.index.json",
      g_bytes_new (text, strlen (text)));
  return runnel_safetensors_open (fixture->folder, RUNNEL_LOAD_MODE_MAP,
      error);
}

static void
test_shards (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *path = g_build_filename (fixture->folder,
      "model.safetensors.index.json", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelSafetensors) files = NULL, again = NULL;

  put_shards (fixture);
  files = open_index (fixture, "{\"metadata\":{\"total_size\":8},"
      "\"weight_map\":{\"b\":\"2.safetensors\",\"a\":\"1.safetensors\","
      "\"n\":\"2.safetensors\"}}", &error);
  g_assert_no_error (error);
  g_assert_cmpuint (runnel_safetensors_n_shards (files), ==, 2);
  g_assert_cmpuint (runnel_safetensors_n_tensors (files), ==, 2);
  g_assert_true (runnel_safetensors_find (files, "a")->mapping !=
      runnel_safetensors_find (files, "b")->mapping);
  again = runnel_safetensors_open (path, RUNNEL_LOAD_MODE_READ, &error);
  g_assert_no_error (error);
  g_assert_nonnull (runnel_safetensors_find (again, "a"));
}

static void
test_bad_index (Fixture *fixture, gconstpointer unused)
{
  static const struct { const char *map; RunnelError code;
    const char *message; } cases[] = {
    { "{}", RUNNEL_ERROR_MALFORMED, "'weight_map' is missing" },
    { "{\"weight_map\":[]}", RUNNEL_ERROR_MALFORMED, "no object" },
    { "{\"weight_map\":{\"a\":1}}", RUNNEL_ERROR_MALFORMED, "no file name" },
    { "{\"weight_map\":{\"a\":\"../1.safetensors\"}}",
      RUNNEL_ERROR_MALFORMED, "must lie in the folder" },
    { "{\"weight_map\":{\"a\":\"/etc/passwd\"}}", RUNNEL_ERROR_MALFORMED,
      "must lie in the folder" },
    { "{\"weight_map\":{\"a\":\"..\"}}", RUNNEL_ERROR_MALFORMED,
      "must lie in the folder" },
    { "{\"weight_map\":{\"a\":\"\"}}", RUNNEL_ERROR_MALFORMED,
      "must lie in the folder" },
    { "{\"weight_map\":{\"a\":\"1.safetensors\\u0000\"}}",
      RUNNEL_ERROR_MALFORMED, "must lie in the folder" },
    { "{\"weight_map\":{\"a\":\"3.safetensors\"}}", RUNNEL_ERROR_IO,
      "3.safetensors" },
    { "{\"weight_map\":{\"a\":\"2.safetensors\"}}", RUNNEL_ERROR_MISMATCH,
      "tensor 'a' is not in shard '2.safetensors'" },
    { "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"1.safetensors\"}}",
      RUNNEL_ERROR_MISMATCH, "tensor 'b' is not in shard" },
    { "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"copy\"}}",
      RUNNEL_ERROR_MALFORMED, "'a' occurs twice" },
  };

  put_shards (fixture);
  put_file (fixture, "copy", make_safetensors ("{" T ("a", "F32", "[1]",
              "[0,4]") "}", -1, 4));
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (open_index (fixture, cases[i].map, &error));
    g_test_message ("%s", error->message);
    g_assert_error (error, RUNNEL_ERROR, (int) cases[i].code);
    g_assert_nonnull (strstr (error->message, cases[i].message));
  }
}

static void
test_empty_folder (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_safetensors_open (fixture->folder,
          RUNNEL_LOAD_MODE_MAP, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_assert_nonnull (strstr (error->message, "model.safetensors"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/safetensors/good", test_good);
  g_test_add_func ("/safetensors/unusable", test_unusable);
  g_test_add_func ("/safetensors/hostile", test_hostile);
  g_test_add_func ("/safetensors/prefixes", test_prefixes);
  g_test_add ("/safetensors/shards", Fixture, NULL, set_up, test_shards,
      tear_down);
  g_test_add ("/safetensors/bad-index", Fixture, NULL, set_up,
      test_bad_index, tear_down);
  g_test_add ("/safetensors/empty-folder", Fixture, NULL, set_up,
      test_empty_folder, tear_down);
  return g_test_run ();
}
