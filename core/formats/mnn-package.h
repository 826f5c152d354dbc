/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A folder that MNN's exporter wrote: llm_config.json, config.json, a graph
 * and a file of weights, sometimes a file of the embedding, and a tokenizer.
 */
#pragma once

#include "json.h"
#include "mnn-weights.h"

G_BEGIN_DECLS

typedef struct _RunnelMnnPackage RunnelMnnPackage;

/* Where the bytes of a tensor came from, and what they lost. */
typedef struct {
  RunnelMapping *file;         /* borrowed */
  guint64 at, bytes;
  RunnelMnnRounding rounding;  /* n is 0 for what is not made of codes */
} RunnelMnnOrigin;

/* Whether @path is such a folder, or its config.json, llm_config.json or
 * graph. */
gboolean runnel_mnn_package_is_at (const char *path);

void runnel_mnn_package_free (RunnelMnnPackage *self);

const char *runnel_mnn_package_folder (const RunnelMnnPackage *self);
const RunnelMapping *runnel_mnn_package_graph (const RunnelMnnPackage *self);
/* Of the checkpoint's nth tensor. */
const RunnelMnnOrigin *runnel_mnn_package_origin (const RunnelMnnPackage *self,
                                                  gsize i);
const char *runnel_mnn_package_tokenizer_path (const RunnelMnnPackage *self);
/* A string under "jinja" of llm_config.json: "chat_template", "bos", "eos";
 * NULL when absent. */
const char *runnel_mnn_package_jinja (const RunnelMnnPackage *self,
                                      const char *key);

G_END_DECLS
