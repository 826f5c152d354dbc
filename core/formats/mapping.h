/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>
#include "load-mode.h"

G_BEGIN_DECLS

/* A file's bytes, or somebody's bytes under a name. Immutable, and counted
 * references: safe to use from several threads. Only regular files. */
typedef struct _RunnelMapping RunnelMapping;

RunnelMapping *runnel_mapping_open (const char *path, RunnelLoadMode mode,
                                    GError **error);
/* Reads a file that has no business being large: one of more than @limit bytes
 * is RUNNEL_ERROR_LIMIT, before memory is taken for it. */
RunnelMapping *runnel_mapping_read (const char *path, gsize limit,
                                    GError **error);
RunnelMapping *runnel_mapping_new_from_bytes (GBytes *bytes, const char *name);
/* Bytes that are made when they are asked for first, by one thread; later ones
 * wait. Address space is taken at once, memory when they are made.
 * @again: made a second time after runnel_mapping_release. */
typedef void (*RunnelMappingFill) (guint8 *into, gpointer user_data);
RunnelMapping *runnel_mapping_new_filled (gsize size, const char *name,
                                          RunnelMappingFill fill,
                                          gpointer user_data,
                                          GDestroyNotify destroy,
                                          gboolean again, GError **error);
RunnelMapping *runnel_mapping_ref (RunnelMapping *self);
void runnel_mapping_unref (RunnelMapping *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunnelMapping, runnel_mapping_unref)

const guint8 *runnel_mapping_data (const RunnelMapping *self);
gsize runnel_mapping_size (const RunnelMapping *self);
const char *runnel_mapping_name (const RunnelMapping *self);
/* Whether another process had the file mapped, by runnel_mapping_open, when it
 * was opened here. */
gboolean runnel_mapping_is_shared (const RunnelMapping *self);
/* Whether its pages are those of the file. */
gboolean runnel_mapping_is_file (const RunnelMapping *self);
/* Gives the whole pages inside the range back to the system (by the run-time
 * page size). Mapped pages can be read again; pages that were read in cannot
 * (they read as zero), so call it only for what has been repacked. Bytes made
 * by a function are given back as a whole, if they can be made again and only
 * the caller holds a reference; pointers to them are void then. */
void runnel_mapping_release (RunnelMapping *self, gsize offset, gsize length);

G_END_DECLS
