/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/**
 * SECTION:tracer-lmstats
 * @title: lmstats
 * @short_description: tokens per second, time to first token, memory, energy
 *
 * A tracer that watches what Runnel's elements push. For every request it logs
 * one `lmstats-request` record per element (and an `lmstats-drafts` record for a
 * reply whose drafters guessed something), and when the process ends (or
 * gst_deinit() is called) one `lmstats-element` record per element and one
 * `lmstats-process` record. Records go to the log category GST_TRACER.
 *
 * ## How to use it
 * |[
 * GST_TRACERS=lmstats GST_DEBUG=GST_TRACER:7 \
 *     gst-launch-1.0 -q lmprompt text="Hello" \
 *     ! lmgenerate model=$MODEL ! fdsink
 * ]|
 *
 * Times are those of the push calls, so an element's time includes waiting
 * for other elements of the same thread only where it pushes into them between
 * its first input and its last output. Energy is that of the whole machine, by
 * the sensor that RunnelEnergyMeter finds; where there is none the tracer says
 * so once and records −1.
 */

#define GST_USE_UNSTABLE_API
#include <gstrunnel.h>
#include "elements.h"

#include <string.h>

GST_DEBUG_CATEGORY_STATIC (lm_stats_debug);
#define GST_CAT_DEFAULT lm_stats_debug

/* What one element has done. Fields are guarded by the tracer's lock: an
 * element's pads may push from several threads. */
typedef struct {
  char *name;
  guint64 requests;
  guint64 tokens_in;
  guint64 tokens_out;
  guint64 bytes_out;
  GstClockTime busy;            /* first input to last output, summed */
  GstClockTime first_sum;       /* first input to first output, summed */
  /* the request in progress */
  GstClockTime started;         /* NONE: no input yet */
  GstClockTime first_out;
  guint64 request_in;
  guint64 request_out;
} ElementStats;

struct _GstLmStats {
  GstTracer parent;

  GMutex lock;
  GPtrArray *elements;          /* of ElementStats */
  RunnelEnergyMeter *meter;     /* or NULL */
};

G_DECLARE_FINAL_TYPE (GstLmStats, gst_lm_stats, GST, LM_STATS, GstTracer)
G_DEFINE_FINAL_TYPE (GstLmStats, gst_lm_stats, GST_TYPE_TRACER)

static GQuark stats_quark;
static GstTracerRecord *request_record;
static GstTracerRecord *drafts_record;
static GstTracerRecord *element_record;
static GstTracerRecord *process_record;

static void
element_stats_free (gpointer data)
{
  ElementStats *stats = data;

  g_free (stats->name);
  g_free (stats);
}

/* The element that owns @pad if it is one of ours, else NULL. */
static GstElement *
get_lm_element (GstPad *pad)
{
  GstObject *parent = gst_object_get_parent (GST_OBJECT (pad));
  GstElementFactory *factory;

  if (parent && GST_IS_ELEMENT (parent)
      && (factory = gst_element_get_factory (GST_ELEMENT (parent)))
      && g_strcmp0 (gst_plugin_feature_get_plugin_name
              (GST_PLUGIN_FEATURE (factory)), "runnel") == 0)
    return GST_ELEMENT (parent);
  g_clear_object (&parent);
  return NULL;
}

static ElementStats *
get_stats_unlocked (GstLmStats *self, GstElement *element)
{
  ElementStats *stats = g_object_get_qdata (G_OBJECT (element), stats_quark);

  if (!stats) {
    stats = g_new0 (ElementStats, 1);
    stats->name = gst_object_get_name (GST_OBJECT (element));
    stats->started = stats->first_out = GST_CLOCK_TIME_NONE;
    g_ptr_array_add (self->elements, stats);
    g_object_set_qdata (G_OBJECT (element), stats_quark, stats);
  }
  return stats;
}

static guint64
count_tokens (GstPad *pad, GstBuffer *buffer)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (pad);

  if (!caps || !gst_structure_has_name (gst_caps_get_structure (caps, 0),
          GST_LM_CAPS_TOKENS))
    return 0;
  return gst_buffer_get_size (buffer) / sizeof (gint32);
}

/* tokens per second, 0 where there is no time to divide by */
static double
rate (guint64 n, GstClockTime time)
{
  return time > 0 ? (double) n * GST_SECOND / time : 0;
}

static void
end_request_unlocked (ElementStats *stats, GstClockTime ts)
{
  GstClockTime whole, first;

  if (!GST_CLOCK_TIME_IS_VALID (stats->started))
    stats->started = stats->first_out;
  whole = ts - stats->started;
  first = stats->first_out - stats->started;
  stats->requests++;
  stats->busy += whole;
  stats->first_sum += first;
  gst_tracer_record_log (request_record, stats->name, stats->requests,
      stats->request_in, stats->request_out, first / 1e6, whole / 1e6,
      rate (MAX (stats->request_in, stats->request_out), whole));
  stats->started = stats->first_out = GST_CLOCK_TIME_NONE;
  stats->request_in = stats->request_out = 0;
}

