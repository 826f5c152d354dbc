/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* The tracer lmstats: what it counts, by the records that it logs. */
#include "pipeline-run.h"

static GMutex lock;
static GPtrArray *records;      /* of GstStructure */

static void
on_log (GstDebugCategory *category, GstDebugLevel level, const char *file,
        const char *function, gint line, GObject *object,
        GstDebugMessage *message, gpointer user_data)
{
  const char *text;
  GstStructure *record;

  if (g_strcmp0 (gst_debug_category_get_name (category), "GST_TRACER") != 0)
    return;
  text = gst_debug_message_get (message);
  if (!g_str_has_prefix (text, "lmstats-") || strstr (text, ".class"))
    return;
  record = gst_structure_from_string (text, NULL);
  g_assert_nonnull (record);
  g_mutex_lock (&lock);
  g_ptr_array_add (records, record);
  g_mutex_unlock (&lock);
}

/* The record of this name and element (nullable). */
static GstStructure *
find_record (const char *name, const char *element)
{
  for (guint i = 0; i < records->len; i++) {
    GstStructure *record = g_ptr_array_index (records, i);

    if (gst_structure_has_name (record, name)
        && (!element || g_strcmp0 (gst_structure_get_string (record,
                    "element"), element) == 0))
      return record;
  }
  g_error ("no record %s of %s", name, element);
}

static guint64
get (GstStructure *record, const char *field)
{
  guint64 value;

  g_assert_true (gst_structure_get_uint64 (record, field, &value));
  return value;
}

static void
test_records (void)
{
  GstElement *pipeline = pipeline_new ("lmprompt text=hello ! lmtokenize "
      "name=tokens model=%s ! lmlookup ! lmprefill name=state ! lmdecode "
      "name=reply temperature=0 logit-bias=bias,5=100 draft-adaptive=false "
      "ignore-eos=true max-tokens=7 ! lmdetokenize name=text ! "
      "fakesink sync=false", pipeline_model_path ());
  GstStructure *record;
  double speed, energy;

  pipeline_run (pipeline);
  pipeline_free (pipeline);
  gst_deinit ();

  record = find_record ("lmstats-request", "reply");
  g_assert_cmpuint (get (record, "request"), ==, 1);
  g_assert_cmpuint (get (record, "tokens-out"), ==, 7);
  g_assert_true (gst_structure_get_double (record, "tokens-per-second",
          &speed));
  g_assert_cmpfloat (speed, >, 0);
  record = find_record ("lmstats-element", "reply");
  g_assert_cmpuint (get (record, "requests"), ==, 1);
  g_assert_cmpuint (get (record, "tokens-out"), ==, 7);
  record = find_record ("lmstats-element", "state");
  g_assert_cmpuint (get (record, "tokens-in"), >, 0);
  g_assert_cmpuint (get (record, "tokens-in"), ==,
      get (find_record ("lmstats-element", "tokens"), "tokens-out"));
  record = find_record ("lmstats-element", "text");
  g_assert_cmpuint (get (record, "tokens-in"), ==, 7);
  record = find_record ("lmstats-drafts", "reply");
  g_assert_cmpuint (get (record, "accepted"), >, 0);
  g_assert_cmpuint (get (record, "accepted"), <=, get (record, "proposed"));
  g_assert_cmpuint (get (record, "blocks"), <=, get (record, "proposed"));
  record = find_record ("lmstats-process", NULL);
  g_assert_cmpuint (get (record, "peak-rss"), >=, get (record, "rss"));
  g_assert_cmpuint (get (record, "rss"), >, 0);
  g_assert_true (gst_structure_get_double (record, "energy-j", &energy));
  g_assert_true (energy == -1 || energy >= 0);
}

int
main (int argc, char **argv)
{
  g_setenv ("GST_TRACERS", "lmstats", TRUE);
  g_setenv ("GST_DEBUG", "GST_TRACER:7", TRUE);
  records = g_ptr_array_new_with_free_func ((GDestroyNotify)
      gst_structure_free);
  gst_debug_remove_log_function (NULL);
  gst_debug_add_log_function (on_log, NULL, NULL);
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stats/records", test_records);
  return g_test_run ();
}
