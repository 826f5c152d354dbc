/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * The bytes of tensors by reading instead of mapping: an error of the disk or
 * a file cut short is then an error and no signal, and what was read does not
 * stay resident.
 */
#pragma once

#include <gio/gio.h>
#include "mapping.h"

G_BEGIN_DECLS

/* A file or bytes in memory, whatever a mapping is of. */
typedef struct _RunnelTensorFile RunnelTensorFile;

/* @mapping is referenced. The file is opened again by its name. */
RunnelTensorFile *runnel_tensor_file_new (RunnelMapping *mapping,
                                          GError **error);
/* What is mapped or in memory, without a look at the file. */
RunnelTensorFile *runnel_tensor_file_new_in_memory (RunnelMapping *mapping);
void runnel_tensor_file_free (RunnelTensorFile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelTensorFile, runnel_tensor_file_free)

gsize runnel_tensor_file_size (const RunnelTensorFile *self);
/* Reads @size bytes at @offset of the file. */
gboolean runnel_tensor_file_read (RunnelTensorFile *self, gsize offset,
                                  guint8 *data, gsize size, GError **error);
/* Adds @size bytes at @offset to @hash; @cancellable is asked now and then. */
gboolean runnel_tensor_file_hash (RunnelTensorFile *self, gsize offset,
                                  gsize size, GChecksum *hash,
                                  GCancellable *cancellable, GError **error);
/* FALSE with an error when the file is not what it was when it was opened. */
gboolean runnel_tensor_file_is_unchanged (RunnelTensorFile *self,
                                          GError **error);

G_END_DECLS
