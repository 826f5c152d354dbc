/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <glib/gstdio.h>

#include "error.h"
#include "formats/mapping.h"

typedef struct {
  char *folder, *path;
  gsize page, size;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *content = NULL;
  g_autoptr (GError) error = NULL;

  fixture->page = sysconf (_SC_PAGESIZE);
  fixture->size = 4 * fixture->page + 100;
  content = g_strnfill (fixture->size, 'x');
  fixture->folder = g_dir_make_tmp (NULL, &error);
  g_assert_no_error (error);
  fixture->path = g_build_filename (fixture->folder, "file", NULL);
  g_file_set_contents (fixture->path, content, fixture->size, &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  g_remove (fixture->path);
  g_rmdir (fixture->folder);
  g_free (fixture->path);
  g_free (fixture->folder);
}

static guint
count_resident (RunnelMapping *mapping, gsize page)
{
  gsize n = (runnel_mapping_size (mapping) + page - 1) / page;
  g_autofree unsigned char *resident = g_malloc (n);
  guint count = 0;

  g_assert_cmpint (mincore ((void *) runnel_mapping_data (mapping),
          runnel_mapping_size (mapping), resident), ==, 0);
  for (gsize i = 0; i < n; i++)
    count += resident[i] & 1;
  return count;
}

static void
test_read (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelMapping) mapping = runnel_mapping_open (fixture->path,
      RUNNEL_LOAD_MODE_READ, &error);
  const guint8 *data;

  g_assert_no_error (error);
  g_assert_cmpuint (runnel_mapping_size (mapping), ==, fixture->size);
  g_assert_cmpstr (runnel_mapping_name (mapping), ==, fixture->path);
  /* The file may go: this is our own copy. */
  g_assert_cmpint (truncate (fixture->path, 0), ==, 0);
  data = runnel_mapping_data (mapping);
  for (gsize i = 0; i < fixture->size; i++)
    g_assert_cmpint (data[i], ==, 'x');
  /* Whole pages inside the range, and no others. */
  runnel_mapping_release (mapping, 1, 3 * fixture->page);
  g_assert_cmpuint (count_resident (mapping, fixture->page), ==, 3);
  g_assert_cmpint (data[fixture->page - 1], ==, 'x');
  g_assert_cmpint (data[fixture->page], ==, 0);
  g_assert_cmpint (data[3 * fixture->page - 1], ==, 0);
  g_assert_cmpint (data[3 * fixture->page], ==, 'x');
  /* The end of the file ends its last page. */
  runnel_mapping_release (mapping, 3 * fixture->page,
      fixture->size - 3 * fixture->page);
  g_assert_cmpint (data[fixture->size - 1], ==, 0);
}

static void
test_map (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelMapping) mapping = runnel_mapping_open (fixture->path,
      RUNNEL_LOAD_MODE_MAP, &error);
  g_autoptr (RunnelMapping) again = NULL;
  const guint8 *data;

  g_assert_no_error (error);
  data = runnel_mapping_data (mapping);
  runnel_mapping_release (mapping, 0, fixture->size);
  runnel_mapping_release (mapping, fixture->size, 0);
  runnel_mapping_release (mapping, 5, 10);
  for (gsize i = 0; i < fixture->size; i++)
    g_assert_cmpint (data[i], ==, 'x');
  again = runnel_mapping_ref (mapping);
  g_assert_true (again == mapping);
}

