/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* The elements of the plugin; each is registered by the file of its name. */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

GST_ELEMENT_REGISTER_DECLARE (lmchat)
GST_ELEMENT_REGISTER_DECLARE (lmdetokenize)
GST_ELEMENT_REGISTER_DECLARE (lmprompt)
GST_ELEMENT_REGISTER_DECLARE (lmtokenize)

G_END_DECLS
