/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <gio/gio.h>
#include "../api.h"
#include "../model/calibration.h"
#include "../progress.h"
#include "decision-head.h"

G_BEGIN_DECLS

/**
 * RunnelPackageType:
 * @RUNNEL_PACKAGE_TYPE_AUTO: without loss where the source is quantised; INT4
 *   where it is floats
 * @RUNNEL_PACKAGE_TYPE_INT4: 4-bit codes
 * @RUNNEL_PACKAGE_TYPE_INT8: 8-bit codes
 * @RUNNEL_PACKAGE_TYPE_F16: half floats
 * @RUNNEL_PACKAGE_TYPE_SOURCE: as the source has it
 *
 * What becomes of a matrix in a package.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_PACKAGE_TYPE_AUTO,
  RUNNEL_PACKAGE_TYPE_INT4,
  RUNNEL_PACKAGE_TYPE_INT8,
  RUNNEL_PACKAGE_TYPE_F16,
  RUNNEL_PACKAGE_TYPE_SOURCE,
} RunnelPackageType;

#define RUNNEL_TYPE_PACKAGE_TYPE (runnel_package_type_get_type ())
RUNNEL_API GType runnel_package_type_get_type (void);

#define RUNNEL_TYPE_CONVERTER (runnel_converter_get_type ())
RUNNEL_API
G_DECLARE_FINAL_TYPE (RunnelConverter, runnel_converter, RUNNEL, CONVERTER, GObject)

/**
 * RunnelConverter:
 *
 * Makes packages of models: one file that is mapped and used in place. Set it
 * up, then convert as often as you like, one conversion at a time.
 *
 * Since: 0.1
 */

RUNNEL_API RunnelConverter *runnel_converter_new (void);
RUNNEL_API void runnel_converter_keep (RunnelConverter *self,
                                       const char *pattern,
                                       RunnelPackageType type);
RUNNEL_API void runnel_converter_set_importance (RunnelConverter *self,
                                                 const char *tensor,
                                                 const float *importance,
                                                 gsize n_columns);
RUNNEL_API void runnel_converter_set_calibration (RunnelConverter *self,
                                                  RunnelCalibration *calibration);
RUNNEL_API void runnel_converter_set_head (RunnelConverter *self,
                                           RunnelDecisionHead *head);
RUNNEL_API GVariant *runnel_converter_convert (RunnelConverter *self,
                                               const char *input,
                                               const char *output,
                                               RunnelProgressFunc progress,
                                               gpointer user_data,
                                               GCancellable *cancellable,
                                               GError **error);
RUNNEL_API void runnel_converter_convert_async (RunnelConverter *self,
                                                const char *input,
                                                const char *output,
                                                GCancellable *cancellable,
                                                GAsyncReadyCallback callback,
                                                gpointer user_data);
RUNNEL_API GVariant *runnel_converter_convert_finish (RunnelConverter *self,
                                                      GAsyncResult *result,
                                                      GError **error);

G_END_DECLS