/* An open file stands for another process: the lock belongs to it. */
static void
test_shared (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (RunnelMapping) first
      = runnel_mapping_open (fixture->path, RUNNEL_LOAD_MODE_AUTO, NULL);
  g_autoptr (RunnelMapping) second
      = runnel_mapping_open (fixture->path, RUNNEL_LOAD_MODE_MAP, NULL);
  g_autoptr (RunnelMapping) copy
      = runnel_mapping_open (fixture->path, RUNNEL_LOAD_MODE_READ, NULL);
  g_autoptr (RunnelMapping) third = NULL;

  g_assert_false (runnel_mapping_is_shared (first));
  g_assert_true (runnel_mapping_is_shared (second));
  g_assert_false (runnel_mapping_is_shared (copy));
  g_assert_true (runnel_mapping_is_file (first));
  g_assert_true (runnel_mapping_is_file (second));
  g_assert_false (runnel_mapping_is_file (copy));
  g_clear_pointer (&first, runnel_mapping_unref);
  g_clear_pointer (&second, runnel_mapping_unref);
  third = runnel_mapping_open (fixture->path, RUNNEL_LOAD_MODE_MAP, NULL);
  g_assert_false (runnel_mapping_is_shared (third));
}

static void
test_bytes (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static ("abc", 3);
  g_autoptr (GBytes) none = g_bytes_new (NULL, 0);
  g_autoptr (RunnelMapping) mapping =
      runnel_mapping_new_from_bytes (bytes, "abc");
  g_autoptr (RunnelMapping) empty = runnel_mapping_new_from_bytes (none, "");

  g_assert_cmpmem (runnel_mapping_data (mapping),
      runnel_mapping_size (mapping), "abc", 3);
  runnel_mapping_release (mapping, 0, 3);
  g_assert_cmpint (runnel_mapping_data (mapping)[2], ==, 'c');
  g_assert_cmpuint (runnel_mapping_size (empty), ==, 0);
  g_assert_nonnull (runnel_mapping_data (empty));
}

static void
assert_fails (const char *path)
{
  for (RunnelLoadMode mode = RUNNEL_LOAD_MODE_AUTO;
      mode <= RUNNEL_LOAD_MODE_READ; mode++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (runnel_mapping_open (path, mode, &error));
    g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
    g_assert_true (g_str_has_prefix (error->message, path));
  }
}

static void
test_failures (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *missing = g_build_filename (fixture->folder, "no", NULL);
  g_autofree char *fifo = g_build_filename (fixture->folder, "fifo", NULL);
  g_autoptr (RunnelMapping) empty = NULL;
  g_autoptr (GError) error = NULL;

  assert_fails (missing);
  assert_fails (fixture->folder);
  /* Opening one would wait for a writer, were it not refused. */
  g_assert_cmpint (mkfifo (fifo, 0600), ==, 0);
  assert_fails (fifo);
  g_remove (fifo);
  g_assert_cmpint (truncate (fixture->path, 0), ==, 0);
  empty = runnel_mapping_open (fixture->path, RUNNEL_LOAD_MODE_MAP, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (runnel_mapping_size (empty), ==, 0);
}

static void
test_load_mode (Fixture *fixture, gconstpointer unused)
{
  g_autoptr (GEnumClass) class = g_type_class_ref (RUNNEL_TYPE_LOAD_MODE);

  g_assert_cmpint (g_enum_get_value_by_nick (class, "map")->value, ==,
      RUNNEL_LOAD_MODE_MAP);
  g_assert_cmpint (g_enum_get_value_by_nick (class, "read")->value, ==,
      RUNNEL_LOAD_MODE_READ);
  g_assert_cmpint (g_enum_get_value_by_nick (class, "auto")->value, ==,
      RUNNEL_LOAD_MODE_AUTO);
}

int
main (int argc, char **argv)
{
  static const struct {
    const char *path;
    void (*run) (Fixture *fixture, gconstpointer unused);
  } tests[] = {
    { "/mapping/read", test_read }, { "/mapping/map", test_map },
    { "/mapping/shared", test_shared },
    { "/mapping/bytes", test_bytes }, { "/mapping/failures", test_failures },
    { "/mapping/load-mode", test_load_mode },
  };

  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (tests); i++)
    g_test_add (tests[i].path, Fixture, NULL, set_up, tests[i].run,
        tear_down);
  return g_test_run ();
}
