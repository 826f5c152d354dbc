/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "tensor.h"

G_BEGIN_DECLS

/* A safetensors checkpoint: one file, or an index that names shards. The
 * tensors it lists are of type F32, F16 and BF16 and have 1 to 4 axes (a
 * scalar has one of length 1); the others, which files may hold for other
 * programs, are checked like these, but only runnel_safetensors_unusable ()
 * speaks of them.
 * Source: the safetensors format description by Hugging Face. */
typedef struct _RunnelSafetensors RunnelSafetensors;

/* @path is a .safetensors file, a .safetensors.index.json, or a folder that
 * holds model.safetensors or model.safetensors.index.json. */
RunnelSafetensors *runnel_safetensors_open (const char *path,
                                            RunnelLoadMode mode,
                                            GError **error);
RunnelSafetensors *runnel_safetensors_new (RunnelMapping *mapping,
                                           GError **error);
void runnel_safetensors_free (RunnelSafetensors *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelSafetensors, runnel_safetensors_free)

gsize runnel_safetensors_n_tensors (const RunnelSafetensors *self);
/* dims in our order: dims[0] is the last (fastest) axis of the file's shape. */
const RunnelTensor *runnel_safetensors_tensor (const RunnelSafetensors *self,
                                               gsize i);
const RunnelTensor *runnel_safetensors_find (const RunnelSafetensors *self,
                                             const char *name);
/* Why a tensor of that name is not listed ("is of type I64"), or NULL. */
const char *runnel_safetensors_unusable (const RunnelSafetensors *self,
                                         const char *name);
/* The first such name in byte order that begins with @prefix, or NULL. */
const char *runnel_safetensors_find_unusable (const RunnelSafetensors *self,
                                              const char *prefix);
gsize runnel_safetensors_n_shards (const RunnelSafetensors *self);
/* The bytes of a shard before its data. */
const guint8 *runnel_safetensors_header (const RunnelSafetensors *self,
                                         gsize shard, gsize *size);

G_END_DECLS
