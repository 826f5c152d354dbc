/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* Runs pipelines in tests: launch strings, what came out of them, and a
 * watchdog over both. */
#pragma once

#include <gstrunnel.h>

G_BEGIN_DECLS

/* What limits of time are multiplied by: sanitizers are slow. */
#if defined (__SANITIZE_ADDRESS__) || defined (__SANITIZE_THREAD__)
#define PIPELINE_SLACK 6
#else
#define PIPELINE_SLACK 1
#endif

/* Aborts the program with @what unless stopped in time. */
typedef struct _Watchdog Watchdog;
Watchdog *watchdog_start (guint seconds, const char *what);
void watchdog_stop (Watchdog *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Watchdog, watchdog_stop)

/* A model of random weights, made once and removed at the program's end. */
const char *pipeline_model_path (void);

/* A pipeline of a launch string; the test fails if there is none. */
GstElement *pipeline_new (const char *format, ...) G_GNUC_PRINTF (1, 2);
/* Plays it to EOS and back to NULL; an error message fails the test. */
void pipeline_run (GstElement *pipeline);
/* Plays it until an error; returns its text. */
char *pipeline_run_to_error (GstElement *pipeline);
/* To NULL, and gone. */
void pipeline_free (GstElement *pipeline);
/* Takes a message of these types off the bus, waiting for it. */
GstMessage *pipeline_wait_message (GstElement *pipeline, GstMessageType types);
guint pipeline_count_messages (GstElement *pipeline, GstMessageType types);
GstElement *pipeline_get (GstElement *pipeline, const char *name);
/* Gives the appsrc `in` a request with these overrides (taken, nullable);
 * returns its id. */
guint64 pipeline_send (GstElement *pipeline, const char *text,
                       GstStructure *overrides);
void pipeline_end (GstElement *pipeline);
/* Sends runnel/cancel upstream from the sink pad of an element. */
gboolean pipeline_cancel (GstElement *pipeline, const char *element,
                          guint64 id);

/* Keeps what comes to the sink pad of an element of the pipeline. */
typedef struct _Recorder Recorder;
Recorder *recorder_new (GstElement *pipeline, const char *element);
void recorder_free (Recorder *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Recorder, recorder_free)
/* Wait for this many buffers, or marked buffers, since the last clear. */
void recorder_wait_buffers (Recorder *self, guint n);
void recorder_wait_markers (Recorder *self, guint n);
guint recorder_get_n_buffers (Recorder *self);
guint recorder_get_n_markers (Recorder *self);
gboolean recorder_get_eos (Recorder *self);
/* Borrowed until cleared. */
GstBuffer *recorder_get_buffer (Recorder *self, guint i);
/* The meta of the @i-th marked buffer. */
GstLmRequestMeta *recorder_get_end (Recorder *self, guint i);
/* All bytes, as text. */
char *recorder_get_text (Recorder *self);
/* All bytes, as token ids, of the @i-th reply. */
GArray *recorder_get_reply (Recorder *self, guint i);
guint recorder_get_n_gaps (Recorder *self);
void recorder_clear (Recorder *self);

G_END_DECLS
