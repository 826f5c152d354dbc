/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#define GST_USE_UNSTABLE_API
#include "elements.h"

#include <gst/gsttracer.h>
#include <gstrunnel.h>

static gboolean
plugin_init (GstPlugin *plugin)
{
  gboolean registered = FALSE;

  registered |= GST_ELEMENT_REGISTER (lmchat, plugin);
  registered |= GST_ELEMENT_REGISTER (lmdecide, plugin);
  registered |= GST_ELEMENT_REGISTER (lmdecode, plugin);
  registered |= GST_ELEMENT_REGISTER (lmdetokenize, plugin);
  registered |= GST_ELEMENT_REGISTER (lmdraft, plugin);
  registered |= GST_ELEMENT_REGISTER (lmgate, plugin);
  registered |= GST_ELEMENT_REGISTER (lmgenerate, plugin);
  registered |= GST_ELEMENT_REGISTER (lmlookup, plugin);
  registered |= GST_ELEMENT_REGISTER (lmprefill, plugin);
  registered |= GST_ELEMENT_REGISTER (lmprompt, plugin);
  registered |= gst_element_register (plugin, "lmtextsink", GST_RANK_NONE,
                                      GST_TYPE_LM_TEXT_SINK);
  registered |= GST_ELEMENT_REGISTER (lmtokenize, plugin);
  registered |= gst_tracer_register (plugin, "lmstats",
                                     gst_lm_stats_get_type ());
  return registered;
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, runnel,
                   "Small language models on the device", plugin_init,
                   PACKAGE_VERSION, "MIT/X11", PACKAGE, PACKAGE_ORIGIN)
