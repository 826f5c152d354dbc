/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* Drafters for a pipeline that has none of its own. */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

/* Puts elements that attach these drafters before every lmprefill, those named
 * first standing first. A name that is none, or a pipeline without lmprefill,
 * is a usage error. */
gboolean draft_elements_insert (GstElement *pipeline, char **drafters,
                                GError **error);

G_END_DECLS