/* The end of a reply whose drafters guessed something. */
static void
log_drafts (GstElement *element, GstBuffer *buffer)
{
  const GstLmRequestMeta *meta = gst_lm_buffer_get_request_meta (buffer);

  if (!meta || meta->draft_blocks == 0)
    return;
  gst_tracer_record_log (drafts_record, GST_OBJECT_NAME (element),
      (guint64) meta->draft_blocks, (guint64) meta->proposed_tokens,
      (guint64) meta->accepted_tokens,
      (double) meta->accepted_tokens / meta->draft_blocks,
      meta->draft_time / 1e6, meta->verify_time / 1e6);
}

static void
pad_push_pre (GObject *object, GstClockTime ts, GstPad *pad,
              GstBuffer *buffer)
{
  GstLmStats *self = GST_LM_STATS (object);
  g_autoptr (GstPad) peer = gst_pad_get_peer (pad);
  g_autoptr (GstElement) source = get_lm_element (pad);
  g_autoptr (GstElement) sink = peer ? get_lm_element (peer) : NULL;
  guint64 n_tokens;

  if (!source && !sink)
    return;
  n_tokens = count_tokens (pad, buffer);
  g_mutex_lock (&self->lock);
  if (source) {
    ElementStats *stats = get_stats_unlocked (self, source);

    if (!GST_CLOCK_TIME_IS_VALID (stats->first_out))
      stats->first_out = ts;
    stats->tokens_out += n_tokens;
    stats->request_out += n_tokens;
    stats->bytes_out += gst_buffer_get_size (buffer);
    if (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_MARKER)) {
      end_request_unlocked (stats, ts);
      if (G_OBJECT_TYPE (source) == gst_lm_decode_get_type ())
        log_drafts (source, buffer);
    }
  }
  if (sink) {
    ElementStats *stats = get_stats_unlocked (self, sink);

    if (!GST_CLOCK_TIME_IS_VALID (stats->started))
      stats->started = ts;
    stats->tokens_in += n_tokens;
    stats->request_in += n_tokens;
  }
  g_mutex_unlock (&self->lock);
}

/* A line "VmHWM:   1234 kB" of /proc/self/status, in bytes. */
static guint64
read_memory (const char *field)
{
  g_autofree char *text = NULL;
  const char *line;

  if (!g_file_get_contents ("/proc/self/status", &text, NULL, NULL)
      || !(line = strstr (text, field)))
    return 0;
  return g_ascii_strtoull (line + strlen (field), NULL, 10) * 1024;
}

static void
gst_lm_stats_finalize (GObject *object)
{
  /* The kernel brings its peak up to date later than the size itself. */
  guint64 rss = read_memory ("VmRSS:"), peak = read_memory ("VmHWM:");
  GstLmStats *self = GST_LM_STATS (object);

  for (guint i = 0; i < self->elements->len; i++) {
    ElementStats *stats = g_ptr_array_index (self->elements, i);

    gst_tracer_record_log (element_record, stats->name, stats->requests,
        stats->tokens_in, stats->tokens_out, stats->bytes_out,
        stats->requests ? stats->first_sum / 1e6 / stats->requests : 0,
        rate (MAX (stats->tokens_in, stats->tokens_out), stats->busy));
  }
  gst_tracer_record_log (process_record, MAX (peak, rss), rss,
      self->meter ? runnel_energy_meter_read (self->meter) : -1.0);

  g_clear_object (&self->meter);
  g_ptr_array_unref (self->elements);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gst_lm_stats_parent_class)->finalize (object);
}

static GstStructure *
value_field (GType type, const char *description)
{
  return gst_structure_new ("value", "type", G_TYPE_GTYPE, type,
      "description", G_TYPE_STRING, description, NULL);
}

static GstStructure *
element_scope (void)
{
  return gst_structure_new ("scope", "type", G_TYPE_GTYPE, G_TYPE_STRING,
      "related-to", GST_TYPE_TRACER_VALUE_SCOPE, GST_TRACER_VALUE_SCOPE_ELEMENT,
      NULL);
}

static GstTracerRecord *
new_request_record (void)
{
  g_autoptr (GstStructure) element = element_scope ();
  g_autoptr (GstStructure) request =
      value_field (G_TYPE_UINT64, "count of requests, this one included");
  g_autoptr (GstStructure) in = value_field (G_TYPE_UINT64, "tokens taken");
  g_autoptr (GstStructure) out = value_field (G_TYPE_UINT64, "tokens given");
  g_autoptr (GstStructure) first =
      value_field (G_TYPE_DOUBLE, "ms from first input to first output");
  g_autoptr (GstStructure) whole =
      value_field (G_TYPE_DOUBLE, "ms from first input to last output");
  g_autoptr (GstStructure) speed =
      value_field (G_TYPE_DOUBLE, "tokens per second");

  return gst_tracer_record_new ("lmstats-request.class",
      "element", GST_TYPE_STRUCTURE, element,
      "request", GST_TYPE_STRUCTURE, request,
      "tokens-in", GST_TYPE_STRUCTURE, in,
      "tokens-out", GST_TYPE_STRUCTURE, out,
      "first-ms", GST_TYPE_STRUCTURE, first,
      "total-ms", GST_TYPE_STRUCTURE, whole,
      "tokens-per-second", GST_TYPE_STRUCTURE, speed, NULL);
}

