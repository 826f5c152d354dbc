/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The package: a GGUF container with Runnel's tensor types and keys, described
 * in docs/package.md.
 */
#pragma once

#include <gio/gio.h>
#include "../model/hyperparameters.h"
#include "../progress.h"
#include "gguf.h"

G_BEGIN_DECLS

#define RUNNEL_PACKAGE_VERSION 1
#define RUNNEL_PACKAGE_ALIGNMENT 64          /* of the data of a tensor */
#define RUNNEL_PACKAGE_DATA_ALIGNMENT 16384  /* of the data section */
#define RUNNEL_PACKAGE_DIGEST_BYTES 32

/* Keys of its own; those of the tokenizer are in text/tokenizer-package.c. */
#define RUNNEL_PACKAGE_SHA256 "runnel.sha256"
#define RUNNEL_PACKAGE_KEY_VERSION "runnel.package.version"
#define RUNNEL_PACKAGE_TENSOR_SHA256 "runnel.tensor.sha256"
#define RUNNEL_PACKAGE_SOURCE_TYPE "runnel.tensor.source_type"
#define RUNNEL_PACKAGE_LOSSLESS "runnel.tensor.lossless"
#define RUNNEL_PACKAGE_ERROR "runnel.tensor.error"
#define RUNNEL_PACKAGE_SOURCE_FORMAT "runnel.source.format"
#define RUNNEL_PACKAGE_SOURCE_FILES "runnel.source.files"
#define RUNNEL_PACKAGE_SOURCE_SHA256 "runnel.source.sha256"
#define RUNNEL_PACKAGE_GENERATION_CONFIG "runnel.generation_config"
#define RUNNEL_PACKAGE_FILLER "runnel.filler"

gboolean runnel_package_is (const RunnelGguf *gguf);
/* Version and places of the data; TRUE also for a file that is no package. */
gboolean runnel_package_check (const RunnelGguf *gguf, GError **error);

/* Architecture and hyperparameters: all of them but the tied output, which the
 * tensors say. */
void runnel_package_write_hyperparameters (RunnelGgufWriter *writer,
                                           const RunnelHyperparameters *hp);
/* The rope keys that GGUF does not have, into @hp. */
gboolean runnel_package_read_rope (const RunnelGguf *gguf,
                                   RunnelHyperparameters *hp, GError **error);

/* What became of a tensor. */
typedef struct {
  RunnelTensorType source_type;
  gboolean lossless;
  float error;                  /* relative RMS; 0 when lossless */
  char sha256[2 * RUNNEL_PACKAGE_DIGEST_BYTES + 1];   /* set when read */
} RunnelPackageRecord;

/* The digests of all tensors, one after the other. */
gboolean runnel_package_get_digests (const RunnelGguf *gguf,
                                     const guint8 **ret, GError **error);
/* The record of tensor @i of the file; FALSE with an error when the arrays do
 * not fit the tensors. */
gboolean runnel_package_get_record (const RunnelGguf *gguf, gsize i,
                                    RunnelPackageRecord *ret, GError **error);
/* What `inspect` tells beside the model: a dictionary; see
 * runnel_model_describe (). */
GVariant *runnel_package_describe (const RunnelGguf *gguf);

/* Reads every byte and compares. @from_file: opens the file again and reads
 * it; else the bytes that are mapped or in memory count. */
gboolean runnel_package_verify (const RunnelGguf *gguf, gboolean from_file,
                                RunnelProgressFunc progress,
                                gpointer user_data, GCancellable *cancellable,
                                GError **error);

G_END_DECLS
