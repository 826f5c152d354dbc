/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Saved states of sequences: what is read back, and what is refused.
 */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "sequence-fixture.h"

static void
test_save_load (SequenceFixture *f, gconstpointer data)
{
  g_autofree char *folder = g_dir_make_tmp ("runnel-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "state", NULL);
  g_autoptr (RunnelSequence) a = new_sequence (f, 200, 77);
  g_autoptr (RunnelSequence) b = NULL;
  g_autoptr (GError) error = NULL;
  guint64 rows;

  runnel_sequence_save (a, path, &error);
  g_assert_no_error (error);
  rows = get_stats (f).rows;
  b = runnel_sequence_load (f->engine, path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (runnel_sequence_get_context_length (b), ==, 200);
  assert_same_next (f, a, b);
  g_assert_cmpuint (get_stats (f).rows, ==, rows);
  g_unlink (path);
  g_assert_null (runnel_sequence_load (f->engine, path, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_assert_nonnull (strstr (error->message, path));
  g_clear_error (&error);
  g_assert_null (runnel_sequence_load (f->engine, folder, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_assert_nonnull (strstr (error->message, "not a regular file"));
  g_clear_error (&error);
  /* A file with a hole: its size is refused, it is not read. */
  g_assert_true (g_file_set_contents (path, "x", 1, NULL));
  g_assert_cmpint (truncate (path, (off_t) 5 << 30), ==, 0);
  g_assert_null (runnel_sequence_load (f->engine, path, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_LIMIT);
  g_clear_error (&error);
  g_unlink (path);
  g_assert_false (runnel_sequence_save (a, "/nonexistent/state", &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_clear_error (&error);
  /* A pipe or a device is not replaced. */
  g_assert_cmpint (mkfifo (path, 0600), ==, 0);
  g_assert_false (runnel_sequence_save (a, path, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_unlink (path);
  g_rmdir (folder);
}

static void
expect_refused (SequenceFixture *f, const guint8 *data, gsize size)
{
  g_autoptr (GBytes) image = g_bytes_new (data, size);
  g_autoptr (GError) error = NULL;
  guint64 bytes = get_stats (f).kv_bytes;

  g_assert_null (runnel_sequence_deserialize (f->engine, image, "image",
      &error));
  g_assert_nonnull (error);
  g_assert_true (g_str_has_prefix (error->message, "image: "));
  g_assert_cmpuint (get_stats (f).kv_bytes, ==, bytes);
}

/* Makes the checksum of an altered image right, so that the checks behind it
 * are reached. */
static void
seal (guint8 *data, gsize size)
{
  g_autoptr (GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  gsize n = 32;

  g_checksum_update (checksum, data, size - 32);
  g_checksum_get_digest (checksum, data + size - 32, &n);
}

static void
test_refused_states (SequenceFixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 5);
  g_autoptr (GBytes) image = runnel_sequence_serialize (a, NULL);
  gsize size;
  const guint8 *good = g_bytes_get_data (image, &size);
  g_autofree guint8 *bad = g_memdup2 (good, size);

  for (gsize n = 0; n < size; n += 1 + n / 7)
    expect_refused (f, good, n);
  for (gsize i = 0; i < size; i += 1 + i / 50) {
    bad[i] ^= 0x10;
    expect_refused (f, bad, size);
    bad[i] ^= 0x10;
  }
  /* Every number of the header altered, with a right checksum. */
  for (gsize i = 16; i < 16 + 40; i += 4) {
    static const guint8 values[][4] = {
      { 0xff, 0xff, 0xff, 0xff }, { 0x77, 0, 0, 0 }, { 0, 0, 0, 0x80 },
    };

    for (guint v = 0; v < G_N_ELEMENTS (values); v++) {
      /* A context length of 0x77 is a good one. */
      if (i == 16 + 8 && v == 1)
        continue;
      memcpy (bad + i, values[v], 4);
      seal (bad, size);
      expect_refused (f, bad, size);
      memcpy (bad + i, good + i, 4);
    }
  }
  bad[60] ^= 1;              /* the content id */
  seal (bad, size);
  expect_refused (f, bad, size);
}

static void
test_foreign_state (SequenceFixture *f, gconstpointer data)
{
  g_autoptr (RunnelSequence) a = new_sequence (f, 0, 5);
  g_autoptr (RunnelEngine) other = runnel_engine_get (f->model,
      runnel_engine_get_backend (f->engine), RUNNEL_KV_TYPE_F32, NULL, NULL,
      NULL, NULL);
  g_autoptr (GBytes) image = runnel_sequence_serialize (a, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (runnel_sequence_deserialize (other, image, "image", &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_MISMATCH);
  g_assert_nonnull (strstr (error->message, "kv-type"));
}

int
main (int argc, char **argv)
{
  static const SequenceTest tests[] = {
    { "save-load", test_save_load },
    { "refused-states", test_refused_states },
    { "foreign-state", test_foreign_state },
  };

  return run_sequence_tests (argc, argv, tests, G_N_ELEMENTS (tests));
}
