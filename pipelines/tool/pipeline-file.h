/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
/* Files of launch strings: NAME.pipeline. Lines that begin with '#' are
 * comments, the first of them (but SPDX tags) says what the pipeline does. */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

typedef struct {
  char *name;
  char *path;
  char *description;   /* one line, maybe empty */
  char *launch;
} PipelineFile;

/* @name: of a file in $RUNNEL_PIPELINE_PATH, the user's data folder or where
 * Runnel is installed; or, with a '/' or the suffix, a path. */
PipelineFile *pipeline_file_load (const char *name, GError **error);
void pipeline_file_free (PipelineFile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PipelineFile, pipeline_file_free)
/* The pipeline it describes; initialises GStreamer. */
GstElement *pipeline_file_launch (const PipelineFile *self, GError **error);
/* Whether such a file is there. */
gboolean pipeline_file_exists (const char *name);
/* The names of all, sorted. */
char **pipeline_file_list (void);

G_END_DECLS