static GstTracerRecord *
new_drafts_record (void)
{
  g_autoptr (GstStructure) element = element_scope ();
  g_autoptr (GstStructure) blocks =
      value_field (G_TYPE_UINT64, "passes that verified guesses");
  g_autoptr (GstStructure) proposed =
      value_field (G_TYPE_UINT64, "guesses verified");
  g_autoptr (GstStructure) accepted =
      value_field (G_TYPE_UINT64, "guesses kept");
  g_autoptr (GstStructure) mean =
      value_field (G_TYPE_DOUBLE, "guesses kept in a pass, mean");
  g_autoptr (GstStructure) draft =
      value_field (G_TYPE_DOUBLE, "ms in drafters");
  g_autoptr (GstStructure) verify =
      value_field (G_TYPE_DOUBLE, "ms in passes that verified guesses");

  return gst_tracer_record_new ("lmstats-drafts.class",
      "element", GST_TYPE_STRUCTURE, element,
      "blocks", GST_TYPE_STRUCTURE, blocks,
      "proposed", GST_TYPE_STRUCTURE, proposed,
      "accepted", GST_TYPE_STRUCTURE, accepted,
      "mean-accepted", GST_TYPE_STRUCTURE, mean,
      "draft-ms", GST_TYPE_STRUCTURE, draft,
      "verify-ms", GST_TYPE_STRUCTURE, verify, NULL);
}

static GstTracerRecord *
new_element_record (void)
{
  g_autoptr (GstStructure) element = element_scope ();
  g_autoptr (GstStructure) requests =
      value_field (G_TYPE_UINT64, "requests ended");
  g_autoptr (GstStructure) in = value_field (G_TYPE_UINT64, "tokens taken");
  g_autoptr (GstStructure) out = value_field (G_TYPE_UINT64, "tokens given");
  g_autoptr (GstStructure) bytes = value_field (G_TYPE_UINT64, "bytes given");
  g_autoptr (GstStructure) first =
      value_field (G_TYPE_DOUBLE, "mean ms from first input to first output");
  g_autoptr (GstStructure) speed =
      value_field (G_TYPE_DOUBLE, "tokens per second while busy");

  return gst_tracer_record_new ("lmstats-element.class",
      "element", GST_TYPE_STRUCTURE, element,
      "requests", GST_TYPE_STRUCTURE, requests,
      "tokens-in", GST_TYPE_STRUCTURE, in,
      "tokens-out", GST_TYPE_STRUCTURE, out,
      "bytes-out", GST_TYPE_STRUCTURE, bytes,
      "first-ms", GST_TYPE_STRUCTURE, first,
      "tokens-per-second", GST_TYPE_STRUCTURE, speed, NULL);
}

static GstTracerRecord *
new_process_record (void)
{
  g_autoptr (GstStructure) peak =
      value_field (G_TYPE_UINT64, "largest resident set, bytes");
  g_autoptr (GstStructure) now =
      value_field (G_TYPE_UINT64, "resident set now, bytes");
  g_autoptr (GstStructure) energy =
      value_field (G_TYPE_DOUBLE, "joules of the machine, or −1");

  return gst_tracer_record_new ("lmstats-process.class",
      "peak-rss", GST_TYPE_STRUCTURE, peak,
      "rss", GST_TYPE_STRUCTURE, now,
      "energy-j", GST_TYPE_STRUCTURE, energy, NULL);
}

static void
gst_lm_stats_class_init (GstLmStatsClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_lm_stats_finalize;

  GST_DEBUG_CATEGORY_INIT (lm_stats_debug, "lmstats", 0, "Runnel statistics");
  stats_quark = g_quark_from_static_string ("gst-lm-stats");
  request_record = new_request_record ();
  drafts_record = new_drafts_record ();
  element_record = new_element_record ();
  process_record = new_process_record ();
  GST_OBJECT_FLAG_SET (request_record, GST_OBJECT_FLAG_MAY_BE_LEAKED);
  GST_OBJECT_FLAG_SET (drafts_record, GST_OBJECT_FLAG_MAY_BE_LEAKED);
  GST_OBJECT_FLAG_SET (element_record, GST_OBJECT_FLAG_MAY_BE_LEAKED);
  GST_OBJECT_FLAG_SET (process_record, GST_OBJECT_FLAG_MAY_BE_LEAKED);
}

static void
gst_lm_stats_init (GstLmStats *self)
{
  g_autoptr (GError) error = NULL;

  g_mutex_init (&self->lock);
  self->elements = g_ptr_array_new_with_free_func (element_stats_free);
  self->meter = runnel_energy_meter_new (NULL, &error);
  if (!self->meter)
    GST_WARNING_OBJECT (self, "energy is not measured: %s", error->message);
  gst_tracing_register_hook (GST_TRACER (self), "pad-push-pre",
      G_CALLBACK (pad_push_pre));
}
