/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What the parts of a conversion share: converter.c is the object and the
 * order of things, converter-metadata.c writes the keys, converter-tensors.c
 * the tensors.
 */
#pragma once

#include "../model/calibration-private.h"
#include "checkpoint.h"
#include "converter.h"
#include "decision-head-private.h"
#include "package-writer.h"
#include "tensor-file.h"

G_BEGIN_DECLS

/* A rule of runnel_converter_keep (). */
typedef struct {
  GPatternSpec *pattern;
  RunnelPackageType type;
} RunnelConverterRule;

typedef struct {
  float *values;
  gsize n;
} RunnelImportance;

/* One conversion. */
typedef struct {
  RunnelPackageType type;
  guint group;                   /* 0: as it fits */
  const GArray *rules;           /* RunnelConverterRule; the last one counts */
  GHashTable *importance;        /* tensor → RunnelImportance */
  RunnelCalibration *calibration;   /* or NULL */
  RunnelCheckpoint *checkpoint;
  GHashTable *files;             /* RunnelMapping → RunnelTensorFile */
  RunnelPackageWriter *writer;
  GArray *tensors;               /* RunnelTensor: what the package holds */
  const RunnelTensor *left_out;  /* the embedding once more, or NULL */
  RunnelDecisionHead *head;      /* or NULL */
  GArray *head_tensors;          /* RunnelTensor: those of the head, or NULL */
  gboolean is_float;             /* no matrix of the source is quantised */

  RunnelProgressFunc progress;
  gpointer user_data;
  GCancellable *cancellable;
  gsize done, total;             /* bytes of the source */
  GVariantBuilder *report;       /* a(sssbdtt) */
  guint n_lossless;
  GError **error;
} RunnelConversion;

/* FALSE when it was cancelled; @bytes more of the source are done. */
gboolean runnel_conversion_advance (RunnelConversion *self, gsize bytes);

/* The file of a mapping, opened on the first call; NULL with an error. */
RunnelTensorFile *runnel_conversion_file (RunnelConversion *self,
                                          RunnelMapping *mapping);

/* Gives back what was made in memory for a tensor. */
void runnel_conversion_forget (RunnelConversion *self,
                               RunnelMapping *mapping);

/* What a package says of the model and where it comes from. */
gboolean runnel_conversion_write_metadata (RunnelConversion *self,
                                           RunnelGgufWriter *metadata);
/* The files of the source, paths to be freed. */
GPtrArray *runnel_conversion_list_files (const RunnelConversion *self);

/* Writes the next tensor and proves it. @rounding: what its scales lost when
 * it was read, or NULL. */
gboolean
runnel_conversion_write_tensor (RunnelConversion *self,
                                const RunnelTensor *tensor,
                                const RunnelMnnRounding *rounding);

G_END_DECLS
