/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Where a package is written: nothing is left half made, nothing of others is
 * destroyed, whatever happens.
 */
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "error.h"
#include "package-fixture.h"
#include "same-model.h"

static guint
count_files (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

static void
expect_failure (PackageFixture *f, const char *output,
                GCancellable *cancellable, RunnelError code,
                const char *message)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_converter_convert (converter, f->source, output, NULL,
          NULL, cancellable, &error));
  g_test_message ("%s", error->message);
  g_assert_error (error, RUNNEL_ERROR, (int) code);
  g_assert_nonnull (strstr (error->message, message));
}

static void
test_output (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autofree char *before = NULL, *after = NULL, *other = NULL;
  gsize n, m;
  PackageFixture f;

  package_set_up (&f, &model);
  other = g_build_filename (f.folder, "other", NULL);
  g_assert_true (g_file_get_contents (f.source, &before, &n, NULL));
  expect_failure (&f, f.source, NULL, RUNNEL_ERROR_INVALID_ARGUMENT,
      "is what the package is made of");
  g_assert_cmpint (link (f.source, other), ==, 0);
  expect_failure (&f, other, NULL, RUNNEL_ERROR_INVALID_ARGUMENT,
      "is what the package is made of");
  g_unlink (other);
  g_assert_cmpint (symlink (f.source, other), ==, 0);
  expect_failure (&f, other, NULL, RUNNEL_ERROR_INVALID_ARGUMENT,
      "is what the package is made of");
  g_unlink (other);
  expect_failure (&f, f.folder, NULL, RUNNEL_ERROR_INVALID_ARGUMENT,
      "is no file that could be replaced");
  expect_failure (&f, "/dev/full", NULL, RUNNEL_ERROR_INVALID_ARGUMENT,
      "is no file that could be replaced");
  expect_failure (&f, "/no/such/folder/model", NULL, RUNNEL_ERROR_IO,
      "/no/such/folder/model: cannot be written");
  g_assert_true (g_file_get_contents (f.source, &after, &m, NULL));
  g_assert_cmpmem (before, n, after, m);
  package_tear_down (&f);
}

static void
on_progress (double fraction, gpointer user_data)
{
  GCancellable *cancellable = user_data;

  g_assert_cmpfloat (fraction, <=, 1);
  if (fraction > 0.6)
    g_cancellable_cancel (cancellable);
}

/* The package that was there before stays. */
static void
test_cancelled (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GError) error = NULL;
  g_autofree char *contents = NULL;
  gsize size;
  PackageFixture f;

  package_set_up (&f, &model);
  g_assert_true (g_file_set_contents (f.package, "before", -1, NULL));
  g_assert_null (runnel_converter_convert (converter, f.source, f.package,
          on_progress, cancellable, cancellable, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED);
  g_assert_true (g_file_get_contents (f.package, &contents, &size, NULL));
  g_assert_cmpmem (contents, size, "before", 6);
  g_assert_cmpuint (count_files (f.folder), ==, 2);
  package_tear_down (&f);
}

/* Where the disk is full, or as good as. */
static void
test_no_room (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  struct rlimit before, limit;
  PackageFixture f;

  package_set_up (&f, &model);
  g_assert_cmpint (getrlimit (RLIMIT_FSIZE, &before), ==, 0);
  limit = before;
  limit.rlim_cur = 30000;
  signal (SIGXFSZ, SIG_IGN);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &limit), ==, 0);
  expect_failure (&f, f.package, NULL, RUNNEL_ERROR_IO, "cannot be written");
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &before), ==, 0);
  g_assert_cmpuint (count_files (f.folder), ==, 1);
  package_tear_down (&f);
}

static void
on_shortened (double fraction, gpointer user_data)
{
  if (fraction > 0.7)
    g_assert_cmpint (truncate (user_data, 40000), ==, 0);
}

/* A source that shrinks under the conversion is an error and no signal. */
static void
test_source_shrinks (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GError) error = NULL;
  PackageFixture f;

  package_set_up (&f, &model);
  g_assert_null (runnel_converter_convert (converter, f.source, f.package,
          on_shortened, f.source, NULL, &error));
  g_test_message ("%s", error->message);
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_TRUNCATED);
  g_assert_cmpuint (count_files (f.folder), ==, 1);
  package_tear_down (&f);
}

static void
on_converted (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GError) error = NULL;
  GVariant **report = user_data;

  *report = runnel_converter_convert_finish (RUNNEL_CONVERTER (source),
      result, &error);
  g_assert_no_error (error);
}

static void
test_async (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GVariant) report = NULL;
  PackageFixture f;

  package_set_up (&f, &model);
  runnel_converter_convert_async (converter, f.source, f.package, NULL,
      on_converted, &report);
  while (report == NULL)
    g_main_context_iteration (NULL, TRUE);
  assert_same_model (f.package, f.source);
  package_tear_down (&f);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/package/output", test_output);
  g_test_add_func ("/package/cancelled", test_cancelled);
  g_test_add_func ("/package/no-room", test_no_room);
  g_test_add_func ("/package/source-shrinks", test_source_shrinks);
  g_test_add_func ("/package/async", test_async);
  return g_test_run ();
}
