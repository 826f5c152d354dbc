/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib-object.h>
#include "../api.h"

G_BEGIN_DECLS

/**
 * RunnelLoadMode:
 * @RUNNEL_LOAD_MODE_AUTO: map the file, and copy weights that need no
 *   repacking into huge pages, which read a third faster, unless memory is
 *   short or another process has the file open
 * @RUNNEL_LOAD_MODE_MAP: map the file; pages are shared between processes
 * @RUNNEL_LOAD_MODE_READ: read it into memory; safe when the file may be
 *   truncated while it is in use
 *
 * How a model file comes into memory.
 *
 * Since: 0.1
 */
typedef enum {
  RUNNEL_LOAD_MODE_AUTO,
  RUNNEL_LOAD_MODE_MAP,
  RUNNEL_LOAD_MODE_READ,
} RunnelLoadMode;

#define RUNNEL_TYPE_LOAD_MODE (runnel_load_mode_get_type ())
RUNNEL_API GType runnel_load_mode_get_type (void);

G_END_DECLS
