/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The digests of a package, and what they find.
 */
#include <string.h>

#include "error.h"
#include "formats/gguf.h"
#include "formats/package.h"
#include "formats/verify.h"
#include "model/model-private.h"
#include "package-fixture.h"

/* The digest that is stored is that of the header with zeros in its place. */
static void
test_own_digest (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GVariant) report = NULL;
  g_autoptr (RunnelGguf) gguf = NULL;
  g_autofree char *contents = NULL, *digest = NULL, *said = NULL;
  gsize size;
  PackageFixture f;

  package_set_up (&f, &model);
  report = package_convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
  gguf = runnel_gguf_open (f.package, RUNNEL_LOAD_MODE_MAP, NULL);
  g_assert_true (g_file_get_contents (f.package, &contents, &size, NULL));
  said = g_strndup (contents + 57, 64);
  memset (contents + 57, '0', 64);
  digest = g_compute_checksum_for_data (G_CHECKSUM_SHA256,
      (const guchar *) contents, runnel_gguf_data_offset (gguf));
  g_assert_cmpstr (said, ==, digest);
  package_tear_down (&f);
}

static void
write_changed (PackageFixture *f, const char *contents, gsize size, gsize at)
{
  g_autofree char *changed = g_memdup2 (contents, size);

  changed[at] ^= 0x10;
  g_assert_true (g_file_set_contents (f->package, changed, size, NULL));
}

static void
expect_corrupt (PackageFixture *f, const char *message)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model = NULL;

  g_assert_false (runnel_verify_file (f->package, NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CORRUPT);
  g_assert_nonnull (strstr (error->message, message));
  g_clear_error (&error);
  model = runnel_model_open (f->package, RUNNEL_LOAD_MODE_READ, NULL);
  if (model == NULL)
    return;
  g_assert_false (runnel_model_verify (model, NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CORRUPT);
}

static void
test_verify (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GVariant) report = NULL;
  g_autoptr (RunnelGguf) gguf = NULL;
  g_autoptr (RunnelModel) loaded = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *contents = NULL, *longer = NULL;
  gsize size, n, gap = 0;
  const guint8 *filler;
  RunnelGgufType type;
  PackageFixture f;

  model.type = RUNNEL_TENSOR_Q4_0;   /* an odd number of tiles of 288 bytes */
  package_set_up (&f, &model);
  report = package_convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
  g_assert_true (g_file_get_contents (f.package, &contents, &size, NULL));
  gguf = runnel_gguf_open (f.package, RUNNEL_LOAD_MODE_READ, NULL);
  loaded = runnel_model_open (f.package, RUNNEL_LOAD_MODE_MAP, NULL);
  g_assert_true (runnel_model_verify (loaded, NULL, NULL, NULL, &error));
  g_assert_no_error (error);
  for (gsize i = 0; i < runnel_gguf_n_tensors (gguf); i++) {
    const RunnelTensor *tensor = runnel_gguf_tensor (gguf, i);
    g_autofree char *quoted = g_strdup_printf ("'%s'", tensor->name);

    write_changed (&f, contents, size, tensor->offset);
    expect_corrupt (&f, quoted);
    write_changed (&f, contents, size, tensor->offset + tensor->bytes - 1);
    expect_corrupt (&f, quoted);
    if ((tensor->offset + tensor->bytes) % 64 != 0)
      gap = tensor->offset + tensor->bytes;
  }
  g_assert_cmpuint (gap, >, 0);
  write_changed (&f, contents, size, gap);
  expect_corrupt (&f, "is not 0");
  /* The stored digest, and the filler. */
  write_changed (&f, contents, size, 60);
  expect_corrupt (&f, "the header differs");
  filler = runnel_gguf_raw_value (gguf, RUNNEL_PACKAGE_FILLER, &type, &n);
  write_changed (&f, contents, size, filler
      - runnel_mapping_data (runnel_gguf_mapping (gguf)) + n - 1);
  expect_corrupt (&f, "the header differs");
  longer = g_malloc0 (size + 64);
  memcpy (longer, contents, size);
  g_assert_true (g_file_set_contents (f.package, longer, size + 64, NULL));
  expect_corrupt (&f, "belong to no tensor");
  package_tear_down (&f);
}

static void
test_verify_others (void)
{
  TinyModel model = TINY_MODEL_DEFAULT;
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GVariant) report = NULL;
  PackageFixture f;

  package_set_up (&f, &model);
  g_assert_false (runnel_verify_file (f.source, NULL, NULL, NULL, &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_UNSUPPORTED);
  g_clear_error (&error);
  g_assert_false (runnel_verify_file ("/no/such/file", NULL, NULL, NULL,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_IO);
  g_clear_error (&error);
  report = package_convert (&f, RUNNEL_PACKAGE_TYPE_AUTO, 0);
  g_cancellable_cancel (cancellable);
  g_assert_false (runnel_verify_file (f.package, NULL, NULL, cancellable,
          &error));
  g_assert_error (error, RUNNEL_ERROR, RUNNEL_ERROR_CANCELLED);
  package_tear_down (&f);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/package/own-digest", test_own_digest);
  g_test_add_func ("/package/verify", test_verify);
  g_test_add_func ("/package/verify-others", test_verify_others);
  return g_test_run ();
}
