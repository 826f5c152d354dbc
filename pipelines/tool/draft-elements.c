/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "draft-elements.h"

#include "property-values.h"
#include "report.h"

/* The element that attaches this drafter. */
static GstElement *
make_element (const char *drafter, GError **error)
{
  GstElement *element;

  if (g_str_equal (drafter, "lookup"))
    return gst_element_factory_make ("lmlookup", NULL);
  if (!g_file_test (drafter, G_FILE_TEST_EXISTS)) {
    report_set_usage (error, "--draft: '%s' is neither 'lookup' nor the file "
        "of a draft model", drafter);
    return NULL;
  }
  element = gst_element_factory_make ("lmdraft", NULL);
  g_object_set (element, "draft", drafter, NULL);
  return element;
}

/* Between @prefill and what is linked to it. */
static gboolean
insert (GstElement *prefill, const char *drafter, GError **error)
{
  g_autoptr (GstPad) sink = gst_element_get_static_pad (prefill, "sink");
  g_autoptr (GstPad) peer = gst_pad_get_peer (sink);
  g_autoptr (GstObject) bin = gst_object_get_parent (GST_OBJECT (prefill));
  g_autoptr (GstPad) in = NULL, out = NULL;
  GstElement *element = make_element (drafter, error);

  if (element == NULL)
    return FALSE;
  gst_bin_add (GST_BIN (bin), element);
  in = gst_element_get_static_pad (element, "sink");
  out = gst_element_get_static_pad (element, "src");
  if (peer != NULL) {
    gst_pad_unlink (peer, sink);
    gst_pad_link (peer, in);
  }
  gst_pad_link (out, sink);
  return TRUE;
}

gboolean
draft_elements_insert (GstElement *pipeline, char **drafters, GError **error)
{
  g_autoptr (GPtrArray) elements = pipeline_list_elements (pipeline);
  gboolean found = FALSE;

  for (guint i = 0; i < elements->len; i++) {
    if (!element_is (elements->pdata[i], "lmprefill"))
      continue;
    found = TRUE;
    for (guint k = 0; drafters[k] != NULL; k++)
      if (!insert (elements->pdata[i], drafters[k], error))
        return FALSE;
  }
  if (!found)
    report_set_usage (error, "--draft: nothing reads a prompt in this "
        "pipeline");
  return found;
}
