/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * Writes a package tensor by tensor into a file beside its place, and puts it
 * there when it is whole.
 */
#pragma once

#include "package.h"

G_BEGIN_DECLS

typedef struct _RunnelPackageWriter RunnelPackageWriter;

/* The first keys of a package; more may be added to it. */
RunnelGgufWriter *runnel_package_writer_make_metadata (void);

/* @metadata is taken. Of @tensors names and dimensions count; the strings are
 * borrowed. */
RunnelPackageWriter *runnel_package_writer_new (const char *path,
                                                RunnelGgufWriter *metadata,
                                                const RunnelTensor *tensors,
                                                guint n_tensors,
                                                GError **error);
/* Removes what was written, unless it is finished. */
void runnel_package_writer_free (RunnelPackageWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelPackageWriter,
                               runnel_package_writer_free)

/* The tensors in their order: begin the next one, write its bytes, look at
 * them again if need be, end it. */
void runnel_package_writer_begin (RunnelPackageWriter *self,
                                  RunnelTensorType type);
gboolean runnel_package_writer_write (RunnelPackageWriter *self,
                                      const guint8 *data, gsize size,
                                      GError **error);
/* What lies in the file @offset bytes from the tensor's start. */
gboolean runnel_package_writer_read_back (RunnelPackageWriter *self,
                                          gsize offset, guint8 *data,
                                          gsize size, GError **error);
gboolean runnel_package_writer_end (RunnelPackageWriter *self,
                                    const RunnelPackageRecord *record,
                                    GError **error);
/* Writes the header and renames the file; *@ret_size: its bytes. */
gboolean runnel_package_writer_finish (RunnelPackageWriter *self,
                                       gsize *ret_size, GError **error);

G_END_DECLS
