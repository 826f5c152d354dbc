/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * What the formats of a checkpoint share: hyperparameters are read by one of
 * them, tensors gathered under their GGUF names, and both checked together.
 */
#pragma once

#include "../model/architecture.h"
#include "checkpoint.h"
#include "json-reader.h"

G_BEGIN_DECLS

struct _RunnelCheckpoint {
  gatomicrefcount ref_count;
  char *path;
  RunnelLoadMode mode;
  char *folder;                   /* Hugging Face */
  RunnelGguf *gguf;
  RunnelSafetensors *safetensors;
  RunnelMnnPackage *mnn;
  RunnelHyperparameters hyperparameters;
  GStringChunk *names;
  GArray *tensors;                /* RunnelTensor */
  GHashTable *by_name;            /* name → index + 1 */
  char *content_id;
};

/* Sizes that no model of this kind comes near, so that products of two of
 * them fit 64 bits and sums of rows fit 32. */
#define RUNNEL_MAX_EMBD 65536
#define RUNNEL_MAX_FF (1 << 20)
#define RUNNEL_MAX_HEADS 1024
#define RUNNEL_MAX_HEAD_DIM 1024
#define RUNNEL_MAX_VOCAB (1 << 24)
#define RUNNEL_MAX_CONTEXT (1 << 28)
/* What divides the frequencies of rotation, each at most 1 before: angles then
 * stay below 2^48, where their sines mean something. */
#define RUNNEL_MIN_ROPE_FACTOR 1e-3

/* Ranges and divisibility, whatever the format. */
gboolean runnel_checkpoint_check_hyperparameters (RunnelCheckpoint *self,
                                                  GError **error);
/* Every tensor known, of its shape and of a fitting type; none missing. */
gboolean
runnel_checkpoint_check_tensors (RunnelCheckpoint *self,
                                 const RunnelArchitecture *architecture,
                                 GError **error);

/* Of DFlash drafts, into hyperparameters.draft; the sizes have been read. */
gboolean runnel_checkpoint_read_gguf_draft (RunnelCheckpoint *self,
                                            GError **error);
gboolean runnel_checkpoint_is_gguf_draft_key (const char *suffix);
void runnel_checkpoint_write_gguf_draft (RunnelGgufWriter *writer,
                                         const RunnelHyperparameters *hp);
gboolean runnel_checkpoint_read_config_draft (RunnelCheckpoint *self,
                                              RunnelJsonReader *in);
gboolean runnel_checkpoint_is_draft_config (const RunnelJsonNode *root);

/* An axis of convolutions beyond the second joins it. */
void runnel_checkpoint_add_tensor (RunnelCheckpoint *self,
                                   const RunnelTensor *tensor,
                                   const char *name);

gboolean runnel_checkpoint_read_gguf (RunnelCheckpoint *self,
                                      RunnelLoadMode mode, GError **error);
/* *@config: the bytes of config.json, which belong to the content. */
gboolean runnel_checkpoint_read_hugging_face (RunnelCheckpoint *self,
                                              RunnelLoadMode mode,
                                              RunnelMapping **config,
                                              GError **error);
/* *@config: the bytes of llm_config.json, which belong to the content. */
gboolean runnel_checkpoint_read_mnn (RunnelCheckpoint *self,
                                     RunnelLoadMode mode,
                                     RunnelMapping **config, GError **error);

G_END_DECLS
