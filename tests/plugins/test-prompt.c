/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "element-fixture.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* What lmprompt does with these properties: the prompt, or NULL and a message
 * with @error in it. */
static char *
get_prompt (const char *text, const char *location, const char *error)
{
  GstElement *element = gst_element_factory_make ("lmprompt", NULL);
  GstHarness *harness;
  g_autoptr (GstBus) bus = gst_bus_new ();
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GError) posted = NULL;
  char *result = NULL;

  g_object_set (element, "text", text, "location", location, NULL);
  harness = gst_harness_new_with_element (element, NULL, "src");
  gst_element_set_bus (element, bus);
  gst_element_set_state (element, GST_STATE_PLAYING);
  if (error == NULL)
    {
      g_autoptr (GstBuffer) buffer = gst_harness_pull (harness);

      g_assert_cmpuint (gst_lm_buffer_get_request_meta (buffer)->id, >, 0);
      result = element_test_text (buffer);
      while (!gst_pad_get_sticky_event (harness->sinkpad, GST_EVENT_EOS, 0))
        g_usleep (1000);
      g_assert_cmpuint (gst_harness_buffers_received (harness), ==, 1);
    }
  else
    {
      message = gst_bus_timed_pop_filtered (bus, 10 * GST_SECOND,
                                            GST_MESSAGE_ERROR);
      g_assert_nonnull (message);
      gst_message_parse_error (message, &posted, NULL);
      if (strstr (posted->message, error) == NULL)
        g_error ("'%s' is not in '%s'", error, posted->message);
    }
  gst_element_set_state (element, GST_STATE_NULL);
  gst_element_set_bus (element, NULL);
  gst_harness_teardown (harness);
  gst_object_unref (element);
  return result;
}

static void
test_text (void)
{
  g_autofree char *text = get_prompt ("a \"quoted\" prompt\n", NULL, NULL);
  g_autofree char *empty = get_prompt ("", NULL, NULL);

  g_assert_cmpstr (text, ==, "a \"quoted\" prompt\n");
  g_assert_cmpstr (empty, ==, "");
}

static void
test_location (void)
{
  g_autofree char *path = NULL;
  g_autofree char *text = NULL;
  int fd = g_file_open_tmp ("runnel-prompt-XXXXXX", &path, NULL);

  g_assert_cmpint (fd, >=, 0);
  close (fd);
  g_assert_true (g_file_set_contents (path, "two\nlines\n", -1, NULL));
  text = get_prompt (NULL, path, NULL);
  g_assert_cmpstr (text, ==, "two\nlines\n");
  g_unlink (path);
}

static void
test_errors (void)
{
  g_assert_null (get_prompt (NULL, NULL, "text and location"));
  g_assert_null (get_prompt ("a", "b", "text and location"));
  g_assert_null (get_prompt (NULL, "/no/such/prompt", "/no/such/prompt"));
  g_assert_null (get_prompt (NULL, "/dev/zero", "/dev/zero: is not a regular"));
  g_assert_null (get_prompt (NULL, "/", "/: is not a regular file"));
}

static void
add_tests (void)
{
  g_test_add_func ("/prompt/text", test_text);
  g_test_add_func ("/prompt/location", test_location);
  g_test_add_func ("/prompt/errors", test_errors);
}

int
main (int argc, char **argv)
{
  return element_test_run (&argc, &argv, add_tests);
}
