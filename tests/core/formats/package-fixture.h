/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A folder with a tiny model and the package that is made of it.
 */
#pragma once

#include "formats/converter.h"
#include "tiny-model.h"

typedef struct {
  char *folder, *source, *package;
} PackageFixture;

void package_set_up (PackageFixture *f, const TinyModel *model);
void package_tear_down (PackageFixture *f);

/* Makes the package; returns the converter's report. */
GVariant *package_convert (PackageFixture *f, RunnelPackageType type,
                           guint group);

/* What the report says of a tensor. */
void package_find_tensor (GVariant *report, const char *wanted,
                          char **ret_type, gboolean *ret_lossless,
                          double *ret_error);
void package_assert_type (GVariant *report, const char *name,
                          const char *expected, gboolean expected_lossless);
