/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* Properties of the elements of a pipeline, set from text. */
#pragma once

#include <gst/gst.h>

#include "verb.h"

G_BEGIN_DECLS

/* Options of run and chat that are properties of elements. */
extern const GOptionEntry property_value_entries[];

/* Applies those that were given, and the common ones. A value that does not
 * fit, or a property that no element has, is a usage error. */
gboolean property_values_apply (GstElement *pipeline, const Options *options,
                                GError **error);
/* The elements of a pipeline and the bins in it, in the order of the launch
 * string. */
GPtrArray *pipeline_list_elements (GstElement *pipeline);
/* Whether it was made by the factory of this name. */
gboolean element_is (GstElement *element, const char *factory);

G_END_DECLS
