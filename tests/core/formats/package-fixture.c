/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "package-fixture.h"

#include <string.h>
#include <glib/gstdio.h>

void
package_set_up (PackageFixture *f, const TinyModel *model)
{
  g_autofree char *made = tiny_model_write (model);
  GError *error = NULL;

  f->folder = g_dir_make_tmp ("runnel-package-XXXXXX", &error);
  g_assert_no_error (error);
  f->source = g_build_filename (f->folder, "source.gguf", NULL);
  f->package = g_build_filename (f->folder, "model.runnel", NULL);
  g_assert_cmpint (g_rename (made, f->source), ==, 0);
}

void
package_tear_down (PackageFixture *f)
{
  g_unlink (f->source);
  g_unlink (f->package);
  /* Nothing half made is left. */
  g_assert_cmpint (g_rmdir (f->folder), ==, 0);
  g_free (f->folder);
  g_free (f->source);
  g_free (f->package);
}

GVariant *
package_convert (PackageFixture *f, RunnelPackageType type, guint group)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  GError *error = NULL;
  GVariant *report;

  g_object_set (converter, "type", type, "group", group, NULL);
  report = runnel_converter_convert (converter, f->source, f->package, NULL,
      NULL, NULL, &error);
  g_assert_no_error (error);
  return report;
}

void
package_find_tensor (GVariant *report, const char *wanted, char **ret_type,
                     gboolean *ret_lossless, double *ret_error)
{
  g_autoptr (GVariant) tensors
      = g_variant_lookup_value (report, "tensors", NULL);
  GVariantIter iter;
  const char *name, *type;

  g_variant_iter_init (&iter, tensors);
  while (g_variant_iter_next (&iter, "(&ss&sbdtt)", &name, NULL, &type,
          ret_lossless, ret_error, NULL, NULL))
    if (strcmp (name, wanted) == 0) {
      *ret_type = g_strdup (type);
      return;
    }
  g_assert_not_reached ();
}

void
package_assert_type (GVariant *report, const char *name, const char *expected,
                     gboolean expected_lossless)
{
  g_autofree char *type = NULL;
  gboolean lossless = FALSE;
  double error = -1;

  package_find_tensor (report, name, &type, &lossless, &error);
  g_assert_cmpstr (type, ==, expected);
  g_assert_cmpint (lossless, ==, expected_lossless);
  if (lossless)
    g_assert_cmpfloat (error, ==, 0);
  else
    g_assert_cmpfloat (error, >, 0);
}
